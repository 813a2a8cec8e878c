"""Estimates of several segments, moved toward their mean."""

from types import SimpleNamespace

import numpy as np
import pytest

from sklearn_dp import (
    DPPCA,
    DPBySegment,
    DPGaussianMixture,
    DPKMeans,
    DPStandardScaler,
    FriendlyCovariance,
    FriendlyMean,
)
from sklearn_dp.segments._shrinkage import share_centers, share_means, shrunk


def test_by_hand():
    """Errors of 1, a variance of 10 - 1 between five segments: half of a tenth is given up."""
    values = np.array([0.0, 4.0, 8.0, 4.0, 4.0])[:, None] * np.sqrt(10 / 8)
    moved, errors = shrunk(values, np.ones((5, 1)))
    middle = 4 * np.sqrt(10 / 8)
    assert moved == pytest.approx(middle + (1 - 0.05) * (values - middle))
    doubt = np.square(0.05 * (values - middle))
    assert np.square(errors) == pytest.approx(0.95 + doubt + 0.05**2 * 10 / 5)


def test_what_is_known_stays_and_what_is_not_gets_the_mean():
    values = np.array([1.0, 9.0, 3.0, 3.0, 77.0])[:, None]
    errors = np.array([1e-6, 1e-6, 1e-6, 1e-6, np.inf])[:, None]
    moved, errors = shrunk(values, errors)
    assert moved.ravel() == pytest.approx([1.0, 9.0, 3.0, 3.0, 4.0])
    assert errors[:4].max() < 1.1e-6 and 3 < errors[4, 0] < 5


@pytest.mark.parametrize("unit", [1e-300, 1e139, 1e300])
def test_units_do_not_matter(unit):
    """Nor are squares of them beyond floats."""
    values, errors = np.random.default_rng(0).normal(size=(2, 6, 3))
    plain, scaled = shrunk(values, np.abs(errors)), shrunk(unit * values, unit * np.abs(errors))
    for one, other in zip(plain, scaled, strict=True):
        np.testing.assert_allclose(other / unit, one, rtol=1e-9)


@pytest.mark.parametrize("error", [0.5, np.inf])
def test_few_segments_stay_as_they_are(error):
    moved, errors = shrunk(np.array([[1.0], [1.5], [2.0]]), np.full((3, 1), error))
    assert moved.ravel().tolist() == [1.0, 1.5, 2.0] and (errors == error).all()


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


def test_what_a_clip_may_have_moved_a_mean_by_draws_it_to_no_other():
    """Errors of 3, all but 0.1 an upper bound of a bias: a half of each distance was given up."""
    means = 3 * np.random.default_rng(0).normal(size=(20, 2))
    bias, error = np.full(2, np.sqrt(9 - 0.01)), np.full(2, 3.0)
    models = [SimpleNamespace(mean_=m, mean_std_error_=error, _clip_bias=bias) for m in means]
    share_means(models)
    assert np.abs([model.mean_ for model in models] - means).max() < 0.05
    assert np.array([model.mean_std_error_ for model in models]) == pytest.approx(3.0, rel=1e-3)


def test_centers_are_matched_before_they_are_moved():
    """Five segments with the same two clusters, in either order, and no more than noise between."""
    rng = np.random.default_rng(2)
    places, models = np.array([[0.0, 0.0], [9.0, 9.0]]), []
    for number in range(5):
        centers = places + rng.normal(size=(2, 2))
        order = [1, 0] if number % 2 else [0, 1]
        models.append(
            SimpleNamespace(
                cluster_centers_=centers[order], cluster_centers_std_error_=np.ones((2, 2))
            )
        )
    before = [model.cluster_centers_.copy() for model in models]
    share_centers(models, places)
    for number, (model, old) in enumerate(zip(models, before, strict=True)):
        truth = places[::-1] if number % 2 else places
        assert np.abs(model.cluster_centers_ - truth).max() < 3
        assert not np.array_equal(model.cluster_centers_, old)
    firsts = [m.cluster_centers_[number % 2] for number, m in enumerate(models)]
    assert (
        np.std(firsts, axis=0).max()
        < np.std([o[i % 2] for i, o in enumerate(before)], axis=0).max()
    )


def test_what_is_fixed_stays_and_does_not_count():
    """An infinite error stands for one visible value too, which is no unknown one."""
    rng = np.random.default_rng(0)
    values, errors = rng.normal(size=(6, 1)), np.ones((6, 1))
    values[5], errors[5] = 40.0, np.inf
    moved, after = shrunk(values, errors, np.isinf(errors))
    assert moved[5] == 40.0 and np.isinf(after[5])
    for some, all_of_them in zip(shrunk(values[:5], errors[:5]), (moved, after), strict=True):
        np.testing.assert_allclose(all_of_them[:5], some, rtol=1e-12)


@pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)
@pytest.mark.parametrize(
    ("estimator", "name"),
    [
        (FriendlyMean(), "mean_"),
        (DPStandardScaler(), "mean_"),
        (FriendlyCovariance(), "location_"),
        (DPPCA(1), "mean_"),
        (DPGaussianMixture(2), "means_"),
        (DPKMeans(2), "cluster_centers_"),
    ],
)
def test_the_one_visible_value_of_a_segment_is_released(estimator, name):
    """Hours are 40 for everybody in one of six segments, and 30 +- 5 in the others."""
    rng, key = np.random.default_rng(0), np.repeat(np.arange(6), 2000)
    X = np.c_[rng.normal(size=len(key)), rng.normal(30, 5, len(key))]
    X[:, 0] += 20 * (rng.random(len(key)) < 0.4)
    X[key == 5, 1] = 40.0
    model = DPBySegment(estimator, epsilon=20.0, values=range(6), random_state=0).fit(X, by=key)
    found, errors = (
        np.array([getattr(each, end) for each in model.estimators_.values()])[..., 1]
        for end in (name, f"{name}std_error_")
    )
    assert np.abs(found[5] - 40).max() < 0.1 and np.isinf(errors[5]).all()
    assert np.abs(found[:5] - 30).max() < 1 and np.isfinite(errors[:5]).all()
