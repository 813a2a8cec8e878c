"""Clips of the last round: what counts of distances tell, and what is made of them."""

import math
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import chdtr

from sklearn_dp import DPGaussianMixture, FriendlyCovariance
from sklearn_dp._aggregate.moments import tails
from sklearn_dp._aggregate.moments.ellipsoid import (
    WEIGHT_STEPS,
    Ellipsoid,
    normal_quantile,
)
from sklearn_dp._aggregate.moments.moment_releases import WEIGHTS, exact_moments
from sklearn_dp._aggregate.shared.rows import ROWS, Rows
from sklearn_dp._aggregate.shared.table import ArraySource, Part
from sklearn_dp._privacy._domain import Domain
from sklearn_dp._privacy._units import Units

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.UtilityWarning"),
]


def edges_of(d):
    near = np.sqrt([normal_quantile(q, d) for q in tails._QUANTILES])
    return np.concatenate([[0.0], near, near[-1] * 2.0 ** (np.arange(1, 9) / 2)])


@pytest.mark.parametrize("groups", [None, np.repeat(np.arange(30), 2)])
def test_a_row_is_worth_one_and_the_same_whatever_stands_beside_it(groups):
    """Exact: counts are sums over units, each of at most one in all bins of all components."""
    rng = np.random.default_rng(0)
    X = 10.0 ** rng.uniform(-3, 3, size=(60, 1)) * rng.normal(size=(60, 3))
    centers = np.rint(4e6 * rng.normal(size=(3, 3)))
    parts = [Ellipsoid.ball(center, 2e6, 1.0, 1.0 + j) for j, center in enumerate(centers)]

    def counts(places):
        units = Units(len(X[places]), None if groups is None else groups[places])
        rows = Rows.quantize(X[places], Domain.from_bounds(3.0, 3))
        part = Part(ArraySource(X[places]), units, {ROWS: rows})
        return tails._distance_counts(part, parts, edges_of(3))[1][0]

    step = 1 if groups is None else 2
    single = [counts(slice(i, i + step)) for i in range(0, 60, step)]
    assert np.array_equal(counts(slice(None)), np.sum(single, axis=0))
    sums = np.array([one.sum() for one in single]) / WEIGHT_STEPS
    assert sums.max() <= 1 and sums.min() > 0.99


def test_weights_that_are_held_for_the_last_round_are_those_that_it_would_find():
    """Sums of moments with and without them; after these, none are held."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    parts = [Ellipsoid.ball(np.rint(4e6 * center), 3e6, 1.0, 2.0) for center in np.eye(3)]
    rows = Rows.quantize(X, Domain.from_bounds(3.0, 3))
    before = Part(ArraySource(X), Units(500), {ROWS: rows})
    held = tails._distance_counts(before, parts, edges_of(3))[0]
    assert len(np.unique(held[WEIGHTS])) > 100
    after, found = exact_moments(held, parts, (2.0, 2.0), "full")
    assert WEIGHTS not in after.state
    for one, other in zip(found, exact_moments(before, parts, (2.0, 2.0), "full")[1], strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("d", [1, 4, 20])
@pytest.mark.parametrize("scale", [0.8, 1.0, 1.3])
def test_a_normal_law_of_any_scale_is_normal_and_its_tails_are_not(d, scale):
    """Expected counts of 20,000 rows: of the normal law, and with 3% of them twice as far out."""
    edges = edges_of(d)
    near, far = (20000 * np.diff(chdtr(d, np.square(edges) / s**2)) for s in (scale, 3 * scale))
    assert tails._normal(near, edges, 25.0, d) and abs(tails._heavier(near, edges, 25.0, d)) < 1e-6
    assert not tails._normal(0.95 * near + 0.05 * far, edges, 25.0, d)


def test_bins_together_tell_a_tail_that_none_tells_alone():
    """Expected counts of 6000 rows of a normal column and a lognormal(.8) one, epsilon .5."""
    counts = np.array([3496.0, 1888, 409, 105, 68, 29, 19, -13, 11])
    edges = edges_of(2)[:10]
    assert tails._normal(counts, edges, 42.0, 2)
    assert tails._heavier(counts, edges, 42.0, 2) > 4
    assert abs(tails._heavier(counts[:2], edges[:3], 42.0, 2)) < 4  # fewer bins


def test_few_rows_are_not_counted():
    """Their counts would tell nothing: the moments get what they would have cost."""
    X = np.random.default_rng(0).normal(size=(500, 2))
    model = FriendlyCovariance(bounds=4.0, random_state=0).fit(X)  # columns without ends are lost
    made = [line["release"] for line in model.privacy_report_.releases]
    assert "component distances" not in made and "component moments" in made


def skewed(rng, n):
    """A normal column, a lognormal one, one with 80% zeros; their means and variances."""
    zeros = rng.exponential(size=n) * (rng.random(n) < 0.2)
    columns = 45 + 15 * rng.normal(size=n), rng.lognormal(10.0, 0.8, n), zeros
    grown = np.exp(0.64)
    means = np.array([45.0, np.exp(10.32), 0.2])
    return np.column_stack(columns), means, np.array([225.0, (grown - 1) * means[1] ** 2, 0.36])


@pytest.mark.parametrize("bounded", [False, True])
def test_intervals_of_skewed_columns_hold(bounded):
    """Of 40 fits of 10,000 rows and three columns each, at least 103 of 120 intervals of 95%.

    With intervals that hold 95% it fails once in 10^6 fits; a bias of 1.5 standard errors in one
    column holds 67% there, and fails nine times in ten. Without counts none of the lognormal ones
    holds, nor any variance of it.
    """
    held, off, told = 0, [], 0
    for seed in range(40):
        X, means, variances = skewed(np.random.default_rng(seed), 10_000)
        bounds = ([0, 0, 0], [200, 2e6, 20]) if bounded else None
        model = FriendlyCovariance(bounds=bounds, random_state=seed).fit(X)
        held += int((np.abs(model.location_ - means) < 1.96 * model.location_std_error_).sum())
        errors = np.diag(model.covariance_std_error_)
        off.append((np.diag(model.covariance_) - variances) / errors)
        told += not model.status_.startswith("ok")
    assert held >= 103 and told <= 14
    assert (np.abs(np.median(off, axis=0)) < 1).all()


def test_intervals_of_ages_and_salaries_of_few_rows_hold():
    """Of 60 fits of 2,000 rows, at least 41 intervals of the salary's mean, and of its variance.

    They hold nine times in ten, and 41 of them then all but once in 10^6. With the clip of a normal
    law wherever counts do not rule one out, half of them hold, and 41 once in sixty.
    """
    held, bounds = np.zeros(2), ([15.0, 0.0], [95.0, 5e5])
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X = np.column_stack([rng.normal(45, 15, 2000), rng.lognormal(10.3, 0.8, 2000)])
        X = np.clip(X, *bounds)
        model = FriendlyCovariance(bounds=bounds, random_state=seed).fit(X)
        found = np.array([model.location_[1], model.covariance_[1, 1]])
        error = np.array([model.location_std_error_[1], model.covariance_std_error_[1, 1]])
        held += np.abs(found - [X[:, 1].mean(), X[:, 1].var()]) < 1.96 * error
    assert held.min() >= 41


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(
            FriendlyCovariance(),
            marks=pytest.mark.xfail(
                strict=True, reason="columns without bounds take a Pareto tail for a shorter one"
            ),
        ),
        DPGaussianMixture(1),
    ],
)
def test_tails_that_no_count_bounds_are_told(model):
    """Pareto(2): there is no variance. Normal rows have nothing to tell."""
    rng = np.random.default_rng(1)
    fitted = model.set_params(random_state=0).fit(1 + rng.pareto(2.0, size=(20_000, 2)))
    assert "long tails are clipped" in fitted.status_
    fitted = model.fit(rng.normal(size=(20_000, 2)))
    assert fitted.status_.startswith("ok") and "tails" not in fitted.status_


def test_rows_of_small_weight_far_out_are_in_the_error_of_a_mean():
    """Weights of 1 to 300, small for the rich: without bounds their clip is a bias of the mean."""
    off = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        rich = rng.random(20_000) < 0.3
        income = rng.lognormal(10 + 2 * rich, 0.5)
        X = np.column_stack([rng.normal(45, 15, 20_000), income])
        weights = np.round(300 ** np.clip(rng.normal(0.6 - 0.3 * rich, 0.2), 0, 1))
        model = FriendlyCovariance(max_weight=300, random_state=seed)
        model.fit(X, sample_weight=weights)
        mean = np.average(X, axis=0, weights=weights)
        off.append((model.location_ - mean) / model.location_std_error_)
    assert np.abs(off).max() < 4 and np.abs(np.median(off, axis=0)).max() < 2


def test_what_noise_may_hide_of_a_tail_is_in_the_error_of_a_mean():
    """As many rows as noise hides, and what counts show beyond a normal law."""
    edges = edges_of(3)
    normal = 2000 * np.diff(chdtr(3, np.square(edges)))
    radius, sd = float(edges[3]), 20.0
    blind = tails._unseen(2000.0, sd, radius)
    held = partial(tails._held, edges=edges, sd=sd, radius=radius, d=3)
    assert held(normal, near=2.0) == pytest.approx(0.0, abs=1e-6)
    assert tails._unseen(4000.0, sd, radius) == pytest.approx(blind / 2)
    assert tails._unseen(50.0, sd, radius) < tails._unseen(500.0, sd, radius) * 2
    wide = normal.copy()
    wide[5] += 100
    middle = (edges[5] + edges[6]) / 2
    more = tails._unseen(2000.0, sd, radius, held(wide, near=4.0)) - blind
    assert more == pytest.approx(0.7 * 100 * (middle - radius) / 2000, rel=0.2)
    # Beyond `near` they count where they stand out together, and not where noise may be all of it.
    beyond = tails._unseen(2000.0, sd, radius, held(wide, near=1.0)) - blind
    assert beyond == pytest.approx(more, rel=0.2)
    wide[5] -= 70
    assert held(wide, near=1.0) == pytest.approx(0.0, abs=1e-6)


def test_what_is_heavy_by_its_index_or_by_how_much_it_takes():
    """Rows beyond 3 in 1000: of index 4, 2 * 9 / 2 squares each, seven tenths of which
    count."""
    light = tails.reach_of(tails.PowerLaw(3.0, 10.0, 4.0, 1e9), 1000.0, 3.0, 3.0)
    assert light == pytest.approx((0.01, 0.063, False))
    assert tails.reach_of(tails.PowerLaw(3.0, 10.0, 2.9, 1e9), 1000.0, 3.0, 3.0).heavy
    assert tails.reach_of(tails.PowerLaw(3.0, 40.0, 4.0, 1e9), 1000.0, 3.0, 3.0).heavy


def test_what_noise_may_hide_of_a_tail_is_in_the_error_of_a_variance():
    """By hand: seven tenths of what as many rows as noise hides have, of the power law of index 3
    beyond 99% of a normal law: as many as r**-3 are beyond r, and the mean of r**2 is 3 start**2.
    """

    def found(size, radius=2.0, ball=1e12, number=1):
        parts = [Ellipsoid.ball(np.zeros(2), 1.0, 1.0, size)] * number
        return tails._unseen_squares(SimpleNamespace(ball=ball), parts, 20.0, radius, 2)

    start, hidden = math.sqrt(normal_quantile(0.99, 2)), 1.5 * math.sqrt(2) * 20
    assert found(2000.0) == pytest.approx(0.7 * hidden * (3 * start**2 - 4) / 2000)
    assert found(2000.0, 5.0) == pytest.approx(0.7 * hidden * 2 * 25 / 2000)
    assert found(200.0) == pytest.approx(0.7 * 0.1 * (3 * start**2 - 4))
    # No row is farther out than the ball; those of several components are others' rows.
    assert 0 < found(2000.0, ball=2.5) < 0.2 * found(2000.0) and found(2000.0, ball=1.5) == 0
    assert found(2000.0, number=2) == 0


@pytest.mark.parametrize(
    "law",
    [
        pytest.param(
            "normal",
            marks=pytest.mark.xfail(
                strict=True, reason="half of the tables are told of tails that noise may hide"
            ),
        ),
        "lognormal",
    ],
)
def test_no_variance_that_may_be_far_off_is_ok(law):
    """Of 20 fits of 1500 and of 6000 rows and an age: with a chance of 1% each, seven of 40 fail
    once in seven million. Of 20 normal tables of 6000 rows, 2% of which are complained of, seven
    do once in ten million. Without what noise may hide, half of the lognormal ones fail."""
    wrong = told = 0
    for seed in range(20):
        rng = np.random.default_rng([seed, 1])
        for n, epsilon in ((1500, 1.0), (6000, 0.5)):
            pay = rng.normal(size=n) if law == "normal" else rng.lognormal(0, 0.8, n)
            X = np.column_stack([rng.normal(45, 12, n).clip(0, 110), 2e4 * pay])
            bounds = ([0, -1e5 if law == "normal" else 0], [110, 1e6])
            model = FriendlyCovariance(epsilon=epsilon, bounds=bounds, random_state=seed).fit(X)
            found, true = np.diag(model.covariance_), X.var(axis=0)
            off, error = np.abs(found - true), np.diag(model.covariance_std_error_)
            far = (off > 0.25 * true) | (off > 3 * error)
            good = (model.column_status_ == "ok") & (model.status_ == "ok")
            wrong += bool(np.any(far & good))
            told += n == 6000 and not np.all(good)
    assert wrong <= 6
    assert law == "lognormal" or told <= 6


def test_a_long_tail_of_one_column_is_in_the_errors_of_its_mean():
    """Counts as released of a survey whose weights are large where incomes are small: no window of
    a few bins is clearly not normal, and the tail takes a fifth of a standard deviation."""
    edges = np.array([0, 1.18, 2.15, 3.03, 3.72, 5.26, 7.43, 10.51, 14.87, 21.03, 29.74])
    for counts in (
        np.array([1372.0, 958, 186, 49, 56, -13, 52, 25, 10, 7]),
        # Here bins next to the radius are empty by noise: it is a cluster far out.
        np.array([1351.0, 908, 202, 23, 31, -28, 48, 37, 37, 12]),
        np.array([1367.0, 966, 193, 3, 40, 13, 11, 7, 38, 49]),
    ):
        assert tails._normal(counts, edges, 22.5, 2)
        held = tails._held(counts, edges, 22.5, 2.15, 2.0, 2)
        assert tails._unseen(2700.0, 22.5, 2.15, held) > 0.1
