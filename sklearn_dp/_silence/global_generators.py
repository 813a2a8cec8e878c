"""The global generators of numpy and of Python, for code of users: a stream for each block or row.

What one block gets would depend on how much the blocks before it have drawn. So each block (and
each row, of a function of single rows) starts a stream of its own. Afterward the generators are as
they were before. They belong to the process, so threads take turns. `SECURITY.md` says what is not
seen.
"""

import os
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from zlib import crc32

import numpy as np

from .._privacy._ledger import no_charges
from .suppress_output import context_of_thread

_lock = threading.RLock()
_stream = np.random.MT19937(0)  # to make one takes as long as a small fit
_numpy: Any = np.random  # not all of its functions are in the stubs of older versions


@contextmanager
def own_streams() -> Iterator[Callable[[int], None]]:
    """Yield a function that starts a new stream, from a seed below 2**32, in both generators, for
    one thread of the process at a time. No ledger is charged in it: that is a state which blocks
    share, too."""
    with _turn(), _restored(), no_charges():

        def start(seed: int) -> None:
            # A user may have set another one; that of the process may not take a seed.
            if _numpy.get_bit_generator() is not _stream:
                _numpy.set_bit_generator(_stream)
            np.random.seed(seed)  # noqa: NPY002
            random.seed(seed)

        yield start


def row_by_row(function: Callable[[np.ndarray], Any], X: np.ndarray) -> list[np.ndarray]:
    """The output of other people's code for each row, given to it alone, so that no row has a part
    in what another one gets. What it draws is a function of the row too."""
    results = []
    with own_streams() as start_stream:
        for row in X:
            start_stream(crc32(row.tobytes()))
            results.append(np.asarray(function(row[None].copy())))
    return results


@contextmanager
def _turn() -> Iterator[None]:
    """The lock, unless a thread that waits for this one has it: inner code may fit in threads."""
    context = context_of_thread()
    if context is not None and context.has_turn:
        yield
        return
    with _lock:
        if context is not None:
            context.has_turn = True
        try:
            yield
        finally:
            if context is not None:
                context.has_turn = False


@contextmanager
def _restored() -> Iterator[None]:
    """Put both generators back as they were: the objects and their states."""
    generator = _numpy.get_bit_generator()
    state = np.random.get_state(legacy=False)  # noqa: NPY002
    state_of_python = random.getstate()
    try:
        yield
    finally:
        _numpy.set_bit_generator(generator)
        np.random.set_state(state)  # noqa: NPY002
        random.setstate(state_of_python)


def _renew_lock() -> None:
    """In the child of a fork: the thread that held it is not there."""
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)
