"""Pairs of neighboring data sets that are as easy to tell apart as a claim allows.

A certificate is as strong as its pair. The guarantee is about the worst pair of data sets; a
typical one moves the statistics by a small part of the sensitivities, and even noise ten times too
small would pass. So each case makes one row matter as much as it can: it stands alone, at the
border of the public bounds, with nothing else in its cell, its block or its cluster.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri
from sklearn.base import BaseEstimator, ClusterMixin

from ...mean import FriendlyMean

__all__ = ["CASES", "Case", "Pair", "pairs_of"]


class Pair:
    """Two data sets, one of which has an additional row.

    Parameters
    ----------
    name : str
        In words.
    X : array-like of shape (n_samples, n_features)
        The smaller data set.
    record : array-like of shape (n_features,)
        The additional row of the other data set, at its end.
    """

    def __init__(self, name: str, X: ArrayLike, record: ArrayLike) -> None:
        self.name = name
        self.X = np.asarray(X, dtype=np.float64)
        self.other = np.concatenate([self.X, np.asarray(record, dtype=np.float64)[None]])

    @property
    def units_of_other(self) -> np.ndarray:
        """For each row of `other` its index in `X`, or -1."""
        return np.append(np.arange(len(self.X)), -1)

    @property
    def units_of_X(self) -> np.ndarray:
        """For each row of `X` its index in `other`."""
        return np.arange(len(self.X))

    def __repr__(self) -> str:
        return f"Pair({self.name!r})"


def equal_rows(n: int, d: int = 1, place: float = 0.0, record: float = 1.0) -> Pair:
    """`n` equal rows, and one at another place: `place` and `record` in every coordinate."""
    rows = "one row" if n == 1 else f"{n} equal rows"
    return Pair(
        f"{rows} at {place:g}, and one more at {record:g}" + f" (d = {d})" * (d > 1),
        np.full((n, d), place),
        np.full(d, record),
    )


def scattered_rows(n: int, d: int, far: float, seed: int) -> Pair:
    """Rows about the origin, and one at a distance `far` from it in a random direction."""
    numbers = ndtri(np.random.default_rng(seed).random((n + 1, d)))
    direction = numbers[-1] / np.linalg.norm(numbers[-1])
    return Pair(
        f"{n} scattered rows, and one more at a distance of {far:g} (d = {d})",
        0.1 * numbers[:-1],
        far * direction,
    )


def rows_on_rings() -> Pair:
    """Rows at two distances from the origin, and one more at the nearer one."""
    near, far = (np.tile([place, -place], 500) for place in (_NEAR, _FAR))
    rows = np.concatenate([near[:_N_NEAR], far[: 1000 - _N_NEAR]])
    return Pair(
        f"{_N_NEAR} rows at +-{_NEAR:g} and {1000 - _N_NEAR} at +-{_FAR:g}, and one more at "
        f"{_NEAR:g}",
        rows[:, None],
        [_NEAR],
    )


class Detector(ClusterMixin, BaseEstimator):
    """The worst inner estimator: what it learns tells whether the record is among its rows."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Note whether there is a positive number.

        The record is the only positive row, so this is one bit about it: the most that a block can
        tell.
        """
        self.cluster_centers_ = np.array([[1.0 if (X > 0).any() else -1.0]])
        return self


@dataclass(frozen=True)
class Case:
    """How an estimator of this package is tested."""

    params: dict[str, Any]  # of the estimator, besides its budget
    pairs: tuple[Pair, ...]  # neighbors that move every release by nearly all that is claimed
    # Where a given number of fits sees most. A test of Gaussian noise has the smallest relative
    # error at a mu of about 3; but noise of less than a step, as on counts at large budgets, has
    # rounding added to it. The two rates of a claim by zCDP must not be near 0 and 1.
    epsilon: float = 16.0


# A row alone, and a second one at the border of the public bounds: it fills a bin of its own in
# each histogram, and every sum moves by the whole clipping radius. The fewer rows there are, the
# less of what was paid depends on others.
_ALONE = equal_rows(1)
_OPPOSITE = equal_rows(4, place=-1.0)
_ONE = {"bounds": 1.0}
# A row below all others: it moves every rank.
_BELOW = equal_rows(8, place=1.0, record=-1.0)
_ZCDP = 8.0
# A category of as many rows as are shown at that budget: with one more it is shown more often, and
# both counts are far from the one that is never shown.
_SHOWN = equal_rows(6, place=1.0, record=1.0)

# Balls about means. The rows are symmetric and many, so each center is near 0; the public radii
# that matter are 2**-1/4 = .841 and 1, and each ring is just inside one of them. The record is in
# every ball, near the border of most. A choice tells most if half of its chance is on radii whose
# score the record raises, and half on those whose score it lowers. On the way to the last center,
# where a ball has to hold 80% of `n_points`, these are .841 and 1, of equal scores; for the last
# radius they are 1 and the sixteen above it.
_NEAR, _FAR, _N_NEAR = 0.83, 0.99, 787
_RINGS = rows_on_rings()
_BALLS = {"n_points": 1011, "center_method": "clip", **_ONE}

CASES = {
    # One segment, of all rows.
    "DPBySegment": Case({"estimator": FriendlyMean(bounds=1.0)}, (equal_rows(40),)),
    # Cells are split only where rows are: a hundred in one place make each level of the tree count.
    "DPCoreset": Case({"n_clusters": 1, **_ONE}, (equal_rows(100, place=1.0),)),
    "DPGaussianMixture": Case({"n_components": 1, **_ONE}, (_ALONE,)),
    # Ranks of a column: a row in the lowest bin moves most of them.
    "DPKMeans": Case({"n_clusters": 1, **_ONE}, (equal_rows(1, record=-1.0),)),
    "DPKTupleKMeans": Case({"n_clusters": 1, **_ONE}, (_ALONE,), _ZCDP),
    "DPOneHotEncoder": Case({}, (_SHOWN,), _ZCDP),
    "DPOneCluster": Case(_BALLS, (_RINGS,), _ZCDP),
    "DPOneClusterKMeans": Case({"n_clusters": 1, **_BALLS}, (_RINGS,), _ZCDP),
    "DPOutlierScreen": Case(_BALLS, (_RINGS,), _ZCDP),
    "DPPCA": Case({"n_components": 1, **_ONE}, (_OPPOSITE,)),
    "DPQuantiles": Case(_ONE, (_BELOW,)),
    "DPRobustScaler": Case(_ONE, (_BELOW,)),
    "DPStandardScaler": Case(_ONE, (_ALONE,)),
    # A row of zeros has no words; the other one is in the same topic.
    "DPTopics": Case({"n_topics": 1, "vocabulary": ("x0",), "keywords_per_text": 1}, (_ALONE,)),
    "FederatedDPKMeans": Case({"n_clusters": 1, **_ONE}, (_ALONE,)),
    "FriendlyCovariance": Case(_ONE, (_ALONE,)),
    "FriendlyMean": Case({"diameter": 2.0, **_ONE}, (equal_rows(40),), 12.0),
    # Two blocks, and an inner estimator that looks for the record.
    "SampleAndAggregate": Case(
        {
            "estimator": Detector(),
            "output": ("cluster_centers_",),
            "output_bounds": 1.0,
            "aggregator": "mean",
            "n_blocks": 2,
        },
        (equal_rows(8, place=-1.0),),
    ),
}
"""Of every estimator of this package."""


def pairs_of(estimator: Any, pairs: Any, seed: int) -> list[Pair]:
    """The given pair or pairs as a list; else those of the case; else some that are hard for most.

    The seed is that of the scattered rows.
    """
    if pairs is not None:
        return [pairs] if isinstance(pairs, Pair) else list(pairs)
    case = CASES.get(type(estimator).__name__)
    if case is not None and type(estimator).__module__.split(".")[0] == __package__.split(".")[0]:
        return list(case.pairs)
    return [
        equal_rows(1),
        equal_rows(8),
        equal_rows(8, place=-1.0),
        scattered_rows(40, 2, 1.0, seed),
        scattered_rows(40, 2, 1e3, seed),
    ]
