"""The private test of a partition, theorem W: constants, laws, replays."""

import math

import numpy as np
import pytest
from k_tuple_tools import rich_session, step_of
from scipy import stats

from sklearn_dp._aggregate.tuples import least_tuples
from sklearn_dp._costs import accounting
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp._privacy.mechanisms.pure import open_step
from sklearn_dp._queries import separated_balls as partition
from sklearn_dp._queries.separated_balls import (
    answer_budget,
    close_tuples,
    constants_of,
    release_if_private,
    unpartitioned,
)

E28 = math.exp(-28)


def released(step, tuples, separation=7.0, answer=None):
    budget = {"epsilon": 1.0, "delta": 1e-6, "beta": 0.05}
    return release_if_private(step, tuples, separation=separation, answer=answer, **budget)


def corners(t, rng, spread=0.5):
    """The clusters of the acceptance list: three corners 100 apart, in thousandths."""
    places = np.array([[0.0, 0.0], [100.0, 0.0], [0.0, 100.0]])
    return np.rint(1000 * (places + spread * rng.normal(size=(t, 3, 2))))


# -- constants (easy_instances:A1,A2,A3,A4) ---------------------------------------------------


def paper_constants(n, epsilon, delta, beta):
    """As printed in the paper; here as a reference only."""
    for m in range(1, n):
        inside = epsilon * n / (2 * m) - 3
        if inside <= 1:
            return None
        eps1 = math.log(inside)
        if m > (2 * math.log(1 / delta) + math.log(1 / beta)) / eps1:
            return m, eps1, 2 * m / epsilon * math.log(m / (beta * delta))
    return None


def test_printed_constants():
    for n, delta, m, eps1, most in (
        (5000, 2.5e-7, 7, 5.168046, 583.424647),
        (4296, E28 / 4, 15, 4.228293, 2146.993441),
        (500_000, E28 / 4, 7, 9.789991, 980.590351),
    ):
        assert paper_constants(n, 0.5, delta, 0.025) == (
            m,
            pytest.approx(eps1, rel=1e-6),
            pytest.approx(most, rel=1e-6),
        )
    assert paper_constants(1000, 0.5, 2.5e-7, 0.025)[2] == pytest.approx(1026.028369)
    assert paper_constants(300, 0.5, 2.5e-7, 0.025) is None


def test_corrected_constants():
    delta = 1e-6 / (2 * (1 + math.e))
    for n, m, eps1, most in (
        (1000, 5, 4.057077, 454.593494),
        (5000, 4, 5.875020, 356.534202),
        (20_000, 3, None, 260.496281),
    ):
        found = constants_of(n, 0.5, delta, 0.025, discrete=False)
        assert found.m == m and found.most == pytest.approx(most, rel=1e-6)
        assert eps1 is None or found.eps1 == pytest.approx(eps1, rel=1e-6)
        assert found.eps2 == 0.25
        rounded = constants_of(n, 0.5, delta, 0.025)
        assert rounded.m >= m and rounded.most > most


def minimum(epsilon, delta, discrete):
    """Linear search: every larger number is checked on its own."""
    budget = epsilon / 2, delta / (2 * (1 + math.exp(epsilon))), 0.025
    for n in range(4, 5000):
        found = constants_of(n, *budget, discrete=discrete)
        if found is not None and n >= 2 * found.most + 2:
            return n
    return None


@pytest.mark.parametrize(
    ("epsilon", "delta", "expected"),
    [
        (0.5, 1e-5, 1610),
        (0.5, 1e-6, 1794),
        (1, 1e-5, 820),
        (1, 1e-6, 912),
        (1, 1e-8, 1332),
        (1, E28, 2425),
        (2, 1e-6, 473),
        (4, 1e-6, 257),
    ],
)
def test_least_number_of_tuples(epsilon, delta, expected):
    assert minimum(epsilon, delta, discrete=False) == expected
    least = least_tuples(epsilon, delta)
    assert expected < least <= 1.1 * expected + 10
    assert partition.inner_constants(least, epsilon, delta, 0.05) is not None
    assert partition.inner_constants(least - 1, epsilon, delta, 0.05) is None


def test_gaussian_calibration_is_the_analytic_one():
    assert accounting.gaussian_sigma(1.0, 1e-6) == pytest.approx(4.224679, rel=1e-6)
    assert accounting.gaussian_sigma(0.25, 2.5e-7) == pytest.approx(16.59395, rel=1e-6)
    assert 4 * math.sqrt(2 * math.log(1.25 / 2.5e-7)) == pytest.approx(22.217073, rel=1e-6)


def test_the_status_is_private_on_every_number_of_bad_tuples():
    """easy_instances:B4, exactly: b against b + 1 tuples far outside, hypergeometric sums."""

    def success(t, bad, found):
        # Bad proposals never pass; a good one has `bad` tuples against it.
        scale = found.m / found.eps2
        passing = stats.laplace.cdf((found.passing - bad) / scale)
        good = t - bad
        drawn = np.arange(found.m + 1)
        with np.errstate(divide="ignore"):
            weight = stats.hypergeom.pmf(drawn, t, good, found.m)
        chance = [
            stats.binom.pmf(np.arange(g + 1), g, passing)
            @ stats.laplace.sf((found.quorum - np.arange(g + 1)) * found.eps1)
            for g in drawn
        ]
        return float(weight @ chance)

    for t in (1000, 2000, 5000):
        found = constants_of(t, 0.5, 1e-7, 0.025)
        chances = np.array([success(t, bad, found) for bad in range(0, 160)])
        for side in (chances, 1 - chances):
            assert np.abs(np.diff(np.log(side))).max() <= 0.25  # half of epsilon is enough


def test_success_without_nearly_partitioning_balls_is_within_delta():
    """3.3, exactly, for any proposals: some with a little more than `most` against them."""
    for t in (1000, 5000):
        delta = 1e-6
        found = constants_of(t, 0.5, delta, 0.025)
        scale = found.m / found.eps2
        slip = stats.laplace.cdf((found.passing - found.most) / scale)
        none = stats.laplace.sf(found.quorum * found.eps1)
        assert found.m * slip <= delta / 2 and none <= delta / 2
        rough = constants_of(t, 0.5, delta, 0.025, discrete=False)
        assert stats.laplace.cdf((rough.passing - found.most) / scale) < slip * 2


# -- the predicate (easy_instances:A7,A8) -----------------------------------------------------


def brute_force(tuples, proposal, separation):
    gaps = [
        min(np.linalg.norm(a - b) for j, b in enumerate(proposal) if i != j)
        for i, a in enumerate(proposal)
    ]
    if min(gaps) == 0:
        return len(tuples)
    bad = 0
    for each in tuples:
        inside = np.array(
            [
                [np.linalg.norm(a - c) * separation <= gap for a in each]
                for c, gap in zip(proposal, gaps, strict=True)
            ]
        )
        bad += not np.all(inside.sum(axis=1) == 1)
    return bad


def test_predicate_equals_its_definition():
    rng = np.random.default_rng(0)
    for k, d in ((2, 1), (3, 2), (5, 3)):
        centers = rng.integers(-10_000, 10_000, size=(k, d))
        tuples = centers + rng.integers(-900, 900, size=(80, k, d))
        tuples = np.stack([rng.permutation(each) for each in tuples]).astype(float)
        for each in tuples[:10]:
            found = unpartitioned(tuples, each, 7.0)
            assert found == brute_force(tuples, each, 7.0)
            shuffled = np.stack([rng.permutation(other) for other in tuples])
            assert unpartitioned(shuffled, rng.permutation(each), 7.0) == found
            assert unpartitioned(1024 * tuples, 1024 * each, 7.0) == found
            assert unpartitioned(each[None], each, 7.0) == 0


def test_coincident_points_partition_nothing():
    """easy_instances:A7: tuples are {p, q}, one is {p, p}; null tuples partition nothing, too."""
    p, q = [0.0, 0.0], [1000.0, 0.0]
    tuples = np.array([[p, q]] * 99 + [[p, p]])
    assert unpartitioned(tuples, tuples[-1], 7.0) == 100
    assert unpartitioned(tuples, tuples[0], 7.0) == 1
    assert unpartitioned(tuples, np.full((2, 2), np.nan), 7.0) == 100
    tuples[5] = np.nan
    assert unpartitioned(tuples, tuples[0], 7.0) == 2


def test_a_separation_of_three_is_not_enough_and_six_is_refused():
    """easy_instances:A8: balls [-1, 1] and [2.1, 4.1], tuples {-1, 2.1} and {1, 4.1}."""
    one, two = np.array([[-1.0], [2.1]]), np.array([[1.0], [4.1]])
    nearest = np.abs(two - one.T).argmin(axis=1)
    assert nearest.tolist() == [1, 1]  # not a bijection, although the balls are 3.1-far
    for separation in (3.1, 6.0):
        with pytest.raises(ValueError, match="separation"):
            released(step_of(), np.zeros((5000, 2, 1)), separation)


def test_public_limits_are_checked():
    for name, shape in (("n_tuples", (500, 2, 1)), ("n_clusters", (5000, 1, 1))):
        with pytest.raises(ValueError, match=name):
            released(step_of(), np.zeros(shape))


# -- the test (easy_instances:B1,B2,B3,B11) --------------------------------------------------


def success_rate(tuples, runs, found, separation=7.0):
    good = 0
    for seed in range(runs):
        step = step_of(seed)
        good += partition.test_partition(step, tuples, separation, found) is not None
    return good


def expected_rate(found, beta, bad=0.0, share=0.0):
    passing = (1 - share) * stats.laplace.cdf((found.passing - bad) * found.eps2 / found.m)
    s = np.arange(found.m + 1)
    return float(
        stats.binom.pmf(s, found.m, passing)
        @ stats.laplace.sf((found.m - s) * found.eps1 - math.log(1 / beta))
    )


@pytest.mark.slow
def test_success_on_partitioned_and_contaminated_tuples():
    """Exact chances .9759 and, with 1% of strangers, about .87; binomial tests, 200 runs each.

    False alarm below 1e-6 each; a chance that is off by .1 would be found surely.
    """
    rng = np.random.default_rng(2)
    tuples = corners(1500, rng)
    found = constants_of(1500, 0.5, 1e-6 / (2 * (1 + math.e)), 0.025)
    chance = expected_rate(found, 0.025)
    assert chance > 0.97
    assert stats.binomtest(success_rate(tuples, 200, found), 200, chance).pvalue > 1e-6
    strangers = 15
    tuples[:strangers] = rng.uniform(-1e5, 1e5, size=(strangers, 3, 2))
    chance = expected_rate(found, 0.025, strangers, strangers / 1500)
    assert stats.binomtest(success_rate(tuples, 200, found), 200, chance).pvalue > 1e-6


def test_what_is_drawn_and_at_which_scale():
    rng = np.random.default_rng(4)
    for tuples in (corners(1500, rng), np.rint(1000 * rng.normal(size=(1500, 3, 2)))):
        with trace(Trace()) as recording:
            session = rich_session()
            step = open_step(session, "tuples", epsilon=1.0, delta=1e-6)
            found = released(step, tuples, answer=lambda *others: others)
        kinds = [event.kind for event in recording.events]
        assert kinds == ["seed", "step", "sample", "inner_laplace", "inner_laplace", "condition"]
        constants = constants_of(1500, 0.5, answer_budget(1.0, 1e-6)[0], 0.025)
        scores, total = (e for e in recording.events if e.kind == "inner_laplace")
        assert len(scores.value) == constants.m and np.ndim(total.value) == 0
        assert scores.scale == pytest.approx(constants.m / constants.eps2 * 2**20)
        assert total.scale == pytest.approx(2**20 / constants.eps1)
        assert (found is None) == (tuples.max() < 50_000)


def test_a_proposal_decides_about_itself_only():
    """s moves by at most 1 when a proposal changes, l_X by at most 1 when a tuple does."""
    rng = np.random.default_rng(5)
    tuples = corners(60, rng, spread=2.0)
    found = constants_of(1000, 0.5, 1e-7, 0.025)
    for _ in range(20):
        other, new = tuples.copy(), rng.integers(-1e5, 1e5, size=(3, 2)).astype(float)
        other[0] = new
        with trace(Trace()) as recording:
            close_tuples(step_of(1), tuples[:10], tuples, 7.0, found)
            close_tuples(step_of(1), tuples[:10], other, 7.0, found)
            close_tuples(step_of(1), other[:10], tuples, 7.0, found)
        scores, sums = (
            [e.value for e in recording.events if e.kind == "inner_laplace"][i::2] for i in (0, 1)
        )
        assert np.abs(scores[0] - scores[1]).max() <= 2**20
        assert abs(int(sums[0]) - int(sums[2])) <= 2**20
