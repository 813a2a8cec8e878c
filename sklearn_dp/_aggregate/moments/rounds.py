"""Means and covariances of one or more components: whiten by what is released, clip, release again.

An :class:`Ellipsoid` is a released guess of a component. Its whitening takes the rows to where
the component should be about a standard normal, which makes a clipping radius of about sqrt(d)
right whatever the scale and the condition number; noise that is isotropic there is in proportion
to the covariance everywhere [1]_. Each round releases counts, sums and second moments of the
whitened, clipped rows and improves the guess. All of it is exact on integers: the whitening of a
row is an exact product with an integer basis and then elementwise.

References
----------
.. [1] S. Biswas, Y. Dong, G. Kamath and J. Ullman, "CoinPress: practical private mean and
   covariance estimation", NeurIPS 2020; here with isometric noise, hard clipping and its
   correction, and in the order of maps that is right for any number of rounds.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import chdtr, chdtrc

from ..shared.centering import noise_sd
from .ellipsoid import NARROWEST, Ellipsoid, component_weights, normal_quantile
from .moment_releases import MOMENTS, exact_moments, release_moments, round_shares

__all__ = ["fit_gram", "refine"]

_MOST_ROUNDS = 16
_ROUND_SHARES = 0.03, 0.2  # of the budget, for each round but the last
_MOST_EXPLORED = 0.6  # of the budget, before the last round
_DRIFT = 0.05  # what an earlier second moment may be off by, beside its noise
_LEVEL = 0.25  # of the noise in the whitened second moment, aimed at before the last round
_LOSSES = {0.999: 1.0, 0.99: 1.03, 0.9: 1.15, 0.7: 1.5}  # of efficiency when more is clipped


def _noise_norm(d, form):
    """About the spectral norm of the noise in a second moment, in units of a diagonal entry's."""
    if form == "diag":
        return math.sqrt(2 * math.log(d + 1)) + 1
    return 2.0 / d if form == "spherical" else math.sqrt(2 * d) + 1


def _unclip(second, square, d):
    """Undo what clipping does to the second moment of a normal law near t times the identity.

    The scale t solves t c0(square / t) = tr / d, where c0 is the share of the variance that
    survives; deviations from t I survive by c1, to first order. Far from it that is too much for
    narrow directions; but clipping widens none, so no variance is less than what was seen.
    """
    trace = max(float(np.trace(second)) / d, 1e-3)
    t = trace
    for _ in range(30):
        t = min(trace / _kept(square / t, d), 4 * trace)
    values, vectors = np.linalg.eigh(second)
    wide = np.maximum(t + (values - trace) / _kept(square / t, d + 2), values)
    return (vectors * wide) @ vectors.T


def _kept(square, d):
    """Share of the variance of a standard normal that clipping to a squared length keeps."""
    inside = chdtr(d + 2, square)
    return float(inside + square / d * chdtrc(d, square))


def _shrunk(second, noise, d, form):
    """Towards the identity, the last guess, as far as the change is nothing but noise."""
    size = {"diag": d, "spherical": 1 / d}.get(form, d * (d + 1) / 2) * noise**2
    change = float(np.sum(np.square(second - np.eye(d))))
    share = min(1.0, size / max(change, 1e-300))
    return share * np.eye(d) + (1 - share) * second


def _pooled(past, ellipsoid, second, noise):
    """Average of the second moments of all rounds, in the whitened coordinates of this one.

    Where these are rows b_i in the coordinates of an earlier round with noise s, that one's noise
    has variances s^2 (|b_i|^2 |b_j|^2 + (b_i . b_j)^2) / 2. Every entry is weighted by the inverse
    of its own. Also returned: the noise of one round whose spectral norm would be as large.
    """
    total, weight = np.zeros_like(second), np.zeros_like(second)
    past.append((ellipsoid, second, noise))
    for then, moment, level in past:
        b = (ellipsoid.axes / ellipsoid.scales).T @ then.factor
        cross = b @ b.T
        spread = level**2 * (np.outer(np.diag(cross), np.diag(cross)) + cross**2)
        own = 2 / (spread + (0.0 if then is ellipsoid else _DRIFT**2))
        total += own * (b @ moment @ b.T)
        weight += own
    return total / weight, math.sqrt(2 * float((1 / weight).mean(axis=0).max()))


def _updated(ellipsoid, count, mean, second, noise, form, ball, last, past):
    """The next guess of one component, and whether all its directions stand out of the noise."""
    d = len(mean)
    second = _unclip(second, ellipsoid.square, d)
    if past is not None:
        second, noise = _pooled(past, ellipsoid, second, noise)
    level = noise * _noise_norm(d, form)
    second = _shrunk(second, noise, d, form)
    values, vectors = np.linalg.eigh(second)
    if form in ("diag", "spherical"):
        values, vectors = np.diag(second), np.eye(d)
    seen = bool(values.min() > 1.3 * level)
    # What is not seen may be as large as the noise: whitened lengths then stay below one.
    upper = (
        np.maximum(values, min(0.01, 0.1 * level + 1e-9))
        if seen or last
        else (np.maximum(values, 0.0) + min(level, 1.0) + 1e-3)
    )
    parts = (np.maximum(values, 0.0) + 0.5 * min(level, 1.0)) / upper
    square = (
        normal_quantile(0.9, d)
        if seen
        else (float(parts.sum()) + 1.3 * math.sqrt(2 * float(np.square(parts).sum())))
    )
    axes, scales = _composed(ellipsoid, vectors, np.sqrt(upper), form)
    shift = _within(mean, math.sqrt(ellipsoid.square))
    center = _within(ellipsoid.center + ellipsoid.factor @ shift, ball)
    return Ellipsoid(np.rint(center), axes, scales, square, max(count, 1.0)), seen, level


def _composed(ellipsoid, vectors, roots, form):
    """Axes and scales of the covariance B V U V^T B^T."""
    if form in ("diag", "spherical"):
        return ellipsoid.axes, np.maximum(ellipsoid.scales * roots, NARROWEST)
    axes, scales, _ = np.linalg.svd(ellipsoid.factor @ (vectors * roots))
    return axes, np.maximum(scales, max(NARROWEST, 1e-7 * scales[0]))


def _within(vector, radius):
    return vector * min(1.0, radius / max(float(np.linalg.norm(vector)), 1e-300))


def refine(
    session,
    rows,
    units,
    ellipsoids,
    *,
    assign,
    repair=None,
    form="full",
    least_rounds=1,
    most_rounds=_MOST_ROUNDS,
    share=None,
    centered=False,
    pool=False,
    prefix="",
):
    """Improve released components by rounds of whitened, clipped moments.

    Parameters
    ----------
    session : PrivacySession
        Its plan holds `moment_entries`; all that they have left is spent.
    rows : Rows
    units : Units
    ellipsoids : list of Ellipsoid
    assign : callable
        ``assign(ellipsoids, round)`` gives the weights of the rows, from released values.
    repair : callable, optional
        ``repair(ellipsoids, round)`` gives those that the round takes instead; post-processing.
    form : str, one of `FORMS`
    least_rounds, most_rounds : int
        Before the last one. There are more of them as long as directions are hidden in the noise
        and may come out of it, which released values tell.
    share : float, optional
        Of the budget, for each round but the last; chosen by the released sizes by default.
    centered : bool
        Whether the centers are known.
    pool : bool
        Whether what earlier rounds released counts in later ones too: where the form is "full"
        and `assign` gives the same weights every time.
    prefix : str

    Returns
    -------
    ellipsoids : list of Ellipsoid
    seen : ndarray of bool
        Whether the component stood out of the noise in all directions.
    """
    budget = left = session.remaining(prefix + MOMENTS)
    past = [[] if pool else None for _ in ellipsoids]
    context = _Context(session, rows, units, form, centered, prefix, past)
    for number in range(most_rounds):
        radius = math.sqrt(max(e.square for e in ellipsoids))
        part = budget * (share or _round_share(ellipsoids, rows.n_features, form, budget))
        taken = repair(ellipsoids, number) if repair else ellipsoids
        ellipsoids, seen, open_ = context.round(
            taken, assign(taken, number), radius, part, last=False
        )
        left = session.remaining(prefix + MOMENTS) * (1 - 1e-9)
        if number + 1 >= least_rounds and not open_.any() or left < (1 - _MOST_EXPLORED) * budget:
            break
    radius = _last_radius(ellipsoids, rows.n_features, left, seen)
    taken = repair(ellipsoids, number + 1) if repair else ellipsoids
    ellipsoids, seen, _ = context.round(taken, assign(taken, number + 1), radius, left, last=True)
    return ellipsoids, seen


def _round_share(ellipsoids, d, form, budget):
    """Enough for the noise to be small against a whitened component, within limits."""
    n = float(np.median([e.weight for e in ellipsoids]))
    level = normal_quantile(0.9, d) * _noise_norm(d, form) * noise_sd(budget) / n
    return float(np.clip((level / _LEVEL) ** 2, *_ROUND_SHARES))


def _last_radius(ellipsoids, d, rho, seen):
    """The clipping radius with the smallest predicted error."""
    if not all(seen):
        return math.sqrt(max(e.square for e in ellipsoids))
    n = float(np.median([e.weight for e in ellipsoids]))

    def error(q):
        square = normal_quantile(q, d)
        return _LOSSES[q] + square**2 / (4 * rho * n * _kept(square, d + 2) ** 2)

    return math.sqrt(normal_quantile(min(_LOSSES, key=error), d))


@dataclass(frozen=True)
class _Context:
    """What the rounds have in common."""

    session: object
    rows: object
    units: object
    form: str
    centered: bool
    prefix: str
    past: list

    def round(self, ellipsoids, weights, radius, rho, *, last):
        """One round of releases. Returns components, what is seen, and what may yet come out."""
        exact = exact_moments(self.rows, self.units, ellipsoids, weights, radius, self.form)
        shares = round_shares(
            rho, radius, self.rows.n_features, self.centered, self.form, len(ellipsoids)
        )
        release = release_moments(self.session, self.prefix, exact, radius, shares, self.form)
        results = [
            _updated(replace(e, square=radius**2), *values, self.form, self.rows.ball, last, past)
            for e, *values, past in zip(
                ellipsoids,
                release.counts,
                release.means,
                release.seconds,
                release.noise,
                self.past,
                strict=True,
            )
        ]
        seen = np.array([result[1] for result in results])
        hopeless = np.array([result[2] > 1.0 for result in results])
        return [result[0] for result in results], seen, ~seen & ~hopeless


def fit_gram(session, rows, units, radius, *, centered=False, prefix=""):
    """One release of all the budget, clipped to a public radius: the classical bounded route."""
    start = Ellipsoid.ball(np.zeros(rows.n_features), radius)
    context = _Context(session, rows, units, "full", centered, prefix, [None])
    weights = component_weights(rows, [start])
    rho = session.remaining(prefix + MOMENTS) * (1 - 1e-9)
    (end,), seen, _ = context.round([start], weights, 1.0, rho, last=True)
    return end, bool(seen[0])
