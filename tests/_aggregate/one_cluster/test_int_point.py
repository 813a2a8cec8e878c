"""IntPoint: an interior point from a 1-cluster solver."""

import numpy as np
import pytest

from sklearn_dp import PrivacyLedger
from sklearn_dp._aggregate.one_cluster.int_point import (
    _middle,
    int_point,
    int_point_entries,
    interior_scores,
)
from sklearn_dp._aggregate.one_cluster.search import Search
from sklearn_dp._privacy._budget import PrivacyBudget
from sklearn_dp._privacy._plan import PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp.audit._player import Replay
from sklearn_dp.cluster import int_point as public_int_point
from sklearn_dp.exceptions import BudgetExceededError

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")
SEARCH = Search(center_method="clip", replace=True)
RADIUS = 2.0**20


def run(values, n_points=500, rho=0.5, seed=0):
    plan = PrivacyPlan(PrivacyBudget(rho=rho, delta=1e-6), int_point_entries(rho, 1e-6, SEARCH))
    session = PrivacySession(plan, random_state=seed)
    point = int_point(session, values, RADIUS, n_points, SEARCH)
    assert session.spent <= rho
    return point


@pytest.mark.parametrize("law", ["uniform", "cluster", "two", "equal"])
def test_the_point_is_interior_and_near_the_median(law):
    rng = np.random.default_rng(0)
    values = {
        "uniform": rng.integers(-(2**19), 2**19, 1000),
        "cluster": 3000 + rng.integers(-50, 50, 1000),
        "two": np.where(rng.random(1000) < 0.5, -4000, 70000) + rng.integers(0, 99, 1000),
        "equal": np.full(1000, 12345),
    }[law].astype(float)
    for seed in range(10):
        point = run(values, seed=seed)
        assert values.min() <= point <= values.max()
        if law != "equal":
            assert interior_scores(values, np.array([point]))[0] >= 100


def test_scores_are_positive_exactly_inside():
    values = np.array([3.0, 5, 5, 9])
    candidates = np.array([2.0, 3, 5, 8, 9, 10])
    assert interior_scores(values, candidates).tolist() == [0, 1, 3, 1, 1, 0]


def test_the_middle_changes_in_one_number():
    rng = np.random.default_rng(1)
    for _ in range(300):
        values = rng.integers(0, 30, rng.integers(1, 20)).astype(float)
        size = int(rng.integers(1, 12))
        a = _middle(values, size)
        b = _middle(np.append(values, rng.integers(0, 30)), size)
        common = sum(min((a == v).sum(), (b == v).sum()) for v in range(30))
        assert max(len(a), len(b)) - common <= 1
        assert len(b) == min(size, len(values) + 1)


def test_replay_of_neighbours():
    rng = np.random.default_rng(2)
    for seed in range(60):
        values = rng.integers(-(2**15), 2**15, rng.integers(1, 40)).astype(float)
        other = np.append(values, rng.integers(-(2**19), 2**19))
        recorder = Trace()
        with trace(recorder):
            first = run(values, 20, 50.0, seed)
        replay = Replay(recorder.events, np.append(np.arange(len(values)), -1))
        with trace(replay):
            assert run(other, 20, 50.0, seed) == first
        assert replay.finish() == []


@pytest.mark.parametrize("bounds", [1000.0, (0.0, 500.0)])
def test_a_median_with_bounds_and_a_report(bounds):
    values = np.random.default_rng(3).normal(100.0, 5.0, size=4000)
    ledger = PrivacyLedger(PrivacyBudget(epsilon=3.0, delta=1e-5))
    for seed in range(3):
        found = public_int_point(
            values, bounds=bounds, n_points=2000, epsilon=1.0, random_state=seed, ledger=ledger
        )
        assert 90 < found.point < 110
    report = found.privacy_report
    assert report.epsilon <= 1.0 and report.spent_rho <= report.rho
    assert len(ledger.entries) == 3
    with pytest.raises(BudgetExceededError):
        public_int_point(values, bounds=bounds, n_points=2000, epsilon=1.0, ledger=ledger)


def test_the_median_of_neighbours():
    """Replay of the public function: from bounds and floats on."""
    rng = np.random.default_rng(4)
    for seed in range(30):
        values = rng.normal(size=rng.integers(0, 30))
        other, recorder = np.append(values, rng.choice([1e300, 0.0, -3.0])), Trace()
        options = dict(bounds=4.0, n_points=20, epsilon=30.0, random_state=seed)
        with trace(recorder):
            first = public_int_point(values, **options)
        replay = Replay(recorder.events, np.append(np.arange(len(values)), -1))
        with trace(replay):
            assert public_int_point(other, **options).point == first.point
        assert replay.finish() == []


@pytest.mark.parametrize("values", [[[1.0]], ["a"], [np.nan], [1j], [np.inf], 3.0, [object()]])
def test_bad_values(values):
    with pytest.raises(ValueError, match="values must be a vector"):
        public_int_point(values, bounds=1.0, n_points=3)


@pytest.mark.parametrize(
    "options, error",
    [
        ({"bounds": None}, ValueError),
        ({"bounds": -1.0}, ValueError),
        ({"n_points": 0}, ValueError),
        ({"n_points": 2.5}, TypeError),
        ({"epsilon": -1.0}, ValueError),
    ],
)
def test_bad_parameters(options, error):
    with pytest.raises(error, match=next(iter(options))):
        public_int_point([1.0, 2.0], **{"bounds": 1.0, "n_points": 3, **options})


def test_too_few_numbers_get_an_answer():
    for n in (0, 1, 2):
        assert np.isfinite(run(np.zeros(n)))
