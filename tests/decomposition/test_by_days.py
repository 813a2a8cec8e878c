"""DPPCA day by day: accuracy, errors, drift, one unit of one day."""

import numpy as np
import pytest
from day_tools import STREAMS, pairs, problems, recorded, rows_of

from sklearn_dp import DPPCA
from sklearn_dp.audit import neighboring_pairs

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.UtilityWarning"),
]

SPREAD = np.array([1.0, 0.6, *[0.1] * 8])


def table_of(n, seed=0):
    """Rows of ten columns, two axes of which are wide; and these."""
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.normal(size=(10, 10)))[0]
    return (rng.normal(size=(n, 10)) * SPREAD) @ axes.T + 1.0, axes


def lost(model, axes):
    """Part of the variance of two components that two released ones leave, of true ones."""
    covariance = (axes * np.square(SPREAD)) @ axes.T
    kept = np.trace(model.components_[:2] @ covariance @ model.components_[:2].T)
    return 1 - kept / np.square(SPREAD[:2]).sum()


def fitted(X, n_days, **options):
    model = DPPCA(**{"bounds": 10.0, "random_state": 0, **options})
    for rows in np.array_split(X, n_days):
        model.partial_fit(rows)
    return model


def test_components_of_days():
    """Of days none of which shows them, about as good as those of all rows together."""
    for seed in range(3):
        X, axes = table_of(12_000, seed)
        model = fitted(X, 30, random_state=seed)
        alone = DPPCA(bounds=10.0, random_state=seed).fit(X[:400])
        assert not alone.trustworthy_ and model.status_ == "ok"
        assert lost(model, axes) < 0.02 < 0.3 * lost(alone, axes)
        errors = model.explained_variance_std_error_[:2]
        assert np.all(np.abs(model.explained_variance_[:2] - SPREAD[:2] ** 2) < 4 * errors)
        assert np.all(errors < 0.2 * SPREAD[:2] ** 2)
        assert np.all(np.abs(model.mean_ - 1) < 5 * model.mean_std_error_)
        assert abs(model.size_ - 12_000) < 1500 and model.days_.number == 30
        assert abs(model.explained_ - 1) < 1e-9 and model.n_components_ == 10


@pytest.mark.slow
def test_components_that_turn_are_followed():
    rng = np.random.default_rng(0)
    models = [DPPCA(1, bounds=8.0, random_state=0) for _ in range(2)]
    for day in range(40):
        axis = np.array([np.cos(day / 25), np.sin(day / 25)])
        rows = rng.normal(size=(800, 1)) * axis + 0.2 * rng.normal(size=(800, 2))
        for model, half_life in zip(models, (None, 4.0), strict=True):
            model.partial_fit(rows, half_life=half_life)
    all_days, lately = (float(model.components_[0] @ axis) ** 2 for model in models)
    assert lately > 0.9 > 0.8 > all_days


@pytest.mark.parametrize(
    "options",
    [{}, {"bounds": (-1.0, [9.0, 1.0, 1.0])}, {"n_components": 1, "epsilon": 0.5}],
)
def test_a_unit_moves_one_day_of_components(options):
    estimator = DPPCA(**{"epsilon": 8.0, "bounds": 1.0, **options})
    days = [rows_of(day, 40) for day in (0, 1, 2)]
    recording = recorded(estimator, days)
    for day in range(3):
        for pair in neighboring_pairs(days[day], day, kinds=["far", "remove", "zero"]):
            assert problems(estimator, days, recording, day, pair) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(28))
def test_a_thousand_units_of_components(seed):
    options = list(STREAMS.values())[seed % len(STREAMS)]
    estimator, recording = DPPCA(epsilon=[0.5, 8.0][seed % 2], bounds=1.0), None
    for days, day, pair in pairs(100 * seed):
        recording = recording or recorded(estimator, days, **options)
        assert problems(estimator, days, recording, day, pair, **options) == []
