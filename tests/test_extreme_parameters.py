"""Positive parameters of all sizes: refused by name before the charge, or private and in range.

Numbers that are divided by or squared leave the floats long before they leave their type, and NaN
as an integer is -2**63. Each float parameter of each estimator is tried from 1e-300 to 1e300, with
rows of its own size and of others, under replay: neighbors within the claims, and no statistic
farther from that of no rows than there are units.
"""

import inspect
import itertools
import re
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone
from test_extreme_rows import strict
from weight_tools import LastColumn

from sklearn_dp import DPPCA, DPGaussianMixture, DPKMeans, PrivacyBudget, PrivacyLedger
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp.audit import all_estimators, neighboring_pairs
from sklearn_dp.audit._checks import Watched
from sklearn_dp.audit._replay import Replay, record, replay_recording
from sklearn_dp.model_selection import DPGridSearch

ESTIMATORS = dict(all_estimators())
SMALL = {
    "DPKMeans": {"n_clusters": 2},
    "DPKTupleKMeans": {"n_clusters": 2, "n_tuples": 4},
    "DPOneClusterKMeans": {"n_clusters": 2},
    "DPTopics": {"n_topics": 2},
    "FederatedDPKMeans": {"n_clusters": 2},
    "SampleAndAggregate": {"n_blocks": 6},
}
WEIGHTED = {
    name: type(f"Weighted{name}", (LastColumn, cls), {"__module__": __name__})
    for name, cls in ESTIMATORS.items()
}
globals().update({cls.__name__: cls for cls in WEIGHTED.values()})  # as pickles look for them
LADDER = (
    *(5e-324, 1e-300, 1e-160, 1e-141, 1.1e-140, 1e-101, 1.1e-100, 1e-50, 1e-20, 1e-9, 1e-3, 0.999),
    *(1.0, 1e3, 1e9, 1e20, 1e50, 9e99, 1e101, 9e139, 1e141, 1e160, 1e300),
)
WIDEST = (1e-139, 1e139)  # about the smallest and the largest length that bounds may have
N = 24
IN_STEPS = ("gaussian", "laplace")
PAIRS = ("diameter_range", "bounds", "output_bounds")


@cache
def float_parameters(name):
    """Those that the docstring calls numbers: of the class, or of one that it derives from."""
    found = []
    for parameter in inspect.signature(ESTIMATORS[name]).parameters:
        for base in ESTIMATORS[name].__mro__:
            told = re.search(rf"^ *{parameter} : (.*)$", base.__doc__ or "", re.M)
            if told:
                found += [parameter] if re.search(r"\bfloat\b", told[1]) else []
                break
    return found


def model_of(name, parameter, value, **options):
    """An estimator, and the size of lengths that the parameter speaks of; none without a plan."""
    options = {
        **SMALL.get(name, {}),
        "epsilon": 5.0,
        **options,
        parameter: value,
        "random_state": 0,
    }
    if parameter == "rho":
        options["epsilon"] = None
    return (WEIGHTED if parameter == "max_weight" else ESTIMATORS)[name](**options)


def forms(parameter, value):
    """A number as the parameter takes it: by itself, and as the ends of an interval."""
    if parameter == "quantiles":
        yield [value]
    elif parameter == "quantile_range":
        yield (value, 75.0)
    elif parameter != "diameter_range":
        yield value
    if parameter in PAIRS:
        yield (value, 2 * value)
        yield (min(value, 1 / max(value, 1e-307)), max(value, 1 / max(value, 1e-307)))
    if parameter in PAIRS[1:]:
        yield (-value, value)


def accepted(name, parameter, values, **options):
    """Estimators with those values that are taken; the others are refused, for nothing."""
    for value in values:
        for form in forms(parameter, value):
            model = model_of(name, parameter, form, **options)
            try:
                with strict():
                    model.privacy_plan(2)
            except ValueError as error:
                assert re.search(rf"\b{parameter}\b", str(error)), error
                refused_for_nothing(ESTIMATORS[name](**model.get_params(deep=False)), parameter)
            else:
                yield value, model


def refused_for_nothing(model, parameter):
    """A fit is refused as well, by name, before the charge and before its rows are looked at."""

    def touch():
        raise AssertionError("the rows were looked at")

    model.ledger = PrivacyLedger(PrivacyBudget(epsilon=1e9, delta=0.1))
    with pytest.raises(ValueError, match=rf"\b{parameter}\b"):
        model.fit(Watched(rows_of(1.0), touch))
    assert not model.ledger.entries


def rows_of(size, n=N):
    """Rows about as long as that; the first and the last are as long as any.

    Two of them: of weights that all count as zero but for one, that one decides about the fit, as
    the privacy model says.
    """
    rows = np.random.default_rng(0).normal(size=(n, 2)) * min(size, 1e307)
    rows[[0, -1]] = 1.7e308
    return rows


def check(model, size):
    """Two neighbors under replay, and what is released against what there is at most."""
    X = rows_of(size)
    original = record(model, X)
    result = replay_recording(original, neighboring_pairs(X, 0, kinds=["farthest", "remove_last"]))
    assert result.violations == [], (model, size)
    in_range(original.events, len(X))


def in_range(events, n_units):
    """No statistic is farther from 0, in claims, than there are units."""
    for event in events:
        if event.kind in IN_STEPS:
            share = np.asarray(event.value, dtype=np.float64) / event.sensitivity
            assert np.abs(share).max(initial=0.0) <= n_units * (1 + 1e-9), event.entry


CASES = [(name, parameter) for name in ESTIMATORS for parameter in float_parameters(name)]


@pytest.mark.quick("*bounds", "*min_radius", "*diameter*", "*max_weight", "FriendlyCovariance-rho")
@pytest.mark.parametrize(("name", "parameter"), CASES)
def test_the_smallest_and_the_largest_number_that_is_taken(name, parameter):
    for values in (LADDER[::2], LADDER[::-2]):
        value, model = next(accepted(name, parameter, values))
        check(model, value)


# -- what is no fit of an estimator in memory ------------------------------------------------------


def one_row_less(call, size):
    """The same for any function of rows: the last of them is taken away under replay."""
    X, recorder = rows_of(size), Trace()
    with strict(), trace(recorder):
        call(X)
    replay = Replay(recorder.events, np.arange(len(X) - 1))
    with strict(), trace(replay):
        call(X[:-1])
    assert replay.voided or replay.finish() == []
    assert any(event.kind in IN_STEPS for event in recorder.events)
    in_range(recorder.events, len(X))


SEARCHES = {
    "cost": (DPKMeans(2), {"max_weight": [1.0, 2.0]}),
    "silhouette": (DPKMeans(), {"n_clusters": [1, 2]}),
    "reconstruction": (DPPCA(), {"n_components": [1, 2]}),
    "log_density": (DPGaussianMixture(), {"n_components": [1, 2]}),
}


@pytest.mark.quick("cost", "reconstruction")
@pytest.mark.parametrize("scoring", SEARCHES)
def test_searches_with_the_smallest_and_the_largest_cap_and_bounds(scoring):
    model, grid = SEARCHES[scoring]
    for bounds, cap in itertools.product(WIDEST, (1.1e-140, 9e139)):
        found = DPGridSearch(
            clone(model).set_params(bounds=bounds),
            grid,
            scoring=scoring,
            max_distance=cap,
            epsilon=5.0,
            random_state=0,
        )
        one_row_less(lambda X, found=found: clone(found).fit(X), bounds)
