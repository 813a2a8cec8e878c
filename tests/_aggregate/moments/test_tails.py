"""Clips of the last round: what counts of distances tell, and what is made of them."""

import numpy as np
import pytest
from scipy.special import chdtr

from sklearn_dp import FriendlyCovariance
from sklearn_dp._aggregate.moments import tails
from sklearn_dp._aggregate.moments.ellipsoid import (
    normal_quantile,
)


def edges_of(d):
    near = np.sqrt([normal_quantile(q, d) for q in tails._QUANTILES])
    return np.concatenate([[0.0], near, near[-1] * 2.0 ** (np.arange(1, 9) / 2)])


@pytest.mark.parametrize("d", [1, 4, 20])
@pytest.mark.parametrize("scale", [0.8, 1.0, 1.3])
def test_a_normal_law_of_any_scale_is_normal_and_its_tails_are_not(d, scale):
    """Expected counts of 20,000 rows: of the normal law, and with 3% of them twice as far out."""
    edges = edges_of(d)
    near, far = (20000 * np.diff(chdtr(d, np.square(edges) / s**2)) for s in (scale, 3 * scale))
    assert tails._normal(near, edges, 25.0, d) and abs(tails._heavier(near, edges, 25.0, d)) < 1e-6
    assert not tails._normal(0.95 * near + 0.05 * far, edges, 25.0, d)


def skewed(rng, n):
    """A normal column, a lognormal one, one with 80% zeros; their means and variances."""
    zeros = rng.exponential(size=n) * (rng.random(n) < 0.2)
    columns = 45 + 15 * rng.normal(size=n), rng.lognormal(10.0, 0.8, n), zeros
    grown = np.exp(0.64)
    means = np.array([45.0, np.exp(10.32), 0.2])
    return np.column_stack(columns), means, np.array([225.0, (grown - 1) * means[1] ** 2, 0.36])


@pytest.mark.slow
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
        told += not model.trustworthy_
    assert held >= 103 and told <= 14
    assert (np.abs(np.median(off, axis=0)) < 1).all()


@pytest.mark.slow
@pytest.mark.parametrize("law", ["normal", "lognormal"])
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
