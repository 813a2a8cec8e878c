"""Fits on given blocks of an array, beside those of tables: what a block is to give."""

import numpy as np

from sklearn_dp._privacy._units import Units
from sklearn_dp._privacy.mechanisms.stability import blocks_of_draws, copies, unit_draws
from sklearn_dp._queries._query import TableRows
from sklearn_dp._queries.blocks import (
    TASKS,
    BlockFits,
    block_rows,
    drawn_rows,
    fit_some,
    unit_copies,
)
from sklearn_dp._rows.threads import in_workers


def draw_blocks(
    session, units, n_blocks: int, rate: float | None = None
) -> np.ndarray | list[np.ndarray]:
    """The block of each row, or the rows of each block; drawn unit by unit, without looking.

    The number of copies of a unit is noted in the session's trace, as by `fit_table_blocks`.

    Parameters
    ----------
    session : PrivacySession
    units : Units
    n_blocks : int
        Public.
    rate : float, optional
        Blocks are drawn with replacement, this many copies of a unit being expected. None: each
        unit is in one block.

    Returns
    -------
    blocks : ndarray of int of shape (n,), or list of ndarray
        What `fit_blocks` takes.
    """
    if rate is None:
        return units.spread(blocks_of_draws(unit_draws(session, units.size), n_blocks))
    draws = unit_draws(session, units.size)
    copies(session, unit_copies(draws, rate))
    return copied_rows(draws, n_blocks, rate, units.spread)


def copied_rows(
    draws: np.ndarray, n_blocks: int, rate: float, spread: object = None
) -> list[np.ndarray]:
    """Indices of the rows of each block where units are drawn with replacement.

    Each unit has a Poisson(`rate`) number of copies, independent of everything else, and each copy
    its own uniform block: so the copies in a block are a sample with replacement, of a size that
    tells nothing about any one unit.

    Parameters
    ----------
    draws : ndarray of uint64 of shape (n_units,)
        Independent random bits of each unit.
    n_blocks : int
    rate : float
    spread : callable, optional
        From values of units to values of rows.

    Returns
    -------
    rows : list of ndarray of int
    """
    spread = spread or (lambda per_unit: per_unit)
    there, _, blocks = drawn_rows(spread(draws), n_blocks, rate)
    return [there[copies] for copies in block_rows(blocks, n_blocks)]


def fit_blocks(
    estimator,
    X: np.ndarray,
    blocks: np.ndarray | list[np.ndarray],
    seeds: list,
    extract: object,
    shape: tuple[int, ...],
    *,
    min_rows: int = 1,
    prepare: object = None,
    n_jobs: int | None = None,
) -> np.ndarray:
    """Fit a clone of `estimator` to every block and collect what `extract` reads from it.

    Parameters
    ----------
    estimator : estimator
        Never fitted itself.
    X : array of shape (n, d)
        May be a memmap: rows are copied some blocks at a time.
    blocks : ndarray of int of shape (n,), or list of ndarray
        In [0, len(seeds)); or the indices of the rows of each block.
    seeds : sequence of int
        One for each block; their number is public.
    extract : callable
        From a fitted estimator to an array of shape `shape`. It must be picklable.
    shape : tuple of int
        Public shape of one result.
    min_rows : int, default=1
        Smaller blocks are not fitted.
    prepare : callable, optional
        What becomes of the rows of a block before the fit, from these rows alone.
    n_jobs : int, optional

    Returns
    -------
    results : ndarray of shape (len(seeds), *shape)
        All NaN for a block that failed in any way: too small, an exception, a result of another
        shape or one that is not finite. Failures never show otherwise.
    """
    X = np.asarray(X)  # of a memmap, a view: faster to index
    members = blocks if isinstance(blocks, list) else block_rows(blocks, len(seeds))
    parts = np.array_split(np.arange(len(seeds)), min(len(seeds), TASKS))
    fits = BlockFits(estimator, len(seeds), extract, shape, min_rows)
    tasks = (
        (
            fits,
            [_read(X, members[block], prepare) for block in part],
            [int(seeds[block]) for block in part],
        )
        for part in parts
    )
    return np.concatenate(in_workers(fit_some, tasks, n_jobs, TASKS))


def _read(X: np.ndarray, rows: np.ndarray, prepare: object) -> np.ndarray:
    """The rows of one block, as doubles, as the fit is to see them.

    `take` copies, so an estimator that changes its input in place changes nobody else's rows.
    """
    part = np.asarray(X.take(rows, axis=0), dtype=np.float64)
    return part if prepare is None else prepare(part)


def results_in_memory(results):
    """A handle of results of blocks (t, n_outputs), as points."""
    results = np.asarray(results, dtype=np.float64)
    return TableRows.in_memory(results, Units(len(results)))


def tuples_in_memory(tuples):
    """The same of tuples (t, k, d)."""
    return results_in_memory(np.reshape(tuples, (len(tuples), np.prod(np.shape(tuples)[1:]))))
