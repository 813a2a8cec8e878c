"""Non-private fits on random blocks of the rows: the inner half of sample-and-aggregate.

The only place that uses joblib. The number of blocks is public, every unit draws its block
independently of all others, and a block's result is a function of its own rows and its own seed.
So adding or removing one unit replaces one result and leaves the others, and their number, alone.
"""

import itertools
import math
import tempfile
from functools import cache
from threading import Thread

import numpy as np
import sklearn
from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from scipy.special import pdtr
from sklearn.base import clone
from threadpoolctl import ThreadpoolController

from .silence import attempt, attempt_silently, relayed_signals, silent

__all__ = [
    "ask_all",
    "block_rows",
    "copied_rows",
    "draw_blocks",
    "fit_blocks",
    "gather",
    "uniforms",
    "unit_copies",
]

_MOST_COPIES = 64
_MOST_THREADS = 1024  # that ask clients
_TASKS = 64  # that the blocks are handed out in: a task costs as much as a small fit
_KEPT_BYTES = 2**28  # of pieces: beyond this size they go to a temporary file


@cache
def _thread_pools():
    """Looking for thread pools costs milliseconds: once per process."""
    return ThreadpoolController()


def block_rows(blocks, n_blocks):
    """Indices of the rows of each block, in their order, as a list of arrays."""
    order = np.argsort(blocks, kind="stable")
    ends = np.searchsorted(blocks[order], np.arange(n_blocks + 1))
    return [order[start:stop] for start, stop in zip(ends[:-1], ends[1:], strict=True)]


def unit_copies(draws, rate):
    """Poisson(`rate`) numbers of copies, made of 64 random bits of each unit."""
    # Rounded up, so that no number of copies is exceeded more often than by the Poisson law.
    steps = np.minimum(pdtr(np.arange(_MOST_COPIES), rate) * (1 + 1e-12), 1.0)
    return np.searchsorted(steps, (draws >> np.uint64(11)) * 2.0**-53, side="right")


def draw_blocks(session, units, n_blocks, rate=None):
    """The block of each row, or the rows of each block; drawn unit by unit, without looking.

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
        return units.spread(session.blocks(units.size, n_blocks))
    draws = session.unit_draws(units.size)
    session.copies(unit_copies(draws, rate))
    return copied_rows(draws, n_blocks, rate, units.spread)


def copied_rows(draws, n_blocks, rate, spread=None):
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
    copies = spread(unit_copies(draws, rate))
    rows, blocks = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for copy in range(int(copies.max(initial=0))):
        high = spread(_mixed(draws, copy)) >> np.uint64(32)
        there = np.flatnonzero(copies > copy)
        rows.append(there)
        blocks.append(((high[there] * np.uint64(n_blocks)) >> np.uint64(32)).astype(np.int64))
    rows = np.concatenate(rows)
    return [rows[places] for places in block_rows(np.concatenate(blocks), n_blocks)]


def _mixed(words, number):
    """Further 64 bits from each word: the splitmix64 generator, seeded with it."""
    mixed = words + np.uint64((0x9E3779B97F4A7C15 * (number + 1)) % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))


def uniforms(seed, shape):
    """Numbers in [0, 1) for a fit that starts at random; a function of a seed below 2**31."""
    words = np.arange(math.prod(shape), dtype=np.uint64) + np.uint64(seed << 32)
    return ((_mixed(words, 0) >> np.uint64(11)) * 2.0**-53).reshape(shape)


def gather(pieces):
    """One array from an iterable of arrays of rows, each of which is read once.

    Beyond 256 MB the rows are kept in a temporary file, which goes away with the array.
    """
    kept, size = [], 0
    pieces = iter(pieces)
    for piece in pieces:
        kept.append(_numbers(piece))
        size += kept[-1].nbytes
        if size > _KEPT_BYTES:
            return _spool(kept, pieces)
    for piece in kept:
        _check_width(piece, kept[0].shape[1])
    return np.concatenate(kept)


def _numbers(piece):
    """A piece as a contiguous array of doubles; numpy's own error would quote what it holds."""
    try:
        piece = np.ascontiguousarray(piece, dtype=np.float64)
    except (OverflowError, TypeError, ValueError):
        piece = None
    if piece is None or piece.ndim != 2:
        raise ValueError("each piece must be a numeric array of shape (n_i, n_features).")
    return piece


def _check_width(piece, width):
    if piece.shape[1] != width:
        raise ValueError("all pieces must have the same number of columns.")


def _spool(kept, pieces):
    width, rows = kept[0].shape[1], 0
    with tempfile.TemporaryFile() as file:
        for piece in map(_numbers, itertools.chain(kept, pieces)):
            _check_width(piece, width)
            file.write(piece.data)
            rows += len(piece)
        file.flush()
        # The mapping outlives the file object.
        return np.memmap(file, dtype=np.float64, mode="r", shape=(rows, width))


def fit_blocks(
    estimator, X, blocks, seeds, extract, shape, *, min_rows=1, prepare=None, n_jobs=None
):
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
    parts = np.array_split(np.arange(len(seeds)), min(len(seeds), _TASKS))
    # This thread is silent too: what joblib says of its workers may be what the rows did to them.
    with silent(), _thread_pools().limit(limits=1):
        found = Parallel(n_jobs=_workers(n_jobs, _TASKS))(
            delayed(_fit_some)(
                estimator,
                [_read(X, members[block], prepare) for block in part],
                [int(seeds[block]) for block in part],
                extract,
                shape,
                min_rows,
            )
            for part in parts
        )
    return np.concatenate(found)


def _read(X, rows, prepare):
    part = np.asarray(X.take(rows, axis=0), dtype=np.float64)
    return part if prepare is None else prepare(part)


def _fit_some(estimator, blocks, seeds, extract, shape, min_rows):
    """The results of some blocks, each a function of its rows and its seed alone."""
    names = [
        name
        for name in estimator.get_params(deep=True)
        if name.rpartition("__")[2] in ("random_state", "verbose")
    ]
    # A worker process inherits neither the silence nor the thread limit. Tasks that a fit hands out
    # by joblib stay in its thread: in another process they would be heard.
    with (
        silent(),
        _thread_pools().limit(limits=1),
        parallel_config(backend="sequential"),
        sklearn.config_context(assume_finite=True, skip_parameter_validation=True),
    ):
        return np.stack(
            [
                _fit_block(estimator, names, rows, seed, extract, shape, min_rows)
                for rows, seed in zip(blocks, seeds, strict=True)
            ]
        )


def _fit_block(estimator, names, rows, seed, extract, shape, min_rows):
    def result():
        fitted = _seeded_clone(estimator, names, seed).fit(rows)
        found = np.array(extract(fitted), dtype=np.float64)
        return found if found.shape == shape and np.isfinite(found).all() else None

    found = attempt_silently(result)[0] if len(rows) >= min_rows else None
    return np.full(shape, np.nan) if found is None else found


def _seeded_clone(estimator, names, seed):
    """A fresh, silent estimator whose random states, nested ones too, all come from `seed`."""
    fixed, fresh, nested = {"random_state": seed, "verbose": 0}, clone(estimator), {}
    for name in names:
        if name in fixed:
            setattr(fresh, name, fixed[name])  # what set_params does, without a look at the class
        else:
            nested[name] = fixed[name.rpartition("__")[2]]
    return fresh.set_params(**nested)


def ask_all(function, clients, *, n_jobs=None, seconds=None):
    """Call a function on every client, in threads; what fails or hangs says so.

    Parameters
    ----------
    function : callable
    clients : sequence
    n_jobs : int, optional
    seconds : float, optional
        A client that takes longer is given up; None: wait for ever.

    Returns
    -------
    results : list of (result, error), in the order of the clients
    """
    with relayed_signals(), _thread_pools().limit(limits=1):
        return Parallel(n_jobs=_workers(n_jobs, _MOST_THREADS), prefer="threads")(
            delayed(_ask_one)(function, client, seconds) for client in clients
        )


def n_threads(n_jobs):
    """How many threads `n_jobs` means for :func:`ask_all`, a public number."""
    return _workers(effective_n_jobs(n_jobs), _MOST_THREADS)


def _workers(n_jobs, most):
    """Joblib starts as many workers as it is told to, however little there is to do."""
    return n_jobs if n_jobs is None else min(n_jobs, most)


def _ask_one(function, client, seconds):
    if seconds is None:
        return attempt(function, client)
    found = []
    # A thread cannot be killed: as a daemon it at least does not outlive the process.
    worker = Thread(target=lambda: found.append(attempt(function, client)), daemon=True)
    worker.start()
    worker.join(seconds)
    return found[0] if found else (None, TimeoutError("no answer in time"))
