"""What README.md and the pages of doc/ tell people to type works as printed.

The blocks of a page run in order, in one namespace and an empty folder: Python statement by
statement, consoles as commands of this package. A comment `# SomeError` at the end of a statement
is a claim that it raises this error; nothing else may raise.
"""

import ast
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from sklearn.cluster import KMeans

from sklearn_dp import DPKMeans, ledger

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PATHS = [ROOT / "README.md", *sorted(ROOT.glob("doc/*.md")), *sorted(ROOT.glob("doc/proofs/*.md"))]
DOCS = [path.relative_to(ROOT).as_posix() for path in PATHS]
PAGES = [page for page in DOCS if BLOCK.search((ROOT / page).read_text(encoding="utf-8"))]
LEDGER = "$ python -m sklearn_dp.ledger "
# Commands that other tests run, with fewer fits.
ELSEWHERE = ("$ python -m sklearn_dp.audit certify ",)


def statements(source):
    """Each statement of a block, with the name of the error that it is said to raise."""
    lines = source.splitlines()
    for node in ast.parse(source).body:
        claim = re.search(r"#.*?\b([A-Z]\w*Error)\b", lines[node.end_lineno - 1])
        yield ast.Module([node], []), claim and claim[1]


def run_python(source, namespace):
    for tree, error in statements(source):
        code = compile(tree, "<documentation>", "exec")
        if error is None:
            exec(code, namespace)
            continue
        with pytest.raises(Exception) as caught:
            exec(code, namespace)
        assert type(caught.value).__name__ == error


def run_console(source):
    for line in source.splitlines():
        if line.startswith(LEDGER):
            assert ledger.main(shlex.split(line.removeprefix(LEDGER))) == 0
        elif not line.startswith(ELSEWHERE):
            assert not line.startswith("$"), f"a command that is not tested: {line}"


def run_page(text):
    namespace = {}
    blocks = BLOCK.findall(text)
    for language, source in blocks:
        if language == "python":
            run_python(source, namespace)
        else:
            run_console(source)
    return len(blocks)


@pytest.mark.parametrize("page", PAGES)
def test_blocks_run_as_printed(page, tmp_path, monkeypatch, recwarn):
    monkeypatch.chdir(tmp_path)
    assert run_page((ROOT / page).read_text(encoding="utf-8")) >= 1
    assert [str(w.message) for w in recwarn if w.category.__module__.startswith("sklearn_dp")] == []


@pytest.mark.parametrize(
    "block",
    ["```python\n1 / 0\n```", "```python\nx = 1  # ValueError\n```", "```python\n1 +\n```",
     "```python\n1 / 0  # ValueError\n```", "```console\n$ rm study.sqlite\n```",
     "```console\n$ python -m sklearn_dp.ledger show missing.sqlite\n```"],
)  # fmt: skip
def test_a_block_that_does_not_work_is_caught(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ArithmeticError, AssertionError, SyntaxError, pytest.fail.Exception)):
        run_page(f"Text.\n\n{block}\n")


@pytest.mark.parametrize("page", DOCS)
def test_links_and_pictures_exist(page):
    folder = (ROOT / page).parent
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", (ROOT / page).read_text(encoding="utf-8"))
    local = [target for target in targets if "://" not in target]
    assert [target for target in local if not (folder / target).exists()] == []


def test_the_sentence_about_kmeans_is_true_word_by_word():
    """Names of both constructors, in the order of the page, and what a fit leaves."""
    text = (ROOT / "doc" / "coming_from_scikit_learn.md").read_text(encoding="utf-8")
    both, theirs, ours = re.search(
        r"(`n_clusters`[^.]*?) are parameters of both.*?does not need ([^:]*):"
        r".*?is new: ([^.]*), all with\s+defaults",
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
