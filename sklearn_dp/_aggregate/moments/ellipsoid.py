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
from scipy.special import chdtr, chdtrc, chdtri, exp2

from ..._privacy._grid import Grid, sum_type
from ..._privacy._session import PlanEntry, round_up
from ..shared.centering import noise_sd

__all__ = [
    "FORMS",
    "WEIGHT_STEPS",
    "Ellipsoid",
    "component_weights",
    "exact_moments",
    "fit_gram",
    "moment_entries",
    "normal_quantile",
    "refine",
]

FORMS = ("full", "tied", "diag", "spherical")
"""What is known of the shapes: anything, all the same, along the coordinate axes, balls."""

_COUNTS, _SUMS, _MOMENTS = "component counts", "component sums", "component moments"
_WORDS = {
    _COUNTS: "a unit adds at most 1 to all the counts together",
    _SUMS: "a unit adds whitened rows clipped to the radius",
    _MOMENTS: "squared radius in Frobenius norm, in whitened coordinates",
}
WEIGHT_STEPS = 2**20  # of the weight of a row in a component
_LEVELS = 1023  # responsibilities; 1023 * 1025 < 2**20
_LIMIT = 2**15  # norm of a clipped whitened row in steps: its square and sums of it are exact
_BASIS = 2.0**26
_NARROWEST = 0.05  # grid steps: a narrower component is a point
_COUNT_SHARE = 0.04
_MOST_ROUNDS = 16
_ROUND_SHARES = 0.03, 0.2  # of the budget, for each round but the last
_MOST_EXPLORED = 0.6  # of the budget, before the last round
_DRIFT = 0.05  # what an earlier second moment may be off by, beside its noise
_LEVEL = 0.25  # of the noise in the whitened second moment, aimed at before the last round
_LOSSES = {0.999: 1.0, 0.99: 1.03, 0.9: 1.15, 0.7: 1.5}  # of efficiency when more is clipped


@dataclass(frozen=True)
class Ellipsoid:
    """A released component, in grid steps.

    Attributes
    ----------
    center : ndarray of shape (d,), integer-valued
        In the ball of the rows.
    axes : ndarray of shape (d, d)
        Orthonormal columns.
    scales : ndarray of shape (d,)
        Standard deviations along the axes.
    square : float
        About the largest squared whitened length of most of the rows.
    weight : float
        Released number of units.
    """

    center: np.ndarray
    axes: np.ndarray
    scales: np.ndarray
    square: float
    weight: float = 1.0

    @classmethod
    def ball(cls, center, radius, square=1.0, weight=1.0):
        """The same standard deviation in all directions."""
        d = len(center)
        scales = np.full(d, max(float(radius), _NARROWEST))
        return cls(center, np.eye(d), scales, square, weight)

    def whiten(self, x, steps):
        """Integer whitened coordinates of integer rows, `steps` to a standard deviation.

        Exact products: |x - center| <= 2**25 and columns of 2**26 give integers below 2**52. What
        follows is elementwise, so a row is whitened the same whatever rows there are beside it.
        """
        product = (x - self.center) @ np.rint(self.axes * _BASIS)
        return np.trunc(product * (steps / (_BASIS * self.scales)))

    @property
    def factor(self):
        """A matrix B with covariance B B^T."""
        return self.axes * self.scales

    @property
    def covariance(self):
        """In squared grid steps."""
        return self.factor @ self.factor.T


def moment_entries(rho, *, centered=False, prefix=""):
    """Plan entries of `refine` and `fit_gram`, worth `rho` in all.

    The shares of a round depend on released sizes, so each line may spend up to `rho`, and all
    of them together no more than that.
    """
    names = (_COUNTS, _MOMENTS) if centered else (_COUNTS, _SUMS, _MOMENTS)
    shares = (_COUNT_SHARE, 1 - _COUNT_SHARE) if centered else (_COUNT_SHARE, 0.2, 0.76)
    return tuple(
        PlanEntry(prefix + name, "gaussian", math.nextafter(rho * share, 0.0), uses=None,
                  max_rho=rho, sensitivity=_WORDS[name])
        for name, share in zip(names, shares, strict=True))


# -- exact statistics ---------------------------------------------------------------------------


def component_weights(rows, ellipsoids, *, soft=True):
    """How much each row belongs to each released component.

    Returns
    -------
    weights : ndarray of int32 of shape (n, k)
        In steps of 2**-20; those of a row sum to at most 1.

    Notes
    -----
    The squared whitened lengths are exact integers (entries of at most 2**20, d of at most 2**13),
    and everything after them is elementwise in a fixed order, so that a row's weights depend on
    nothing but that row. (scipy's exp2 is a scalar function; numpy's own may differ by lane.)
    """
    weights = np.zeros((rows.n_rows, len(ellipsoids)), dtype=np.int32)
    if len(ellipsoids) == 1:
        weights[:] = WEIGHT_STEPS
        return weights
    offsets = [math.log(max(e.weight, 1e-300)) - float(np.log(e.scales).sum()) for e in ellipsoids]
    for part, x in rows.chunks(len(ellipsoids)):
        energies = [_energy(e, x) - offset for e, offset in zip(ellipsoids, offsets, strict=True)]
        least = np.minimum.reduce(energies)
        if not soft:
            label = np.argmin(energies, axis=0)
            weights[part][np.arange(len(x)), label] = WEIGHT_STEPS
            continue
        parts = [exp2((least - energy) * math.log2(math.e)) for energy in energies]
        total = np.zeros(len(x))
        for share in parts:
            total += share
        for j, share in enumerate(parts):
            # Rounded down by far more than the errors above: levels sum to at most 1023.
            level = np.floor(share / total * (_LEVELS + 1) * (1 - 2.0**-40))
            weights[part, j] = level * (WEIGHT_STEPS // _LEVELS)
    return weights


def _energy(ellipsoid, x):
    """Half of the squared whitened length."""
    white = np.clip(ellipsoid.whiten(x, 2.0**10), -(2.0**20), 2.0**20)
    return np.einsum("ij,ij->i", white, white) * 2.0**-21


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
            sums[j] += np.trunc(white * (weight / WEIGHT_STEPS)[:, None]).sum(
                axis=0).astype(np.int64)
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


# -- releases -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Shares:
    """What a round spends on its releases; None is a release that is not made."""

    counts: float
    sums: float | None
    moments: float


@dataclass(frozen=True)
class _Release:
    """Noisy counts (k,), mean whitened rows (k, d), and second moments per unit (k, d, d)."""

    counts: np.ndarray
    means: np.ndarray
    seconds: np.ndarray
    noise: np.ndarray  # standard deviation of a diagonal entry of `seconds`, (k,)


def _shares(rho, radius, d, centered, form="full", k=1):
    """Sums and second moments in the ratio that makes the sum of their squared errors least.

    The loss of a component is about |mean error|^2 / 2 + |covariance error|_F^2 / 4, where it is
    whitened; what is seen of a form with fewer entries needs less.
    """
    counts = _COUNT_SHARE * rho
    rest = (rho - counts) * (1 - 1e-12)
    if centered:
        return _Shares(counts, None, rest)
    entries = {"diag": d, "spherical": 1 / d, "tied": d * (d + 1) / 2 / k**2}.get(
        form, d * (d + 1) / 2)
    ratio = math.sqrt(2 * d / entries) / radius
    return _Shares(counts, rest * ratio / (1 + ratio), rest / (1 + ratio))


def _release(session, prefix, exact, radius, shares, form):
    counts, sums, moments = exact
    k, d = sums.shape
    # A row has weights of sum at most one, so a unit adds at most that to the counts together.
    noisy = session.gaussian(prefix + _COUNTS, counts, sensitivity=WEIGHT_STEPS,
                             unit=1 / WEIGHT_STEPS, rho=shares.counts)
    floor = 4 * noise_sd(shares.counts)
    n = np.maximum(noisy, max(floor, 1.0))
    means, unit = np.zeros((k, d)), radius / _LIMIT
    if shares.sums is not None:
        # The stacked sums move by sum_j w_j |white_j| <= max_j |white_j| <= limit.
        means = session.gaussian(prefix + _SUMS, sums, sensitivity=_LIMIT, unit=unit,
                                 rho=shares.sums) / n[:, None]
    square = float(_LIMIT) ** 2
    sensitivity = np.broadcast_to(_moment_sensitivity(d, form, square), moments.shape)
    values = session.gaussian(prefix + _MOMENTS, moments, sensitivity=sensitivity,
                              unit=unit**2, rho=shares.moments)
    size = np.full(k, n.sum()) if form == "tied" else n
    seconds = _matrices(values, d, form)
    if form == "tied":
        shift = np.einsum("k,ka,kb->ab", n, means, means)
        seconds = np.repeat((seconds - shift) / n.sum(), k, axis=0)
    else:
        seconds = seconds / n[:, None, None] - _products(means, form)
    return _Release(noisy, means, seconds, radius**2 * noise_sd(shares.moments) / size)


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


# -- what a round makes of them (post-processing) ----------------------------------------------


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


def normal_quantile(share, d):
    """Squared length that holds a share of a standard normal law."""
    return float(chdtri(d, 1 - share))


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
    upper = np.maximum(values, min(0.01, 0.1 * level + 1e-9)) if seen or last else (
        np.maximum(values, 0.0) + min(level, 1.0) + 1e-3)
    parts = (np.maximum(values, 0.0) + 0.5 * min(level, 1.0)) / upper
    square = normal_quantile(0.9, d) if seen else (
        float(parts.sum()) + 1.3 * math.sqrt(2 * float(np.square(parts).sum())))
    axes, scales = _composed(ellipsoid, vectors, np.sqrt(upper), form)
    shift = _within(mean, math.sqrt(ellipsoid.square))
    center = _within(ellipsoid.center + ellipsoid.factor @ shift, ball)
    return Ellipsoid(np.rint(center), axes, scales, square, max(count, 1.0)), seen, level


def _composed(ellipsoid, vectors, roots, form):
    """Axes and scales of the covariance B V U V^T B^T."""
    if form in ("diag", "spherical"):
        return ellipsoid.axes, np.maximum(ellipsoid.scales * roots, _NARROWEST)
    axes, scales, _ = np.linalg.svd(ellipsoid.factor @ (vectors * roots))
    return axes, np.maximum(scales, max(_NARROWEST, 1e-7 * scales[0]))


def _within(vector, radius):
    return vector * min(1.0, radius / max(float(np.linalg.norm(vector)), 1e-300))


# -- rounds -------------------------------------------------------------------------------------


def refine(session, rows, units, ellipsoids, *, assign, form="full", least_rounds=1,
           most_rounds=_MOST_ROUNDS, share=None, centered=False, pool=False, prefix=""):
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
    form : str, one of `FORMS`
    least_rounds, most_rounds : int
        Before the last one. There are more of them as long as directions are hidden in the noise
        and may come out of it, which released values tell.
    share : float, optional
        Of the budget, for each round but the last; chosen by the released sizes by default.
    centered : bool
        Whether the centres are known.
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
    budget = left = session.remaining(prefix + _MOMENTS)
    past = [[] if pool else None for _ in ellipsoids]
    context = _Context(session, rows, units, form, centered, prefix, past)
    for number in range(most_rounds):
        radius = math.sqrt(max(e.square for e in ellipsoids))
        part = budget * (share or _round_share(ellipsoids, rows.n_features, form, budget))
        ellipsoids, seen, open_ = context.round(
            ellipsoids, assign(ellipsoids, number), radius, part, last=False)
        left = session.remaining(prefix + _MOMENTS) * (1 - 1e-9)
        if number + 1 >= least_rounds and not open_.any() or left < (1 - _MOST_EXPLORED) * budget:
            break
    radius = _last_radius(ellipsoids, rows.n_features, left, seen)
    ellipsoids, seen, _ = context.round(ellipsoids, assign(ellipsoids, number + 1), radius, left,
                                        last=True)
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
        shares = _shares(rho, radius, self.rows.n_features, self.centered, self.form,
                         len(ellipsoids))
        release = _release(self.session, self.prefix, exact, radius, shares, self.form)
        results = [
            _updated(replace(e, square=radius**2), *values, self.form, self.rows.ball, last, past)
            for e, *values, past in zip(ellipsoids, release.counts, release.means, release.seconds,
                                        release.noise, self.past, strict=True)]
        seen = np.array([result[1] for result in results])
        hopeless = np.array([result[2] > 1.0 for result in results])
        return [result[0] for result in results], seen, ~seen & ~hopeless


def fit_gram(session, rows, units, radius, *, centered=False, prefix=""):
    """One release of all the budget, clipped to a public radius: the classical bounded route."""
    start = Ellipsoid.ball(np.zeros(rows.n_features), radius)
    context = _Context(session, rows, units, "full", centered, prefix, [None])
    weights = component_weights(rows, [start])
    rho = session.remaining(prefix + _MOMENTS) * (1 - 1e-9)
    (end,), seen, _ = context.round([start], weights, 1.0, rho, last=True)
    return end, bool(seen[0])
