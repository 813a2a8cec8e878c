"""Every parameter of every estimator with every kind of value, one at a time."""

import inspect

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from sklearn_dp.audit import all_estimators

from .arguments import JUNK, fresh
from .runner import Tally, problems, run

ESTIMATORS = dict(all_estimators())
PROCESSES = (
    "n_jobs",
    ("two", "a hundred", "ten million", "2**31", "2**63", "2**70", "10**400", "int64", "uint8"),
)
"""Fits do start as many processes as that, which takes its time."""

SOME = 6
"""In the normal suite, every one in so many."""


def table():
    """Twenty-three rows of planted numbers."""
    return 7319 + np.random.default_rng(0).random((23, 3))


def spoiled(cls):
    """Triples (parameter, kind, estimator): the parameter has a value of that kind."""
    for name in inspect.signature(cls).parameters:
        for kind, value in JUNK.items():
            yield name, kind, cls(**{"random_state": 0, name: fresh(value)})


def check(name, model, outcome, tally):
    """An error names the parameter; that there is none, is fine too."""
    tally.add(name, outcome)
    names = {name, "epsilon and rho"} if name in ("epsilon", "rho") else {name}
    found = problems(outcome, names)
    assert not found, f"{model}: {'; '.join(found)}"


@pytest.mark.parametrize("name", ESTIMATORS)
def test_plans_of_some_values(name):
    tally = Tally()
    for number, (parameter, _, model) in enumerate(spoiled(ESTIMATORS[name])):
        if number % SOME == 0:
            check(parameter, model, run(model.privacy_plan, 3), tally)
    assert {"ok", "TypeError", "ValueError"} <= tally.table().keys()


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_fits_and_plans_of_all_values(name, record_property):
    tally, X = Tally(), table()
    with threadpool_limits(1):
        for parameter, kind, model in spoiled(ESTIMATORS[name]):
            check(parameter, model, run(model.privacy_plan, 3), tally)
            if parameter != PROCESSES[0] or kind not in PROCESSES[1]:
                check(parameter, model, run(model.fit, X), tally)
    record_property("fuzz", (name, tally.table()))
    parameters = inspect.signature(ESTIMATORS[name]).parameters
    unfitted = len(PROCESSES[1]) * (PROCESSES[0] in parameters)
    assert tally.calls == 2 * len(JUNK) * len(parameters) - unfitted
