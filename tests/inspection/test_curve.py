"""Curves: what they are fitted with, what they say, and what they refuse."""

import math
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

from sklearn_dp import (
    DPPCA,
    DPGaussianMixture,
    DPKMeans,
    DPKTupleKMeans,
    DPOneCluster,
    FriendlyMean,
    PrivacyBudget,
    PrivacyLedger,
)
from sklearn_dp.exceptions import SeededNoiseWarning
from sklearn_dp.inspection import utility_curve
from sklearn_dp.inspection._curve import fits, scale_freely, seeds, settings, synthetic_rows

X, _ = make_blobs(1000, centers=np.eye(3) * 12, random_state=0)
SHORT = {"n_units": 50_000, "epsilons": [0.2, 2.0], "n_repeats": 3, "random_state": 0}


@pytest.fixture(scope="module")
def curve():
    return utility_curve(DPKMeans(3), X, **SHORT)


# -- what a curve says ----------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")
def test_values_are_costs_over_that_of_the_twin(curve):
    twin_seed, *fit_seeds = seeds(0, 7)
    twin = KMeans(3, n_init=10, random_state=twin_seed).fit(X)
    for i, point in enumerate(settings(DPKMeans(3), [0.2, 2.0], X.shape, 50_000)):
        for j in range(3):
            model = point.estimator.set_params(random_state=fit_seeds[i + 2 * j]).fit(X)
            assert curve.values[i, j] == model.score(X) / twin.score(X)
    assert curve.reference == 1.0 and curve.metric == "cost over cost without privacy"
    assert curve.values.shape == (2, 3) and not curve.synthetic


def test_the_floor_is_its_formula(curve):
    for epsilon, floor in zip(curve.epsilons, curve.floor, strict=True):
        plan = DPKMeans(3, epsilon=epsilon).privacy_plan(3)
        lloyd = sum(entry.rho for entry in plan.entries if entry.name.startswith("lloyd"))
        rho = plan["lloyd sums"].rho * (1 + plan["columns of centers"].rho / lloyd)
        assert floor == pytest.approx(1 + 1.4 * 3 * 3**2 / (50_000**2 * 2 * rho), rel=1e-14)


def test_the_frame_holds_the_numbers_of_the_curve(curve):
    frame = curve.to_frame()
    assert list(frame["epsilon"]) == [0.2, 2.0]
    assert np.array_equal(frame["median"], np.median(curve.values, axis=1))
    low, high = np.quantile(curve.values, [0.25, 0.75], axis=1)
    assert np.array_equal(frame["lower quartile"], low)
    assert np.array_equal(frame["upper quartile"], high)
    assert np.array_equal(frame["floor"], curve.floor) and (frame["reference"] == 1).all()


def test_log_densities_are_compared_by_difference():
    for estimator in (DPGaussianMixture(3), DPPCA(2)):
        curve = utility_curve(estimator, X, n_units=10**6, epsilons=[8], n_repeats=2)
        assert curve.reference == 0.0 and curve.floor is None
        assert np.abs(curve.values).max() < 0.05
        assert "floor" not in curve.to_frame()


def test_a_metric_of_the_user():
    def lowest_coordinate(model, rows):
        assert rows is not None and len(rows) == len(X)
        return model.cluster_centers_.min()

    curve = utility_curve(DPKMeans(3), X, metric=lowest_coordinate, **SHORT)
    twin = KMeans(3, n_init=10, random_state=0).fit(X)
    assert curve.reference == pytest.approx(twin.cluster_centers_.min(), abs=1e-6)
    assert curve.metric == "lowest coordinate" and curve.floor is None


def test_without_a_twin_there_is_no_reference():
    """Noise that is not Gaussian, with as many public rows as private ones."""
    curve = utility_curve(
        DPOneCluster(n_points=200, bounds=20.0), X[:500], n_units=500, epsilons=[4], n_repeats=1,
        metric=lambda model, _: model.radius_,
    )  # fmt: skip
    assert math.isnan(curve.reference) and curve.floor is None


# -- synthetic rows -------------------------------------------------------------------------------


def test_without_rows_a_mixture_stands_for_them():
    curve = utility_curve(DPKMeans(4), n_features=2, **SHORT)
    assert curve.synthetic and np.abs(curve.values - 1).max() < 0.1


@pytest.mark.parametrize("bounds", [3.0, (5.0, 6.0), ([-1, 0, 0], [1, 9, 0])])
def test_the_mixture_lies_within_the_bounds(bounds):
    """Elsewhere it would be clipped to their edge, and cost hundreds of times as much."""
    options = {"n_features": 3, "n_units": 10**6, "epsilons": [1], "n_repeats": 2}
    curve = utility_curve(DPKMeans(3, bounds=bounds), random_state=0, **options)
    assert curve.values.max() < 1.05


# -- no charge, no trace --------------------------------------------------------------------------


def test_nothing_is_charged_and_nothing_is_changed(recwarn):
    ledger = PrivacyLedger(PrivacyBudget(epsilon=0.01, delta=1e-9))
    estimator = DPKMeans(3, epsilon=7.0, ledger=ledger, random_state=5)
    before = estimator.get_params()
    utility_curve(estimator, X, **SHORT)
    assert ledger.entries == () and estimator.get_params() == before
    assert not hasattr(estimator, "cluster_centers_")
    assert not [each for each in recwarn if "seed" in str(each.message)]


MET = {name: (threading.Event(), threading.Event()) for name in "ab"}


class Meets(BaseEstimator):
    """Tells when its fit has begun, and waits for the word to end it."""

    def __init__(self, name="a", random_state=None):
        self.name, self.random_state = name, random_state

    def fit(self, X):
        begun, may_end = MET[self.name]
        begun.set()
        assert may_end.wait(60)
        warnings.warn("seeded", SeededNoiseWarning, stacklevel=1)
        warnings.warn("ours to hear", RuntimeWarning, stacklevel=1)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_fits_in_two_threads_leave_the_filters_of_warnings_as_they_were():
    """The first one ends before the second. What is not expected of a fit is told."""
    before = list(warnings.filters)

    def fit(name):
        with pytest.raises(RuntimeWarning, match="ours to hear"):
            next(fits(SimpleNamespace(estimator=Meets(name)), X, [0]))

    with ThreadPoolExecutor(2) as pool:
        pending = []
        for name in "ab":
            pending.append(pool.submit(fit, name))
            assert MET[name][0].wait(60)
        for name, each in zip("ab", pending, strict=True):
            MET[name][1].set()
            each.result(60)
    assert list(warnings.filters) == before


def test_a_seed_repeats_a_curve_and_another_shares_nothing(curve):
    again = utility_curve(DPKMeans(3), X, **SHORT)
    other = utility_curve(DPKMeans(3), X, **SHORT | {"random_state": 1})
    assert np.array_equal(again.values, curve.values)
    assert not set(other.values.ravel()) & set(curve.values.ravel())
    assert len(set(curve.values.ravel())) == curve.values.size


# -- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change, error, words",
    [
        ({"estimator": KMeans(3)}, TypeError, "estimator must be a private"),
        ({"estimator": DPKMeans}, TypeError, "estimator must be a private"),
        ({"estimator": DPOneCluster(n_points=9)}, ValueError, "X_public.*n_units rows instead"),
        ({"n_units": 0}, ValueError, "n_units must be"),
        ({"n_units": 10.0}, TypeError, "n_units must be"),
        ({"n_units": 1, "epsilons": [0.001]}, ValueError, "n_units and epsilons"),
        ({"epsilons": []}, ValueError, "epsilons must be"),
        ({"epsilons": [1, 1]}, ValueError, "epsilons must be"),
        ({"epsilons": [-1, 1]}, ValueError, "epsilons must be"),
        ({"epsilons": 1.0}, TypeError, "epsilons must be"),
        ({"epsilons": ["1"]}, TypeError, "epsilons must be"),
        ({"n_repeats": 0}, ValueError, "n_repeats must be"),
        ({"metric": "accuracy"}, TypeError, "metric must be"),
        ({"metric": lambda model, rows: "good"}, TypeError, "metric must return"),
        ({"estimator": DPKMeans("auto")}, TypeError, "n_clusters must be"),
        ({"estimator": FriendlyMean(), "n_units": 1000}, TypeError, "metric must be given"),
        ({"n_features": 3}, TypeError, "n_features is only for"),
        ({"X_public": None}, TypeError, "X_public must be public rows.*n_features"),
        ({"X_public": None, "n_features": 0}, ValueError, "n_features must be"),
        ({"X_public": None, "n_features": 2, "n_clusters": 0}, ValueError, "n_clusters must be"),
        ({"X_public": np.full((9, 2), np.nan)}, ValueError, "X_public"),
        ({"X_public": np.zeros((9, 2))}, ValueError, "X_public: its cost without"),
        ({"random_state": -1}, ValueError, "random_state"),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_wrong_parameters_are_refused_by_name(change, error, words):
    options = {"estimator": DPKMeans(3), "X_public": X, **SHORT, **change}
    with pytest.raises(error, match=words):
        utility_curve(**options)


@pytest.mark.parametrize("estimator", [DPKTupleKMeans(3), FriendlyMean()])
def test_an_estimator_that_would_take_another_way_is_refused(estimator):
    """They choose their algorithm by the budget, and a scaled one is no real budget."""
    with pytest.raises(
        ValueError, match="different algorithm at the scaled budget; give n_units rows"
    ):
        utility_curve(estimator, X, n_units=10**7, epsilons=[1.0], n_repeats=1, metric=len)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("rows", [X[:2], 1e200 * X], ids=["fewer than clusters", "too large"])
def test_public_rows_that_the_twin_cannot_take_are_named(rows):
    with pytest.raises(ValueError, match="^X_public"):
        utility_curve(DPKMeans(3), rows, **SHORT)


def test_a_metric_beyond_the_floats_is_named():
    with pytest.raises(TypeError, match="^metric must return a number"):
        utility_curve(DPKMeans(3), X[:50], metric=lambda model, rows: 10**400, **SHORT)


# -- budgets that have the same effect on fewer rows ----------------------------------------------


@pytest.mark.parametrize("estimator", [DPKMeans(3), DPGaussianMixture(3), DPPCA(2)])
def test_the_scaled_budget_keeps_the_noise_beside_the_sums(estimator):
    """n mu of every release: that of the private fit, to rounding."""
    points = list(settings(estimator, [0.5, 3.0], (2000, 3), 30_000))
    for point in points:
        plan = point.estimator.privacy_plan(3)
        assert plan.rho == pytest.approx(point.plan.rho * 15**2, rel=1e-9)
        for row, private in zip(
            plan.noise(2000).releases, point.plan.noise(30_000).releases, strict=True
        ):
            assert row["release"] == private["release"]
            assert row["noise / signal"] == pytest.approx(private["noise / signal"], rel=1e-6)
    assert [point.plan.epsilon for point in points] == pytest.approx([0.5, 3.0], rel=1e-6)


def test_as_many_rows_get_the_budget_itself():
    (point,) = settings(DPOneCluster(n_points=50), [2.0], (500, 2), 500)
    assert point.estimator.get_params()["epsilon"] == 2.0
    assert point.estimator.get_params()["rho"] is None


def test_the_noise_of_blocks_does_not_scale():
    """An aggregate of blocks may have Gaussian noise only, for the number of blocks."""
    plan = DPKMeans(2).privacy_plan(2)
    assert scale_freely(DPKMeans(2), plan)
    assert not scale_freely(object(), plan)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.3, 1.0])
@pytest.mark.parametrize(
    "n_units, n_features, k", [(10_000, 2, 8), (20_000, 20, 8), (10_000, 10, 10)]
)
def test_few_rows_tell_what_many_lose(n_units, n_features, k, epsilon):
    """The excess cost of the curve is within a factor 2 of that of real fits (medians of 15)."""
    rows = synthetic_rows((n_features, k), n_units, exact=True, seed=0)
    options = {"n_units": n_units, "epsilons": [epsilon], "n_repeats": 15, "random_state": 1}
    real = utility_curve(DPKMeans(k), rows, **options)
    scaled = utility_curve(DPKMeans(k), rows[:2000], **options)
    ratio = (scaled.quartiles[1] - 1) / (real.quartiles[1] - 1)
    assert 0.5 <= ratio[0] <= 2
