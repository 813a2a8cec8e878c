"""Borrowing strength: estimates of several segments, moved toward their mean."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

_MEANS = ("mean_", "location_")


def shrunk(
    values: np.ndarray, errors: np.ndarray, fixed: np.ndarray | bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Empirical Bayes: released values (S, ...) of S segments, moved toward their mean.

    Also returns their standard errors then. Entry by entry, segments are taken for normal about a
    common mean, with the variance between segments by moments (DerSimonian and Laird 1986), at
    least 0. A segment gives up the part of its distance from the mean that is likely to be error,
    less (S - 1 - 2) / (S - 1), and its error grows by what is not known of that part (Morris 1983).
    So up to three segments stay as they are. One whose error is infinite gets the mean; what is
    `fixed` stays, and tells nothing of others. Of released values only, so it costs nothing.

    >>> four, errors = shrunk(np.array([[1.0], [3.0], [2.0], [2.0]]), np.ones((4, 1)))
    >>> four.ravel().round(2).tolist()
    [1.33, 2.67, 2.0, 2.0]
    """
    # In units of the largest number, so that no square overflows.
    unit = np.maximum(np.abs(values), np.where(np.isfinite(errors), errors, 0.0)).max(axis=0)
    unit = np.where(unit > 0, unit, 1.0)
    values, variance = values / unit, np.square(np.maximum(errors / unit, 1e-150))
    mean, _ = _mean(values, variance)
    between = _between(values - mean, variance)
    mean, mean_variance = _mean(values, variance + between)
    known = np.isfinite(variance)
    free = known.sum(axis=0) - 3
    enough = (free > 0) & (known | ~np.asarray(fixed))
    part = np.where(known, variance, 0.0) / np.where(known, variance + between, 1.0)
    given = np.where(known, part * free.clip(0) / np.maximum(free + 2, 1), enough)
    doubt = 2 / np.maximum(free, 1) * np.square(given * (values - mean)) * known
    own = np.where(known, (1 - given) * np.where(known, variance, 0.0), between)
    moved_variance = own + doubt + np.square(given) * np.where(enough, mean_variance, 0.0)
    moved = np.where(given > 0, values + given * (mean - values), values)
    return moved * unit, np.sqrt(np.where(known | enough, moved_variance, np.inf)) * unit


def _mean(values: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean over segments by precision, and its variance, infinite where nothing is known."""
    weight = 1 / variance
    total = weight.sum(axis=0)
    some = np.maximum(total, 1e-300)
    return (weight * values).sum(axis=0) / some, np.where(total > 0, 1 / some, np.inf)


def _between(offsets: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """The variance between segments, of offsets (S, ...) from their mean by precision."""
    weight = 1 / variance
    total = np.maximum(weight.sum(axis=0), 1e-300)
    free = np.maximum(np.isfinite(variance).sum(axis=0) - 1, 0)
    scale = total - np.square(weight).sum(axis=0) / total
    excess = (weight * np.square(offsets)).sum(axis=0) - free
    return np.where((free > 0) & (scale > 0), excess.clip(0) / np.maximum(scale, 1e-300), 0.0)


def _of_one_value(codes: object, errors: np.ndarray) -> np.ndarray:
    """Released numbers that are the one visible value, beside which nobody knows what else is."""
    return np.isinf(errors) & (np.asarray(codes) == "constant")


def share_means(models: Sequence[Any]) -> None:
    """Move the means of the segments toward their common one, with the errors they have then. What
    a clip may have moved a mean by is an upper bound, and nothing that others make better."""
    for name in _MEANS:
        error = f"{name}std_error_"
        if len(models) > 1 and all(hasattr(model, error) for model in models):
            values, sd = (
                np.array([getattr(model, each) for model in models]) for each in (name, error)
            )
            bias = [getattr(model, "_clip_bias", np.zeros_like(sd[0])) for model in models]
            own = np.where(np.isfinite(sd), np.minimum(bias, sd), 0.0)
            codes = [getattr(model, "column_status_", "") for model in models]
            fixed = [_of_one_value(*pair) for pair in zip(codes, sd, strict=True)]
            moved, sd = shrunk(values, np.sqrt(np.square(sd) - np.square(own)), np.array(fixed))
            for model, value, each in zip(models, moved, np.hypot(sd, own), strict=True):
                setattr(model, name, value.astype(getattr(model, name).dtype))
                setattr(model, error, each.astype(getattr(model, error).dtype))


def matched_centers(models: Sequence[Any], pooled: np.ndarray) -> tuple[np.ndarray, ...]:
    """Centers of the models and their errors (S, k, d), and in which order they stand in a model.
    Each of them belongs to the one of `pooled` (k, d) that it is nearest to: one to one, by the
    smallest sum of squared distances."""
    all_centers = [pooled, *(model.cluster_centers_ for model in models)]
    # In units of the largest number, so that no square overflows.
    unit = max(max(float(np.abs(centers).max()) for centers in all_centers), 1e-150)
    orders = [
        linear_sum_assignment(cdist(pooled / unit, centers / unit, "sqeuclidean"))[1]
        for centers in all_centers[1:]
    ]
    names = ("cluster_centers_", "cluster_centers_std_error_")
    both = (
        np.array([getattr(m, name)[order] for m, order in zip(models, orders, strict=True)])
        for name in names
    )
    return (*both, np.array(orders))


def share_centers(models: Sequence[Any], pooled: np.ndarray) -> None:
    """The same of centers, each of which belongs to one of `pooled` (k, d)."""
    centers, errors, orders = matched_centers(models, pooled)
    names = ("cluster_centers_", "cluster_centers_std_error_")
    codes = [getattr(model, "cluster_centers_status_", "") for model in models]
    codes = [np.broadcast_to(c, pooled.shape)[o] for c, o in zip(codes, orders, strict=True)]
    moved = shrunk(centers, errors, _of_one_value(codes, errors))
    for name, released in zip(names, moved, strict=True):
        for model, order, values in zip(models, orders, released, strict=True):
            getattr(model, name)[order] = values
