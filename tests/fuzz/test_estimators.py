"""Every public method of every estimator, with anything."""

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from sklearn_dp.audit import all_estimators

from .runner import Tally
from .sessions import CALLS, Session

ESTIMATORS = dict(all_estimators())
FAST, LONG = 3, 640
"""Sessions of each estimator, in the normal suite and by `make fuzz`."""

SETTINGS = {"suppress_health_check": list(HealthCheck), "deadline": None, "database": None}


@pytest.fixture(autouse=True)
def one_thread():
    """Small arrays: more threads only get into each other's way."""
    with threadpool_limits(1):
        yield


def play(cls, sessions, **options):
    """Sessions with new estimators of a class; returns the tally."""
    tally = Tally()

    @settings(max_examples=sessions, **SETTINGS, **options)
    @given(st.data())
    def sessions_of(data):
        Session(cls, data, tally).play()

    sessions_of()
    return tally


@pytest.mark.quick(
    "DPBySegment",
    "DPGaussianMixture",
    "DPKMeans",
    "DPOneHotEncoder",
    "DPTopics",
    "FederatedDPKMeans",
    "FriendlyMean",
    "SampleAndAggregate",
)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_some_calls(name, record_property):
    tally = play(ESTIMATORS[name], FAST, phases=[Phase.generate])
    record_property("fuzz", (name, tally.table()))
    assert tally.calls >= FAST * CALLS / 2


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_many_calls(name, record_property):
    tally = play(ESTIMATORS[name], LONG)
    record_property("fuzz", (name, tally.table()))
    assert tally.calls >= LONG * CALLS / 2
