"""Patterns of English that a native technical writer does not use, and what to write instead.

Read are the pages, the texts of the examples, the docstrings of public names, and every string of
the package that has words; of private docstrings, how they begin. A pattern is here if a machine
can find it without false alarms; the rest is in `CONTRIBUTING.md`. Code is left out of pages: it is
judged by whom it is run.
"""

import ast
import importlib
import inspect
import io
import pkgutil
import re
import tokenize
from pathlib import Path

import pytest

import sklearn_dp

pytestmark = pytest.mark.docs
ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path(sklearn_dp.__file__).parent
# What to avoid, what to write instead, and a sentence that must be found.
PATTERNS = [
    (r"\bbeside\b", "compared with, next to, in addition to", "The cost beside that of KMeans."),
    (r"\banew\b", "again, new", "The noise is drawn anew."),
    (r"\btwins?\b", "counterpart", "Its private twin."),
    (r"\bcounts? as\b", "is treated as, is capped at", "A missing value counts as zero."),
    (r"\bused to be\b", "nothing: it was never released", "It used to be a radius."),
    (r"\b(lost|hidden) in (the )?noise\b", "too noisy to use", "It is lost in noise"),
    (r"\bwould help\b", "an imperative: Use ...", "More rows would help."),
    (r"\bunit ball\b", "ball of radius 1", "Rows in the unit ball."),
    (r"\d %", "95%, without a space", "In 95 % of the fits."),
    (r"\b(are|is|were) seen to\b", "who sees it, or what is true", "Rows are seen to lie there."),
    (r"\b(so|nor|neither) (do|does|is|are|has|have|did|was)\b(?! not)", "... too, not ... either",
     "The mean is noisy, and so is the count."),
    (r"(?<!there )\b(is|are) no (number|row|certificate|category|categories|proof)s?\b", "is not a",
     "Dates are no numbers."),
    (r"\b(page|table|curve|map|plan|days) tells?\b", "who says it, or: contains, lists, measures",
     "This page tells you what it costs."),
    (r"\bcosts? over (that|the)\b", "the cost relative to", "The cost over that of KMeans."),
    (r"\bdoes nothing for\b|\bis worth nothing\b", "say what is missing", "It is worth nothing."),
    (r"\b(goes|comes|is) to nobody\b|\bnobody is with\b", "no rows", "Centers nobody is with."),
]  # fmt: skip
IMPORT = re.compile(r"^[ >]*from (sklearn_dp\.\w+) import ([\w, ]+)$", re.MULTILINE)
BLOCK = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)


def pages():
    """(name, prose, code) of what readers meet outside of the package."""
    for path in [*ROOT.glob("*.md"), *ROOT.glob("doc/*.md"), ROOT / "doc/benchmarks/README.md"]:
        text = path.read_text("utf-8")
        yield str(path.relative_to(ROOT)), re.sub(r"`[^`]*`", "``", BLOCK.sub("", text)), text
    for path in ROOT.glob("examples/**/*.py"):
        text = path.read_text("utf-8")
        kinds = (tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1))
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        words = "\n".join(each.string.lstrip("# ") for each in tokens if each.type in kinds)
        yield str(path.relative_to(ROOT)), words, text


def public_docstrings():
    """(name, docstring) of each public module, class, function, method and property."""
    for found in pkgutil.walk_packages(sklearn_dp.__path__, "sklearn_dp."):
        if any(part[0] == "_" for part in found.name.split(".")):
            continue
        module = importlib.import_module(found.name)
        yield found.name, module.__doc__ or ""
        for name in getattr(module, "__all__", ()):
            whole = getattr(module, name)
            yield f"{found.name}.{name}", inspect.getdoc(whole) or ""
            for part, member in inspect.getmembers(whole) if inspect.isclass(whole) else ():
                ours = "sklearn_dp" in str(getattr(member, "__module__", ""))
                if ours and part[0] != "_":
                    yield f"{found.name}.{name}.{part}", inspect.getdoc(member) or ""


def messages():
    """(place, text) of each string in the package that is more than a word, but no docstring."""
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            text = node.value if isinstance(node, ast.Constant) and id(node) not in alone else None
            if isinstance(text, str) and " " in text.strip():
                yield f"{path.relative_to(PACKAGE)}:{node.lineno}", text


def found_in(text):
    """What a text has of the patterns, in its words."""
    text = " ".join(text.split())
    for pattern, instead, _ in PATTERNS:
        for match in re.finditer(pattern, text, re.IGNORECASE):
            around = text[max(match.start() - 40, 0) : match.end() + 40]
            yield f"... {around} ...: write {instead}"


@pytest.mark.parametrize(("pattern", "instead", "planted"), PATTERNS)
def test_each_pattern_is_found(pattern, instead, planted):
    wrapped = planted.replace(" ", "\n    ")
    assert any(line.endswith(instead) for line in found_in(wrapped)), pattern


def test_pages_and_examples():
    assert [(name, line) for name, prose, _ in pages() for line in found_in(prose)] == []


def test_public_docstrings():
    docstrings = dict(public_docstrings())
    assert len(docstrings) > 200
    assert [(name, line) for name, text in docstrings.items() for line in found_in(text)] == []


def test_messages():
    texts = list(messages())
    assert len(texts) > 1000
    assert [(place, line) for place, text in texts for line in found_in(text)] == []


def beginnings(source):
    """(name, first words) of each docstring in a module, the private ones too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield getattr(node, "name", "module"), (ast.get_docstring(node) or "")[:40]


def test_docstrings_say_what_is_returned():
    """Not how it differs from a neighbor, or what it belongs to: "Return the weights of rows"."""
    wrong = re.compile(r"(The same|Of|Whether)\b")
    planted = 'def f():\n    """The same for sparse rows."""\n'
    assert any(wrong.match(text) for _, text in beginnings(planted))
    files = [(path, path.read_text("utf-8")) for path in PACKAGE.rglob("*.py")]
    texts = [(path, *each) for path, source in files for each in beginnings(source)]
    assert len(texts) > 3000
    assert [each for each in texts if wrong.match(each[-1])] == []


def wrong_imports(text):
    """Names of the top that are imported from below it."""
    for module, names in IMPORT.findall(text):
        below = {name.strip() for name in names.split(",")} & set(sklearn_dp.__all__)
        yield from (f"{name} from {module}" for name in below)


def test_top_names_are_imported_from_the_top():
    assert [*wrong_imports("    >>> from sklearn_dp.cluster import DPKMeans, int_point")] != []
    texts = [(name, text) for name, _, text in pages()] + [*public_docstrings()]
    assert [(name, each) for name, text in texts for each in wrong_imports(text)] == []
