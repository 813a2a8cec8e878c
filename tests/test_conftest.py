"""The mark `quick` of `tests/conftest.py`: which cases of a test are slow."""

import pytest
from conftest import pytest_pycollect_makeitem


class Case:
    """As much of a collected case as the hook asks for."""

    def __init__(self, name, mark):
        self.callspec, self.mark, self.slow = self, mark.mark, False
        self.id = name

    def iter_markers(self, name):
        assert name == "quick"
        return [self.mark]

    def add_marker(self, mark):
        assert mark.name == "slow"
        self.slow = True


class Collector:
    CollectError = ValueError


def left(mark, names=("few-1", "few-2", "many-1")):
    """The cases that `make test` has; pluggy's protocol is played by hand."""
    cases = [Case(name, mark) for name in names]
    hook = pytest_pycollect_makeitem(Collector(), "test_name", None)
    next(hook)
    with pytest.raises(StopIteration) as stop:
        hook.send(cases)
    assert stop.value.value is cases
    return [case.id for case in cases if not case.slow]


def test_cases_stay_by_pattern():
    assert left(pytest.mark.quick("few-*")) == ["few-1", "few-2"]
    assert left(pytest.mark.quick("few-1", "many-?")) == ["few-1", "many-1"]
    assert left(pytest.mark.quick(but=("few-1",))) == ["few-2", "many-1"]


@pytest.mark.parametrize(
    "mark", [pytest.mark.quick("few-1", "some-*"), pytest.mark.quick(but=("all",))]
)
def test_a_pattern_that_no_case_matches_is_an_error(mark):
    with pytest.raises(ValueError, match=r"test_name: no case has the id \['(some-\*|all)'\]"):
        left(mark)
