"""Which process this is: what was made before a fork must not go on in its child.

A process number does not tell: it is used again when a process has ended, and each container counts
its own. So the forks on the way to this process are counted too. Python tells of those that it
makes itself (:func:`os.register_at_fork`). Those that foreign code makes behind its back are seen
on Linux by a page of memory that the kernel wipes in every child, as BoringSSL does it. Along a
line of descent the count only grows, so no two processes, of which one could hold a copy of what
the other made, have the same mark.

What it is for: noise that parent and child both publish could be subtracted from itself, and a
budget that both go on with would be spent twice. So streams of words start afresh in a child, and
sessions and ledgers in memory refuse to work there.

A copy of a whole machine or container is no fork, and nothing here can see it: see SECURITY.md.
"""

import mmap
import os
import sys
from typing import Any

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
