"""DPDBSCAN: clusters of any shape from one released histogram."""

import numpy as np
import pytest
from sklearn.cluster import DBSCAN
from sklearn.datasets import make_circles, make_moons
from sklearn.metrics import adjusted_rand_score

from sklearn_dp import DPDBSCAN, PrivacyBudget, PrivacyLedger
from sklearn_dp.cluster._dp_dbscan import dense_cells, grid_over
from sklearn_dp.inspection import utility_curve

BOX = ([-1.6, -1.1], [2.6, 1.6])
MOONS = make_moons(8000, noise=0.06, random_state=0)[0]
RINGS = make_circles(8000, noise=0.04, factor=0.5, random_state=0)[0]


def fitted(X, eps=0.1, **options):
    return DPDBSCAN(eps, **{"bounds": BOX, "min_samples": 20, "random_state": 0, **options}).fit(X)


@pytest.mark.parametrize(("X", "epsilon"), [(MOONS, 1.0), (MOONS, 1e5), (RINGS, 1.0), (RINGS, 1e5)])
def test_the_clusters_are_those_of_dbscan(X, epsilon):
    """At epsilon = 1 in .98 of the pairs or more; of 200 fits with other seeds, in all."""
    model = fitted(X, epsilon=epsilon)
    assert model.n_clusters_ == 2 and model.status_ == "ok"
    labels = DBSCAN(eps=0.1, min_samples=20).fit_predict(X)
    assert adjusted_rand_score(labels, model.labels_) > 0.98
    assert np.array_equal(model.predict(X), model.labels_)


def test_sizes_are_within_their_errors():
    """5 standard errors: a false alarm in 1e-6 of fits, and a cluster less is 400 of them."""
    model = fitted(MOONS)
    sizes = np.bincount(model.labels_[model.labels_ >= 0], minlength=2)
    # Cells on the border of an area are in it as a whole, or not at all.
    assert (np.abs(model.cluster_sizes_ - sizes) < 5 * model.cluster_sizes_std_error_ + 40).all()
    assert abs(model.size_ - len(MOONS)) < 5 * model.size_std_error_


def test_without_noise_the_labels_are_those_of_dbscan():
    """Tails of three clusters in space that almost touch, and few rows. A fixed grid joined them,
    and lost rows of the second table."""
    rng = np.random.default_rng(0)
    space = np.concatenate(
        [rng.normal(m, 0.5, (2600, 3)) for m in ([0, 0, 0], [4, 0, 0], [0, 4, 0])]
    )
    for X, eps, least in ((space, 0.7, 20), (MOONS[:1000], 0.1, 5)):
        labels = DBSCAN(eps=eps, min_samples=least).fit_predict(X)
        model = fitted(X, eps, bounds=7.0 if X is space else BOX, min_samples=least, epsilon=1e4)
        assert adjusted_rand_score(labels, model.labels_) > 0.95


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_bounds_buy_pure_differential_privacy(delta):
    ledger = PrivacyLedger(PrivacyBudget(epsilon=2.0, delta=1e-5))
    model = fitted(MOONS, random_state=None, ledger=ledger, delta=delta)
    assert model.privacy_report_.delta == 0.0 == ledger.entries[0].delta
    assert model.privacy_report_.epsilon == 1.0 == ledger.entries[0].epsilon
    assert [line["mechanism"] for line in model.privacy_report_.releases] == ["laplace"]
    for options in ({"bounds": None}, {"rho": 0.1}):
        with pytest.raises(ValueError, match="delta must be greater than 0, because"):
            fitted(MOONS, delta=0, **options)
        report = fitted(MOONS, **options).privacy_report_
        assert report.delta == 1e-6 and {r["mechanism"] for r in report.releases} == {"gaussian"}


def test_rows_outside_the_bounds_are_noise_and_told():
    X = np.concatenate([MOONS, np.full((800, 2), 50.0)])
    model = fitted(X)
    assert (model.labels_[-800:] == -1).all() and model.n_clusters_ == 2
    (message,) = [each for each in model.messages_ if each.code == "rows_beyond_bounds"]
    assert "9% of the rows" in message.text and model.status_ == "caution"


def test_noise_alone_makes_no_cluster_in_the_largest_grid():
    """It made some in 11 of 12 fits: in a million places, sums of few Laplace numbers go far."""
    grid = grid_over(np.full(2, -3.0), np.full(2, 3.0), 0.01, sd=np.sqrt(2), min_samples=5.0)
    for seed in range(2):
        noise = np.rint(np.random.default_rng(seed).laplace(size=grid.shape.prod()))
        assert dense_cells(grid, noise, np.sqrt(2), 0.01, 5.0).n_clusters == 0


def test_what_noise_hides_is_told():
    few = fitted(MOONS[:150])
    assert few.n_clusters_ == 0 and few.status_ == "unusable" and (few.labels_ == -1).all()
    assert few.messages_[0].code == "no_clusters" and few.predict(MOONS[:5]).tolist() == [-1] * 5
    thin = fitted(MOONS, min_samples=1)
    assert thin.min_samples_ > 10 and thin.messages_[0].code == "hidden_clusters"
    unsure = fitted(MOONS[:1000], min_samples=1)
    assert unsure.status_ == "caution" and "near that limit" in unsure.messages_[0].text
    wide = fitted(1e6 * MOONS, bounds=None)
    assert (
        wide.status_ == "unusable" and "too wide to tell clusters apart" in wide.messages_[0].text
    )


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"eps": 1e-6}, "eps is too small for these bounds"),
        ({"eps": 0.0}, "eps must be"),
        ({"min_samples": -1}, "min_samples must be"),
        ({"X": np.zeros((9, 70)), "bounds": (0, 1), "eps": 9.0}, "at most 60 features"),
    ],
)
def test_public_mistakes_are_not_charged(options, match):
    ledger = PrivacyLedger(PrivacyBudget(epsilon=2.0, delta=1e-5))
    with pytest.raises(ValueError, match=match):
        fitted(**{"X": MOONS, "ledger": ledger, **options})
    assert not ledger.entries


@pytest.mark.parametrize("d", [1, 3, 60])
def test_an_eps_that_is_too_small_is_told_one_that_is_not(d):
    for options in ({"bounds": 1.0}, {"bounds": None, "epsilon": 100.0}):
        X = np.random.default_rng(0).uniform(-1, 1, (2000, d))
        model = DPDBSCAN(1e-7, **options)
        try:
            text = model.fit(X).messages_[0].action
        except ValueError as refused:
            text = str(refused)
        eps = float(text.split("at least ")[1].split(",")[0])
        words = [each.text for each in DPDBSCAN(eps, **options).fit(X).messages_]
        assert not any("too wide" in each for each in words)


def test_a_utility_curve_does_not_scale_rows():
    """`min_samples` would have to change with their number."""
    model = DPDBSCAN(0.1, rho=1.0, epsilon=None, bounds=BOX)
    with pytest.raises(ValueError, match="does not scale with the number of rows"):
        utility_curve(model, MOONS[:99], n_units=8000, metric=lambda model, X: 0.0)
