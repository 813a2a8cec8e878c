"""DPPCA day by day: accuracy, errors, drift, one unit of one day."""

import pickle

import numpy as np
import pytest
from day_tools import RELEASES_OF_MOMENTS, STREAMS, pairs, problems, recorded, rows_of
from scipy.sparse import csr_array

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


def test_errors_are_those_of_fits():
    """Of fits that differ in their noise and their rows."""
    fits, components = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(6000, 4)) * [1.0, 0.5, 0.2, 0.2]
        model = fitted(X, 6, n_components=2, random_state=seed)
        error = model.explained_variance_std_error_
        fits.append((model.explained_variance_ - [1.0, 0.25]) / error)
        sign = np.sign(np.diag(model.components_[:, :2]))
        off = (sign[:, None] * model.components_ - np.eye(4)[:2])[:, 2:]
        components.append(off / model.components_std_error_[:, 2:])
    for found in (np.array(fits), np.array(components)):
        assert 0.4 < np.sqrt(np.mean(np.square(found))) < 1.4
        assert np.abs(found).max() < 4.5


def test_nothing_is_ok_where_all_days_are_noise():
    rng = np.random.default_rng(0)
    model = DPPCA(bounds=100.0, random_state=0)
    for _ in range(12):
        model.partial_fit(rng.normal(size=(20, 6)) * 0.01 + 30)
        assert not model.trustworthy_ and np.all(model.column_status_ == "noise")
    assert model.status_.startswith("no direction stands out from the noise in all days so far")


def test_a_first_center_that_is_far_off_is_no_component():
    """Moments about it hold its distance from the mean, which later days take off as far as they
    know it: until they do, that is noise."""
    rng, spread = np.random.default_rng(0), np.array([1.0, 0.7, 0.5, *[0.1] * 17])
    model, largest = DPPCA(bounds=20.0, random_state=0), []
    for _ in range(40):
        model.partial_fit(rng.normal(size=(222, 20)) * spread + 2)
        if model.trustworthy_:
            largest.append(model.explained_variance_[0])
    assert model.trustworthy_ and max(largest) < 3  # the mean is at the squared distance 80


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


def test_what_days_differ_by_is_in_the_variance():
    rng = np.random.default_rng(0)
    model, rows = DPPCA(bounds=20.0, epsilon=100.0, random_state=0), []
    for day in range(8):
        rows.append(rng.normal(size=(2000, 2)) * [0.5, 1.0] + [0.5 * (-1) ** day, 0.0])
        model.partial_fit(rows[-1])
    variance = np.linalg.eigvalsh(np.cov(np.vstack(rows).T))[::-1]  # 1 and .5, half of it by days
    assert np.allclose(model.explained_variance_, variance, rtol=0.2)


def test_long_tails_are_told():
    rng = np.random.default_rng(0)
    model = DPPCA(bounds=(0.0, 200.0), random_state=0)
    for _ in range(10):
        model.partial_fit(rng.lognormal(0, 0.8, size=(1500, 3)))
        assert model.status_.startswith("long tails may lie beyond")
    missing = np.expm1(0.64) * np.exp(0.64) - model.explained_variance_
    assert np.all(np.abs(missing) < 2 * model.explained_variance_std_error_)


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


def test_a_fit_is_a_first_day_of_components_and_a_pickle_goes_on():
    X, axes = table_of(6000)
    model = DPPCA(bounds=10.0, random_state=0).fit(X[:3000])
    other = pickle.loads(pickle.dumps(model)).partial_fit(X[3000:])
    model.partial_fit(X[3000:])
    assert np.array_equal(model.components_, other.components_)
    assert model.days_.number == 2 and lost(model, axes) < 0.02
    assert {line["release"] for line in model.privacy_report_.releases} == RELEASES_OF_MOMENTS
    assert model.transform(X).shape == (6000, 10) and np.isfinite(model.score(X))


def test_groups_weights_and_sparse_rows_of_days_of_components():
    X, axes = table_of(8000)
    dense = fitted(X, 4)
    sparse = DPPCA(bounds=10.0, random_state=0)
    weighted = DPPCA(bounds=10.0, max_weight=2.0, random_state=0)
    grouped = DPPCA(bounds=10.0, random_state=0)
    for rows in np.array_split(X, 4):
        sparse.partial_fit(csr_array(rows))
        weighted.partial_fit(rows, sample_weight=np.ones(2000))
        grouped.partial_fit(rows, groups=np.arange(2000) // 2)
    assert np.array_equal(sparse.components_, dense.components_)
    assert abs(weighted.size_ - 8000) < 1000 and abs(grouped.size_ - 4000) < 500
    for model in (dense, weighted, grouped):
        assert lost(model, axes) < 0.05


@pytest.mark.parametrize("scale", [1e-20, 1e20])
def test_the_scale_of_rows_does_not_matter(scale):
    X, _ = table_of(4000)
    model, scaled = fitted(X, 4), fitted(scale * X, 4, bounds=10.0 * scale)
    assert np.allclose(np.abs(scaled.components_[0] @ model.components_[0]), 1, atol=0.01)
    ratio = scaled.explained_variance_std_error_ / scale**2 / model.explained_variance_std_error_
    assert np.all((ratio > 0.5) & (ratio < 2)) and scaled.status_ == model.status_


def test_components_without_bounds_have_no_days():
    with pytest.raises(AttributeError, match="has no partial_fit without bounds"):
        DPPCA().partial_fit  # noqa: B018
