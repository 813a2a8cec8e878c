"""The hook for auditors of their own: every release, what was drawn for it, and forced outputs."""

import pickle

import numpy as np
import pytest
from kernel_tools import laplace, open_session

from sklearn_dp import DPKMeans, FriendlyMean
from sklearn_dp._costs.plan import Mechanism, PlanEntry
from sklearn_dp._privacy._noise import NoiseSource
from sklearn_dp._privacy.mechanisms.pure import above_threshold_release, exponential_release
from sklearn_dp.audit import neighboring_pairs, record_releases, replay_releases

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.ExactStatisticsWarning")

X = np.random.default_rng(0).normal(size=(60, 2))


def release(value=(5, 5)):
    session = open_session(PlanEntry("sum", "gaussian", 0.5))
    return session.gaussian("sum", list(value), sensitivity=2.0, rho=0.5)


def test_a_release_is_recorded_with_its_value_claim_and_cost():
    with record_releases() as events:
        output = release()
    seed, event = events
    assert (seed.kind, event.kind, event.entry, event.cost) == ("seed", "gaussian", "sum", 0.5)
    assert event.value.tolist() == [5, 5] and event.sensitivity == 2.0
    assert np.array_equal(event.output, output)
    (draw,) = event.draws
    assert (draw.law, draw.size) == ("gaussian", 2) and draw.scale == event.scale


def test_the_scale_is_that_of_the_sampler_whatever_the_law_claims(monkeypatch):
    original = NoiseSource.rounded_gaussian
    monkeypatch.setattr(
        NoiseSource, "rounded_gaussian", lambda self, sigma, size: original(self, sigma / 2, size)
    )
    with record_releases() as events:
        release()
    assert events[1].draws[0].scale == events[1].scale / 2


def test_every_sampler_tells_its_law_and_scale():
    names = ("laplace", "exponential", "above_threshold")
    with record_releases() as events:
        session = open_session(*(PlanEntry(name, Mechanism[name.upper()], 0.2) for name in names))
        laplace(session, "laplace", [1, 2], sensitivity=3.0, epsilon=0.5)
        session._release("exponential", exponential_release(np.array([1, 2]), 1.0, 0.5))
        session._release("above_threshold", above_threshold_release([1, 2, 3], 2.0, 1.0, 0.5))
    noisy, choice, threshold = events[1:]
    assert [(d.law, float(d.scale)) for d in noisy.draws] == [("laplace", noisy.scale)]
    assert [(d.law, d.scale) for d in choice.draws] == [("choice", choice.scale)]
    assert [(d.law, float(d.scale), d.size) for d in threshold.draws] == [
        ("laplace", threshold.scale, 1),
        ("laplace", 2 * threshold.scale, 3),
    ]


def test_a_replay_goes_the_way_of_the_recording_on_all_neighbors():
    with record_releases() as recorded:
        first = DPKMeans(3, epsilon=50.0).fit(X)
    for pair in neighboring_pairs(X, 0):
        with replay_releases(recorded, pair.units) as events:
            second = DPKMeans(3, epsilon=50.0).fit(pair.X)
        assert [event.entry for event in events] == [event.entry for event in recorded]
        assert np.array_equal(first.cluster_centers_, second.cluster_centers_)
        assert any(
            not np.array_equal(one.value, other.value)
            for one, other in zip(recorded, events, strict=True)
            if one.kind == "gaussian"
        )


def test_what_concerns_single_units_follows_them():
    mean = FriendlyMean(rho=8.0, locate="basic")
    with record_releases() as recorded:
        first = mean.fit(X).mean_
    (pair,) = neighboring_pairs(X, 0, kinds=["remove_first"])
    with replay_releases(recorded, pair.units) as events:
        assert np.array_equal(mean.fit(pair.X).mean_, first)
    decided = [
        [e.output for e in es if len(np.shape(e.output)) and e.output.dtype == bool]
        for es in (recorded, events)
    ]
    assert decided[0] and len(decided[1][0]) == len(decided[0][0]) - 1


def test_nothing_is_recorded_outside_the_context():
    with record_releases() as events:
        release()
    release()
    assert len(events) == 2


def test_events_refuse_pickles_and_show_no_exact_value():
    with record_releases() as events:
        release((123456789, 5))
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(events)
    assert "123456789" not in repr(events)
