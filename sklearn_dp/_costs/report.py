"""What a fit released and what it cost: a record that nothing changes, and a table for people.

It holds nothing but what is public or released: names and mechanisms of the plan, scales of the
noise, costs. Two operations combine what holds for the same neighbors.

*The worst of two days* (:func:`worst_of`). A unit has rows on one of them, so each cost of the
whole is the larger of the two: see the theorem in :mod:`sklearn_dp._days`, whose proof asks of both
days for one guarantee, and every cost of a day is at most the maximum.

*The sum of all steps* (:func:`total_of`). They read the same rows, each in the knowledge of what
the ones before have released. Epsilons and deltas add up (basic composition). Those whose budgets
were in rho are added up before: step i is (rho_i, f_i)-zCDP with f_i <= delta_i, so they are (sum
rho, sum delta)-zCDP together (:mod:`.ledger_terms`), which is (epsilon, 2 sum delta)-DP.
"""

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from itertools import starmap
from typing import Any, NoReturn, Self

from .accounting import zcdp_epsilon
from .numbers import (
    Payers,
    check_one_value,
    condition_in_words,
    extra,
    in_words,
    maximum_cost,
    sum_up,
)
from .pages import (
    bar,
    best_guess,
    cell,
    columns_of,
    cost_of,
    framed,
    in_plain_words,
    line,
    lines_of,
    page_of_report,
    paths_of,
    secret_in_words,
    table,
    times,
    unbroken,
    what_can_be_told,
)

PaidBy = tuple[str, str, Payers, str]
"""Which ledger was charged, its head after that, the units that paid, and a name of the fit."""
EXACT = "Gaussian DP (exact)"
ONE_STEP = "one (epsilon, delta)-DP step"
ADDED = "epsilons of its parts, added"
_VOID = {
    "altered": "an audit altered the noise of this fit on purpose",
    "forced": "an audit set what this fit released (noise: forced)",
}
"""Sources of noise without any guarantee, and why."""


class _Line(dict[str, Any]):
    """A release in a report: a dict that stays as it is."""

    def _fixed(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("a report cannot be changed")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _fixed

    def __reduce__(self) -> tuple[Any, ...]:
        return _Line, (dict(self),)


@dataclass(frozen=True)
class PrivacyReport:
    """The privacy guarantee of one fit, or of several together, and the releases behind it.

    Attributes
    ----------
    epsilon, delta : float
        The guarantee of the whole fit, as planned and charged; infinity and 1 where there is none.
    rho : float
        The zCDP cost of the plan, which is what was charged.
    spent_rho : float
        What the releases used of it. The rest is lost: a charge is never given back.
    accounting : str
        How rho became epsilon, in words.
    unit : str
        "row" or "group": what is added or removed between neighboring data sets.
    noise : str
        "system" (operating-system entropy), "seeded" (reproducible: no guarantee against those
        who know the seed), "altered" or "forced" (an audit has changed the noise, or set the
        outputs, on purpose: no guarantee at all), or "planned" for a plan that has not run.
    releases : tuple of dict
        One for each release: mechanism, sensitivity, noise scale, cost.
    notes : tuple of str
        What the guarantee assumes.
    relation : str
        What neighboring data sets do with a unit.
    ledger : tuple of (str, float, float)
        Of each cost that the ledger of the fit counts: its name, what was charged for the fit, and
        the total of the ledger. Empty without a ledger.
    payers : str
        Which units the ledger has charged, such as "region = 'north'"; empty for all of them.
    federated : bool
        Whether it is about a fit to clients that keep their rows.
    problems : tuple of str
        Why there is no guarantee, such as steps that have learned from rows without privacy.
    charged : str
        Of several fits that were not charged together: which ledger has paid for each.
    inside : tuple of dict
        One for each release of those fits that are a release each: it was paid for with them.
    in_rho : bool
        Whether the budget was given in rho: such costs add up in zCDP.
    subject : dict
        What the report is about, in words, if :func:`sklearn_dp.privacy_report` made it.
    """

    epsilon: float
    delta: float
    rho: float
    spent_rho: float
    accounting: str
    unit: str
    noise: str
    releases: tuple[dict[str, Any], ...]
    notes: tuple[str, ...] = ()
    relation: str = "add or remove"
    ledger: tuple[tuple[str, float, float], ...] = ()
    payers: str = ""
    federated: bool = False
    problems: tuple[str, ...] = ()
    in_rho: bool = False
    charged: str = ""
    inside: tuple[dict[str, Any], ...] = ()
    # What two equal fits do not share: who paid, and of a stream the report of its first day.
    paid_by: PaidBy | None = field(default=None, compare=False)
    first: Self | None = field(default=None, compare=False)
    subject: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("releases", "inside"):
            object.__setattr__(self, name, tuple(map(_Line, getattr(self, name))))

    @classmethod
    def from_plan(cls, plan: Any, log: Sequence[dict[str, Any]], noise: str) -> Self:
        """Collect what a session noted; without a log, describe the plan.

        Parameters
        ----------
        plan : PrivacyPlan
        log : sequence of dict
            A line for each release; see `PrivacySession._note`.
        noise : {"system", "seeded", "forced"}

        Returns
        -------
        report : PrivacyReport
        """
        releases = tuple(dict(row) for row in log) or tuple(plan.rows())
        return cls(
            epsilon=plan.epsilon,
            delta=plan.target.delta,
            rho=plan.rho,
            spent_rho=float(
                # Disjoint parts of the units do not add up; without a part, a line is about all.
                maximum_cost(
                    [
                        (tuple(row["part"].split("/")) if "part" in row else (), row["rho"])
                        for row in log
                    ]
                )
            ),
            accounting=(ONE_STEP if len(plan.entries) == 1 else ADDED)
            if plan.unconverted
            else EXACT
            if plan.gaussian
            else "zCDP (tight conversion)",
            unit=plan.unit,
            noise=noise if log else "planned",
            releases=releases,
            notes=tuple(plan.notes),
            relation=plan.relation,
            federated=plan.federated,
            in_rho=plan.target.rho is not None,
        )

    @property
    def neighbors(self) -> str:
        """The neighboring relation in words."""
        return in_words(self.relation, self.unit)

    @property
    def _void(self) -> tuple[str, ...]:
        """Why there is no guarantee; empty where there is one."""
        return (*self.problems, *([_VOID[self.noise]] if self.noise in _VOID else []))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Limits of the guarantee in words; nobody has to look for them in the documentation."""
        if self._void:
            return (f"no guarantee: {'; '.join(self._void)}", *self.notes)
        if self.noise != "seeded":
            return self.notes
        return ("seeded noise: no guarantee against anyone who knows random_state", *self.notes)

    def to_frame(self) -> Any:
        """The releases as a pandas DataFrame (extra ``pandas``).

        Returns
        -------
        frame : DataFrame
            A row for each release, or for each plan entry before a fit.
        """
        with extra("pandas"):
            import pandas as pd

        return pd.DataFrame(list(self.releases))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a page for a privacy officer, and a JSON file with the same content.

        Parameters
        ----------
        path : str or path
            Of the page, such as ``"privacy.html"``; the JSON file is then ``"privacy.json"``. Files
            of these names are replaced. ``privacy_report(estimator).save(...)`` also states which
            estimator it was, with its parameters.
        """
        page_of_report(self, self.subject).save(path)

    @property
    def headline(self) -> str:
        """The guarantee in one line, with neighbors, accounting and the source of the noise."""
        if self._void:
            return f"no guarantee: {'; '.join(self._void)}"
        return (
            f"({self.epsilon:.4g}, {self.delta:.3g})-DP "
            f"{condition_in_words(self.relation, self.unit)}; "
            f"rho = {self.rho:.4g}, {self.accounting}, noise: {self.noise}"
        )

    def __repr__(self) -> str:
        names = columns_of(self.releases)
        table = [names] + [[cell(row.get(name, "all")) for name in names] for row in self.releases]
        widths = [max(len(line[i]) for line in table) for i in range(len(names))]
        lines = [
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True))
            for line in table
        ]
        tail = [f"note: {text}" for text in self.warnings]
        return "\n".join([self.headline, *(line.rstrip() for line in lines), *tail])

    @property
    def told(self) -> str:
        """What can be told of a unit from all that the fit releases, for people.

        Returns
        -------
        sentence : str
            In right guesses of a hundred: by the law of what is released, and by epsilon and delta
            alone.
        """
        if self._void:
            return f"There is no guarantee: {'; '.join(self._void)}."
        planned = self.noise == "planned"
        words = what_can_be_told(
            secret_in_words(self.relation, self.unit),
            best_guess(self.epsilon, self.delta, self.rho, self.accounting == EXACT),
            best_guess(self.epsilon, self.delta),
            "could" if planned else "can",
        )
        if self.noise == "seeded":
            return (
                "The noise of this fit does not protect against anyone who knows random_state. "
                f"Against everyone else: from everything that it releases, {words}"
            )
        fit = "a fit by this plan" if planned else "this fit"
        return f"From everything that {fit} releases, {words}"

    @property
    def spent(self) -> str:
        """What was spent, and of how much, as a sentence."""
        costs = self.ledger or [("epsilon", self.epsilon, None), ("delta", self.delta, None)]
        words = ", ".join(
            f"{name} = {cell(cost)}" + ("" if total is None else f" of your {cell(total)}")
            for name, cost, total in costs
        )
        whose = f", paid by the units of {self.payers} only" if self.payers else ""
        if self.problems and not self.ledger:
            return ""
        return f"It {'would spend' if self.noise == 'planned' else 'spent'} {words}{whose}."

    def _repr_html_(self) -> str:
        return _page(self)


# -- in notebooks -----------------------------------------------------------------------------


def _page(report: PrivacyReport) -> str:
    """A plan that has not run, or a fit. Everything in a report is public or released."""
    planned = report.noise == "planned"
    # Of a plan that spends nothing, no share is anything; without a guarantee, there is no whole.
    whole = (report.spent_rho if report.problems else report.rho) or 1.0
    stages = _grouped(report.releases, lambda row: row["release"].rpartition("/")[0])
    # A path is a course that a fit may take: of each, what it would spend.
    paths = sorted({path for row in report.releases for path in paths_of(row)}) or [""]
    bars = "".join(
        (f"<div>{escape(path)}</div>" if path else "")
        + bar(
            {
                stage: cost_of([row for row in rows if not paths_of(row) or path in paths_of(row)])
                / whole
                for stage, rows in stages.items()
            }
        )
        for path in paths
    )
    names = columns_of(report.releases)
    lines = [
        (_words_of(stage, rows), cost_of(rows) / whole, _releases(stage, rows, names, whole))
        for stage, rows in stages.items()
    ]
    unspent = 1 - report.spent_rho / whole
    bad = ' class="sk-dp-bad"' if report._void else ""
    # What rounding leaves is no line.
    content = lines_of(lines, None if planned or unspent <= 0 else unspent, "paid for but not used")
    return framed(
        f"<p{bad}><b>{unbroken(report.told)}</b><br>{escape(report.spent)}</p>{bars}{content}"
        f"<details><summary>the guarantee in numbers</summary>{escape(report.headline)}</details>"
        + "".join(f'<p class="sk-dp-note">{escape(text)}</p>' for text in report.warnings),
        fitted=not planned,
    )


def _grouped(rows: Iterable[Any], stage: Callable[[Any], str]) -> dict[str, list[Any]]:
    """Lines of one stage of a fit together; what belongs to none, by its name."""
    groups: dict[str, list[Any]] = {}
    for row in rows:
        groups.setdefault(stage(row) or row["release"], []).append(row)
    return groups


def _words_of(stage: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """A line of the display: its purpose, how often it was released, and on which courses."""
    ways = {way for row in rows for way in paths_of(row)}
    path = f" ({' or '.join(sorted(ways))})" if ways else ""
    kinds = {row["release"] for row in rows}
    return (
        in_plain_words(stage) + times(len(rows), "releases" if len(kinds) > 1 else "times") + path
    )


def _releases(
    stage: str, rows: Sequence[Mapping[str, Any]], names: Sequence[str], whole: float
) -> str:
    """The numbers of a stage: a table, or a line for each kind of release, with its table."""
    kinds = _grouped(rows, lambda row: "")
    if list(kinds) == [stage]:
        return table(names, [[cell(row.get(name, "all")) for name in names] for row in rows])
    inner = "".join(
        line(
            _words_of(kind.removeprefix(f"{stage}/"), group),
            cost_of(group) / whole,
            _releases(kind, group, names, whole),
        )
        for kind, group in kinds.items()
    )
    return f'<div class="sk-dp-inner">{inner}</div>'


_COSTS = ("epsilon", "delta", "rho", "spent_rho")
_ROUNDING = 1 - 1e-9  # by which a later day may cost less, so that it never costs more
_NOISES = (
    "planned",
    "system",
    "seeded",
    "altered",
    "forced",
)  # each voids more than the one before


def worst_of(earlier: PrivacyReport, later: PrivacyReport) -> PrivacyReport:
    """The report of all days, with the releases of the one that costs most, or of the last."""
    _check_alike([("the days before", earlier), ("this day", later)])
    both = earlier, later
    dearest = later if later.epsilon >= earlier.epsilon * _ROUNDING else earlier
    # Of two laws, of which only the dearer one is Gaussian, only the zCDP holds of both.
    mixed = dearest.accounting == EXACT and {each.accounting for each in both} != {EXACT}
    return replace(
        dearest,
        **{cost: max(getattr(each, cost) for each in both) for cost in _COSTS},
        accounting="zCDP (worst of all days)" if mixed else dearest.accounting,
        ledger=earlier.ledger or later.ledger,
        payers=earlier.payers or later.payers,
        paid_by=earlier.paid_by or later.paid_by,
        first=earlier.first or earlier,
        **_joint(both),
    )


def total_of(named: Sequence[tuple[str, PrivacyReport]]) -> PrivacyReport:
    """The report of fits that read the same rows, of theirs by name; one that several share counts
    once. A ValueError for different units or neighbors; a LedgerError for two values of a key."""
    named = _distinct(named)
    reports = [report for _, report in named]
    first = reports[0]
    if len(reports) == 1:
        return first
    _check_alike(named)
    paid = [each.paid_by for each in reports if each.paid_by is not None]
    check_one_value([(book, payers) for book, _, payers, _ in paid])
    tight = [each for each in reports if each.in_rho and each.rho < math.inf]
    rest = [each for each in reports if len(tight) < 2 or not (each.in_rho and each.rho < math.inf)]
    costs = [(each.epsilon, each.delta) for each in rest]
    if len(tight) > 1:
        rho, delta = _sum(tight, "rho"), _sum(tight, "delta")
        costs.append((zcdp_epsilon(rho, delta) if delta < 1 else math.inf, 2 * delta))
    same = len({each.payers for each in reports}) == 1
    together = len({(each.paid_by or ())[:3] for each in reports}) == 1
    return PrivacyReport(
        epsilon=sum_up([epsilon for epsilon, _ in costs]),
        delta=min(sum_up([delta for _, delta in costs]), 1.0),
        rho=_sum(reports, "rho"),
        spent_rho=_sum(reports, "spent_rho"),
        accounting="zCDP (tight conversion)" if len(costs) == 1 else "basic composition",
        unit=first.unit,
        releases=_lines("releases", named),
        inside=_lines("inside", named),
        relation=first.relation,
        payers=first.payers if same else "",
        in_rho=len(costs) == 1,
        # Charged together, to one ledger: its head is that of all.
        paid_by=first.paid_by if together else None,
        charged="" if together else "; ".join(starmap(_charge_of, named)),
        **_joint(reports),
    )


def _lines(kind: str, named: Sequence[tuple[str, PrivacyReport]]) -> tuple[dict[str, Any], ...]:
    return tuple(
        {**line, "release": f"{name}/{line['release']}"}
        for name, report in named
        for line in getattr(report, kind)
    )


def _charge_of(name: str, report: PrivacyReport) -> str:
    """Who paid for a step, in words."""
    if report.paid_by is None:
        return f"{name}: {report.charged or 'no ledger'}"
    return f"{name}: ledger {report.paid_by[0]}, head after the charge {report.paid_by[1]}"


def without_guarantee(report: PrivacyReport, problem: str) -> PrivacyReport:
    """Return the provenance of the same releases, for which no guarantee holds."""
    return replace(
        report,
        epsilon=math.inf,
        delta=1.0,
        rho=math.inf,
        problems=tuple(dict.fromkeys((*report.problems, problem))),
    )


def _sum(reports: list[PrivacyReport], cost: str) -> float:
    return sum_up([getattr(each, cost) for each in reports])


def _joint(reports: Iterable[PrivacyReport]) -> dict[str, Any]:
    """Join reports: the weakest noise, every note, every problem."""
    reports = list(reports)
    return {
        "noise": max((each.noise for each in reports), key=_NOISES.index),
        "federated": any(each.federated for each in reports),
        **{
            name: tuple(dict.fromkeys(text for each in reports for text in getattr(each, name)))
            for name in ("notes", "problems")
        },
    }


def _distinct(named: Sequence[tuple[str, PrivacyReport]]) -> list[tuple[str, PrivacyReport]]:
    """Without those that another one covers: the same, or a stream that began with it."""
    once = list({id(report): (name, report) for name, report in reversed(named)}.values())[::-1]
    began = {id(report.first) for _, report in once}
    return [(name, report) for name, report in once if id(report) not in began]


def _check_alike(named: Sequence[tuple[str, PrivacyReport]]) -> None:
    """Refuse what holds for different neighbors: such costs neither add up nor compare."""
    if len({report.neighbors for _, report in named}) > 1:
        names = ", ".join(f"{name} ({report.neighbors})" for name, report in named)
        raise ValueError(
            f"there is no guarantee of the whole: its parts protect different units: {names}. Fit "
            "all of them with groups, or none."
        )
