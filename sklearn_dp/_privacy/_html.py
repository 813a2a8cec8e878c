"""The displays of plans, reports and ledgers in notebooks.

A sentence, a bar of where the budget goes, a line for each kind of release that unfolds to its
numbers. The look is that of scikit-learn's displays: its names of colors, orange for what has not
been fitted and blue for what has, on light and on dark pages. No script, no picture, no address:
what is shown is all in the text, and every word that is not written here is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from ._guarantee_text import in_plain_words
from ._parallel_composition import maximum_cost

# Of Okabe and Ito, told apart with any color vision; names and shares stand beside them in words.
_COLORS = (
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#999999",
)  # fmt: skip

_COLUMNS = (
    "release", "mechanism", "sensitivity", "sigma", "noise / signal", "rho", "cap", "delta",
    "path", "part",
)  # fmt: skip

_DARK = """{--sk-dp-alarm:#ff8a80;--sklearn-color-text:#f2f2f2;--sklearn-color-text-muted:#a6a6a6;
--sklearn-color-line:#6b6b6b;--sklearn-color-border-box:#8a8a8a;
--sklearn-color-unfitted-level-0:#221a10;--sklearn-color-unfitted-level-1:#3a2c1b;
--sklearn-color-fitted-level-0:#101a24;--sklearn-color-fitted-level-1:#1b2d40}"""
_LIGHT = """{--sk-dp-alarm:#b00020;--sklearn-color-text:#000;--sklearn-color-text-muted:#595959;
--sklearn-color-line:gray;--sklearn-color-border-box:#666;
--sklearn-color-unfitted-level-0:#fff5e6;--sklearn-color-unfitted-level-1:#f6e4d2;
--sklearn-color-fitted-level-0:#f0f8ff;--sklearn-color-fitted-level-1:#d4ebff}"""

# What the reader's system asks for, unless the page says what it is: Sphinx, Jupyter, VS Code.
_STYLE = (
    f"<style>.sk-dp{_LIGHT}@media (prefers-color-scheme:dark){{.sk-dp{_DARK}}}"
    + f':is([data-theme="light"],[data-jp-theme-light="true"],.vscode-light) .sk-dp{_LIGHT}'
    + f':is([data-theme="dark"],[data-jp-theme-light="false"],.vscode-dark) .sk-dp{_DARK}'
    + """
.sk-dp{--sk-dp-back:var(--sklearn-color-unfitted-level-0);
--sk-dp-head:var(--sklearn-color-unfitted-level-1);
box-sizing:border-box;max-width:56em;padding:.7em .9em;line-height:1.45;
color:var(--sklearn-color-text);background:var(--sk-dp-back);
border:1px dotted var(--sklearn-color-border-box);border-radius:.25em}
.sk-dp.fitted{--sk-dp-back:var(--sklearn-color-fitted-level-0);
--sk-dp-head:var(--sklearn-color-fitted-level-1)}
.sk-dp p{margin:0 0 .6em;color:inherit}
.sk-dp p.sk-dp-note{margin:.5em 0 0;font-size:.9em;color:var(--sklearn-color-text-muted)}
.sk-dp p.sk-dp-bad{color:var(--sk-dp-alarm)}
.sk-dp-bar{display:flex;height:1em;margin:0 0 .25em;border-radius:.25em;overflow:hidden;
border:1px solid var(--sklearn-color-line)}
.sk-dp-bar span{min-width:1px}
.sk-dp-key{display:inline-block;width:.8em;height:.8em;margin-right:.5em;border-radius:.15em;
border:1px solid var(--sklearn-color-line)}
.sk-dp summary,.sk-dp-line{position:relative;padding-right:4.5em!important}
.sk-dp-share{position:absolute;right:.3em;top:.12em;font-variant-numeric:tabular-nums}
.sk-dp details{margin:0;padding:0;border:0;background:none;box-shadow:none}
.sk-dp summary{cursor:pointer;padding:.12em .3em;border-radius:.25em;font-weight:normal}
.sk-dp summary:hover{background:var(--sk-dp-head)}
.sk-dp-line{padding:.12em .3em .12em 1.35em}
.sk-dp-scroll{overflow-x:auto;margin:.2em 0 .6em 1.35em}
.sk-dp-inner{margin-left:2.65em}
.sk-dp b{font-weight:600}
.sk-dp table{border-collapse:collapse;margin:0;font-size:.85em;color:inherit;background:none}
.sk-dp th,.sk-dp td{padding:.15em .6em;text-align:left;white-space:nowrap;color:inherit;
background:none;border:0;border-bottom:1px solid var(--sk-dp-head)}
.sk-dp th{background:var(--sk-dp-head)}
</style>"""
)


def cell(value: object) -> str:
    """A value with four digits, which is enough to read; the frame holds all of them.

    >>> cell(0.123456), cell("sum")
    ('0.1235', 'sum')
    """
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def columns_of(releases: Sequence[Mapping[str, Any]]) -> list[str]:
    """The columns that say something: a path that is "all" everywhere does not."""
    names = {name for row in releases for name in row}
    if all(row.get("path", "all") == "all" for row in releases):
        names.discard("path")
    return [name for name in _COLUMNS if name in names]


def framed(content: str, fitted: bool = True) -> str:
    """A box in the look of scikit-learn's, on light and dark pages. `content` is HTML, escaped
    where it has to be. Blue if `fitted`, otherwise orange."""
    return f'{_STYLE}<div class="sk-dp{" fitted" * fitted}">{content}</div>'


_PAGE = """<style>body{margin:0;background:#fff}
.sk-dp.sk-dp-page{max-width:62em;margin:0 auto;padding:1.2em;border:0;
font-family:system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;background:none}
.sk-dp-page h1{font-size:1.5em;margin:.2em 0 .6em}
.sk-dp-page h2{font-size:1.1em;margin:1.4em 0 .4em;
border-bottom:1px solid var(--sklearn-color-line)}
.sk-dp-page p{overflow-wrap:anywhere}
.sk-dp-page .sk-dp-scroll{margin-left:0}
.sk-dp-page .sk-dp-facts{width:100%}
.sk-dp-page .sk-dp-facts th,.sk-dp-page .sk-dp-facts td{white-space:normal;overflow-wrap:anywhere;
vertical-align:top}
.sk-dp-page .sk-dp-facts th{width:11em;background:none;font-weight:600}
.sk-dp-page tr.sk-dp-first>*{border-top:2px solid var(--sk-dp-head)}
.sk-dp-page th[scope=row]{font-weight:normal;background:none;white-space:normal;min-width:7em}
.sk-dp-page td.sk-dp-cell{font-variant-numeric:tabular-nums;background-repeat:no-repeat}
@media (prefers-color-scheme:dark){body{background:#12161c}}
@media (max-width:30em){.sk-dp.sk-dp-page{padding:.8em}.sk-dp-page .sk-dp-facts th{width:7em}}
@media print{body{background:#fff}.sk-dp.sk-dp-page.sk-dp.sk-dp-page{padding:0;max-width:none;"""
_PAGE += (
    f"{_LIGHT[1:-1]}}}"
    + """
.sk-dp-page .sk-dp-scroll{overflow:visible}
.sk-dp-page th,.sk-dp-page td{white-space:normal!important;overflow-wrap:anywhere}
.sk-dp-page tr{break-inside:avoid} .sk-dp-page h2{break-after:avoid}
.sk-dp-page *{print-color-adjust:exact;-webkit-print-color-adjust:exact}}</style>"""
)


def document(heading: str, content: str) -> str:
    """A page of its own, for screens, phones and printers. `content` is HTML, already escaped."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><title>{escape(heading)}</title>{_STYLE}'
        f'{_PAGE}</head><body><main class="sk-dp fitted sk-dp-page"><h1>{escape(heading)}</h1>'
        f"{content}</main></body></html>\n"
    )


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Names and texts, one below the other; the texts wrap."""
    rows = "".join(
        f"<tr><th scope=row>{escape(name)}</th><td>{unbroken(text)}</td></tr>"
        for name, text in pairs
    )
    return f'<table class="sk-dp-facts"><tbody>{rows}</tbody></table>'


def bars_table(head: Iterable[str], rows: Iterable[tuple[str, bool, list[str], Any]]) -> str:
    """A table of figures: a label, whether a new column begins, cells, and their shares or None."""
    heads = "".join(f"<th>{escape(text)}</th>" for text in head)
    body = []
    for label, first, cells, shares in rows:
        fills = [""] * len(cells)
        if shares is not None:
            fills = [
                ' style="background-image:linear-gradient(var(--sk-dp-head),var(--sk-dp-head));'
                f'background-size:{100 * share:.1f}% 100%"'
                for share in shares
            ]
        inner = "".join(
            f'<td class="sk-dp-cell"{fill}>{escape(text)}</td>'
            for text, fill in zip(cells, fills, strict=True)
        )
        mark = ' class="sk-dp-first"' * first
        body.append(f"<tr{mark}><th scope=row>{escape(label)}</th>{inner}</tr>")
    return (
        f'<div class="sk-dp-scroll"><table><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of texts, which are escaped; wide ones scroll on their own."""
    heads = "".join(f"<th>{escape(text)}</th>" for text in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in rows
    )
    return (
        f'<div class="sk-dp-scroll"><table><thead><tr>{heads}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def unbroken(text: str) -> str:
    """A text, escaped, in which no line begins with a percent sign."""
    return escape(text).replace(" %", "&nbsp;%")


def paths_of(row: Mapping[str, Any]) -> list[str]:
    """The courses of a fit that a line is about; none: all of them."""
    path = row.get("path", "all")
    return [] if path == "all" else path.split(" | ")


def cost_of(rows: Sequence[Mapping[str, Any]]) -> float:
    """rho of releases of one name; about disjoint parts of the units, of their dearest chain.
    Without a part, a line is about all units."""
    return float(
        maximum_cost(
            (tuple(row["part"].split("/")) if "part" in row else (), row["rho"]) for row in rows
        )
    )


def times(count: int, what: str) -> str:
    return f", {count} {what}" if count > 1 else ""


def per_cent(share: float) -> str:
    """A share in words.

    >>> [per_cent(share) for share in (0.5, 0.034, 0.0001, 0.0)]
    ['50%', '3.4%', '< 0.1%', '0%']
    """
    if share <= 0:
        return "0%"
    return f"{100 * share:.{0 if share >= 0.0995 else 1}f}%" if share >= 0.001 else "< 0.1%"


def bar(shares: Mapping[str, float]) -> str:
    """One bar with a piece for each share, and what is left of the whole. Shares of disjoint parts
    of the units may add up to more than the whole: then all shrink."""
    whole = max(1.0, sum(shares.values()))
    pieces = [
        f'<span style="width:{100 * share / whole:.3f}%;background:{_fill(i)}" '
        f'title="{escape(in_plain_words(name))}: {per_cent(share)}"></span>'
        for i, (name, share) in enumerate(shares.items())
        if share > 0
    ]
    return f'<div class="sk-dp-bar">{"".join(pieces)}</div>'


def lines_of(
    lines: Sequence[tuple[str, float, str]], left: float | None, words_of_left: str = "not spent"
) -> str:
    """A line for each piece of the bar, which unfolds to a table; and one for what is left. Lines
    are words, a share, and the table as HTML. `left` is None where there is no whole."""
    texts = [
        line(words, share, content, _key(_fill(i)))
        for i, (words, share, content) in enumerate(lines)
    ]
    if left is not None:
        texts.append(
            f'<div class="sk-dp-line">{_key("transparent")}{words_of_left}'
            f'<span class="sk-dp-share">{per_cent(left)}</span></div>'
        )
    return "".join(texts)


def line(words: str, share: float, content: str, key: str = "") -> str:
    return (
        f'<details><summary>{key}{escape(words)}<span class="sk-dp-share">{per_cent(share)}'
        f"</span></summary>{content}</details>"
    )


def _fill(number: int) -> str:
    """A color, as CSS; once there are more pieces than colors, with stripes.

    >>> _fill(1), _fill(9)[-8:]
    ('#e69f00', ',#e69f00')
    """
    color = _COLORS[number % len(_COLORS)]
    if number < len(_COLORS):
        return color
    return f"repeating-linear-gradient(45deg,#fff8 0 .12em,transparent 0 .4em),{color}"


def _key(color: str) -> str:
    return f'<span class="sk-dp-key" style="background:{color}"></span>'
