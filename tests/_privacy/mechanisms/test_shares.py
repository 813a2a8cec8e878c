"""Noise in shares: the law of their sum, its scale, and what the session makes of it."""

import math

import numpy as np
import pytest
from kernel_tools import sealed
from scipy.stats import kstest, norm

from sklearn_dp._costs.accounting import gaussian_epsilon
from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.plan import PlanEntry, PlanError, PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp._privacy.mechanisms.shares import (
    LEAST_SHARE,
    MOST_SHARES,
    SHARES_DELTA,
    NoiseShares,
    release_shared,
    share_scale,
)
from sklearn_dp.audit._replay import Replay

RHO = 0.1


def rounded(sigma, reach):
    """Probabilities of round(sigma Z) on -reach, ..., reach."""
    edges = (np.arange(-reach, reach + 2) - 0.5) / sigma
    upper = norm.sf(np.abs(edges))  # differences of tails, so that small ones are exact
    cell = np.where(edges[:-1] >= 0, upper[:-1] - upper[1:], upper[1:] - upper[:-1])
    cell[reach] = 1 - 2 * upper[reach]
    return cell


def smoothed(sigma, n, reach):
    """The same of round(sqrt(n) sigma Z + U_1 + ... + U_(n-1)), by integration over the sum of U.

    The density of the sum of the U is a spline of degree n - 2: Gauss-Legendre on its pieces.
    """
    nodes, weights = np.polynomial.legendre.leggauss(24)
    total = np.zeros(2 * reach + 1)
    knots = np.arange(n) - (n - 1) / 2
    for low in knots[:-1]:
        x = low + (nodes + 1) / 2
        above = x + (n - 1) / 2 - np.arange(n)[:, None]
        signs = [(-1) ** j * math.comb(n - 1, j) for j in range(n)]
        density = signs @ np.where(above > 0, above ** (n - 2.0), 0.0) / math.factorial(n - 2)
        edges = np.arange(-reach, reach + 2) - 0.5
        cdf = norm.cdf((edges[:, None] - x) / (math.sqrt(n) * sigma))
        total += np.diff(cdf, axis=0) @ (density * weights / 2)
    return total


def bound(sigma, n, t=40.0):
    """Of the distance of the sum of `n` shares from rounded ideal noise: the end of the proof."""
    e = 3 * math.exp(-((math.pi * sigma) ** 2) / 2)
    return (2 * (t * math.sqrt(n) * sigma + n) + 1) * (n + 1) * e + 2 * math.exp(-(t**2) / 2)


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("sigma", [1.0, 1.5, 2.0])
def test_a_sum_of_shares_is_nearly_post_processing_of_one_gaussian(n, sigma):
    """The distance is below the bound, and of the order of exp(-pi^2 sigma^2 / 2)."""
    reach = math.ceil(12 * math.sqrt(n) * sigma) + n
    one = rounded(sigma, reach)
    law = one
    for _ in range(n - 1):
        law = np.convolve(law, one)
    middle = len(law) // 2
    law = law[middle - reach : middle + reach + 1]
    distance = np.abs(law - smoothed(sigma, n, reach)).sum() / 2
    assert distance <= min(bound(sigma, n), 3 * math.exp(-((math.pi * sigma) ** 2) / 2))
    # Nor is it the law of one rounded Gaussian of the same variance: taking one theorem for the
    # other is what would be wrong.
    apart = np.abs(law - rounded(math.sqrt(n) * sigma, reach)).sum() / 2
    assert apart > max(30 * distance, 1e-3)


@pytest.mark.parametrize("sensitivity", [1e-6, 1.0, np.array([3.0, 4.0, 1e6]), 2.0**40])
@pytest.mark.parametrize("n", [1, 2, 7, 1000, 2**20])
def test_shares_add_up_to_the_noise_that_is_needed(sensitivity, n):
    scale = share_scale(sensitivity, RHO, n)
    need = np.asarray(sensitivity) / math.sqrt(2 * RHO) * 2.0**scale.bits
    assert np.all(scale.sigma * math.sqrt(n) >= need)
    assert scale.sigma * math.sqrt(n) == pytest.approx(need, rel=1e-14)
    assert np.min(scale.sigma) >= LEAST_SHARE
    assert scale.bits == 0 or np.min(scale.sigma) < 2 * LEAST_SHARE  # no finer than needed


# -- releases --------------------------------------------------------------------------------------


def session_of(uses=1, seed=0, delta=SHARES_DELTA):
    plan = PrivacyPlan(
        PrivacyBudget(rho=uses * RHO, delta=1e-6),
        (PlanEntry("a", "gaussian", uses * RHO, uses * delta, uses=uses),),
    )
    return PrivacySession(plan, random_state=seed)


def released(total, given=None, n_honest=3, **options):
    answer = sealed(total, 2.0, unit=0.5)
    return release_shared(session_of(), "a", answer, n_honest=n_honest, given=given, **options)


def test_a_release_has_the_noise_that_its_cost_asks_for():
    """Drawn by the session, or by the clients: the same law. 4000 numbers: 1% in the scale."""
    need = 2.0 * 0.5 / math.sqrt(2 * RHO)
    drawn = released(np.full(4000, 10))
    scale = share_scale(2.0, RHO, 3)
    shares = sum(NoiseShares(5, name).draw("a", 0, scale.sigma, (4000,)) for name in range(4))
    sent = released((np.full(4000, 10) << scale.bits) + shares, given=4)
    for output, variance in ((drawn, 1.0), (sent, 4 / 3)):
        assert np.mean(output) == pytest.approx(5.0, abs=6 * need / 60)
        assert np.std(output) == pytest.approx(need * math.sqrt(variance), rel=0.07)
        noise = (output - 5.0) / (need * math.sqrt(variance))
        assert kstest(noise, "norm").pvalue > 1e-6


@pytest.mark.parametrize("n", [1, 3, 10**7, MOST_SHARES])
def test_shares_that_nobody_sends_are_drawn_in_one(n):
    """The work does not grow with their number: at 10**7 it was a minute. The noise stays."""
    need = 2.0 * 0.5 / math.sqrt(2 * RHO)
    fine = 2.0 ** -share_scale(2.0, RHO, n).bits * 0.5
    with trace(Trace()) as recorder:
        noise = released(np.zeros(4000, dtype=int), n_honest=n)
    sigma = float(next(event for event in recorder.events if event.kind == "gaussian").scale)
    assert sigma * fine >= need and sigma * fine == pytest.approx(need, rel=1e-12)
    assert kstest(noise / need, "norm").pvalue > 1e-6
    assert kstest(noise / (0.7 * need), "norm").pvalue < 1e-6


@pytest.mark.parametrize("given", [0, 1, 3])
def test_fewer_shares_than_are_counted_on_release_nothing(given):
    """Three honest ones besides the one whose data differ: four at the least."""
    with pytest.raises(RuntimeError, match="n_honest=3"):
        released(np.zeros(2, dtype=int), given=given)


def test_delta_is_in_the_plan():
    with pytest.raises(PlanError, match="delta"):
        release_shared(session_of(delta=0.0), "a", sealed([0], 1.0), n_honest=1)
    session = session_of(uses=2)
    for _ in range(2):
        release_shared(session, "a", sealed([0, 0, 0], 1.0), n_honest=2, rho=RHO)
    report = session.report()
    assert [row["delta"] for row in report.releases] == [SHARES_DELTA] * 2
    assert session.plan.gaussian and session.plan.delta_failure == 2 * SHARES_DELTA
    exact = gaussian_epsilon(math.sqrt(4 * RHO), 1e-6)
    assert exact <= session.plan.epsilon <= exact * (1 + 1e-9)
    # What the table says is what protects: sensitivity over sigma is mu.
    assert report.releases[0]["sensitivity"] / report.releases[0]["sigma"] == pytest.approx(
        math.sqrt(2 * RHO)
    )


def test_an_audit_sees_the_exact_sum_behind_the_shares():
    """And couples the shares of neighbors, so that what is left is the difference of the data."""
    scale = share_scale(2.0, RHO, 2)

    def fit(values, seed):
        total = sum(
            (np.array([value]) << scale.bits) + NoiseShares(seed, j).draw("a", 0, scale.sigma, (1,))
            for j, value in enumerate(values)
        )
        return release_shared(session_of(), "a", sealed(total, 2.0), n_honest=2, given=3)

    with trace(Trace()) as recorder:
        output = fit([5, 0, 7], 1)
    assert int(recorder.events[-1].value[0]) == 12 << scale.bits
    for last, passes in ((9, True), (5, True), (10, False)):
        replay = Replay(recorder.events, np.arange(3))
        with trace(replay):
            assert fit([5, 0, last], 2) == output
        assert (replay.finish() == []) is passes
        assert replay.ratios["a"] == abs(last - 7) / 2
