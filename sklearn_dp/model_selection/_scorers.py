"""Scores of candidates: bounded numbers of single rows, added up and released with noise
(:class:`sklearn_dp._queries.boxes.ScoreSum`). For every scorer the score of a row is a function
of that row and of releases, to the last bit: a user's function gets one row at a time."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
from sklearn.base import is_regressor

from .._costs.numbers import check_number, is_integer
from .._privacy._session import PrivacySession
from .._privacy._units import Units
from .._queries._query import TableRows
from .._queries.boxes import ScoreSum
from .._rows.single_rows import distances, for_rows, row_guard
from .._silence import own_streams
from ..cluster._centers import metric_of
from ._candidates import Limits

SCORE = "score"  # the plan entry of a score
_LEAST_RANGE = 1e-290  # in steps of half / 2**19 that are no denormal numbers
_LOG_DENSITY = 10.0
"""Largest log-density over that of a uniform law, either way: e^10 times as dense."""


@dataclass(frozen=True)
class PrivateScorer:
    """A score of one row of data by a fitted model, within public limits.

    Parameters
    ----------
    row_score : callable
        ``row_score(fitted, x, y)`` with a row ``x`` of shape (n_features,) and its entry ``y`` of
        the target (None without one) gives a number: larger is better. It is called with one row at
        a time. If it raises an error or returns NaN or a number below `low`, this is treated as
        `low` for that row; numbers above `high` as `high`.
    low, high : float
        Public, and the same for all candidates. The noise is in proportion to ``high - low``.
    name : str, default="score"
        For the report.

    Examples
    --------
    >>> from sklearn_dp.model_selection import PrivateScorer
    >>> def close(fitted, x, y):
    ...     return float(abs(fitted.cluster_centers_ - x).max(axis=1).min() < 0.5)
    >>> PrivateScorer(close, low=0.0, high=1.0).name
    'score'
    """

    row_score: Callable[..., Any]
    low: float
    high: float
    name: str = "score"

    def __post_init__(self) -> None:
        if not callable(self.row_score):
            raise TypeError("row_score must be callable.")
        if not isinstance(self.name, str):
            raise TypeError("name must be a text.")
        for name in ("low", "high"):
            object.__setattr__(self, name, check_number(name, getattr(self, name)))
        if not self.low < self.high:
            raise ValueError("low must be less than high.")
        if not _LEAST_RANGE <= self.high - self.low < math.inf:
            raise ValueError("low and high: their difference is too large or too small.")


@dataclass(frozen=True)
class Scorer:
    """``values(fitted, X, y)`` gives the scores of all rows: each a function of its row alone, bit
    for bit. The limits of a row's score are constants, never of the rows or of a fit."""

    name: str
    low: float
    high: float
    values: Callable[..., Any]


def check_scoring(scoring: Any) -> None:
    """Raise unless this is None, the name of a score, or a `PrivateScorer`."""
    if scoring is None or isinstance(scoring, PrivateScorer):
        return
    if not isinstance(scoring, str) or scoring not in _BUILT_IN:
        names = ", ".join(repr(name) for name in _BUILT_IN)
        raise ValueError(f"scoring must be one of {names}, or a PrivateScorer.")


def check_can_be_scored(estimators: Sequence[Any], scoring: Any) -> None:
    """Raise if the last steps of candidates have, by class and parameters, nothing to score by."""
    if not isinstance(scoring, str):
        return
    if scoring == "silhouette" and all(map(_has_one_center, estimators)):
        raise ValueError("scoring='silhouette' needs a candidate with more than one center.")
    if scoring == "cost" and "cosine" in [str(getattr(each, "metric", "")) for each in estimators]:
        raise ValueError(
            "scoring='cost' is in Euclidean distances: for metric='cosine' use 'silhouette' or a "
            "PrivateScorer."
        )
    for each in estimators:
        if scoring in ("silhouette", "cost"):
            able, needed = getattr(each, "_centers", None) is not None, "centers"
        elif scoring == "accuracy":
            labels = getattr(each, "_predicts_labels", True) and not is_regressor(each)
            able, needed = labels and hasattr(each, "predict"), "a predict that gives labels"
        else:
            needed = "inverse_transform" if scoring == "reconstruction" else "fit"
            able = hasattr(each, needed)
        if not able:
            raise ValueError(
                f"scoring={scoring!r} needs {needed}, which {type(each).__name__} does not have. "
                "Use another score, or a PrivateScorer."
            )


def _has_one_center(estimator: Any) -> bool:
    """True if that is all a ball has, or a clusterer or mixture is asked for."""
    asked = getattr(estimator, "n_clusters", getattr(estimator, "n_components", None))
    one = is_integer(asked) and asked == 1
    return one or getattr(estimator, "_centers", None) == "center_"


def scorer_of(scoring: Any, limits: Limits) -> Scorer:
    """The scorer that a search asks for, of what `check_scoring` lets pass."""
    if isinstance(scoring, PrivateScorer):
        return Scorer(scoring.name, scoring.low, scoring.high, _row_by_row(scoring))
    return _BUILT_IN[scoring](limits)


@row_guard
def noisy_score(
    session: PrivacySession, scorer: Scorer, fitted: Any, X: Any, y: Any, units: Units
) -> float:
    """Release the sum over units of how far a unit's score is above the middle of the range. The
    entry `SCORE` pays all that it has."""
    values = np.asarray(scorer.values(fitted, X, y), dtype=np.float64)
    rows = TableRows.in_memory(values[:, None], units)
    return float(session.release(SCORE, rows.ask(ScoreSum(scorer.low, scorer.high)))[0])


def _row_by_row(scorer: PrivateScorer) -> Callable[..., np.ndarray]:
    """All scores by a user's function of one row: one that saw all rows at once could make a row's
    score depend on the others. What it draws from the global generators is a function of the row
    too."""

    def values(fitted: Any, X: Any, y: Any) -> np.ndarray:
        scores, model = np.full(len(X), scorer.low), fitted.model
        with own_streams() as start_stream:
            for i, row in enumerate(X):
                start_stream(crc32(row.tobytes()))
                try:
                    # A copy: other candidates see the same rows.
                    score = scorer.row_score(model, row.copy(), None if y is None else y[i])
                    scores[i] = float(score)
                except BaseException:  # one row must not decide about the candidate, by an exit
                    continue
        return scores

    return values


# ---------------------------------------------------------------------------- built-in scorers


def _silhouette(limits: Limits) -> Scorer:
    """1 - d1 / d2 with the distances to the two nearest centers: within [0, 1], and 0 for one
    center. The silhouette of a clustering uses mean distances to all rows of a cluster: one row
    changes the score of every other."""

    def values(fitted: Any, X: Any, y: Any) -> np.ndarray:
        centers = fitted.centers
        if len(centers) < 2:
            return np.zeros(len(X))

        def ratio(rows: np.ndarray) -> np.ndarray:
            nearest = np.partition(distances(rows, centers), 1, axis=1)[:, :2]
            return 1 - nearest[:, :1] / np.maximum(nearest[:, 1:], 1e-300)

        metric = metric_of(getattr(fitted.final, "metric", "euclidean"))
        return for_rows(ratio, metric.rows(fitted.last(X)), 1)[:, 0]

    return Scorer("silhouette", 0.0, 1.0, values)


def _cost(limits: Limits) -> Scorer:
    """Minus the squared distance to the nearest center, in the input space, in [-cap^2, 0]."""
    cap = limits.max_distance("cost")

    def values(fitted: Any, X: Any, y: Any) -> np.ndarray:
        centers = fitted.input_centers
        return -for_rows(
            lambda rows: np.minimum(distances(rows, centers).min(axis=1), cap)[:, None] ** 2, X, 1
        )[:, 0]

    return Scorer("cost", -(cap**2), 0.0, values)


def _reconstruction(limits: Limits) -> Scorer:
    """Minus the squared distance of a row to what is left of it after transform and back, capped
    like "cost": in [-cap^2, 0]."""
    cap = limits.max_distance("reconstruction")

    def values(fitted: Any, X: Any, y: Any) -> np.ndarray:
        gone, total = X.astype(np.float64, copy=False) - fitted.reconstructed(X), np.zeros(len(X))
        for column in gone.T:  # one after the other: the bits of each row are its own
            total += np.square(column)
        return -np.square(np.minimum(np.sqrt(total), cap))

    return Scorer("reconstruction", -(cap**2), 0.0, values)


def _log_density(limits: Limits) -> Scorer:
    """Log-density of the model over that of a uniform law on the bounds, capped at 10 both ways."""
    uniform = limits.log_uniform_density()

    def values(fitted: Any, X: Any, y: Any) -> np.ndarray:
        return fitted.log_density(X) - uniform

    return Scorer("log_density", -_LOG_DENSITY, _LOG_DENSITY, values)


def _accuracy(limits: Limits) -> Scorer:
    """Score 1 if a row is predicted to be what `y` says; a TypeError without `y`."""

    def values(fitted: Any, X: Any, y: Any) -> np.ndarray:
        if y is None:
            raise TypeError("scoring='accuracy' needs y.")
        if not hasattr(fitted.final, "estimator_"):
            return _hits(np.asarray(fitted.final.predict(fitted.last(X))), y)
        # Another library's estimator, which multiplies matrices: one row at a time.
        hit = PrivateScorer(lambda model, x, label: np.all(model.predict(x[None]) == label), 0, 1)
        return _row_by_row(hit)(fitted, X, y)

    return Scorer("accuracy", 0.0, 1.0, values)


def _hits(predicted: np.ndarray, y: Any) -> np.ndarray:
    """1.0 where a label is the one that was found, each entry by itself: one of an object array
    that has no truth value must not decide about the other rows."""
    if y.dtype.kind != "O":
        return (predicted == y).astype(np.float64)
    hits = np.zeros(len(y))
    for i, (one, other) in enumerate(zip(predicted, y, strict=True)):
        try:
            hits[i] = bool(np.all(one == other))
        except BaseException:  # of one row
            continue
    return hits


_BUILT_IN = {
    "silhouette": _silhouette,
    "cost": _cost,
    "log_density": _log_density,
    "reconstruction": _reconstruction,
    "accuracy": _accuracy,
}
