"""Laws of the mechanisms behind the 1-cluster search: exact where they can be, else by frequency.

A statistical test that says nothing else has a false-alarm rate of 1e-6.
"""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

from sklearn_dp import DPOneCluster
from sklearn_dp._aggregate import _good_radius, _one_cluster
from sklearn_dp._aggregate._averages import friendly_average
from sklearn_dp._aggregate._pair_counts import LogRadii, neighbour_counts, radius_scores
from sklearn_dp._aggregate._rec_concave import rec_concave
from sklearn_dp._privacy import _accounting as accounting
from sklearn_dp._privacy._budget import PrivacyBudget
from sklearn_dp._privacy._noise import NoiseSource, gaussian_tail
from sklearn_dp._privacy._session import (
    PlanEntry,
    PrivacyPlan,
    PrivacySession,
    _sigma,
    stability_threshold,
)

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning")


def open_session(*entries, seed=0):
    rho = sum(entry.rho for entry in entries) * 1.01
    return PrivacySession(PrivacyPlan(PrivacyBudget(rho=rho, delta=0.9), entries),
                          random_state=seed)


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


PAIRS = [((1, 30), (0, 30), 1.0), ((30, 30), (31, 30), 1.0), ((1, 30), (0, 31), math.sqrt(2)),
         ((30, 2), (29, 3), math.sqrt(2)), ((1, 0, 14), (0, 1, 14), math.sqrt(2)),
         ((1, 9, 9), (0, 9, 10), math.sqrt(2))]


@pytest.mark.parametrize("before, after, sensitivity", PAIRS, ids=str)
@pytest.mark.parametrize("delta", [1e-2, 1e-4])
def test_histograms_keep_epsilon_and_delta(before, after, sensitivity, delta):
    """Spec item 7, exactly, for the Gaussian form: the divergence is at most that of the
    Gaussian mechanism plus delta."""
    for mu in (0.4, 1.2):
        sigma = float(_sigma(sensitivity, mu**2 / 2))
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


def test_thresholds_of_the_specification():
    """tau(1, 1e-6) for Laplace noise: the rounding and the Gaussian law only move it a little."""
    for scale, tau in ((2.0, 27.24), (1.0, 14.12)):
        assert 1 + scale * math.log(1 / 2e-6) == pytest.approx(tau, abs=0.01)
    sigma = float(_sigma(1.0, accounting.zcdp_rho(1.0, 1e-6)))
    assert stability_threshold(sigma, 1e-6) == math.ceil(1.5 + sigma * stats.norm.isf(1e-6))


@pytest.mark.parametrize("delta", [1e-2, 1e-3])
def test_single_units_show_with_probability_delta(delta):
    """Spec item 19: 200 000 cells of one unit each."""
    session = open_session(PlanEntry("h", "stability histogram", 0.02, delta))
    codes = np.arange(200_000)
    found, _ = session.stability_histogram("h", codes, np.ones_like(codes), rho=0.02, delta=delta)
    sigma = float(_sigma(1.0, 0.02))
    chance = gaussian_tail(sigma, stability_threshold(sigma, delta) - 1)
    assert 0.5 * delta < chance <= delta
    assert stats.binomtest(len(found), len(codes), chance).pvalue > 1e-6
    session = open_session(PlanEntry("h", "stability histogram", 0.02, delta))
    found, _ = session.stability_histogram("h", codes[:0], codes[:0], rho=0.02, delta=delta)
    assert len(found) == 0


# -- copies of a point ------------------------------------------------------------------------


def test_copies_are_told_with_the_promised_probability():
    """Spec item 18, exactly: 400 copies among 1000 points, epsilon = 0.5 a step, beta = 0.1."""
    points = np.trunc(np.random.default_rng(0).random((1000, 2)) * 2**23)
    points[:400] = points[0]
    radii, t, epsilon = LogRadii(2.0**9, 2.0**24), 400, 0.5
    scores = radius_scores(neighbour_counts(points, radii), t)
    slack = _good_radius._slack(t, 8 / epsilon * math.log(len(scores) / 0.1))
    values = _good_radius.quality(scores, t, slack, radii)
    chance = np.exp(epsilon / 2 / (2 * t - 1) * (values - values.max()))
    zero = chance[0] / chance.sum()
    sigma = float(_sigma(1.0, epsilon**2 / 2))
    told = gaussian_tail(sigma, stability_threshold(sigma, 1e-6) - t)
    assert zero * told >= 0.9


# -- above threshold --------------------------------------------------------------------------


def rounded_laplace(scale, span):
    """The law of round(scale Lap) on -span .. span, ends included."""
    edges = np.arange(-span, span) + 0.5
    below = np.where(edges < 0, np.exp(-np.abs(edges) / scale) / 2,
                     1 - np.exp(-np.abs(edges) / scale) / 2)
    return np.diff(np.concatenate([[0.0], below, [1.0]]))


def first_above(queries, threshold, epsilon, span=1500):
    """Chances that the first, the second, none of two queries is told."""
    noise, level = rounded_laplace(4 / epsilon, span), rounded_laplace(2 / epsilon, span)
    above = np.cumsum(noise[::-1])[::-1]  # P[noise >= i - span]
    shifts = threshold + np.arange(-span, span + 1)
    first, second = (above[np.clip(shifts - query + span, 0, 2 * span)] for query in queries)
    return np.array([level @ first, level @ ((1 - first) * second),
                     level @ ((1 - first) * (1 - second))])


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0])
def test_above_threshold_keeps_epsilon_on_two_queries(epsilon):
    """Spec item 20, exactly: all changes of two queries by at most one."""
    worst = 0.0
    for queries in ((0, 0), (3, -2), (-8, 8), (5, 5)):
        law = first_above(queries, 2, epsilon)
        assert law.sum() == pytest.approx(1)
        for change in np.ndindex(3, 3):
            other = first_above(np.array(queries) + np.array(change) - 1, 2, epsilon)
            worst = max(worst, np.abs(np.log(law / other)).max())
    assert 0.4 * epsilon < worst <= epsilon + 1e-9  # a third of the noise would show


def test_above_threshold_stops_and_seldom_errs():
    """Spec item 20: K = 50, beta = 0.1; the first answer only, and its law."""
    runs, k, beta, epsilon = 400, 50, 0.1, 1.0
    rng, wrong = np.random.default_rng(0), 0
    margin = 8 / epsilon * math.log(2 * k / beta)
    session = open_session(PlanEntry("a", "above threshold", 400.0, uses=None))
    for _ in range(runs):
        queries = rng.integers(-200, 200, k)
        index = session.above_threshold("a", queries, 20, sensitivity=1, epsilon=epsilon)
        told = queries[:k if index is None else index]
        wrong += bool((told > 20 + margin).any())
        wrong += index is not None and queries[index] < 20 - margin
    assert wrong <= stats.binom.isf(1e-6, runs, beta)
    found = np.bincount([2 if i is None else i for i in (
        session.above_threshold("a", [1, 4], 2, sensitivity=1, epsilon=0.5)
        for _ in range(1000))], minlength=3)
    assert stats.chisquare(found, 1000 * first_above((1, 4), 2, 0.5)).pvalue > 1e-6


# -- noisy averages ---------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0.05, 0.01, 1e-4])
def test_the_size_of_an_average_is_seldom_too_large(delta):
    """Spec item 21, exactly: size > m - 1 with probability at most delta, and not much less."""
    for rho in (0.005, 0.02, 0.5):
        sd, m = 1 / math.sqrt(2 * rho), 1000
        chance = sum(  # of the noisy numbers from which the size comes out as m or more
            ndtr(-(noise - 0.5) / sd) - ndtr(-(noise + 0.5) / sd)
            for noise in range(int(12 * sd) + 2)
            if float(m + noise) - 1.5 + sd * stats.norm.ppf(delta) > m - 1)
        assert chance <= delta
        assert chance >= delta / 10 or sd < 5


def test_noise_of_an_average_is_what_it_says():
    """Spec item 21: the standard deviation given the size within 2 %; nothing from nothing."""
    entries = (PlanEntry("size", "gaussian", 1e5, uses=None),
               PlanEntry("mean", "gaussian", 1e5, uses=None))
    session, d, errors = open_session(*entries), 1500, []
    rows = np.trunc(100 * np.random.default_rng(0).random((60, d)))
    for _ in range(40):
        found = friendly_average(session, "size", "mean", rows, 5000.0, rho_size=0.5,
                                 rho_mean=0.5, delta=1e-3)
        # 2 R / size over sqrt(2 rho), but for the rounding of the rows to a fine grid.
        assert found.sd == pytest.approx(1e4 / found.size, rel=1e-2)
        errors.append((found.mean - rows.mean(axis=0)) / found.sd)
    assert np.std(errors) == pytest.approx(1, abs=0.02)
    none = sum(friendly_average(session, "size", "mean", rows[:0], 5000.0, rho_size=0.5,
                                rho_mean=0.5, delta=0.01) is None for _ in range(2000))
    assert 2000 - none <= stats.binom.isf(1e-6, 2000, 0.01)


# -- samples ----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["exponential", "above_threshold", "binary_search"])
@pytest.mark.parametrize("rho, rate", [(1e-4, 0.01), (0.02, 0.1), (0.5, 0.9), (300.0, 0.5)])
def test_a_sample_gets_the_budget_that_is_amplified_away(method, rho, rate):
    session = open_session(PlanEntry("r", method, rho), PlanEntry("other", "gaussian", rho))
    inner = _one_cluster._amplified(session, "r", rate, method)
    if inner is session:
        assert session.remaining("r") == rho
        return
    assert method != "binary_search" and (rate < 0.9 or method == "above_threshold")
    assert inner.remaining("r") > rho >= session.spent > 0.9 * rho
    spend = (_good_radius.exponential_epsilon if method == "exponential"
             else _good_radius._pure_epsilon)
    epsilon, _ = accounting.poisson_amplified(spend(inner.remaining("r")), 0.0, rate)
    assert accounting.pure_zcdp_rho(epsilon) <= rho


def test_amplification_is_exact_for_a_choice():
    """Mixture over the coin of the one unit that differs, on the worst scores."""
    epsilon, rate = 3.0, 0.05
    p = np.exp([epsilon, 0.0]) / (math.exp(epsilon) + 1)  # scores 2, 0 with the unit
    q = np.array([0.5, 0.5])
    amplified, _ = accounting.poisson_amplified(epsilon, 0.0, rate)
    mixed = rate * p + (1 - rate) * q
    assert np.abs(np.log(mixed / q)).max() <= amplified < 0.7


def test_samples_of_different_searches_are_independent():
    """Amplified costs add up over the rounds only if each has its own coins."""
    session = open_session(PlanEntry("r", "gaussian", 1.0))
    first, again, other = (_one_cluster._sample(session, tag, 40_000, 0.3)
                           for tag in ("0/radius", "0/radius", "1/radius"))
    assert np.array_equal(first, again)
    table = np.histogram2d(first, other, bins=2)[0]
    assert stats.chi2_contingency(table).pvalue > 1e-6
    assert stats.binomtest(int(first.sum()), 40_000, 0.3).pvalue > 1e-6


# -- what a black box tells -------------------------------------------------------------------


def epsilon_seen(p, q, delta, alarm=1e-6):
    """Largest epsilon that frequencies prove, at the level `alarm` in all.

    Events of high likelihood ratio are found on one half of the runs and counted on the other;
    Clopper-Pearson bounds on either side.
    """
    p, q = (np.asarray(x) for x in (p, q))
    names = np.unique(np.concatenate([p, q]), axis=0)
    best, m = 0.0, len(p) // 2
    for one, other in ((p, q), (q, p)):
        counts = [np.array([(x[:m] == name).sum() for name in names]) for x in (one, other)]
        order = np.argsort(-(counts[0] + 0.5) / (counts[1] + 0.5), kind="stable")
        for size in range(1, len(names)):
            event = names[order[:size]]
            a, b = (np.isin(x[m:], event).sum() for x in (one, other))
            level = alarm / (4 * len(names))
            lower = stats.beta.ppf(level, a, m - a + 1) if a else 0.0
            upper = stats.beta.ppf(1 - level, b + 1, m - b)
            if lower > delta:
                best = max(best, math.log((lower - delta) / upper))
    return best


RUNS = 100_000


def choices_of_a_radius(hub, factor):
    """The tight example: spokes, with a hub or without."""
    t, epsilon = 20, 1.0
    points = np.eye(t + 2) * 1000.0
    points = np.vstack([points, np.zeros(t + 2)]) if hub else points
    radii = LogRadii(900.0, 1100.0)
    scores = radius_scores(neighbour_counts(points, radii), t)
    values = _good_radius.quality(scores, t, t * t // 2, radii)
    noise, rate = NoiseSource(int(hub)), factor * epsilon / (2 * (2 * t - 1))
    gaps = values.max() - values
    return [noise.exponential_choice(gaps, rate) for _ in range(RUNS)], epsilon, 0.0


def shown_cells(counts, factor):
    """Which cells a histogram shows, and the first shown value, coarsely."""
    rho, delta, epsilon = 0.5, 0.02, 1.5
    sigma = float(_sigma(math.sqrt(2), rho))
    low, noise = stability_threshold(sigma, delta), NoiseSource(sum(counts[:1]))
    values = np.array(counts) + noise.rounded_gaussian(sigma / factor, (RUNS, len(counts)))
    seen = (values >= low) & (np.array(counts) > 0)
    output = seen @ (1 << np.arange(len(counts))) + 8 * np.clip(values[:, -1] // 2 - 10, 0, 20)
    return output, epsilon, delta + accounting.gaussian_delta(math.sqrt(2 * rho), epsilon)


BLACK_BOXES = {
    "tight example": (choices_of_a_radius, False, True),
    "isolated record": (shown_cells, (0, 30), (1, 30)),
    "moved between boxes": (shown_cells, (30, 31), (31, 30)),
}


@pytest.mark.slow
@pytest.mark.parametrize("pair", BLACK_BOXES)
def test_black_box_audit_of_the_primitives(pair):
    """Spec item 28: 100 000 runs; the same with a quarter of the noise is caught."""
    run, before, after = BLACK_BOXES[pair]
    for factor in (1, 4):
        (p, epsilon, delta), (q, _, _) = (run(data, factor) for data in (before, after))
        assert (epsilon_seen(p, q, delta) > epsilon) == (factor == 4)


def fits(X, number, first_seed):
    """Coarse answers of many fits: what the last releases say."""
    model = DPOneCluster(3, epsilon=1.0, delta=1e-3, bounds=1.0, min_radius=0.25,
                         center_method="clip")
    found = []
    for seed in range(number):
        fitted = model.set_params(random_state=first_seed + seed).fit(X)
        found.append(int(np.clip(fitted.n_points_in_ // 2, -6, 6)) + 100 * int(fitted.radius_ > 0.5)
                     + 1000 * int(fitted.center_[0] > 0))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("factor", [1, 4])
def test_black_box_audit_of_fits(monkeypatch, factor):
    """Spec item 28: 10 000 fits with and without a record; noise for epsilon = 4 is caught by
    the primitives, at once; here the whole must stay below epsilon."""
    X = np.vstack([np.tile([[0.9, 0.0]], (6, 1)), -np.eye(2)])
    if factor == 4:
        gaussian, choice = NoiseSource.rounded_gaussian, NoiseSource.exponential_choice
        monkeypatch.setattr(NoiseSource, "rounded_gaussian", lambda self, sigma, size=None:
                            gaussian(self, np.asarray(sigma) / 40, size))
        monkeypatch.setattr(NoiseSource, "exponential_choice", lambda self, gaps, rate:
                            choice(self, gaps, 40 * rate))
    number = 10_000 if factor == 1 else 1_000
    seen = epsilon_seen(fits(X, number, 0), fits(X[1:], number, 10**6), 1e-3)
    assert (seen > 1.0) == (factor == 4)


# -- RecConcave on a huge set -----------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("law", ["normal", "uniform", "point", "geometric"])
def test_rec_concave_on_a_million_candidates(law):
    """Spec item 29: |F| = 2^20, n = 1600; a score of n / 4 in 95 % of 100 runs, never more often
    than the exponential mechanism (which never fails here)."""
    size, n = 2**20, 1600
    u = np.random.default_rng(5).random(n)
    points = {"normal": 5e5 + 5e4 * stats.norm.ppf(u), "uniform": u * (size - 1),
              "point": np.full(n, 777.0), "geometric": 2.0 ** (20 * u) - 1}[law].astype(int)
    at_most = np.cumsum(np.bincount(points, minlength=size))
    scores = np.minimum(at_most, n - at_most + np.bincount(points, minlength=size))
    good = {"rec": 0, "exponential": 0}
    for seed in range(100):
        session = open_session(PlanEntry("r", "RecConcave", 10.0, 1e-4, uses=None),
                               PlanEntry("e", "exponential", 1.0), seed=seed)
        index = rec_concave(session, "r", scores, n // 2, sensitivity=1, epsilon=0.25,
                            lead_epsilon=0.25, lead_delta=2.5e-7)
        good["rec"] += index is not None and scores[index] >= n // 4
        index = session.exponential("e", scores, sensitivity=1, epsilon=1.0)
        good["exponential"] += scores[index] >= n // 4
    assert 95 <= good["rec"] <= good["exponential"] == 100
