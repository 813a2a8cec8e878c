"""A privacy budget: what a fit, or many fits, may spend."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from . import accounting
from .accounting import mu_from_rho
from .numbers import (
    SMALLEST_DELTA,
    check_delta,
    check_non_negative,
    check_positive,
    float_down,
    sum_down,
)

_NO_DELTA = (
    "delta must be given with epsilon: each fit spends some, 1e-6 by default. Give the total of "
    "all fits, such as delta=1e-5 for ten."
)
_MOST = 1e100  # epsilon or rho: beyond it, conversions leave the floats

# Functions of two public numbers, each with a root search inside: a plan, its session and its
# report ask for the same ones, and so does each fit of an estimator that is fitted many times.
_REMEMBERED = 256
gaussian_epsilon = lru_cache(_REMEMBERED)(accounting.gaussian_epsilon)
gaussian_rho = lru_cache(_REMEMBERED)(accounting.gaussian_rho)
zcdp_epsilon = lru_cache(_REMEMBERED)(accounting.zcdp_epsilon)
zcdp_rho = lru_cache(_REMEMBERED)(accounting.zcdp_rho)


def epsilon_of(
    rho: float, delta: float, gaussian: bool = True, delta_failure: float = 0.0
) -> float:
    """Epsilon at ``delta`` of releases that cost ``rho`` in all, rounded up.

    `gaussian` says that every release is plain Gaussian noise with a global sensitivity: the exact
    curve of Gaussian differential privacy; otherwise the tight conversion of zCDP. `delta_failure`
    is the part of ``delta`` that failure events of the releases use up: each of the two laws is a
    mixture in which a part of this weight may be anything and the rest obeys the curve. (A total
    variation distance t of a sampler counts as t (1 + exp(epsilon)).) Infinite if no delta is left:
    zCDP alone bounds no epsilon at delta = 0."""
    delta_left = _delta_left(delta, delta_failure)
    rho = check_non_negative("rho", rho)
    if rho == 0:
        return 0.0
    if delta_left < SMALLEST_DELTA:
        return math.inf
    if gaussian:
        return gaussian_epsilon(mu_from_rho(rho), delta_left)
    return zcdp_epsilon(rho, delta_left)


@dataclass(frozen=True)
class PrivacyBudget:
    """A privacy target: (epsilon, delta)-DP or (rho, delta)-zCDP.

    Exactly one of ``epsilon`` and ``rho`` is given.

    Parameters
    ----------
    epsilon : float, optional
        Positive and finite.
    delta : float
        In [0, 1); 0 by default with `rho`, required with `epsilon`. Fits spend delta too, by
        default one in a million each: ``PrivacyBudget(1.0, 1e-5)`` pays for ten. 0 is pure DP,
        which no Gaussian release can serve, or pure zCDP.
    rho : float, optional
        Positive and finite.

    Raises
    ------
    TypeError
        If a value is not a real number, or is a bool, or `delta` is missing.
    ValueError
        If a value is out of range, or both or neither of ``epsilon`` and ``rho`` are given.

    Examples
    --------
    >>> budget = PrivacyBudget(epsilon=1.0, delta=1e-6)
    >>> round(budget.to_rho(), 5)
    0.02801
    >>> PrivacyBudget(rho=0.5, delta=1e-8).split([0.25, 0.75])
    (PrivacyBudget(rho=0.125, delta=2.5e-09), PrivacyBudget(rho=0.375, delta=7.5e-09))
    """

    epsilon: float | None = None
    delta: float = None  # type: ignore[assignment]  # a number once it is made
    rho: float | None = None

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.rho is None):
            raise ValueError("exactly one of epsilon and rho must be given")
        if self.delta is None:
            if self.rho is None:
                raise TypeError(_NO_DELTA)
            object.__setattr__(self, "delta", 0.0)
        for name in ("epsilon", "rho"):
            if getattr(self, name) is not None:
                value = check_positive(name, getattr(self, name))
                if value > _MOST:
                    raise ValueError(f"{name} must be at most {_MOST:g}")
                object.__setattr__(self, name, value)
        object.__setattr__(self, "delta", check_delta("delta", self.delta, zero=True))

    def __repr__(self) -> str:
        size = f"rho={self.rho!r}" if self.epsilon is None else f"epsilon={self.epsilon!r}"
        return f"{type(self).__name__}({size}, delta={self.delta!r})"

    def split(self, shares: Iterable[float]) -> tuple[PrivacyBudget, ...]:
        """Return one budget per share: the share of epsilon or rho, and the same share of delta.

        The exact sums of the parts are at most the whole, so the parts compose to at most the
        whole under zCDP composition (a rho budget) or basic composition (an epsilon budget, any
        mechanisms). Gaussian releases get far more out of shares of `to_rho` than out of parts
        of an epsilon budget.

        Parameters
        ----------
        shares : iterable of float
            Positive, with a sum of at most 1 (up to rounding: ten times 0.1 is 1).

        Returns
        -------
        parts : tuple of PrivacyBudget
            In the order of the shares.
        """
        # An array without axes has the method of an iterable and cannot be iterated.
        if not isinstance(shares, Iterable) or getattr(shares, "ndim", 1) == 0:
            raise TypeError("shares must be an iterable of numbers")
        exact = [Fraction(check_positive("shares", share)) for share in shares]
        if not exact:
            raise ValueError("shares must not be empty")
        if math.fsum(map(float, exact)) > 1:
            raise ValueError("shares must sum to at most 1")
        whole = max(Fraction(1), sum(exact, Fraction(0)))
        return tuple(self._part(share / whole) for share in exact)

    def _part(self, share: Fraction) -> PrivacyBudget:
        delta = float_down(share * Fraction(self.delta))
        if self.rho is not None:
            return PrivacyBudget(rho=float_down(share * Fraction(self.rho)), delta=delta)
        assert self.epsilon is not None
        return PrivacyBudget(epsilon=float_down(share * Fraction(self.epsilon)), delta=delta)

    def to_rho(self, gaussian: bool = True, delta_failure: float = 0.0) -> float:
        """Return the largest total rho that releases may cost inside this budget, rounded down.

        For any cost up to this, `epsilon_of` returns at most the target.

        Parameters
        ----------
        gaussian : bool, default=True
            Whether every release is plain Gaussian noise with a global sensitivity.
        delta_failure : float, default=0.0
            Part of delta for failure events of the releases; see `epsilon_of`.

        Returns
        -------
        rho : float
            A zCDP cost.
        """
        delta_left = _delta_left(self.delta, delta_failure)
        if self.rho is not None:
            return self.rho
        assert self.epsilon is not None
        if delta_left < SMALLEST_DELTA:
            raise ValueError(
                f"delta={self.delta} must exceed delta_failure={delta_failure}: without a delta, "
                "only pure DP mechanisms fit in an epsilon budget"
            )
        cost = gaussian_rho if gaussian else zcdp_rho
        return cost(self.epsilon, delta_left)

    def epsilon_of(
        self,
        rho: float | None = None,
        gaussian: bool = True,
        delta_failure: float = 0.0,
        delta: float | None = None,
    ) -> float:
        """Return the epsilon of a plan that costs ``rho``, rounded up.

        Parameters
        ----------
        rho : float, optional
            Cost of the plan; all of the budget by default.
        gaussian : bool, default=True
            Whether every release is plain Gaussian noise with a global sensitivity.
        delta_failure : float, default=0.0
            Part of delta for failure events of the releases.
        delta : float, optional
            By default that of the budget; another value can be used with a pure zCDP budget.

        Returns
        -------
        epsilon : float
            Infinite if no delta is left.
        """
        if rho is None:
            rho = self.to_rho(gaussian, delta_failure)
        return epsilon_of(rho, self.delta if delta is None else delta, gaussian, delta_failure)


def _delta_left(delta: float, delta_failure: float) -> float:
    """Return what failure events leave of delta for the conversion, rounded down."""
    delta = check_delta("delta", delta, zero=True)
    delta_failure = check_delta("delta_failure", delta_failure, zero=True)
    if delta_failure > delta:
        raise ValueError(f"delta_failure must be at most delta={delta}")
    return sum_down([delta, -delta_failure])
