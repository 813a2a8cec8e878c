"""How good released centers are: exact sums, caps, claims and the law of the noise."""

import dataclasses
from dataclasses import replace

import numpy as np
import pytest
from grid_tools import table_rows

from sklearn_dp import DPKMeans
from sklearn_dp._aggregate.kmeans.fit_context import TUNING, Run
from sklearn_dp._aggregate.kmeans.lloyd_state import LloydResult
from sklearn_dp._aggregate.kmeans.quality import (
    FarRows,
    Quality,
    far_limits,
    measure_quality,
    missed_in_words,
    quality_entry,
    told_of_inertia,
)
from sklearn_dp._privacy._budget import PrivacyBudget
from sklearn_dp._privacy._domain import Domain
from sklearn_dp._privacy._plan import PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._units import Units
from sklearn_dp._queries.clusters import CappedSquares
from sklearn_dp._queries.handles import GridRows
from sklearn_dp._rows import rows as shared_rows
from sklearn_dp._rows.rows import ROWS
from sklearn_dp._rows.table import Part, PartSource

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)

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
    bounds = Domain.from_bounds(bounds, 2)
    rows = GridRows.quantize(table_rows(X, groups), bounds or Domain.from_bounds(10.0, 2))
    steps = 1 / rows.unit
    return measure_quality(
        Run(session=session, rows=rows, n_clusters=2),
        np.vstack([np.rint(CENTERS * steps), np.array(middle) * steps]),
        np.array([*caps, most]) * steps,
        np.array(limits) * steps,
        bounds,
    )


def squares(X, centers):
    return np.square(X[:, None] - centers).sum(axis=2).min(axis=1)


def test_both_sums_are_those_of_the_rows():
    found = measured(X)
    assert found.inertia == pytest.approx(squares(X, CENTERS).sum(), rel=1e-4)
    assert found.total == pytest.approx(np.square(X).sum(), rel=1e-4)
    assert found.explained == pytest.approx(1 - found.inertia / found.total)


def test_each_cluster_has_a_cap_of_its_own():
    found = measured(X, caps=(0.05, 0.1), most=0.5)
    cap = np.where(np.arange(2000) % 2 == 0, 0.05, 0.1) ** 2
    assert found.inertia == pytest.approx(np.minimum(squares(X, CENTERS), cap).sum(), rel=1e-4)
    assert found.total == pytest.approx(np.minimum(np.square(X).sum(axis=1), 0.25).sum(), rel=1e-4)


def test_a_group_counts_once():
    groups = np.repeat(np.arange(1000), 2)
    assert measured(X, groups=groups).total == pytest.approx(np.square(X).sum() / 2, rel=1e-3)


def test_groups_of_several_sizes_count_once_in_every_chunk(monkeypatch):
    """200 rows alone, then 180 groups of ten, every other one far; in chunks of 20 rows."""
    monkeypatch.setattr(shared_rows, "_CHUNK_ENTRIES", 64)
    groups = np.append(np.arange(200), 200 + np.arange(1800) // 10)
    weights, far = 1.0 / np.bincount(groups)[groups], groups % 2 * (groups >= 200)
    found = measured(X + far[:, None] * [0.0, 4.0], groups=groups, limits=(2.0, 2.0))
    assert found.far.count == pytest.approx(90, rel=1e-3)
    exact = (weights * np.square(X).sum(axis=1))[far == 0].sum()
    assert found.total == pytest.approx(exact, rel=1e-3)
    exact = (weights * squares(X, CENTERS))[far == 0].sum()
    assert found.near == pytest.approx(exact, rel=1e-3)


@pytest.mark.parametrize("bounds", [5.0, (-3.0, 5.0), ([-9.0, -9.0], [9.0, 5.0])])
def test_rows_beyond_the_bounds_are_counted(bounds):
    """Some 40 of 2,040 rows, in 20 groups beside 100 others; rows at a bound are not beyond it."""
    rows = np.vstack([X, np.tile([0.0, 6.0], (40, 1)), np.tile([0.0, 5.0 * (1 + 1e-7)], (9, 1))])
    assert measured(rows, bounds=bounds).outside == pytest.approx(40, abs=0.1)
    groups = np.append(
        np.arange(2000) // 20, np.append(100 + np.arange(40) // 2, 120 + np.arange(9))
    )
    assert measured(rows, bounds=bounds, groups=groups).outside == pytest.approx(20, abs=0.1)
    assert measured(rows).outside == 0.0


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


def test_a_middle_that_noise_took_far_away_is_moved_to_the_border():
    """Beyond it products leave 2**53, and rows could change what others count as."""
    there = measured(X, middle=(0.0, 10.0), most=20.0)
    for far in (11.0, 1e3, 1e9, 1e30):
        assert measured(X, middle=(0.0, far), most=20.0) == there


def test_errors_are_those_of_the_noise():
    """800 draws: false alarm below 1e-6; a factor of 1.2 in an error would show."""
    exact = measured(X)
    draws = [measured(X, rho=0.5, seed=seed, limits=(5.0, 5.0)) for seed in range(800)]
    counts = np.array([one.far.count / one.far.sd for one in draws])
    assert abs(counts.mean()) < 5 / np.sqrt(800) and abs(counts.std() - 1) < 5 / np.sqrt(1600)
    for name in ("near", "total", "inertia"):
        error = np.array([getattr(one, name) - getattr(exact, name) for one in draws])
        ratio = error / [getattr(one, f"{name}_sd") for one in draws]
        assert abs(ratio.mean()) < 5 / np.sqrt(800) and abs(ratio.std() - 1) < 5 / np.sqrt(1600)
    share = np.array([one.explained for one in draws])
    assert share.std() == pytest.approx(np.mean([one.explained_sd for one in draws]), rel=0.15)


def test_a_share_of_next_to_nothing_stays_a_share():
    for found in (Quality(5.0, 1.0, 0.0, 1.0), Quality(0.0, 1.0, 0.0, 1e-3)):
        assert 0 <= found.explained <= 1 and 0 <= found.explained_sd <= 1


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


FINAL = LloydResult(
    centers=np.zeros((4, 2)),
    variance=np.ones(4),
    counts=np.array([4000.0, 3000.0, 2900.0, 100.0]),
    counts_sd=np.full(4, 20.0),
    counted=np.zeros((4, 2)),
    reach=np.array([30.0, 30.0, 30.0, 90.0]),
    spread=np.array([99.0, 150.0, 120.0, 9e4]),
    spread_variance=np.array([1.0, np.inf, np.inf, np.inf]),
    n_iterations=3,
    error=0.0,
)


def test_rows_that_the_count_can_see_cost_a_part_of_all():
    """A quarter of the rows are in a cluster of mean square 100 at most, with its error."""
    limits = far_limits(FINAL, 10_000.0, 2.5, 1e4, TUNING)
    seen = TUNING.certain_count_sd * 2.5 * limits[0] ** 2
    assert seen == pytest.approx(TUNING.far_part * 10_000 * 100.0)
    assert np.allclose(limits, limits[0])


def test_rows_at_the_edge_of_a_cluster_are_not_far():
    """Where the noise is large: six times its width, which is three times that of the others."""
    found = far_limits(FINAL, 10_000.0, 1e4, 1e4, TUNING)
    assert np.allclose(found, [60.0, 60.0, 60.0, 180.0])


def test_nobody_is_farther_than_the_radius_of_the_data():
    found = far_limits(FINAL, 10_000.0, 1e4, 100.0, TUNING)
    assert found.tolist() == [60.0, 60.0, 60.0, np.inf]


@pytest.mark.parametrize(
    "change",
    [{"spread": np.zeros(4), "spread_variance": np.full(4, np.inf)}, {"counts": np.full(4, 30.0)}],
    ids=["no spread", "no sure cluster"],
)
def test_nothing_is_far_where_nothing_is_known(change):
    final = dataclasses.replace(FINAL, **change)
    assert np.isinf(far_limits(final, 10_000.0, 5.0, 1e4, TUNING)).all()


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
    words = missed_in_words(FarRows(count, 40.0, 0.3), near, 10_000.0, light, TUNING)
    assert (words is not None) == told
    assert words is None or words.startswith(f"clusters may be missing: about {count:.0f} units")


def test_nobody_looked():
    assert missed_in_words(FarRows(), (1.0, 0.1), 100.0, True, TUNING) is None


def test_rows_in_reach_of_no_center_are_in_the_words():
    words = missed_in_words(FarRows(), (1.0, 0.1), 100.0, False, TUNING, lost=3.14159)
    assert words is not None and words.startswith(
        "clusters may be missing: rows are seen about 3.1 or more from the center of all, more than"
    )


def test_a_missed_cluster_is_told_and_a_long_tail_is_not():
    """Two heavy clusters and one of 150 rows that two centers cannot have; and tails of both."""
    rng = np.random.default_rng(0)
    places = np.array([[-0.5, 0.0], [0.5, 0.0], [0.0, 0.5], [0.0, 0.8]])
    heavy = places[np.arange(8000) % 3] + 0.01 * rng.normal(size=(8000, 2))
    light = places[3] + 0.01 * rng.normal(size=(150, 2))
    tails = places[np.arange(8000) % 3] + 0.01 * rng.standard_t(3, size=(8000, 2))
    for X, words in ((np.vstack([heavy, light]), "clusters may be missing"), (tails, "ok")):
        found = [
            DPKMeans(3, epsilon=2.0, bounds=1.0, random_state=seed).fit(X).status_
            for seed in range(3)
        ]
        assert all(status.startswith(words) for status in found), found


def test_much_beyond_the_cap_is_told():
    found = Quality(10.0, 1.0, 20.0, 1.0)
    assert found.inertia_sd == 1 and replace(found, taken=8.0).inertia_sd == np.hypot(1, 8)
    assert replace(found, taken=8.0).explained_sd > found.explained_sd
    words = "rows beyond the cap on distances may increase inertia_ by up to 80%"
    for status, told in (
        ("ok", f"ok, but {words}"), ("ok, but x", f"ok, but x; {words}"), ("noise", "noise"),
    ):  # fmt: skip
        assert told_of_inertia(status, replace(found, taken=8.0)) == told
        assert told_of_inertia(status, replace(found, taken=4.0)) == status
    many = "ok, but rows beyond the cap on distances may increase inertia_ many times over"
    assert told_of_inertia("ok", replace(found, taken=200.0)) == many


def test_what_caps_take_is_seen_beside_the_noise():
    """An inertia below its noise is no measure: 10^11% of it were told of in small data."""
    hidden = Quality(-3.0, 40.0, 200.0, 50.0, taken=30.0)
    assert hidden.inertia == 0
    assert "may increase inertia_ by up to 75%" in told_of_inertia("ok", hidden)
    none = "ok, but the standard error of inertia_ is many times its value"
    assert told_of_inertia("ok", replace(hidden, taken=15.0)) == none
    assert told_of_inertia("ok", replace(hidden, near_sd=1.0, taken=0.4)) == "ok"  # of 200
    noisy = told_of_inertia("ok, but x", Quality(10.0, 6.0, 20.0, 1.0))
    assert noisy == "ok, but x; the standard error of inertia_ is about 60% of its value"


def test_what_is_next_to_nothing_of_the_total_is_not_told():
    """Rows that are all at one of two points: much of an inertia of zero is little all the same."""
    assert told_of_inertia("ok", Quality(0.0, 1e-6, 400.0, 1.0, taken=3.0)) == "ok"
    assert told_of_inertia("ok", Quality(0.0, 1e-6, 400.0, 1.0, taken=5.0)) != "ok"
    assert told_of_inertia("ok", Quality(0.0, 1e-6, 0.0, 1e-3, taken=9e-6)) == "ok"
