"""Standard errors, confidence intervals and the summary of what was released."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from sklearn_dp import DPGaussianMixture, DPKMeans, FriendlyMean
from sklearn_dp.covariance import FriendlyCovariance

CENTERS = np.array([[-0.6, 0.0], [0.1, 0.5], [0.6, -0.3], [0.0, -0.6]])


def easy(seed, n=4000):
    rng = np.random.default_rng(1000 + seed)
    return CENTERS[rng.integers(0, 4, n)] + 0.05 * rng.normal(size=(n, 2))


def hits(estimator, X):
    """Of each attribute's 95% intervals: the part that holds the truth, half width and error."""
    fitted = estimator.fit(X)
    near = np.square(fitted.cluster_centers_[:, None] - CENTERS).sum(axis=2).argmin(axis=1)
    total = np.square(X - X.mean(axis=0)).sum()
    truth = {
        "cluster_centers_": CENTERS[near],
        "inertia_": -fitted.score(X),
        "cluster_weights_": np.bincount(fitted.labels_, minlength=4),
        "explained_": 1 + fitted.score(X) / total,
    }
    for name, value in truth.items():
        low, high = fitted.confidence_interval(attribute=name)
        held = np.mean((low <= value) & (value <= high))
        yield name, (held, np.mean(high - low) / 2, np.mean(np.abs((low + high) / 2 - value)))


def coverage(make, n_fits):
    """The part of the intervals that hold the truth; how wide they are for the errors that occur.

    The width is 1 where errors are normal with the stated standard deviation.
    """
    found = [dict(hits(make(seed), easy(seed))) for seed in range(n_fits)]
    means = {name: np.mean([one[name] for one in found], axis=0) for name in found[0]}
    normal = norm.ppf(0.975) / np.sqrt(2 / np.pi)  # half width over the mean error
    held = {name: float(rate) for name, (rate, _, _) in means.items()}
    return held, {name: float(half / error / normal) for name, (_, half, error) in means.items()}


def test_intervals_hold_the_truth():
    """60 fits of easy data; 480 coordinates and 240 weights. Errors too small by a third fail."""
    found, wide = coverage(lambda seed: DPKMeans(4, bounds=1.3, random_state=seed), 60)
    assert 0.91 < found["cluster_centers_"] < 0.98 and 0.9 < found["cluster_weights_"] < 0.99
    assert found["inertia_"] > 0.83 and found["explained_"] > 0.83
    assert max(wide.values()) < 3.5


def mean_coverage(n_fits, n=4000, **options):
    """Part of the coordinates' 95% intervals, and of the numbers', that hold the truth."""
    held, counted = [], []
    for seed in range(n_fits):
        X = 5 + np.random.default_rng(2000 + seed).normal(size=(n, 3))
        model = FriendlyMean(random_state=seed, **options).fit(X)
        low, high = model.confidence_interval()
        held.append((low <= 5) & (high >= 5))
        low, high = model.confidence_interval(attribute="size_")
        counted.append(low <= n <= high)
    return np.mean(held), np.mean(counted)


def test_intervals_of_means_hold_the_truth():
    """180 coordinates: a rate of .95 has a standard error of .016."""
    held, counted = mean_coverage(60, diameter=9.0)
    assert 0.9 < held < 0.99 and counted > 0.85


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(
    ("n_fits", "options"), [(1000, {"diameter": 9.0}), (300, {}), (300, {"rho": 0.5})]
)
def test_intervals_of_means_hold_the_truth_in_a_thousand_fits(n_fits, options):
    """3,000 coordinates, 1,000 numbers: standard errors of .4 and .7%; of 300 fits .8 and 1.3."""
    slack = 0.02 if n_fits == 1000 else 0.035
    held, counted = mean_coverage(n_fits, **options)
    assert abs(held - 0.95) <= slack and abs(counted - 0.95) <= slack, (held, counted)


def test_what_was_not_found_has_no_interval_but_the_whole_line():
    model = FriendlyMean(epsilon=0.01, random_state=0).fit(np.ones((30, 2)))
    assert str(model.messages_).startswith("no region was found that holds most of the rows")
    low, high = model.confidence_interval()
    assert np.isneginf(low).all() and np.isposinf(high).all()


ROOT = np.array([[1.0, 0.5, 0.0], [0.0, 0.7, 0.2], [0.0, 0.0, 2.0]])
MEANS = np.array([[0.0, 0.0], [20.0, 0.0], [0.0, 20.0]])
VARIANCES = np.array([[1.0, 4.0], [2.0, 1.0], [1.0, 1.0]])


def covariance_hits(seed, **options):
    """Which part of each attribute's 95% intervals holds the truth: one normal law."""
    X = np.random.default_rng(3000 + seed).normal(size=(5000, 3)) @ ROOT.T
    model = FriendlyCovariance(random_state=seed, **options).fit(X)
    return held(model, {"covariance_": ROOT @ ROOT.T, "location_": np.zeros(3), "size_": 5000})


def mixture_hits(seed, form):
    """The same of three normal laws far from each other, of a shape that the form has."""
    rng, k = np.random.default_rng(4000 + seed), [0, 1, 2]
    label = rng.choice(k, p=[0.5, 0.3, 0.2], size=10_000)
    variances = VARIANCES if form in ("full", "diag") else np.ones((3, 2))
    X = MEANS[label] + rng.normal(size=(10_000, 2)) * np.sqrt(variances[label])
    model = DPGaussianMixture(3, covariance_type=form, random_state=seed).fit(X)
    near = np.square(model.means_[:, None] - MEANS).sum(axis=2).argmin(axis=1)
    truth = {
        "full": np.array([np.diag(v) for v in variances[near]]),
        "diag": variances[near],
        "spherical": np.ones(3),
        "tied": np.eye(2),
    }
    weights = np.array([0.5, 0.3, 0.2])[near]
    return held(model, {"means_": MEANS[near], "covariances_": truth[form], "weights_": weights})


def held(model, truth):
    """Part of each attribute's intervals that hold it."""
    ends = {name: model.confidence_interval(attribute=name) for name in truth}
    return {
        name: np.mean((ends[name].low <= value) & (value <= ends[name].high))
        for name, value in truth.items()
    }


def mean_of(found):
    return {name: float(np.mean([one[name] for one in found])) for name in found[0]}


def test_intervals_of_covariances_and_mixtures_hold_the_truth():
    """20 fits each: 180 entries of a covariance, 120 coordinates of means of three components."""
    found = mean_of([covariance_hits(seed) for seed in range(20)])
    assert found["covariance_"] > 0.88 and found["location_"] > 0.85 and found["size_"] > 0.75
    found = mean_of([mixture_hits(seed, "full") for seed in range(8)])
    assert min(found.values()) > 0.75, found


@pytest.fixture(scope="module")
def fitted():
    X = pd.DataFrame(easy(0), columns=["left", "up"])
    return DPKMeans(4, bounds=1.3, random_state=0).fit(X)


def test_an_interval_is_the_value_and_its_error(fitted):
    low, high = fitted.confidence_interval(0.9)
    half = norm.ppf(0.95) * fitted.cluster_centers_std_error_
    assert np.allclose(low, fitted.cluster_centers_ - half)
    assert np.allclose(high, fitted.cluster_centers_ + half)
    assert fitted.cluster_centers_std_error_.shape == (4, 2)
    assert fitted.cluster_weights_std_error_.shape == (4,)
    wide = fitted.confidence_interval(0.999, "explained_")
    assert 0 <= wide.low < fitted.explained_ < wide.high <= 1


def test_simultaneous_intervals_hold_all_numbers_at_once(fitted):
    """By Bonferroni: 8 coordinates of centers, and 15 numbers in the table."""
    low, high = fitted.confidence_interval(0.9, simultaneous=True)
    half = norm.isf(0.05 / 8) * fitted.cluster_centers_std_error_
    assert np.allclose(high - low, 2 * half)
    frame = fitted.summary(0.9, simultaneous=True).to_frame()
    line = frame.loc["cluster_centers_[0, left]"]
    assert np.isclose(line["high"] - line["value"], norm.isf(0.05 / 15) * line["std_error"])
    for method in (fitted.confidence_interval, fitted.summary):
        with pytest.raises(TypeError, match="simultaneous"):
            method(simultaneous="yes")


@pytest.mark.parametrize(
    ("level", "attribute", "error"),
    [
        (0.0, None, ValueError),
        (1.0, None, ValueError),
        ("high", None, ValueError),
        (10**400, None, ValueError),  # beyond the floats
        (0.95, "labels_", ValueError),
    ],
)
def test_what_has_no_interval_is_refused(fitted, level, attribute, error):
    with pytest.raises(error, match="level" if attribute is None else "attribute"):
        fitted.confidence_interval(level, attribute)
