"""Rules of runs: their rates, their laws as drawn, their coverage."""

import math

import numpy as np
import pytest
from scipy.stats import chisquare, norm
from selection_rules import RULES, generating

from sklearn_dp._privacy._noise import NoiseSource
from sklearn_dp._privacy._selection import Geometric, Thin, choose_rule


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_rate_is_the_derivative_of_the_generating_function(rule):
    t = np.linspace(-2, 2, 9)
    u, step = norm.cdf(t), 1e-6
    slope = (generating(rule, u + step) - generating(rule, u - step)) / (2 * step)
    np.testing.assert_allclose(rule.rate(t), slope, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "rule", [Thin(4, 0.3), Thin(3, 1.0), Geometric(5, 0.2), Geometric(5, 0.2, 6)], ids=str
)
@pytest.mark.parametrize("n", [5_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_draws_follow_the_rule(rule, n):
    """Numbers of runs of n draws under a seed: chi-square above 1e-6; coverage 5 sd."""
    source = NoiseSource(7, "rule")
    draws = [rule.draw(source) for _ in range(n)]
    numbers = np.array([len(draw) for draw in draws])
    largest = 40 if getattr(rule, "cap", 0) == math.inf else numbers.max()
    # P(number = k) are the coefficients of `generating`, up to the single run of "nobody drawn"
    k = np.arange(1, largest + 1)
    expected = n * np.array([number_law(rule, int(i)) for i in k])
    observed = np.bincount(np.minimum(numbers, largest), minlength=largest + 1)[1:]
    expected[-1] += n - expected.sum()
    many = expected > 10
    if many.sum() > 1:
        seen = np.append(observed[many], observed[~many].sum())
        wanted = np.append(expected[many], expected[~many].sum())
        keep = wanted > 0
        assert chisquare(seen[keep], wanted[keep]).pvalue > 1e-6
    tried = sum(0 in draw for draw in draws) / n
    sd = math.sqrt(rule.coverage * (1 - rule.coverage) / n)
    assert abs(tried - rule.coverage) <= 5 * sd + 1e-12


@pytest.mark.parametrize("n", [3_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_every_set_of_candidates_is_drawn_as_often_as_it_should(n):
    """Masks of `Thin`, under a seed: chi-square above 1e-6. At 3,000, p off by .06 is seen."""
    rule, source = Thin(3, 0.4), NoiseSource(11, "masks")
    masks = np.array([sum(1 << j for j in rule.draw(source)) for _ in range(n)])
    sizes = np.array([mask.bit_count() for mask in range(8)])
    law = 0.4**sizes * 0.6 ** (3 - sizes) + (sizes == 1) * 0.6**3 / 3
    assert chisquare(np.bincount(masks, minlength=8)[1:], n * law[1:]).pvalue > 1e-6


def number_law(rule, k):
    if isinstance(rule, Thin):
        law = (
            math.comb(rule.m, k) * rule.p**k * (1 - rule.p) ** (rule.m - k) if k <= rule.m else 0.0
        )
        return law + ((1 - rule.p) ** rule.m if k == 1 else 0.0)
    law = rule.gamma * (1 - rule.gamma) ** (k - 1)
    return (1 - rule.gamma) ** (k - 1) if k == rule.cap else law


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Thin(0, 0.5), "m must be"),
        (lambda: Thin(2, 1.5), "p must be"),
        (lambda: Thin(2.5, 0.5), "m must be"),
        (lambda: Geometric(2, 0.0), "gamma must be"),
        (lambda: Geometric(2, 1e-30), "gamma is too small"),
        (lambda: Geometric(2, 0.5, 0), "cap must be"),
        (lambda: Geometric(2, 0.5, 2.5), "cap must be an integer"),
        (lambda: choose_rule(1), "m must be"),
        (lambda: choose_rule(10, 0.1), "coverage must be"),
        (lambda: choose_rule(10, 1.0), "coverage must be"),
    ],
)
def test_bad_arguments_are_named(make, words):
    with pytest.raises((TypeError, ValueError), match=words):
        make()
