"""Rooms of silent threads: their filters, logs and streams, and who is in them."""

import io
import threading
import warnings

import pytest

from sklearn_dp._aggregate.shared.sections import Section, inside, section_of_thread


def message(text="secret", category=UserWarning):
    return warnings.WarningMessage(category(text), category, "nowhere.py", 1)


def filtered(action, text=None, category=Warning):
    import re

    pattern = None if text is None else re.compile(text)
    return (action, pattern, category, None, 0)


def test_a_thread_is_where_it_was_after_the_block():
    outer, inner = Section(), Section()
    assert section_of_thread() is None
    with inside(outer):
        with inside(inner):
            assert section_of_thread() is inner
        with inside(None):
            assert section_of_thread() is None
        assert section_of_thread() is outer
        with pytest.raises(ZeroDivisionError), inside(inner):
            raise ZeroDivisionError
        assert section_of_thread() is outer
    assert section_of_thread() is None


def test_other_threads_are_elsewhere():
    found = []
    with inside(Section()):
        thread = threading.Thread(target=lambda: found.append(section_of_thread()))
        thread.start()
        thread.join()
    assert found == [None]


def test_a_closed_section_is_left():
    section = Section()
    stream = section.stream("stdout")
    stream.write("secret")
    with inside(section):
        section.close()
        assert section_of_thread() is None
    assert stream.closed


def test_streams_lead_to_where_the_fit_redirects_them():
    section, own = Section(), io.StringIO()
    section.targets["stdout"] = own
    assert section.stream("stdout") is own
    assert section.stream("stderr") is not own
    assert section.stream("stderr") is section.stream("__stderr__")  # nowhere, a real file
    assert section.stream("stderr").fileno() >= 0
    section.close()


def test_a_warning_is_noted_in_the_innermost_log_or_nowhere():
    section = Section()
    section.show(message())
    section.logs += [[], []]
    section.show(message("a"))
    assert [len(log) for log in section.logs] == [0, 1]
    assert str(section.logs[1][0].message) == "a"


def test_the_first_filter_that_fits_decides():
    section = Section()
    section.logs.append([])
    section.filters = [
        filtered("ignore", "quiet"),
        filtered("error", category=RuntimeWarning),
        filtered("always", "loud"),
        filtered("error"),
    ]
    section.show(message("quiet"))
    section.show(message("quiet", RuntimeWarning))
    assert section.logs == [[]]
    with pytest.raises(RuntimeWarning):
        section.show(message("loud", RuntimeWarning))
    section.show(message("loud"))
    with pytest.raises(UserWarning):
        section.show(message("other"))
    assert [str(each.message) for each in section.logs[0]] == ["loud"]
