"""The page that a privacy officer files: one document of a fit or a ledger, and the same as JSON.

It is made of reports and ledgers alone, which hold nothing but what is public or released. The JSON
file beside it says the same.
"""

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
from ._html import cell, columns_of, document, facts, table

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
    content = _content_of_ledger(state, where, told)
    return OfficerPage("Privacy ledger", told, sections, content)


def _content_of_ledger(state: Any, where: str, told: str) -> dict[str, Any]:
    """Return the content of the JSON file of a ledger."""
    terms = state.terms
    return {
        "format": FORMAT,
        "subject": {"Ledger": where, "Identity": state.identity},
        "software": _made(),
        "total": {
            name: _plain(getattr(terms.budget, name)) for name in ("epsilon", "delta", "rho")
        },
        "unit": terms.unit,
        "relation": terms.relation,
        "composition": terms.composition,
        "spent": {name: _plain(value) for name, value in state.spent.items()},
        "remaining": {name: _plain(value) for name, value in state.remaining.items()},
        "head": state.head,
        "told": told,
        "charges": [
            {name: _plain(getattr(charge, name)) for name in _CHARGE} for charge in state.charges
        ],
    }


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
