"""Laws of the mechanisms behind the 1-cluster search: exact where they can be, else by frequency.

A statistical test that says nothing else has a false-alarm rate of 1e-6.
"""

import math

import numpy as np
import pytest
from grid_tools import sealed_scores
from kernel_tools import spending
from scipy import stats
from scipy.special import ndtr

from sklearn_dp import DPOneCluster
from sklearn_dp._costs import accounting
from sklearn_dp._costs.plan import PlanEntry
from sklearn_dp._privacy._noise import NoiseSource, gaussian_tail
from sklearn_dp._privacy._pure_releases import above_threshold
from sklearn_dp._privacy.mechanisms.gaussian import sigma_of
from sklearn_dp._privacy.mechanisms.stability import stability_histogram, stability_threshold
from sklearn_dp._published.one_cluster import good_center as _published
from sklearn_dp._published.one_cluster.rec_concave import RecConcave
from sklearn_dp._queries.balls import Crossing
from sklearn_dp._queries.pairs import LogRadii, neighbor_counts, radius_scores


def hockey_stick(p, q, epsilon):
    """max_E P[E] - e^epsilon Q[E], the larger of both directions."""
    return max(np.maximum(a - math.exp(epsilon) * b, 0.0).sum() for a, b in ((p, q), (q, p)))


# -- stability histograms ---------------------------------------------------------------------


def published(count, sigma, low, most):
    """Law of one cell: hidden, or each value from `low` on. A cell that is not there is hidden."""
    values = np.arange(low, most)
    seen = ndtr((values - count + 0.5) / sigma) - ndtr((values - count - 0.5) / sigma)
    law = np.append(ndtr((low - count - 0.5) / sigma), seen)
    return law if count else np.eye(1, len(law)).ravel()


def law_of_histogram(counts, sigma, low):
    """Joint law over the cells, which get independent noise."""
    joint = np.ones(1)
    for count in counts:
        joint = np.outer(joint, published(count, sigma, low, int(30 + 9 * sigma) + 2)).ravel()
    return joint


PAIRS = [
    ((1, 30), (0, 30), 1.0),
    ((30, 30), (31, 30), 1.0),
    ((1, 30), (0, 31), math.sqrt(2)),
    ((30, 2), (29, 3), math.sqrt(2)),
    ((1, 0, 14), (0, 1, 14), math.sqrt(2)),
    ((1, 9, 9), (0, 9, 10), math.sqrt(2)),
]


@pytest.mark.parametrize("before, after, sensitivity", PAIRS, ids=str)
@pytest.mark.parametrize("delta", [1e-2, 1e-4])
def test_histograms_keep_epsilon_and_delta(before, after, sensitivity, delta):
    """one_cluster:7, exactly, for the Gaussian form: the divergence is at most that of the
    Gaussian mechanism plus delta."""
    for mu in (0.4, 1.2):
        sigma = float(sigma_of(sensitivity, mu**2 / 2))
        low = stability_threshold(sigma, delta)
        p, q = (law_of_histogram(counts, sigma, low) for counts in (before, after))
        for epsilon in (0.1, 0.5, 1.0, 2.0, 4.0):
            allowed = accounting.gaussian_delta(mu, epsilon) + delta
            assert hockey_stick(p, q, epsilon) <= allowed + 1e-12


@pytest.mark.parametrize("delta", [1e-2, 1e-3, 1e-6])
def test_no_smaller_threshold_would_do(delta):
    """A cell of one unit is told with probability at most delta, and with more one step lower."""
    for sigma in (0.5, 2.0, 5.0, 30.0):
        low = stability_threshold(sigma, delta)
        assert gaussian_tail(sigma, low - 1) <= delta < gaussian_tail(sigma, low - 2)
        p = law_of_histogram((1, 0), sigma, low - 1)
        q = law_of_histogram((0, 0), sigma, low - 1)
        assert hockey_stick(p, q, 20.0) > delta


@pytest.mark.parametrize("delta", [1e-2, 1e-3])
def test_single_units_show_with_probability_delta(delta):
    """one_cluster:19: 200 000 cells of one unit each."""
    session = spending(PlanEntry("h", "stability histogram", 0.02, delta))
    codes = np.arange(200_000)
    found, _ = stability_histogram(session, "h", codes, np.ones_like(codes), rho=0.02, delta=delta)
    sigma = float(sigma_of(1.0, 0.02))
    chance = gaussian_tail(sigma, stability_threshold(sigma, delta) - 1)
    assert 0.5 * delta < chance <= delta
    assert stats.binomtest(len(found), len(codes), chance).pvalue > 1e-6
    session = spending(PlanEntry("h", "stability histogram", 0.02, delta))
    found, _ = stability_histogram(session, "h", codes[:0], codes[:0], rho=0.02, delta=delta)
    assert len(found) == 0


# -- copies of a point ------------------------------------------------------------------------


def test_copies_are_told_with_the_promised_probability():
    """one_cluster:18, exactly: 400 copies among 1000 points, epsilon = 0.5 a step, beta = 0.1."""
    points = np.trunc(np.random.default_rng(0).random((1000, 2)) * 2**23)
    points[:400] = points[0]
    radii, t, epsilon = LogRadii(2.0**9, 2.0**24), 400, 0.5
    scores = radius_scores(neighbor_counts(points, radii), t)
    slack = min(math.ceil(t * (8 / epsilon * math.log(len(scores) / 0.1))), t * t // 2)
    values = Crossing(t * t, slack).scores(scores)
    chance = np.exp(epsilon / 2 / (2 * t - 1) * (values - values.max()))
    zero = chance[0] / chance.sum()
    sigma = float(sigma_of(1.0, epsilon**2 / 2))
    told = gaussian_tail(sigma, stability_threshold(sigma, 1e-6) - t)
    assert zero * told >= 0.9


# -- axes of the published algorithm ----------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 50, 10_000])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12])
def test_axes_cost_no_more_than_their_share(d, delta):
    """one_cluster:9: d intervals as published stay within a quarter of epsilon, by the advanced
    composition; so do ours, of a d-th of rho each, and theirs cost more noise."""
    for epsilon in (0.01, 0.5, 1.0, 4.0):
        each = epsilon / (10 * math.sqrt(d * math.log(8 / delta)))
        total = 2 * d * each**2 + each * math.sqrt(2 * d * math.log(8 / delta))
        assert total <= epsilon / 4
        entry = {entry.name: entry for entry in _published.paper_entries(1.0, delta)}["axes"]
        parts = [share / d * _published._SAFE for share in (entry.rho, entry.delta)]
        assert d * parts[0] <= entry.rho <= 0.25 and d * parts[1] <= entry.delta <= delta / 3
        # Gaussian noise of the same guarantee is below the published noise, Lap(2 / each).
        rho = accounting.zcdp_rho(epsilon / 4, delta / 4)
        assert math.sqrt(d / rho) < math.sqrt(2) * 2 / each


# -- above threshold --------------------------------------------------------------------------


def rounded_laplace(scale, span):
    """The law of round(scale Lap) on -span .. span, ends included."""
    edges = np.arange(-span, span) + 0.5
    below = np.where(
        edges < 0, np.exp(-np.abs(edges) / scale) / 2, 1 - np.exp(-np.abs(edges) / scale) / 2
    )
    return np.diff(np.concatenate([[0.0], below, [1.0]]))


def first_above(queries, threshold, epsilon, span=1500):
    """Chances that the first, the second, none of two queries is told."""
    noise, level = rounded_laplace(4 / epsilon, span), rounded_laplace(2 / epsilon, span)
    above = np.cumsum(noise[::-1])[::-1]  # P[noise >= i - span]
    shifts = threshold + np.arange(-span, span + 1)
    first, second = (above[np.clip(shifts - query + span, 0, 2 * span)] for query in queries)
    return np.array(
        [level @ first, level @ ((1 - first) * second), level @ ((1 - first) * (1 - second))]
    )


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0])
def test_above_threshold_keeps_epsilon_on_two_queries(epsilon):
    """one_cluster:20, exactly: all changes of two queries by at most one."""
    worst = 0.0
    for queries in ((0, 0), (3, -2), (-8, 8), (5, 5)):
        law = first_above(queries, 2, epsilon)
        assert law.sum() == pytest.approx(1)
        for change in np.ndindex(3, 3):
            other = first_above(np.array(queries) + np.array(change) - 1, 2, epsilon)
            worst = max(worst, np.abs(np.log(law / other)).max())
    assert 0.4 * epsilon < worst <= epsilon + 1e-9  # a third of the noise would show


def test_above_threshold_stops_and_seldom_errs():
    """one_cluster:20: K = 50, beta = 0.1; the first answer only, and its law."""
    runs, k, beta, epsilon = 400, 50, 0.1, 1.0
    rng, wrong = np.random.default_rng(0), 0
    margin = 8 / epsilon * math.log(2 * k / beta)
    session = spending(PlanEntry("a", "above threshold", 400.0, uses=None))
    for _ in range(runs):
        queries = rng.integers(-200, 200, k)
        index = above_threshold(session, "a", queries, 20, sensitivity=1, epsilon=epsilon)
        told = queries[: k if index is None else index]
        wrong += bool((told > 20 + margin).any())
        wrong += index is not None and queries[index] < 20 - margin
    assert wrong <= stats.binom.isf(1e-6, runs, beta)
    found = np.bincount(
        [
            2 if i is None else i
            for i in (
                above_threshold(session, "a", [1, 4], 2, sensitivity=1, epsilon=0.5)
                for _ in range(1000)
            )
        ],
        minlength=3,
    )
    assert stats.chisquare(found, 1000 * first_above((1, 4), 2, 0.5)).pvalue > 1e-6


# -- what a black box tells -------------------------------------------------------------------


def fits(n, number, first_seed):
    """Coarse answers of many fits to n copies of the origin.

    Whatever is released as the center, the second radius reaches all points, and larger ones are
    needed where there are fewer than t: the record decides about the odds of the final radius.
    """
    model = DPOneCluster(
        12, epsilon=1.0, delta=1e-3, bounds=1.0, min_radius=2.0, center_method="clip"
    )
    found = []
    for seed in range(first_seed, first_seed + number):
        fitted = model.set_params(random_state=seed).fit(np.zeros((n, 2)))
        inside = int(np.clip(fitted.n_points_in_ // 20, -1, 2))
        found.append(4 * int(fitted.radius_ > 1.01) + inside)
    return found


# -- RecConcave on a huge set -----------------------------------------------------------------


def quick_choices(original):
    """Of many candidates a draw in floating point: the same law, without the exact trials."""

    def exponential_choice(self, gaps, rate):
        if len(gaps) <= 4096:
            return original(self, gaps, rate)
        rng = np.random.default_rng(int(self.uniform_integers(2**31)))
        return int(np.argmax(rng.gumbel(size=len(gaps)) - rate * np.asarray(gaps)))

    return exponential_choice


@pytest.mark.slow
@pytest.mark.parametrize("law", ["normal", "uniform", "point", "geometric"])
def test_rec_concave_on_a_million_candidates(monkeypatch, law):
    """one_cluster:29: |F| = 2^20, n = 1600; a score of n / 4 in 95% of 100 runs. The exponential
    mechanism is never worse: it fails with a probability below 1e-9 (exact)."""
    size, n = 2**20, 1600
    u = np.random.default_rng(5).random(n)
    points = {
        "normal": 5e5 + 5e4 * stats.norm.ppf(u),
        "uniform": u * (size - 1),
        "point": np.full(n, 777.0),
        "geometric": 2.0 ** (20 * u) - 1,
    }[law].astype(int)
    at_most = np.cumsum(np.bincount(points, minlength=size))
    scores = np.minimum(at_most, n - at_most + np.bincount(points, minlength=size))
    chance = np.exp((scores - scores.max()) / 2)
    assert chance[scores < n // 4].sum() / chance.sum() < 1e-9
    quick = quick_choices(NoiseSource.exponential_choice)
    monkeypatch.setattr(NoiseSource, "exponential_choice", quick)
    good = 0
    for seed in range(100):
        session = spending(PlanEntry("r", "RecConcave", 10.0, 1e-4, uses=None), seed=seed)
        index = RecConcave(session, "r", 0.25, 0.25, 2.5e-7).index(sealed_scores(scores), n // 2)
        good += index is not None and scores[index] >= n // 4
    assert good >= 95
