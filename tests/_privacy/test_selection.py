"""The price of releasing the best of several runs: doc/development/private_search.md, Theorem 1."""

import math

import mpmath
import numpy as np
import pytest
from scipy.stats import norm
from selection_rules import GEOMETRIC, RULES, generating

from sklearn_dp._costs.accounting import gaussian_delta, gaussian_mu
from sklearn_dp._privacy import _selection
from sklearn_dp._privacy._selection import (
    Geometric,
    Thin,
    choose_rule,
    selection_delta,
    selection_mu,
    selection_refit,
)

# ------------------------------------------------------------------------------ exact values


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((0.1, 0.1, 1, Thin(3, 0.9)), 6.135e-19),
        ((0.1, 0.1, 1, GEOMETRIC), 1.4393e-12),
        ((0.2, 0.1, 1, GEOMETRIC), 2.9927e-4),
        ((0.5, 0.5, 3, Thin(5, 0.9)), 3.2601e-4),
    ],
)
def test_delta_has_the_values_of_the_specification(arguments, expected):
    assert selection_delta(*arguments) == pytest.approx(expected, rel=5e-4)


@pytest.mark.quick("1-rule1-*", "3-rule2-*")
@pytest.mark.parametrize(
    ("epsilon", "rule", "expected"),
    [
        (1, Thin(2, 0.9), 0.20141),
        (1, choose_rule(50), 0.11049),
        (3, Thin(5, 0.9), 0.40173),
        (3, choose_rule(10), 0.36894),
        pytest.param(1, Thin(3, 0.9), 0.17601, marks=pytest.mark.slow),
        pytest.param(1, Thin(5, 0.9), 0.14232, marks=pytest.mark.slow),
        pytest.param(1, choose_rule(10), 0.12870, marks=pytest.mark.slow),
        pytest.param(1, choose_rule(20), 0.11985, marks=pytest.mark.slow),
        pytest.param(3, Thin(2, 0.9), 0.55833, marks=pytest.mark.slow),
        pytest.param(3, Thin(3, 0.9), 0.49205, marks=pytest.mark.slow),
        pytest.param(3, choose_rule(20), 0.34497, marks=pytest.mark.slow),
        pytest.param(3, choose_rule(50), 0.31948, marks=pytest.mark.slow),
    ],
)
def test_mu_has_the_values_of_the_specification(epsilon, rule, expected):
    mu = selection_mu(epsilon, 1e-6, rule)
    assert mu == pytest.approx(expected, rel=5e-4)
    assert mu <= expected + 1e-5
    assert selection_delta(mu, mu, epsilon, rule) <= 1e-6


@pytest.mark.parametrize("rule", [Thin(1, 1.0), Geometric(1, 1.0), Geometric(1, 1.0, 3)])
@pytest.mark.parametrize("mu", [0.05, 0.3, 2.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 4.0])
def test_one_run_costs_what_it_costs(rule, mu, epsilon):
    assert selection_delta(mu, mu, epsilon, rule) == pytest.approx(
        gaussian_delta(mu, epsilon), rel=1e-8, abs=1e-300
    )


@pytest.mark.parametrize(
    "case",
    [
        (Thin(3, 0.9), 0.13, 0.17, 0.8),
        (GEOMETRIC, 0.13, 0.17, 0.8),
        *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(20)),
    ],
    ids=str,
)
def test_the_bound_is_never_below_its_own_sum_in_forty_digits(case, monkeypatch):
    """The same lines, envelope and log-normal law, in 40 digits, on a coarse grid."""
    monkeypatch.setattr(_selection, "GRID", np.linspace(-9, 9, 61))
    rule, mu_select, mu_total, epsilon = drawn_case(case) if isinstance(case, int) else case
    lines = _selection._lines(mu_select, epsilon, rule)
    # as the code rounds: a delta below all floats is the smallest of them
    computed = math.nextafter(envelope_value(*lines, mu_total) * _selection.MARGIN, math.inf)
    with mpmath.workdps(40):
        edges = [-mpmath.inf, *map(mpmath.mpf, _selection.GRID.tolist()), mpmath.inf]
        exact = [(mpmath.mpf(0), mpmath.mpf(0))]
        for left, right in zip(edges, edges[1:], strict=False):
            slope = exact_rate(rule, mpmath.ncdf(right + mpmath.mpf(mu_select)))
            exact.append(
                (slope, mpmath.exp(mpmath.mpf(epsilon)) * exact_rate(rule, mpmath.ncdf(left)))
            )
        value = expected_maximum(exact, mpmath.mpf(mu_total))
    assert value <= computed <= value * (1 + mpmath.mpf(3e-9)) + mpmath.mpf(5e-324)


def drawn_case(seed):
    """A rule, the two mus and epsilon, at random."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 30))
    rule = Thin(m, rng.uniform(0.05, 1)) if seed % 2 else Geometric(m, rng.uniform(0.01, 1))
    mu_select = math.exp(rng.uniform(math.log(0.03), math.log(1.5)))
    return rule, mu_select, mu_select * rng.uniform(1, 3), rng.uniform(0, 4)


def exact_rate(rule, u):
    if isinstance(rule, Thin):
        p = mpmath.mpf(rule.p)
        return rule.m * p * (1 - p + p * u) ** (rule.m - 1) + (1 - p) ** rule.m
    gamma = mpmath.mpf(rule.gamma)
    return gamma / (1 - (1 - gamma) * u) ** 2


def expected_maximum(lines, mu):
    """E max of lines a L - b over a log-normal L, the maximum found line by line."""
    hull = []
    for a, b in sorted(lines):
        while hull and hull[-1][0] == a:
            break
        else:
            while len(hull) > 1 and (b - hull[-1][1]) * (hull[-1][0] - hull[-2][0]) <= (
                hull[-1][1] - hull[-2][1]
            ) * (a - hull[-1][0]):
                hull.pop()
            hull.append((a, b))
    total = mpmath.mpf(0)
    for (a0, b0), (a1, b1) in zip(hull, hull[1:], strict=False):
        k = (b1 - b0) / (a1 - a0)
        z = mpmath.log(k) / mu if k > 0 else -mpmath.inf
        total += (a1 - a0) * (mpmath.ncdf(mu / 2 - z) - k * mpmath.ncdf(-mu / 2 - z))
    return total


# --------------------------------------------------------------------------------- soundness


def worst_ratio(rules, seed, pairs, *, epsilons=(0.0, 0.5, 2.0), bound=selection_delta):
    """Largest exact delta over its bound: winners of runs whose outcomes are cells of a line."""
    rng, worst = np.random.default_rng(seed), 0.0
    for _ in range(pairs):
        mu = math.exp(rng.uniform(math.log(0.05), math.log(1.5)))
        cuts = np.sort(rng.normal(mu / 2, 1.5, rng.integers(2, 40)))
        law = np.diff(norm.cdf(cuts, loc=mu), prepend=0, append=1)
        other = np.diff(norm.cdf(cuts), prepend=0, append=1)
        order = rng.permutation(len(law)) if rng.random() < 0.5 else np.arange(len(law))
        rule = rules[rng.integers(len(rules))]
        p, q = (
            np.diff(generating(rule, np.concatenate([[0], np.minimum(np.cumsum(x[order]), 1)])))
            for x in (law, other)
        )
        for epsilon in epsilons:
            delta = np.maximum(p - math.exp(epsilon) * q, 0).sum()
            if delta > 1e-9:
                worst = max(worst, delta / bound(mu, mu, epsilon, rule))
    return worst


@pytest.mark.slow
def test_no_selection_among_gaussian_runs_loses_more_than_the_bound():
    """With ties broken at random, and score orders that an adversary could choose."""
    assert 0.5 < worst_ratio(RULES, seed=1, pairs=40) <= 1.0


def beside_releases(seed, pairs, *, bound=selection_delta):
    """As `worst_ratio`, where a Gaussian release of 15 cells comes before the choice."""
    rng, worst = np.random.default_rng(seed), 0.0
    for _ in range(pairs):
        rule = RULES[rng.integers(len(RULES))]
        mus = np.exp(rng.uniform(math.log(0.05), 0.0, 2))
        won, before = (cells_of(rng, mu, n) for mu, n in zip(mus, (12, 15), strict=True))
        order = rng.permutation(len(won[0])) if rng.random() < 0.5 else np.arange(len(won[0]))
        won = [
            np.diff(generating(rule, np.concatenate([[0], np.minimum(np.cumsum(x[order]), 1)])))
            for x in won
        ]
        p, q = (np.outer(x, y) for x, y in zip(won, before, strict=True))
        for epsilon in (0.0, 1.0):
            delta = np.maximum(p - math.exp(epsilon) * q, 0).sum()
            if delta > 1e-9:
                worst = max(worst, delta / bound(math.hypot(*mus), mus[0], epsilon, rule))
    return worst


def cells_of(rng, mu, n):
    """Two laws over cells of a line: of normal numbers of mean `mu`, and of mean 0."""
    cuts = np.sort(rng.normal(mu / 2, 1.5, n - 1))
    return [np.diff(norm.cdf(cuts, loc=mean), prepend=0, append=1) for mean in (mu, 0.0)]


def test_releases_before_the_choice_lose_no_more_than_the_bound():
    assert 0.1 < beside_releases(seed=1, pairs=6) <= 1.0


def test_a_bound_that_forgets_the_releases_before_is_caught():
    def forgotten(mu_total, mu_select, epsilon, rule):
        return selection_delta(mu_select, mu_select, epsilon, rule)

    assert beside_releases(seed=1, pairs=6, bound=forgotten) > 1.0


# ------------------------------------------------------------------------------- wrong bounds


def wrong_rate(mu_total, mu_select, epsilon, rule):
    """Without the number of runs."""
    return selection_delta(mu_total, mu_select, epsilon, rule) / rule.expected_runs


def no_far_levels(mu_total, mu_select, epsilon, rule):
    """Exceedances of levels below 1 left out."""
    slopes, levels = _selection._upper_envelope(*_selection._lines(mu_select, epsilon, rule))
    steps = np.diff(slopes, prepend=0.0)
    return float(np.sum((steps * _selection._exceedance(levels, mu_total))[levels >= 1]))


def envelope_value(slopes, intercepts, mu):
    slopes, levels = _selection._upper_envelope(slopes, intercepts)
    return float(np.sum(np.diff(slopes, prepend=0.0) * _selection._exceedance(levels, mu)))


@pytest.mark.parametrize("bound", [wrong_rate, no_far_levels])
def test_a_bound_that_forgets_something_is_caught(bound):
    assert worst_ratio(RULES, seed=1, pairs=20, bound=bound) > 1.0


def test_what_is_released_besides_must_be_counted():
    """A prefix of mu_other = .1, and runs of .1: the winner alone would seem free."""
    assert selection_delta(math.hypot(0.1, 0.1), 0.1, 1.0, GEOMETRIC) > 1e3 * selection_delta(
        0.1, 0.1, 1.0, GEOMETRIC
    )


# ------------------------------------------------------------------------------------- order


def test_prefix_and_refit_share_the_target():
    rule = choose_rule(10)
    alone = selection_mu(1.0, 1e-6, rule)
    beside = selection_mu(1.0, 1e-6, rule, 0.05)
    assert beside < alone
    refit = selection_refit(1.0, 1e-6, rule, alone / 2, 0.05)
    total = math.sqrt((alone / 2) ** 2 + 0.05**2 + refit**2)
    assert selection_delta(total, alone / 2, 1.0, rule) <= 1e-6
    assert total < gaussian_mu(1.0, 1e-6)
    assert refit > alone
    with pytest.raises(ValueError, match="leaves no budget"):
        selection_refit(1.0, 1e-6, rule, 0.99 * alone, 0.3)
    with pytest.raises(ValueError, match="leaves no budget"):
        selection_mu(1.0, 1e-6, rule, 0.3)
