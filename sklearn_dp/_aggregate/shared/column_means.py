"""Released centers, refined column by column where columns have different units.

A clustering compares distances in the units of the table, and its noise is the same in all
coordinates: that of the column with the largest numbers. So where the sides of public bounds
differ by much (:func:`unequal`), or scales have been released, one last release refines the
centers: rows as offsets from their center (from the origin of the columns, where the center is
lost in its noise), in the units of the columns, summed for each cluster. Each column then has
noise in its own unit. Which cluster a row is in follows from the released centers and the row.

A row moves the sums by a vector of length at most sqrt(d), the number of one cluster by one and the
squares of the columns by a vector of length at most d.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..._privacy._domain import Domain
from ..._privacy._grid import Grid, sum_type
from ..._privacy._mechanisms import label_sums, weighted_bincount
from ..._privacy._plan import Mechanism, PlanEntry
from ..._privacy._rounding import exact_integers, round_up
from ..._privacy._session import PrivacySession
from .columns import Columns
from .rows import row_slices
from .single_rows import distances
from .table import Part, Table

__all__ = ["RefinedCenters", "refined_centers", "refinement_entry", "told_by_column", "unequal"]

_ENTRY = "columns of centers"
_REACH = 4.0  # released standard deviations of a column that its rows reach
_COUNTS, _SQUARES = 0.1, 0.1  # of the release, in squared sensitivity
_UNEQUAL = 4.0  # times the shortest side of a box that the longest is
_LOST = 0.25  # of half a side: a coordinate of a larger standard error tells nothing
_FEWEST = 3.0  # standard deviations of its noise that the number of rows of a cluster exceeds
_HIDDEN, _NAMED = 0.5, 5  # part of a column's spread that is noise; names in a status
_RULES = 0.99  # of the spread, in one column
_COARSE = 2.0**9  # steps of 2**-24 in a step of 2**-15, whose squares add up exactly


class RefinedCenters(NamedTuple):
    """Centers, their standard errors, and the spread of each column within the clusters."""

    centers: np.ndarray  # (k, d)
    std_error: np.ndarray  # (k, d)
    spread: np.ndarray  # (d,)


def unequal(domain: Domain | None) -> bool:
    """Whether public bounds are a box whose sides differ by so much that centers are refined."""
    if domain is None or domain.low is None:
        return False
    sides = (domain.high - domain.low)[domain.high > domain.low]
    return len(sides) > 1 and bool(sides.max() > _UNEQUAL * sides.min())


def refinement_entry(rho: float) -> PlanEntry:
    """The plan entry of :func:`refined_centers`."""
    words = "a unit adds an offset, clipped to the reach of the columns, to one center"
    return PlanEntry(_ENTRY, Mechanism.GAUSSIAN, math.nextafter(rho, 0.0), sensitivity=words)


def refined_centers(
    session: PrivacySession,
    table: Table,
    columns: Columns,
    centers: np.ndarray,
    std_error: np.ndarray,
    square: float = 1.0,
) -> RefinedCenters:
    """Centers of shape (k, d), with standard errors of that shape or one each, refined.

    `square`: what weights of rows multiply sampling variances by, see :mod:`.weights`.
    """
    scale = columns.scale if columns.box is not None else _REACH * columns.scale
    k, d = centers.shape
    before = np.broadcast_to(std_error, (k, d)) if std_error.ndim == 2 else std_error[:, None]
    before = np.broadcast_to(before, (k, d))
    base = np.where(before < _LOST * scale, centers, columns.origin)
    radius = math.sqrt(d)
    grid = Grid.for_radius(radius)
    total, counts, squares = table.sums(_offsets, columns.box, centers, base, scale, radius)
    # A row adds a vector of norm at most `limit` to the sums of one cluster, one to its number,
    # and to the squares a vector of norm at most the square of the coarse limit. Each over its
    # claim, squared: (1 - counts - squares) + counts + squares = 1. A unit is a combination of
    # rows with weights of sum one at most, so it adds no more.
    limit, units = grid.steps(radius), table.units
    claims = (
        np.full(k * d, round_up(limit / math.sqrt(1 - _COUNTS - _SQUARES))),
        np.full(k, round_up(units.scale / math.sqrt(_COUNTS))),
        np.full(d, round_up((limit / _COARSE) ** 2 / math.sqrt(_SQUARES))),
    )
    unit = np.repeat([grid.unit, units.step, (_COARSE * grid.unit) ** 2], [k * d, k, d])
    rho = session.remaining(_ENTRY)
    noisy = session.gaussian(
        _ENTRY,
        np.concatenate([total.ravel(), counts, squares]),
        sensitivity=np.concatenate(claims),
        unit=unit,
        rho=rho,
    )
    sd = np.concatenate(claims) * unit / math.sqrt(2 * rho)
    number, number_sd = noisy[k * d : k * d + k, None], sd[k * d]
    least = np.maximum(number, _FEWEST * number_sd)
    offset = np.clip(noisy[: k * d].reshape(k, d) / least, -1.0, 1.0)
    within = np.maximum(noisy[k * d + k :] - (least * np.square(offset)).sum(axis=0), 0.0)
    spread = np.minimum(np.sqrt(within / least.sum()), 1.0)
    noise = np.hypot(sd[0] / least, offset * number_sd / least)
    # Two estimates with noise of their own; where there are no rows the first one stays.
    gain = before**2 / (before**2 + np.square(noise * scale))
    gain = np.where(number > _FEWEST * number_sd, gain, 0.0)
    refined = base + offset * scale
    after = centers + gain * (refined - centers)
    error = np.where(
        gain > 0, np.hypot(noise, spread * math.sqrt(square) / np.sqrt(least)) * scale, before
    )
    if columns.box is not None:
        after = columns.box.clip_points(after)
    return RefinedCenters(after, np.minimum(error, before), spread * scale)


def _offsets(
    part: Part,
    box: Domain | None,
    centers: np.ndarray,
    base: np.ndarray,
    scale: np.ndarray,
    radius: float,
) -> tuple[Part, tuple]:
    """A pass: sums of offsets and weights for each center, and sums of squares, as integers."""
    X, n, (k, d), grid = part.source.read(), part.units.n_rows, base.shape, Grid.for_radius(radius)
    total = np.zeros((k, d), dtype=sum_type(n, 24))
    counts, squares = np.zeros(k, dtype=np.int64), np.zeros(d, dtype=sum_type(n, 31))
    for place in row_slices(n, max(d, k)):
        x = np.asarray(X[place], dtype=np.float64)
        x = x if box is None else box.clip_points(x)
        # One fixed loop for each pair: the label of a row depends on nothing else.
        labels = distances(x, centers).argmin(axis=1)
        rows = grid.quantise((x - base[labels]) / scale, radius)
        units = part.units.take(place)
        total += label_sums(units.weigh(rows), labels, k)
        counts += weighted_bincount(labels, units, k)
        own = np.square(np.trunc(rows / _COARSE))
        if units.weights is not None:
            own = np.floor(own * (units.weights * units.step)[:, None])
        squares += exact_integers(own.sum(axis=0))
    return part, (total, counts, squares)


def told_by_column(status: str, found: RefinedCenters, names: Sequence[object]) -> str:
    """The status, where columns of most centers are lost in noise, or one rules all: by name.

    Examples
    --------
    >>> found = RefinedCenters(np.zeros((2, 2)), np.array([[0.1, 9.0], [0.1, 9.0]]), np.ones(2))
    >>> told_by_column("ok", found, ["age", "hours"])
    'mostly noise in some columns: hours, in 2 of 2 centers'
    """
    spread = np.hypot(found.spread, found.centers.std(axis=0))
    lost = np.count_nonzero(found.std_error > _HIDDEN * spread, axis=0)
    hidden = np.flatnonzero(2 * lost > len(found.centers))
    if status != "ok":
        return status
    if len(hidden):
        columns = ", ".join(str(names[column]) for column in hidden[:_NAMED])
        more = f" and {len(hidden) - _NAMED} more" if len(hidden) > _NAMED else ""
        return (
            f"mostly noise in some columns: {columns}{more}, in {int(lost[hidden].min())} of "
            f"{len(found.centers)} centers"
        )
    share = np.square(spread) / max(float(np.square(spread).sum()), 1e-300)
    first = int(np.argmax(share))
    if share[first] <= _RULES or len(share) == 1:
        return status
    return (
        f"ok, but {names[first]} has {100 * min(share[first], 0.999):.1f} % of the spread: the "
        "other columns had no say in the clusters; scale the columns first if they should"
    )
