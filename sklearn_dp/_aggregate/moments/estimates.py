"""From what a round of moments releases to the next guess of a component: post-processing.

Nothing here sees rows. The second moments come whitened by the last guess and clipped to a radius
there, with noise of a known size. In the order of use: :func:`unclip`, :func:`pooled`,
:func:`shrunk`, :func:`composed`.
"""

import math

import numpy as np
from scipy.special import chdtr, chdtrc

from .ellipsoid import NARROWEST, Ellipsoid
from .moment_releases import MomentRelease, noise_entries

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
