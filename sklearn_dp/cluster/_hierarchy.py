"""A hierarchy of released clusters and its levels: post-processing, which costs nothing."""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, ndtri, ndtri_exp
from sklearn.utils.validation import check_is_fitted

from .._base import BaseDPEstimator, check_integer, check_real, read_table
from .._door import integers, read_vector
from .._privacy._grid import unit_rows
from .._rows.nearest import nearest_point
from .._rows.single_rows import LARGEST, row_guard
from ._centers import metric_of


def ward(points: np.ndarray, mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Merges (k - 1, 2) of points (k, d) with positive masses (k,), and their costs, ascending.

    Nodes below k are points, and k + i is merge i. The costs are reducible, so two clusters that
    are nearest to each other may be merged at once: a chain of nearest neighbors ends at such a
    pair. No matrix of all pairs is kept.

    >>> [each.tolist() for each in ward(np.array([[0.0], [10.0], [1.0]]), np.array([1, 1, 3.0]))]
    [[[0, 2], [1, 3]], [0.75, 68.45]]
    """
    k = len(points)
    points, mass = np.concatenate([points, np.zeros_like(points)]), np.append(mass, np.zeros(k))
    alive, costs = np.arange(2 * k) < k, np.zeros(2 * k - 1)
    merges, chain = np.empty((k - 1, 2), dtype=np.int64), list[int]()
    for new in range(k, 2 * k - 1):
        chain, others = chain or [int(np.argmax(alive))], np.flatnonzero(alive)
        while True:
            near = merge_costs(points[others], mass[others], np.searchsorted(others, chain[-1]))
            # Of equally near ones the one before, or the chain would go round.
            if len(chain) > 1 and near[np.searchsorted(others, chain[-2])] == near.min():
                break
            chain.append(int(others[near.argmin()]))
        pair = [chain.pop(), chain.pop()]
        # Rounding must not let a merge cost less than those that it is made of.
        costs[new] = max(near.min(), *costs[pair])
        points[new], mass[new] = merged(points, mass, pair)
        merges[new - k], alive[pair], alive[new] = pair, False, True
    order, number = np.argsort(costs[k:], kind="stable"), np.arange(2 * k - 1)
    number[k + order] = np.arange(k, 2 * k - 1)
    return np.sort(number[merges[order]], axis=1), costs[k:][order]


def merge_costs(points: np.ndarray, mass: np.ndarray, i: np.integer | int) -> np.ndarray:
    """Return the cost of merging point i with each of the others (k,): the added sum of squares."""
    costs = mass * mass[i] / (mass + mass[i]) * squares(points - points[i])
    costs[i] = np.inf
    return costs


def merged(points: np.ndarray, mass: np.ndarray, pair: list[int]) -> tuple[np.ndarray, float]:
    """Mean and mass of two of the points."""
    total = mass[pair].sum()
    return (mass[pair] / total) @ points[pair], float(total)


def squares(rows: np.ndarray) -> np.ndarray:
    """Squared lengths of rows."""
    return np.square(rows).sum(axis=1)


def total(values: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Sums (n, ...) of the values (k, ...) with each of n labels."""
    sums = np.zeros((labels.max() + 1, *values.shape[1:]))
    np.add.at(sums, labels, values)
    return sums


def variances(
    parts: np.ndarray, pull: np.ndarray, means: np.ndarray, *, directions: bool
) -> np.ndarray:
    """Each point's part of the variance (k, d) of the mean of its group, by its errors times its
    share of the mass (`parts`), and how far the error of its mass moves the mean (`pull`)."""
    square = np.square(parts)
    if directions:  # an error counts across the mean, and over its length
        length, along = np.maximum(np.sqrt(squares(means)), 1e-100)[:, None], unit_rows(means)
        pull = (pull - along * (along * pull).sum(axis=1)[:, None]) / length
        along = np.square(along)
        square = square * (1 - 2 * along) + along * (along * square).sum(axis=1)[:, None]
        square = np.maximum(square, 0.0) / np.square(length)
    return square + np.square(pull)


def added_loss(
    mass: np.ndarray, labels: np.ndarray, apart: np.ndarray,
    errors: np.ndarray | None, noise: np.ndarray | None,
) -> tuple[float, float | None]:  # fmt: skip
    """The sum of squares that merging adds, less what noise adds to it, and its standard error, by
    the `mass` (k,) of points `apart` (k, d) from the merged one."""
    together = total(mass, labels)
    loss, own_mass = float(mass @ squares(apart)), mass * (1 - mass / together[labels])
    if errors is None:
        return loss, None
    # With noise of covariance S, z' M z has variance 4 z' M S M z - 2 tr(M S M S) in the mean, of
    # which 2 tr(M S M S) is there even if all points coincide. M of a group with masses m is
    # diag(m) - m m' / sum(m).
    square = np.square(errors)
    hidden = 4 * float(np.square(mass) @ squares(apart * errors))
    moved = np.square(mass)[:, None] * square
    pairs = np.square(total(moved, labels)) - total(np.square(moved), labels)
    least = 2 * float(
        np.square(own_mass) @ squares(square) + (pairs.sum(axis=1) / together**2).sum()
    )
    variance = max(hidden - least, least)
    if noise is not None:
        variance += squares(noise * squares(apart)[None])[0]
    return max(loss - float(own_mass @ squares(errors)), 0.0), float(np.sqrt(variance))


def least_size(weights: np.ndarray, noise: np.ndarray, k: int, confidence: float) -> float:
    """Lower bound of the size of a union of some of k clusters, for all unions at once: half of the
    probability to be wrong is for each of the k errors alone, half for all sets of them, the same
    for each size. The best bound of its heaviest clusters is used."""
    order, m = np.argsort(-weights, kind="stable"), np.arange(1, len(weights) + 1)
    weights, noise, wrong = weights[order], noise[order], (1 - confidence) / 2 / k
    n_sets = gammaln(k + 1) - gammaln(m + 1) - gammaln(k - m + 1)  # logarithm
    together = -ndtri_exp(np.log(wrong) - n_sets) * np.sqrt(np.cumsum(np.square(noise)))
    slack = np.minimum(-ndtri(wrong) * np.cumsum(noise), together)
    return max(float((np.cumsum(weights) - slack).max()), 0.0)


# -- hierarchy -------------------------------------------------------------------------------------


_ROUNDED = 1e-5  # as float32, say
_NO_WEIGHT = 1e-12  # of the largest: so little pulls no center, but joins its nearest one
_LOST = 1e50  # larger errors, in units of the tree, count as this, and are infinite ones


@dataclass(frozen=True, eq=False)
class ClusterLevel:
    """One level of a hierarchy: released clusters, some of them merged.

    Parameters
    ----------
    labels : ndarray of int32 of shape (n_fine_clusters,)
        Merged cluster of each cluster of the fit: ``level.labels[model.predict(X)]`` and
        ``level.predict(X)`` are the same.
    centers : ndarray of shape (n_clusters, n_features)
        Weighted means of the released centers, in order of decreasing weight; with the cosine
        metric, scaled to length 1.
    weights : ndarray of shape (n_clusters,)
        Sums of the released weights.
    centers_std_error, weights_std_error : ndarray or None
        Standard errors of both; None where the fit has none.
    loss : float
        How much the sum of squared distances of the rows to their centers (of cosine distances)
        grows by the merging, estimated from released numbers, without the part of known noise. Add
        it to `inertia_` of the fit.
    loss_std_error : float or None
        Its standard error; infinite if merged centers differ in coordinates whose error is.
    hierarchy : ClusterHierarchy
        The tree that this is a level of.
    """

    labels: np.ndarray
    centers: np.ndarray
    weights: np.ndarray
    centers_std_error: np.ndarray | None
    weights_std_error: np.ndarray | None
    loss: float
    loss_std_error: float | None
    hierarchy: "ClusterHierarchy" = field(repr=False)

    @row_guard
    def predict(self, X: ArrayLike) -> np.ndarray:
        """Index of the merged cluster of each row: that of the nearest center of the fit.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite rows.

        Returns
        -------
        labels : ndarray of int32 of shape (n_samples,)
            Rows of `centers`. Not private if X is private.
        """
        rows = read_table(X, "X", single=True)
        if rows.shape[1] != self.centers.shape[1]:
            raise ValueError("X must have as many columns as the centers.")
        fine = self.hierarchy
        return self.labels[nearest_point(metric_of(fine.metric).rows(rows), fine.centers)]


class ClusterHierarchy:
    """Tree of released clusters, from the clusters of a fit up to a single one.

    Use :meth:`from_estimator`. Ward's method for weighted points merges the two clusters that add
    the least to the sum of squared distances. Cut the tree at any level, as often as you like:
    nothing is charged.

    Parameters
    ----------
    centers : array-like of shape (n_clusters, n_features)
        Released centers.
    weights : array-like of shape (n_clusters,)
        Released number of units (or total weight) of each. Negative (noisy) weights
        are set to 0 in means but kept in sums.
    centers_std_error : array-like of shape (n_clusters, n_features), optional
        Standard errors of the centers.
    weights_std_error : array-like of shape (n_clusters,), optional
        Standard errors of the weights.
    metric : {"euclidean", "cosine"}, default="euclidean"
        "cosine": the centers are directions of length 1, and merged ones are scaled to it.
    max_weight : float, default=1.0
        The largest weight of a unit.

    Attributes
    ----------
    children_ : ndarray of int64 of shape (n_clusters - 1, 2)
        The two nodes of each merge, as in :class:`sklearn.cluster.AgglomerativeClustering`: numbers
        below n_clusters are clusters of the fit, and n_clusters + i is merge i.
    distances_ : ndarray of shape (n_clusters - 1,)
        Ward distance of each merge, ascending: the root of twice the sum of squares that it adds.
    linkage_ : ndarray of shape (n_clusters - 1, 4)
        Both of these and the number of merged clusters, for `scipy.cluster.hierarchy.dendrogram`.

    See Also
    --------
    sklearn_dp.inspection.HierarchyDisplay : Draws the tree, with sizes and a cut.

    Notes
    -----
    Guarantee: that of the fit. The tree, its levels and their errors are functions of what the fit
    released, and whatever is computed from a private result alone is as private as that result.

    Merged centers have the standard error of a weighted mean of noisy centers with noisy weights
    (delta method), including sampling variability. Errors of different clusters are assumed to be
    independent, and small relative to the weights: a cluster whose weight is mostly noise has
    meaningless standard errors, as in the fit. Levels of a `DPCoreset` have none.

    References
    ----------
    * Ward, J. H. (1963). Hierarchical grouping to optimize an objective function. JASA 58.
    * Murtagh, F. (1983). A survey of recent advances in hierarchical clustering algorithms. The
      Computer Journal 26. (nearest-neighbor chains)

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dp import DPKMeans
    >>> from sklearn_dp.cluster import ClusterHierarchy
    >>> X = np.repeat([[-0.9], [-0.7], [0.6], [0.9]], [4000, 3000, 3000, 50], axis=0)
    >>> model = DPKMeans(n_clusters=4, epsilon=8.0, bounds=1.0).fit(X)
    >>> tree = ClusterHierarchy.from_estimator(model)
    >>> tree.cut(2).centers.round(1).ravel().tolist()
    [-0.8, 0.6]
    >>> len(tree.merge_small(1000).weights)  # the smallest has joined its neighbor
    3
    """

    def __init__(
        self,
        centers: ArrayLike,
        weights: ArrayLike,
        *,
        centers_std_error: ArrayLike | None = None,
        weights_std_error: ArrayLike | None = None,
        metric: str = "euclidean",
        max_weight: float = 1.0,
    ) -> None:
        self.centers = read_table(centers, "centers")
        shape = self.centers.shape
        self.centers = _numbers(self.centers, "centers", shape)
        self.weights = _numbers(weights, "weights", shape[:1])
        self.centers_std_error = self.weights_std_error = None
        if centers_std_error is not None:
            self.centers_std_error = _numbers(centers_std_error, "centers_std_error", shape, True)
        if weights_std_error is not None:
            noise = _numbers(weights_std_error, "weights_std_error", shape[:1], True)
            self.weights_std_error = noise
        self.max_weight = check_real(max_weight, "max_weight")
        self.metric, self._distance = metric, metric_of(metric)
        if np.abs(self._distance.centers(self.centers) - self.centers).max() > _ROUNDED:
            raise ValueError('centers must have length 1 with metric="cosine".')
        mass = np.maximum(self.weights, 0.0)
        mass = mass if mass.any() else np.ones(len(mass))  # none stands out: all count the same
        # In units of the heaviest and of the longest: no square overflows, or vanishes.
        self._heaviest = float(mass.max())
        self._unit = 1.0 if metric == "cosine" else float(np.abs(self.centers).max()) or 1.0
        self._mass, points = mass / self._heaviest, self.centers / self._unit
        self._floored = np.maximum(self._mass, _NO_WEIGHT)
        merges, costs = ward(points, self._floored)
        self.children_ = merges
        self.distances_ = np.sqrt(2 * costs * self._heaviest) * self._unit
        sizes = np.ones(2 * len(points) - 1)
        for i, pair in enumerate(merges, start=len(points)):
            sizes[i] = sizes[pair].sum()
        self.linkage_ = np.column_stack([merges, self.distances_, sizes[len(points) :]])

    @classmethod
    def from_estimator(cls, estimator: BaseDPEstimator) -> Self:
        """Build the tree of the clusters that an estimator has released.

        Parameters
        ----------
        estimator : DPKMeans, DPKTupleKMeans, FederatedDPKMeans, DPOneClusterKMeans, DPCoreset, \
DPTopics
            Fitted. Of `DPTopics`, the weights are `sizes_`.

        Returns
        -------
        hierarchy : ClusterHierarchy
            It does not change if the estimator is fitted again.
        """
        if not isinstance(estimator, BaseDPEstimator):
            raise TypeError("estimator must be a fitted private estimator of this package.")
        check_is_fitted(estimator)
        of: Any = getattr(estimator, "estimator_", estimator)  # the clusters of topics
        for place, centers, source, weights in (
            (of, "cluster_centers_", estimator, "sizes_"),
            (of, "cluster_centers_", of, "cluster_weights_"),
            (of, "points_", of, "weights_"),
        ):
            if hasattr(place, centers) and hasattr(source, weights):
                if len(getattr(place, centers)) != len(getattr(source, weights)):
                    raise ValueError("estimator has merged topics: pass the one before merge().")
                return cls(
                    getattr(place, centers),
                    getattr(source, weights),
                    centers_std_error=getattr(place, f"{centers}std_error_", None),
                    weights_std_error=getattr(source, f"{weights}std_error_", None),
                    metric=getattr(of, "metric", "euclidean"),
                    max_weight=getattr(of, "max_weight", None) or 1.0,
                )
        raise TypeError(f"estimator: {type(estimator).__name__} releases no centers with weights.")

    def cut(self, n_clusters: int) -> ClusterLevel:
        """Return the level of the tree with a given number of clusters.

        Parameters
        ----------
        n_clusters : int
            From 1 to the number of clusters of the fit.

        Returns
        -------
        level : ClusterLevel
            Clusters, weights and their errors.
        """
        k = len(self.centers)
        n = check_integer(n_clusters, "n_clusters", low=1, high=k)
        groups = {i: [i] for i in range(k)}
        for new, (first, second) in enumerate(self.children_[: k - n].tolist(), start=k):
            groups[new] = groups.pop(first) + groups.pop(second)
        return self._level(list(groups.values()))

    def merge(self, labels: ArrayLike) -> ClusterLevel:
        """Merge the clusters that have the same label, in whatever way the labels were found.

        Parameters
        ----------
        labels : array-like of int of shape (n_clusters,)
            Public, or computed from released numbers.

        Returns
        -------
        level : ClusterLevel
            One cluster for each label, the heaviest first.
        """
        given = integers(labels, "labels")
        if given is None or given.shape != self.weights.shape:
            raise ValueError("labels must hold an integer for each cluster of the fit.")
        return self._level([np.flatnonzero(given == each).tolist() for each in np.unique(given)])

    def merge_small(self, min_size: float, *, confidence: float = 0.95) -> ClusterLevel:
        """Merge clusters until each one has a minimum size.

        The cluster that is least sure to be large enough is merged with its nearest one by Ward's
        method, and so on. The others stay as they are, so this is not a cut.

        Parameters
        ----------
        min_size : float
            Public: the number of units (or total weight) that each cluster must have.
        confidence : float, default=0.95
            Probability that all clusters that remain have this size at once.

        Returns
        -------
        level : ClusterLevel
            What remains, at least one cluster.

        Raises
        ------
        ValueError
            If the fit released no standard errors of weights, or if not even all units together
            are sure to be enough.

        Notes
        -----
        The true size of a cluster is the number of units that :meth:`ClusterLevel.predict` gives
        it; of `DPOneClusterKMeans`, the number in its balls. With `groups`, a unit whose rows are
        in several clusters counts in part in each of them. The confidence is that of normal errors,
        by Bonferroni's inequality over all sets of clusters, so the noisy weights may decide what
        is merged.
        """
        least = check_real(min_size, "min_size")
        level = check_real(confidence, "confidence", high=1.0)
        if self.weights_std_error is None:
            raise ValueError(
                "min_size: this fit released no standard errors of the weights, so no confidence "
                "can be stated."
            )
        noise: Any = _scaled(self.weights_std_error, self._heaviest)
        weights, k = self.weights / self._heaviest, len(self.weights)

        def surely(group: list[int]) -> float:
            return self._heaviest * least_size(weights[group], noise[group], k, level)

        groups = [[i] for i in range(k)]
        points, mass = self.centers / self._unit, self._floored.copy()
        bounds = np.array([surely(group) for group in groups])
        while (bounds < least).any():
            if len(groups) == 1:
                raise ValueError(
                    f"min_size: all clusters together have at least {bounds[0]:.6g} units with "
                    f"confidence {level:g}, less than {least:.6g}."
                )
            small = int(np.argmin(bounds))
            near = int(np.argmin(merge_costs(points, mass, small)))
            points[near], mass[near] = merged(points, mass, [near, small])
            groups[near] += groups[small]
            bounds[near] = surely(groups[near])
            del groups[small]
            points, mass, bounds = (np.delete(each, small, 0) for each in (points, mass, bounds))
        return self._level(groups)

    def _level(self, groups: list[list[int]]) -> ClusterLevel:
        """Return merged clusters, the heaviest first, with their errors."""
        weights = np.array([self.weights[group].sum() for group in groups])
        order, labels = np.argsort(-weights, kind="stable"), np.empty(len(self.weights), np.int32)
        for label, number in enumerate(order.tolist()):
            labels[groups[number]] = label
        mass, points = self._floored, self.centers / self._unit
        share = mass / total(mass, labels)[labels]
        means = total(share[:, None] * points, labels)
        centers = self._distance.centers(means)
        errors = _scaled(self.centers_std_error, self._unit)
        noise = _scaled(self.weights_std_error, self._heaviest)
        if errors is not None:
            # Of clusters without weight, beside others that have some, nothing enters.
            counts = (self._mass > 0) | (total(self._mass, labels)[labels] == 0)
            errors = np.where(counts[:, None], errors, 0.0)
        apart, known = points - centers[labels], errors
        if errors is not None:
            # Of a column of one visible value nothing is known but that the centers are there.
            hidden = np.isinf(_rescaled(errors, 1.0))
            known = np.where(hidden, 0.0, errors)
            rounded = np.finfo(np.float32).eps * np.abs(points)
            hidden &= np.abs(apart) > np.maximum(rounded, _NO_WEIGHT)
        loss, loss_error = added_loss(mass, labels, apart, known, noise)
        if errors is not None:
            loss_error = np.inf if hidden.any() else loss_error
            # The variance of a total of drawn units is at most that of heavy ones.
            sd = np.sqrt(min(self.max_weight / self._heaviest, _LOST) * self._mass)
            sd = sd if noise is None else np.hypot(sd, noise)
            # Whatever the weights are, a mean lies between its points.
            pull = (points - means[labels]) * np.minimum(share / mass * sd, 1.0)[:, None]
            parts, cosine = share[:, None] * errors, self.metric == "cosine"
            square = variances(parts, pull, means[labels], directions=cosine)
            errors = _rescaled(np.sqrt(total(square, labels)), self._unit)
        if noise is not None:
            noise = _rescaled(np.sqrt(total(np.square(noise), labels)), self._heaviest)
        cost = self._distance.cost * self._heaviest * self._unit**2
        of_loss = None if loss_error is None else loss_error * cost
        of_level = centers * self._unit, weights[order], errors, noise
        return ClusterLevel(labels, *of_level, loss * cost, of_loss, self)


def _scaled(errors: np.ndarray | None, unit: float) -> np.ndarray | None:
    """Errors in a unit of the tree, finite."""
    return None if errors is None else np.minimum(errors, _LOST * unit) / unit


def _rescaled(errors: np.ndarray, unit: float) -> np.ndarray:
    """Errors as they were, infinite where they were so."""
    return np.where(errors > _LOST * _NO_WEIGHT**2, np.inf, errors * unit)


def _numbers(values: Any, name: str, shape: tuple[int, ...], errors: bool = False) -> np.ndarray:
    """Finite numbers, or standard errors, which may be infinite; or an error that names them."""
    flat = len(shape) == 1
    numbers = read_vector(values, name) if flat else read_table(values, name, finite=False)
    fits = numbers >= 0 if errors else np.abs(numbers) <= LARGEST
    if numbers.shape != shape or not fits.all():
        kind = "nonnegative" if errors else "finite"
        raise ValueError(f"{name} must hold {kind} numbers, in the shape {shape} of centers.")
    return numbers
