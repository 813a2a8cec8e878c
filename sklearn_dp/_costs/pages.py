"""Plans, reports and ledgers for people: in plain words, in notebooks, and as a page to file.

The look is that of scikit-learn's displays, on light and on dark pages. No script, no picture, no
address: what is shown is all in the text, and every word that is not written here is escaped.
"""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .._version import __version__
from .numbers import maximum_cost

_WORDS = {
    "bound": "how far the rows reach",
    "sum and count": "center of all rows, and their number",
    "radius": "size of the data",
    "location": "where the rows are",
    "reach": "size of the data",
    "second moment": "directions that matter",
    "cells": "where rows are dense",
    "ranks": "how the values of the column are spread",
    "cell means": "means of dense places",
    "lloyd distances": "spread of each cluster",
    "lloyd errors": "which clusters to split",
    "lloyd counts": "rows in each cluster",
    "lloyd sums": "moving the centers",
    "quality": "how good the answer is",
    "component radii": "sizes of the components",
    "component counts": "rows in each component",
    "component sums": "means of the components",
    "component moments": "shapes of the components",
}


# What a guarantee protects, by what neighbors do; {} is the unit.
_SECRETS = {
    "add or remove": "whether any one {} was in the data",
    "replace": "whether any one {} was replaced by a different one",
    "add or remove the rows of": "whether the rows of any one {} were in the data",
    "replace the rows of": "whether the rows of any one {} were replaced by different ones",
}


def in_plain_words(name: str) -> str:
    """Return the purpose of a release in words; its own name where there are no better words.

    `name` is that of a plan entry, perhaps with its stage in front. Different names of one stage
    and plan have different words.

    >>> in_plain_words("lloyd sums"), in_plain_words("partition/cells"), in_plain_words("diameter")
    ('moving the centers', 'partition: where rows are dense', 'diameter')
    """
    stage, slash, last = name.rpartition("/")
    return (f"{stage}: " if slash else "") + _WORDS.get(last, last)


def secret_in_words(relation: str, unit: str) -> str:
    """Return what a guarantee protects, as words that follow "guess".

    Units that take part "whatever rows they hold" are clients."""
    if relation.endswith("the rows of"):
        unit = "client"
    return _SECRETS[relation].format("group of rows" if unit == "group" else unit)


def best_guess(
    epsilon: float, delta: float, rho: float = math.inf, gaussian: bool = False
) -> float:
    """How often the best guess between two neighbors is right, if both were equally likely: an
    upper bound, between 1/2 and 1. What is released is (epsilon, delta)-DP; also rho-zCDP, but for
    failures of probability at most `delta`, and if `gaussian`, but for these even sqrt(2 rho)-GDP.
    """
    # A guess errs with probability a on one neighbor and b on the other, and is right in
    # 1 - (a + b) / 2 of all cases. (epsilon, delta)-DP says that 1 - a <= e^epsilon b + delta and
    # 1 - b <= e^epsilon a + delta; their sum is (a + b) (1 + e^epsilon) >= 2 (1 - delta).
    by_epsilon = 1 - (1 - delta) / (1 + math.exp(min(epsilon, 700.0)))
    # a + b is also 1 less the total variation distance of the two laws. Without failures, it is
    # that of two normal laws sqrt(2 rho) standard deviations apart; of zCDP, whose divergence at
    # the order 1 is at most rho, the bounds are those of Pinsker, and of Bretagnolle and Huber.
    # Failures of probability f replace the part f of both laws, so that they add at most f.
    if gaussian:
        distance = math.erf(math.sqrt(rho) / 2)
    else:
        distance = min(math.sqrt(rho / 2), math.sqrt(-math.expm1(-rho)))
    return min(by_epsilon, (1 + min(1.0, distance + delta)) / 2)


def in_per_cent(guess: float) -> float:
    """A bound of right guesses as it is printed: in percent, rounded up to a tenth."""
    # An upper bound stays one when it is printed; 1e-9 stands for the rounding of the formulas.
    return math.ceil(1000 * (guess + 1e-9)) / 10


def what_can_be_told(secret: str, guess: float, alone: float, can: str = "can") -> str:
    """How often a guess is right, and what epsilon and delta alone say of that: sentences without
    their beginning. `guess` and `alone` are from :func:`best_guess`, with all that is known and
    with epsilon and delta only. `can` is "can", or "could" of a fit that has not been."""
    shown, whatever = in_per_cent(guess), in_per_cent(alone)
    if shown >= 100:
        return (
            f"someone who knows all other rows may be able to guess {secret} and be right nearly "
            "every time: the guarantee is too weak to prevent it."
        )
    words = (
        f"someone who knows all other rows {can} guess {secret}, but would be right at most "
        f"{shown:.1f}% of the time, if both cases were equally likely beforehand (a coin toss is "
        "right 50% of the time)."
    )
    if shown == whatever:
        return f"{words} This limit follows from epsilon and delta alone."
    if whatever >= 100:
        return f"{words} This limit follows from the exact distribution of the noise."
    return (
        f"{words} This limit follows from the exact distribution of the noise; epsilon and delta "
        f"alone would allow {whatever:.1f}%."
    )


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
    """A box in the look of scikit-learn's, of escaped HTML; blue if `fitted`, otherwise orange."""
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
    """rho of releases of one name; about disjoint parts of the units, of their dearest chain."""
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
    """One bar with a piece for each share, which shrink if there is more than the whole."""
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


FORMAT = "sklearn-dp privacy report, version 1"
_UNIT = {
    "row": "one row of the table. A person with several rows is not protected as a whole: each row "
    "is protected by itself",
    "group": "all rows of one group, such as a person, as the data set states them",
}
_NOISE = {
    "system": "from the operating system's entropy; nobody can reproduce it",
    "seeded": "reproducible from random_state: no protection against anyone who knows it",
    "altered": "altered by an audit on purpose: no guarantee",
    "forced": "set by an audit on purpose: no guarantee",
    "planned": "none was drawn: this is a plan, and no data were read",
}
_LIMITS = (
    "Parameters, such as bounds, schemas, names of columns, numbers of clusters: they are public.",
    "What is true of people in general, whether or not one of them was in the data.",
    "Running times, the memory of the process, and what other programs show of the same data.",
)
_ALONE = (
    "Other fits on the same data, unless they were charged to the same ledger: their costs add to "
    "this one."
)
_EVIDENCE = (
    ("Proofs", "doc/proofs, one page per estimator: each release, its sensitivity and its cost"),
    ("Machine-checked", "proofs/ (Coq): the path from a row to a published number; make prove"),
    (
        "Audits",
        "doc/auditors.md: sklearn_dp.audit.check_dp_estimator(...) repeats them; make audit",
    ),
    ("Standards", "doc/standards.md: NIST SP 800-226 and ISO/IEC 27559, demand by demand"),
    ("Limits in full", "SECURITY.md"),
)
_UNCHARGED = "none: this was charged to no ledger"
_OF_FIT = {"sensitivity": "a whole fit", "sigma": "of its releases"}
_CHARGE = ("time", "label", "epsilon", "delta", "rho", "delta_failure", "key", "value")
_VERIFY = "sklearn-dp ledger verify FILE --head {}; or doc/verify_ledger.py, without this package"


@dataclass(frozen=True)
class Section:
    """A heading, facts by name, texts, and a table (names of columns, rows of texts)."""

    heading: str
    facts: tuple[tuple[str, str], ...] = ()
    texts: tuple[str, ...] = ()
    table: tuple[Sequence[str], Sequence[Sequence[str]]] | None = None

    def html(self) -> str:
        """As a part of a page; everything is escaped."""
        listed = "".join(f"<li>{escape(text)}</li>" for text in self.texts)
        return (
            f"<section><h2>{escape(self.heading)}</h2>"
            + (facts(self.facts) if self.facts else "")
            + (f"<ul>{listed}</ul>" if listed else "")
            + (table(*self.table) if self.table else "")
            + "</section>"
        )


@dataclass(frozen=True)
class OfficerPage:
    """A document of what a fit or a ledger has released, at what cost, and what it does not cover.

    Attributes
    ----------
    title : str
        What it is about.
    summary : str
        The guarantee in a sentence.
    sections : tuple of Section
        What the page says.
    content : dict
        The same for programs: what the JSON file holds.
    """

    title: str
    summary: str
    sections: tuple[Section, ...]
    content: dict[str, Any] = field(repr=False)

    def html(self) -> str:
        """The page: no script, nothing from other places."""
        signature = facts((name, "") for name in ("Reviewed by", "Date", "Decision"))
        parts = "".join(section.html() for section in self.sections)
        return document(
            self.title,
            f"<p><b>{escape(self.summary)}</b></p>{parts}"
            f"<section><h2>Review</h2>{signature}</section>",
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page, and the same as JSON beside it.

        Parameters
        ----------
        path : str or path
            Of the page, such as ``"privacy.html"``; the JSON file is then ``"privacy.json"``. Files
            of these names are replaced.
        """
        path = Path(path)
        if path.suffix == ".json":
            raise ValueError("path must be that of the page, such as 'privacy.html'.")
        path.write_text(self.html(), encoding="utf-8")
        words = json.dumps(self.content, indent=2, allow_nan=False, ensure_ascii=False)
        path.with_suffix(".json").write_text(words + "\n", encoding="utf-8")

    def _repr_html_(self) -> str:
        return self.html()


def page_of_report(report: Any, subject: Mapping[str, str]) -> OfficerPage:
    """The page of a fit, of several, or of a plan; `subject` says of what, by name."""
    spent = [
        (name, f"{cell(cost)} of {cell(total)} in all") for name, cost, total in report.ledger
    ] or [("epsilon", cell(report.epsilon)), ("delta", cell(report.delta))]
    head = report.paid_by[1] if report.paid_by else ""
    used = f"rho {cell(report.spent_rho)} of {cell(report.rho)}; what is left is not given back"
    budget = [
        *((f"Charged: {name}", text) for name, text in spent),
        ("Used by releases", used),
        ("Paid by", f"the units of {report.payers} only" if report.payers else "all units"),
        ("Ledger", "charged before the data were read" if head else report.charged or _UNCHARGED),
        *([("Head after the charge", head), ("Verify", _VERIFY.format(head))] if head else []),
    ]
    guarantee = [
        ("In numbers", report.headline),
        ("Protected unit", _UNIT[report.unit]),
        ("Neighboring data", report.neighbors),
        ("Noise", _NOISE[report.noise]),
        ("Composition", report.accounting or "nothing was released"),
    ]
    sections = (
        Section("What was computed", (*subject.items(), *_made().items())),
        Section("The guarantee", tuple(guarantee)),
        Section("Budget", tuple(budget)),
        *([Section("What the guarantee assumes", texts=report.warnings)] * bool(report.warnings)),
        Section("What is not protected", texts=(*_LIMITS, *_of_unit(report))),
        Section("Evidence", _EVIDENCE),
        _releases("Releases", report.releases),
        *(
            [_releases("Releases of whole fits, paid for above", report.inside)]
            * bool(report.inside)
        ),
    )
    content = {
        "format": FORMAT,
        "subject": dict(subject),
        "software": _made(),
        "guarantee": {
            name: _plain(getattr(report, name))
            for name in (
                *("epsilon", "delta", "rho", "spent_rho", "accounting", "unit", "relation"),
                *("noise", "payers", "federated", "notes", "problems", "told", "headline"),
            )
        },
        "ledger": {
            "head": head,
            "charged": report.charged,
            "costs": [
                dict(zip(("name", "charged", "total"), map(_plain, each), strict=True))
                for each in report.ledger
            ],
        },
        "assumptions": list(report.warnings),
        "not_protected": [*_LIMITS, *_of_unit(report)],
        **{
            key: [{name: _plain(value) for name, value in row.items()} for row in rows]
            for key, rows in (("releases", report.releases), ("releases_inside", report.inside))
        },
    }
    title = f"Privacy report: {next(iter(subject.values()), 'a fit')}"
    return OfficerPage(title, report.told, sections, content)


def page_of_ledger(state: Any, where: str, told: str) -> OfficerPage:
    """The page of a ledger in a state; `told` is its guarantee in a sentence."""
    terms = state.terms
    rows = [[cell(getattr(charge, name)) for name in _CHARGE] for charge in state.charges]
    costs = [
        (f"{name}: spent, left, total", ", ".join(map(cell, (spent, remaining, cap))))
        for (name, spent), remaining, cap in zip(
            state.spent.items(), state.remaining.values(), terms.caps, strict=True
        )
    ]
    keys = [
        (
            f"{key}",
            "; ".join(
                f"{value}: spent {_amounts(spent)}, left {_amounts(remaining)}"
                for value, spent, remaining in state.values_of(key)
            ),
        )
        for key in state.keys
    ]
    sections = (
        Section(
            "The ledger",
            (
                ("Where", where),
                ("Identity", state.identity),
                ("Total", str(terms.budget)),
                ("Protected unit", _UNIT[terms.unit]),
                ("Neighboring data", f"{terms.relation} one {terms.unit}"),
                ("Composition", terms.composition),
                *_made().items(),
            ),
        ),
        Section("Budget", tuple(costs)),
        *([Section("Keys: each unit has at most one value", tuple(keys))] if keys else []),
        Section(
            "Integrity",
            (("Head", state.head), ("Verify", _VERIFY.format(state.head))),
            ("Publish the head: entries that are changed or removed later are then found.",),
        ),
        Section(
            "What is not protected",
            texts=(
                "Fits with a random_state, against anyone who knows it.",
                "Fits on the same data that were not charged to this ledger.",
                *_LIMITS,
            ),
        ),
        Section("Evidence", _EVIDENCE),
        Section(f"Charges ({len(rows)})", table=(_CHARGE, rows) if rows else None),
    )
    content = {
        "format": FORMAT,
        "subject": {"Ledger": where, "Identity": state.identity},
        "software": _made(),
        "told": told,
        **state.content(),
    }
    return OfficerPage("Privacy ledger", told, sections, content)


def _releases(heading: str, rows: Sequence[Mapping[str, Any]]) -> Section:
    """A table with a line for each release."""
    names = columns_of(rows)
    lines = [[_cell(row, name) for name in names] for row in rows]
    return Section(f"{heading} ({len(rows)})", table=(names, lines) if rows else None)


def _cell(row: Mapping[str, Any], name: str) -> str:
    """A value of a release; a whole fit inside has no sensitivity and no noise of its own."""
    if row.get("sensitivity") == row.get("sigma") == 0.0 and name in _OF_FIT:
        return _OF_FIT[name]
    return cell(row.get(name, "all"))


def _of_unit(report: Any) -> Iterable[str]:
    """Return the caveats about the unit and the payment."""
    if report.unit == "row":
        yield "A person with several rows, as a whole: pass groups to protect persons."
    if report.paid_by is None:
        yield _ALONE


def _amounts(costs: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {cell(cost)}" for name, cost in costs.items())


def _made() -> dict[str, str]:
    """With what, and when, the page was made."""
    names = ("scikit-learn", "numpy")
    others = ", ".join(f"{name} {version(name)}" for name in names)
    return {
        "Software": f"sklearn-dp {__version__}, {others}, Python {platform.python_version()}",
        "Page written": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _plain(value: Any) -> Any:
    """Return a value that JSON can hold: an infinite number is a text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return list(value) if isinstance(value, tuple) else value
