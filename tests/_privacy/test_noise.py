"""The samplers: exact laws, exact decisions, independent streams.

Statistical tests have fixed seeds and refuse at p < 1e-6 (the false alarm rate over the choice of
the seed); each says what wrong constant it would catch. The reference is mpmath.
"""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from exact_laws import LAWS, magnitude, mp, tail
from scipy import stats

from sklearn_dp._privacy._noise import BLOCK, MAX_SCALE, Block, NoiseSource

FALSE_ALARM = 1e-6

# What seed 2024 gives, on every platform.
GOLDEN_GAUSSIAN = [2016378, 913113, 809740, -349365, 409139]
GOLDEN_LAPLACE = [-220598, 226041, 1205847, -1137718, 246342]
GOLDEN_CHOICE = 17


@pytest.fixture(autouse=True)
def _precision():
    with mpmath.workdps(60):
        yield


# -- the reference ----------------------------------------------------------------------------


def boundary_numerator(law, scale, k):
    """floor of the tail probability's numerator at the half integer k + 1/2."""
    x = (mp(k) + mpmath.mpf(1) / 2) / mp(scale)
    return int(mpmath.floor(tail(law, x) * mpmath.mpf(2) ** law.tail_bits))


def refuse():
    raise AssertionError("no further bits should be needed")


def fast_round(law, words, scale, more=refuse):
    """What the sampler makes of given words."""
    source = NoiseSource(0)
    source._next_word = more
    block = Block(np.asarray(words, dtype=np.uint64))
    scale = np.asarray(scale, dtype=np.float64)
    return source._rounded_part(law, block, slice(0, len(words)), scale)


def exact_round(law, word, scale, guess):
    value = law.exact(int(word), Fraction(float(scale)), abs(int(guess)), refuse)
    return -value if int(word) >> 63 else value


def chi_square(observed, probabilities):
    """p-value; cells with an expectation below 10 are put together."""
    expected = np.asarray(probabilities, dtype=float) * np.sum(observed)
    rare = expected < 10
    observed = np.append(np.asarray(observed)[~rare], np.sum(np.asarray(observed)[rare]))
    expected = np.append(expected[~rare], expected[rare].sum())
    if expected[-1] < 10:
        observed = np.append(observed[:-2], observed[-2:].sum())
        expected = np.append(expected[:-2], expected[-2:].sum())
    assert math.isclose(observed.sum(), expected.sum(), rel_tol=1e-9) and len(expected) > 1
    statistic = ((observed - expected) ** 2 / expected).sum()
    return stats.chi2.sf(statistic, len(expected) - 1)


def counts_of(values, support):
    assert support[0] <= values.min() and values.max() <= support[-1]
    return np.bincount(values - support[0], minlength=len(support))


# -- two paths to one number -------------------------------------------------------------------


def compare_paths(law, words, scale):
    """The sampler's values, each confirmed by integer arithmetic; words as in the stream."""
    fast = fast_round(law, words, scale, NoiseSource(1, "more")._next_word)
    for word, value in zip(words, fast, strict=True):
        assert exact_round(law, word, scale, value) == value


@pytest.mark.parametrize("name, scale, size", [
    ("gaussian", 0.7, 1000), ("gaussian", 2.0**20 / 3, 4000), ("gaussian", 2.0**31 / 7, 2000),
    ("gaussian", 2.0**50, 300), ("laplace", 2.0**20 / 3, 2500), ("laplace", 2.0**40 / 3, 200),
])  # fmt: skip
def test_fast_and_exact_path_agree(name, scale, size):
    compare_paths(LAWS[name], NoiseSource(11).bits(size), scale)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", LAWS)
def test_fast_and_exact_path_agree_on_a_million_words(name):
    compare_paths(LAWS[name], NoiseSource(12).bits(10**6), 2.0**20 / 3)


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("scale", [1.0, 0.3, 2.0**20 / 3, 2.0**30 / 7])
def test_words_next_to_a_half_integer_are_rounded_right(name, scale):
    """The words before and after the one whose interval holds the boundary.

    Double precision alone errs on about half of these: this is what the guard band is for.
    """
    law = LAWS[name]
    for k in {0, 1, int(0.4 * scale), int(scale), int(2.7 * scale), int(5 * scale)}:
        numerator = boundary_numerator(law, scale, k)
        if not 2 <= numerator < 2**63 - 2:
            continue
        words = [numerator - 1, numerator + 1, numerator - 1 + 2**63, numerator + 1 + 2**63]
        assert fast_round(law, words, scale).tolist() == [k + 1, k, -k - 1, -k]


@pytest.mark.parametrize("name", LAWS)
def test_a_straddling_word_is_decided_by_further_bits(name):
    """With the true law: the decision is that of the boundary's own bits."""
    law, scale, k = LAWS[name], 2.0**20 / 3, 123456
    numerator = boundary_numerator(law, scale, k)
    x = tail(law, (mp(k) + mpmath.mpf(1) / 2) / mp(scale)) * mpmath.mpf(2) ** law.tail_bits
    next_bits = int(mpmath.floor((x - numerator) * mpmath.mpf(2) ** 64))
    for further, expected in [
        (0, k + 1),
        (2**64 - 1, k),
        (next_bits - 1, k + 1),
        (next_bits + 1, k),
    ]:
        assert fast_round(law, [numerator], scale, lambda f=further: f).tolist() == [expected]


@pytest.mark.parametrize("name", LAWS)
def test_the_smallest_words_reach_into_the_far_tail(name):
    """m = 0 stands for all of (0, 2^-64): further bits are drawn, and go as far as they say."""
    law, scale = LAWS[name], 1000.0
    for further in (2**63, 1, 12345):
        bits = iter([further, 7, 7])
        value = fast_round(law, [0], scale, lambda b=bits: next(b))[0]
        p = mp(Fraction(further, 2 ** (law.tail_bits + 64)))
        assert abs(value - scale * magnitude(law, p)) < 30 / further + 0.51
    assert fast_round(law, [0], 1e-3, lambda: 1).tolist() == [0]
    assert fast_round(law, [3], 1e-300, lambda: 1).tolist() == [0]


# -- laws --------------------------------------------------------------------------------------


def rounded_pmf(distribution, scale, support):
    upper = distribution.cdf((support + 0.5) / scale)
    pmf = np.where(
        support > 0,
        distribution.sf((support - 0.5) / scale) - distribution.sf((support + 0.5) / scale),
        upper - distribution.cdf((support - 0.5) / scale),
    )
    pmf[0], pmf[-1] = upper[0], distribution.sf((support[-1] - 0.5) / scale)
    return pmf


@pytest.mark.parametrize("scale", [0.3, 1.0, 7.3])
@pytest.mark.parametrize("name", LAWS)
def test_goodness_of_fit_for_small_scales(name, scale):
    """400,000 draws against the exact probabilities: catches a scale that is 1% off."""
    distribution = {"gaussian": stats.norm, "laplace": stats.laplace}[name]
    draws = getattr(NoiseSource(21), f"rounded_{name}")(scale, 400_000)
    reach = math.ceil(40 * scale) + 1
    support = np.arange(-reach, reach + 1)
    observed = counts_of(draws, support)
    assert chi_square(observed, rounded_pmf(distribution, scale, support)) > FALSE_ALARM
    wrong = rounded_pmf(distribution, 1.02 * scale, support)
    assert chi_square(observed, wrong) < FALSE_ALARM


@pytest.mark.parametrize("name", LAWS)
def test_goodness_of_fit_for_large_scales(name):
    """A million draws: the grid is too fine to be seen. Catches a scale that is 2% off."""
    distribution = {"gaussian": stats.norm, "laplace": stats.laplace}[name]
    draws = getattr(NoiseSource(22), f"rounded_{name}")(2.0**20, 10**6) / 2.0**20
    assert stats.kstest(draws, distribution.cdf, method="asymp").pvalue > FALSE_ALARM
    assert stats.kstest(draws * 1.02, distribution.cdf, method="asymp").pvalue < FALSE_ALARM
    # Neighbors in the stream are uncorrelated, in value and in size: sd 1e-3, so 5.5 sd.
    for values in (draws, np.abs(draws)):
        assert abs(np.corrcoef(values[1:], values[:-1])[0, 1]) < 5.5e-3


@pytest.mark.parametrize("scale", [0, -1.0, np.nan, np.inf, 2 * MAX_SCALE, [1.0, 0.0]])
def test_scales_that_cannot_be_served_are_refused(scale):
    source = NoiseSource(0)
    with pytest.raises(ValueError, match="sigma"):
        source.rounded_gaussian(scale)
    with pytest.raises(ValueError, match="scale"):
        source.rounded_laplace(scale)


@pytest.mark.parametrize("high", [2, 7, 1000, 2**63])
def test_uniform_integers(high):
    draws = NoiseSource(5).uniform_integers(high, 100_000)
    assert draws.dtype == np.int64 and draws.min() >= 0
    cells = min(high, 64)
    observed = np.bincount((draws.astype(object) * cells // high).astype(int), minlength=cells)
    assert chi_square(observed, [stop - start for start, stop in _cell_shares(high, cells)]) > 1e-6


def _cell_shares(high, cells):
    edges = [-(-i * high // cells) / high for i in range(cells + 1)]
    return zip(edges[:-1], edges[1:], strict=True)


def test_uniform_integers_refuse_the_words_that_would_bias():
    source = NoiseSource(0)
    supply = iter(
        [
            np.array([2**64 - 1, 2**64 - 2, 5], dtype=np.uint64),
            np.array([2**64 - 1], dtype=np.uint64),
            np.array([10], dtype=np.uint64),
        ]
    )
    source.bits = lambda size: next(supply)
    # 2^64 = 1 mod 3: of all words, only the largest has to go.
    assert source.uniform_integers(3, 3).tolist() == [1, (2**64 - 2) % 3, 2]
    assert NoiseSource(0).uniform_integers(1, 4).tolist() == [0] * 4


@pytest.mark.parametrize("high", [0, -3, 2**63 + 1])
def test_uniform_integers_check_high(high):
    with pytest.raises(ValueError, match="high"):
        NoiseSource(0).uniform_integers(high, 3)


# -- exponential mechanism -----------------------------------------------------------------------


@pytest.mark.parametrize("gaps, rate", [
    ([0, 1, 5, 1, 30], 0.7), ([3, 3, 4], 1.5), ([0, 2**62, 0], 1e300),
    ([10**15, 10**15 + 10**14], 1e-14),
])  # fmt: skip
def test_exponential_choice_law(gaps, rate):
    """200,000 accepted proposals: catches the rate off by 2%, where it matters at all."""
    source = NoiseSource(51)
    shifted = np.array(gaps) - min(gaps)
    exponent = np.minimum(shifted, 1e3 / rate) * rate
    accepted = [source._accepted_trials(shifted, rate) for _ in range(50)]
    observed = np.bincount(np.concatenate(accepted), minlength=len(gaps))
    exact = np.exp(-exponent)
    assert chi_square(observed, exact / exact.sum()) > FALSE_ALARM
    # Every BLOCK proposals that are made give as many as the acceptance probability says: 6 sd.
    mean = 50 * BLOCK * exact.mean()
    assert abs(observed.sum() - mean) <= 6 * math.sqrt(mean * (1 - exact.mean()))
    if exponent.max() < 999:
        wrong = exact**1.05
        assert chi_square(observed, wrong / wrong.sum()) < FALSE_ALARM


def test_exponential_choice_takes_the_same_number_of_words_whatever_the_scores():
    places = []
    ramp = np.arange(500)
    for gaps in (0 * ramp, ramp, 10**6 * ramp, 10**6 * (ramp != 3)):
        source = NoiseSource(3)
        source.exponential_choice(gaps, 0.5)
        places.append(source._stream.place())
    assert len(set(places)) == 1


@pytest.mark.parametrize("exponent", [Fraction(1, 3), Fraction(5, 2), Fraction(30), Fraction(46)])
def test_acceptance_next_to_its_probability_is_decided_right(exponent):
    rate = float(exponent)
    source = NoiseSource(0)
    source._next_word = refuse
    word = int(mpmath.floor(mpmath.exp(-mp(rate)) * mpmath.mpf(2) ** 64))
    offsets = [offset for offset in (-2, -1, 1, 2, 1000) if word + offset >= 0]
    for offset in offsets:
        source.bits = lambda size, w=word + offset: np.array([w], dtype=np.uint64)
        assert source._accept(np.array([1]), rate).tolist() == [offset < 0]
    supply = iter([2**64 - 1])
    source._next_word = lambda: next(supply)
    source.bits = lambda size: np.array([word], dtype=np.uint64)
    assert source._accept(np.array([1]), rate).tolist() == [False]


@pytest.mark.parametrize("gaps", [[], [[1]], [0.5], [-1, 0]])
def test_exponential_choice_checks_gaps(gaps):
    with pytest.raises(ValueError, match="gaps"):
        NoiseSource(0).exponential_choice(gaps, 1.0)


@pytest.mark.parametrize("rate", [0.0, -1.0, np.nan, np.inf])
def test_exponential_choice_checks_rate(rate):
    with pytest.raises(ValueError, match="rate"):
        NoiseSource(0).exponential_choice([0, 1], rate)


# -- whole blocks and seeds ---------------------------------------------------------------------


def test_seeded_noise_is_the_same_on_every_platform():
    source = NoiseSource(2024)
    assert source.rounded_gaussian(2.0**20, 5).tolist() == GOLDEN_GAUSSIAN
    assert source.rounded_laplace(2.0**20, 5).tolist() == GOLDEN_LAPLACE
    assert source.exponential_choice(np.arange(100), 0.01) == GOLDEN_CHOICE
