"""Rounded Laplace noise.

For a vector of integers of l1 sensitivity s and a scale of at least s / epsilon, ``v + round(scale
L) = round(v + scale L)`` is post-processing of the Laplace mechanism: epsilon-DP, and rho-zCDP by
the tight conversion for that mechanism.

Rounding is of value plus noise, and the value is an integer, so the noise may be rounded by itself:
v + round(x) = round(v + x). Floating-point Laplace noise added to a float is no such thing: the
gaps between floats around the output tell the value (Mironov, 2012).
"""

from dataclasses import replace
from typing import Any

from ..._costs import accounting
from ..._costs.plan import Mechanism
from ..._costs.rounding import round_up
from .._integers import exact_integers
from ._release import Release, check_cost, positive_sensitivity


def release(value: Any, sensitivity: float, epsilon: float, unit: float = 1.0) -> Release:
    """Integers in grid steps, with rounded Laplace noise for an l1 `sensitivity`."""
    rho = accounting.laplace_zcdp_rho(check_cost("epsilon", epsilon))
    drawn = _laplace("laplace", value, sensitivity, epsilon, rho)
    return replace(drawn, public={"unit": unit}, unit=unit)


def inner(value: Any, sensitivity: float, epsilon: float, own: bool) -> Release:
    """A draw of a step, which has been paid for; see :meth:`CompositeMechanism.laplace`."""
    check_cost("epsilon", epsilon)
    drawn = _laplace("inner_laplace", value, sensitivity, epsilon, 0.0)
    return replace(drawn, public={"own": own})


def _laplace(kind: str, value: Any, sensitivity: float, epsilon: float, rho: float) -> Release:
    """Noise of scale sensitivity / epsilon, rounded up, for a release or for a draw of a step."""
    value, sensitivity = exact_integers(value), positive_sensitivity(sensitivity)
    scale = round_up(sensitivity / epsilon)
    return Release(
        kind,
        Mechanism.LAPLACE,
        value,
        sensitivity,
        scale,
        rho,
        lambda noise: value + noise.rounded_laplace(scale, value.shape),
        cost=epsilon,
    )
