"""How good released centers are: exact sums, caps, claims and the law of the noise."""

import numpy as np
import pytest
from grid_tools import table_rows

from sklearn_dp import DPKMeans
from sklearn_dp._aggregate.kmeans.fit_context import Run
from sklearn_dp._aggregate.kmeans.quality import (
    FarRows,
    Quality,
    measure_quality,
    missed_in_words,
    quality_entry,
)
from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.plan import PrivacyPlan
from sklearn_dp._parameters import domain_of
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._units import Units
from sklearn_dp._queries.clusters import CappedSquares
from sklearn_dp._queries.grids import GridRows
from sklearn_dp._rows.table import ROWS, Part, PartSource

CENTERS = np.array([[-0.5, 0.0], [0.5, 0.0]])
X = CENTERS[np.arange(2000) % 2] + 0.05 * np.random.default_rng(0).normal(size=(2000, 2))


FAR = (np.inf, np.inf)


def measured(
    X,
    *,
    rho=1e9,
    groups=None,
    caps=(1.0, 1.0),
    most=4.0,
    seed=0,
    middle=(0.0, 0.0),
    limits=FAR,
    bounds=None,
):
    """The quality of the two centers, about the origin, with caps and limits in lengths."""
    budget = PrivacyBudget(rho=rho, delta=1e-6)
    plan = PrivacyPlan(budget, (quality_entry(budget.to_rho()),))
    session = PrivacySession(plan, random_state=seed)
    bounds = domain_of(bounds, 2)
    rows = GridRows.quantize(table_rows(X, groups), bounds or domain_of(10.0, 2))
    steps = 1 / rows.unit
    return measure_quality(
        Run(session=session, rows=rows, n_clusters=2),
        np.vstack([np.rint(CENTERS * steps), np.array(middle) * steps]),
        np.array([*caps, most]) * steps,
        np.array(limits) * steps,
        bounds,
    )


def test_far_rows_are_counted_and_are_in_no_sum():
    """30 rows at a distance of 3 from the first center, 20 at 3 from the second: limits 2 and 4."""
    far = np.vstack([np.tile([-0.5, 3.0], (30, 1)), np.tile([0.5, -3.0], (20, 1))])
    alone, found = measured(X), measured(np.vstack([X, far]), caps=(1.0, 2.0), limits=(2.0, 4.0))
    assert found.far.count == pytest.approx(30, abs=0.1) and found.far.distance == 2.0
    assert found.near == pytest.approx(alone.near + 20 * 4.0, rel=1e-4)
    assert found.total == pytest.approx(alone.total + 20 * 9.25, rel=1e-4)
    assert found.explained == pytest.approx(1 - found.near / found.total)
    # In the inertia each of them counts as a typical cap.
    assert found.inertia == pytest.approx(found.near + 30 * 1.5**2, rel=1e-3)
    everywhere = measured(X)
    assert everywhere.far.count == 0 and everywhere.far.cost == 0
    assert everywhere.inertia == everywhere.near and everywhere.inertia_sd == everywhere.near_sd


def test_fits_tell_how_good_they_are():
    for k, low, high in ((2, 0.95, 1.0), (1, 0.0, 0.05)):
        fitted = DPKMeans(k, bounds=1.0, epsilon=4.0, random_state=0).fit(X)
        cost = -fitted.score(X)
        # Rows beyond the cap, one in a hundred or so, count as the cap.
        assert (
            0.9 * cost - 4 * fitted.inertia_std_error_
            < fitted.inertia_
            < (cost + 4 * fitted.inertia_std_error_)
        )
        assert low <= fitted.explained_ + 4 * fitted.explained_std_error_
        assert fitted.explained_ - 4 * fitted.explained_std_error_ <= high
    assert fitted.explained_ == fitted.explained_std_error_ == 0  # by definition, of one center


class LongRows:
    """A few chunks of a table of very many rows."""

    n_rows = 2**40

    def squared_chunks(self, width, *, near):
        for start in (0, 2):
            yield slice(start, start + 2), np.ones((2, 1)), np.ones(2)


def test_sums_of_very_many_rows_never_wrap():
    """2**40 rows of 2**26 steps each do not fit into int64."""
    part = Part(PartSource(), Units(4), {ROWS: LongRows()})
    ones = np.ones(1)
    query = CappedSquares(np.zeros((2, 1)), ones, np.ones(2), np.full(1, np.inf))
    _, (sums,) = query.on(part)
    assert sums.dtype == object and sums[:2] == pytest.approx(4 * 2.0**26)


@pytest.mark.parametrize(
    ("count", "near", "light", "told"),
    [
        (100.0, (1.0, 0.1), True, True),
        (100.0, (1.0, 0.1), False, False),  # 2.5 standard deviations
        (130.0, (1.0, 0.1), False, True),
        (75.0, (1.0, 0.1), True, False),
        (-500.0, (0.0, 0.1), True, False),
        (100.0, (40.0, 1.0), True, False),  # they cost 9
        (100.0, (40.0, 10.0), True, True),  # as far as is known, not
        (3000.0, (1.0, 0.1), True, False),  # no small clusters
    ],
)
def test_what_is_said(count, near, light, told):
    words = missed_in_words(
        Quality(*near, 0.0, 0.0, FarRows(count, 40.0, 0.3)), 10_000.0, light, "group"
    )
    assert (words is not None) == told
    assert words is None or words.startswith(f"clusters may be missing: about {count:.0f} groups")


def test_a_missed_cluster_is_told_and_a_long_tail_is_not():
    """Two heavy clusters and one of 150 rows that two centers cannot have; and tails of both."""
    rng = np.random.default_rng(0)
    places = np.array([[-0.5, 0.0], [0.5, 0.0], [0.0, 0.5], [0.0, 0.8]])
    heavy = places[np.arange(8000) % 3] + 0.01 * rng.normal(size=(8000, 2))
    light = places[3] + 0.01 * rng.normal(size=(150, 2))
    tails = places[np.arange(8000) % 3] + 0.01 * rng.standard_t(3, size=(8000, 2))
    for X, words in ((np.vstack([heavy, light]), "clusters may be missing"), (tails, "")):
        found = [
            DPKMeans(3, epsilon=2.0, bounds=1.0, random_state=seed).fit(X) for seed in range(3)
        ]
        assert all(model.trustworthy_ is not bool(words) for model in found)
        assert all(str(model.messages_).startswith(words) for model in found)
