"""Marks of processes."""

import os

import pytest

from sklearn_dp._privacy import _noise as _process
from sklearn_dp._privacy._noise import process_mark


def mark_of_a_child(depth=1):
    """The mark that a child, or a child of it, sees."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        mark = mark_of_a_child(depth - 1) if depth > 1 else process_mark()
        os.write(write, repr(mark).encode())
        os._exit(0)
    os.waitpid(child, 0)
    mark = eval(os.read(read, 100))
    os.close(read), os.close(write)
    return mark


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_each_fork_counts_whatever_its_number(monkeypatch):
    monkeypatch.setattr(os, "getpid", lambda: 77)
    number, forks = process_mark()
    assert (number, forks) == (77, process_mark()[1])
    assert mark_of_a_child() == (77, forks + 1)
    assert mark_of_a_child(3) == (77, forks + 3)
    assert process_mark() == (77, forks)


def test_a_page_that_the_system_has_wiped_is_a_fork(monkeypatch):
    monkeypatch.setattr(_process, "_forks", 4)
    monkeypatch.setattr(_process, "_PAGE", bytearray(1))
    assert process_mark()[1] == 5 == process_mark()[1]


def test_without_such_a_page_the_count_of_python_remains(monkeypatch):
    monkeypatch.setattr(_process, "_forks", 4)
    monkeypatch.setattr(_process, "_PAGE", None)
    assert process_mark()[1] == 4
