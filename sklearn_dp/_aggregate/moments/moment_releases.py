"""Releases of counts, sums and second moments of whitened, clipped rows.

:class:`..._queries.whitened.WhitenedMoments` asks for them: one pass a round.
:func:`release_moments` divides them by the noisy counts, and :func:`round_shares` divides the
budget of a round among the three. All components together cost what one costs.

Where the rows are not those of a normal law, fourth powers of each column come with the second
moments: they tell how uncertain these are.
"""

import math
from dataclasses import dataclass

import numpy as np

from ..._costs.plan import PlanEntry
from ..._privacy._sealed import Sealed
from ..._privacy._session import PrivacySession
from ..._queries.whitened import FOURTHS, WhitenedMoments
from ..shared.centering import noise_sd

_COUNTS, _SUMS, MOMENTS = "component counts", "component sums", "component moments"
DISTANCES = "component distances"
"""Plan entry of the counts of whitened distances, see :mod:`.tails`."""

_WORDS = {
    _COUNTS: "a unit adds at most 1 to all the counts together",
    _SUMS: "a unit adds whitened rows clipped to the radius",
    MOMENTS: "squared radius in Frobenius norm, in whitened coordinates",
    DISTANCES: "a unit adds at most 1 to all histograms of distances together",
}
TAIL_SUMS = 0.2
"""Share of the sums where rows have long tails, at least."""
_COUNT_SHARE = 0.04
_DISTANCE_SHARE = 0.04, 0.08  # of mixtures; of a covariance, whose tails tell the clip
FOURTH_NOISE = math.sqrt(1 / FOURTHS - 1)
"""Noise of fourth powers over that of squares, in squared radii."""


def moment_entries(
    rho: float, *, centered: bool = False, tails: bool = True, one: bool = False
) -> tuple[PlanEntry, ...]:
    """Plan entries of `refine` and, without `tails`, of `fit_gram`, worth `rho` in all. The shares
    of a round depend on released sizes, so each line may spend up to `rho`. `one`: of a single
    covariance."""
    names = (_COUNTS, MOMENTS) if centered else (_COUNTS, _SUMS, MOMENTS)
    shares = (_COUNT_SHARE, 1 - _COUNT_SHARE) if centered else (_COUNT_SHARE, 0.2, 0.76)
    distances = _DISTANCE_SHARE[one]
    rest = rho * (1 - distances) if tails else rho
    entries = tuple(
        PlanEntry.gaussian(
            name, math.nextafter(rest * share, 0.0), _WORDS[name], uses=None, max_rho=rho
        )
        for name, share in zip(names, shares, strict=True)
    )
    if not tails:
        return entries
    rho_of_distances = math.nextafter(distances * rho * (1 - 1e-12), 0.0)
    words = _WORDS[DISTANCES]
    return (*entries, PlanEntry.gaussian(DISTANCES, rho_of_distances, words))


def noise_entries(d: int, form: str) -> float:
    """Squared Frobenius norm of the noise of a second moment, over that of a released entry.

    "full" and "tied" have d entries on the diagonal of variance 1 and d (d - 1) off it of variance
    1 / 2, so d (d + 1) / 2. "spherical" releases the trace, a d-th of which stands d times on the
    diagonal: d (1 / d)**2.

    >>> noise_entries(4, "full"), noise_entries(4, "diag"), noise_entries(4, "spherical")
    (10.0, 4, 0.25)
    """
    return {"diag": d, "spherical": 1 / d}.get(form, d * (d + 1) / 2)


@dataclass(frozen=True)
class RoundShares:
    """The rho that a round spends on each of its releases; None is a release that is not made."""

    counts: float
    sums: float | None
    moments: float


@dataclass(frozen=True)
class MomentRelease:
    """The releases of a round about k components, in their whitened coordinates."""

    counts: np.ndarray  # (k,), noisy, and possibly negative
    means: np.ndarray  # (k, d), of the clipped rows; 0 where the centers are known
    # (k, d, d), covariances of the clipped rows; near the identity where the ellipsoid was right
    seconds: np.ndarray
    # (k,), standard deviation of the noise of an entry that is released: of a diagonal entry of
    # `seconds`, or of the trace of it where the form is "spherical"
    noise: np.ndarray
    # (k,), what the seconds were divided by: the counts, or all of them together for "tied"
    sizes: np.ndarray
    mean_noise: np.ndarray  # (k,), standard deviation of the noise of a coordinate of `means`
    count_noise: float  # standard deviation of the noise of a count
    # (k, d), mean fourth powers of columns, in the standard deviations there were
    fourths: np.ndarray | None


def round_shares(
    rho: float, radius: float, d: int, entries: float, *, centered: bool, tails: bool = False
) -> RoundShares:
    """Sums and second moments in the ratio that makes the sum of their squared errors least.

    The loss of a component (its Kullback-Leibler divergence) is about
    |mean error|^2 / 2 + |covariance error|_F^2 / 4, where it is whitened. With noise of the
    variance r^2 / (2 rho_s) in each of d sums and r^4 / (2 rho_m) in an entry of the moments, that
    is a / rho_s + b / rho_m with a / b = 2 d / (entries r^2), which is least where
    rho_s / rho_m = sqrt(a / b). `radius` is that of the sums, where the two have different ones.
    Moments of long `tails` are uncertain without noise, too: the means keep a fifth.

    >>> shares = round_shares(1.0, 3.0, d=4, entries=noise_entries(4, "full"), centered=False)
    >>> round(shares.counts, 2), round(shares.sums, 2), round(shares.moments, 2)
    (0.04, 0.22, 0.74)
    """
    counts = _COUNT_SHARE * rho
    rest = (rho - counts) * (1 - 1e-12)
    if centered:
        return RoundShares(counts, None, rest)
    ratio = math.sqrt(2 * d / entries) / radius
    share = max(ratio / (1 + ratio), TAIL_SUMS if tails else 0.0)
    return RoundShares(counts, rest * share, rest * (1 - share))


def release_moments(
    session: PrivacySession,
    sealed: tuple[Sealed, ...],
    asked: WhitenedMoments,
    shares: RoundShares,
) -> MomentRelease:
    """Release what has been asked of whitened rows. Post-processing: the mean product is taken off
    the second moments, and counts to divide by are at least four sd of their noise."""
    counts, sums, moments = sealed
    form, (near, radius), (k, d) = asked.form, asked.radii, sums.shape
    noisy = session.release(_COUNTS, counts, rho=shares.counts)
    floor = 4 * noise_sd(shares.counts)
    n = np.maximum(noisy, max(floor, 1.0))
    means, mean_noise = np.zeros((k, d)), np.zeros(k)
    if shares.sums is not None:
        mean_noise = near * noise_sd(shares.sums) / n
        means = session.release(_SUMS, sums, rho=shares.sums) / n[:, None]
    rho, powers = shares.moments, None
    values = session.release(MOMENTS, moments, rho=rho)
    if asked.fourths:
        values, powers = np.split(values, [math.prod(asked.shape)])
        powers, rho = powers.reshape(k, d) / n[:, None], rho * (1 - FOURTHS)
    size = np.full(k, n.sum()) if form == "tied" else n
    seconds = _matrices(values.reshape(asked.shape), d, form)
    seconds = seconds / size[: len(seconds), None, None] - products(means, form, n)
    noise, count_noise = radius**2 * noise_sd(rho) / size, noise_sd(shares.counts)
    return MomentRelease(noisy, means, seconds, noise, size, mean_noise, count_noise, powers)


def _matrices(values: np.ndarray, d: int, form: str) -> np.ndarray:
    """Symmetric matrices of the released entries: values of shape (k, p) to (k, d, d)."""
    if form == "diag":
        return values[:, :, None] * np.eye(d)
    if form == "spherical":
        return values[:, :, None] / d * np.eye(d)
    out = np.zeros((len(values), d, d))
    out[(slice(None), *np.triu_indices(d))] = values
    return out + np.triu(out, 1).transpose(0, 2, 1)


def products(vectors: np.ndarray, form: str, sizes: np.ndarray) -> np.ndarray:
    """Outer products of vectors, or what there is of them in the form; (k, d) to (k, d, d). Of
    components of these sizes (k,), "tied" ones have one of all."""
    d = vectors.shape[1]
    outer = np.einsum("ka,kb->kab", vectors, vectors)
    if form == "tied":
        outer[:] = np.einsum("k,kab->ab", sizes / sizes.sum(), outer)
    if form == "diag":
        return outer * np.eye(d)
    if form == "spherical":
        return np.trace(outer, axis1=1, axis2=2)[:, None, None] / d * np.eye(d)
    return outer
