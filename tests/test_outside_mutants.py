"""Each edit of `tests/mutants/outside.py` makes the test fail that it names."""

import importlib.util
import inspect
import itertools
import sys
from pathlib import Path

import pytest
from mutants.outside import OUTSIDE

TESTS = Path(__file__).parent
pytestmark = pytest.mark.filterwarnings("ignore")


def run(test, arguments):
    """One case of a test, from a module that is loaded anew: nothing is kept from other runs."""
    path, name = test.split("::")
    spec = importlib.util.spec_from_file_location(f"outside_{Path(path).stem}", TESTS / path)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, spec.name, module)  # or its classes could not be pickled
        spec.loader.exec_module(module)
        function = getattr(module, name)
        if "monkeypatch" in inspect.signature(function).parameters:
            arguments = {"monkeypatch": patch, **arguments}
        function(**arguments)


@pytest.mark.parametrize("edit", OUTSIDE, ids=lambda edit: edit.name)
def test_an_edit_from_outside_is_seen(edit):
    """By an assertion: code that does not run any more would be seen by anybody."""
    with edit.planted() as happened, pytest.raises((AssertionError, pytest.fail.Exception)):
        run(edit.test, edit.arguments)
    assert happened


def test_each_edit_has_a_name_of_its_own():
    names = [edit.name for edit in OUTSIDE]
    assert len(names) == len(set(names))


def test_the_tests_of_edits_are_in_the_normal_suite():
    """And are no tests that fail without them: the suite runs those by itself."""
    for edit in OUTSIDE:
        path, name = edit.test.split("::")
        lines = (TESTS / path).read_text().splitlines()
        place = lines.index(next(line for line in lines if line.startswith(f"def {name}(")))
        marks = itertools.takewhile(bool, reversed(lines[:place]))
        assert "@pytest.mark.slow" not in marks, edit.name
