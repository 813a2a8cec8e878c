"""The pieces of the 1-cluster search: scores, grids, selectors, boxes, balls."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.spatial.distance import cdist

from sklearn_dp._aggregate.one_cluster import (
    balls as _balls,
)
from sklearn_dp._aggregate.one_cluster import (
    center as _good_center,
)
from sklearn_dp._aggregate.one_cluster import (
    published_center as _published,
)
from sklearn_dp._aggregate.one_cluster import (
    radius as _good_radius,
)
from sklearn_dp._aggregate.one_cluster.pair_counts import (
    LinearRadii,
    LogRadii,
    counts_within,
    neighbour_counts,
    radius_scores,
)
from sklearn_dp._aggregate.one_cluster.rec_concave import rec_concave, rec_concave_steps
from sklearn_dp._aggregate.shared.rows import Rows
from sklearn_dp._privacy._budget import PrivacyBudget
from sklearn_dp._privacy._noise import NoiseSource
from sklearn_dp._privacy._plan import PlanEntry, PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")


def open_session(*entries, seed=0):
    rho = sum(entry.rho for entry in entries) * 1.01
    return PrivacySession(
        PrivacyPlan(PrivacyBudget(rho=rho, delta=0.01), entries), random_state=seed
    )


@dataclass
class Squares:
    """Any squared radii."""

    squares: np.ndarray

    def bins(self, squared):
        return np.searchsorted(self.squares, squared)


@dataclass
class Ladder:
    """Which radius comes before each one."""

    before: np.ndarray


def score(points, radii, t):
    """L at some radii, of points on a line or in space."""
    points = np.asarray(points, dtype=float)
    points = points[:, None] if points.ndim == 1 else points
    radii = Squares(np.floor(np.square(np.asarray(radii, dtype=float))))
    return radius_scores(neighbour_counts(points, radii), t) / t


def plain_score(points, square, t):
    """L by its definition."""
    if not len(points):
        return 0
    counts = (cdist(points, points, "sqeuclidean") <= square).sum(axis=1)
    return np.sort(np.minimum(counts, t))[::-1][:t].sum()


# -- the score of a radius --------------------------------------------------------------------


def test_scores_by_hand():
    points = [0, 0, 0, 10]
    assert score(points, [0, 10], 3).tolist() == [3, 3]
    assert score(points, [0, 9.9, 10], 4).tolist() == [2.5, 2.5, 4]
    assert score([5, 5], [0, 1], 4).tolist() == [1, 1]  # padded: (2 + 2) / 4
    assert score(np.empty((0, 1)), [0, 1], 3).tolist() == [0, 0]
    # L of a negative radius, that is before the first one, is 0: t^2 - 0 and 9 - t^2 + slack.
    values = _good_radius.quality(np.array([9, 9]), 3, 4, Ladder(np.array([-1, 0])))
    assert values.tolist() == [4, 0]


def integer_points(draw_from, n, d, high=2**23):
    return draw_from.integers(-high, high, (n, d)).astype(float) / math.isqrt(d)


@settings(max_examples=40)
@given(
    st.integers(0, 40),
    st.integers(1, 6),
    st.integers(1, 12),
    st.integers(0, 2**32),
    st.sampled_from([3, 60, 2**20]),
)
def test_scores_agree_with_their_definition_for_every_tiling(n, d, t, seed, high):
    rng = np.random.default_rng(seed)
    points = np.trunc(integer_points(rng, n, d, high))
    for radii in (LogRadii(1.0, 2.0 * high * 2), LinearRadii(high / 30 + 1, 4.0 * high)):
        counts = neighbour_counts(points, radii)
        scores = radius_scores(counts, t)
        for tile in ((1, 3), (3, 7), (7, 64), (64, 500)):
            assert np.array_equal(neighbour_counts(points, radii, tile=tile), counts)
        assert scores.tolist() == [plain_score(points, s, t) for s in radii.squares]
        assert (np.diff(scores) >= 0).all() and scores[0] >= 0 and scores[-1] <= t * t
        if n >= t:
            assert scores[-1] == t * t  # the last radius reaches across the domain
        order = rng.permutation(n)
        assert np.array_equal(radius_scores(neighbour_counts(points[order], radii), t), scores)


@pytest.mark.parametrize("d", [1, 3, 5, 24])
def test_squared_distances_are_exact(d):
    rng = np.random.default_rng(d)
    points = np.trunc(integer_points(rng, 70, d, 2**24))
    exact = points.astype(np.int64)
    exact = np.square(exact[:, None] - exact[None]).sum(axis=2)
    radii = Squares(np.unique(exact)[::7].astype(float))
    found = neighbour_counts(points, radii, tile=(9, 16))
    assert np.array_equal(found, (exact[:, :, None] <= radii.squares).sum(axis=1))


def neighbours(rng, points):
    """A random data set that differs by one row: added, removed or replaced."""
    kind = rng.integers(3)
    i = rng.integers(len(points))
    new = rng.integers(0, 8, (1, points.shape[1])).astype(float)
    if kind == 0:
        return np.vstack([points, new])
    kept = np.delete(points, i, axis=0)
    return kept if kind == 1 else np.vstack([kept, new])


def test_sensitivity_of_the_score():
    rng = np.random.default_rng(0)
    radii = Squares(np.array([0.0, 1, 2, 4, 9, 16, 30]))
    for _ in range(10_000):
        t = int(rng.integers(1, 7))
        points = rng.integers(0, 8, (rng.integers(1, 12), rng.integers(1, 3))).astype(float)
        other = neighbours(rng, points)
        a, b = (radius_scores(neighbour_counts(x, radii), t) for x in (points, other))
        full = min(len(points), len(other)) >= t
        assert np.abs(a - b).max() <= (2 * t - 2 if full else 2 * t - 1)


@pytest.mark.parametrize("t", [3, 5, 20])
def test_the_sensitivity_is_attained(t):
    spokes = np.eye(t + 2) * 1000.0
    with_hub = np.vstack([spokes, np.zeros(t + 2)])
    radii = Squares(np.array([1200.0**2]))
    change = radius_scores(neighbour_counts(with_hub, radii), t) - radius_scores(
        neighbour_counts(spokes, radii), t
    )
    assert change[0] == 2 * t - 2


def test_the_largest_count_alone_would_be_far_more_sensitive():
    before = np.array([1.0] + [0] * 50 + [2] * 50)[:, None]
    after = before.copy()
    after[0] = 2
    radii = Squares(np.array([1.0]))
    counts = [neighbour_counts(x, radii)[:, 0] for x in (before, after)]
    assert [min(c.max(), 100) for c in counts] == [100, 51]
    scores = [radius_scores(c[:, None], 100)[0] for c in counts]
    assert abs(scores[0] - scores[1]) == 98


def test_quality_is_quasi_concave_and_reaches_half_the_slack():
    rng = np.random.default_rng(1)
    for n in range(10, 60):
        t, slack = int(rng.integers(7, n)), int(rng.integers(2, 40))
        points = rng.integers(0, 2**20, (n, 2)).astype(float)
        for radii in (LogRadii(2.0**8, 2.0**22), LinearRadii(2.0**14, 2.0**22)):
            scores = radius_scores(neighbour_counts(points, radii), t)
            values = _good_radius.quality(scores, t, slack, radii)
            peak = int(values.argmax())
            assert (np.diff(values[: peak + 1]) >= 0).all()
            assert (np.diff(values[peak:]) <= 0).all()
            assert values.max() >= slack / 2


def test_radii_cover_the_domain_and_bins_match_them():
    rng = np.random.default_rng(2)
    squared = np.concatenate([rng.integers(0, 2**50, 1000), np.arange(70)]).astype(float)
    for radii in (LogRadii(3.0, 2.0**25), LogRadii(2.0**9, 2.0**25), LinearRadii(2.0**12, 2.0**25)):
        assert np.array_equal(radii.bins(squared), np.searchsorted(radii.squares, squared))
        assert radii.squares[0] == 0 and radii.squares[-1] >= 2.0**50 - 1
        half = np.where(radii.before < 0, 0, radii.squares[radii.before])
        assert (half <= radii.squares).all()
    assert len(LinearRadii(1.0, 2.0**25).squares) <= 2**14


# -- selectors --------------------------------------------------------------------------------


def planted_scores(n=4000, t=800, seed=0):
    rng = np.random.default_rng(seed)
    points = rng.random((n, 2))
    angle, length = 2 * np.pi * rng.random(t), 0.02 * np.sqrt(rng.random(t))
    points[:t] = [0.4, 0.6] + (length * [np.cos(angle), np.sin(angle)]).T
    points = np.trunc(points * 2**23)
    radii = LogRadii(2.0**9, 2.0**24)
    return points, radii, radius_scores(neighbour_counts(points, radii), t)


def softmax(scores, epsilon, sensitivity):
    weights = epsilon / (2 * sensitivity) * (scores - scores.max())
    return np.exp(weights) / np.exp(weights).sum()


def test_the_exponential_mechanism_hits_its_target_with_the_promised_probability():
    """Exact: no draws. The event of one_cluster:16 at epsilon = 0.5."""
    points, radii, scores = planted_scores()
    t, epsilon = 800, 0.5
    loss = 8 / epsilon * math.log(len(scores) / 0.05)
    values = _good_radius.quality(scores, t, math.ceil(t * loss), radii)
    chance = softmax(values, epsilon, 2 * t - 1)
    before = np.where(radii.before < 0, 0, scores[radii.before])
    good = (scores >= t * t - t * loss) & (before < t * t)
    assert chance[good].sum() >= 0.99


def test_probabilities_of_neighbours_are_within_bounded_range():
    points, radii, scores = planted_scores(300, 60)
    other = radius_scores(neighbour_counts(points[1:], radii), 60)
    for epsilon in (0.5, 2.0):
        logs = [
            np.log(softmax(_good_radius.quality(s, 60, 400, radii), epsilon, 119))
            for s in (scores, other)
        ]
        ratio = logs[0] - logs[1]
        assert 0 < ratio.max() - ratio.min() <= epsilon + 1e-9


def test_exponential_choices_follow_the_law():
    """Chi-square over 1000 choices; false alarms at 1e-6."""
    _, radii, scores = planted_scores(300, 60)
    rho, t = 0.02, 60
    epsilon = _good_radius.exponential_epsilon(rho)
    slack = _good_radius._slack(t, 8 / epsilon * math.log(len(scores) / 0.05))
    chance = softmax(_good_radius.quality(scores, t, slack, radii), epsilon, 2 * t - 1)
    found = [
        _good_radius._by_exponential(
            open_session(PlanEntry("r", "exponential", rho), seed=seed), "r", scores, t, radii
        )[0]
        for seed in range(1000)
    ]
    counts = np.bincount(found, minlength=len(chance))
    often = chance * 1000 >= 5
    expected = np.append(chance[often], chance[~often].sum()) * 1000
    observed = np.append(counts[often], counts[~often].sum())
    keep = expected > 0.5
    statistic = np.sum((observed[keep] - expected[keep]) ** 2 / expected[keep])
    assert stats.chi2.sf(statistic, keep.sum() - 1) > 1e-6


def test_many_exponential_choices_follow_the_law():
    """one_cluster:16: chi-square over 100 000 draws, all that are accepted, of which a choice is
    the first; false alarms at 1e-6.
    """
    _, radii, scores = planted_scores(300, 60)
    values = _good_radius.quality(scores, 60, 1500, radii)
    noise, epsilon, found = NoiseSource(5), 0.5, np.empty(0, dtype=int)
    while len(found) < 100_000:
        found = np.append(found, noise._accepted_trials(values.max() - values, epsilon / 2 / 119))
    chance = softmax(values, epsilon, 119)
    assert chance.max() < 0.9 and chance.min() * len(found) > 5
    counts = np.bincount(found, minlength=len(chance))
    assert stats.chisquare(counts, chance * len(found)).pvalue > 1e-6


@pytest.mark.parametrize("grid", ["log", "linear"])
@pytest.mark.parametrize("method", _good_radius.RADIUS_METHODS)
def test_every_selector_finds_a_good_radius(method, grid):
    points, _, _ = planted_scores(900, 400)
    # RecConcave needs far more than the others.
    rho, t = (500.0 if method == "rec_concave" else 0.5), 400
    radii = _good_radius.radii_of(grid, 2.0**23 * 1.5)
    for seed in range(5):
        session = open_session(*_good_radius.good_radius_entries(method, rho, 1e-6), seed=seed)
        found = _good_radius.good_radius(session, "radius", points, t, radii, method)
        planted = 0.02 * 2**23
        step = math.sqrt(radii.squares[1])
        assert 0.7 * planted <= math.sqrt(found.square) <= 4 * planted + step
        assert found.loss > 0
        assert session.spent <= rho * (1 + 1e-9)


def test_radius_on_a_line_against_the_smallest_interval():
    """Exact probability of r <= max(2 sqrt(2) r_opt, r_min); promised: 95 %."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        n, t = 400, int(rng.integers(100, 300))
        points = np.sort(np.trunc(2**23 * rng.random(n) ** rng.integers(1, 6)))
        optimal = (points[t - 1 :] - points[: n - t + 1]).min() / 2
        radii = LogRadii(2.0**9, 2.0**24)
        scores = radius_scores(neighbour_counts(points[:, None], radii), t)
        loss = 8 / 2.0 * math.log(len(scores) / 0.05)
        chance = softmax(
            _good_radius.quality(scores, t, math.ceil(t * loss), radii), 2.0, 2 * t - 1
        )
        lengths = np.sqrt(radii.squares)
        assert chance[lengths <= max(2**1.5 * optimal, 2.0**9) + 1].sum() >= 0.95


def median_scores(points, size):
    """min(#{x <= j}, #{x >= j}): quasi-concave, of sensitivity one."""
    at_most = np.cumsum(np.bincount(points, minlength=size))
    return np.minimum(at_most, len(points) - at_most + np.bincount(points, minlength=size))


@pytest.mark.parametrize("law", ["normal", "uniform", "point", "geometric"])
def test_rec_concave_finds_an_interior_point(law):
    """one_cluster:29 on 2^16 candidates: a score of n/4 at n = 4000, in every run."""
    size, rng = 2**16, np.random.default_rng(5)
    u = rng.random(4000)
    points = {
        "normal": 30000 + 3000 * stats.norm.ppf(u),
        "uniform": u * (size - 1),
        "point": np.full(4000, 777.0),
        "geometric": 2.0 ** (16 * u) - 1,
    }[law]
    scores = median_scores(points.astype(int), size)
    assert rec_concave_steps(size) == (2, 2)
    for seed in range(10):
        session = open_session(PlanEntry("r", "RecConcave", 10.0, 1e-4, uses=None), seed=seed)
        index = rec_concave(
            session,
            "r",
            scores,
            2000,
            sensitivity=1,
            epsilon=0.25,
            lead_epsilon=0.25,
            lead_delta=1e-6,
        )
        assert index is not None and scores[index] >= 1000


def test_rec_concave_on_few_points_says_so_or_chooses():
    scores = median_scores(np.array([5, 900]), 1024)
    session = open_session(PlanEntry("r", "RecConcave", 10.0, 1e-4, uses=None))
    index = rec_concave(
        session, "r", scores, 1, sensitivity=1, epsilon=0.1, lead_epsilon=0.1, lead_delta=1e-6
    )
    assert index is None or 0 <= index < 1024


def test_a_lead_is_told_only_when_it_is_clear():
    """P[told] against the rounded Laplace law: 2000 draws, false alarms at 1e-6."""
    epsilon, delta = 0.5, 1e-6
    threshold = 2 + math.ceil(0.5 - 4 * math.log(2 * delta))
    session = open_session(PlanEntry("l", "lead", 2000.0, 0.009, uses=None))
    found = [
        session.lead("l", [10, 10 + threshold], sensitivity=1, epsilon=epsilon, delta=delta)
        for _ in range(2000)
    ]
    assert set(found) == {1, None}
    # Told if the noise, of scale 4, rounds to at least 0.
    told = sum(index == 1 for index in found)
    assert stats.binomtest(told, 2000, 1 - math.exp(-0.5 / 4) / 2).pvalue > 1e-6
    # Of two candidates that a single unit can swap, at most delta is told.
    assert math.exp(-(threshold - 2 - 0.5) / 4) / 2 <= delta
    assert math.exp(-(threshold - 2 - 1.5) / 4) / 2 > delta


# -- boxes ------------------------------------------------------------------------------------


def test_probability_that_a_grid_does_not_cut_a_segment():
    """(1 - w/l)^k = 0.349 at k = 10 and w/l = 0.1; 5000 shifts; false alarms at 1e-6."""
    rng = np.random.default_rng(6)
    ends = np.stack([np.zeros(10), np.full(10, 0.1)])
    whole = sum(
        (_good_center.boxes(ends, shift, 1.0)[0] == _good_center.boxes(ends, shift, 1.0)[1]).all()
        for shift in rng.random((5000, 10))
    )
    assert stats.binomtest(whole, 5000, 0.9**10).pvalue > 1e-6


def test_fullest_box_moves_by_at_most_one():
    rng = np.random.default_rng(7)
    for _ in range(300):
        cells = rng.integers(-2, 3, (rng.integers(1, 40), 2))
        exact = np.unique(cells, axis=0, return_counts=True)[1].max()
        assert _good_center.fullest(cells) == exact
        assert exact - _good_center.fullest(cells[1:]) in (0, 1)
    assert _good_center.fullest(np.empty((0, 3), dtype=int)) == 0


def test_heavy_cells_keep_their_names():
    cells = np.repeat(np.array([[-3, 2**40, 0], [5, -1, -(2**40)]]), [400, 300], axis=0)
    session = open_session(PlanEntry("box", "stability histogram", 1.0, 1e-6))
    found = _good_center.heaviest(session, "box", cells, 1.0, 1e-6, False)
    assert found.tolist() == [-3, 2**40, 0]
    session = open_session(PlanEntry("box", "stability histogram", 1.0, 1e-6))
    assert _good_center.heaviest(session, "box", cells[:0], 1.0, 1e-6, False) is None


def test_random_bases():
    """Orthonormal; and the lemma on projections, which fails with probability below beta."""
    rng = np.random.default_rng(8)
    violated = 0
    for seed in range(20):
        basis = _published._random_basis(
            open_session(PlanEntry("a", "gaussian", 1.0), seed=seed), 24
        )
        assert np.abs(basis @ basis.T - np.eye(24)).max() < 1e-10
        points = rng.normal(size=(30, 24))
        pairs = (points[:, None] - points[None])[np.triu_indices(30, 1)]
        limit = 2 * math.sqrt(math.log(24 * 30 / 0.1) / 24) * np.linalg.norm(pairs, axis=1)
        violated += (np.abs(pairs @ basis.T) > limit[:, None]).any()
    assert violated == 0


def test_projections_keep_distances_with_the_logarithm_to_base_two():
    n = 60
    k = math.ceil(46 * math.log2(2 * n / 0.1))
    points = np.random.default_rng(9).normal(size=(n, 100))
    for seed in range(10):
        signs = _good_center.signs(open_session(PlanEntry("a", "gaussian", 1.0), seed=seed), 100, k)
        ratio = (
            cdist(points @ signs.T / math.sqrt(k), points @ signs.T / math.sqrt(k))
            / np.maximum(cdist(points, points), 1e-9)
        )[np.triu_indices(n, 1)] ** 2
        assert ratio.min() > 0.5 and ratio.max() < 1.5


# -- balls ------------------------------------------------------------------------------------


def ball_statistics(points, center, radius, replace):
    """The claim of `ball_mean` about neighbours, on exact statistics."""
    rows = Rows.of(points, 2.0**24)
    recorded = []

    class Recorder:
        def gaussian(self, entry, value, *, sensitivity, rho):
            recorded.append((value, sensitivity))
            return value.astype(float)

    _balls.ball_mean(
        Recorder(), "e", rows, np.ones(len(points), bool), center, radius, 1.0, replace=replace
    )
    return recorded[0]


@pytest.mark.parametrize("replace", [False, True])
def test_sensitivity_of_a_mean_in_a_ball(replace):
    rng = np.random.default_rng(10)
    worst = 0.0
    for _ in range(2000):
        d = int(rng.integers(1, 4))
        center = rng.integers(-20, 20, d).astype(float)
        radius = float(rng.uniform(1, 40))
        points = rng.integers(-60, 60, (int(rng.integers(1, 6)), d)).astype(float)
        direction = rng.normal(size=d)
        on_border = np.trunc(center + radius * direction / np.linalg.norm(direction))
        points[0] = on_border
        other = points[1:]
        if replace:
            other = np.vstack([other, 2 * center - on_border])
        (a, s), (b, _) = (ball_statistics(x, center, radius, replace) for x in (points, other))
        distance = math.sqrt(float(np.sum(((a - b) / s) ** 2)))
        assert distance <= 1.0
        worst = max(worst, distance)
    assert worst > 0.97  # a constant smaller by 3 % would have been caught


def test_points_outside_the_ball_do_not_count():
    points = np.array([[0.0, 0], [3, 4], [3, 5], [1000, 0]])
    (value, _) = ball_statistics(points, np.zeros(2), 5.0, False)
    assert value.tolist() == [3, 4, 2]


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_radius_of_a_ball_is_just_large_enough(epsilon):
    """one_cluster:6, exactly: probabilities, and the bounded range between neighbours."""
    rng = np.random.default_rng(11)
    squared = np.floor(2**30 * rng.random(1000))
    squares = _balls.radius_squares(2.0**9, 2.0**16, 2**0.0625)
    target, slack = 500, math.ceil(4 / epsilon * math.log(len(squares) / 0.05))
    before = np.arange(len(squares)) - 1
    chances = []
    for data in (squared, squared[1:]):
        counts = counts_within(data, squares)
        chances.append(softmax(_balls.window_scores(counts, target, slack, before), epsilon, 1))
    counts = counts_within(squared, squares)
    good = (counts > target - slack) & (np.append(0, counts[:-1]) < target)
    assert chances[0][good].sum() >= 0.95
    ratio = np.log(chances[0]) - np.log(chances[1])
    assert ratio.max() - ratio.min() <= epsilon + 1e-9


def test_counts_within_are_exact():
    squared = np.array([0.0, 1, 4, 4, 9, math.inf])
    assert counts_within(squared, np.array([0.0, 3, 4, 100])).tolist() == [1, 2, 4, 5]
