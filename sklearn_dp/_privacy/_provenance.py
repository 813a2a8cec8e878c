"""One report of several: that of a stream of days, and that of all steps of a pipeline.

A released object has one report, a record that nothing changes: of the fit that it comes from, or
made here of those of several fits. So whoever fits last adds to what is said, and never writes over
it. There are two operations, and both only combine what holds for the same neighbors.

*The worst of two days* (:func:`worst_of`). A unit has rows on one of them, so each cost of the
whole is the larger of the two: see the theorem in :mod:`sklearn_dp._days`, whose proof asks of both
days for one guarantee, and every cost of a day is at most the maximum.

*The sum of all steps* (:func:`total_of`). They read the same rows, each in the knowledge of what
the ones before have released. Epsilons and deltas add up (basic composition). Those whose budgets
were in rho are added up before: step i is (rho_i, f_i)-zCDP with f_i <= delta_i, so they are
(sum rho, sum delta)-zCDP together (:mod:`._ledger_terms`), which is (epsilon, 2 sum delta)-DP.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import starmap
from typing import Any

from ._accounting import zcdp_epsilon
from ._disjoint import check_one_value
from ._report import EXACT, PrivacyReport
from ._rounding import sum_up

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
    """The report of a stream, of those of all days before and of one more. The releases are those
    of the day that costs more; where both cost the same, of the last."""
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
    """The report of fits that read the same rows, of theirs by name.

    Steps that came out of one search have one report, which covers all of them, and so does that
    of a stream which began with it. A ValueError where they protect different units, or from
    different neighbors; a LedgerError where they were charged to two values of a key.
    """
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
