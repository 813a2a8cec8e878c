"""Releases of whitened moments, and the estimates that are computed from them.

A round releases counts, sums and second moments of whitened, clipped rows, in one pass
(:class:`..._queries.whitened.WhitenedMoments`). :func:`release_moments` divides them by the noisy
counts, and :func:`round_shares` divides the budget of a round among the three. All components
together cost what one costs.

Where the rows are not those of a normal law, fourth powers of each column come with the second
moments: they tell how uncertain these are.

From there to the next guess of a component all is post-processing. The second moments come whitened
by the last guess and clipped to a radius there, with noise of a known size. In the order of use:
:func:`unclip`, :func:`pooled`, :func:`shrunk`, :func:`composed`.

Second moments of several days are averaged in the newest whitened coordinates.
"""

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import chdtr, chdtrc

from ..._costs.plan import PlanEntry
from ..._privacy._session import PrivacySession
from ..._privacy._units import Sealed
from ..._queries.whitened import FOURTHS, WhitenedMoments
from ..shared.centering import noise_sd
from .ellipsoid import NARROWEST, Ellipsoid

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


# -- releases --------------------------------------------------------------------------------------


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
    session: PrivacySession, sealed: tuple[Sealed, ...], asked: WhitenedMoments, shares: RoundShares
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


# -- the next guess --------------------------------------------------------------------------------


_DRIFT = 0.05  # what an earlier second moment may be off by, beside its noise


def noise_norm(d: int, form: str) -> float:
    """About the spectral norm of the noise in a second moment, in units of a released entry's.

    A symmetric Gaussian matrix with entries of variance 1 / 2 off the diagonal has the norm
    sqrt(2 d); of d independent entries the largest is about sqrt(2 log d).
    """
    if form == "diag":
        return math.sqrt(2 * math.log(d + 1)) + 1
    return 2.0 / d if form == "spherical" else math.sqrt(2 * d) + 1


def noise_of_products(release: MomentRelease, j: int) -> tuple[float, float]:
    """Return how much subtracting m m^T, of the mean m of a component, adds to the noise of its
    second moment: to that of an entry on the diagonal, at most, and to the spectral norm, as by
    `noise_norm`.

    The noise e of the mean gives m e^T + e m^T. That of the count, in parts of it, gives the same
    part of m m^T: the second moment is divided by the count once, m m^T twice. Where rows are
    whitened about their mean, this is next to nothing. The bound holds off the diagonal, too, where
    1 / sqrt(2) of what is stated counts.
    """
    mean, noise = release.means[j], float(release.mean_noise[j])
    largest, length = float(np.abs(mean).max()), float(np.linalg.norm(mean))
    part = release.count_noise / float(release.sizes[j])
    entry = math.hypot(2 * largest * noise, math.sqrt(2) * largest**2 * part)
    # The largest eigenvalue is |m| (a + |e|), of the coordinate a of e along m.
    along = noise_norm(1, "full")
    norm = length * noise * (along + math.sqrt(along**2 + len(mean) - 1))
    return entry, math.hypot(norm, length**2 * part * along)


def unclip(second: np.ndarray, square: float, d: int, *, known: bool = False) -> np.ndarray:
    """Undo what clipping to `square` does to the second moment (d, d) of a normal law near t I.

    The scale t solves t c0(square / t) = tr / d, where c0 is the share of the variance that
    survives; deviations from t I survive by c1, to first order. Far from it that is too much for
    narrow directions; but clipping widens none, so no variance is less than what was seen.

    What clips leave of a scale beyond the radius hardly depends on it, so that noise makes any of
    it. Where t is `known` to be about one, larger ones are those of the tangent there.
    """
    trace = max(float(np.trace(second)) / d, 1e-3)
    t = trace
    for _ in range(30):
        t = min(trace / kept(square / t, d), 4 * trace)
    if known and t > 1:
        # Only the rows inside grow with t: d/dt E min(t |z|^2, square) = E |z|^2 of these.
        t = 1 + (trace - kept(square, d)) / float(chdtr(d + 2, square))
    values, vectors = np.linalg.eigh(second)
    wide = np.maximum(t + (values - trace) / kept(square / t, d + 2), values)
    return (vectors * wide) @ vectors.T


def kept(square: float, d: int) -> float:
    """Share of the variance of a standard normal that clipping to a squared length keeps.

    E min(|z|^2, g^2) / d: the density of a chi-square law times its argument is d times that of
    the law with two degrees more, so what is inside gives F_{d+2}(g^2), and what is outside gives
    g^2 / d for each.

    >>> round(kept(1e9, 3), 6), round(kept(9.341818, 10), 4)
    (1.0, 0.7936)

    (9.34 is the median of the chi-square law of ten degrees.)
    """
    inside = chdtr(d + 2, square)
    return float(inside + square / d * chdtrc(d, square))


def shrunk(second: np.ndarray, noise: float, d: int, form: str) -> np.ndarray:
    """Toward the identity, the last guess, as far as the change is nothing but noise (James-Stein):
    its expected square is known."""
    size = noise_entries(d, form) * noise**2
    change = float(np.sum(np.square(second - np.eye(d))))
    share = min(1.0, size / max(change, 1e-300))
    return share * np.eye(d) + (1 - share) * second


def pooled(
    past: list[tuple[Ellipsoid, np.ndarray, float]],
    ellipsoid: Ellipsoid,
    second: np.ndarray,
    noise: float,
) -> tuple[np.ndarray, float]:
    """Average of the second moments of all rounds, in the whitened coordinates of this one.

    Where these are rows b_i in the coordinates of an earlier round with noise s, that one's noise
    has variances s^2 (|b_i|^2 |b_j|^2 + (b_i . b_j)^2) / 2. Every entry is weighted by the inverse
    of its own. This round is added to the `past`. The noise that comes with the average is that of
    one round whose spectral norm would be as large.
    """
    total, weight = np.zeros_like(second), np.zeros_like(second)
    past.append((ellipsoid, second, noise))
    for then, moment, level in past:
        b = (ellipsoid.axes / ellipsoid.scales).T @ then.factor
        cross = b @ b.T
        level = max(level, 1e-140)  # its square is a normal float
        spread = level**2 * (np.outer(np.diag(cross), np.diag(cross)) + cross**2)
        own_precision = 2 / (spread + (0.0 if then is ellipsoid else _DRIFT**2))
        total += own_precision * (b @ moment @ b.T)
        weight += own_precision
    return total / weight, math.sqrt(2 * float((1 / weight).mean(axis=0).max()))


def composed(
    ellipsoid: Ellipsoid, vectors: np.ndarray, roots: np.ndarray, form: str
) -> tuple[np.ndarray, np.ndarray]:
    """Axes and scales of B V U V^T B^T by B V U^(1/2), as the condition number of the covariance is
    the square of that of its root. `roots` (d,) are those of U, the variances along V (d, d)."""
    if form in ("diag", "spherical"):
        return ellipsoid.axes, np.maximum(ellipsoid.scales * roots, NARROWEST)
    axes, scales, _ = np.linalg.svd(ellipsoid.factor @ (vectors * roots))
    return axes, np.maximum(scales, max(NARROWEST, 1e-7 * scales[0]))


def within(vector: np.ndarray, radius: float) -> np.ndarray:
    """The vector, or what points the same way at that length."""
    return vector * min(1.0, radius / max(float(np.linalg.norm(vector)), 1e-300))


def square_of(values: np.ndarray, level: float, upper: np.ndarray) -> float:
    """Squared whitened length that most rows have, of variances that are partly hidden.

    Half of the noise `level` is added to each variance, for those that it hides. A sum of squares
    with such variances has their sum for its mean, and twice their squares for its variance: 1.3
    standard deviations above it are nine rows of ten. The next whitening divides by `upper` (d,).
    """
    parts = (np.maximum(values, 0.0) + 0.5 * np.minimum(level, 1.0)) / upper
    return float(parts.sum()) + 1.3 * math.sqrt(2 * float(np.square(parts).sum()))


# -- averages of days ------------------------------------------------------------------------------


# By how much whitened distances may change for counts of several days to be added up: of a normal
# law, and of a tail, which is one in other coordinates, too.
LIKE = 1.25, 2.0


@dataclass(frozen=True)
class DivisorRatio:
    """The number of rows behind averaged second moments, relative to what these were divided by.

    Moments of a day are divided by a number of rows that stands out from its noise, and are too
    small where there are fewer. On average over days the noise of the numbers goes, and so does
    that.
    """

    value: float = 1.0
    sd: float = 0.0

    def and_one(self, release: MomentRelease, share: float, which: Any = slice(None)) -> Self:
        """With one more day, of these components together."""
        size, counts = float(release.sizes[which][0]), release.counts[which]
        value = (1 - share) * self.value + share * float(counts.sum()) / size
        noise = release.count_noise * math.sqrt(len(counts))
        sd = math.hypot((1 - share) * self.sd, share * noise / size)
        return type(self)(value, sd)

    @property
    def known(self) -> float:
        """The divisor of second moments."""
        return max(self.value, 2 * self.sd)

    @property
    def variance(self) -> float:
        """The relative variance of the error of that ratio."""
        return (self.sd / self.known) ** 2


def averaged(
    before: tuple[Ellipsoid, np.ndarray],
    guess: Ellipsoid,
    second: np.ndarray,
    new: np.ndarray,
    old: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Second moments about the center of `guess`, of all days: of a new one, whitened by it, and of
    those `before` as whitened by another, with noises (d, d) as in :class:`.days.MomentDays`, each
    entry by its own; the shares (d, d) of the new day, and the map from the coordinates before."""
    across = (guess.axes / guess.scales).T @ before[0].factor
    old = across @ old @ across.T
    of_old, of_new = (
        np.maximum(np.outer(np.diag(each), np.diag(each)) + each**2, 1e-280) for each in (old, new)
    )
    shares = of_old / (of_old + of_new)
    second = shares * second + (1 - shares) * (across @ before[1] @ across.T)
    return second, shares, across


def about(center: np.ndarray, guess: Ellipsoid, second: np.ndarray, part: float) -> np.ndarray:
    """Second moments about the mean of all rows, from those about the center there was: less those
    of the mean about it. What days differ by is in them."""
    offset = (guess.axes / guess.scales).T @ (center - guess.center)
    return second - part * np.outer(offset, offset)


def with_sampling(noise: float, size: float, square: float) -> float:
    """Return the error of a diagonal entry of a normal second moment near the identity, with
    sampling."""
    return math.hypot(noise, math.sqrt(2 * square / max(size, 1.0)))


def stretch(ellipsoid: Ellipsoid, axes: np.ndarray, scales: np.ndarray) -> float:
    """By how much distances change at most when rows are whitened by other axes and scales."""
    stretched = np.linalg.svd((axes / scales).T @ ellipsoid.factor, compute_uv=False)
    return float(max(stretched[0], 1 / stretched[-1]))
