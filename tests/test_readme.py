"""What README.md and the pages of doc/ tell people to type works as printed.

The blocks of a page run in order, in one namespace and an empty folder: Python statement by
statement, consoles as commands of this package. A comment `# SomeError` at the end of a statement
is a claim that it raises this error; nothing else may raise. A comment that begins as a value does,
behind a `print`, is a claim that it prints this value. Code that cannot run here stands in
`NOT_RUN`, with the reason.

Readers get noise of the system. Here the bits of the system are replaced by a fixed stream, another
one for each page: then what a block says, that it warns of nothing, and that it prints what it is
said to print, cannot fail by chance. A seed is honest here: what is asked is whether the page is
right, and not whether the noise is. Nor was it chosen: under each of 40 other streams, no block of
the pages about sharp edges, federated fits, Flower, many rows, a study and the first fit failed.
"""

import ast
import contextlib
import hashlib
import io
import itertools
import logging
import re
import shlex
import textwrap
from pathlib import Path

import numpy as np
import pytest
from sklearn.cluster import KMeans

from sklearn_dp import DPKMeans, ledger
from sklearn_dp.__main__ import main
from sklearn_dp._privacy import _noise, _session

pytestmark = pytest.mark.docs
ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"^```(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^ *(```|~~~)[^`\n]*$", re.MULTILINE)
INDENTED = re.compile(r"(?<=\n\n)(?: {4}.*\n(?:\n(?= {4}))?)+")
PATHS = [ROOT / "README.md", *sorted(ROOT.glob("doc/**/*.md"))]
MADE = (
    "doc/auto_examples/",
    "doc/generated/",
    "doc/project/",
    "doc/proofs/estimators/",
    "doc/proofs/tests/",
)
DOCS = [name for path in PATHS if not (name := path.relative_to(ROOT).as_posix()).startswith(MADE)]
LEDGER, COMMAND = "$ python -m sklearn_dp.ledger ", "$ sklearn-dp "
# Commands that other tests run, with fewer fits.
ELSEWHERE = ("$ python -m benchmarks.certify ",)
# Blocks without code: directives of the site, and what programs print.
NO_CODE = ("{eval-rst}", "{toctree}", "{admonition}", "text")
# Pages with code that does not run here, by the first line of the block.
FLOWER = "what examples/federated_flower.py does; tests/federated/test_flower.py runs it"
PARTS = "tests/_partitions runs it where the library is installed"
NOT_RUN = {
    ("doc/many_machines.md", "import dask.dataframe as dd"): PARTS,
    ("doc/many_machines.md", "from pyspark.sql import SparkSession"): PARTS,
    ("doc/many_machines.md", "import ray"): PARTS,
    ("doc/flower.md", "[project]"): FLOWER,
    ("doc/flower.md", "[superlink.here]"): FLOWER,
    ("doc/flower.md", "# task.py: the client"): FLOWER,
    ("doc/flower.md", "# task.py: the server"): FLOWER,
    ("doc/flower.md", "$ pip install \"sklearn-dp[federated]\""): FLOWER,
    ("doc/flower.md", "$ flower-superlink --insecure"): FLOWER,
    ("doc/flower.md", "$ kill -9 PID"): FLOWER,
    ("doc/examples.md", "pipeline.set_params(clusters=DPKMeans(n_clusters=10, epsilon=4.0, "
     "bounds=(0, 1)))"): "a line of examples/plot_digits_pipeline.py, which test_examples.py runs",
    ("doc/gallery.md", "model = KMeans(n_clusters=3)                                       "
     "# the original"): "what examples/from_scikit_learn does; test_gallery.py runs it",
}  # fmt: skip


def blocks_of(page):
    """(language, source) of all code of a page: fenced, or indented where it is Python."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = [
        (match[1] if match[1] or is_python(match[2]) else "text", match[2])
        for match in BLOCK.finditer(text)
    ]
    assert len(FENCE.findall(text)) == 2 * len(found), "a fence that is no block"
    for match in INDENTED.finditer(BLOCK.sub("", text)):
        source = textwrap.dedent(match[0])
        if is_python(source):
            found.append(("indented", source))
    return found


def is_python(source):
    try:
        return any(not isinstance(node, ast.Expr) or isinstance(node.value, ast.Call)
                   for node in ast.parse(source).body)  # fmt: skip
    except SyntaxError:
        return False


def runs(page, language, source):
    """Whether a block runs; False if it is no code, or in the list."""
    known = (page, source.splitlines()[0]) in NOT_RUN
    if language in NO_CODE or known:
        return False
    return language in ("python", "console")


def statements(source):
    """Each statement of a block, with the name of the error that it is said to raise."""
    lines = source.splitlines()
    for node in ast.parse(source).body:
        claim = re.search(r"#.*?\b([A-Z]\w*Error)\b", lines[node.end_lineno - 1])
        yield ast.Module([node], []), claim and claim[1]


VALUE = re.compile(r"^print\(.*\)  # (-?\d[\d.]*|[\[{(].*[\]})]|True|False)(?=$|[:,; ])")


def run_python(source, namespace):
    for tree, error in statements(source):
        code = compile(tree, "<documentation>", "exec")
        if error is None:
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(code, namespace)
            claim = VALUE.match(source.splitlines()[tree.body[0].end_lineno - 1])
            assert claim is None or out.getvalue().strip() == claim[1], claim[0]
            continue
        with pytest.raises(Exception) as caught:
            exec(code, namespace)
        assert type(caught.value).__name__ == error


def run_console(source):
    for line in source.splitlines():
        if line.startswith(LEDGER):
            assert ledger.main(shlex.split(line.removeprefix(LEDGER))) == 0
        elif line.startswith(COMMAND):
            assert main(shlex.split(line.removeprefix(COMMAND))) == 0
        elif not line.startswith(ELSEWHERE):
            assert not line.startswith("$"), f"a command that is not tested: {line}"


def run_blocks(blocks):
    namespace = {"__name__": "documentation"}
    for language, source in blocks:
        if language == "python":
            run_python(source, namespace)
        else:
            run_console(source)


@pytest.fixture
def same_noise(request, monkeypatch):
    """Bits of the system, replaced by a stream that depends on the test only."""
    counter = itertools.count()

    def fresh_bytes(size):
        name = f"{request.node.name}|{next(counter)}"
        return hashlib.shake_256(name.encode()).digest(size)

    for module in (_noise, _session):
        monkeypatch.setattr(module, "fresh_bytes", fresh_bytes)


@pytest.fixture
def same_logging():
    """A page may turn the log of the package on."""
    log, root = logging.getLogger("sklearn_dp"), logging.getLogger()
    level, handlers = log.level, root.handlers[:]
    yield
    log.setLevel(level)
    root.handlers[:] = handlers


PAGES = [page for page in DOCS if any(runs(page, *block) for block in blocks_of(page))]


@pytest.mark.quick("README.md", "doc/get_started.md", "doc/sharp_edges.md")
@pytest.mark.parametrize("page", PAGES)
@pytest.mark.usefixtures("same_noise", "same_logging")
def test_blocks_run_as_printed(page, tmp_path, monkeypatch, recwarn):
    monkeypatch.chdir(tmp_path)
    run_blocks([block for block in blocks_of(page) if runs(page, *block)])
    assert [str(w.message) for w in recwarn if w.category.__module__.startswith("sklearn_dp")] == []


def test_all_code_of_the_pages_runs_or_has_a_reason():
    left = {
        (page, source.splitlines()[0])
        for page in DOCS
        for language, source in blocks_of(page)
        if language not in NO_CODE and not runs(page, language, source)
    }
    assert left == set(NOT_RUN)


def test_links_and_pictures_exist():
    for page in DOCS:
        targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", (ROOT / page).read_text(encoding="utf-8"))
        local = [target for target in targets if "://" not in target]
        folder = (ROOT / page).parent
        assert [target for target in local if not (folder / target).exists()] == [], page


def test_the_sentence_about_kmeans_is_true_word_by_word():
    """Names of both constructors, in the order of the page, and what a fit leaves."""
    text = (ROOT / "doc" / "coming_from_scikit_learn.md").read_text(encoding="utf-8")
    both, theirs, ours = re.search(
        r"(`n_clusters`[^.]*?) are parameters of both.*?does not need ([^.]*)\."
        r".*?new parameters are ([^.]*)\. All have\s+defaults",
        text,
        re.DOTALL,
    ).groups()
    words = [set(re.findall(r"`(\w+)`", part)) for part in (both, theirs, ours)]
    old, new = set(KMeans().get_params()), set(DPKMeans().get_params())
    assert words == [old & new, old - new, new - old]
    X = np.random.default_rng(0).normal(size=(100, 2))
    original, private = KMeans(2, n_init=1).fit(X), DPKMeans(2).fit(X)
    assert {n for n in vars(original) if n[-1] == "_" and n[0] != "_"} <= vars(private).keys()
    for name in dir(original):
        if not name.startswith("_") and name not in old:
            assert callable(getattr(original, name)) == callable(getattr(private, name)), name
    for word in old - new:
        with pytest.raises(TypeError, match=word):
            DPKMeans(**{word: getattr(original, word)})


def test_the_share_of_right_guesses_is_that_of_the_plan():
    told = DPKMeans(4, epsilon=1.0).privacy_plan(5).report().told
    share = re.search(r"at most [\d.]+ ?% of the time", told)[0]
    assert share in " ".join(
        (ROOT / "doc" / "get_started.md").read_text("utf-8").replace("\n>", "\n").split()
    )
