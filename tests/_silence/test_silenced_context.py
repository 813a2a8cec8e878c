"""Contexts of silent threads: their filters, logs and streams, and who is in them."""

import threading
import warnings

import pytest

from sklearn_dp._silence.suppress_output import SilencedContext, context_of_thread, inside


def message(text="secret", category=UserWarning):
    return warnings.WarningMessage(category(text), category, "nowhere.py", 1)


def test_a_thread_is_where_it_was_after_the_block():
    outer, inner = SilencedContext(), SilencedContext()
    assert context_of_thread() is None
    with inside(outer):
        with inside(inner):
            assert context_of_thread() is inner
        with inside(None):
            assert context_of_thread() is None
        assert context_of_thread() is outer
        with pytest.raises(ZeroDivisionError), inside(inner):
            raise ZeroDivisionError
        assert context_of_thread() is outer
    assert context_of_thread() is None


def test_other_threads_are_elsewhere():
    found = []
    with inside(SilencedContext()):
        thread = threading.Thread(target=lambda: found.append(context_of_thread()))
        thread.start()
        thread.join()
    assert found == [None]


def test_a_warning_is_noted_in_the_innermost_log_or_nowhere():
    context = SilencedContext()
    context.show(message())
    context.logs += [[], []]
    context.show(message("a"))
    assert [len(log) for log in context.logs] == [0, 1]
    assert str(context.logs[1][0].message) == "a"
