"""Borrowing strength: estimates of segments, moved toward their mean or that of all rows."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, solve_triangular
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from scipy.special import ndtr

from .._aggregate.moments.ellipsoid import matrix_errors, symmetric

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
    within = np.where(known, (1 - given) * np.where(known, variance, 0.0), between)
    moved_variance = within + doubt + np.square(given) * np.where(enough, mean_variance, 0.0)
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
    """Move the means of the segments toward their common one, with their errors then."""
    for name in _MEANS:
        error = f"{name}std_error_"
        if len(models) > 1 and all(hasattr(model, error) for model in models):
            values, sd = (
                np.array([getattr(model, each) for model in models]) for each in (name, error)
            )
            bias = [getattr(model, "_clip_bias", np.zeros_like(sd[0])) for model in models]
            hidden = np.where(np.isfinite(sd), np.minimum(bias, sd), 0.0)
            codes = [getattr(model, "column_status_", "") for model in models]
            fixed = [_of_one_value(*pair) for pair in zip(codes, sd, strict=True)]
            moved, sd = shrunk(values, np.sqrt(np.square(sd) - np.square(hidden)), np.array(fixed))
            for model, value, each in zip(models, moved, np.hypot(sd, hidden), strict=True):
                setattr(model, name, value.astype(getattr(model, name).dtype))
                setattr(model, error, each.astype(getattr(model, error).dtype))


def matched_centers(models: Sequence[Any], pooled: np.ndarray) -> tuple[np.ndarray, ...]:
    """Centers of the models and errors (S, k, d), in the order of those of `pooled`; the order."""
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


def share_centers(models: Sequence[Any], common: Any) -> None:
    """Move centers toward their means, each of which belongs to one of those of all rows."""
    pooled = common.cluster_centers_
    centers, errors, orders = matched_centers(models, pooled)
    names = ("cluster_centers_", "cluster_centers_std_error_")
    codes = [getattr(model, "cluster_centers_status_", "") for model in models]
    codes = [np.broadcast_to(c, pooled.shape)[o] for c, o in zip(codes, orders, strict=True)]
    moved = shrunk(centers, errors, _of_one_value(codes, errors))
    for name, released in zip(names, moved, strict=True):
        for model, order, values in zip(models, orders, released, strict=True):
            getattr(model, name)[order] = values


class CommonStart:
    """Common centers for segments to start from, and how far from them those of segments are, by
    releases: a segment may depend on those before it, which are other units."""

    def __init__(self, pooled: Any) -> None:
        self.centers = np.asarray(pooled.cluster_centers_, dtype=np.float64)
        # In units of the largest number, so that no square overflows.
        self._unit = max(float(np.abs(self.centers).max()), 1e-150)
        self._errors = np.asarray(pooled.cluster_centers_std_error_, dtype=np.float64) / self._unit
        self._precision, self._excess = np.zeros((2, self.centers.shape[1]))

    def learn(self, model: Any) -> None:
        """Update the variance between segments, by column, from the centers of another segment."""
        centers, errors, _ = (each[0] for each in matched_centers([model], self.centers))
        variance = np.square(errors / self._unit) + np.square(self._errors)
        weight = 1 / np.maximum(variance, 1e-300)
        offsets = (centers - self.centers) / self._unit
        self._precision += weight.sum(axis=0)
        self._excess += (weight * np.square(offsets) - np.isfinite(variance)).sum(axis=0)

    def misplaced(self) -> float:
        """How many clusters of a segment are nearer to the common center of another one, where
        Lloyd's iterations end with two centers in one cluster.

        With standard deviations s, by column, about the common one, cluster i is nearer to the
        common center j with probability Phi(-|v| / 2 s_v), where v = c_j - c_i and s_v is the root
        of sum (s v)^2 / |v|^2. None before the first segment."""
        between = np.maximum(self._excess, 0.0) / np.maximum(self._precision, 1e-300)
        points = self.centers / self._unit
        apart = cdist(points, points, "sqeuclidean")[~np.eye(len(points), dtype=bool)]
        scaled = points * np.sqrt(between)
        along = cdist(scaled, scaled)[~np.eye(len(points), dtype=bool)]
        return float(ndtr(-apart / np.maximum(2 * along, 1e-300)).sum())


# -- covariances and mixtures ----------------------------------------------------------------------

_UNKNOWN = 0.5
"""Relative error of variances from which on they are taken for noise."""


def moved_numbers(
    values: np.ndarray,
    errors: np.ndarray,
    common: np.ndarray,
    common_error: np.ndarray,
    fixed: np.ndarray | bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Empirical Bayes: released values (S, ...), moved toward common ones (...), with their errors.

    What is `fixed` stays as it is, and its error infinite.

    >>> five = np.array([[1.0], [3.0], [1.0], [3.0], [2.0]])
    >>> moved_numbers(five, np.ones((5, 1)), np.array([2.0]), np.zeros(1))[0].ravel().tolist()
    [1.6, 2.4, 1.6, 2.4, 2.0]
    """
    unit = np.maximum(np.abs(values).max(axis=0), np.abs(common))
    unit = np.where(unit > 0, unit, 1.0)  # so that no square overflows
    apart = np.square((values - common) / unit)
    variance = np.square(np.maximum(errors / unit, 1e-150))
    given, after = _given(apart, variance, 1, np.square(common_error / unit))
    given = np.where(np.isfinite(variance), given, 1.0)  # also where hardly a segment is known
    moved = np.where(fixed, values, values + given * (common - values))
    return moved, np.where(fixed, np.inf, np.sqrt(after) * unit)


def moved_covariances(
    values: np.ndarray,
    errors: np.ndarray,
    common: np.ndarray,
    common_error: np.ndarray,
    clipped: np.ndarray | float = 0.0,
    common_clipped: np.ndarray | float = 0.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Move covariances (S, d, d), or variances (S, d), which stay positive definite.

    In coordinates where the common matrix is the identity, the logarithm of a matrix has about the
    relative error of its variances in each of its d (d + 1) / 2 numbers, of which a segment gives
    up one part. One that does not know its variances within a half is all noise: it gets the common
    matrix. Columns of infinite errors say nothing of that; where the common ones are finite, such a
    segment stays as it is. What a clip may have taken of its variances, the part `clipped` (S, d),
    is in the errors, and no noise."""
    d, full = len(common), common.ndim == 2
    numbers = d * (d + 1) // 2 if full else d
    relative = _diagonals(errors, full) / _diagonals(values, full)
    clipped = np.minimum(clipped, relative)
    relative = np.sqrt(np.square(relative) - np.square(clipped))
    of_common = _diagonals(common_error, full) / _diagonals(common, full)
    alone = (np.isinf(relative) & np.isfinite(of_common)).any(axis=1) & ~_unknown(relative)
    if alone.any():
        moved, after, rest = values.astype(np.float64), errors.astype(np.float64), ~alone
        both, part = (values[rest], errors[rest], common, common_error), np.asarray(clipped)[rest]
        if rest.any():
            moved[rest], after[rest] = moved_covariances(*both, part, common_clipped)
        return moved, after
    variance = np.maximum(_mean_of_known(np.square(relative)), 1e-300)
    variance = np.where(_unknown(relative), np.inf, variance)
    least = np.maximum(np.square(of_common) - np.square(common_clipped), 0.0)
    least = _mean_of_known(least)
    powers, apart = _logarithms(values, common)
    given, after = _given(apart / numbers, variance, numbers, least)
    known = np.isfinite(variance)
    given = np.where(known, given, 1.0)
    grown = np.sqrt(after / np.where(known, variance, 1.0))[:, None]
    part = np.where(known[:, None], np.hypot(relative * grown, clipped), grown)
    moved = powers(1 - given)
    form = "full" if full else "diag"
    pairs = zip(moved, part, strict=True)
    return moved, np.array([matrix_errors(*pair, form) for pair in pairs])


def _unknown(relative: np.ndarray, most: float = _UNKNOWN) -> np.ndarray:
    """True where variances (..., d) of these relative errors are all noise."""
    return ~(_mean_of_known(np.square(relative)) < most**2)


def _mean_of_known(squares: np.ndarray) -> np.ndarray:
    """Means over columns (..., d) of those that are finite; infinite where none is."""
    known = ~np.isinf(squares)
    number = known.sum(axis=-1)
    total = np.where(known, squares, 0.0).sum(axis=-1)
    return np.where(number > 0, total / np.maximum(number, 1), np.inf)


def _diagonals(values: np.ndarray, full: bool) -> np.ndarray:
    return np.diagonal(values, axis1=-2, axis2=-1) if full else values


def _logarithms(
    values: np.ndarray, common: np.ndarray
) -> tuple[Callable[[np.ndarray], np.ndarray], np.ndarray]:
    """A function that makes powers (S,) of matrices; squared lengths (S,) of logarithms."""
    if common.ndim == 1:
        ratios = values / common
        return lambda power: common * ratios ** power[:, None], np.square(np.log(ratios)).sum(1)
    scale = np.sqrt(np.diag(common))
    both = np.outer(scale, scale)
    factor = np.linalg.cholesky(common / both)
    half = np.linalg.solve(factor, values / both)
    scales, axes = np.linalg.eigh(np.linalg.solve(factor, half.swapaxes(1, 2)))
    if not scales.min() > 0:
        raise LinAlgError
    back = factor @ axes

    def powers(power: np.ndarray) -> np.ndarray:
        root = back * (scales ** (power[:, None] / 2))[:, None, :]
        return np.array([symmetric(each @ each.T) for each in root]) * both

    return powers, np.square(np.log(scales)).sum(axis=1)


def _given(
    apart: np.ndarray, variance: np.ndarray, numbers: int, least: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The part of its distance that each segment gives up, and its variance then; (S, ...) both.

    `apart` are mean squared distances over so many numbers, `variance` those of the errors. Beyond
    these they are the variance between segments and that of the common value, at least `least`. A
    segment gives up what is likely to be error, less 2 over the count of all numbers, and its
    variance grows by what is not known of that part (Morris 1983)."""
    known = np.isfinite(variance)
    weight, within = 1 / variance, np.where(known, variance, 0.0)
    total = weight.sum(axis=0)
    excess = np.where(known, weight * (apart - within), 0.0).sum(axis=0)
    between = np.maximum(excess / np.maximum(total, 1e-300), least)
    free = known.sum(axis=0) * numbers - 2
    enough = (free > 0) & np.isfinite(between)
    between = np.where(enough, between, 0.0)
    part = within / np.maximum(within + between, 1e-300) * free.clip(0) / np.maximum(free + 2, 1)
    given = np.where(known, part, 1.0) * enough
    doubt = np.where(known, 2 / np.maximum(free, 1) * np.square(given) * apart, 0.0)
    stays = np.where(known, (1 - given) * within, np.inf)
    return given, np.where(known | ~enough, stays, between) + doubt


def share_covariances(models: Sequence[Any], common: Any) -> None:
    """Move the covariances of the segments toward that of all rows."""
    try:
        moved, errors = _moved(models, "covariance_", common)
        factors = [_precision_factor(each) for each in moved]
    except LinAlgError:  # by released values: too near to singular to be compared
        return
    _set(models, "covariance_", moved)
    _set(models, "covariance_std_error_", errors)
    for model, factor in zip(models, factors, strict=True):
        model._whitening = factor
        if model.precision_ is not None:
            model.precision_ = model._precision().astype(model.covariance_.dtype)


def share_mixtures(models: Sequence[Any], common: Any) -> None:
    """Move means, weights and covariances of mixtures toward those of the same component."""
    form = common.covariance_type_
    _in_order(models, _matched(models, common), form)
    try:
        moved = {
            name: _moved(models, name, common) for name in ("means_", "covariances_", "weights_")
        }
        factors = [_precision_factors(each, form) for each in moved["covariances_"][0]]
    except LinAlgError:
        return
    for name, (values, errors) in moved.items():
        _set(models, name, values)
        _set(models, f"{name}std_error_", errors)
    _set(models, "precisions_cholesky_", factors)
    matrix = form in ("full", "tied")
    squares = [each @ each.swapaxes(-1, -2) if matrix else each**2 for each in factors]
    _set(models, "precisions_", squares)
    _in_order(models, [np.argsort(-model.weights_, kind="stable") for model in models], form)


def _set(models: Sequence[Any], name: str, values: Any) -> None:
    """Give each of the models its values, of the type that it has."""
    for model, value in zip(models, values, strict=True):
        setattr(model, name, value.astype(getattr(model, name).dtype))


def _matched(models: Sequence[Any], common: Any) -> list[np.ndarray]:
    """The order in which the components of each model are those of the common one."""
    means, *others = (np.asarray(each.means_, dtype=np.float64) for each in (common, *models))
    spread = np.ptp(means, axis=0)
    spread = np.where(spread > 0, spread, np.inf)  # equal means tell no component from another
    return [linear_sum_assignment(cdist(means / spread, each / spread))[1] for each in others]


def _in_order(models: Sequence[Any], orders: Sequence[np.ndarray], form: str) -> None:
    """Put the components of each mixture in an order."""
    names = ["means_", "weights_", *(["covariances_"] if form != "tied" else [])]
    names += [f"{name}std_error_" for name in names] + ["component_status_", "_flat"]
    names += ["precisions_", "precisions_cholesky_"] if form != "tied" else []
    for model, order in zip(models, orders, strict=True):
        for name in names:
            setattr(model, name, getattr(model, name)[order])


def _moved(models: Sequence[Any], name: str, common: Any) -> tuple[np.ndarray, np.ndarray]:
    """Values that the models release under a name, moved, and their errors; components in order."""
    values, errors, *target = (
        np.array([getattr(model, f"{name}{end}") for model in models])
        for models in (models, [common])
        for end in ("", "std_error_")
    )
    target = [each[0] for each in target]
    if not name.startswith("covariance"):
        noise = np.array([_noise_of_components(model) for model in models])
        unseen = noise[..., None] if name == "means_" else np.any(noise, axis=1)[:, None]
        fixed: Any = [model._flat for model in models] if name == "means_" else False
        errors = np.where(unseen | fixed, np.inf, errors)
        values, errors = moved_numbers(values, errors, target[0], target[1], fixed)
        if name == "weights_":
            values = np.maximum(values, 0.0)
            values /= values.sum(axis=1, keepdims=True)
        return values, errors
    if name == "covariance_":
        clipped = np.array([model._clip_variance for model in models])
        return moved_covariances(
            values, errors, target[0], target[1], clipped, common._clip_variance
        )
    if common.covariance_type_ == "tied":
        return moved_covariances(values, errors, *target)
    shape = values.shape
    if values.ndim == 2:  # spherical: one variance each
        values, errors, *target = (each[..., None] for each in (values, errors, *target))
    pairs = [
        moved_covariances(values[:, j], errors[:, j], target[0][j], target[1][j])
        for j in range(shape[1])
    ]
    moved, after = (np.stack(each, axis=1).reshape(shape) for each in zip(*pairs, strict=True))
    return moved, after


def _noise_of_components(model: Any) -> np.ndarray:
    """True where the noise of the variances of each component (k,) also hides its place."""
    form, k = model.covariance_type_, len(model.weights_)
    pair = model.covariances_std_error_, model.covariances_
    errors, values = (_diagonals(each, form in ("full", "tied")) for each in pair)
    relative = (errors / values).reshape(1 if form == "tied" else k, -1)
    return np.broadcast_to(_unknown(relative, 2 * _UNKNOWN), k)


def _precision_factor(covariance: np.ndarray) -> np.ndarray:
    """Upper triangular P with P P^T the inverse of a covariance."""
    factor = np.linalg.cholesky(covariance)
    return solve_triangular(factor, np.eye(len(factor)), lower=True).T


def _precision_factors(covariances: np.ndarray, form: str) -> np.ndarray:
    """Factors of the precisions of a mixture: of each matrix, or of variances one by one."""
    if form == "full":
        return np.array([_precision_factor(each) for each in covariances])
    return _precision_factor(covariances) if form == "tied" else 1 / np.sqrt(covariances)
