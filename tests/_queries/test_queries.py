"""What is proved of every question: additive, row by row, and no unit adds more than is claimed."""

import inspect

import numpy as np
import pytest
from query_bugs_tools import QUESTIONS, bugs
from query_tools import CASES, first_problem, problem

from sklearn_dp._queries._query import QUESTIONS as EVERY
from sklearn_dp._queries._query import Query

SEEDS = 40


@pytest.mark.parametrize("name", CASES)
def test_a_question_is_as_proved(name):
    """Exactly, in fractions; and rows come to nearly all of each claim: no noise is wasted."""
    most = np.zeros(2)
    for seed in range(SEEDS):
        rng = np.random.default_rng([seed, 7])
        why, used = problem(CASES[name](rng), rng)
        assert why is None, (seed, why)
        most[: len(used)] = np.maximum(most[: len(used)], used)
    assert most[: max(1, len(used))].min() > 0.9


BUGS = {name: rest for name, *rest in bugs()}


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_seen(name, monkeypatch):
    owner, attribute, change, cases = BUGS[name]
    monkeypatch.setattr(owner, attribute, change(inspect.getattr_static(owner, attribute)))
    assert first_problem(cases, SEEDS) is not None


def test_every_question_has_a_case_and_bugs():
    assert {each for each in EVERY if issubclass(each, Query)} == {*QUESTIONS}
    assert {name for names in QUESTIONS.values() for name in names} == {*CASES}
