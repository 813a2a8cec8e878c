"""What is proved of every question: additive, row by row, and no unit adds more than is claimed."""

import inspect

import numpy as np
import pytest
from query_bugs_tools import QUESTIONS, bugs
from query_cases import CASES, first_problem
from query_tools import answers, problem

from sklearn_dp._privacy._units import Units
from sklearn_dp._queries._query import QUESTIONS as EVERY
from sklearn_dp._queries._query import Query
from sklearn_dp._rows import single_rows

SEEDS = 40


def _case(name):
    return CASES[name](np.random.default_rng(7))


@pytest.mark.parametrize("name", CASES)
def test_a_question_is_as_proved(name):
    """Exactly, in fractions; and rows come to nearly all of each claim: no noise is wasted."""
    most = {}
    for seed in range(SEEDS):
        rng = np.random.default_rng([seed, 7])
        why, used = problem(CASES[name](rng), rng)
        assert why is None, (seed, why)
        for number, each in enumerate(used):
            most[number] = max(each, most.get(number, 0.0))
    assert min(most.values()) > _case(name).reached


@pytest.mark.parametrize("name", CASES)
def test_a_question_is_as_proved_in_chunks_of_few_rows(name, monkeypatch):
    monkeypatch.setattr(single_rows, "_CHUNK_ENTRIES", 8)
    assert first_problem([name], 10) is None


@pytest.mark.parametrize("name", [name for name in CASES if not _case(name).units])
def test_points_are_units(name):
    """A row of a group is not all of its unit."""
    case = _case(name)
    X = np.zeros((4, case.d))
    with pytest.raises(TypeError, match="all of its unit"):
        answers(case, X, Units(4, [0, 0, 1, 1]))


BUGS = {name: rest for name, *rest in bugs()}


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_seen(name, monkeypatch):
    owner, attribute, change, cases = BUGS[name]
    monkeypatch.setattr(owner, attribute, change(inspect.getattr_static(owner, attribute)))
    assert first_problem(cases, SEEDS) is not None


def test_every_question_has_a_case_and_bugs():
    assert {each for each in EVERY if issubclass(each, Query)} == {*QUESTIONS}
    assert {name for names in QUESTIONS.values() for name in names} == {*CASES}
