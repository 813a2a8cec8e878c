"""What a private answer is worth at each epsilon, found out before anything is spent."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._base import BaseDPEstimator, RandomStateLike, check_integer
from .._privacy._checks import check_positive
from .._privacy._optional import extra
from ._metrics import cost_floor, yardstick
from ._public_rows import inside_bounds, public_rows, synthetic_rows
from ._scaling import fits, plan_at, scale_freely, seeds, settings

__all__ = ["PrivacyUtilityCurve", "utility_curve"]

_MOST_REPEATS = 10_000
_MOST_UNITS = 2**53  # beyond it, floats cannot count


@dataclass(frozen=True, eq=False)
class PrivacyUtilityCurve:
    """What fits of an estimator are worth at each epsilon, on public rows.

    Parameters
    ----------
    epsilons : ndarray of shape (n_epsilons,)
        Increasing.
    values : ndarray of shape (n_epsilons, n_repeats)
        The metric of each fit.
    reference : float
        The metric of the non-private twin, NaN without one.
    floor : ndarray of shape (n_epsilons,) or None
        What no fit gets below, for k-means by cost: noise alone costs so much. Lost clusters and
        wrong starts come on top.
    metric : str
        What was measured, in words.
    estimator : str
        Name of the class.
    n_units : int
        Number of private rows that the curve is about.
    synthetic : bool
        Whether the rows were made up, for want of public ones.
    """

    epsilons: np.ndarray
    values: np.ndarray
    reference: float
    floor: np.ndarray | None
    metric: str
    estimator: str
    n_units: int
    synthetic: bool = False

    @property
    def quartiles(self) -> np.ndarray:
        """Lower quartile, median and upper quartile at each epsilon, in three rows."""
        return np.quantile(self.values, [0.25, 0.5, 0.75], axis=1)

    def to_frame(self) -> Any:
        """The curve as a pandas DataFrame (extra ``pandas``).

        Returns
        -------
        frame : DataFrame
            A row for each epsilon, with median, quartiles, the reference and, where it is known,
            the floor.
        """
        with extra("pandas"):
            import pandas as pd

        low, median, high = self.quartiles
        columns = {"epsilon": self.epsilons, "median": median, "lower quartile": low}
        columns |= {"upper quartile": high, "reference": self.reference}
        return pd.DataFrame(columns if self.floor is None else columns | {"floor": self.floor})


def utility_curve(
    estimator: BaseDPEstimator,
    X_public: ArrayLike | None = None,
    *,
    n_units: int,
    epsilons: Iterable[float] = (0.1, 0.2, 0.5, 1, 2, 4, 8),
    metric: Callable[..., float] | None = None,
    n_repeats: int = 5,
    n_features: int | None = None,
    n_clusters: int | None = None,
    random_state: RandomStateLike | None = None,
) -> PrivacyUtilityCurve:
    """What a fit will be worth at each epsilon, from public rows and without any charge.

    The estimator is fitted on public rows that stand for `n_units` private ones. Where their
    numbers differ, the fits get a budget whose noise does to these rows what the noise of the real
    fit will do to those.

    Parameters
    ----------
    estimator : BaseDPEstimator
        Not changed; its own budget, ledger and random state are not used.
    X_public : array-like of shape (n_samples, n_features), optional
        Rows of the same kind that anybody may know: never private ones, not even a small sample.
        None: a mixture of separated clusters is made up.
    n_units : int
        About how many private rows there will be. Public: do not count them for this.
    epsilons : iterable of float, default=(0.1, 0.2, 0.5, 1, 2, 4, 8)
        Increasing.
    metric : callable, optional
        ``metric(fitted, X)`` is a number. By default the estimator's `score` beside that of its
        non-private twin: k-means by the ratio of costs, others by the difference of log-densities.
    n_repeats : int, default=5
        Fits at each epsilon, each with noise of its own.
    n_features, n_clusters : int, optional
        Of the mixture, for ``X_public=None``; `n_clusters` is that of the estimator by default.
    random_state : int, RandomState instance or Generator, optional
        Makes the curve reproducible. Nothing private is at stake.

    Returns
    -------
    curve : PrivacyUtilityCurve
        With `to_frame()`; `PrivacyUtilityDisplay.from_curve` draws it.

    Raises
    ------
    ValueError, TypeError
        With the name of the parameter. Among others where noise is not Gaussian: its effect does
        not scale, so the public rows must be as many as the private ones.

    Notes
    -----
    The curve tells about the rows that it was given. Private rows that are less clearly clustered
    lose more; the floor holds for them all the same.

    Examples
    --------
    >>> from sklearn_dp import DPKMeans
    >>> from sklearn_dp.inspection import utility_curve
    >>> curve = utility_curve(
    ...     DPKMeans(n_clusters=3), n_units=100_000, n_features=2, epsilons=[0.1, 1], n_repeats=3,
    ...     random_state=0,
    ... )
    >>> curve.values.shape, curve.metric
    ((2, 3), 'cost over cost without privacy')
    >>> bool((curve.quartiles[1] < 1.01).all())
    True
    """
    levels = _check(estimator, n_units, epsilons, n_repeats)
    mixture_seed, *fit_seeds = seeds(random_state, 1 + len(levels) * n_repeats)
    rows = public_rows(estimator, X_public, n_features, n_clusters)
    synthetic = isinstance(rows, tuple)
    if isinstance(rows, tuple):
        exact = not all(scale_freely(estimator, plan_at(estimator, e, rows[0])) for e in levels)
        rows = synthetic_rows(rows, n_units, exact=exact, seed=mixture_seed)
        rows = inside_bounds(rows, estimator)
    # Refusals come before the first fit, and before that of the twin.
    points = list(settings(estimator, levels, rows.shape, n_units))
    measure = yardstick(estimator, rows, metric, mixture_seed)
    values = [
        [measure.value(model) for model in fits(point, rows, fit_seeds[i :: len(points)])]
        for i, point in enumerate(points)
    ]
    bounds = [cost_floor(estimator, each.plan, rows.shape[1], n_units) for each in points]
    known = measure.is_cost and np.isfinite(bounds).all()
    return PrivacyUtilityCurve(
        np.asarray(levels),
        np.asarray(values),
        measure.reference,
        np.asarray(bounds) if known else None,
        measure.label,
        type(estimator).__name__,
        int(n_units),
        synthetic,
    )


def _check(estimator: object, n_units: object, epsilons: object, n_repeats: object) -> list[float]:
    """Refuse wrong parameters by name; the epsilons as floats."""
    if not isinstance(estimator, BaseDPEstimator):
        raise TypeError("estimator must be a private estimator of this package, and no class.")
    check_integer(n_units, "n_units", low=1, high=_MOST_UNITS)
    check_integer(n_repeats, "n_repeats", low=1, high=_MOST_REPEATS)
    # An array without axes has the method of an iterable and cannot be iterated.
    if not isinstance(epsilons, Iterable) or getattr(epsilons, "ndim", 1) == 0:
        raise TypeError("epsilons must be numbers in increasing order.")
    levels = [check_positive("epsilons", value) for value in epsilons]
    if not levels or any(b <= a for a, b in zip(levels, levels[1:], strict=False)):
        raise ValueError("epsilons must be at least one number, in increasing order.")
    return levels
