"""The points of a mean: of units, in parts, and a sample of them."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklearn_dp._aggregate.friendly.mean_facts import most_pairs
from sklearn_dp._aggregate.friendly.points import Points, unit_points
from sklearn_dp._aggregate.shared import samples
from sklearn_dp._aggregate.shared.columns import Columns
from sklearn_dp._aggregate.shared.table import ArraySource, LocalEngine, Part, Table
from sklearn_dp._privacy._budget import PrivacyBudget
from sklearn_dp._privacy._domain import Domain
from sklearn_dp._privacy._plan import Mechanism, PlanEntry, PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp._privacy._units import Units

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")

X = np.random.default_rng(0).normal(size=(20_000, 2))


def session(seed=0):
    plan = PrivacyPlan(
        PrivacyBudget(rho=1.0, delta=1e-6), (PlanEntry("size", Mechanism.GAUSSIAN, 0.5),)
    )
    return PrivacySession(plan, random_state=seed)


def points_of(*pieces, domain=None, in_turn=slice(None)):
    parts = [Part(ArraySource(piece, i), Units(len(piece))) for i, piece in enumerate(pieces)]
    table = Table(LocalEngine(parts[in_turn]), 2, np.float64, Units(0).facts)
    return Points(table, Columns.of(domain, 2, scaled=False))


@given(st.integers(0, 10**6))
def test_points_of_units_depend_on_their_rows_only(seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(30, 3)) * 10.0 ** rng.integers(-5, 9)
    groups = rng.integers(0, 6, size=30)
    points = unit_points(rows, Units(30, groups))
    whole = dict(zip(dict.fromkeys(groups.tolist()), points, strict=True))
    for group, point in whole.items():
        alone = rows[groups == group]
        assert np.array_equal(unit_points(alone, Units(len(alone), np.zeros(len(alone))))[0], point)
        assert np.allclose(point, alone.mean(axis=0))


def test_samples_of_neighbors_are_neighbors():
    """The coins of a point do not depend on which points come after it."""
    whole = points_of(X).sample(session(), 20_000.0)
    fewer = points_of(X[:-1]).sample(session(), 20_000.0)
    assert np.array_equal(fewer.numbers, whole.numbers[whole.numbers < len(X) - 1])
    assert np.array_equal(whole.points, X[whole.numbers])
    # 4096 on average: seven standard deviations.
    assert abs(len(whole.points) - most_pairs(2)) < 7 * np.sqrt(4096)
    everything = points_of(X[:4000]).sample(session(), 4000.0)
    assert everything.numbers is None and np.array_equal(everything.points, X[:4000])


@pytest.mark.parametrize("size", [4000.0, 20_000.0])
def test_a_sample_of_parts_is_that_of_one_array(size):
    """Wherever the cuts are, and in whatever order the parts are looked at."""
    whole = points_of(X).sample(session(), size)
    pieces = np.split(X, [0, 3, 4096, 4097, 4097, 19_000])
    for in_turn in (slice(None), slice(None, None, -1)):
        found = points_of(*pieces, in_turn=in_turn).sample(session(), size)
        assert np.array_equal(found.points, whole.points)
        assert np.array_equal(found.numbers, whole.numbers)


def test_an_audit_sees_the_draws_and_may_change_them():
    recorder = Trace()
    with trace(recorder):
        seen = points_of(X[:9000], X[9000:]).sample(session(), 20_000.0)
    (draws,) = (event.output for event in recorder.events if event.kind == "draws")
    assert len(draws) == len(X)
    assert np.array_equal(seen.numbers, points_of(X).sample(session(), 20_000.0).numbers)


def test_only_the_sample_is_collected(monkeypatch):
    """No draw and no point besides it; draws are made in pieces."""
    monkeypatch.setattr(samples, "_DRAWS", 1000)
    points = points_of(X[:9000], X[9000:])
    assert points.number == points.totals[0] == len(X)
    sample = points.sample(session(), 20_000.0)
    assert len(sample.points) == len(sample.numbers) < 4600
    assert np.array_equal(sample.numbers, points_of(X).sample(session(), 20_000.0).numbers)
    assert points.sample(session(1), 20_000.0) is sample
    assert repr(sample) == "Sample"


def test_points_are_in_bounds_and_about_their_center():
    domain = Domain.from_bounds((0.0, [1.0, 2.0]), 2)
    points = points_of(X[:50].astype(np.float32), X[50:90], domain=domain)
    expected = domain.clip_points(np.append(X[:50].astype(np.float32), X[50:90], axis=0))
    assert np.array_equal(points.sample(session(), 90.0).points, expected - domain.center)


def test_draws_travel():
    draws = session().addressed_draws(20)
    known = session().unit_draws(20_000)
    for first, size in ((0, 20), (5, 4096), (4095, 2), (4096, 1), (8192, 10_000)):
        taken = pickle.loads(pickle.dumps(draws)).take(first, size)
        assert np.array_equal(taken, known[first : first + size])
