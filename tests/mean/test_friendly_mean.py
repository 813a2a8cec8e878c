"""FriendlyMean as an estimator."""

import numpy as np
import pytest

from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp.ledger import PrivacyLedger
from sklearn_dp.mean import FriendlyMean


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(3000, 3)) + [1e6, 0.0, -50.0]


def test_fit_predict_transform_score(X):
    model = FriendlyMean(random_state=0).fit(X)
    assert model.status_ == "ok" and np.linalg.norm(model.mean_ - X.mean(axis=0)) < 0.5
    assert 0.1 < model.radius_ < 3 and model.size_ == pytest.approx(3000, abs=300)
    assert np.array_equal(model.predict(X[:4]), np.tile(model.mean_, (4, 1)))
    assert np.array_equal(model.transform(X), X - model.mean_)
    expected = -np.mean(np.sum((X - model.mean_) ** 2, axis=1))
    assert model.score(X) == pytest.approx(expected)
    assert list(model.get_feature_names_out()) == ["x0", "x1", "x2"]


@pytest.mark.parametrize("n", [100, 300, 500, 1000])
def test_columns_that_are_not_told_are_named_or_found_together(n):
    """A mean that is nowhere must show in `status_` and in its error."""
    for seed in range(15):
        X = 6.4e6 + 1000 * np.random.default_rng(seed).normal(size=(n, 2))
        fitted = FriendlyMean(epsilon=1.0, random_state=seed).fit(X)
        off, ok = np.abs(fitted.mean_ - 6.4e6), fitted.column_status_ == "ok"
        assert (off < np.minimum(4.5 * fitted.mean_std_error_, 700))[ok].all()
        assert n < 1000 or np.isfinite(fitted.mean_std_error_).all()


def test_what_needs_rows_together_is_refused_before_the_charge(X):
    ledger = PrivacyLedger(PrivacyBudget(epsilon=3.0, delta=1e-4))
    before, pieces = ledger.remaining, [X[:1000], X[1000:]]
    with pytest.raises(TypeError, match=r"X must be in memory for FriendlyMean\(refine=False\)"):
        FriendlyMean(ledger=ledger, refine=False).fit(pieces)
    assert ledger.remaining == before


def test_a_column_that_is_not_told_is_named_and_the_others_have_their_units():
    """Gifts to one person in seven, of a long tail: the others stand out from the noise."""
    rng, n = np.random.default_rng(0), 900
    gifts = rng.lognormal(5, 2, n) * (rng.random(n) < 0.15)
    X = np.column_stack([rng.normal(46, 16, n), gifts, np.full(n, 7.0)])
    told = 0
    for seed in range(6):
        model = FriendlyMean(random_state=seed).fit(X)
        told += model.column_status_[0] == "ok" and model.mean_std_error_[0] < 6
        assert model.column_status_[2] in ("constant", "noise")
        if model.column_status_[2] == "constant":
            assert abs(model.mean_[2] - 7) < 0.1
        if model.column_status_[1] == "noise":
            assert not model.trustworthy_
    assert told >= 1


def test_an_origin_in_one_of_two_modes_does_not_draw_the_mean():
    """Few rows: the released origins and scales are those of one mode, nine sigmas from the other.

    80 intervals of 95%, which all hold here; 36 of them did when the origin drew the mean.
    """
    held = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(1000, 4)) + 9.0 * (np.arange(1000) % 2)[:, None]
        low, high = FriendlyMean(random_state=seed).fit(X).confidence_interval()
        held.append((low <= 4.5) & (high >= 4.5))
    assert np.sum(held) >= 66


@pytest.mark.parametrize("n", [12, 400])
def test_a_box_without_any_end_is_none(n):
    """Too few rows for units of columns: the joint way, which a plan of a box does not hold."""
    X = np.random.default_rng(0).normal(size=(n, 2))
    open_ends = np.full(2, -np.inf), np.full(2, np.inf)
    one, other = (FriendlyMean(bounds=each, random_state=0).fit(X) for each in (None, open_ends))
    np.testing.assert_array_equal(one.mean_, other.mean_)
    assert one.privacy_plan(2).entries == other.privacy_plan(2).entries
