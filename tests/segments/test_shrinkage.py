"""Estimates of several segments, moved toward their mean or that of all rows, and common starts."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm

from sklearn_dp import DPBySegment, DPKMeans, FriendlyCovariance
from sklearn_dp._aggregate.kmeans import engine
from sklearn_dp.audit import replay_audit
from sklearn_dp.segments._shrinkage import (
    CommonStart,
    moved_covariances,
    moved_numbers,
    share_means,
    shrunk,
)


def test_by_hand():
    """Errors of 1, a variance of 10 - 1 between five segments: half of a tenth is given up."""
    values = np.array([0.0, 4.0, 8.0, 4.0, 4.0])[:, None] * np.sqrt(10 / 8)
    moved, errors = shrunk(values, np.ones((5, 1)))
    middle = 4 * np.sqrt(10 / 8)
    assert moved == pytest.approx(middle + (1 - 0.05) * (values - middle))
    doubt = np.square(0.05 * (values - middle))
    assert np.square(errors) == pytest.approx(0.95 + doubt + 0.05**2 * 10 / 5)


def test_what_a_clip_may_have_taken_is_no_noise():
    """It gives nothing up, and is a part of the error before and after."""
    values = np.array([0.0, 4.0, 8.0, 4.0, 4.0])[:, None]
    names = {"mean_std_error_": np.full(1, 5.0), "_clip_bias": np.full(1, 3.0)}
    models = [SimpleNamespace(mean_=value, **names) for value in values]
    share_means(models)
    moved, errors = shrunk(values, np.full((5, 1), 4.0))
    assert np.array([model.mean_ for model in models]) == pytest.approx(moved)
    found = np.array([model.mean_std_error_ for model in models])
    assert found == pytest.approx(np.hypot(errors, 3.0))


def test_numbers_toward_known_ones_by_hand():
    """Five of error 1, no farther apart than that: all of it, but for 2 of 5 degrees of freedom."""
    values = np.array([1.0, 3.0, 1.0, 3.0, 2.0])[:, None]
    moved, errors = moved_numbers(values, np.ones((5, 1)), np.full(1, 2.0), np.zeros(1))
    assert moved - 2 == pytest.approx(0.4 * (values - 2))
    assert np.square(errors) == pytest.approx(0.4 + 2 / 3 * np.square(0.6 * (values - 2)))


@pytest.mark.parametrize(("moved", "between"), [(1.0, 0.0), (2.0, 3.0)])
def test_how_far_segments_are_apart_by_hand(moved, between):
    """Two centers, 8 apart, have moved with errors of 1: what is more is between segments."""

    def model(centers, error):
        errors = np.full((2, 1), error)
        return SimpleNamespace(cluster_centers_=centers, cluster_centers_std_error_=errors)

    centers = np.array([[-4.0], [4.0]])
    start = CommonStart(model(centers, 0.0))
    assert start.misplaced() == 0
    start.learn(model(centers + moved, 1.0))
    expected = 2 * norm.cdf(-4 / np.sqrt(between)) if between else 0.0
    assert start.misplaced() == pytest.approx(expected)


@pytest.mark.parametrize("between", [0.0, 0.3, 3.0])
def test_errors_are_smaller_and_intervals_hold(between):
    """10,000 segments: coverage has a standard deviation of .0022; six of them are no chance."""
    rng = np.random.default_rng(0)
    sd = rng.uniform(0.3, 2, size=(20, 500))
    truth = 7 + between * rng.normal(size=sd.shape)
    seen = truth + sd * rng.normal(size=sd.shape)
    moved, errors = shrunk(seen, sd)
    held = (np.abs(moved - truth) < 1.96 * errors).mean()
    assert held > 0.93 - 0.013  # and more where all are alike, as that is not known
    assert np.square(moved - truth).mean() < np.square(seen - truth).mean()


def matrices(number, spread, rng, d=3):
    """Covariances whose logarithms scatter about that of a common one, which is returned too."""
    root = rng.normal(size=(d, d)) * [1.0, 100.0, 1e-3][:d]
    common = root.T @ root
    factor, found = np.linalg.cholesky(common), []
    for _ in range(number):
        noise = rng.normal(size=(d, d))
        scales, axes = np.linalg.eigh(spread * (noise + noise.T) / 2)
        found.append(factor @ (axes * np.exp(scales)) @ axes.T @ factor.T)
    return np.array(found), common


def relative_errors(values, truth):
    """Squared distances (S,) in coordinates where the true matrix is the identity."""
    inverse = np.linalg.inv(np.linalg.cholesky(truth))
    return np.square(inverse @ values @ inverse.swapaxes(1, 2) - np.eye(truth.shape[-1])).sum(
        (1, 2)
    )


def with_errors(values, size):
    """The standard errors of variances known within a part."""
    spread = np.diagonal(values, axis1=1, axis2=2)
    both = spread[:, :, None] * spread[:, None]
    return size * np.sqrt((both + values**2) / 2)


def test_what_is_all_noise_gets_the_common_matrix():
    rng = np.random.default_rng(0)
    truth, common = matrices(6, 0.1, rng)
    errors = with_errors(truth, 0.01)
    errors[0], errors[1] = np.inf, with_errors(truth, 0.7)[1]
    moved, after = moved_covariances(truth, errors, common, np.zeros((3, 3)))
    np.testing.assert_allclose(moved[:2], [common, common], rtol=1e-9)
    np.testing.assert_allclose(moved[2:], truth[2:], rtol=0.05)
    share = np.diagonal(after[:2], axis1=1, axis2=2) / np.diag(common)
    assert (share > 0.05).all() and (share < 0.3).all()  # as far as segments are apart
    nothing = moved_covariances(truth, np.full_like(errors, np.inf), common, np.zeros((3, 3)))
    np.testing.assert_allclose(nothing[0], [common] * 6, rtol=1e-9)
    assert np.isinf(nothing[1]).all()


def regions(n, number=12):
    """Rows of regions of two clusters that lie at nearly the same place, with their key."""
    rng = np.random.default_rng(2)
    region = np.repeat(np.arange(number), n)
    which = rng.random(len(region)) < 0.7
    X = np.where(which[:, None], -1.0, 1.0) + rng.normal(size=(len(region), 2)) * [0.2, 0.4]
    return np.c_[X + 0.01 * rng.normal(size=(number, 2))[region], region]


def test_covariances_of_small_regions():
    """Alone most of what is seen of 300 rows is noise, and the variances are twice too large."""
    rng, key = np.random.default_rng(0), np.repeat(np.arange(12), 300)
    truth = 0.2 * (np.eye(4) + 1)
    X = rng.multivariate_normal(np.zeros(4), truth, size=len(key))
    options, errors = {"values": range(12), "random_state": 0}, []
    for borrow in (True, False):
        inner = FriendlyCovariance(bounds=2.5)
        model = DPBySegment(inner, borrow=borrow, **options).fit(X, by=key)
        found = np.array([each.covariance_ for each in model.estimators_.values()])
        errors.append(np.sqrt(relative_errors(found, np.broadcast_to(truth, found.shape)).mean()))
        for fitted in model.estimators_.values():
            np.testing.assert_allclose(fitted.covariance_ @ fitted.precision_, np.eye(4), atol=1e-8)
            np.testing.assert_allclose(fitted.precision_, fitted.get_precision())
    assert errors[0] < 0.8 and errors[1] > 1.3 * errors[0]


def different_regions(number=6, n=3000):
    """Regions whose clusters lie two and a half widths from the common ones, with their key."""
    rng = np.random.default_rng(1)
    common = rng.uniform(-1, 1, size=(5, 4))
    centers = common + 0.3 * rng.normal(size=(number, 5, 4))
    region = np.repeat(np.arange(number), n)
    X = centers[region, rng.integers(5, size=len(region))]
    return np.c_[X + 0.12 * rng.normal(size=X.shape), region], centers


def test_regions_that_are_very_different_find_starts_of_their_own():
    """A start from the common centers leaves two clusters of some regions in one (cost 1.5)."""
    X, centers = different_regions()
    model = DPBySegment(DPKMeans(5, bounds=2.5), values=range(6), by=4, random_state=0).fit(X)
    for number in range(1, 6):
        distances = np.abs(
            centers[number][:, None] - model.estimators_[number].cluster_centers_
        ).max(axis=2)
        assert distances.min(axis=1).max() < 0.15


def test_replays_of_starts_of_their_own(monkeypatch):
    """With this budget the second region finds one, because of what the first one has shown."""
    found, own = [], engine._misleads

    def noted(*given):
        found.append(own(*given))
        return found[-1]

    monkeypatch.setattr(engine, "_misleads", noted)
    X, _ = different_regions(3, 25)
    model = DPBySegment(DPKMeans(5, bounds=2.5), values=range(3), by=4, epsilon=5000.0)
    result = replay_audit(model, X)
    assert result.violations == [] and set(found) == {False, True}
    assert result.ratios["cells"] > 0.5 < result.ratios["lloyd sums"]
