"""Fits that are paid for together, before the first of them: the steps of a pipeline.

Each fit has a part of the payment, (rho, delta), which is fixed before any row is read. A fit may
take a part of its own label that covers its cost, in all that a ledger counts, and each part is
taken once. So
all fits together are (sum of rho, sum of delta)-zCDP, whatever the later ones do with what the
earlier ones have released: see the proof for zCDP in :mod:`._ledger_terms`, where budgets may even
be chosen on the way. That sum is what the ledger is charged. A fit that no part covers is charged
by itself, as everywhere else.

Such a fit may come between two of them, and its budget may follow from what the first one has
released. Costs in (rho, delta) add up in any order. Those in (epsilon, delta) do too: the fits that
are paid for together are one interactive mechanism, and every privacy filter for (epsilon, delta)
holds for interactive mechanisms that are asked by turns, with budgets that follow from the answers
(S. Haney, M. Shoemate, G. Tian, S. Vadhan, A. Vyrros, V. Xu and W. Zhang, "Concurrent composition
for interactive differential privacy with adaptive privacy-loss parameters", CCS 2023,
arXiv:2309.05901).

Nothing is given back, also where a fit fails or is never reached: that may be because of the rows.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Lock
from typing import Any, cast

from . import _accounting as accounting
from ._budget import PrivacyBudget
from ._disjoint import Payers
from ._ledger import PrivacyLedger
from ._ledger_terms import LedgerCharge
from ._process import process_mark
from ._rounding import sum_up

_Account = tuple[Any, Payers, str, str]
"""A ledger, its payers, a unit and a relation: parts that agree in these are charged together."""


@dataclass(frozen=True)
class PrepaidFit:
    """The most that one fit may cost: it is (rho, delta)-zCDP, and (rho, 0)-zCDP if it is
    Gaussian."""

    ledger: PrivacyLedger
    label: str
    rho: float
    delta: float
    gaussian: bool
    unit: str
    relation: str

    @property
    def failure(self) -> float:
        """The part of delta for failures: nothing where all is Gaussian and never fails."""
        return 0.0 if self.gaussian else self.delta

    @property
    def account(self) -> _Account:
        """Where the part is charged."""
        return _account(self.ledger, self.unit, self.relation)

    def covers(self, account: _Account, charge: LedgerCharge) -> bool:
        """True if it is for such a fit, and the charge of that is no more, in any composition. That
        of another estimator may be small too, but then the one that was paid for would pay once
        more."""
        return (
            account == self.account
            and charge.label == self.label
            and charge.rho is not None
            and charge.rho <= self.rho
            and charge.delta_failure <= self.failure
            and charge.gaussian >= self.gaussian
        )


class _Untaken:
    """Parts that have been paid for: of one process, as both sides of a fork would take them."""

    def __init__(self, budget: PrivacyBudget | None) -> None:
        self.parts, self.budget = cast("list[PrepaidFit]", []), budget
        self._process, self._lock = process_mark(), Lock()

    def take(self, ledger: PrivacyLedger, charge: LedgerCharge) -> bool:
        """Take the smallest part that covers a fit, if there is one."""
        if self._process != process_mark() or not self.parts:
            return False
        account = _account(ledger, charge.unit, charge.relation)
        with self._lock:
            fitting = [part for part in self.parts if part.covers(account, charge)]
            if fitting:
                self.parts.remove(min(fitting, key=lambda part: part.rho))
        return bool(fitting)


_UNTAKEN: ContextVar[_Untaken | None] = ContextVar("sklearn_dp_prepaid", default=None)


def charges_together(
    parts: Iterable[PrepaidFit],
) -> list[tuple[PrivacyLedger, LedgerCharge, list[PrepaidFit]]]:
    """One charge for all parts of an account, where there are several: and what it is for."""
    accounts: dict[_Account, list[PrepaidFit]] = {}
    for part in parts:
        accounts.setdefault(part.account, []).append(part)
    return [
        (several[0].ledger, _charge(several), several)
        for several in accounts.values()
        if len(several) > 1 and 2 * sum_up([part.delta for part in several]) < 1
    ]


def _charge(parts: list[PrepaidFit]) -> LedgerCharge:
    """Return the joint charge of some parts: they are (rho, delta)-zCDP together, which is
    (epsilon, 2 delta)-DP."""
    rho, delta = (sum_up([getattr(part, cost) for part in parts]) for cost in ("rho", "delta"))
    return LedgerCharge(
        epsilon=accounting.zcdp_epsilon(rho, delta),
        delta=2 * delta,
        rho=rho,
        delta_failure=sum_up([part.failure for part in parts]),
        gaussian=all(part.gaussian for part in parts),
        unit=parts[0].unit,
        relation=parts[0].relation,
        label=" + ".join(part.label for part in parts),
    )


@contextmanager
def paid_together(
    parts: Iterable[PrepaidFit], budget: PrivacyBudget | None = None
) -> Iterator[None]:
    """Charge the parts now; fits of this thread, in this block, may take them. `budget`: of all
    fits together, in rho, where it is known. It is for words alone. Inside another such block
    nothing is charged: its parts are for all fits in it."""
    if _UNTAKEN.get() is not None:
        yield
        return
    untaken = _Untaken(budget)
    for ledger, charge, several in charges_together(parts):
        ledger.charge(charge)
        untaken.parts += several
    token = _UNTAKEN.set(untaken)
    try:
        yield
    finally:
        _UNTAKEN.reset(token)


def shared_budget() -> PrivacyBudget | None:
    """Return the joint budget of the fits of this block, where that is known."""
    untaken = _UNTAKEN.get()
    return None if untaken is None else untaken.budget


def is_paid(ledger: PrivacyLedger, charge: LedgerCharge) -> bool:
    """True if a fit has been paid for; its part is then taken."""
    untaken = _UNTAKEN.get()
    return untaken is not None and untaken.take(ledger, charge)


def _account(ledger: PrivacyLedger, unit: str, relation: str) -> _Account:
    return identity(ledger), ledger.payers, unit, relation


def identity(ledger: PrivacyLedger) -> Any:
    """The book of a ledger in memory; the file behind the path of another: it may have several
    names (symbolic links, ``folder/../folder``). The ledgers of all values of its keys are one."""
    if ledger.path is None:
        return id(ledger._book)
    stat = os.stat(ledger.path)
    return stat.st_dev, stat.st_ino
