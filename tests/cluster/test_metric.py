"""DPKMeans(metric="cosine"): rows are directions, and what that changes."""

import numpy as np
import pytest

from sklearn_dp import DPKMeans, PrivacyBudget, PrivacyLedger
from sklearn_dp._privacy._grid import unit_rows


def directions(n, d, k, spread=0.5, seed=0):
    """Rows of all lengths about k directions: the rows, and the directions."""
    rng = np.random.default_rng(seed)
    centers = unit_rows(rng.normal(size=(k, d)))
    rows = centers[rng.integers(k, size=n)] + spread * rng.normal(size=(n, d)) / np.sqrt(d)
    return rows * np.exp(2 * rng.normal(size=(n, 1))), centers


@pytest.fixture(scope="module")
def fitted():
    X, centers = directions(20_000, 8, 5)
    return DPKMeans(5, metric="cosine", random_state=0).fit(X), X, centers


def cosine(**options):
    return DPKMeans(3, **{"metric": "cosine", "random_state": 0, **options})


# -- what is released ------------------------------------------------------------------------------


def test_centers_are_the_directions_of_the_clusters(fitted):
    model, X, centers = fitted
    assert np.abs(np.linalg.norm(model.cluster_centers_, axis=1) - 1).max() < 1e-12
    products = model.cluster_centers_ @ centers.T
    assert set(products.argmax(axis=0)) == set(range(5)) and products.max(axis=0).min() > 0.999
    assert model.status_ == "ok" and (model.cluster_centers_status_ == "ok").all()
    assert not hasattr(model, "bound_")
    assert "bound" not in [entry.name for entry in model.privacy_plan(8).entries]


def test_rows_without_a_direction_stay_at_the_origin():
    X, centers = directions(3000, 4, 3)
    zeros = np.zeros((1000, 4))
    model = cosine().fit(np.vstack([X, zeros]))
    assert model.size_ == pytest.approx(4000, rel=0.02)
    assert np.allclose(model.transform(zeros[:2]), 0.5)
    assert len(set(model.predict(zeros))) == 1
    only = cosine().fit(zeros)
    assert np.allclose(np.linalg.norm(only.cluster_centers_, axis=1), 1.0)
    # So many take a center of their own, whose direction is one of noise.
    more = DPKMeans(4, metric="cosine", epsilon=100.0, random_state=0).fit(np.vstack([X, zeros]))
    assert (more.cluster_centers_ @ centers.T).max(axis=0).min() > 0.999
    noise = (more.cluster_centers_status_ == "noise").all(axis=1)
    assert noise.sum() == 1 and more.cluster_weights_[noise] == pytest.approx(1000, rel=0.05)


# -- rows are scaled, each on its own --------------------------------------------------------------


@pytest.mark.parametrize("layout", ["C", "F", "view", "alone", "sparse", "float32"])
def test_a_direction_is_a_function_of_its_row(layout):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 7)) * 10.0 ** rng.integers(-150, 150, size=(300, 1))
    X[rng.random(X.shape) < 0.3] = 0.0
    if layout == "float32":
        X = (X / np.abs(X).max(axis=1, initial=1e-300)[:, None]).astype(np.float32)
    known = unit_rows(X)
    laid = {
        "F": lambda: unit_rows(np.asfortranarray(X)),
        "view": lambda: unit_rows(np.hstack([X, X])[:, :7]),
        "alone": lambda: np.vstack([unit_rows(row[None]) for row in X]),
        "sparse": lambda: np.vstack([unit_rows(part) for part in np.split(X, [1, 50, 51])]),
    }.get(layout, lambda: unit_rows(X.copy()))()
    assert np.array_equal(laid, known) and np.isfinite(known).all()
    there = X.any(axis=1)
    assert np.allclose(np.linalg.norm(known[there], axis=1), 1.0) and not known[~there].any()


# -- what goes with it, and what does not ----------------------------------------------------------


@pytest.mark.parametrize(
    "options, words",
    [
        ({"bounds": 1.0}, "bounds must be None with metric"),
        ({"bounds": (-1, 1)}, "bounds must be None with metric"),
        ({"metric": "manhattan"}, "metric must be one of"),
        ({"metric": None}, "metric must be one of"),
        ({"metric": np.array(["cosine", "x"])}, "metric must be one of"),
    ],
)
def test_wrong_parameters_are_refused_before_the_charge(options, words):
    ledger = PrivacyLedger(PrivacyBudget(epsilon=1.0, delta=1e-6))
    with pytest.raises(ValueError, match=words):
        cosine(ledger=ledger, **options).fit(np.ones((5, 2)))
    assert not ledger.entries


def test_no_remedy_is_a_bound_that_directions_cannot_have():
    X = np.random.default_rng(0).normal(size=(200, 4)) + 50  # a narrow cone
    models = [cosine(random_state=seed).fit(X) for seed in range(5)]
    actions = [each.action for model in models for each in model.messages_]
    assert any("fewer clusters" in each for each in actions)
    assert not any("bounds" in each for each in actions)
