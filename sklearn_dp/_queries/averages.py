"""Averages of points of unknown location, any two of which are near each other.

Of the survivors of a filter (:mod:`.cores`), of which every two have a common friend, or of the
members of a released ball. Two things are released, here, where the exact numbers are:

1. a number that is below their true number but for a probability delta (:func:`core_size`);
2. their average, with Gaussian noise in proportion to the distance of two points over that number.

How far from the origin the points are has no part in it. That is also why the sums are integers on
a public grid, so that parts of a table can add them up: a float sum of points at 1e9 would have
low-order bits that tell where they are. Rows are rounded to a step that is small beside the radius,
and their average to one that is small beside its noise.

Size, filter and average together are in :mod:`.point_pairs`, as published [1]_;
`_aggregate.friendly.mean` refines that, which is three times as accurate in many dimensions.

References
----------
.. [1] E. Tsfadia, E. Cohen, H. Kaplan, Y. Mansour and U. Stemmer, "FriendlyCore: practical
   differentially private aggregation", ICML 2022, FC_Avg, with exact quantiles.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from .._costs import accounting
from .._costs.rounding import round_up
from .._privacy._grid import sum_type
from .._privacy._integers import exact_integers
from .._privacy._sealed import Claim, Sealed, exact_of
from .._privacy._session import PrivacySession
from .._privacy._units import UnitFacts
from .._rows.table import ROWS, Part
from ._query import Facts, PointQuery, check_points
from .balls import squared_distances
from .cores import BASIC_GAMMA

ROUNDING = 1e-9
"""A friend is at most (1 + this) times the radius away."""
_CLIP = 2.0**40  # offsets of rows, in steps; reached only where the guarantee is void
_SPAN_BITS = 22  # rows are rounded to radius / 2**22
_ROWS = UnitFacts()
_FINE_BITS = 16  # the average is rounded to about 2**-16 of its sensitivity


def core_size(
    session: PrivacySession,
    entry: str,
    m: int,
    units: UnitFacts,
    *,
    rho: float,
    delta: float,
    scale: int = 1,
) -> float:
    """A released number, maybe negative, that is at most m - 1 but for a probability of `delta`.

    `m` is the true number, or the weight in steps, of which an element has `scale` at the most;
    `units` are what the elements stand for. The entry pays `rho`; the caller is charged delta.
    """
    sd = 1 / math.sqrt(2 * rho)
    # One element changes the number by one, and the weight by `scale` steps at the most.
    noisy = session.release(
        entry, Sealed(m, Claim(float(scale), 1.0 / scale), units, "Size"), rho=rho
    )
    # size <= m - 1 unless round(sd Z) exceeds the shift: Z sd > shift - 1/2.
    return float(noisy) - 1.5 - round_up(-sd * float(ndtri(delta)))


def average_unit(radius: float) -> float:
    """The step that rows are rounded to: a power of two of at most radius / 2**22."""
    return math.ldexp(1.0, math.frexp(radius)[1] - 1 - _SPAN_BITS)


def average_lattice(p: int, radius: float, size: float) -> tuple[float, int, float]:
    """The step of the rows (p,), how many bits finer their average is, and its sensitivity there.
    Any two rows are within 2 `radius`; `size` is at most their number minus one, and at least 1."""
    unit = average_unit(radius)
    fine = max(0, math.ceil(math.log2(size * unit * math.sqrt(p) / radius)) + _FINE_BITS)
    # Rounding moves a row by at most sqrt(p)/2 steps, so two rows are within
    # (2 radius / unit)(1 + 1e-9) + sqrt(p) steps; 2**fine / size of that is the change of the
    # exact average; rounding it changes each of p coordinates of the difference by at most 1.
    span = 2 * radius / unit * (1 + ROUNDING) + math.sqrt(p)
    return unit, fine, round_up(span * 2.0**fine / size + math.sqrt(p))


def rounded_mean(total: Any, mass: int, fine: int) -> Any:
    """round(2**fine total / mass), in Python integers; 0 of nothing."""
    return (total * 2 ** (fine + 1) + mass) // (2 * max(mass, 1))


class Members(PointQuery):
    """The points `among` some in a ball: how many, and their sum in steps of a public unit, which
    can be released as an average only."""

    center: np.ndarray
    radius: float
    limit: float  # of the length of a row
    among: str

    class Answer(NamedTuple):
        number: Sealed
        total: Sealed

    def _check(self) -> None:
        check_points(self.center[None])

    @property
    def nearest(self) -> float:
        """Half of what any two members are apart, at most."""
        return min(self.radius, self.limit)

    def on(self, part: Part) -> tuple[Part, tuple]:
        rows = part[ROWS]
        square = math.floor(self.radius**2)
        near = part[self.among] & (squared_distances(rows, self.center) <= square)
        # A row has at most 2**24 steps of the grid, and these are at least 2**-24 of one: integers
        # of at most 2**48, at most 2**16 of them in a chunk.
        total = np.zeros(rows.n_features, dtype=sum_type(rows.n_rows, 48))
        for place, x in rows.chunks():
            steps = np.rint(x[near[place]] * (1 / average_unit(self.nearest)))
            total += exact_integers(steps).sum(axis=0)
        return part, (int(np.count_nonzero(near)), total)

    def _claims(self, facts: Facts) -> tuple[Claim, ...]:
        """A point more or less, or another one, moves the number by at most one."""
        return Claim(1.0), Claim(math.inf)


def average_of_members(
    session: PrivacySession, size_entry: str, mean_entry: str, members: Members, answer: Any
) -> np.ndarray | None:
    """A noisy average of the members, of which any two are within two radii, or None.

    As in a friendly average: a row more or less moves the exact one by at most 2 radius over the
    released size, which is below their number but for the delta of its entry. All that the entries
    have left is spent.
    """
    number, total = (exact_of(each) for each in answer)
    rho, delta = session.remaining(size_entry), session.plan[size_entry].delta
    size = core_size(session, size_entry, number, answer.number.units, rho=rho, delta=delta)
    if size < 1:
        return None
    unit, fine, sensitivity = average_lattice(len(total), members.nearest, size)
    value = rounded_mean(total.astype(object), number, fine)
    claim = Claim(sensitivity, math.ldexp(unit, -fine))
    return session.release(mean_entry, Sealed(value, claim, answer.number.units, "Average"))


@dataclass(frozen=True)
class Average:
    """A released average."""

    mean: np.ndarray  # (p,)
    size: float  # released lower bound of the number of elements
    sd: float  # standard deviation of the noise in each coordinate


def friendly_average(
    session: PrivacySession,
    size_entry: str,
    mean_entry: str,
    rows: np.ndarray,
    radius: float,
    *,
    rho_size: float,
    rho_mean: float,
    delta: float,
    weights: np.ndarray | None = None,
    scale: int = 1,
    units: UnitFacts = _ROWS,
) -> Average | None:
    """Noisy average of elements (m, p) of which every two have a common friend, or None.

    Private for neighbors that add, remove or replace an element, provided that any two elements of
    either data set are within 2 `radius` of one another. The rows, finite, are the survivors of a
    filter; m is private, and may be 0. `delta` is the probability of the failure event, charged by
    the caller. None if there seem to be too few rows; nothing but the size is released then.
    Weights, in steps, are at most `scale`, which is one; the number of rows is then their weight.
    `units` are what the elements stand for.

    Given ``size <= m`` of the larger data set minus one, which fails with probability at most
    `delta`: adding, removing or replacing a row moves the exact average by at most 2 radius / m <=
    2 radius / size. With m = 0 there is an answer with probability at most `delta` only, and so for
    m = 1. With m for the weight of all rows this is as true: a row of weight w, at most one, moves
    the average by at most 2 radius w / m.
    """
    m = len(rows) if weights is None else int(weights.sum())
    size = core_size(session, size_entry, m, units, rho=rho_size, delta=delta, scale=scale)
    if size < 1:
        return None
    value, unit, sensitivity = _rounded_average(rows, radius, size, weights)
    sealed = Sealed(value, Claim(sensitivity, unit), units, "Average")
    mean = session.release(mean_entry, sealed, rho=rho_mean)
    return Average(mean, size, sensitivity * unit / math.sqrt(2 * rho_mean))


def _rounded_average(
    rows: np.ndarray, radius: float, size: float, weights: np.ndarray | None = None
) -> tuple[np.ndarray, float, float]:
    """The average (p,) in exact integers of a fine public grid, the step, and the sensitivity.

    Everything is an integer from the first step on, so no low-order bits of the rows can show. Any
    two rows (m, p) are within 2 `radius` of each other; `size` is at most m - 1, at least 1.
    """
    unit, fine, sensitivity = average_lattice(rows.shape[1], radius, size)
    value = _exact_average(np.rint(rows * (1 / unit)), fine, weights)
    return value, math.ldexp(unit, -fine), sensitivity


def _exact_average(steps: np.ndarray, fine: int, weights: np.ndarray | None = None) -> np.ndarray:
    """round(2**fine * mean) of integer-valued float rows, in Python integers."""
    mass = len(steps) if weights is None else int(weights.sum())
    if not mass:
        return np.zeros(steps.shape[1], dtype=np.int64).astype(object)
    first = np.array([int(value) for value in steps[0]], dtype=object)
    # Exact: rows within 2**24 steps of the first are integers, or multiples of nearly the same
    # power of two. The result does not depend on which row is the first.
    offsets = exact_integers(np.clip(steps - steps[0], -_CLIP, _CLIP))
    if weights is not None:  # products of up to 2**60: their sums are Python integers
        offsets = offsets.astype(object) * weights[:, None]
    return rounded_mean(offsets.sum(axis=0).astype(object) + mass * first, mass, fine)


def basic_average_budget(epsilon: float, delta: float) -> tuple[float, float, float]:
    """Return the budget of a friendly average on a basic core, and the cost of both together.

    rho for the size and the mean of :func:`friendly_average` together; delta for its failure event;
    and the zCDP cost of the (epsilon, delta)-DP whole, to be charged to the filter.

    The average is (e, 2 delta_inner)-DP: Gaussian releases within (e, delta_inner), and its failure
    event. With g = `BASIC_GAMMA` the whole is (g (exp(e) - 1), 2 g delta_inner exp(e +
    epsilon))-DP; e and delta_inner solve that for epsilon and delta.
    """
    inner = math.log1p(epsilon / BASIC_GAMMA) * (1 - ROUNDING)
    delta_inner = delta / (2 * BASIC_GAMMA * math.exp(inner + epsilon)) * (1 - ROUNDING)
    rho, _ = accounting.approx_dp_zcdp(epsilon, delta)
    return accounting.gaussian_rho(inner, delta_inner), delta_inner, rho
