"""What the build adds to the pages: those of the top folder, and links to them and to the API."""

import os
import re
import zlib
from functools import cached_property
from pathlib import Path, PurePosixPath

DOC = Path(__file__).resolve().parents[1]
ROOT = DOC.parent
PAGES = {
    "CHANGELOG.md": "project/changelog.md",
    "CODE_OF_CONDUCT.md": "project/code_of_conduct.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "README.md": "index.md",
}
LINK = re.compile(r"\[([^\]\n]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")
# The tables of doc/api.md: a module, and its names.
TABLE = re.compile(r"\.\. currentmodule:: (\S+)\n\.\. autosummary::\n.*\n\n((?: {3}[\w.]+\n)+)")
# Inline code, and before it whatever is left as it is: fenced and indented blocks, headings, links,
# roles, doubled backticks.
CODE = re.compile(
    r"^(?P<fence>```+|~~~+).*?^(?P=fence)$|(?<=\n\n)(?: {4}[^\n]*\n)+|^(?P<heading>#+ [^\n]*)$"
    r"|!?\[[^\]]*\]\([^)]*\)|\{[\w:-]+\}`[^`]*`|``.*?``|(?<!`)`(?P<code>[^`\n]+)`(?!`)",
    re.MULTILINE | re.DOTALL,
)
COMMENT = "<!-- made by the build of the site -->\n\n"
# Of the changelog, which names everything: a search leads to the pages that explain it.
NOT_FOUND = "---\nnosearch: true\n---\n\n"


def retarget(text, source, page):
    """Links of a file at `source`, told as the page at `page` has to: both from the top folder."""

    def link(match):
        words, target, anchor = match[1], match[2], match[3] or ""
        if "://" in target or target.startswith("mailto:"):
            return match[0]
        aim = os.path.normpath(PurePosixPath(source).parent / target).replace(os.sep, "/")
        if aim in PAGES:
            aim = f"doc/{PAGES[aim]}"
        elif not aim.startswith("doc/"):
            return words  # a file of the repository that has no page
        return f"[{words}]({os.path.relpath(aim, Path(page).parent).replace(os.sep, '/')}{anchor})"

    return LINK.sub(link, text)


def write_pages():
    """Copy the pages of the top folder; a page that is the same already keeps its time."""
    for source, page in PAGES.items():
        if not page.startswith("project/"):
            continue
        text = retarget((ROOT / source).read_text(encoding="utf-8"), source, f"doc/{page}")
        text = (NOT_FOUND if source == "CHANGELOG.md" else "") + COMMENT + text
        path = DOC / page
        path.parent.mkdir(exist_ok=True)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def on_source_read(app, docname, source):
    page = f"doc/{docname}.md"
    if not docname.startswith("project/") and (ROOT / page).is_file():
        text = retarget(source[0], page, page)
        names = public_names((DOC / "api.md").read_text(encoding="utf-8"))
        source[0] = link_names(text, names) if docname != "api" else text


def public_names(text):
    """{name: name with its module} of all names that have a page, from the text of doc/api.md."""
    return {
        name.rpartition(".")[2]: f"{module}.{name}"
        for module, names in TABLE.findall(text)
        for name in names.split()
    }


def link_names(text, names):
    """Inline code about a public name becomes a link to its page, once in each section.

    `DPKMeans`, `DPKMeans(n_clusters=8)` and `DPKMeans.from_sklearn` are about `DPKMeans`.
    """
    linked = set()

    def link(match):
        if match["heading"]:
            linked.clear()
        name = re.match(r"\w*", match["code"] or "")[0]
        rest = (match["code"] or "")[len(name) :]
        if name not in names or name in linked or not re.match(r"$|\(|\.[a-z]", rest):
            return match[0]
        linked.add(name)
        words = match["code"].replace("<", r"\<")
        return f"{{py:obj}}`{words} <{names[name]}>`"

    return CODE.sub(link, text)


def write_inventory(path, names, project):
    """The names that pages refer to, for a build that cannot fetch the inventory of a project."""
    lines = [line for line in names.read_text(encoding="utf-8").splitlines() if line]
    body = "".join(f"{line}\n" for line in lines)
    head = f"# Sphinx inventory version 2\n# Project: {project}\n# Version: \n"
    head += "# The remainder of this file is compressed using zlib.\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(head.encode() + zlib.compress(body.encode()))


def skip_member(app, what, name, member, skip, options):
    """Leave out what scikit-learn adds to each estimator: its own pages tell it."""
    inner = getattr(member, "__wrapped__", member)
    module = getattr(inner, "__module__", None) or ""
    foreign = module.split(".")[0] in {"sklearn", "builtins", "enum"} and callable(inner)
    foreign |= not callable(inner) and not isinstance(member, property | cached_property)
    return True if foreign or re.fullmatch(r"set_\w+_request", name) else None


def setup(app):
    write_pages()
    app.connect("source-read", on_source_read)
    app.connect("autodoc-skip-member", skip_member)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
