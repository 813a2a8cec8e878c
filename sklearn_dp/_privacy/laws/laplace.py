"""Rounded Laplace noise.

For a vector of integers of l1 sensitivity s and a scale of at least s / epsilon, ``v + round(scale
L) = round(v + scale L)`` is post-processing of the Laplace mechanism: epsilon-DP, and rho-zCDP by
the tight conversion for that mechanism.
"""

from .. import _accounting as accounting
from .._plan import Mechanism
from .._rounding import exact_integers, round_up
from ._release import Release, check_cost, positive_sensitivity

__all__ = ["inner", "release"]


def release(value, sensitivity, epsilon, unit=1.0):
    """Integers with rounded Laplace noise; see :meth:`PrivacySession.laplace`."""
    return _laplace(
        "laplace",
        value,
        sensitivity,
        epsilon,
        accounting.laplace_zcdp_rho(check_cost("epsilon", epsilon)),
        {"unit": unit},
        unit,
    )


def inner(value, sensitivity, epsilon, own):
    """A draw of a step; see :meth:`Step.laplace`."""
    check_cost("epsilon", epsilon)
    return _laplace("inner_laplace", value, sensitivity, epsilon, 0.0, {"own": own}, 1.0)


def _laplace(kind, value, sensitivity, epsilon, rho, public, unit):
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
        public=public,
        unit=unit,
    )
