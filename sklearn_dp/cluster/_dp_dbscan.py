"""Density clusters with differential privacy: their number need not be known.

DBSCAN runs on the noisy counts of a released histogram, as post-processing:

* *Core*: a cell that is dense, with about `min_samples` rows within the radius of its middle (cells
  that the ball covers in part count in part), and that shows rows itself: the middle of a gap
  between two clusters has many rows around it.
* *Reachable*: dense cells within the radius of each other are in one cluster, and a point within
  the radius of a dense cell is in the cluster of the nearest one. Other points are *noise*.

Cells are as small as the noise lets them be, for a sum over the ball has more noise the smaller
they are. A cluster exceeds what noise alone makes of so many cells anywhere in the box.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.ndimage import label
from scipy.signal import fftconvolve
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree
from sklearn.base import ClusterMixin

from .._aggregate.columns.look import column_entries, look_at_columns
from .._base import BaseWeighted, Bounds, LedgerLike, RandomStateLike, WithoutDelta, check_real
from .._costs import accounting
from .._costs.budget import PrivacyBudget
from .._costs.numbers import sum_down
from .._costs.plan import Mechanism, PlanEntry
from .._dropin import Replacing
from .._intervals import StandardErrors
from .._privacy._entries import exact_integers
from .._privacy._session import PrivacySession
from .._privacy.mechanisms.pure import release_laplace
from .._queries._query import TableRows
from .._queries.columns import GridCells
from .._rows.single_rows import row_guard
from .._status import Message, Severity, Status

# The largest side of a cell in radii, for one feature and for more: a ball covers about ten cells
# of a line or of a plane.
_LINE, _SIDE = 0.25, 0.5
# Cells are smaller where the noise is small beside `min_samples`: this many times the ratio to the
# power 2 / 3 are in a ball. So each of them still stands out more from less noise, and not one of
# many bridges a gap. The second number of cells in a ball is as good as any larger one.
_CELLS_OF_DENSITY, _FINE = 1.5, 300.0
# What a core cell has itself: this part of the mean of the cells about it, and not so many standard
# deviations of its rows and noise less.
_OWN, _FEWER = 0.25, 1.5
# A single cell is enough to bridge a gap between two clusters, and there are many where noise could
# do so. What a core cell has is also so many standard deviations of the noise, as far as that is no
# more than this part of the mean: other cells of the same cluster stand in for those that fail.
_HIGH, _MOST = 8.0, 0.7
_FALSE = 0.05  # chance that noise alone makes a cluster


# -- clusters of cells -----------------------------------------------------------------------------


def grid_over(
    low: np.ndarray,
    high: np.ndarray,
    radius: float,
    sd: float,
    min_samples: float,
    most: int = GridCells.most,
) -> GridCells:
    """The grid over a box for counts with noise of standard deviation `sd`: of at most `most`
    cells, or, with a margin for the balls, four times as many."""
    d = len(low)
    in_ball = min(max(_CELLS_OF_DENSITY * (min_samples / sd) ** (2 / 3), 1.0), _FINE)
    volume = math.exp(d / 2 * math.log(math.pi) - math.lgamma(d / 2 + 1))  # of the unit ball
    side = min((volume / in_ball) ** (1 / d), _LINE if d == 1 else _SIDE)
    # Whole steps from one side, so that what is too fine is so at any noise.
    steps = math.ceil(math.log(side / _SIDE, 1.05))
    while True:
        side = radius * _SIDE * 1.05**steps
        cells = np.floor((high - low) / side) + 1
        margin = 2 * np.minimum(cells - 1, math.ceil(radius / side))
        if cells.prod() <= most and (cells + margin).prod() <= 4 * most:
            return GridCells(low, side, exact_integers(cells))
        steps += 1


@dataclass(frozen=True)
class DenseCells:
    """Clusters of cells, from released counts."""

    centers: np.ndarray  # (m, d), middles of the dense cells
    labels: np.ndarray  # (m,), of their clusters, by decreasing size
    sizes: np.ndarray  # (k,), of the rows that are predicted to be in a cluster
    sizes_sd: np.ndarray
    size: float  # of all rows in the box
    size_sd: float
    least: float  # rows within the radius that make a cell dense
    unsure: float  # share of the rows of dense cells where that is within the noise of the limit

    @property
    def n_clusters(self) -> int:
        return len(self.sizes)


def nearest_cluster(
    rows: np.ndarray, centers: np.ndarray, labels: np.ndarray, radius: float
) -> np.ndarray:
    """The cluster (n,) of the nearest dense cell within the radius of each row, -1 for none."""
    if not len(centers):
        return np.full(len(rows), -1, dtype=np.int32)
    _, nearest = KDTree(centers).query(rows, distance_upper_bound=radius)
    return np.append(labels, np.int32(-1))[nearest]


def dense_cells(
    grid: GridCells, counts: np.ndarray, sd: float, radius: float, min_samples: float
) -> DenseCells:
    """The clusters of noisy counts (n_cells,), each with noise of standard deviation `sd`."""
    shape, d = tuple(grid.shape.tolist()), len(grid.shape)
    counts = counts.reshape(shape)
    reach = max(radius / grid.side, 1.0)  # in sides; less is of no use
    distances = _distances(reach, shape)
    # Cells on the border count in part: a mean over balls of a radius half a side less to half a
    # side more, whose volume is then made that of the ball.
    shares = np.clip(reach + 0.5 - distances, 0.0, 1.0)
    inner, outer = max(reach - 0.5, 0.0), reach + 0.5
    shares *= (d + 1) * reach**d / (outer ** (d + 1) - inner ** (d + 1))
    around, ball = fftconvolve(counts, shares, "same"), float(shares.sum())
    noise = sd * math.sqrt(float(np.square(shares).sum()))
    # Sums of balls apart from each other are independent; the largest of m normal numbers is about
    # sqrt(2 log m) standard deviations.
    apart = max(2.0, counts.size / ball)
    least = max(float(min_samples), noise * math.sqrt(2 * math.log(apart)))
    mean = np.maximum(around / ball, 0.0)
    own = np.maximum(_OWN * mean, mean - _FEWER * np.sqrt(mean + sd**2))
    own = np.maximum(own, np.minimum(_HIGH * sd, _MOST * mean))
    dense = (around >= least) & (counts > own)
    places = np.argwhere(dense)
    labels = _joined(dense, distances <= reach)
    every = np.indices(shape).reshape(d, -1).T
    nearest = nearest_cluster(every, places, labels, reach)
    n_clusters, inside = int(labels.max(initial=-1)) + 1, nearest >= 0
    sizes = np.bincount(nearest[inside], counts.ravel()[inside], n_clusters)
    n_cells = np.bincount(nearest[inside], minlength=n_clusters)
    sizes_sd = sd * np.sqrt(n_cells)
    kept = np.flatnonzero(sizes >= np.maximum(least, _noise_alone(n_cells, counts.size) * sizes_sd))
    kept = kept[np.argsort(-sizes[kept], kind="stable")]
    number = np.full(n_clusters + 1, -1, dtype=np.int32)
    number[kept] = np.arange(len(kept), dtype=np.int32)
    labels = number[labels]
    return DenseCells(
        grid.low + (places[labels >= 0] + 0.5) * grid.side,
        labels[labels >= 0],
        sizes[kept],
        sizes_sd[kept],
        float(counts.sum()),
        sd * math.sqrt(counts.size),
        least,
        float(counts[dense & (around < least + noise)].sum() / max(counts[dense].sum(), sd)),
    )


def _distances(reach: float, shape: tuple[int, ...]) -> np.ndarray:
    """The distances, in sides, of a cell from those about it that may be within reach."""
    most = [min(n_cells - 1, math.ceil(reach)) for n_cells in shape]
    steps = np.ix_(*(np.arange(-each, each + 1.0) for each in most))
    return np.sqrt(sum(np.square(each) for each in steps))


def _noise_alone(n_cells: np.ndarray, places: int) -> np.ndarray:
    """Standard deviations (k,) that noise alone exceeds anywhere with a chance of `_FALSE` at most:
    Chernoff's bound of sums of Laplace noise. Gaussian sums are shorter."""
    powers = np.sqrt(2.0 * n_cells)[:, None] * np.linspace(0.005, 0.995, 199)
    moments = -n_cells[:, None] * np.log1p(-np.square(powers) / (2.0 * n_cells)[:, None])
    return ((math.log(places / _FALSE) + moments) / powers).min(axis=1)


def _joined(dense: np.ndarray, near: np.ndarray) -> np.ndarray:
    """Labels (m,) of dense cells, the same for those that the steps `near` connect."""
    # Axes of one cell have no steps.
    dense, near = np.atleast_1d(dense.squeeze()), np.atleast_1d(near.squeeze())
    found, n_found = label(dense)  # by cells side by side; longer steps join these
    links = [np.empty((2, 0), dtype=found.dtype)]
    steps = np.argwhere(near)[: np.count_nonzero(near) // 2]  # the others lead back
    for step in steps - np.array(near.shape) // 2:
        sides = list(zip(step.tolist(), dense.shape, strict=True))
        one = found[tuple(slice(max(-s, 0), n - max(s, 0)) for s, n in sides)]
        other = found[tuple(slice(max(s, 0), n - max(-s, 0)) for s, n in sides)]
        apart = (one != other) & (one > 0) & (other > 0)
        links.append(np.unique([one[apart], other[apart]], axis=1))
    joined = np.concatenate(links, axis=1)
    graph = coo_array((np.ones(joined.shape[1]), tuple(joined - 1)), (n_found, n_found))
    return connected_components(graph, directed=False)[1][found[dense] - 1]


# -- the estimator ---------------------------------------------------------------------------------


_CELLS = "cells"
_LOOK = 0.1  # of the budget, for the range of the columns where there are no bounds
_WIDEST = 0.75  # side of a cell, in radii, that still tells clusters apart
_ENOUGH = 1.6  # an eps of so many sides of the smallest cells has a grid
_MOST_FEATURES = 60  # an array of NumPy has at most 64 axes
_BEYOND = 0.02  # of the rows, outside the bounds: told
_UNSURE = 0.1  # of the rows in clusters: as many near the limit of the noise, and shapes are unsure


class DPDBSCAN(Replacing, WithoutDelta, StandardErrors, ClusterMixin, BaseWeighted):
    """Density-based clustering (DBSCAN) with differential privacy.

    A histogram over a grid is released once, and DBSCAN runs on its noisy counts: cells with enough
    rows around them are dense, dense cells within `eps` of each other form a cluster, and rows
    within `eps` of a dense cell belong to the nearest one. It is meant for up to four features: a
    grid over more has too many cells.

    Parameters
    ----------
    eps : float, default=0.5
        Radius of a neighborhood, in units of the columns: as in
        :class:`~sklearn.cluster.DBSCAN`. It is public; do not compute it from the data. Scale
        columns of different units first, for instance with :class:`~sklearn_dp.PublicScaler`. A fit
        raises a ValueError if a grid over the bounds would need more than 2**20 cells for it, or if
        there are more than 60 features.
    epsilon : float, default=1.0
        Privacy budget of one fit.
    delta : float, default=1e-6
        Probability that the epsilon limit fails; keep it far below one over the number of units.
        A fit with `bounds` and without `rho` does not use it, and accepts 0: it satisfies pure
        epsilon-DP.
    rho : float, optional
        Budget in zero-concentrated DP. Give it in place of `epsilon`.
    bounds : float or pair (low, high), optional
        Public bounds: a box of scalars or arrays of shape (n_features,), or the largest magnitude
        of all values. Rows outside are noise. None: the range of each column is found, and the
        counts have about four times the noise.
    ledger : str, path or PrivacyLedger, optional
        Ledger with the total budget of many fits; charged before the data are read.
    min_samples : float, default=5
        Number of rows (with `sample_weight`, their weight) within `eps` that make a place dense.
        Where noise alone would reach it, `min_samples_` is larger. For twice the rows, twice as
        many are within `eps`.
    max_weight : float, optional
        Public: weights are capped at this, and the noise is that for a row of this weight. None:
        an array of weights is refused.
    n_jobs : int, optional
        Number of threads. Results are bitwise identical for any value.
    random_state : int, RandomState instance or Generator, optional
        For tests: a seed voids the guarantee against anyone who knows it. None: system noise.

    Attributes
    ----------
    core_cells_ : ndarray of shape (n_core_cells, n_features)
        Centers of the dense cells, in units of the columns. All points within `eps` of one of them
        are the area of a cluster.
    core_labels_ : ndarray of int of shape (n_core_cells,)
        The cluster of each dense cell.
    cell_side_ : float
        Side of a cell.
    n_clusters_ : int
        Number of clusters, which are in the order of their sizes.
    cluster_sizes_ : ndarray of shape (n_clusters,)
        Released number of units in each cluster, or, with `sample_weight`, their total weight.
    cluster_sizes_std_error_ : ndarray of shape (n_clusters,)
        Standard deviations of the noise in `cluster_sizes_`.
    size_ : float
        Released number of units within the bounds, or their total weight.
    size_std_error_ : float
        Standard deviation of its noise.
    min_samples_ : float
        Number of rows within `eps` that made a cell dense: `min_samples`, or about the largest
        number that noise alone reaches anywhere in the box. Noise alone makes a cluster in one of
        20 fits at most.
    labels_ : ndarray of int of shape (n_samples,)
        The cluster of each training row, -1 for noise: not private, and not part of pickles.
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
    DPKMeans : Round clusters of a known number, in any number of features.
    DPGaussianMixture : Overlapping clusters of elliptical shape.

    Notes
    -----
    Guarantee: a fit is (epsilon, delta)-differentially private for adding or removing one row (with
    `groups`: all rows of a group, which share the weight of one) with any weight. A row is in one
    cell, so it changes one count by at most its weight. With `bounds`, the counts have Laplace
    noise of scale 1 / epsilon and the fit is (epsilon, 0)-differentially private; with `rho` or
    without bounds all noise is Gaussian. Everything else is computed from the noisy counts.

    References
    ----------
    * Ester, M., Kriegel, H.-P., Sander, J. and Xu, X. (1996). A density-based algorithm for
      discovering clusters in large spatial databases with noise. KDD. (Definition 1 to 6.)
    * Qiu, Y. and Yi, K. (2025). Approximate DBSCAN under differential privacy. arXiv 2508.08749.
      (Clusters are told by the area that they cover.)

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn_dp import DPDBSCAN
    >>> X, y = make_moons(8000, noise=0.06, random_state=0)
    >>> model = DPDBSCAN(eps=0.1, min_samples=20, epsilon=1.0, bounds=([-1.5, -1], [2.5, 1.5]))
    >>> model.fit(X).n_clusters_
    2
    """

    _replaces = "DBSCAN"
    _leaves_out_rows_outside = True
    _with_errors = {"cluster_sizes_": (0.0, math.inf), "size_": (0.0, math.inf)}
    _length_released = "core_cells_", "core_labels_", "cluster_sizes_", "cluster_sizes_std_error_"

    def __init__(
        self,
        eps: float = 0.5,
        *,
        epsilon: float | None = 1.0,
        delta: float = 1e-6,
        rho: float | None = None,
        bounds: Bounds | None = None,
        ledger: LedgerLike | None = None,
        min_samples: float = 5,
        max_weight: float | None = None,
        n_jobs: int | None = None,
        random_state: RandomStateLike | None = None,
    ) -> None:
        super().__init__(epsilon, delta, rho, ledger, n_jobs, random_state)
        self.eps = eps
        self.bounds = bounds
        self.min_samples = min_samples
        self.max_weight = max_weight

    @property
    def _pure(self) -> bool:
        """True if one release of Laplace noise is all."""
        return self.bounds is not None and self.rho is None

    @classmethod
    def _cannot_replace(cls, estimator):
        euclidean = estimator.metric in ("euclidean", "l2") or (
            estimator.metric == "minkowski" and estimator.p in (None, 2)
        )
        return None if euclidean else "DPDBSCAN has no metric but the Euclidean one."

    def _check_parameters(self, n_features: int) -> None:
        check_real(self.eps, "eps", low=1e-150, high=1e150)
        check_real(self.min_samples, "min_samples", low=0.0, high=1e150)
        if n_features > _MOST_FEATURES:
            raise ValueError(
                f"X must have at most {_MOST_FEATURES} features: the grid is over all of them. Use "
                "fewer features, or DPKMeans."
            )
        side = 0.0 if self.bounds is None else self._grid(n_features, math.inf).side
        if side > _WIDEST * self.eps:
            raise ValueError(
                "eps is too small for these bounds: the grid would have more than 2**20 cells. Use "
                f"an eps of at least {_ENOUGH * side:.2g}, narrower bounds or fewer features."
            )

    def _plan_entries(self, target: PrivacyBudget, n_features: int) -> tuple[PlanEntry, ...]:
        words = "1 unit: a row is in one cell"
        if self._pure:
            rho = accounting.laplace_zcdp_rho(target.epsilon)  # type: ignore[arg-type]
            return (PlanEntry(_CELLS, Mechanism.LAPLACE, rho, sensitivity=words),)
        rho = target.to_rho()
        if self.bounds is not None:
            return (PlanEntry.gaussian(_CELLS, rho, words),)
        look = _LOOK * rho
        cells = PlanEntry.gaussian(_CELLS, sum_down([rho, -look]), words, max_rho=rho)
        return (*column_entries(look), cells)

    @row_guard
    def predict(self, X: ArrayLike) -> np.ndarray:
        """Find the cluster of each row: that of the nearest dense cell within `eps`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Dense, finite rows.

        Returns
        -------
        labels : ndarray of int of shape (n_samples,)
            -1 for rows in no cluster. The labels of private rows are not private.
        """
        rows = self._validate_predict(X)
        return self._labeled_by()(rows)

    def _grid(self, n_features: int, sd: float, least: float = 0.0) -> GridCells:
        """The public grid for this noise."""
        domain = self._domain(n_features)
        low, high = domain.low, domain.high
        if low is None or high is None:
            low, high = np.full(n_features, -domain.radius), np.full(n_features, domain.radius)
        return grid_over(low, high, float(self.eps), sd, least)

    def _fit_table(self, table: TableRows, session: PrivacySession, progress: Any) -> None:
        weight, look = table.units.unit_weight, None
        if self.bounds is None:
            look = look_at_columns(session, table)
            progress("range of the columns")
        rho = session.remaining(_CELLS)
        sd = math.sqrt(2) / float(self.epsilon) if self._pure else 1 / math.sqrt(2 * rho)
        least = self.min_samples / weight
        if look is None:
            grid = self._grid(table.n_features, sd, least)
        else:
            low, high = look.center - look.reach, look.center + look.reach
            grid = grid_over(low, high, float(self.eps), sd, least)
        answer = table.ask(grid)
        if self._pure:
            noisy = release_laplace(session, _CELLS, answer, epsilon=float(self.epsilon))
        else:
            noisy = session.release(_CELLS, answer, rho=rho)
        progress("density")
        found = dense_cells(grid, noisy[:-1], sd, float(self.eps), least)
        known = np.ones(table.n_features, dtype=bool) if look is None else look.known
        self.core_cells_, self.core_labels_ = found.centers, found.labels
        self.cell_side_, self.n_clusters_ = grid.side, found.n_clusters
        self.cluster_sizes_ = weight * found.sizes
        self.cluster_sizes_std_error_ = weight * found.sizes_sd
        self.size_ = weight * max(found.size, 0.0)
        self.size_std_error_ = weight * found.size_sd
        self.min_samples_ = weight * found.least
        self.messages_ = self._judged(found, grid, known, float(noisy[-1]), sd)

    def _judged(
        self, found: DenseCells, grid: GridCells, known: np.ndarray, outside: float, sd: float
    ) -> Status:
        """Return the messages about the answer."""
        if not known.all():
            words = "too few rows: the noise hides the range of these columns"
            action = "pass bounds=, or use more rows or a larger epsilon"
            names = self._column_names
            return Status().add_columns("few_rows", words, names, ~known, action, "all")
        if grid.side > _WIDEST * self.eps:
            words = "the range of the columns is too wide to tell clusters apart with this eps"
            action = f"use an eps of at least {_ENOUGH * grid.side:.2g}, or pass narrower bounds="
            return Status([Message("no_clusters", words, (), action, "all")])
        total, raised = found.size + outside, self.min_samples_ > self.min_samples
        least = f"{self.min_samples_:.0f} {'rows' if self.max_weight is None else 'of weight'}"
        action = "use more rows, a larger eps or a larger epsilon"
        status = Status()
        if not found.n_clusters:
            action = action if raised else "use a larger eps or fewer min_samples"
            words = f"no place has {least} within eps"
            status = status.add(Message("no_clusters", words, (), action, "all"))
        elif raised:
            words = f"the noise hides clusters with fewer than {least} within eps"
            unsure = found.unsure > _UNSURE
            if unsure:
                words += f", and {found.unsure:.0%} of the rows in clusters are near that limit"
            severity: Severity = "caution" if unsure else "note"
            status = status.add(Message("hidden_clusters", words, (), action, severity))
        if self.bounds is not None and outside > max(_BEYOND * total, 4 * sd):
            share = outside / max(total, outside)  # noise may exceed the rows within them
            words = f"{share:.0%} of the rows are outside the bounds, and in no cluster"
            status = status.add(Message("rows_beyond_bounds", words, (), "use wider bounds"))
        return status

    def _labeled_by(self):
        cells = {"centers": self.core_cells_, "labels": self.core_labels_}
        return partial(nearest_cluster, **cells, radius=float(self.eps))
