"""Noisy means about a released center: exact sums, the clipping radius."""

import math

import numpy as np
import pytest
from kernel_tools import open_session

from sklearn_dp._aggregate.friendly.mean_facts import Candidate, PublicFacts
from sklearn_dp._aggregate.friendly.refine import (
    Points,
    Spending,
    refine,
    released_mean,
    rows_about,
)
from sklearn_dp._costs.plan import Mechanism, PlanEntry
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp._privacy._units import Units
from sklearn_dp._queries._query import TableRows
from sklearn_dp._queries.columns import Columns


def points_of(X):
    return Points(TableRows.in_memory(X, Units(len(X))), Columns.of(None, X.shape[1]))


def test_the_clipping_radius_is_one_that_few_points_exceed():
    """One point or so of 4000: the radius is near the largest of the norms, far from the ball."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(4000, 20))
    entries = (
        PlanEntry("distances", Mechanism.GAUSSIAN, 0.5),
        PlanEntry("mean", Mechanism.GAUSSIAN, 2.0),
    )
    session = open_session(*entries, rho=2.6)
    facts = PublicFacts(4000.0, 20, 12.0, 2.0, 1e-6, None)
    found = refine(session, points_of(X), Candidate(np.zeros(20), 40.0, 20.0, 0.01), facts)
    mean, clip, error = found.mean, found.clip, found.std_error
    norms = np.linalg.norm(X, axis=1)
    # So much budget that a wider clip costs next to nothing: a fifth of the sampling error.
    assert np.quantile(norms, 0.98) < clip < 0.21 * 2 * math.sqrt(2.0 * 4000)
    assert np.linalg.norm(mean - X.mean(axis=0)) < 0.1
    # The rows have a standard deviation of one; the noise of a coordinate is clip / (2 n).
    noise, sampling = clip / math.sqrt(2 * 2.0) / 4000, 1 / math.sqrt(4000)
    assert np.allclose(error, math.hypot(noise, sampling), rtol=0.2)
    assert np.all((found.spread > 0.75) & (found.spread < 1.25))
    # Two sd of the number: it gets about a fiftieth of the release, miss over miss + sqrt(d) clip.
    miss = (math.sqrt(20) + 1) * 0.1
    share = miss / (miss + math.sqrt(20) * clip)
    assert found.size - found.least == pytest.approx(2 / math.sqrt(2 * 2.0 * share), rel=1e-6)
    assert abs(found.size - 4000) < 20


@pytest.mark.parametrize("powers", [(), (0.05,), (0.05, 0.05), (0.3, 0.05)])
def test_a_row_on_an_axis_at_the_clip_moves_a_release_by_all_of_its_claim(powers):
    """And no row by more: the sum, the powers and the number over their claims, squared, add up
    to one."""
    candidate = Candidate(np.zeros(2), 2.0**23, 2.0**22, 1.0)
    facts = PublicFacts(1.0, 2, 12.0, 2.0, 1e-6, None)
    entries = (PlanEntry("mean", Mechanism.GAUSSIAN, 1.0),)

    def moved(row):
        rows, sums = rows_about(points_of(2.0**22 * np.array([row])), candidate), Trace()
        with trace(sums):
            session, spending = open_session(*entries), Spending(0.9, 0.1, powers)
            released_mean(session, "mean", rows, candidate, facts, spending)
        (event,) = (e for e in sums.events if e.entry == "mean")
        # Without the row all of these sums are zero.
        return np.square(event.value.astype(float) / event.sensitivity).sum()

    assert 0.999 < moved([1.0, 0.0]) <= 1 and moved([0.0, 7.0]) <= 1
    for row in np.random.default_rng(0).normal(size=(100, 2)):
        assert moved(row) <= 1
