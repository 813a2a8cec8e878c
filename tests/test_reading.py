"""Newcomers can read README.md and "Get started": no term before its explanation, short sentences.

A page is cut into pieces in reading order: sentences, headings, rows of tables, blocks of code.
The first piece that holds a term of differential privacy must be the one that explains it.
"""

import csv
import re
from pathlib import Path

import pytest

from sklearn_dp import DPKMeans

ROOT = Path(__file__).resolve().parents[1]
# Terms, as patterns of whole words; and, for each page, words of the sentence that explains a term.
# A term without an explanation must not be on the page at all.
TERMS = {
    "noise": r"nois[ey]",
    "epsilon": r"epsilons?|ε",
    "delta": r"deltas?|δ",
    "differential privacy": r"differential(ly)? priva(cy|te)|DP",
    "budget": r"budgets?",
    "ledger": r"ledgers?",
    "rho": r"rho|zCDP|GDP|mu",
    "sensitivity": r"sensitivit(y|ies)",
    "mechanism": r"mechanisms?",
    "neighbors": r"neighbou?r(s|ing)?",
    "composition": r"compos(e|es|ed|ition)",
    "accounting": r"account(ing|ant)|accounted",
    "clipping": r"clip(s|ped|ping)?",
    "noise multiplier": r"noise multiplier|sigma",
    "privacy loss": r"privacy loss",
    "unit": r"privacy unit|unit of privacy|user-level",
    "post-processing": r"post-?processing",
    "adversary": r"adversar(y|ies|ial)",
}
EXPLAINED = {
    "README.md": {
        "noise": "random numbers, called",
        "epsilon": "says how much",
        "differential privacy": "The promise is called",
        "delta": "may fail with a tiny probability",
        "budget": "is the most that all fits together may spend",
        "ledger": "keeps the account",
    },
    "doc/get_started.md": {
        "noise": "random numbers that are added",
        "epsilon": "says how much noise there is",
        "differential privacy": "This promise has a name",
        "delta": "may fail with a tiny probability",
        "budget": "is the most that you allow in total",
        "ledger": "keeps the account",
    },
}
MOST_ON_AVERAGE, MOST = 25, 34  # words of a sentence


def pieces(text):
    """(is prose, text) of all pieces of a page, in order; links and pictures by what is read."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    for part in re.split(r"^(```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL):
        if part.startswith("```"):
            yield False, part
            continue
        for block in re.split(r"\n\s*\n|\n(?=[*|#>]\s?)", part):
            is_prose = re.match(r"\s*(#|\||    )", block) is None
            words = " ".join(block.lstrip("*> \n").split())
            # The end of a sentence, not of "1.0" or "e.g.": a capital or nothing follows.
            for sentence in re.split(r"(?<=[.!?:])\**\s+(?=[*`\[(]*[A-Z]|$)", words):
                if sentence.strip():
                    yield is_prose, sentence


def first_with(term, text):
    """The first piece that holds a term, or None; names in code, like DPKMeans, are no terms."""
    pattern = re.compile(rf"(?<![\w-])({TERMS[term]})(?![\w-]|\.sqlite)", re.IGNORECASE)
    return next((piece for _, piece in pieces(text) if pattern.search(piece)), None)


def unexplained(page, text):
    """Terms whose first piece does not explain them."""
    known = EXPLAINED[page]
    return [
        (term, piece)
        for term in TERMS
        if (piece := first_with(term, text)) is not None
        and (term not in known or known[term] not in piece)
    ]


def lengths(text):
    """Words of each sentence of the prose; what is no sentence, like a caption of a list, too."""
    return [
        (len(re.findall(r"\w[\w'.,-]*", sentence)), sentence)
        for is_prose, sentence in pieces(text)
        if is_prose
    ]


@pytest.fixture(params=EXPLAINED)
def page(request):
    return request.param, (ROOT / request.param).read_text(encoding="utf-8")


def test_no_term_comes_before_its_explanation(page):
    assert unexplained(*page) == []


def test_each_explanation_is_there(page):
    name, text = page
    assert [term for term in EXPLAINED[name] if first_with(term, text) is None] == []


def test_sentences_are_short(page):
    found = lengths(page[1])
    assert len(found) >= 20
    assert sum(n for n, _ in found) / len(found) <= MOST_ON_AVERAGE
    assert [each for each in found if each[0] > MOST] == []


@pytest.mark.parametrize(
    "slip",
    ["Choose epsilon first.\n\n", "```python\nDPKMeans(epsilon=1.0)\n```\n\n", "# A budget\n\n",
     "| delta | 1 |\n|---|---|\n\n", "It is differentially private.\n\n", "Costs rho = 1.\n\n"],
)  # fmt: skip
def test_a_term_that_comes_too_early_is_found(slip):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(unexplained("README.md", slip + text)) == 1
    assert unexplained("README.md", "DPKMeans in study.sqlite.\n\n" + text) == []


def test_sentences_are_counted_as_people_read_them():
    text = "# Head\n\nOne two, with 1.0 of it. Three [four](x.md)!\n\n* Five\n* Six seven.\n\n"
    assert [n for n, _ in lengths(text + "    code here\n")] == [6, 2, 1, 2]


# -- what the README says of results ---------------------------------------------------------------

CELLS = {
    "20 separated clusters": "separated n=1e5 d=10 k=20",
    "census answers of 20 states": "files acs_20states n=100000 d=8 k=10",
    "positions of taxis": "files cabs_sf n=467911 d=2 k=10",
    "breast cancer": "real breast_cancer eps=1",
    "handwritten digits": "real digits eps=1",
}


def test_the_table_of_results_is_that_of_the_benchmark():
    with open(ROOT / "doc/benchmarks/kmeans.csv", newline="", encoding="utf-8") as file:
        known = {(row["cell"], row["method"]): row for row in csv.DictReader(file)}
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.*?) \| [\d, x]+ \| \*\*(.*?)\*\* \| (.*?) \| (.*?) \|$", text, re.M)
    assert [name for name, *_ in rows] == list(CELLS)
    for name, *shown in rows:
        for method, number in zip(
            ("DPKMeans", "sphere packing + Lloyd", "diffprivlib"), shown, strict=True
        ):
            entry = known[CELLS[name], method]
            decimals = len(number.partition(".")[2])
            assert round(float(entry["ratio"]), decimals) == float(number), (name, method)
            assert 5 <= int(entry["fits"]) <= 100


def test_the_share_of_right_guesses_is_that_of_the_plan(page):
    told = DPKMeans(4, epsilon=1.0).privacy_plan(5).report().told
    assert "at most 54.8 % of the time" in told
    assert "at most 54.8 % of the time" in " ".join(page[1].replace("\n>", "\n").split())
