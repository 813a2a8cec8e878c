"""The coreset: leaves, their means, and public guesses."""

import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from grid_tools import rows_in_memory

from sklearn_dp import DPKMeans
from sklearn_dp._aggregate.kmeans import coreset as _coreset
from sklearn_dp._aggregate.kmeans.cell_tree import Leaves
from sklearn_dp._aggregate.kmeans.coreset import Coreset, best_solution, build_coreset, starts_entry
from sklearn_dp._aggregate.kmeans.fit_context import Context
from sklearn_dp._aggregate.kmeans.tuning import TUNING
from sklearn_dp._aggregate.shared import rows as shared_rows
from sklearn_dp._aggregate.shared.axes import BASIS_BITS, plain_axes
from sklearn_dp._aggregate.shared.centering import Size
from sklearn_dp._aggregate.shared.row_sums import ERROR_STEPS
from sklearn_dp._aggregate.shared.rows import ROWS, GridTable, Rows
from sklearn_dp._aggregate.shared.table import Part, PartSource, Table
from sklearn_dp._privacy._budget import PrivacyBudget
from sklearn_dp._privacy._domain import Domain
from sklearn_dp._privacy._plan import PlanEntry, PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp._privacy._units import Units
from sklearn_dp.audit._player import Replay

LIMIT = 2.0**24
CENTERS = np.array([[0.5, 0.5], [-0.5, 0.1], [0.1, -0.6]]) * LIMIT


def clusters(n):
    """Rows of three tight clusters."""
    noise = np.random.default_rng(0).normal(size=(n, 2)) * 0.003 * LIMIT
    return np.trunc(CENTERS[np.arange(n) % 3] + noise)


def coreset_of(rows, size, rho):
    """The coreset of integer rows in the plane, with `rho` for cells and for means."""
    entries = (PlanEntry("cells", "gaussian", rho, uses=None), PlanEntry("means", "gaussian", rho))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan = PrivacyPlan(PrivacyBudget(rho=2.1 * rho, delta=1e-6), entries)
        money = PrivacySession(plan, random_state=0)
    context = Context(
        session=money,
        rows=GridTable.of(Rows.of(rows, LIMIT), Units(len(rows))),
        n_clusters=3,
        size=size,
        radius=LIMIT,
    )
    return build_coreset(context, "cells", "means", plain_axes(2, LIMIT), rho)


def test_without_noise_leaves_are_the_means_of_their_rows():
    rows = clusters(6000)
    points, weights = coreset_of(rows, Size(6000.0, 1.0), 1e9).leaves
    assert weights.sum() == 6000
    assert np.allclose(weights @ points / 6000, rows.mean(axis=0), atol=1e-3 * LIMIT)


def test_points_stand_where_the_rows_are_and_guesses_hardly_count():
    coreset = coreset_of(clusters(6000), Size(6000.0, 0.5), 0.05)
    points, weights = coreset.leaves
    distance = np.linalg.norm(points[:, None] - CENTERS, axis=2).min(axis=1)
    assert weights @ (distance < 0.05 * LIMIT) > 0.95 * 6000
    guesses = coreset.weights[coreset.n_leaves :]
    assert len(guesses) >= 200 and guesses.sum() < coreset.noise


@pytest.mark.parametrize("n", [0, 3])
def test_without_leaves_there_are_guesses(n):
    coreset = coreset_of(clusters(n), Size(10.0, 0.5), 1e-4)
    assert coreset.n_leaves <= 3 and len(coreset.points) >= 200


@pytest.mark.parametrize("coarse", [False, True])
def test_guesses_weigh_more_where_coarser_choices_pay(coarse):
    """All guesses together, in deviations of a count; a quarter of 80 rows is in no leaf."""
    leaves = Leaves(np.zeros((1, 2)), np.zeros((1, 2)), np.array([60.0]))
    context = SimpleNamespace(coarse=coarse, tuning=TUNING, size=Size(80.0, 0.5))
    measured, nominal = (_coreset._guess_weight(leaves, context, known) for known in (True, False))
    assert measured == (TUNING.small_guess_weight if coarse else TUNING.guess_weight)
    assert nominal == (measured if coarse else 0.25 * measured)


pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)

ROUND = replace(TUNING, starts_share=1.0, starts_worse=0.2)


def hexagon(shift):
    """Six places on a circle: three centers hold two neighbors each, in one of two ways.

    Places 0 and 1 are next to each other where the shift is positive, in degrees; or 1 and 2.
    """
    angles = np.radians(60 * np.arange(6) + shift * (-1.0) ** np.arange(6))
    return np.column_stack([np.cos(angles), np.sin(angles)])


def rows_at(places, n=6000):
    """As many rows at each place."""
    return places[np.arange(n) % 6] + 0.01 * np.random.default_rng(0).normal(size=(n, 2))


def problem(X, leaves, *, rho=1e9, groups=None, seed=0, tuning=ROUND):
    """What a start needs: rows in the ball of radius 10, and leaves of 1,000 rows each."""
    budget = PrivacyBudget(rho=rho, delta=1e-6)
    plan = PrivacyPlan(budget, (starts_entry(budget.to_rho(), "", tuning),))
    session = PrivacySession(plan, random_state=seed)
    table = Table.in_memory(X, Units(len(X), groups))
    rows = GridTable.quantize(table, Domain.from_bounds(10.0, 2))
    context = Context(
        session=session,
        rows=rows,
        n_clusters=3,
        tuning=tuning,
        size=Size(float(len(X)), 1e3),
        radius=10 / rows.unit,
    )
    points = np.array(leaves) / rows.unit
    weights, axes = np.full(len(points), 1000.0), plain_axes(2, 10 / rows.unit)
    return context, Coreset(points, weights, len(points), np.zeros_like(points), 1.0, axes)


LEAVES, X = hexagon(0.5), rows_at(hexagon(-1.0))  # the leaves are wrong


@pytest.fixture
def both(monkeypatch):
    """Both solutions of the hexagon are found: six points are so few that one always is."""

    def solutions(points, weights, n_clusters, rng, most, apart):
        pairs = [np.roll(points, -i, axis=0).reshape(3, 2, 2) for i in (0, 1)]
        costs = np.array([1000 * np.square(np.diff(each, axis=1)).sum() / 2 for each in pairs])
        assert costs[0] < costs[1] < 1.2 * costs[0]
        return np.stack([each.mean(axis=1) for each in pairs])[:most], costs[:most]

    monkeypatch.setattr(_coreset, "several_solutions", solutions)


def overruled(context, coreset):
    """Whether the start holds places together as the rows say."""
    centers = best_solution(context, coreset, 3) * context.rows.unit
    return bool(np.square(centers - LEAVES[:2].mean(axis=0)).sum(axis=1).min() > 0.01)


@pytest.mark.usefixtures("both")
def test_the_rows_overrule_the_coreset():
    assert overruled(*problem(X, LEAVES))
    assert not overruled(*problem(X, LEAVES, tuning=replace(ROUND, starts_worse=0.0)))


@pytest.mark.usefixtures("both")
def test_what_is_all_noise_does_not_overrule_it():
    """The noise is 200 times what the two solutions differ by: in 40 draws the coreset rules."""
    tuning = replace(ROUND, starts_noise=1e9, starts_rows=0.0)
    chosen = [overruled(*problem(X, LEAVES, rho=1e-12, seed=s, tuning=tuning)) for s in range(40)]
    assert np.mean(chosen) <= 0.5


@pytest.mark.usefixtures("both")
def test_a_release_is_made_only_where_it_can_tell():
    for changes in (
        {"starts_rows": 1e12},  # too few rows
        {"starts_noise": 0.0},  # too much noise
        {"starts": 1},  # one solution
        {"starts_worse": 1e-9},  # no other one is nearly as good
    ):
        context, coreset = problem(X, LEAVES, rho=1.0, tuning=replace(ROUND, **changes))
        assert not overruled(context, coreset)
        assert context.session.spent == 0
    context, coreset = problem(X, LEAVES, rho=1.0)
    assert overruled(context, coreset)
    assert context.session.spent == pytest.approx(1.0)
    context, coreset = problem(X, LEAVES, rho=1.0)
    best_solution(context, replace(coreset, n_leaves=0), 3)  # guesses alone
    assert context.session.spent == 0


@pytest.mark.usefixtures("both")
def test_the_choice_is_made_of_what_is_released(monkeypatch):
    """Released values that say the opposite of the rows are followed; so is the released number."""
    for released, chosen in (([-1e3, 1e3], False), ([1e3, -1e3], True)):
        monkeypatch.setattr(PrivacySession, "gaussian", lambda *_, r=released, **__: np.array(r))
        assert overruled(*problem(X, LEAVES)) == chosen
    context, coreset = problem(X, LEAVES)
    assert not overruled(replace(context, size=Size(1e-3, 1e6)), coreset)


@pytest.mark.usefixtures("both")
@pytest.mark.parametrize("length", [np.nan, np.inf, 0.0])
def test_a_clip_that_is_no_length_releases_nothing(length, monkeypatch):
    monkeypatch.setattr(_coreset, "_length", lambda values: np.array([length]))
    context, coreset = problem(X, LEAVES)
    assert not overruled(context, coreset)
    assert context.session.spent == 0


SPREAD = np.random.default_rng(1).normal(size=(2000, 2)) + [0.3, 0.1]


def sums_of(X, groups=None, clip=100.0):
    """The exact sums for two pairs of centers, in squared lengths; and the pairs."""
    context, coreset = problem(X, LEAVES, groups=groups)
    pairs = np.array([[[-1.0, 0.0], [1.0, 0.0]], [[0.0, -0.5], [0.0, 0.5]]])
    unit = context.rows.unit
    noisy = _coreset._released(context, coreset.axes, pairs / unit, clip / unit**2)
    return noisy * unit**2, pairs


def test_sums_are_those_of_the_rows():
    found, pairs = sums_of(SPREAD)
    squared = np.square(SPREAD[:, None, None] - pairs).sum(axis=3).min(axis=2)
    exact = (squared - squared.mean(axis=1, keepdims=True)).sum(axis=0)
    assert found == pytest.approx(exact, rel=1e-4)
    clipped, _ = sums_of(SPREAD, clip=0.1)
    difference = squared - squared.mean(axis=1, keepdims=True)
    length = np.linalg.norm(difference, axis=1, keepdims=True)
    exact = (difference * np.minimum(1, 0.1 / length)).sum(axis=0)
    assert clipped == pytest.approx(exact, rel=1e-4)


def test_along_measured_axes_it_is_the_same():
    """One axis in the plane: what lies off it is the same for all centers on it."""
    context, coreset = problem(SPREAD, LEAVES)
    line, unit = np.array([[0.6], [0.8]]), context.rows.unit
    axes = replace(coreset.axes, basis=np.rint(line * 2**BASIS_BITS).astype(np.int64))
    pairs = np.array([[[-1.0], [1.0]], [[-0.2], [0.5]]])
    noisy = _coreset._released(context, axes, pairs / unit, 100.0 / unit**2) * unit**2
    squared = np.square(SPREAD[:, None, None] - pairs @ line.T).sum(axis=3).min(axis=2)
    exact = (squared - squared.mean(axis=1, keepdims=True)).sum(axis=0)
    assert noisy == pytest.approx(exact, rel=1e-4)


def of_part(rows, units, centers, clip=1.0):
    """What a part adds, along the axes of the space."""
    part = Part(PartSource(), units, {ROWS: rows})
    return _coreset._differences(part, plain_axes(2, 1.0), centers, clip)[1][0]


def test_no_row_adds_more_than_the_claim():
    """Exactly, in integers: each of them is rounded toward zero."""
    X = np.rint(1e4 * SPREAD[:300])
    centers = np.rint(1e4 * np.random.default_rng(2).normal(size=(5, 3, 2)))
    squares = []
    for row in X:
        steps = of_part(Rows.of(row[None], 2.0**24), Units(1), centers)
        squares.append(sum(int(each) ** 2 for each in steps))
    assert (1 - 1e-6) * ERROR_STEPS**2 < max(squares) <= ERROR_STEPS**2


def test_what_a_row_adds_has_the_same_bits_beside_any_others():
    values = 2.0**50 * np.random.default_rng(3).normal(size=(5, 301))
    centered, lengths = _coreset._centered(values), _coreset._length(values)
    for i in range(301):
        alone = np.ascontiguousarray(values[:, i : i + 1])
        assert np.array_equal(_coreset._centered(alone)[:, 0], centered[:, i])
        assert _coreset._length(alone)[0] == lengths[i]


def test_distances_are_exact_wherever_noise_took_the_centers(monkeypatch):
    """Centers are integers, and no farther out than rows may be."""
    context, coreset = problem(X, LEAVES)
    differences, given = _coreset._differences, []

    def spy(part, axes, centers, clip):
        given.append(centers)
        return differences(part, axes, centers, clip)

    monkeypatch.setattr(_coreset, "_differences", spy)
    pairs = np.array([[[-1.0, 0.0], [1e3, 1e6]], [[0.0, -0.5], [0.0, 0.5]]])
    _coreset._released(context, coreset.axes, pairs / context.rows.unit + 0.3, 1.0)
    assert np.array_equal(given[0], np.rint(given[0]))
    assert np.linalg.norm(given[0], axis=2).max() <= context.rows.limit + 2


class LongRows:
    """A few rows of a table of very many."""

    n_rows = 2**40
    squares = np.ones(2)

    def chunks(self, width):
        yield slice(0, 2), np.ones((2, 2))


def test_sums_of_very_many_rows_never_wrap():
    centers = np.stack([np.zeros((1, 2)), np.ones((1, 2))])
    assert of_part(LongRows(), Units(2), centers).dtype == object


def test_a_group_counts_once():
    found, _ = sums_of(SPREAD, groups=np.arange(2000) // 2)
    assert found == pytest.approx(sums_of(SPREAD)[0] / 2, rel=1e-3)


def test_groups_of_several_sizes_count_once_in_every_chunk(monkeypatch):
    """200 rows alone, then groups of ten, in chunks of 16 rows."""
    monkeypatch.setattr(shared_rows, "_CHUNK_ENTRIES", 64)
    groups = np.append(np.arange(200), 200 + np.arange(1800) // 10)
    found, pairs = sums_of(SPREAD, groups=groups)
    squared = np.square(SPREAD[:, None, None] - pairs).sum(axis=3).min(axis=2)
    exact = (squared - squared.mean(axis=1, keepdims=True)) / np.bincount(groups)[groups][:, None]
    assert found == pytest.approx(exact.sum(axis=0), rel=1e-3)


def player_of(clip):
    """Play the release with one row more, far away."""
    X = rows_at(LEAVES, 400)
    recorder = Trace()
    with trace(recorder):
        sums_of(X, clip=clip)
    player = Replay(recorder.events, np.append(np.arange(400), -1))
    with trace(player):
        sums_of(np.vstack([X, [[9.0, 0.0]]]), clip=clip)
    player.finish()
    return player


@pytest.mark.parametrize("clip", [0.1, 1.0])
def test_a_far_row_comes_up_to_the_claim_and_no_more(clip):
    player = player_of(clip)
    assert player.violations == []
    assert player.ratios["starts"] == pytest.approx(1.0, abs=1e-6)


def test_a_claim_that_is_too_small_is_caught(monkeypatch):
    """By a quarter; and where each difference is clipped, and not the length of all of them."""
    release = PrivacySession.gaussian

    def weak(self, name, value, *, sensitivity, **rest):
        return release(self, name, value, sensitivity=sensitivity / 1.25, **rest)

    with monkeypatch.context() as patch:
        patch.setattr(PrivacySession, "gaussian", weak)
        assert player_of(1.0).violations
    with monkeypatch.context() as patch:
        patch.setattr(_coreset, "_length", lambda values: np.abs(values).max(axis=0))
        assert player_of(1.0).violations


def uneven(n, seed):
    """Clusters in the plane with long tails, whose best division into 6 is not plain."""
    rng = np.random.default_rng(seed)
    centers = rng.uniform(-0.5, 0.5, size=(9, 2))
    X = centers[rng.integers(9, size=n)] + 0.03 * rng.standard_t(2.5, size=(n, 2))
    return X / np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))


def replayed(*new):
    """Play a fit with one row more: a player for each such row."""
    X, model = uneven(6000, 2), DPKMeans(6, bounds=1.0, epsilon=8.0, random_state=2)
    recorder = Trace()
    with trace(recorder):
        model.fit(X)
    assert any(x["release"] == "starts" for x in model.privacy_report_.releases)
    for row in new:
        player = Replay(recorder.events, np.append(np.arange(len(X)), -1))
        with trace(player):
            model.fit(np.vstack([X, [row]]))
        player.finish()
        yield player


def test_whole_fits_release_it_and_stay_within_the_claim():
    players = list(replayed((0.7, -0.7), (-0.3, 0.1), (0.1, 0.0)))
    assert [player.violations for player in players] == [[], [], []]
    assert 0.1 < max(player.ratios["starts"] for player in players) <= 1


def test_a_choice_by_the_true_number_of_rows_is_caught(monkeypatch):
    solution = _coreset.best_solution

    def mutant(context, coreset, n_centers):
        odd = rows_in_memory(context.rows).n_rows % 2
        tuning = replace(context.tuning, starts=1 if odd else 6)
        return solution(replace(context, tuning=tuning), coreset, n_centers)

    monkeypatch.setattr(_coreset, "best_solution", mutant)
    assert all(player.violations for player in replayed((0.1, 0.0)))
