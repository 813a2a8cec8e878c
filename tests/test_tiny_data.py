"""Thirty rows or fewer at a small budget: no estimator calls its answer good."""

import itertools

import pytest
from estimators import all_estimators

from sklearn_dp.audit._checks import check_data
from sklearn_dp.audit._observe import prepared, run_fit

ESTIMATORS = dict(all_estimators())


def statuses(name, sizes, epsilons, features):
    for n, epsilon, d in itertools.product(sizes, epsilons, features):
        model = prepared(ESTIMATORS[name](), epsilon=epsilon)
        outcome = run_fit(model, check_data(n, d=d), internal=n == 0)
        assert outcome.error is None, outcome.error
        yield (n, epsilon, d), model.trustworthy_


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_answer_to_next_to_no_rows_is_not_ok(name):
    told = dict(statuses(name, (0, 30), (0.1,), (3,)))
    assert not any(told.values()), told
