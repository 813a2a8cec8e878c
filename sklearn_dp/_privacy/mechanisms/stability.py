"""Histograms of unbounded domains, and random draws of units.

**Histograms.** The domain has no bound, only occupied cells are known, and only cells far above one
are published: (rho, delta)-zCDP.

1. Every occupied cell gets rounded Gaussian noise.
2. Published are the cells whose value reaches `low`, which is so large that a cell with a single
   unit reaches it with a probability of at most delta, over the number m of cells that a unit may
   be in (one for most callers).

Cells of both data sets: one count moves by one (one down and one up, where a unit is replaced), so
the l2 distance of their counts is `sensitivity`; with m cells it is the root of m. A cell of only
one of them has a count of one, there are at most m of them, and each stays unseen but for
P[1 + round(sigma Z) >= low] <= delta / m, so all of them do but for delta. The noise of such a cell
is independent of that of the others, so each law is a mixture, with weight 1 - delta, of what the
common cells alone give: Gaussian releases with a threshold, sqrt(2 rho)-GDP. A plan may therefore
count a stability histogram among its Gaussian releases, with the failure probability.

Where a unit is replaced, each data set may have one such cell. The two failures are about different
laws, P and Q, and each law loses weight delta once.

**Draws** say which unit is in which block or sample, and make orders. Proofs rely on one of two
things here. Either neighbors draw the same numbers: a unit's draw is a function of its place and
not of the others' values. Or the draw is uniform and absorbs what differs: orders.
"""

import math
from typing import Any

import numpy as np
from scipy.special import ndtri

from ..._costs.numbers import is_integer, round_down
from ..._costs.plan import Mechanism
from .. import _session
from .._entries import exact_integers
from .._noise import NoiseSource, gaussian_tail
from .._session import Release, check_cost, positive_sensitivity, require, sorted_cells
from .._trace import Event
from .._units import SealedNames

# -- histograms ------------------------------------------------------------------------------------


def stability(
    codes: np.ndarray,
    counts: np.ndarray,
    rho: float,
    delta: float,
    sensitivity: float = 1.0,
    cells: int = 1,
) -> Release:
    """Cells far above one, as (codes, values) in order.

    Distinct `codes` of the occupied cells, int64 or bytes (of a public order), with `counts` of
    units, at least 1; every unit is in at most `cells` cells, once in each. `delta`, in (0, 1/2),
    is the chance that any cell which only one data set has is seen. `sensitivity` is the l2
    distance of the counts of neighbors in the cells of both: the root of `cells` where a unit is
    added or removed, that of twice as many where it is replaced."""
    sensitivity = positive_sensitivity(sensitivity)
    sigma = float(_session.sigma_of(sensitivity, check_cost("rho", rho)))
    require(0 < delta < 0.5, "a delta between 0 and 1/2")
    require(is_integer(cells) and cells >= 1, "at least one cell of a unit")
    low = stability_threshold(sigma, delta if cells == 1 else round_down(delta / cells))
    codes, counts = sorted_cells(np.asarray(codes), exact_integers(counts))
    require(codes.dtype.kind in "iuS", "codes that are integers or bytes")
    require(np.all(counts >= 1), "occupied cells")

    def draw(noise: NoiseSource) -> tuple[np.ndarray, np.ndarray]:
        values = counts + noise.rounded_gaussian(sigma, counts.shape)
        keep = values >= low
        return codes[keep], values[keep]

    return Release(
        "stability",
        Mechanism.STABILITY_HISTOGRAM,
        (codes, counts),
        sensitivity,
        sigma,
        rho,
        draw,
        delta,
        public={"low": low, "delta": delta, "cells": int(cells)},
    )


def stability_threshold(sigma: float, delta: float) -> int:
    """Smallest integer `low` with P[1 + round(sigma Z) >= low] <= delta, or the next one.

    Sigma is in units, delta in (0, 1/2). At least 2: a count of one never passes without noise."""
    # About the quantile, then upward until it holds: larger than needed is safe.
    low = 2 + max(0, math.floor(-sigma * float(ndtri(delta)) - 0.5))
    while gaussian_tail(sigma, low - 1) > delta:
        low += 1
    return low


def release_names(
    session: Any, entry: str, sealed: SealedNames, *, rho: float, delta: float
) -> tuple[np.ndarray, np.ndarray]:
    """Release names, sorted, and noisy counts, of the occupied cells of an unbounded domain whose
    noisy count is far above one: (rho, delta)-zCDP, see the top of this module."""
    names, counts = session._opened(sealed)
    law = stability(names, counts, rho, delta, sealed.claim.l2, sealed.cells)
    names, values = session._release(entry, law)
    return names.copy(), values.astype(np.float64)


# -- draws of units --------------------------------------------------------------------------------


_MOST_BLOCKS = 2**32
_AT_A_TIME = 2**16  # draws


class UnitDraws:
    """The draws of :func:`unit_draws`, for some of the units at a time: functions of the seed and
    of the number of the unit. `known` are draws (uint64) that an audit has put in their place."""

    def __init__(self, seed: int, tag: str, known: np.ndarray | None = None) -> None:
        self._seed, self._tag, self._known = seed, tag, known

    def take(self, first: int, n_units: int) -> np.ndarray:
        """The draws of units with the numbers `first`, `first` + 1, ..., as uint64."""
        if self._known is not None:
            return self._known[first : first + n_units]
        return NoiseSource(self._seed, self._tag, first).bits(n_units)

    def at(self, numbers: np.ndarray) -> np.ndarray:
        """The draws (uint64) of units of any numbers, which may be spread over several places."""
        draws, order = np.empty(len(numbers), dtype=np.uint64), np.argsort(numbers)
        sought = numbers[order]
        starts = np.arange(0, sought.max(initial=-1) + 1, _AT_A_TIME)
        ends = np.searchsorted(sought, np.append(starts, starts[-1:] + _AT_A_TIME))
        for start, low, high in zip(starts.tolist(), ends, ends[1:], strict=False):
            if high > low:
                drawn = self.take(start, int(sought[high - 1]) - start + 1)
                draws[order[low:high]] = drawn[sought[low:high] - start]
        return draws

    @property
    def known(self) -> np.ndarray | None:
        """The draws of all units where an audit has to know them; None otherwise."""
        return self._known


def unit_draws(session: Any, n_units: int, tag: str = "units") -> np.ndarray:
    """64 random bits for each unit, independent of the data and of those of other tags, and the
    same for the same tag; a unit that is added at the end changes no other's bits."""
    source = NoiseSource(session._algorithm_seed, tag)
    draws = source.bits(int(n_units))
    return session._record(Event("draws", output=draws))


def addressed_draws(session: Any, n_units: int, tag: str = "units") -> UnitDraws:
    """Draws that are looked up by the numbers of units, where the units are."""
    known = None if session._trace is None else unit_draws(session, n_units, tag)
    return UnitDraws(session._algorithm_seed, tag, known)


def copies(session: Any, copies: np.ndarray) -> None:
    """Note the number of copies of each unit, for an audit, which leaves out pairs that differ in a
    unit of several: what these cost is a formula of group privacy."""
    session._record(Event("copies", value=copies))


def blocks_of_draws(draws: np.ndarray, n_blocks: int) -> np.ndarray:
    """A block in [0, n_blocks) for each unit, made of its 64 random bits; `n_blocks` is public.

    Adding a unit changes one block and leaves all other units where they are. Blocks of
    floor(n / n_blocks) shuffled units would not do: one unit more can change them all.

    The product of 32 random bits and `n_blocks`, at most 2**32, shifted back, is uniform up to a
    relative 2^-32 `n_blocks`; no proof needs more, since a unit's block is independent of the data
    all the same."""
    require(1 <= n_blocks <= _MOST_BLOCKS, "between 1 and 2**32 blocks")
    return (((draws >> np.uint64(32)) * np.uint64(n_blocks)) >> np.uint64(32)).astype(
        np.int64, casting="same_kind"
    )


def random_order(session: Any, points: np.ndarray) -> np.ndarray:
    """A uniformly random order of the k points of an arrangement, as indices.

    Points (k, d) come in an order of no meaning, which may be another one for a neighbor. If a
    permutation that depends on the two data sets only takes the one arrangement to the other, a
    uniform order absorbs it: both then have the same law. (A divergence is jointly convex, so
    what holds for each pair of orders coupled this way holds for the mixtures.)"""
    order = np.arange(len(points))
    for last in range(len(order) - 1, 0, -1):
        other = int(session._noise.uniform_integers(last + 1))
        order[[last, other]] = order[[other, last]]
    return session._record(Event("order", value=points, output=order))
