"""Non-private fits on random blocks of the rows: the inner half of sample-and-aggregate.

The only place that uses joblib. The number of blocks is public, every unit draws its block
independently of all others, and a block's result is a function of its own rows and its own seed.
So adding or removing one unit replaces one result and leaves the others, and their number, alone.
"""

import warnings
from functools import cache

import numpy as np
import sklearn
from joblib import Parallel, delayed
from sklearn.base import clone
from threadpoolctl import ThreadpoolController

__all__ = ["block_rows", "fit_blocks"]


@cache
def _thread_pools():
    """Looking for thread pools costs milliseconds: once per process."""
    return ThreadpoolController()


def block_rows(blocks, n_blocks):
    """Indices of the rows of each block, in their order, as a list of arrays."""
    order = np.argsort(blocks, kind="stable")
    ends = np.searchsorted(blocks[order], np.arange(n_blocks + 1))
    return [order[start:stop] for start, stop in zip(ends[:-1], ends[1:], strict=True)]


def fit_blocks(estimator, X, blocks, seeds, extract, shape, *, min_rows=1, prepare=None,
               n_jobs=None):
    """Fit a clone of `estimator` to every block and collect what `extract` reads from it.

    Parameters
    ----------
    estimator : estimator
        Never fitted itself.
    X : array of shape (n, d)
        May be a memmap: rows of a block are copied one block at a time.
    blocks : ndarray of int of shape (n,)
        In [0, len(seeds)).
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
    with _thread_pools().limit(limits=1):
        found = Parallel(n_jobs=n_jobs)(
            delayed(_fit_block)(estimator, _read(X, rows, prepare), seed, extract, shape, min_rows)
            for rows, seed in zip(block_rows(blocks, len(seeds)), seeds, strict=True))
    return np.stack(found)


def _read(X, rows, prepare):
    part = np.asarray(X[rows], dtype=np.float64)
    return part if prepare is None else prepare(part)


def _fit_block(estimator, rows, seed, extract, shape, min_rows):
    """One result; a pure function of its arguments."""
    failed = np.full(shape, np.nan)
    if len(rows) < min_rows:
        return failed
    # Whatever an inner fit warns about or dies of is a fact about private rows: it must not
    # show. A worker process does not inherit the thread limit.
    with warnings.catch_warnings(), _thread_pools().limit(limits=1), sklearn.config_context(
        assume_finite=True, skip_parameter_validation=True
    ):
        warnings.simplefilter("ignore")
        try:
            fitted = _seeded_clone(estimator, seed).fit(rows)
            result = np.asarray(extract(fitted), dtype=np.float64)
        except Exception:
            return failed
    usable = result.shape == shape and np.isfinite(result).all()
    return result if usable else failed


def _seeded_clone(estimator, seed):
    """A fresh, silent estimator whose random states, nested ones too, all come from `seed`."""
    fresh = clone(estimator)
    fixed = {"random_state": int(seed), "verbose": 0}
    return fresh.set_params(**{name: fixed[name.rpartition("__")[2]]
                               for name in fresh.get_params(deep=True)
                               if name.rpartition("__")[2] in fixed})
