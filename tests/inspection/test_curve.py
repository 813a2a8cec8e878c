"""Curves: what they are fitted with, what they say, and what they refuse."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

from sklearn_dp import DPPCA, DPGaussianMixture, DPKMeans, PrivacyBudget, PrivacyLedger
from sklearn_dp.inspection import utility_curve
from sklearn_dp.inspection._curve import _fits, seeds, settings

X, _ = make_blobs(1000, centers=np.eye(3) * 12, random_state=0)
SHORT = {"n_units": 50_000, "epsilons": [0.2, 2.0], "n_repeats": 3, "random_state": 0}


@pytest.fixture(scope="module")
def curve():
    return utility_curve(DPKMeans(3), X, **SHORT)


# -- what a curve says ----------------------------------------------------------------------------


def test_values_are_costs_over_that_of_the_twin(curve):
    twin_seed, *fit_seeds = seeds(0, 7)
    twin = KMeans(3, n_init=10, random_state=twin_seed).fit(X)
    for i, point in enumerate(settings(DPKMeans(3), [0.2, 2.0], X.shape, 50_000)):
        for j in range(3):
            model = point.estimator.set_params(random_state=fit_seeds[i + 2 * j]).fit(X)
            assert curve.values[i, j] == model.score(X) / twin.score(X)
    assert curve.reference == 1.0 and curve.metric == "cost over cost without privacy"
    assert curve.values.shape == (2, 3) and not curve.synthetic


# -- no charge, no trace --------------------------------------------------------------------------


def test_nothing_is_charged_and_nothing_is_changed(recwarn):
    ledger = PrivacyLedger(PrivacyBudget(epsilon=0.01, delta=1e-9))
    estimator = DPKMeans(3, epsilon=7.0, ledger=ledger, random_state=5)
    before = estimator.get_params()
    utility_curve(estimator, X, **SHORT)
    assert ledger.entries == () and estimator.get_params() == before
    assert not hasattr(estimator, "cluster_centers_")
    assert not [each for each in recwarn if "seed" in str(each.message)]


def test_a_seed_repeats_a_curve_and_another_shares_nothing(curve):
    again = utility_curve(DPKMeans(3), X, **SHORT)
    other = utility_curve(DPKMeans(3), X, **SHORT | {"random_state": 1})
    assert np.array_equal(again.values, curve.values)
    assert not set(other.values.ravel()) & set(curve.values.ravel())
    assert len(set(curve.values.ravel())) == curve.values.size


# -- budgets that have the same effect on fewer rows ----------------------------------------------


def test_a_fit_with_laplace_noise_needs_as_many_public_rows():
    X = np.random.default_rng(0).uniform(-1, 1, size=(200, 2))
    estimator, options = DPKMeans(3, bounds=2.0), {"epsilons": [1.0], "n_repeats": 1}
    assert np.isfinite(utility_curve(estimator, X, n_units=200, **options).values).all()
    with pytest.raises(ValueError, match="does not scale .* give n_units rows instead"):
        utility_curve(estimator, X, n_units=400, **options)


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


def test_a_curve_stands_for_fits_that_the_ledger_pays_for():
    """In zCDP k-means takes no Laplace noise, so fewer public rows can stand for the private."""
    X = np.random.default_rng(0).uniform(-1, 1, size=(200, 2))
    ledger = PrivacyLedger(PrivacyBudget(epsilon=9.0, delta=1e-5), composition="zcdp")
    estimator = DPKMeans(2, bounds=1.0, ledger=ledger)
    (point,) = settings(estimator, [1.0], X.shape, len(X))
    (model,) = _fits(point, X, [0])
    assert model.privacy_report_.rho <= point.plan.rho == estimator.privacy_plan(2).rho < 0.03
    assert utility_curve(estimator, X, **SHORT | {"n_repeats": 1}).values.shape == (2, 1)
    assert ledger.entries == ()
