"""The site: its API page lists every public name, and the tools that build it do what they say."""

import importlib
import pkgutil
import re
import sys
from pathlib import Path

import pytest

import sklearn_dp

ROOT = Path(__file__).resolve().parents[1]
DOC = ROOT / "doc"
TABLE = re.compile(r"\.\. currentmodule:: (\S+)\n\.\. autosummary::\n.*\n\n((?: {3}[\w.]+\n)+)")
# What has no page: a list that fills as mutants are made, and a command line.
WITHOUT_PAGE = {("sklearn_dp.audit", "MUTANTS"), ("sklearn_dp.ledger", "main")}


@pytest.fixture
def tool(monkeypatch):
    monkeypatch.syspath_prepend(str(DOC / "_ext"))
    yield importlib.import_module
    for name in ("check_links", "site_pages", "site_gallery"):
        sys.modules.pop(name, None)


def listed(text):
    """(module, name) of each line of the tables of an API page."""
    found = [f"{module}.{name}" for module, names in TABLE.findall(text) for name in names.split()]
    return [tuple(name.rsplit(".", 1)) for name in found]


def public():
    """The public names, each in the module below the top that offers it, if there is one."""
    modules = [info.name for info in pkgutil.iter_modules(sklearn_dp.__path__, "sklearn_dp.")]
    found = set()
    for module in modules:
        if not module.removeprefix("sklearn_dp.").startswith("_"):
            names = getattr(importlib.import_module(module), "__all__", [])
            found |= {(module, name) for name in names}
    below = {name for _, name in found}
    return found | {("sklearn_dp", name) for name in sklearn_dp.__all__ if name not in below}


def test_every_public_name_has_a_page():
    names = listed((DOC / "api.md").read_text(encoding="utf-8"))
    assert len(names) == len(set(names)) >= 80
    assert set(names) == public() - WITHOUT_PAGE


def test_the_tables_are_read_as_sphinx_reads_them():
    head = "```{eval-rst}\n.. currentmodule:: a.b\n.. autosummary::\n   :toctree: x\n\n"
    text = f"{head}   C\n   c.d\n```"
    assert listed(text) == [("a.b", "C"), ("a.b.c", "d")]


# -- links -----------------------------------------------------------------------------------------

GOOD = '<p id="top"><a href="b.html#here"></a><a href="#top"></a><a href="https://x.org/y"></a></p>'


@pytest.mark.parametrize(
    ("link", "is_dead"),
    [("b.html", False), ("b.html#here", False), ("b.html?x=1", False), ("mailto:a@b.c", False),
     ("c.html", True), ("b.html#there", True), ("#there", True), ("picture.png", True)],
)  # fmt: skip
def test_a_dead_link_is_found(tmp_path, tool, link, is_dead):
    (tmp_path / "a.html").write_text(f'{GOOD}<a href="{link}"></a>', encoding="utf-8")
    (tmp_path / "b.html").write_text('<h1 id="here"></h1>', encoding="utf-8")
    check_links = tool("check_links")
    dead, followed = check_links.dead_links(tmp_path)
    assert dead == ([("a.html", link)] if is_dead else [])
    assert followed >= 2
    assert check_links.main(tmp_path) == is_dead


def test_a_site_without_pages_is_no_success(tmp_path, tool):
    assert tool("check_links").main(tmp_path) == 1


# -- pages of the top folder -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "source", "page", "expected"),
    [
        ("[a](doc/api.md#x)", "README.md", "doc/project/changelog.md", "[a](../api.md#x)"),
        ("[a](SECURITY.md)", "CONTRIBUTING.md", "doc/project/contributing.md", "[a](security.md)"),
        ("[a](Makefile)", "CONTRIBUTING.md", "doc/project/contributing.md", "a"),
        ("[a](../SECURITY.md)", "doc/x.md", "doc/x.md", "[a](project/security.md)"),
        ("[a](../examples/x.py)", "doc/x.md", "doc/x.md", "a"),
        ("[a](images/x.png)", "doc/x.md", "doc/x.md", "[a](images/x.png)"),
        ("[a](https://x.org)", "doc/x.md", "doc/x.md", "[a](https://x.org)"),
        ("[a](#x)", "doc/x.md", "doc/x.md", "[a](#x)"),
    ],
)
def test_links_to_files_outside_of_the_site(tool, text, source, page, expected):
    assert tool("site_pages").retarget(text, source, page) == expected


# -- links to the API ------------------------------------------------------------------------------

NAMES = {"DPKMeans": "a.DPKMeans", "elbow": "b.elbow"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a `DPKMeans` b", "a {py:obj}`DPKMeans <a.DPKMeans>` b"),
        ("`DPKMeans(4, rho=1)`", "{py:obj}`DPKMeans(4, rho=1) <a.DPKMeans>`"),
        ("`DPKMeans.from_sklearn`", "{py:obj}`DPKMeans.from_sklearn <a.DPKMeans>`"),
        ("`DPKMeans` and `DPKMeans`", "{py:obj}`DPKMeans <a.DPKMeans>` and `DPKMeans`"),
        ("`DPKMeans`\n\n## B\n\n`DPKMeans`", "{0}\n\n## B\n\n{0}"),
        ("**`elbow`**, `DPKMean`", "**{py:obj}`elbow <b.elbow>`**, `DPKMean`"),
        *((same, same) for same in (
            "# A `DPKMeans`", "```python\n`DPKMeans`\n```", "\n\n    `DPKMeans`\n", "``DPKMeans``",
            "[`DPKMeans`](x.md)", "{func}`DPKMeans`", "`elbows`", "`elbow_`", "`elbow + 1`")),
    ],
)  # fmt: skip
def test_inline_code_becomes_a_link(tool, text, expected):
    known = expected.format("{py:obj}`DPKMeans <a.DPKMeans>`") if "{0}" in expected else expected
    assert tool("site_pages").link_names(text, NAMES) == known


def test_every_public_name_on_a_guide_page_has_a_link(tool):
    pages = tool("site_pages")
    names = pages.public_names((DOC / "api.md").read_text(encoding="utf-8"))
    assert set(names) == {name for _, name in listed((DOC / "api.md").read_text(encoding="utf-8"))}
    n_links = 0
    for path in DOC.glob("*.md"):
        text = path.read_text(encoding="utf-8")
        linked = re.findall(r"\{py:obj\}`[^`]* <([\w.]+)>`", pages.link_names(text, names))
        without_blocks = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
        prose = re.sub(r"^#.*$|\[[^\]]*\]\([^)]*\)|\n\n(    .*\n)+", "", without_blocks, flags=re.M)
        mentioned = set(re.findall(r"(?<![`}])`(\w+)(?:\(.*?\))?`(?!`)", prose)) & set(names)
        assert {names[name] for name in mentioned} <= set(linked), path.name
        n_links += len(linked)
    assert n_links > 150


def test_the_gallery_runs_the_quick_version(tool, monkeypatch):
    gallery = tool("site_gallery")
    monkeypatch.delenv("SKLEARN_DP_GALLERY", raising=False)
    assert "--quick" in gallery.arguments({}, {"src_file": "plot_a.py"})
    monkeypatch.setenv("SKLEARN_DP_GALLERY", "full")
    assert "--quick" not in gallery.arguments({}, {"src_file": "plot_a.py"})


def test_the_gallery_begins_with_k_means_and_says_what_did_not_run(tool):
    gallery = tool("site_gallery")
    names = {path.name: path for path in (ROOT / "examples").glob("*.py")}
    shown = [name for name in names if name not in ("_common.py", "run_demo.py")]
    in_order = sorted(shown, key=gallery.KMeansFirst("examples"))
    assert in_order[0] == "plot_private_palette.py"
    assert set(gallery.FIRST) <= {Path(name).stem for name in in_order}
    for name in shown:
        says_so = "did not run when this site was built" in names[name].read_text("utf-8")
        assert says_so == (not name.startswith("plot_"))
    assert [name.startswith("plot_") for name in in_order[-3:]] == [False] * 3
