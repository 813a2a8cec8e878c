"""Private quantiles of columns, and a scaler by medians and ranges between quartiles.

All quantiles, at any level, come from a few releases. Released are noisy *ranks*: for each column,
how many units are below each edge of 1,023 bins. Every quantile is then read off, with an interval
(Woodruff's: the values at the rank, less and plus what noise and sampling may move it by).

**Noise.** Ranks are released through a root of sums (`sklearn_dp._queries.ranks`): 3.3 times the
noise of a count, where noise on the bins would add up to 32 times. Pure differential privacy has
Laplace noise on bins and blocks of them, which comes to 8.6 times that of a count in the mean.

**Bins.** A first release has coarse bins: equal ones of the public bounds, or else of a geometric
grid of both signs. The next two each divide the part that holds the quantiles, by ranks that are
released and by their noise: whole years in a box of a billion are told apart.
"""

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, cast

import numpy as np
from scipy.stats import norm
from sklearn.isotonic import isotonic_regression
from sklearn.preprocessing import RobustScaler
from sklearn.utils.validation import check_is_fitted

from .._aggregate.shared.advice import Budget, advice, is_known
from .._base import BaseWeighted, Bounds, LedgerLike, RandomStateLike, WithoutDelta, check_real
from .._costs.numbers import sum_down
from .._costs.plan import PlanEntry
from .._dropin import Replacing
from .._intervals import StandardErrors
from .._privacy._grid import Domain
from .._privacy._session import PrivacySession
from .._privacy.mechanisms.pure import release_laplace
from .._queries._query import TableRows
from .._queries.ranks import BLOCK, ColumnBlocks, ColumnRanks, prefix_noise, prefix_of_blocks
from .._status import Message, Status
from ._scaling import Scaling

_ZOOM, _RANKS = "coarse ranks", "ranks"
_N_ZOOMS = 2
_ZOOM_SHARE = 0.2  # of both
_PURE_ZOOM = 0.125  # of epsilon, for each where all noise has Laplace's law
_BINS = 1024
_OCTAVE = 4  # bins of the geometric grid, from 2^-63.75 to 2^63.75
_MARGIN = 4.0  # standard deviations of a coarse rank that are kept about the quantiles
_NIL = 2.0**-50  # without bounds: magnitudes that are not told from 0
_LEVEL = float(norm.ppf(0.975))
_WORDS = "root of the features: a unit adds to each column at most one column of the root of sums"


# -- quantiles -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Quantiles:
    """Released quantiles of columns."""

    values: np.ndarray  # (n_levels, d)
    # As estimates of a population: noise, sampling, width of bins. Infinite: no end of an interval.
    errors: np.ndarray
    rank_errors: np.ndarray  # standard deviation of the noise in the share of units below a value
    resolution: np.ndarray  # (d,), width of the bins
    at_bound: np.ndarray  # (n_levels, d): at a bound other than 0, so that rows may lie beyond it
    hidden: np.ndarray  # (n_levels, d): noise hid the part of the column to divide
    size: float  # released number of units
    size_sd: float
    too_few: float  # so many times the units would be enough to see the quantiles


@dataclass(frozen=True)
class _Ranks:
    """Released numbers of units below edges, in one round."""

    edges: np.ndarray  # (d, 1023), increasing
    below: np.ndarray  # (d, 1024), increasing: units below each edge, and at the end all of them
    size: float
    sigma: float  # standard deviation of the noise of a number
    pure: bool

    def sd(self, level: float) -> float:
        """Largest standard deviation of a rank less `level` times the number of units."""
        return self.sigma * _rank_noise(level, len(self.edges), self.pure)

    def sampling(self, level: float) -> float:
        """How far sampling moves a rank at the most, at 95%."""
        # Weights are at most 1, so their squares sum to no more than they do: the error of a share
        # of weighted units is at most this.
        return _LEVEL * math.sqrt(self.size * level * (1 - level))

    def bins(self, column: int, rank: float, side: Literal["left", "right"] = "left") -> int:
        """The bin in which a column reaches a rank ("left"), or exceeds it ("right")."""
        return min(int(np.searchsorted(self.below[column], rank, side)), _BINS - 1)

    def value(self, column: int, rank: float) -> float:
        """The value at a rank, within its bin in proportion; an edge if it is beyond all."""
        edges, below, place = self.edges[column], self.below[column], self.bins(column, rank)
        if place in (0, _BINS - 1):
            return float(edges[0 if place == 0 else -1])
        part = (rank - below[place - 1]) / (below[place] - below[place - 1])
        return float(edges[place - 1] + part * (edges[place] - edges[place - 1]))


def quantile_entries(rho: float) -> tuple[PlanEntry, ...]:
    """Plan entries of `fit_quantiles`, of sum at most rho."""
    zoom = _ZOOM_SHARE * rho
    ranks = sum_down([rho, -zoom])
    return (
        PlanEntry.gaussian(_ZOOM, zoom, _WORDS, uses=_N_ZOOMS),
        PlanEntry.gaussian(_RANKS, ranks, _WORDS),
    )


def pure_entries(epsilon: float) -> tuple[PlanEntry, ...]:
    """Plan entries of `fit_quantiles` without a delta."""
    zoom = _PURE_ZOOM * epsilon
    shares = {f"{_ZOOM} {i + 1}": zoom for i in range(_N_ZOOMS)}
    shares[_RANKS] = sum_down([epsilon, *(-share for share in shares.values())])
    words = "twice the features: a unit adds to each column one bin and one block"
    return tuple(PlanEntry.of_epsilon(name, share, words) for name, share in shares.items())


def fit_quantiles(
    session: PrivacySession, table: TableRows, levels: Sequence[float], domain: Domain | None
) -> Quantiles:
    """Release quantiles of the columns of a table at some levels in (0, 1)."""
    low, high = _ends(domain, table.n_features)
    edges, spread = _first_edges(domain, low, high), np.zeros(table.n_features)
    for i in range(_N_ZOOMS):
        coarse = _release(session, _ZOOM, table, edges, (low, high), i)
        spread = np.maximum(spread, _least_spread(coarse, levels))
        edges = _between(*_region(coarse, levels, domain is not None))
    ranks = _release(session, _RANKS, table, edges, (low, high))
    estimates = np.array(
        [[_read(ranks, j, q, low[j], high[j]) for j in range(table.n_features)] for q in levels]
    )
    # An answer of a few bins that are wide beside it, and beside what else there is in the column
    # (that of many zeros may be 0, with others far away): no round has seen it.
    nil = _NIL if domain is None else (high - low) / 2**10
    values = np.clip(estimates[..., 0], low, high)
    least = np.maximum(np.abs(values).max(axis=0), nil)
    scale = np.maximum.reduce([least, spread, _least_spread(ranks, levels)])
    resolution = (edges[:, -1] - edges[:, 0]) / (_BINS - 2)
    # Within bounds coarse bins are of use, too; without any, the columns have to be found.
    needed = coarse if domain is None else ranks
    return Quantiles(
        values,
        estimates[..., 1],
        np.array([ranks.sd(q) for q in levels]) / max(ranks.size, 1.0),
        resolution,
        (low < high)
        & ((low != 0) & (values <= low + resolution) | (high != 0) & (values >= high - resolution)),
        (estimates[..., 2] > 0) | (estimates[..., 3] > 0) & (estimates[..., 1] > scale / 10),
        ranks.size,
        ranks.sigma * float(np.linalg.norm(_decode(ranks.pure)[-1])) / math.sqrt(table.n_features),
        # Three standard deviations of a rank, relative to the units that lie beyond it.
        max(3 * needed.sd(q) / (min(q, 1 - q) * max(ranks.size, 1.0)) for q in levels),
    )


def _ends(domain: Domain | None, d: int) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest value that a column may have."""
    if domain is None:
        return np.full(d, -np.inf), np.full(d, np.inf)
    if domain.low is None or domain.high is None:
        return np.full(d, -domain.radius), np.full(d, domain.radius)
    return domain.low, domain.high


def _first_edges(domain: Domain | None, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Public edges of the bins of all columns: those of the first release."""
    if domain is not None:
        # Values at the upper bound have a bin of their own.
        return np.column_stack([_between(low, high, _BINS - 2), np.nextafter(high, np.inf)])
    half = (_BINS - 2) // 2
    positive = 2.0 ** ((np.arange(half) - half // 2) / _OCTAVE)
    return np.tile(np.concatenate([-positive[::-1], [0.0], positive]), (len(low), 1))


def _between(low: np.ndarray, high: np.ndarray, n: int = _BINS - 1) -> np.ndarray:
    """Edges of equal bins from low to high."""
    return np.minimum(np.linspace(low, high, n, axis=1), high[:, None])


@lru_cache(maxsize=2)
def _decode(pure: bool) -> np.ndarray:
    """The matrix that makes ranks of what is released of a column."""
    if not pure:
        return prefix_noise(_BINS)
    return prefix_of_blocks(np.eye(_BINS + _BINS // BLOCK)).T


@lru_cache(maxsize=256)
def _rank_noise(level: float, d: int, pure: bool) -> float:
    """Return the noise of a rank for noise of scale 1, where the number of units is a mean over d
    columns."""
    decode = _decode(pure)
    norm = np.linalg.norm(decode - level / d * decode[-1], axis=1).max()
    # The ranks of the other columns have noise of their own.
    others = level / d * math.sqrt(d - 1) * float(np.linalg.norm(decode[-1]))
    return math.hypot(norm, others)


def _release(
    session: PrivacySession,
    entry: str,
    table: TableRows,
    edges: np.ndarray,
    ends: tuple,
    number: int | None = None,
) -> _Ranks:
    """Ranks about some edges, in round `number` of several."""
    pure = entry not in session.plan or session.plan[entry].epsilon is not None
    if pure:
        name = entry if number is None else f"{entry} {number + 1}"
        epsilon = cast(float, session.plan[name].epsilon)
        answer = table.ask(ColumnBlocks(edges, *ends))
        released = release_laplace(session, name, answer, epsilon=epsilon)
        sigma = math.sqrt(2) * answer.claim.l1 * answer.claim.unit / epsilon
    else:
        rho = session.remaining(entry) / (1 if number is None else _N_ZOOMS - number)
        answer = table.ask(ColumnRanks(edges, *ends))
        released = session.release(entry, answer, rho=rho)
        sigma = answer.claim.l2 * answer.claim.unit / math.sqrt(2 * rho)
    noisy = released @ _decode(pure).T
    below = np.array([isotonic_regression(each, y_min=0.0) for each in noisy])
    return _Ranks(edges, below, max(float(noisy[:, -1].mean()), 0.0), sigma, pure)


def _region(ranks: _Ranks, levels: Sequence[float], bounded: bool) -> tuple[np.ndarray, np.ndarray]:
    """Where the quantiles of each column may be, by released ranks and their noise."""
    least, most = min(levels) * ranks.size, (1 - max(levels)) * ranks.size
    below, above = (
        _MARGIN * ranks.sd(level) + ranks.sampling(level) for level in (min(levels), max(levels))
    )
    if not bounded:  # without bounds there is always something to leave out
        below, above = min(below, least / 2), min(above, most / 2)
    first, last = least - below, ranks.size - most + above
    ends = [
        (
            edges[max(ranks.bins(j, first, "right") - 1, 0)],
            edges[min(ranks.bins(j, last), _BINS - 2)],
        )
        for j, edges in enumerate(ranks.edges)
    ]
    low, high = np.array(ends).T
    return low, high


def _least_spread(ranks: _Ranks, levels: Sequence[float]) -> np.ndarray:
    """Return a lower bound on the standard deviation of each column, by ranks far from its
    quantiles.

    A share p beyond an edge and a share q on the other side of a quantile have, at a distance x of
    the two, a variance of at least p q / (p + q) x^2.
    """
    widths = np.zeros(len(ranks.edges))
    less = _MARGIN * max(ranks.sd(level) for level in levels)
    for column, (edges, below) in enumerate(zip(ranks.edges, ranks.below, strict=True)):
        for level, q, beyond, sign in (
            (max(levels), max(levels), below[-1] - below[:-1], 1.0),
            (min(levels), 1 - min(levels), below[:-1], -1.0),
        ):
            p = np.maximum(beyond - less, 0.0) / max(ranks.size, 1.0)
            apart = sign * (edges - ranks.value(column, level * ranks.size))
            squares = p * q / (p + q) * np.square(np.maximum(apart, 0.0))
            widths[column] = max(widths[column], math.sqrt(float(squares.max())))
    return widths


def _read(
    ranks: _Ranks, column: int, level: float, low: float, high: float
) -> tuple[float, float, bool, bool]:
    """A quantile of a column, its standard error; whether it is outside of all bins, or in few."""
    rank, edges = level * ranks.size, ranks.edges[column]
    reach = math.hypot(_LEVEL * ranks.sd(level), ranks.sampling(level))
    first, last = ranks.bins(column, rank - reach, "right"), ranks.bins(column, rank + reach)
    ends = np.concatenate([[low], edges, [high]])
    width = ends[last + 1] - ends[first] if last or high > low else 0.0
    value = ranks.value(column, rank)
    # An interval of the error is symmetric about the value: it has to reach the farther end, too.
    # All zeros of a column are at one edge of a bin, and a value is anywhere in it.
    farther = max(value - ends[first], ends[last + 1] - value) if width else 0.0
    bins = math.hypot(width / 2, _LEVEL * (edges[1] - edges[0]) / math.sqrt(12))
    outside = ranks.bins(column, rank) in (0, _BINS - 1) and low < high
    return value, max(farther, bins) / _LEVEL, outside, last - first < 3


# -- estimators ------------------------------------------------------------------------------------


_MOST = 100  # more levels than anybody reads
_NO_WIDTH = 2.0  # bins: a range of less is zero, as far as can be seen


class DPQuantiles(WithoutDelta, StandardErrors, BaseWeighted):
    """Medians, quartiles and other quantiles of columns, with differential privacy.

    All quantiles of a column are read off noisy ranks, the numbers of rows below each of a thousand
    values. Additional quantiles cost nothing, and a fit makes no assumptions about the columns:
    they may be skewed, mostly zero, rounded to a few values or constant, in units of any size.

    Parameters
    ----------
    quantiles : sequence of float, default=(0.25, 0.5, 0.75)
        Levels in (0, 1).
    epsilon : float, default=1.0
        Privacy budget of one fit.
    delta : float, default=1e-6
        Probability that the epsilon limit fails; keep it far below one over the number of units. 0
        is pure epsilon-DP, for a few columns.
    rho : float, optional
        Budget in zero-concentrated DP. Give it in place of `epsilon`.
    bounds : float or pair (low, high), optional
        Public bounds: a box of scalars or arrays of shape (n_features,), or the largest magnitude
        of all values. None: the columns may lie anywhere; a fit then needs about two to three times
        as many rows to find them.
    ledger : str, path or PrivacyLedger, optional
        Ledger with the total budget of many fits; charged before the data are read.
    max_weight : float, optional
        Public: weights are capped at this, and the noise is that for a row of this weight. None:
        an array of weights is refused.
    n_jobs : int, optional
        Number of threads. Results are bitwise identical for any value.
    random_state : int, RandomState instance or Generator, optional
        For tests: a seed voids the guarantee against anyone who knows it. None: system noise.

    Attributes
    ----------
    quantiles_ : ndarray of shape (n_quantiles, n_features)
        Released quantiles, in the units of the columns.
    quantiles_std_error_ : ndarray of shape (n_quantiles, n_features)
        Standard errors of `quantiles_` as estimates for a population (Woodruff's interval): they
        cover noise, sampling and the width of the bins. Infinite if no limit is visible.
    rank_std_error_ : ndarray of shape (n_quantiles,)
        Standard deviation of the noise in the share of units below a released quantile: .01 means
        that a median has between 48 and 52% of the units below it (95%).
    size_ : float
        Released noisy number of units, or, with `sample_weight`, their total weight.
    size_std_error_ : float
        Standard deviation of its noise.
    column_status_ : ndarray of str of shape (n_features,)
        For each column "ok"; "noise" if the noise hides the quantiles; or "bound" if one of them is
        at one of the `bounds`, so that rows may lie beyond it. (A bound of 0 is treated as a
        natural limit: a column that is mostly zero is "ok".)
    status_ : {"ok", "caution", "unusable"}
        The worth of the answer in one word.
    messages_ : tuple of Message
        What limits it: the `code`, `text`, `columns`, `action` and `severity` of each.
    privacy_report_ : PrivacyReport
        The guarantee, and every release that it covers.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If `X` has string column names.

    See Also
    --------
    DPRobustScaler : Scales columns by medians and interquartile ranges.
    FriendlyMean : Means of columns.

    Notes
    -----
    Guarantee: a fit is (epsilon, delta)-differentially private for adding or removing one row (with
    `groups`: all rows of a group, which together are treated as one) with any weight. All releases
    are Gaussian. Their noise does not depend on the number of quantiles, and grows with the square
    root of the number of columns. With ``delta=0`` they have Laplace noise, which for one column is
    about as large, and grows with the number of columns.

    References
    ----------
    * Fichtenberger, H., Henzinger, M. and Upadhyay, J. (2023). Constant matters: fine-grained error
      bound on differentially private continual observation. ICML.
    * Woodruff, R. S. (1952). Confidence intervals for medians and other position measures. Journal
      of the American Statistical Association 47.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dp import DPQuantiles
    >>> salary = np.random.default_rng(0).lognormal(10.5, 0.7, size=(20_000, 1))
    >>> model = DPQuantiles(epsilon=1.0, bounds=(0, 1e6)).fit(salary)
    >>> exact = np.quantile(salary, [0.25, 0.5, 0.75], axis=0)
    >>> bool(np.abs(model.quantiles_ / exact - 1).max() < 0.1)
    True
    """

    _with_errors = {"quantiles_": (-math.inf, math.inf), "size_": (0.0, math.inf)}
    _feature_axes = {"quantiles_": 1}

    def __init__(
        self,
        quantiles: Sequence[float] = (0.25, 0.5, 0.75),
        *,
        epsilon: float | None = 1.0,
        delta: float = 1e-6,
        rho: float | None = None,
        bounds: Bounds | None = None,
        ledger: LedgerLike | None = None,
        max_weight: float | None = None,
        n_jobs: int | None = None,
        random_state: RandomStateLike | None = None,
    ) -> None:
        super().__init__(epsilon, delta, rho, ledger, n_jobs, random_state)
        self.quantiles = quantiles
        self.bounds = bounds
        self.max_weight = max_weight

    def _levels(self) -> list[float]:
        """The levels, which have been checked."""
        levels = self.quantiles
        if not isinstance(levels, list | tuple | np.ndarray) or getattr(levels, "ndim", 1) != 1:
            raise TypeError(
                "quantiles must be a list of numbers in (0, 1), such as [0.5] for the median."
            )
        if not 1 <= len(levels) <= _MOST:
            raise ValueError(f"quantiles must have between 1 and {_MOST} levels.")
        return [check_real(level, "quantiles", low=0.0, high=1.0) for level in levels]

    def _check_parameters(self, n_features: int) -> None:
        self._levels()

    def _plan_entries(self, target: Any, n_features: int) -> tuple[PlanEntry, ...]:
        return pure_entries(target.epsilon) if self._pure else quantile_entries(target.to_rho())

    def _fit_table(self, table: TableRows, session: PrivacySession, progress: Any) -> None:
        result = fit_quantiles(session, table, self._levels(), self._domain(table.n_features))
        self._keep(result, table.units.unit_weight, session.budget_for)

    def _keep(self, result: Quantiles, unit_weight: float, budget: Budget) -> None:
        """Set the fitted attributes."""
        self.quantiles_, self.quantiles_std_error_ = result.values, result.errors
        self.rank_std_error_ = result.rank_errors
        self.size_ = result.size * unit_weight
        self.size_std_error_ = result.size_sd * unit_weight
        hidden = result.hidden.any(axis=0) | (result.too_few > 1)
        codes = np.where(hidden, "noise", np.where(result.at_bound.any(axis=0), "bound", "ok"))
        self.column_status_ = codes
        self.messages_ = self._judged(result, budget)

    def _judged(self, result: Quantiles, budget: Budget) -> Status:
        """Return the messages about columns that cannot be used."""
        if result.too_few > 1:
            text = f"too few {budget.units} for this budget: the ranks are mostly noise"
            size = result.size if is_known(result.size, result.size_sd) else None
            action = advice(result.too_few, budget, size)
            return Status([Message("few_rows", text, (), action, "all")])
        codes, names = self.column_status_, self._column_names
        noisy, at_bound = codes == "noise", codes == "bound"
        words = "the quantiles of these columns are mostly noise"
        action = f"use narrower bounds or more {budget.units}"
        status = Status().add_columns("noisy_columns", words, names, noisy, action, "part")
        words = "quantiles of these columns are at a bound, and may lie beyond it"
        action = "use wider bounds, unless no value can lie there"
        return status.add_columns("quantiles_at_bound", words, names, at_bound, action, "part")


class DPRobustScaler(Replacing, Scaling, DPQuantiles):
    """Scale columns by private medians and interquartile ranges.

    The private counterpart of :class:`sklearn.preprocessing.RobustScaler`: it makes columns of
    different units comparable, and a few outliers move its results by only a few ranks.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit.
    delta : float, default=1e-6
        Probability that the epsilon limit fails; keep it far below one over the number of units. 0
        is pure epsilon-DP, for a few columns.
    rho : float, optional
        Budget in zero-concentrated DP. Give it in place of `epsilon`.
    bounds : float or pair (low, high), optional
        Public bounds; see :class:`DPQuantiles`.
    ledger : str, path or PrivacyLedger, optional
        Ledger with the total budget of many fits; charged before the data are read.
    with_centering : bool, default=True
        Subtract the medians.
    with_scaling : bool, default=True
        Divide by the ranges.
    quantile_range : pair of float, default=(25.0, 75.0)
        The percentiles whose difference is the range: one below 50 and one above.
    unit_variance : bool, default=False
        Scale so that normally distributed columns have variance 1.
    max_weight : float, optional
        Public: weights are capped at this, and the noise is that for a row of this weight. None:
        an array of weights is refused.
    n_jobs : int, optional
        Number of threads. Results are bitwise identical for any value.
    random_state : int, RandomState instance or Generator, optional
        For tests: a seed voids the guarantee against anyone who knows it. None: system noise.

    Attributes
    ----------
    center_ : ndarray of shape (n_features,) or None
        Released medians; None without centering.
    center_std_error_ : ndarray of shape (n_features,) or None
        Their standard errors.
    scale_ : ndarray of shape (n_features,) or None
        Released ranges; 1 for a range without visible width, such as that of a column that is
        mostly zero. None without scaling.
    scale_std_error_ : ndarray of shape (n_features,) or None
        Upper bounds for their standard errors.
    column_status_ : ndarray of str of shape (n_features,)
        See :class:`DPQuantiles`; also "constant" if the range has no visible width.
    quantiles_, quantiles_std_error_, rank_std_error_, size_, size_std_error_, status_, \
messages_, privacy_report_ :
        See :class:`DPQuantiles`; `quantiles_` are the lower quantile, the median, and the upper
        one.

    See Also
    --------
    PublicScaler : Columns with known bounds, at no cost.
    DPStandardScaler : Scales by means and standard deviations.
    DPQuantiles : Quantiles at any levels.

    Notes
    -----
    Guarantee: that of :class:`DPQuantiles`. Each row is transformed by a function of that row and
    of released values, so a private estimator after this step keeps its guarantee, and the two
    costs add up.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn_dp import DPKMeans
    >>> from sklearn_dp import DPRobustScaler
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.normal(45, 15, 9000), rng.lognormal(10.5, 0.7, 9000)])
    >>> scaler = DPRobustScaler(epsilon=0.3, bounds=([15, 0], [95, 1e6]))
    >>> model = make_pipeline(scaler, DPKMeans(3, epsilon=0.7)).fit(X)
    >>> bool(40 < model[0].center_[0] < 50)
    True
    """

    _replaces = "RobustScaler"
    _with_errors = {
        "center_": (-math.inf, math.inf),
        "scale_": (0.0, math.inf),
        "size_": (0.0, math.inf),
    }
    _feature_axes = {"center_": 1, "scale_": 1}

    def _center_and_scale(self) -> tuple[Any, Any]:
        center, scale = self.center_, self.scale_
        return 0.0 if center is None else center, 1.0 if scale is None else scale

    def __init__(
        self,
        *,
        epsilon: float | None = 1.0,
        delta: float = 1e-6,
        rho: float | None = None,
        bounds: Bounds | None = None,
        ledger: LedgerLike | None = None,
        with_centering: bool = True,
        with_scaling: bool = True,
        quantile_range: tuple[float, float] = (25.0, 75.0),
        unit_variance: bool = False,
        max_weight: float | None = None,
        n_jobs: int | None = None,
        random_state: RandomStateLike | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.bounds = bounds
        self.ledger = ledger
        self.with_centering = with_centering
        self.with_scaling = with_scaling
        self.quantile_range = quantile_range
        self.unit_variance = unit_variance
        self.max_weight = max_weight
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _levels(self) -> list[float]:
        pair = self.quantile_range
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise TypeError("quantile_range must be a pair (low, high).")
        low = check_real(pair[0], "quantile_range: low", low=0.0, high=50.0)
        high = check_real(pair[1], "quantile_range: high", low=50.0, high=100.0)
        if low / 100 == 0.0 or high / 100 == 1.0:
            raise ValueError("quantile_range: no end may be 0 or 100.")
        return [low / 100, 0.5, high / 100]

    def _check_parameters(self, n_features: int) -> None:
        super()._check_parameters(n_features)
        for name in ("with_centering", "with_scaling", "unit_variance"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise TypeError(f"{name} must be a bool.")

    def _keep(self, result: Quantiles, unit_weight: float, budget: Budget) -> None:
        super()._keep(result, unit_weight, budget)
        low, _, high = self._levels()
        unit = float(norm.ppf(high) - norm.ppf(low)) if self.unit_variance else 1.0
        width = result.values[2] - result.values[0]
        visible = width > _NO_WIDTH * result.resolution
        flat = ~visible & (self.column_status_ == "ok")
        self.column_status_ = np.where(flat, "constant", self.column_status_)
        if not self.messages_:
            words = "all quantiles of these columns are equal"
            action = "use DPStandardScaler if other values are rare"
            if self.bounds is not None:  # then bins of a wide box may be wider than a column
                words = f"{words}, or too close to tell apart"
                action = f"use narrower bounds, or {action.removeprefix('use ')}"
            about = words, self._column_names, flat, action
            self.messages_ = self.messages_.add_columns("single_value", *about)
        error = np.hypot(result.errors[0], result.errors[2])
        self.center_ = result.values[1].copy() if self.with_centering else None
        self.center_std_error_ = result.errors[1].copy() if self.with_centering else None
        self.scale_ = np.where(visible, width / unit, 1.0) if self.with_scaling else None
        self.scale_std_error_ = error / unit if self.with_scaling else None

    def to_sklearn(self) -> RobustScaler:
        """Return the released scaler as a scikit-learn estimator.

        Returns
        -------
        scaler : sklearn.preprocessing.RobustScaler
            Fitted; it contains released values only.
        """
        check_is_fitted(self)
        words = ("with_centering", "with_scaling", "quantile_range", "unit_variance")
        scaler = RobustScaler(**{word: getattr(self, word) for word in words})
        for name in ("center_", "scale_", "n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(scaler, name, copy(getattr(self, name)))
        return scaler
