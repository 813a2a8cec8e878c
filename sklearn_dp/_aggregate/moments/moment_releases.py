"""Counts, sums and second moments of whitened, clipped rows: exact integers, and releases.

For each component j of k, with weights w_j of a row that sum to at most one, and the row whitened
by the released ellipsoid of j and clipped to a radius r, white_j:

1. :func:`exact_moments` adds up w_j, w_j white_j and w_j white_j white_j^T over the rows of a part
   of the table, as integers: one pass a round.
2. :func:`release_moments` adds noise and divides by the noisy counts. All k components together
   cost what one costs: a row that comes or goes moves the stacked counts by at most 1, the stacked
   sums by at most r, and the stacked second moments by at most r**2 in Frobenius norm, whatever
   the weights are. The proofs stand at the lines of the numbers.

Where the rows are not those of a normal law, fourth powers of each column come with the second
moments: they tell how uncertain these are.

:func:`round_shares` divides the budget of a round among the three. A unit of many rows has weights
that sum to at most one over all its rows, so that it counts as one row.
"""

import math
from dataclasses import dataclass

import numpy as np

from ..._privacy._grid import clip_integer_columns, sum_type
from ..._privacy._plan import PlanEntry
from ..._privacy._rounding import exact_integers, round_up
from ..._privacy._session import PrivacySession
from ..._privacy._units import Units
from ..._queries.labels import LABELS
from ..._rows.table import ROWS, Part
from ..shared.centering import noise_sd
from .ellipsoid import LEVEL, WEIGHT_STEPS, Ellipsoid, component_weights

WEIGHTS = "component weights"
"""Name of the levels of the weights of each row in the components of the next round, as uint16, in
the state of a part."""

_COUNTS, _SUMS, MOMENTS = "component counts", "component sums", "component moments"
DISTANCES = "component distances"
"""Plan entry of the counts of whitened distances, see :mod:`.tails`."""

_WORDS = {
    _COUNTS: "a unit adds at most 1 to all the counts together",
    _SUMS: "a unit adds whitened rows clipped to the radius",
    MOMENTS: "squared radius in Frobenius norm, in whitened coordinates",
    DISTANCES: "a unit adds at most 1 to all histograms of distances together",
}
_LIMIT = 2**15  # norm of a clipped whitened row in steps: its square and sums of it are exact
TAIL_SUMS = 0.2
"""Share of the sums where rows have long tails, at least."""
_COUNT_SHARE = 0.04
_DISTANCE_SHARE = 0.04, 0.08  # of mixtures; of a covariance, whose tails tell the clip
_FOURTHS = 0.05  # of the second moments, in squared sensitivity, where fourth powers are released
FOURTH_NOISE = math.sqrt(1 / _FOURTHS - 1)
"""Noise of fourth powers over that of squares, in squared radii."""
_FINE = 2.0**-15  # what squares are rounded by before they are squared


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
    own = math.nextafter(distances * rho * (1 - 1e-12), 0.0)
    words = _WORDS[DISTANCES]
    return (*entries, PlanEntry.gaussian(DISTANCES, own, words))


def exact_moments(
    part: Part,
    ellipsoids: list[Ellipsoid],
    radii: tuple[float, float],
    form: str,
    labeled: bool = False,
    fourths: bool = False,
) -> tuple[Part, tuple]:
    """Counts, sums and second moments of the whitened rows, clipped to two radii, as integers.

    Unreleased: sums of a term for each row, every term a function of its row alone and rounded
    toward zero, so that none is longer than the bound of its release. The weights of units multiply
    those of the components: of labels (`labeled`), or :func:`.ellipsoid.component_weights`, which
    the part may hold.

    Returns the part without these; counts (k,) in steps of 2**-20; sums (k, d) in steps of
    their radius / 2**15; moments (k, p) in squared steps: upper triangles, diagonals ("diag"),
    traces ("spherical"), or one for all if "tied"; and with `fourths` those of
    :func:`_fourth_powers`.
    """
    rows, units, known = part[ROWS], part.units, part.state.get(WEIGHTS)
    k, d = len(ellipsoids), rows.n_features
    exact = sum_type(rows.n_rows, 30)
    counts, sums = np.zeros(k, dtype=exact), np.zeros((k, d), dtype=exact)
    moments = np.zeros((k, _n_moments(d, form)), dtype=exact)
    powers = np.zeros((k, d), dtype=exact)
    for place, x in rows.chunks(k):
        if labeled:
            weights = _whole(part[LABELS][place], k)
        elif known is not None:
            weights = np.multiply(known[place], LEVEL, dtype=np.int32)
        else:
            squares = (ellipsoid.squares(ellipsoid.products(x)) for ellipsoid in ellipsoids)
            weights = component_weights(len(x), squares, ellipsoids)
        share = row_weights(weights, units, place)
        for j, ellipsoid in enumerate(ellipsoids):
            weight, own = share[:, j], x
            inside = np.flatnonzero(weight > 0)  # several times as fast as of floats
            if len(inside) < len(x):
                weight, own = weight[inside], x.take(inside, axis=0)
            near, white = _clipped(ellipsoid, ellipsoid.products(own), radii)
            counts[j] += int(weight.sum())
            # Rounding toward zero: |weighted row| <= weight |row|.
            sums[j] += exact_integers(_times(near, weight / WEIGHT_STEPS).sum(axis=1))
            # The root of the weight scales the row, rounded down: its square is at most weight.
            root = np.floor(np.sqrt(weight) * 2.0**10) * 2.0**-20
            moments[j] += _moments_of(_times(white, root).T, form)
            if fourths:
                powers[j] += _fourth_powers(own, ellipsoid, radii[1], weight)
    if form == "tied":
        moments = moments.sum(axis=0, keepdims=True)
    return part.without(LABELS, WEIGHTS), (counts, sums, moments, *([powers] if fourths else []))


def _clipped(
    ellipsoid: Ellipsoid, products: np.ndarray, radii: tuple[float, float]
) -> list[np.ndarray]:
    """Whitened rows (d, n) clipped to each of two radii, in steps of 2**-15 of it."""
    found = [
        clip_integer_columns(ellipsoid.whitened(products, _LIMIT / radius), _LIMIT)
        for radius in dict.fromkeys(radii)
    ]
    return [found[0], found[-1]]


def _times(white: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Integer columns times factors of at most one, rounded toward zero; not copied where all are
    one."""
    if (factors == 1.0).all():
        return white
    white = white * factors
    return np.trunc(white, out=white)


def row_weights(weights: np.ndarray, units: Units, place: slice) -> np.ndarray:
    """Weights of rows in components times those of their units, as integers in steps of 2**-20."""
    share = weights.astype(np.float64)
    if units.weights is None:
        return share
    # Exact products of integers below 2**20 each, rounded down.
    return np.floor(share * (units.weights[place] * units.step)[:, None])


def _fourth_powers(
    x: np.ndarray, ellipsoid: Ellipsoid, radius: float, weight: np.ndarray
) -> np.ndarray:
    """Weighted sums of the fourth powers of columns over their released standard deviations, in
    2**15 times their squares: of rows clipped to the radius, at most their weight times 2**30."""
    steps = _LIMIT / (radius * ellipsoid.deviations)
    columns = np.subtract(x.T, ellipsoid.center[:, None], order="C")
    columns *= steps[:, None]
    clipped = clip_integer_columns(np.trunc(columns, out=columns), _LIMIT)
    # Squares sum to at most 2**30, so their multiples of 2**15 to 2**15, and the squares of these
    # to 2**30. At most 2**16 of them: exact sums.
    squares = np.square(clipped)
    squares *= _FINE
    np.square(np.floor(squares, out=squares), out=squares)
    return exact_integers(_times(squares, weight / WEIGHT_STEPS).sum(axis=1))


def _whole(labels: np.ndarray, k: int) -> np.ndarray:
    """The whole weight of each row in the component of its label, in steps of 2**-20.

    >>> _whole(np.array([1, 0]), 2) / WEIGHT_STEPS
    array([[0., 1.],
           [1., 0.]])
    """
    weights = np.zeros((k, len(labels)), dtype=np.int32)  # rows of a component side by side
    weights[labels, np.arange(len(labels))] = WEIGHT_STEPS
    return weights.T


def _n_moments(d: int, form: str) -> int:
    """Numbers that a second moment of a form consists of."""
    return {"diag": d, "spherical": 1}.get(form, d * (d + 1) // 2)


def noise_entries(d: int, form: str) -> float:
    """Squared Frobenius norm of the noise of a second moment, over that of a released entry.

    "full" and "tied" have d entries on the diagonal of variance 1 and d (d - 1) off it of variance
    1 / 2, so d (d + 1) / 2. "spherical" releases the trace, a d-th of which stands d times on the
    diagonal: d (1 / d)**2.

    >>> noise_entries(4, "full"), noise_entries(4, "diag"), noise_entries(4, "spherical")
    (10.0, 4, 0.25)
    """
    return {"diag": d, "spherical": 1 / d}.get(form, d * (d + 1) / 2)


def _moments_of(x: np.ndarray, form: str) -> np.ndarray:
    """The entries of the sum of x x^T that a form has, exact: squares of at most 2**30, 2**16 of
    them."""
    if form == "diag":
        return exact_integers(np.square(x).sum(axis=0))
    if form == "spherical":
        return np.array([int(exact_integers(np.square(x).sum(axis=0)).sum())])
    columns = np.arange(x.shape[1])
    return exact_integers(x.T @ x)[columns[:, None] <= columns]  # the upper triangle, in its order


@dataclass(frozen=True)
class RoundShares:
    """The rho that a round spends on each of its releases; None is a release that is not made."""

    counts: float
    sums: float | None
    moments: float


@dataclass(frozen=True)
class MomentRelease:
    """What a round shows of k components, in their whitened coordinates."""

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
    exact: tuple,
    radii: tuple[float, float],
    shares: RoundShares,
    form: str,
) -> MomentRelease:
    """Release what `exact_moments` has counted. Post-processing: the mean product is taken off the
    second moments, and counts to divide by are at least four sd of their noise."""
    counts, sums, moments, *fourths = exact
    k, d = sums.shape
    # A row has weights of sum at most one, so a unit adds at most that to the counts together.
    noisy = session.gaussian(
        _COUNTS, counts, sensitivity=WEIGHT_STEPS, unit=1 / WEIGHT_STEPS, rho=shares.counts
    )
    floor = 4 * noise_sd(shares.counts)
    n = np.maximum(noisy, max(floor, 1.0))
    means, mean_noise, (near, radius) = np.zeros((k, d)), np.zeros(k), radii
    if shares.sums is not None:
        mean_noise = near * noise_sd(shares.sums) / n
        # The stacked sums move by sum_j w_j |white_j| <= max_j |white_j| <= limit.
        noisy_sums = session.gaussian(
            _SUMS, sums, sensitivity=_LIMIT, unit=near / _LIMIT, rho=shares.sums
        )
        means = noisy_sums / n[:, None]
    square, rho = float(_LIMIT) ** 2, shares.moments
    unit = radius / _LIMIT
    claims = np.broadcast_to(_moment_sensitivity(d, form, square), moments.shape)
    powers = None
    if fourths:
        values, powers = _with_fourths(session, moments, fourths[0], claims, unit**2, rho)
        powers, rho = powers / n[:, None], rho * (1 - _FOURTHS)
    else:
        values = session.gaussian(MOMENTS, moments, sensitivity=claims, unit=unit**2, rho=rho)
    size = np.full(k, n.sum()) if form == "tied" else n
    seconds = _matrices(values, d, form)
    seconds = seconds / size[: len(seconds), None, None] - products(means, form, n)
    noise, count_noise = radius**2 * noise_sd(rho) / size, noise_sd(shares.counts)
    return MomentRelease(noisy, means, seconds, noise, size, mean_noise, count_noise, powers)


def _with_fourths(
    session: PrivacySession,
    moments: np.ndarray,
    fourths: np.ndarray,
    claims: np.ndarray,
    unit: float,
    rho: float,
) -> list[np.ndarray]:
    """Noisy second moments and fourth powers of columns, in one release."""
    # A row's changes of the moments over their claims have a norm of at most one. So have its
    # fourth powers over 2**30, as its weights sum to at most one. Each over its claim here,
    # squared: (1 - share) + share = 1.
    powers = np.full(fourths.size, round_up(2.0**30 / math.sqrt(_FOURTHS)))
    noisy = session.gaussian(
        MOMENTS,
        np.concatenate([moments.ravel(), fourths.ravel()]),
        sensitivity=np.append(round_up(claims.ravel() / math.sqrt(1 - _FOURTHS)), powers),
        unit=np.repeat([unit, (unit / _FINE) ** 2], [moments.size, fourths.size]),
        rho=rho,
    )
    parts = np.split(noisy, [moments.size])
    return [part.reshape(of.shape) for part, of in zip(parts, (moments, fourths), strict=True)]


def _moment_sensitivity(d: int, form: str, square: float) -> np.ndarray:
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
