"""The accuracy of a private answer at each epsilon, estimated before anything is spent.

Public rows are few, and private ones many: they see the same effect at budgets that are scaled. The
noise of a Gaussian release has a standard deviation of sensitivity / mu, with mu = sqrt(2 rho), and
what it is added to grows with the number n of rows. So a result depends on both through n mu: a
tenth of the rows, at ten times mu and a hundred times rho, sees the same noise beside its sums.
What the number of rows itself changes (how well they describe the people they were drawn from)
stays as it is among the public ones.

All pictures of this package have one look: the colors of Okabe and Ito, which people of all kinds
of color vision tell apart; legends above the picture.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import pdist
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import make_blobs

from .._aggregate.shared.column_codes import REFINEMENT
from .._base import (
    MOST_CLUSTERS,
    MOST_FEATURES,
    BaseDPEstimator,
    RandomStateLike,
    check_integer,
    read_table,
)
from .._costs.numbers import check_positive, extra
from .._costs.plan import PrivacyPlan
from .._dropin import REPLACED
from .._privacy._randomness import seed_of
from .._silence import overheard
from ..exceptions import SeededNoiseWarning, UtilityWarning

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Enough for each cluster to have an inside; more rows cost time and change little, since the noise
# is scaled to their number.
_ROWS, _ROWS_PER_CLUSTER = 2000, 100
_SEPARATION = 6.0  # of any two centers, in standard deviations of a cluster: hardly any overlap


def _clusters_of(estimator: BaseDPEstimator) -> int | None:
    """The number of clusters or components that an estimator was told; None if it chooses it."""
    for name in ("n_clusters", "n_components"):
        value = getattr(estimator, name, None)
        if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
            return int(value)
    return None


def _public_rows(
    estimator: BaseDPEstimator, X_public: ArrayLike | None, n_features: object, n_clusters: object
) -> np.ndarray | tuple[int, int]:
    """The rows of the user, or the numbers of features and clusters of a mixture to be made up."""
    if X_public is not None:
        for name, value in (("n_features", n_features), ("n_clusters", n_clusters)):
            if value is not None:
                raise TypeError(
                    f"{name} is only for X_public=None; otherwise the rows determine it."
                )
        return read_table(X_public, "X_public")
    if n_features is None:
        raise TypeError("X_public must be public rows; without them, n_features must be given.")
    if n_clusters is None:
        n_clusters = _clusters_of(estimator)
        if n_clusters is None:
            raise TypeError(
                "n_clusters must be given if neither the rows nor the estimator determine it."
            )
    return (
        check_integer(n_features, "n_features", low=1, high=MOST_FEATURES),
        check_integer(n_clusters, "n_clusters", low=1, high=MOST_CLUSTERS),
    )


def synthetic_rows(
    shape: tuple[int, int], n_units: int, *, exact: bool, seed: int | None
) -> np.ndarray:
    """Rows of round, separated Gaussian clusters of one size: as many as they stand for if `exact`,
    or fewer, with noise scaled to their number."""
    n_features, n_clusters = shape
    size = n_units if exact else min(n_units, max(_ROWS, _ROWS_PER_CLUSTER * n_clusters))
    X, _ = make_blobs(size, centers=_separated(n_features, n_clusters, seed), random_state=seed)
    return X


def _inside_bounds(X: np.ndarray, estimator: BaseDPEstimator) -> np.ndarray:
    """Move and scale the mixture into the public bounds of an estimator, which would clip it."""
    domain = estimator._domain(X.shape[1])
    if domain is None:
        return X
    X = X - (X.min(axis=0) + X.max(axis=0)) / 2
    if domain.low is None or domain.high is None:
        return domain.center + X * (domain.radius / np.linalg.norm(X, axis=1).max())
    # One factor for all columns keeps the clusters round; a side of length zero holds one value.
    sides = (domain.high - domain.low) / 2
    wide = sides > 0
    factor = (sides[wide] / np.abs(X).max(axis=0)[wide]).min(initial=np.inf)
    return domain.center + X * np.where(wide, factor, 0.0)


def _separated(n_features: int, n_clusters: int, seed: int | None) -> np.ndarray:
    """Centers at random in a cube, which grows until no two of them are close."""
    side: Any = _SEPARATION
    options = {"n_samples": n_clusters, "n_features": n_features, "random_state": seed}
    while True:
        # With a spread of zero the rows are the centers, one for each cluster.
        centers = make_blobs(
            **options, centers=n_clusters, cluster_std=0.0, center_box=(0, side), shuffle=False
        )[0]
        if n_clusters == 1 or pdist(centers).min() >= _SEPARATION:
            return centers
        side *= 1.1  # with a seed, the same draw in a larger cube: it gets there


# -- metrics ---------------------------------------------------------------------------------------


# The label of ratios of costs; displays write them as what is lost, in percent.
COST = "cost over cost without privacy"

# Parameters that mean the same without privacy. Nothing else is handed over.
_SHARED = ("n_clusters", "n_components", "covariance_type", "whiten", "assume_centered")
# One start may end in a poor basin, and private fits would then seem better than they are.
_STARTS = {"KMeans": 10, "GaussianMixture": 5}
# From measurements of the engine: extra cost over the square of the noise, see `cost_floor`.
_FLOOR = 1.4


@dataclass(frozen=True)
class Yardstick:
    """The metric that fits are measured by."""

    label: str  # in words, for an axis
    value: Callable[[Any], float]  # from a fitted estimator to a number
    reference: float  # the number of the non-private twin; NaN where there is none
    # whether numbers are costs over that of the twin, which `cost_floor` bounds
    is_cost: bool = False


def yardstick(
    estimator: BaseDPEstimator, X: np.ndarray, metric: Callable[..., Any] | None, seed: int | None
) -> Yardstick:
    """The metric of the user, or the score compared with that of the non-private counterpart: a
    ratio of costs for k-means, a difference of log-densities for others."""
    alone = getattr(estimator, "metric", "euclidean") != "euclidean"
    if metric is None and alone:
        raise TypeError("metric must be given for an estimator whose distance is not Euclidean.")
    twin = None if alone else _fitted_twin(estimator, X, seed)
    # A function of the user may measure anything; how it compares is for the user to see.
    if metric is not None:
        if not callable(metric):
            raise TypeError("metric must be None or a function of a fitted estimator and rows.")
        score = math.nan if twin is None else _number(metric(twin, X))
        name = getattr(metric, "__name__", "metric").strip("<>")
        return Yardstick(name.replace("_", " "), lambda model: _number(metric(model, X)), score)
    if twin is None or not hasattr(twin, "score"):
        raise TypeError(f"metric must be given: {type(estimator).__name__} has no score.")
    with np.errstate(all="ignore"):  # what overflows is refused by name
        best = float(twin.score(X))
    if not math.isfinite(best):
        raise ValueError("X_public: its rows are too large for a score.")
    if estimator._replaces != "KMeans":
        label = "log-density lost per row"
        return Yardstick(label, lambda model: best - float(model.score(X)), 0.0)
    if best == 0:
        raise ValueError("X_public: its cost without privacy is zero; give a metric.")
    return Yardstick(COST, lambda model: float(model.score(X)) / best, 1.0, is_cost=True)


def _number(value: Any) -> float:
    """Return the result of a metric as a float; an error names the metric and not its value."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        kind = type(value).__name__
    raise TypeError(f"metric must return a number, got {kind}.")


def _fitted_twin(
    estimator: BaseDPEstimator, X: np.ndarray, seed: int | None
) -> BaseEstimator | None:
    """The class that an estimator takes the place of, fitted on public rows; None without one."""
    name = getattr(estimator, "_replaces", "")
    if not name:
        return None
    kind = REPLACED[name][0]
    known = inspect.signature(kind).parameters
    options = {each: getattr(estimator, each) for each in _SHARED if hasattr(estimator, each)}
    options = {each: value for each, value in options.items() if each in known}
    for each in ("n_clusters", "n_components"):
        if isinstance(options.get(each), str | tuple | list):
            raise TypeError(f"{each} must be a number: a curve compares fits with the same value.")
    if name in _STARTS:
        options["n_init"] = _STARTS[name]
    if "random_state" in known:
        options["random_state"] = seed
    try:
        with np.errstate(all="ignore"):
            return kind(**options).fit(X)
    except ValueError as error:  # such as fewer rows than clusters
        raise ValueError(f"X_public: {error}") from error


def cost_floor(
    estimator: BaseDPEstimator, plan: PrivacyPlan, n_features: int, n_units: int
) -> float:
    """A cost over the non-private one which no fit of this plan gets below, by its noise alone, or
    NaN.

    With the share rho_s of Lloyd's sums, and what was planned to refine centers where columns are
    alike, mu^2 = 2 rho_s. Each of the k centers has noise of standard deviation nu = sqrt(d) k / (n
    mu), in the scale of the clusters, and the cost exceeds the best by about 1.4 nu^2."""
    spent = {entry.name: entry.rho for entry in plan.entries}
    n_clusters = _clusters_of(estimator)
    if "lloyd sums" not in spent or n_clusters is None:
        return math.nan
    iterations = sum(rho for name, rho in spent.items() if name.startswith("lloyd "))
    rho = spent["lloyd sums"] * (1 + spent.get(REFINEMENT, 0.0) / iterations)
    nu = math.sqrt(n_features) * n_clusters / (n_units * math.sqrt(2 * rho))
    return 1 + _FLOOR * nu**2


# -- curve -----------------------------------------------------------------------------------------


_MOST_REPEATS = 10_000
_MOST_UNITS = 2**53  # beyond it, floats cannot count


@dataclass(frozen=True, eq=False)
class PrivacyUtilityCurve:
    """How good fits of an estimator are at each epsilon, on public rows.

    Parameters
    ----------
    epsilons : ndarray of shape (n_epsilons,)
        Increasing.
    values : ndarray of shape (n_epsilons, n_repeats)
        The metric of each fit.
    reference : float
        The metric of the non-private counterpart, NaN without one.
    floor : ndarray of shape (n_epsilons,) or None
        Lower bound for the k-means cost of any fit: the cost of noise alone. Missed clusters and
        bad starts add to it.
    metric : str
        What was measured, in words.
    estimator : str
        Name of the class.
    n_units : int
        Number of private rows that the curve describes.
    synthetic : bool
        Whether the rows are synthetic because no public ones were given.
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
    """Compute how good a fit will be at each epsilon, from public rows and without any charge.

    The estimator is fitted on public rows that stand for `n_units` private ones. If their numbers
    differ, the budget of the fits is scaled, so that the noise affects these rows as much as the
    noise of the real fit will affect the private rows.

    Parameters
    ----------
    estimator : BaseDPEstimator
        Not changed; its own budget, ledger and random state are not used.
    X_public : array-like of shape (n_samples, n_features), optional
        Public rows of the same kind; never private rows, not even a small sample. There must be
        `n_units` of them where noise does not scale with the number of rows: for aggregates of
        blocks, and for `DPKMeans` with bounds and one or two features. None: a synthetic mixture of
        separated clusters is used.
    n_units : int
        Approximate number of private rows. Public: do not count the rows for this.
    epsilons : iterable of float, default=(0.1, 0.2, 0.5, 1, 2, 4, 8)
        Increasing.
    metric : callable, optional
        ``metric(fitted, X)`` is a number. By default, the estimator's `score` compared with that of
        its non-private counterpart: the ratio of costs for k-means, the difference of log-densities
        for others.
    n_repeats : int, default=5
        Number of fits at each epsilon, each with fresh noise.
    n_features, n_clusters : int, optional
        Of the mixture, for ``X_public=None``; `n_clusters` is that of the estimator by default.
    random_state : int, RandomState instance or Generator, optional
        Makes the curve reproducible. This is safe, because no private rows are used.

    Returns
    -------
    curve : PrivacyUtilityCurve
        With `to_frame()`; `PrivacyUtilityDisplay.from_curve` draws it.

    Raises
    ------
    ValueError, TypeError
        The message names the parameter. One reason is noise that is not Gaussian: its effect does
        not scale, so there must be as many public rows as private ones.

    Notes
    -----
    The curve describes the given rows. Private rows that are less clearly clustered lose more; the
    floor holds for them, too.

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
    rows = _public_rows(estimator, X_public, n_features, n_clusters)
    synthetic = isinstance(rows, tuple)
    if isinstance(rows, tuple):
        plans = (_at(estimator, epsilon).privacy_plan(rows[0]) for epsilon in levels)
        exact = not all(_scales_freely(estimator, plan) for plan in plans)
        rows = synthetic_rows(rows, n_units, exact=exact, seed=mixture_seed)
        rows = _inside_bounds(rows, estimator)
    # Refusals come before the first fit, and before that of the twin.
    points = list(settings(estimator, levels, rows.shape, n_units))
    measure = yardstick(estimator, rows, metric, mixture_seed)
    values = [
        [measure.value(model) for model in _fits(point, rows, fit_seeds[i :: len(points)])]
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
    """Return the epsilons as floats."""
    if not isinstance(estimator, BaseDPEstimator):
        raise TypeError("estimator must be a private estimator of this package, not a class.")
    check_integer(n_units, "n_units", low=1, high=_MOST_UNITS)
    check_integer(n_repeats, "n_repeats", low=1, high=_MOST_REPEATS)
    # An array without axes has the method of an iterable and cannot be iterated.
    if not isinstance(epsilons, Iterable) or getattr(epsilons, "ndim", 1) == 0:
        raise TypeError("epsilons must be numbers in increasing order.")
    levels = [check_positive("epsilons", value) for value in epsilons]
    if not levels or any(b <= a for a, b in zip(levels, levels[1:], strict=False)):
        raise ValueError("epsilons must be at least one number, in increasing order.")
    return levels


# -- budgets that have the same effect on fewer rows ----------------------------------------------


@dataclass(frozen=True)
class Setting:
    """One point of a curve: an estimator to fit on the public rows."""

    epsilon: float  # what the fit stands for
    plan: PrivacyPlan  # of the private fit that it stands for
    # not fitted, without a ledger, with the budget that the public rows need
    estimator: BaseDPEstimator


def _at(estimator: BaseDPEstimator, epsilon: float | None, rho: float | None = None) -> Any:
    """A fresh copy with another budget: no ledger hears of it, and it plans as with the ledger."""
    copied = clone(estimator).set_params(ledger=None, epsilon=epsilon, rho=rho)
    copied._outer_composition = estimator._composition()
    return copied


def _scales_freely(estimator: BaseDPEstimator, plan: PrivacyPlan) -> bool:
    """True if public rows of another number can stand for the private ones: where all noise is
    Gaussian and belongs to sums over all rows. An aggregate of blocks has noise for the number of
    blocks; a limit in rows, such as `min_samples`, would have to change with their number."""
    if hasattr(estimator, "min_samples"):
        return False
    return plan.gaussian and bool(getattr(estimator, "_replaces", ""))


def settings(
    estimator: BaseDPEstimator, epsilons: Sequence[float], shape: tuple[int, int], n_units: int
) -> Iterator[Setting]:
    """For each epsilon, what to fit on public rows for `n_units` private ones, or a ValueError."""
    n_public, n_features = shape
    for epsilon in epsilons:
        private = _at(estimator, epsilon)
        plan = private.privacy_plan(n_features)
        if n_public == n_units:  # as many rows need no scaling, whatever the noise
            yield Setting(epsilon, plan, private)
            continue
        if not _scales_freely(estimator, plan):
            raise ValueError(
                f"X_public: the noise of {type(estimator).__name__} at epsilon = {epsilon:g} does "
                "not scale with the number of rows; give n_units rows instead."
            )
        # The cost of the plan, not of the target: failure probabilities keep a part for themselves.
        rho = plan.rho * (n_units / n_public) ** 2
        scaled = _at(estimator, None, rho)
        _check_same_releases(scaled, plan, n_features)
        yield Setting(epsilon, plan, scaled)


def _check_same_releases(scaled: BaseDPEstimator, plan: PrivacyPlan, n_features: int) -> None:
    """Refuse a budget at which the estimator would take another way than the private fit."""
    try:
        scaled_plan = scaled.privacy_plan(n_features)
    except ValueError as error:
        raise ValueError(
            "n_units and epsilons: together too small or too large for the rows of X_public."
        ) from error
    releases = [
        [(entry.name, entry.mechanism) for entry in each.entries] for each in (scaled_plan, plan)
    ]
    if releases[0] != releases[1]:
        raise ValueError(
            f"X_public: {type(scaled).__name__} uses a different algorithm at the scaled budget; "
            "give n_units rows instead."
        )


def _fits(setting: Setting, X: np.ndarray, fit_seeds: Sequence[int | None]) -> Iterator[Any]:
    """Fits of one setting, each with noise of its own, in threads. The rows are public: seeds and
    poor answers give no warning; reports and logs, of scaled budgets, are dropped."""
    for seed in fit_seeds:
        model = clone(setting.estimator).set_params(random_state=seed)
        model._outer_composition = setting.estimator._outer_composition
        with overheard(), warnings.catch_warnings(record=True) as caught:
            model.fit(X)
        for each in caught:
            if not issubclass(each.category, SeededNoiseWarning | UtilityWarning):
                warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
        yield model


def seeds(random_state: object, n_seeds: int) -> list[int | None]:
    """Seeds of fits and mixtures that do not repeat, not consecutive ones; None of nothing."""
    seed = seed_of(random_state)
    if seed is None:
        return [None] * n_seeds
    texts = [f"sklearn_dp/utility_curve/{seed}/{i}" for i in range(n_seeds)]
    # 31 bits: scikit-learn's own estimators take no more than 32.
    return [int.from_bytes(sha256(text.encode()).digest()[:4], "big") >> 1 for text in texts]


# -- pictures --------------------------------------------------------------------------------------


ACCENT, OTHER = "#0072b2", "#d55e00"  # blue and vermilion
INK, MUTED, PALE = "#1d2433", "#6b7280", "#d9dce2"
COLORS = (ACCENT, OTHER, "#009e73", "#cc79a7", "#e69f00", "#56b4e9", MUTED, INK)

# For pictures that are drawn as a whole: those of the examples and benchmarks.
SETTINGS: dict[str, Any] = {
    "font.family": "DejaVu Sans", "font.size": 10, "text.color": INK,
    "axes.edgecolor": PALE, "axes.labelcolor": INK, "axes.axisbelow": True,
    "axes.spines.top": False, "axes.spines.right": False,
    "axes.titlesize": 11, "axes.titleweight": "bold", "axes.titlelocation": "left",
    "axes.titlepad": 9, "axes.titlecolor": INK,
    "xtick.color": MUTED, "ytick.color": MUTED, "xtick.labelcolor": INK, "ytick.labelcolor": INK,
    "grid.color": PALE, "grid.linewidth": 0.6, "lines.markersize": 5,
    "legend.frameon": False, "legend.fontsize": 9, "legend.handlelength": 1.6,
    "legend.columnspacing": 1.4, "savefig.facecolor": "white",
}  # fmt: skip


def has_matplotlib() -> bool:
    """True if pictures can be drawn."""
    return importlib.util.find_spec("matplotlib") is not None


def axes_for(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """The axes to draw on, made if there are none (in inches), in the look of this package."""
    # By name, when a picture is drawn: the package and type checkers work without Matplotlib.
    try:
        pyplot: Any = importlib.import_module("matplotlib.pyplot")
    except ImportError as error:
        raise ImportError(
            "pictures need Matplotlib: python -m pip install 'sklearn-dp[plot]'"
        ) from error
    if ax is None:
        _, ax = pyplot.subplots(figsize=size, layout="constrained")
    if not hasattr(ax, "plot"):
        raise TypeError(f"ax must be axes of Matplotlib, got {type(ax).__name__}.")
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(PALE)
    ax.tick_params(colors=MUTED, labelcolor=INK)
    ax.set_axisbelow(True)  # lines of the grid belong behind the data
    return ax


class Display:
    """Base class of the plots: `_size` of a new figure, and `_draw` on axes."""

    ax_: Axes
    figure_: Any

    def _size(self) -> tuple[float, float]:
        raise NotImplementedError

    def _draw(self, ax: Axes) -> None:
        raise NotImplementedError

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        self : object
            With the artists as attributes.
        """
        ax = axes_for(ax, self._size())
        self.ax_, self.figure_ = ax, ax.figure
        self._draw(ax)
        return self


def title(ax: Axes, text: str, lines_below: int = 0) -> None:
    """A title at the left, with room for lines of a legend below, between it and the axes."""
    pad = 8 + 17 * lines_below
    ax.set_title(text, loc="left", fontsize=11, fontweight="bold", color=INK, pad=pad)


def legend_above(ax: Axes, columns: int) -> None:
    """A legend of all artists with labels between title and axes, where no data are."""
    ax.legend(
        loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=columns, frameon=False, fontsize=8.5,
        borderaxespad=0.2, handlelength=1.5, handletextpad=0.5, columnspacing=1.2,
    )  # fmt: skip


def noisy_number(value: float, error: float) -> str:
    """A noisy number, without digits that are noise.

    >>> noisy_number(12345.0, 20.0), noisy_number(-3.0, 20.0), noisy_number(4.0, 0.1)
    ('12,340', '0', '4')
    """
    step = 10.0 ** max(0, int(np.floor(np.log10(max(error, 1.0)))))
    return f"{max(round(value / step) * step, 0.0):,.0f}"


def plain_text(text: str) -> str:
    """A text in which Matplotlib finds no formula."""
    return text.replace("$", r"\$")
