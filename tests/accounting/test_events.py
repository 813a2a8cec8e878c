"""Events: what they cost, what they refuse, and those of the fits of this package."""

import math

import pytest
from accounting_tools import refuses_bad_numbers

from sklearn_dp import DPGaussianMixture, DPKMeans, FriendlyMean, SampleAndAggregate
from sklearn_dp.accounting import (
    ZCDP,
    ApproxDP,
    Exponential,
    Gaussian,
    Laplace,
    PureDP,
    compose,
    event_of_plan,
    group_privacy,
    total_epsilon,
    zcdp_cost,
)


def test_table_of_costs():
    events = [Gaussian(0.3), ZCDP(0.3, 1e-9), PureDP(1.0), Laplace(1.0), Exponential(1.0),
              ApproxDP(1.0, 1e-9)]  # fmt: skip
    costs = [(0.3, 0), (0.3, 1e-9), (math.tanh(0.5), 0), (math.exp(-1), 0), (0.125, 0),
             (math.tanh(0.5), 1e-9)]  # fmt: skip
    assert [zcdp_cost(event) for event in events] == [pytest.approx(c, rel=1e-13) for c in costs]


class _Strange(PureDP):
    pass


@pytest.mark.parametrize("event", [None, 1.0, object(), _Strange(1.0), (0.1, 0.0)])
def test_unknown_events_are_errors(event):
    functions = (
        zcdp_cost,
        lambda e: compose([e]),
        lambda e: total_epsilon([Gaussian(0.1), e], 1e-6),
        lambda e: group_privacy(e, 2),
    )
    for function in functions:
        with pytest.raises(TypeError, match="unknown privacy event"):
            function(event)


CALLS = [
    ("rho", Gaussian),
    ("rho", ZCDP),
    ("delta", lambda bad: ZCDP(1.0, bad)),
    ("epsilon", PureDP),
    ("epsilon", Laplace),
    ("epsilon", Exponential),
    ("epsilon", lambda bad: ApproxDP(bad, 1e-6)),
    ("delta", lambda bad: ApproxDP(1.0, bad)),
]


@pytest.mark.parametrize("name, call", CALLS)
def test_bad_numbers_are_refused_by_name(name, call):
    refuses_bad_numbers(name, call)


# -- fits of this package -----------------------------------------------------------------------

FITS = [
    (DPKMeans(epsilon=1.0), Gaussian),
    (DPKMeans(rho=0.5), Gaussian),
    (DPGaussianMixture(2, method="partition"), ZCDP),
    (FriendlyMean(epsilon=1.0, bounds=3.0), Gaussian),
    (FriendlyMean(epsilon=1.0), ZCDP),  # Gaussian, but for a failure event
    (SampleAndAggregate(sampling="with_replacement"), ApproxDP),
]


@pytest.mark.parametrize("model, kind", FITS, ids=lambda value: str(value)[:40])
def test_a_fit_costs_what_its_plan_says(model, kind):
    plan = model.privacy_plan(n_features=3)
    event = event_of_plan(plan)
    assert type(event) is kind
    if kind is ApproxDP:
        assert (event.epsilon, event.delta) == (1.0, 1e-6)
    else:
        assert (event.rho, zcdp_cost(event)[1]) == (plan.rho, plan.delta_failure)
    if model.rho is None:
        # An event with failures is read as zCDP even where all else is Gaussian: never as less.
        assert plan.epsilon <= total_epsilon([event], model.delta) * (1 + 1e-12)
