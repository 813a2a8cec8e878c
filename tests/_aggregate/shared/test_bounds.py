"""Bounds of the rows: the public ones cost nothing, others are paid for, and none is said so."""

import math

import numpy as np
import pytest

from sklearn_dp import (
    DPPCA,
    DPGaussianMixture,
    DPKMeans,
    DPOneCluster,
    FriendlyCovariance,
    FriendlyMean,
)
from sklearn_dp._aggregate.shared import bounds
from sklearn_dp._aggregate.shared.bounds import (
    NO_BOUND,
    ball_of,
    clipped_in_words,
    is_ok,
    known_or_paid,
    more_beyond,
    squares_outside,
    upper_bound_outside,
)
from sklearn_dp._aggregate.shared.table import Table
from sklearn_dp._privacy._aggregates import NoisyNorms, radius_from_bins
from sklearn_dp._privacy._budget import PrivacyBudget
from sklearn_dp._privacy._domain import Domain
from sklearn_dp._privacy._plan import PlanEntry, PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._units import Units
from sklearn_dp.exceptions import UtilityWarning
from sklearn_dp.preprocessing import DPStandardScaler

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)
RNG = np.random.default_rng(0)


def open_session(rho=1.0):
    plan = PrivacyPlan(
        PrivacyBudget(rho=1.01 * rho, delta=1e-6), (PlanEntry("bound", "gaussian", rho),)
    )
    return PrivacySession(plan, random_state=0)


def test_a_public_domain_is_taken_as_it_is_and_nothing_is_spent():
    session, domain = open_session(), Domain.from_bounds(3.0, 2)
    table = Table.in_memory(np.ones((9, 2)), Units(9))
    assert known_or_paid(session, "bound", table, domain) == (domain, "ok", None)
    assert session.spent == 0


def test_one_bin_of_noise_is_not_where_most_rows_are():
    """Rows of which no bin stands out may lie far beyond one that does."""
    rng, edges = np.random.default_rng(0), np.append(0.0, 2.0 ** (np.arange(-200, 201) / 2))
    for noise_bin in (3, 100, 170):
        counts = rng.normal(0.0, 50.0, 401)
        counts[noise_bin], counts[196:201] = 230.0, 160.0
        norms = NoisyNorms(counts, edges, 50.0)
        assert radius_from_bins(*norms, 0.99) == edges[noise_bin + 1]
        for most in (8.0, math.inf):
            assert more_beyond(norms, edges[noise_bin + 1], most)
            assert not more_beyond(norms, edges[201], most)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_a_paid_radius_holds_nearly_all_rows_at_any_scale(scale):
    X, session = scale * RNG.normal(size=(5000, 3)), open_session()
    table = Table.in_memory(X, Units(5000))
    domain, status, found = known_or_paid(session, "bound", table, None)
    norms = np.linalg.norm(X, axis=1)
    assert status == "ok"
    assert np.mean(norms <= domain.radius) > 0.97
    assert domain.radius < 2 * norms.max()
    assert abs(found.counts.sum() - 5000) < 7 * np.sqrt(len(found.counts)) * found.sd
    assert session.spent == pytest.approx(1.0)


def test_where_nothing_is_seen_it_is_the_unit_ball_and_the_status_says_so():
    table = Table.in_memory(np.ones((3, 2)), Units(3))
    domain, status, _ = known_or_paid(open_session(1e-4), "bound", table, None)
    assert (domain.radius, status) == (1.0, NO_BOUND)
    assert ball_of(None, 4)[1] == NO_BOUND
    assert ball_of(7.0, 4)[0].radius == 7.0


@pytest.mark.parametrize(
    "model",
    [DPKMeans(2), DPOneCluster()],
    ids=lambda model: type(model).__name__,
)
def test_estimators_say_it_in_the_same_words(model):
    model.set_params(epsilon=1e-3, random_state=0)
    with pytest.warns(UtilityWarning):
        assert model.fit(np.ones((5, 2))).status_ == NO_BOUND


@pytest.mark.parametrize(
    "model",
    [
        DPGaussianMixture(2),
        DPKMeans(2),
        DPOneCluster(),
        DPPCA(1),
        DPStandardScaler(),
        FriendlyCovariance(),
        FriendlyMean(),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("scale", [1e150, 1e300])
def test_no_fit_says_ok_of_rows_beyond_the_largest_radius(model, scale):
    rows = scale * (1 + np.random.default_rng(0).normal(size=(5000, 2)))
    model.set_params(random_state=0).fit(rows)
    assert not model.trustworthy_
    assert not is_ok(model.status_)


EDGES = np.concatenate([[0.0], 2.0 ** (-100 + np.arange(401) / 2)])
SIZE_SD = 40.0


def noisy(counts, sd, rng):
    return NoisyNorms(counts + np.round(sd * rng.normal(size=len(counts))), EDGES, sd)


def largest_sum(rng, n_draws):
    """Of the standardized sums over all windows that the bound looks at, in each draw."""
    z = rng.normal(size=(n_draws, 400))
    total = np.concatenate([np.zeros((n_draws, 1)), np.cumsum(z, axis=1)], axis=1)
    return np.max(
        [
            ((total[:, length:] - total[:, :-length]) / math.sqrt(length)).max(axis=1)
            for length in bounds._WINDOWS
        ],
        axis=0,
    )


def test_the_margin_is_the_quantile_of_the_largest_sum():
    """2,000 draws: 95% has a standard error of .5%; a margin of 3.4 is passed by 12%."""
    passed = np.mean(largest_sum(np.random.default_rng(0), 2000) > bounds._MARGIN)
    assert 0.03 < passed < 0.07


def worst_radius(norms, counts, size):
    """Whether the bound fails anywhere: at each of the edges."""
    true = counts.sum() - np.concatenate([[0], np.cumsum(counts)])
    return any(
        upper_bound_outside(norms, edge, size, SIZE_SD) < left
        for edge, left in zip(EDGES[200:230], true[200:230], strict=True)
    )


@pytest.mark.parametrize("known", [True, False])
def test_it_holds_at_all_radii_at_once(known):
    """300 draws: at most 5% fail at any of 30 radii; 10% would be five standard errors."""
    rng, failed = np.random.default_rng(1), 0
    counts = np.zeros(401)
    counts[205:214] = [50, 400, 3000, 9000, 15_000, 12_000, 3000, 100, 5]
    counts[220:224] = [10, 10, 10, 8]  # far out, fewer than the noise of a bin
    for _ in range(300):
        size = counts.sum() + SIZE_SD * rng.normal() if known else math.inf
        norms = noisy(counts, 19.0, rng)
        if known:
            failed += worst_radius(norms, counts, size)
        else:
            true = counts[::-1].cumsum()[::-1]
            found = [
                upper_bound_outside(norms, edge, math.inf, math.inf) for edge in EDGES[200:230]
            ]
            failed += bool((np.array(found) < true[200:230]).any())
    assert failed <= 27


def test_a_plain_count_would_repeat_the_rule_that_chose_the_radius():
    """Noise that hides rows draws the radius in: the plain count is too low in most draws."""
    rng, low, held = np.random.default_rng(2), 0, 0
    counts = np.zeros(401)
    counts[205:214] = [50, 400, 3000, 9000, 15_000, 12_000, 3000, 100, 60]
    for _ in range(200):
        norms = noisy(counts, 19.0, rng)
        radius = radius_from_bins(norms.counts, EDGES, 19.0, 0.99)
        place = int(np.searchsorted(EDGES, radius))
        true = counts[place:].sum()
        seen = np.where(norms.counts > 4 * 19.0, norms.counts, 0)[place:].sum()
        low += seen < true
        held += (
            upper_bound_outside(norms, radius, counts.sum() + SIZE_SD * rng.normal(), SIZE_SD)
            >= true
        )
    assert low > 20 and held >= 185


def test_bins_beyond_the_radius_add_no_noise_and_nobody_is_nowhere():
    counts = np.zeros(401)
    counts[200:210] = 1000.0
    norms = NoisyNorms(counts, EDGES, 19.0)
    assert upper_bound_outside(norms, EDGES[210], 10_000.0, 40.0) < 400
    assert upper_bound_outside(norms, EDGES[100], 10_000.0, 40.0) == pytest.approx(10_148, abs=1)
    assert upper_bound_outside(norms, 0.0, 10_000.0, 40.0) == pytest.approx(10_148, abs=1)
    assert upper_bound_outside(norms, EDGES[210], 9000.0, 0.0) == 0.0
    # Between two edges, the rows of that bin may be beyond.
    between = math.sqrt(EDGES[208] * EDGES[209])
    assert upper_bound_outside(norms, between, 10_000.0, 40.0) > 2000
    # And those of the last bin beyond its end.
    counts[[209, 400]] = 0.0, 1000.0
    assert upper_bound_outside(norms, EDGES[401], 10_000.0, 40.0) > 1000


def far(rng, epsilon_sd, n_far):
    counts = np.zeros(401)
    counts[205:212] = [400, 3000, 9000, 15_000, 12_000, 3000, 1000]
    counts[220:224] = n_far / 4
    return noisy(counts, epsilon_sd, rng)


def test_squares_outside_by_hand():
    """Edges 0, 1, 2, 4, 8: about radius 2, ten rows of the next bin exceed 4 by 6 each; those of
    the last one count where they stand out from the noise, and not what is inside."""
    edges, nothing = np.array([0.0, 1.0, 2.0, 4.0, 8.0]), np.zeros(4)
    counts, few = np.array([50.0, 90.0, 10.0, 4.0]), np.array([50.0, 90.0, 10.0, 7.0])

    def found(counts, sd, first=nothing, shift=0.0, farthest=(np.inf, np.inf)):
        return squares_outside(
            NoisyNorms(counts, edges, sd), 2.0, NoisyNorms(first, edges, sd), shift, farthest
        )

    noise = 1.5 * 2.0 * 6  # of the one bin that begins below twice the radius
    assert found(counts, 0.0) == 10 * 6 + 4 * 36
    assert found(few, 2.0) == pytest.approx(10 * 6 + noise)
    assert found(-counts, 2.0) == pytest.approx(noise)
    # Rows that have been moved inward are seen before; not if they may be no farther out.
    assert found(counts, 2.0, first=np.array([0.0, 0.0, 0.0, 9.0])) == 60 + 9 * 36 + noise
    assert found(counts, 2.0, first=np.array([0.0, 0.0, 0.0, 9.0]), shift=1.0) == 60 + noise
    # No row is there: noise.
    assert found(counts, 0.0, farthest=(3.9, np.inf)) == 60
    past = np.array([0.0, 0.0, 0.0, 9.0])
    assert found(counts, 2.0, first=past, farthest=(np.inf, 3.9)) == 60 + noise


def test_rows_far_out_are_told_where_they_stand_out_of_the_noise_and_cost_much():
    rng, inertia, radius = np.random.default_rng(3), 5e6, EDGES[212]
    told = [clipped_in_words("ok", far(rng, 2.0, 40), radius, inertia) for _ in range(20)]
    assert all(words.startswith("rows far out: at least") for words in told)
    assert clipped_in_words("ok", far(rng, 2.0, 40), radius, 1e9) == "ok"
    assert clipped_in_words("lost", far(rng, 2.0, 40), radius, inertia) == "lost"
    # Not with more noise: nobody can know. And next to never where there are none: 300 draws.
    told = [clipped_in_words("ok", far(rng, 20.0, 40), radius, inertia) for _ in range(100)]
    assert told.count("ok") >= 98
    told = [clipped_in_words("ok", far(rng, 20.0, 0), radius, 0.0) for _ in range(300)]
    assert told.count("ok") >= 294
