"""Charges of a ledger as events of Google's library dp-accounting.

A charge says that a fit is (rho, f)-zCDP, and, where all its releases are Gaussian, sqrt(2 rho)-GDP
but for an event of probability f. The library has events for the first part only:

==================  ==========================================================================
charge              event
==================  ==========================================================================
nothing             ``NoOpDpEvent``
Gaussian releases   ``GaussianDpEvent`` with noise multiplier 1 / mu, mu = sqrt(2 rho), rounded
                    down. Whether a guarantee is about adding or replacing a unit, mu bounds the
                    distance of the two means; under ``REPLACE_ONE`` the library's accountant of
                    privacy losses takes twice the distance, which is on the safe side.
anything else       ``ZCDpEvent(rho)``: a Renyi divergence of at most alpha rho at every order.
==================  ==========================================================================

The library has no event for disjoint sets of units either. Of each key, the events are those of
the value that paid most in all respects. If there is none, two events and a failure cover each
value v: with rho_v in all, z_v of it of other releases than Gaussian ones, f_v of failures, and
their largest rho, z and f, a Gaussian event of rho - z, another one of z, and f. For if v has more
than rho - z of Gaussian releases, what is beyond is also zCDP of the same rho (Gaussian noise
divides into independent parts), which makes at most rho_v - (rho - z) <= z of that kind.

No event of the library stands for the probability f that anything may be released. Both laws of the
transcript are mixtures, with weight 1 - f on the laws that the events describe (proof in
`_ledger_terms`), so whatever an accountant says at delta - f holds for all at delta: for a set S,
P(S) <= (1 - f) P*(S) + f <= (1 - f) (exp(e) Q*(S) + delta - f) + f <= exp(e) Q(S) + delta.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from ._accounting import mu_from_rho
from ._ledger_terms import LedgerCharge, LedgerState
from ._optional import extra
from ._rounding import exact_sum, float_up, sum_up


def events_of(state: LedgerState) -> tuple[Any, float]:
    """A `ComposedDpEvent` of what a unit has paid, and the sum of its failures, rounded up. The
    charges are about one unit and one relation, as those of a ledger are."""
    with extra("accounting"):
        import dp_accounting
    values: dict[str, dict[str, list[LedgerCharge]]] = {}
    for charge in state.counted:
        values.setdefault(charge.key, {}).setdefault(charge.value, []).append(charge)
    paid = [charge for each in values.values() for charge in _covering(list(each.values()))]
    event = dp_accounting.ComposedDpEvent([_event_of(charge) for charge in paid])
    return event, sum_up(charge.delta_failure for charge in paid)


def _covering(several: Sequence[Sequence[LedgerCharge]]) -> Sequence[LedgerCharge]:
    """The charges that cover those of any one value; see the proof at the top."""
    totals = [_totals(charges) for charges in several]
    rho, other, failure = most = tuple(map(max, zip(*totals, strict=True)))
    if most in totals:
        return several[totals.index(most)]
    return [
        LedgerCharge(math.inf, 0.0, rho=float_up(rho - other), gaussian=True),
        LedgerCharge(math.inf, 0.0, rho=float_up(other), delta_failure=float_up(failure)),
    ]


def _totals(charges: Iterable[LedgerCharge]) -> tuple[Fraction, Fraction, Fraction]:
    """rho, that of other releases than Gaussian ones, and failures."""
    charges = list(charges)
    rhos = [(charge.rho or 0.0, charge.gaussian) for charge in charges]  # filled in when made
    return (
        exact_sum(rho for rho, _ in rhos),
        exact_sum(rho for rho, gaussian in rhos if not gaussian),
        exact_sum(charge.delta_failure for charge in charges),
    )


def _event_of(charge: LedgerCharge) -> Any:
    import dp_accounting

    assert charge.rho is not None  # filled in when a charge is made
    if charge.rho == 0:
        return dp_accounting.NoOpDpEvent()
    if charge.gaussian:
        return dp_accounting.GaussianDpEvent(math.nextafter(1 / mu_from_rho(charge.rho), 0.0))
    return dp_accounting.ZCDpEvent(rho=charge.rho)
