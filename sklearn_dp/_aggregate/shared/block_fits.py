"""Non-private fits on random blocks of a table, wherever its rows are.

What :mod:`.blocks` says of blocks holds here: each unit draws its block by itself, and the result
of a block is a function of its own rows and its own seed. In parts:

1. a pass numbers the units (:mod:`.unit_numbers`);
2. each part makes the draws of its units, and so knows which of its rows are in which block;
3. blocks are handed out in tasks. The engine brings the rows of a task together, in the order of
   the parts, where it is worked on: no row comes to the place of the fit;
4. the results, one for each block, do. They are unreleased.

So a block has the rows that it has in memory, in the same order, and its fit the same bits.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..._privacy._domain import Domain
from ..._privacy._randomness import UnitDraws
from ..._privacy._session import PrivacySession
from .blocks import TASKS, drawn_rows, fit_some, unit_copies
from .table import Part, Table
from .unit_numbers import UnitNumbers

MOST_PIECES = 2**18
"""Of all parts for all tasks: each costs an engine a fraction of a millisecond."""


@dataclass(frozen=True, repr=False)
class BlockFits:
    """What is fitted to the blocks, and which units take part.

    All callables are functions of a module, or partials of these.
    """

    estimator: Any  # never fitted itself; travels to whoever holds the rows
    n_blocks: int  # public
    extract: Callable[[Any], Any]  # from a fitted estimator to an array of shape `shape`
    shape: tuple[int, ...]  # public shape of one result
    min_rows: int = 1  # smaller blocks are not fitted
    # what becomes of the rows of a block before the fit, from these rows alone
    prepare: Callable[[np.ndarray], np.ndarray] | None = None
    # expected number of copies of a unit, where blocks are drawn with replacement; None: each unit
    # is in one block
    rate: float | None = None
    # from the draws of units to whether they are in a block at all; None: all are
    takes_part: Callable[[np.ndarray], np.ndarray] | None = None
    # public bounds that rows are moved into first, before they are doubles
    within: Domain | None = None

    def tasks(self, n_parts: int) -> list[np.ndarray]:
        """The blocks of each task: at least 64, as many as parts where these are not too many."""
        most = max(TASKS, min(n_parts, MOST_PIECES // n_parts))
        return np.array_split(np.arange(self.n_blocks), min(self.n_blocks, most))


def fit_table_blocks(
    session: PrivacySession, table: Table, fits: BlockFits, numbers: UnitNumbers | None = None
) -> np.ndarray:
    """Fit a clone of an estimator to every block of a table, and collect what is read from it.

    With replacement, a unit with m copies is in up to m blocks, so what it may change is a matter
    of group privacy. The number of copies is noted in the session's trace for audits; it is no
    release: nothing is released here. The session is for the blocks and for seeds of the fits.

    The results (n_blocks, *shape) are unreleased. All NaN for a block that failed in any way: too
    small, an exception, a result of another shape or one that is not finite. Failures never show
    otherwise.
    """
    numbers = UnitNumbers.of(table) if numbers is None else numbers
    draws = session.addressed_draws(numbers.size)
    if fits.rate is not None and draws.known is not None:
        session.copies(unit_copies(draws.known, fits.rate))
    seeds = session.rng("inner fits").integers(2**31, size=fits.n_blocks)
    tasks = fits.tasks(table.engine.n_parts)
    ends = np.append([0], [task[-1] + 1 for task in tasks])
    found = table.exchange(_drawn, _fitted, len(tasks), fits, numbers, draws, ends, seeds)
    return np.concatenate(found)


@dataclass(frozen=True, repr=False)  # nothing of it is released
class _Drawn:
    """The rows of a part by the task that their blocks are in."""

    X: np.ndarray  # (n, d), read once, for all tasks
    rows: np.ndarray  # (m,), of all copies of rows, in the order of the blocks
    blocks: np.ndarray
    copies: np.ndarray
    ends: np.ndarray = field(compare=False)  # where the tasks begin and end

    def __getitem__(self, task: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        inside = slice(self.ends[task], self.ends[task + 1])
        return self.X.take(self.rows[inside], axis=0), self.blocks[inside], self.copies[inside]


def _drawn(
    part: Part,
    fits: BlockFits,
    numbers: UnitNumbers,
    draws: UnitDraws,
    ends: np.ndarray,
    seeds: np.ndarray,
) -> _Drawn:
    """Which rows of a part go to which task; a function of their numbers alone."""
    own = numbers.draws_of(part, draws)
    rows, copies, blocks = drawn_rows(own, fits.n_blocks, fits.rate)
    if fits.takes_part is not None:
        there = fits.takes_part(own)[rows]
        rows, copies, blocks = rows[there], copies[there], blocks[there]
    del own
    # There are at most 2**22 blocks; 16 bits are sorted much faster.
    blocks = blocks.astype(
        np.int16 if fits.n_blocks <= 2**15 else np.int32, copy=False, casting="same_kind"
    )
    # Stable, so the rows of a block keep their order, and the fit of a block its bits.
    order = np.argsort(blocks, kind="stable")
    blocks = blocks[order]
    return _Drawn(
        np.asarray(part.source.read()),  # of a memmap, a view: faster to index
        rows[order],
        blocks,
        copies.astype(np.int8, copy=False, casting="same_kind")[order],
        np.searchsorted(blocks, ends),
    )


def _fitted(
    task: int,
    pieces: list[tuple[np.ndarray, np.ndarray, np.ndarray]],
    fits: BlockFits,
    numbers: UnitNumbers,
    draws: UnitDraws,
    ends: np.ndarray,
    seeds: np.ndarray,
) -> np.ndarray:
    """The results of the blocks of a task, of the rows that all parts have of them."""
    rows, blocks, copies = (np.concatenate(of_parts) for of_parts in zip(*pieces, strict=True))
    # Block by block, in it first copies first, and these in the order of the rows of the table.
    order = np.lexsort((copies, blocks))
    own = range(ends[task], ends[task + 1])
    places = np.searchsorted(blocks[order], np.append(own, ends[task + 1]))
    members = [order[start:stop] for start, stop in zip(places, places[1:], strict=False)]
    return fit_some(
        fits.estimator,
        [_prepared(rows, member, fits) for member in members],
        [int(seed) for seed in seeds[own.start : own.stop]],
        fits.extract,
        fits.shape,
        fits.min_rows,
    )


def _prepared(rows: np.ndarray, member: np.ndarray, fits: BlockFits) -> np.ndarray:
    """The rows of one block as doubles, as the fit is to see them: a copy of its own."""
    own = rows.take(member, axis=0)
    if fits.within is not None:
        own = fits.within.clip_points(own)
    own = np.asarray(own, dtype=np.float64)
    return own if fits.prepare is None else fits.prepare(own)
