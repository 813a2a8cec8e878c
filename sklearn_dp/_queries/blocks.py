"""Non-private fits on random blocks of the rows: the inner half of sample-and-aggregate.

The number of blocks is public, every unit draws its block independently of all others, and a
block's result is a function of its own rows and its own seed. So adding or removing one unit
replaces one result and leaves the others, and their number, alone. (The papers cut shuffled rows
into blocks of n / t: with n not public one row more can move the borders of all blocks.)

What must not happen, and where it is prevented:

* a fit that fails, or says something, tells about its rows: it is silent, and its result is a fixed
  one (:func:`_fit_block`; :mod:`sklearn_dp._silence`);
* a fit that sees how many rows there are in all, or another block: it gets its rows and a seed;
* a fit whose bits depend on the number of threads: each has one;
* a fit that draws from numpy's or Python's global generator after others have: each block has a
  stream of its own there too (:mod:`sklearn_dp._silence`).

In a table in parts (:func:`fit_table_blocks`) each part draws the blocks of its units, and the
engine brings the rows of a task together, in the order of the parts, where it is worked on
(:func:`fit_some`): a block has the rows that it has in memory, in the same order. Results are
unreleased.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sklearn
from joblib import parallel_config
from scipy.special import pdtr
from sklearn.base import clone

from .._privacy._grid import Domain
from .._privacy._randomness import mixed_words
from .._privacy._session import PrivacySession
from .._privacy._units import Units
from .._privacy.mechanisms.stability import UnitDraws, addressed_draws, blocks_of_draws, copies
from .._rows.table import MOST_PIECES, TASKS, Part, Table
from .._rows.threads import one_thread
from .._silence import attempt_silently, own_streams, suppress_output
from .._sklearn_compat import without_callbacks
from ._query import TableRows
from .grids import ACTIVE
from .samples import ByPart, UnitNumbers

_MOST_COPIES = 64
_AT_ONCE = 2**16  # draws


def block_rows(blocks: np.ndarray, n_blocks: int) -> list[np.ndarray]:
    """Indices of the rows of each block, in their order, as a list of arrays."""
    # Stable, so the rows of a block keep their order, and the fit of a block its bits.
    order = np.argsort(blocks, kind="stable")
    ends = np.searchsorted(blocks[order], np.arange(n_blocks + 1))
    return [order[start:stop] for start, stop in zip(ends[:-1], ends[1:], strict=True)]


def unit_copies(draws: np.ndarray, rate: float) -> np.ndarray:
    """Poisson(`rate`) numbers of copies, 63 at most, of units, by inversion of 53 of 64 bits."""
    # Rounded up, so that no number of copies is exceeded more often than by the Poisson law.
    steps = np.minimum(pdtr(np.arange(_MOST_COPIES), rate) * (1 + 1e-12), 1.0)
    return np.searchsorted(steps, (draws >> np.uint64(11)) * 2.0**-53, side="right")


def drawn_rows(
    draws: np.ndarray, n_blocks: int, rate: float | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every copy of every row, and its block: rows, copies and blocks, each (m,), first copies
    first.

    Each unit has one copy, or a Poisson(`rate`) number, and each copy its own uniform block: a
    sample with replacement, of a size that tells nothing about any one unit. The draws (uint64) of
    a row are those of its unit."""
    if rate is None:
        n = len(draws)
        blocks_of = np.empty(n, dtype=np.int32 if n_blocks < 2**31 else np.int64)
        for start in range(0, n, _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            blocks_of[part] = blocks_of_draws(draws[part], n_blocks)
        places = np.arange(n, dtype=np.int32 if n < 2**31 else np.int64)
        return places, np.zeros(n, dtype=np.int8), blocks_of
    number = unit_copies(draws, rate)
    numbers = range(max(1, int(number.max(initial=0))))
    rows = [np.flatnonzero(number > copy) for copy in numbers]
    # The upper 32 bits times the number of blocks, over 2**32: uniform up to n_blocks / 2**32.
    blocks = [blocks_of_draws(mixed_words(draws[rows[copy]], copy), n_blocks) for copy in numbers]
    copies = np.repeat(numbers, [len(part) for part in rows])
    return np.concatenate(rows), copies, np.concatenate(blocks)


@dataclass(frozen=True, repr=False)
class BlockFits:
    """The estimators that are fitted to the blocks; callables are functions of a module."""

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


def fit_some(fits: BlockFits, blocks: list[np.ndarray], seeds: list[int]) -> np.ndarray:
    """The results of some blocks, each a function of its rows and its seed alone, in one task."""
    names = [
        name
        for name in fits.estimator.get_params(deep=True)
        if name.rpartition("__")[2] in ("random_state", "verbose")
    ]
    # A worker process inherits neither the silence nor the thread limit. Tasks that a fit hands out
    # by joblib stay in its thread: in another process they would be heard.
    with (
        suppress_output(),
        one_thread(),
        parallel_config(backend="sequential"),
        sklearn.config_context(assume_finite=True, skip_parameter_validation=True),
        own_streams() as start_stream,
    ):
        results = []
        for rows, seed in zip(blocks, seeds, strict=True):
            start_stream(seed)
            results.append(_fit_block(fits, names, rows, seed))
        return np.stack(results)


def _fit_block(fits: BlockFits, names: list[str], rows: np.ndarray, seed: int) -> np.ndarray:
    """The result of one block, of a public shape: all NaN if anything at all has gone wrong."""

    def result() -> np.ndarray | None:
        fitted = _seeded_clone(fits.estimator, names, seed).fit(rows)
        vector = np.array(fits.extract(fitted), dtype=np.float64)
        return vector if vector.shape == fits.shape and np.isfinite(vector).all() else None

    row = attempt_silently(result)[0] if len(rows) >= fits.min_rows else None
    return np.full(fits.shape, np.nan) if row is None else row


def _seeded_clone(estimator: Any, names: list[str], seed: int) -> Any:
    """A fresh, silent estimator whose random states, nested ones too, all come from `seed`."""
    fixed, fresh, nested = {"random_state": seed, "verbose": 0}, clone(estimator), {}
    for name in names:
        if name in fixed:
            setattr(fresh, name, fixed[name])  # what set_params does, without a look at the class
        else:
            nested[name] = fixed[name.rpartition("__")[2]]
    return without_callbacks(fresh.set_params(**nested))


def fit_table_blocks(
    session: PrivacySession, table: Table, fits: BlockFits, numbers: UnitNumbers | None = None
) -> np.ndarray:
    """Fit a clone of an estimator to every block of a table, and collect what is read from it:
    unreleased results (n_blocks, *shape), all NaN for a block that failed in any way, which never
    shows otherwise. With replacement, a unit with m copies is in up to m blocks: a matter of group
    privacy, so their number is noted in the session's trace."""
    numbers = UnitNumbers.of(table) if numbers is None else numbers
    draws = addressed_draws(session, numbers.size)
    if fits.rate is not None and draws.known is not None:
        copies(session, unit_copies(draws.known, fits.rate))
    seeds = session.rng("inner fits").integers(2**31, size=fits.n_blocks)
    tasks = fits.tasks(table.engine.n_parts)
    ends = np.append([0], [task[-1] + 1 for task in tasks])
    shared = _Shared(fits, numbers, draws, ends, seeds)
    return np.concatenate(table.exchange(_drawn, _fitted, len(tasks), shared))


def fit_blocks(
    session: PrivacySession, rows: TableRows, fits: BlockFits, numbers: UnitNumbers | None = None
) -> TableRows:
    """A handle of the same, as points: of a public number, a unit more or less replaces one."""
    results = fit_table_blocks(session, rows._raw(), fits, numbers)
    units = Units(len(results))
    units.unit = rows.units.unit
    flat = results.reshape(len(results), math.prod(fits.shape))
    return TableRows.in_memory(flat, units)


def exact_tuples(rows: TableRows, d: int) -> np.ndarray:
    """Results of blocks, as tuples of points (t, k, d), for other questions; NaN where none is."""
    (tuples,) = rows._raw().sums(_collected)
    return np.concatenate(tuples.in_order()).reshape(-1, rows.n_features // d, d)


def _collected(part: Part) -> tuple[Part, tuple]:
    return part, (ByPart({part.source.number: active_results(part)}),)


def active_results(part: Part) -> np.ndarray:
    """The rows of a part, NaN where they are not active."""
    X, active = np.asarray(part.source.read(), dtype=np.float64), part.state.get(ACTIVE)
    return X if active is None else np.where(active[:, None], X, np.nan)


@dataclass(frozen=True, repr=False)  # nothing of it is released
class _Shared:
    """The arguments that all parts and tasks get."""

    fits: BlockFits
    numbers: UnitNumbers
    draws: UnitDraws
    ends: np.ndarray  # where the blocks of each task begin and end
    seeds: Any  # (n_blocks,), of the inner fits


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


def _drawn(part: Part, shared: _Shared) -> _Drawn:
    """Which rows of a part go to which task; a function of their numbers alone."""
    fits, draws = shared.fits, shared.numbers.draws_of(part, shared.draws)
    rows, copies, blocks = drawn_rows(draws, fits.n_blocks, fits.rate)
    if fits.takes_part is not None:
        there = fits.takes_part(draws)[rows]
        rows, copies, blocks = rows[there], copies[there], blocks[there]
    del draws
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
        np.searchsorted(blocks, shared.ends),
    )


def _fitted(
    task: int, pieces: list[tuple[np.ndarray, np.ndarray, np.ndarray]], shared: _Shared
) -> np.ndarray:
    """The results of the blocks of a task, of the rows that all parts have of them."""
    rows, blocks, copies = (np.concatenate(of_parts) for of_parts in zip(*pieces, strict=True))
    # Block by block, in it first copies first, and these in the order of the rows of the table.
    order = np.lexsort((copies, blocks))
    first, last = shared.ends[task : task + 2]
    places = np.searchsorted(blocks[order], np.arange(first, last + 1))
    members = [order[start:stop] for start, stop in zip(places, places[1:], strict=False)]
    prepared = [_prepared(rows, member, shared.fits) for member in members]
    return fit_some(shared.fits, prepared, [int(seed) for seed in shared.seeds[first:last]])


def _prepared(rows: np.ndarray, member: np.ndarray, fits: BlockFits) -> np.ndarray:
    """The rows of one block as doubles, as the fit is to see them: a copy of its own."""
    block = rows.take(member, axis=0)
    if fits.within is not None:
        block = fits.within.clip_points(block)
    block = np.asarray(block, dtype=np.float64)
    return block if fits.prepare is None else fits.prepare(block)
