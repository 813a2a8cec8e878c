"""How many rows may lie beyond a released radius: of fits, beside the true number."""

import warnings

import numpy as np
import pytest

from sklearn_dp import (
    DPCoreset,
    DPKMeans,
    DPKTupleKMeans,
    DPStandardScaler,
    FriendlyCovariance,
    FriendlyMean,
)
from sklearn_dp.decomposition import DPPCA
from sklearn_dp.exceptions import UtilityWarning


def rows(seed, n=4000, n_far=12):
    """Near-normal rows, a few of them 20 to 100 times as far out."""
    rng = np.random.default_rng(5000 + seed)
    X = 3.0 + rng.normal(size=(n, 3))
    X[:n_far] *= rng.uniform(20, 100, size=(n_far, 1))
    return X


def about_origin(model, X):
    return np.sum(np.linalg.norm(X, axis=1) >= model.bound_)


def about_mean(model, X):
    return np.sum(np.linalg.norm(X - model.mean_, axis=1) > model.radius_)


MODELS = {
    "kmeans": (lambda seed: DPKMeans(3, random_state=seed), about_origin),
    "tuples": (lambda seed: DPKTupleKMeans(3, epsilon=4.0, random_state=seed), about_origin),
    "coreset": (lambda seed: DPCoreset(3, random_state=seed), about_origin),
    "pca": (lambda seed: DPPCA(2, random_state=seed), about_mean),
}


def held(name, n_fits):
    make, count = MODELS[name]
    found = []
    for seed in range(n_fits):
        X = rows(seed)
        model = make(seed).fit(X)
        found.append(model.rows_beyond_ >= count(model, X))
    return np.mean(found)


@pytest.mark.parametrize("name", MODELS)
def test_no_more_rows_are_beyond_than_is_told(name):
    assert held(name, 6) > 0.6


@pytest.mark.parametrize("bounds", [1e-3, (-1e-3, 1e-3), 0.3, 3.0, (-9.0, 9.0), 9.0, 1e100])
def test_a_summary_tells_of_bounds_that_rows_fill(bounds):
    """Most rows are beyond the smaller ones: the releases are those of rows at their edge."""
    found = repr(DPKMeans(3, bounds=bounds, random_state=0).fit(rows(0)).summary())
    told = "of the radius of bounds" in found or "rows are beyond the bounds" in found
    assert told == (bounds in (1e-3, (-1e-3, 1e-3), 0.3, 3.0))


@pytest.mark.parametrize("name", MODELS)
def test_without_bounds_there_is_a_note_and_no_warning(name):
    """With bounds it has none, where a ball that was found inside them is not far narrower."""
    model, X = MODELS[name][0](0).set_params(epsilon=4.0), rows(0, n_far=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UtilityWarning)
        model.fit(X)
        inside = "radius_" if name == "pca" else "bound_"
        most = int(np.ceil(model.rows_beyond_))
        note = next(each for each in model.messages_ if each.code == "outside_bound")
        words = f"up to {most:,} rows (95% confidence) may lie outside of {inside} and were clipped"
        assert note.text == words and note.severity == "note"
        assert model.set_params(bounds=9.0).fit(X).messages_ == ()


OPEN, WIDE = ([-4.0, -np.inf], [4.0, np.inf]), (-1e9, 1e9)


@pytest.mark.parametrize("bounds", [None, OPEN, ([-4.0, -4.0], [4.0, np.inf]), WIDE])
@pytest.mark.parametrize("kind", [FriendlyMean, FriendlyCovariance, DPStandardScaler])
def test_rows_that_no_look_shows_are_a_note(kind, bounds):
    """50 rows of 8,050 far away were clipped, and moved the true mean by thousands."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(8000, 2)), np.full((50, 2), 1e6)])
    model = kind(bounds=bounds, epsilon=3.0, random_state=0).fit(X)
    if model.status_ != "unusable":  # as it is where the rows that are seen have no visible spread
        notes = [each for each in model.messages_ if each.code == "outside_bound"]
        assert [each.severity for each in notes] == ["note"]
        assert ("use narrower bounds" if bounds == WIDE else "pass bounds=") in notes[0].action
    codes = [each.code for each in kind(bounds=4.0, random_state=0).fit(X[:8000]).messages_]
    assert "outside_bound" not in codes
