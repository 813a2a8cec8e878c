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

No event of the library stands for the probability f that anything may be released. Both laws of the
transcript are mixtures, with weight 1 - f on the laws that the events describe (proof in
`_ledger_terms`), so whatever an accountant says at delta - f holds for all at delta: for a set S,
P(S) <= (1 - f) P*(S) + f <= (1 - f) (exp(e) Q*(S) + delta - f) + f <= exp(e) Q(S) + delta.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ._accounting import mu_from_rho
from ._ledger_terms import LedgerCharge
from ._optional import extra
from ._rounding import sum_up

__all__ = ["events_of"]


def events_of(charges: Sequence[LedgerCharge]) -> tuple[Any, float]:
    """A `ComposedDpEvent` of charges, in their order, and the sum of their failures, rounded up.

    The charges are about one unit and one relation, as those of a ledger are.
    """
    with extra("accounting"):
        import dp_accounting
    event = dp_accounting.ComposedDpEvent([_event_of(charge) for charge in charges])
    return event, sum_up(charge.delta_failure for charge in charges)


def _event_of(charge: LedgerCharge) -> Any:
    import dp_accounting

    assert charge.rho is not None  # filled in when a charge is made
    if charge.rho == 0:
        return dp_accounting.NoOpDpEvent()
    if charge.gaussian:
        return dp_accounting.GaussianDpEvent(math.nextafter(1 / mu_from_rho(charge.rho), 0.0))
    return dp_accounting.ZCDpEvent(rho=charge.rho)
