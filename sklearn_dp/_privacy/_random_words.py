"""Random words in blocks: where every random bit of the package comes from.

A *word* is 64 bits. Words are made in blocks of 4,096, so that asking for few of them takes as long
as the block took. Bits come from the operating system, or, with a seed, from SHAKE-256: the same
code either way, and never from numpy's generators. Each word is handed out once, in one process.

Each block of the operating system's bits is mixed with the clocks and the process: added modulo two
to a stream that SHAKE-256 makes of them and of further bits of the system. A sum with something
independent is as uniform as before; it helps where two copies of one machine hold the same state of
the system's generator.

*What was made before a fork must not go on in its child*: noise that parent and child both publish
could be subtracted from itself, and a budget that both go on with would be spent twice. So streams
of words start afresh in a child, and sessions and ledgers in memory refuse to work there. A process
number does not tell, as it is used again. So the forks on the way to this process are counted too:
Python tells of those that it makes itself (:func:`os.register_at_fork`); others are seen on Linux
by a page of memory that the kernel wipes in every child. Along a line of descent the count only
grows, so no two processes, of which one could hold a copy of what the other made, have the same
mark.

A copy of a whole machine or container is no fork, and nothing here can see it: see SECURITY.md.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import sys
import threading
import time
from typing import Any

import numpy as np

_MADV_WIPEONFORK = 18  # since Linux 4.14; Python has no name for it

_forks = 0


def _wiped_page() -> Any:
    """A page that holds a zero in every child, or None where the system does not offer it. An old
    Linux refuses the advice; forks behind Python's back are then not seen."""
    if not sys.platform.startswith("linux"):
        return None
    page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    try:
        page.madvise(_MADV_WIPEONFORK)
    except OSError:
        return None
    page[0] = 1
    return page


_PAGE = _wiped_page()


def _count_fork() -> None:
    """One fork more on the way to this process; the page is marked, so that it counts once."""
    global _forks
    _forks += 1
    if _PAGE is not None:
        _PAGE[0] = 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


def process_mark() -> tuple[int, ...]:
    """A value that differs between a process and everything that is forked off it."""
    if _PAGE is not None and not _PAGE[0]:
        _count_fork()
    return os.getpid(), _forks


BLOCK = 4096
"""Words in a block."""


def fresh_bytes(size: int) -> bytes:
    """Bytes of the operating system's generator, mixed with the clocks and the process."""
    facts = (time.time_ns(), time.perf_counter_ns(), process_mark(), threading.get_ident())
    mix = hashlib.shake_256(os.urandom(32) + repr(facts).encode()).digest(size)
    words = np.frombuffer(os.urandom(size), dtype=np.uint8) ^ np.frombuffer(mix, dtype=np.uint8)
    return words.tobytes()


class Stream:
    """A sequence of blocks of words, of which each word is handed out once.

    A seed of None: fresh bits. Streams of one seed with different tags are independent. `counter`
    and `position` say where to go on: blocks made, and words of the last one handed out."""

    def __init__(self, seed: int | None, tag: str, counter: int = 0, position: int = BLOCK) -> None:
        self.seed, self.tag, self.mark = seed, tag, process_mark()
        self.counter, self.position = counter, position
        self.lock = threading.Lock()
        self.block: Any = Block(self._words(counter - 1)) if position < BLOCK else None

    def here(self) -> Stream:
        """This stream; in a forked child, which must not use its parent's words, a fresh one."""
        if self.seed is not None or self.mark == process_mark():
            return self
        return Stream(None, self.tag)

    def _words(self, counter: int) -> np.ndarray:
        if self.seed is None:
            data = fresh_bytes(8 * BLOCK)
        else:
            # The numbers are decimal and the tag comes last, so no two inputs are alike. No block
            # is kept: seeds that nobody gave are secret, and their bits end with the fit.
            name = f"sklearn_dp/noise/1|{self.seed}|{counter}|{self.tag}"
            data = hashlib.shake_256(name.encode()).digest(8 * BLOCK)
        return np.frombuffer(data, dtype="<u8").astype(np.uint64, copy=False, casting="same_kind")

    def claim(self, size: int) -> tuple[Block, slice]:
        """A block and a slice of at most `size` of its words, which nobody else gets. Under a lock:
        two threads that got the same words would publish two numbers with the same noise, and their
        difference would be exact."""
        with self.lock:
            if self.position == BLOCK:
                self.block = Block(self._words(self.counter))
                self.counter, self.position = self.counter + 1, 0
            part = slice(self.position, min(BLOCK, self.position + size))
            self.position = part.stop
            return self.block, part

    def place(self) -> tuple[int, int]:
        """Where a copy of a seeded stream goes on: blocks made, words of the last one taken."""
        with self.lock:
            return self.counter, self.position


class Block:
    """Random words (BLOCK,) as uint64 and their transforms, each made once for the whole block."""

    def __init__(self, words: np.ndarray) -> None:
        self.words = words
        self._transformed: dict[Any, tuple[np.ndarray, np.ndarray]] = {}

    def transform(self, law: Any) -> tuple[np.ndarray, np.ndarray]:
        """Ideal magnitudes of `law` and the bounds of their errors, for all words of the block."""
        if law not in self._transformed:
            self._transformed[law] = law.transform(self.words)
        return self._transformed[law]
