"""Counts, sums and second moments of whitened, clipped rows: exact integers, and releases."""

import math
from dataclasses import dataclass

import numpy as np

from ..._privacy._grid import Grid, sum_type
from ..._privacy._plan import Mechanism, PlanEntry
from ..._privacy._rounding import round_up
from ..shared.centering import noise_sd
from .ellipsoid import WEIGHT_STEPS

__all__ = ["MOMENTS", "exact_moments", "moment_entries", "release_moments", "round_shares"]

_COUNTS, _SUMS, MOMENTS = "component counts", "component sums", "component moments"
_WORDS = {
    _COUNTS: "a unit adds at most 1 to all the counts together",
    _SUMS: "a unit adds whitened rows clipped to the radius",
    MOMENTS: "squared radius in Frobenius norm, in whitened coordinates",
}
_LIMIT = 2**15  # norm of a clipped whitened row in steps: its square and sums of it are exact
_COUNT_SHARE = 0.04


def moment_entries(rho, *, centered=False, prefix=""):
    """Plan entries of `refine` and `fit_gram`, worth `rho` in all.

    The shares of a round depend on released sizes, so each line may spend up to `rho`, and all
    of them together no more than that.
    """
    names = (_COUNTS, MOMENTS) if centered else (_COUNTS, _SUMS, MOMENTS)
    shares = (_COUNT_SHARE, 1 - _COUNT_SHARE) if centered else (_COUNT_SHARE, 0.2, 0.76)
    return tuple(
        PlanEntry(
            prefix + name,
            Mechanism.GAUSSIAN,
            math.nextafter(rho * share, 0.0),
            uses=None,
            max_rho=rho,
            sensitivity=_WORDS[name],
        )
        for name, share in zip(names, shares, strict=True)
    )


def exact_moments(rows, units, ellipsoids, weights, radius, form):
    """Counts, sums and second moments of the whitened rows, clipped to a radius, as integers.

    Returns
    -------
    counts : ndarray of integers of shape (k,), in steps of 2**-20
    sums : ndarray of integers of shape (k, d), in steps of radius / 2**15
    moments : ndarray of integers of shape (k or 1, p), in squared steps
        Upper triangles; diagonals ("diag"); traces ("spherical"). One for all if "tied".
    """
    k, d = len(ellipsoids), rows.n_features
    exact = sum_type(rows.n_rows, 30)
    counts, sums = np.zeros(k, dtype=exact), np.zeros((k, d), dtype=exact)
    moments = np.zeros((k, _n_moments(d, form)), dtype=exact)
    for part, x in rows.chunks():
        share = weights[part].astype(np.float64)
        if units.weights is not None:
            # Exact products of integers below 2**20 each, rounded down.
            share = np.floor(share * (units.weights[part] * units.step)[:, None])
        for j, ellipsoid in enumerate(ellipsoids):
            inside = np.flatnonzero(share[:, j])
            weight = share[inside, j]
            white = Grid(1.0).quantise(ellipsoid.whiten(x[inside], _LIMIT / radius), _LIMIT)
            counts[j] += int(weight.sum())
            # Rounding toward zero: |weighted row| <= weight |row|.
            sums[j] += (
                np.trunc(white * (weight / WEIGHT_STEPS)[:, None]).sum(axis=0).astype(np.int64)
            )
            # The root of the weight scales the row, rounded down: its square is at most weight.
            root = np.floor(np.sqrt(weight) * 2.0**10) * 2.0**-20
            moments[j] += _moments_of(np.trunc(white * root[:, None]), form)
    return counts, sums, moments.sum(axis=0, keepdims=True) if form == "tied" else moments


def _n_moments(d, form):
    return {"diag": d, "spherical": 1}.get(form, d * (d + 1) // 2)


def _moments_of(x, form):
    """Integers of at most 2**30, at most 2**16 of them: exact in float64."""
    if form == "diag":
        return np.square(x).sum(axis=0).astype(np.int64)
    if form == "spherical":
        return np.array([int(np.square(x).sum(axis=0).astype(np.int64).sum())])
    return (x.T @ x).astype(np.int64)[np.triu_indices(x.shape[1])]


@dataclass(frozen=True)
class RoundShares:
    """What a round spends on its releases; None is a release that is not made."""

    counts: float
    sums: float | None
    moments: float


@dataclass(frozen=True)
class MomentRelease:
    """Noisy counts (k,), mean whitened rows (k, d), and second moments per unit (k, d, d)."""

    counts: np.ndarray
    means: np.ndarray
    seconds: np.ndarray
    noise: np.ndarray  # standard deviation of a diagonal entry of `seconds`, (k,)


def round_shares(rho, radius, d, centered, form="full", k=1):
    """Sums and second moments in the ratio that makes the sum of their squared errors least.

    The loss of a component is about |mean error|^2 / 2 + |covariance error|_F^2 / 4, where it is
    whitened; what is seen of a form with fewer entries needs less.
    """
    counts = _COUNT_SHARE * rho
    rest = (rho - counts) * (1 - 1e-12)
    if centered:
        return RoundShares(counts, None, rest)
    entries = {"diag": d, "spherical": 1 / d, "tied": d * (d + 1) / 2 / k**2}.get(
        form, d * (d + 1) / 2
    )
    ratio = math.sqrt(2 * d / entries) / radius
    return RoundShares(counts, rest * ratio / (1 + ratio), rest / (1 + ratio))


def release_moments(session, prefix, exact, radius, shares, form):
    counts, sums, moments = exact
    k, d = sums.shape
    # A row has weights of sum at most one, so a unit adds at most that to the counts together.
    noisy = session.gaussian(
        prefix + _COUNTS, counts, sensitivity=WEIGHT_STEPS, unit=1 / WEIGHT_STEPS, rho=shares.counts
    )
    floor = 4 * noise_sd(shares.counts)
    n = np.maximum(noisy, max(floor, 1.0))
    means, unit = np.zeros((k, d)), radius / _LIMIT
    if shares.sums is not None:
        # The stacked sums move by sum_j w_j |white_j| <= max_j |white_j| <= limit.
        means = (
            session.gaussian(prefix + _SUMS, sums, sensitivity=_LIMIT, unit=unit, rho=shares.sums)
            / n[:, None]
        )
    square = float(_LIMIT) ** 2
    sensitivity = np.broadcast_to(_moment_sensitivity(d, form, square), moments.shape)
    values = session.gaussian(
        prefix + MOMENTS, moments, sensitivity=sensitivity, unit=unit**2, rho=shares.moments
    )
    size = np.full(k, n.sum()) if form == "tied" else n
    seconds = _matrices(values, d, form)
    if form == "tied":
        shift = np.einsum("k,ka,kb->ab", n, means, means)
        seconds = np.repeat((seconds - shift) / n.sum(), k, axis=0)
    else:
        seconds = seconds / n[:, None, None] - _products(means, form)
    return MomentRelease(noisy, means, seconds, radius**2 * noise_sd(shares.moments) / size)


def _moment_sensitivity(d, form, square):
    """Entrywise claim s: the squares of the changes over s sum to at most one.

    The change is M = (w_j white_j white_j^T)_j, positive semidefinite blocks whose Frobenius
    norm is at most their trace, sum_j w_j |white_j|^2 <= limit^2; the tied sum, the diagonals and
    the traces are no longer than that. Of the upper triangle, |M|_F^2 counts entries off the
    diagonal twice, so 1/sqrt(2) of the noise is enough there.
    """
    if form in ("diag", "spherical"):
        return np.full(_n_moments(d, form), square)
    rows, columns = np.triu_indices(d)
    return np.where(rows == columns, round_up(square), round_up(square * math.sqrt(0.5)))


def _matrices(values, d, form):
    """Symmetric matrices of the released entries."""
    if form == "diag":
        return values[:, :, None] * np.eye(d)
    if form == "spherical":
        return values[:, :, None] / d * np.eye(d)
    out = np.zeros((len(values), d, d))
    out[(slice(None), *np.triu_indices(d))] = values
    return out + np.triu(out, 1).transpose(0, 2, 1)


def _products(means, form):
    """Outer products, or what there is of them in the form."""
    d = means.shape[1]
    outer = np.einsum("ka,kb->kab", means, means)
    if form == "diag":
        return outer * np.eye(d)
    if form == "spherical":
        return np.trace(outer, axis1=1, axis2=2)[:, None, None] / d * np.eye(d)
    return outer
