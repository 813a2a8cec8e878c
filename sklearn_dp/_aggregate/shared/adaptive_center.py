"""Where the data are and how far they reach, at any scale: what moments are taken about.

The radius that rows are clipped to has to fit them: too large, and the noise drowns the answer; too
small, and the clip bends it. Nothing is known about the scale, so it is found in rounds: a released
mean of the rows in the present ball, then a released radius about it that most rows are within, on
a public grid of all scales. The noise of a mean is proportional to the ball that its rows are
clipped to, so each round sees more (:func:`adaptive_center_radius`). Rows of shape (n, d) in the
user's unit come in; what goes out is in grid steps.

:func:`center_and_count` is one such round: an algorithm's noise is proportional to the radius of
the ball that rows are clipped to, and about a center they are shorter. The number of rows comes
with the center, in one Gaussian release of the joint vector.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..._costs.plan import PlanEntry
from ..._privacy._domain import Domain
from ..._privacy._session import PrivacySession
from ..._queries.handles import GridRows
from ..._queries.places import SumAndTotals
from ..._queries.table_rows import TableRows
from ..._status import Message, Status
from .bounds import more_beyond, radius_about, squares_outside, upper_bound_outside
from .centering import Weights, noise_sd
from .noisy_norms import NoisyNorms

_BOUND, _CENTER, _REACH = "bound", "location", "reach"
_ROUNDS = 3
_EXACT = 0.1  # noise of a count, below which all units are within the ball
_FEWER = "too few rows for this budget"
_MORE = "use more rows or a larger epsilon"
_NOT_SEEN = Message("few_rows", f"{_FEWER} to find the range of the data", (), _MORE, "all")
_FEW = Message("few_rows", f"{_FEWER}: the answer is mostly noise", (), _MORE, "all")
_WORDS = {
    # Sensitivities in words, for the plan; the proofs stand where the numbers are computed:
    # `centering` for the mean and the count, `private_radius` for the histograms.
    _BOUND: "a unit adds 1 to the histogram of norms",
    _CENTER: "sqrt(5)/2 radius: the sum moves by the radius, half a radius times the count too",
    _REACH: "a unit adds 1 to the histogram of distances from the location",
}


@dataclass(frozen=True)
class CenterRadius:
    """Where most of the rows are."""

    rows: GridRows  # about the released center, clipped to the domain, on its grid
    domain: Domain
    # of the released ball about the center that holds most of the rows, in grid steps
    radius: float
    size: float  # released number of units, positive
    status: Status
    beyond: float  # the most units that may lie beyond the radius of the domain (95%)
    # (d,), standard deviation of the noise of the center, in the user's unit
    error: np.ndarray
    size_sd: float  # standard deviation of the size
    weights: Weights = Weights()  # what was released of the weights of rows
    squares: float = 0.0  # about the most that clips take of the sum of squares, in squared steps
    count: float = math.inf  # the number of units as released: it may be negative


def center_radius_entries(rho: float, share: float) -> tuple[PlanEntry, ...]:
    """Plan entries of `adaptive_center_radius`: equal parts, at most ``share * rho`` in all, as
    `nextafter` rounds each down."""
    part = math.nextafter(rho * share / 3, 0.0)
    return tuple(
        PlanEntry.gaussian(name, part, _WORDS[name], uses=1 if name == _BOUND else _ROUNDS)
        for name in (_BOUND, _CENTER, _REACH)
    )


def adaptive_center_radius(
    session: PrivacySession,
    table: TableRows,
    domain: Domain | None,
    *,
    fraction: float = 0.99,
    wider: float = 1.0,
    kept: bool = True,
) -> CenterRadius:
    """Find a ball about the mean that holds most of the rows.

    1. Even with a public bound most rows may be much nearer: release a radius about the public
    center (or the origin) that 99.9% of the units are within, and clip to it.

    2. Release the mean and the count of the clipped rows.

    3. Release the radius about that mean that holds `fraction` of the units. It may be found as
    large as twice the ball before: a mean at its border can have rows at the opposite one.

    4. If it is at most a quarter of the one before, the mean was noisy: go on with 2; three rounds
    at most.

    5. Widen the ball by `wider`, how much farther rows may reach, and put the rows on its grid,
    `kept` for more than one pass.

    A radius that is not found leaves the ball as it was, and so does one that most rows seem to lie
    beyond. All decisions follow from releases.
    """
    known, center, most = domain, *_known(table, domain)
    ball = Domain(center, most)
    # A third of an entry for each round, and less by more than rounding could add up to.
    rho = [session.plan[name].rho / _ROUNDS * (1 - 1e-12) for name in (_CENTER, _REACH)]
    if noise_sd(rho[1]) < _EXACT:  # noise is nothing, so what a clip would save is nothing
        fraction = 1.0
    at_first = max(0.999, fraction)
    radius, first = radius_about(session, _BOUND, table, ball, known, fraction=at_first)
    radius = _believed(radius, first, most)
    status = Status([_NOT_SEEN] if radius is None else [])
    domain = _box(center, _least(radius, most))
    for _ in range(_ROUNDS):
        rows = GridRows.quantize(table, domain, known, kept=False)
        origin, count, variance, weights = center_and_count(session, _CENTER, rows, rho[0])
        before, sd = domain.radius, math.sqrt(variance)
        # Of the count of noise `sd` the sum has half a radius for each coordinate.
        size = max(count, 4 * sd)
        error = np.hypot(rows.limit / 2, origin) * (sd / size * rows.unit)
        domain = _box(domain.center + origin * rows.unit, 2 * before)
        radius, norms = radius_about(
            session, _REACH, table, domain, known, rho=rho[1], fraction=fraction
        )
        radius = _believed(radius, norms, 2 * before)
        domain = _box(domain.center, before if radius is None else min(radius, 2 * before))
        # The noise of the mean was proportional to the ball before: one that has hardly shrunk
        # has nothing more to give.
        if domain.radius > before / 4:
            break
    if count < 5 * max(sd, noise_sd(rho[1])) and not status:
        status = Status([_FEW])
    domain = _box(domain.center, wider * domain.radius)
    rows = GridRows.quantize(table, domain, known, kept=kept)
    # Rows beyond twice the ball before were moved toward it, before their norms were taken.
    beyond = upper_bound_outside(norms, min(domain.radius, 2 * before), count, sd)
    shift = float(np.linalg.norm(domain.center - center))
    squares = squares_outside(norms, domain.radius, first, shift, (2 * before, most))
    size, releases = max(size, 1.0), (beyond, error, sd, weights, squares / rows.unit**2, count)
    return CenterRadius(rows, domain, rows.ball / wider, size, status, *releases)


def _believed(radius: float | None, norms: NoisyNorms, most: float) -> float | None:
    """The radius, or None where noise was taken for rows, which are `most` away at most."""
    return None if radius is None or more_beyond(norms, radius, most) else radius


def _known(table: TableRows, domain: Domain | None) -> tuple[np.ndarray, float]:
    """The center (d,) and radius of public bounds, if there are any; infinite without bounds."""
    if domain is None:
        return np.zeros(table.n_features), math.inf
    return domain.center, domain.radius


def _least(radius: float | None, most: float) -> float:
    """The released radius within the public one; the unit ball when there is neither."""
    if radius is None:
        return most if most < math.inf else 1.0
    return min(radius, most)


def _box(center: np.ndarray, radius: float) -> Domain:
    """Rows are cut to a box first, so that no difference overflows, and then to the ball in it."""
    return Domain(center, radius, center - radius, center + radius)


class Center(NamedTuple):
    """A released center and the number of units."""

    origin: np.ndarray  # (d,), in grid steps
    number: float  # of units, may be negative
    variance: float  # of the noise of the number
    weights: Weights


def center_and_count(session: PrivacySession, entry: str, rows: GridRows, rho: float) -> Center:
    """Release a center, the number of units, and what is to be told of their weights. The origin is
    the noisy mean in the ball, shrunk toward the public center where noise rules."""
    radius, d, sd = rows.limit, rows.n_features, noise_sd(rho)
    noisy = session.release(entry, rows.ask(SumAndTotals()), rho=rho)
    of_sum, of_totals = SumAndTotals.scales(rows.units)
    count, count_sd = float(noisy[d]), float(of_totals[0] * sd)
    n = max(count, 4 * count_sd)
    origin = _shrunk(noisy[:d] / rows.unit / n, radius * of_sum * sd / n, radius)
    return Center(origin, count, count_sd**2, Weights.of(noisy[d:], of_totals * sd))


def _shrunk(mean: np.ndarray, noise: float, radius: float) -> np.ndarray:
    """Positive-part James-Stein of the mean (d,), with noise of a coordinate, inside the ball."""
    length = max(float(np.linalg.norm(mean)), 1e-300)
    if len(mean) > 2:
        mean = mean * max(0.0, 1 - len(mean) * (noise / length) ** 2)
    return np.trunc(mean * min(1.0, radius / length))
