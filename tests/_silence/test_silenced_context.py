"""Contexts of silent threads: their filters, logs and streams, and who is in them."""

import io
import threading
import warnings

import pytest

from sklearn_dp._silence.suppress_output import SilencedContext, context_of_thread, inside


def message(text="secret", category=UserWarning):
    return warnings.WarningMessage(category(text), category, "nowhere.py", 1)


def filtered(action, text=None, category=Warning):
    import re

    pattern = None if text is None else re.compile(text)
    return (action, pattern, category, None, 0)


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


def test_a_closed_section_is_left():
    context = SilencedContext()
    stream = context.stream("stdout")
    stream.write("secret")
    with inside(context):
        context.close()
        assert context_of_thread() is None
    assert stream.closed


def test_streams_lead_to_where_the_fit_redirects_them():
    context, own = SilencedContext(), io.StringIO()
    context.targets["stdout"] = own
    assert context.stream("stdout") is own
    assert context.stream("stderr") is not own
    assert context.stream("stderr") is context.stream("__stderr__")  # nowhere, a real file
    assert context.stream("stderr").fileno() >= 0
    context.close()


def test_a_warning_is_noted_in_the_innermost_log_or_nowhere():
    context = SilencedContext()
    context.show(message())
    context.logs += [[], []]
    context.show(message("a"))
    assert [len(log) for log in context.logs] == [0, 1]
    assert str(context.logs[1][0].message) == "a"


def test_the_first_filter_that_fits_decides():
    context = SilencedContext()
    context.logs.append([])
    context.filters = [
        filtered("ignore", "quiet"),
        filtered("error", category=RuntimeWarning),
        filtered("always", "loud"),
        filtered("error"),
    ]
    context.show(message("quiet"))
    context.show(message("quiet", RuntimeWarning))
    assert context.logs == [[]]
    with pytest.raises(RuntimeWarning):
        context.show(message("loud", RuntimeWarning))
    context.show(message("loud"))
    with pytest.raises(UserWarning):
        context.show(message("other"))
    assert [str(each.message) for each in context.logs[0]] == ["loud"]
