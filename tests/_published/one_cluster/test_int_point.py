"""IntPoint: an interior point from a 1-cluster solver."""

import numpy as np
import pytest

from sklearn_dp._aggregate.one_cluster.search import Search
from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.plan import PrivacyPlan
from sklearn_dp._privacy._sealed import exact_of
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp._published.one_cluster.int_point import int_point, int_point_entries
from sklearn_dp._queries.handles import GridRows
from sklearn_dp._queries.interior import InteriorScores
from sklearn_dp._rows.rows import Rows
from sklearn_dp.audit._replay import Replay

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")
SEARCH = Search(center_method="clip", replace=True)
RADIUS = 2.0**20


def rows_of(values):
    return GridRows.in_memory(Rows.of(np.asarray(values, dtype=float)[:, None].copy(), RADIUS))


def interior_scores(values, candidates):
    return exact_of(rows_of(values).ask(InteriorScores(candidates)))


def run(values, n_points=500, rho=0.5, seed=0):
    plan = PrivacyPlan(PrivacyBudget(rho=rho, delta=1e-6), int_point_entries(rho, 1e-6, SEARCH))
    session = PrivacySession(plan, random_state=seed)
    point = int_point(session, rows_of(values), n_points, SEARCH)
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


def test_replay_of_neighbors():
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
