"""Draws of units: which unit is in which block or sample, and orders.

Proofs rely on one of two things here. Either neighbors draw the same numbers: a unit's draw is a
function of its place and not of the others' values. Or the draw is uniform and absorbs what
differs: orders.
"""

from typing import Any

import numpy as np

from ._noise import NoiseSource
from ._trace import Event
from .mechanisms._release import require

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
