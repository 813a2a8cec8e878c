"""DPPCA day by day: accuracy, errors, drift, one unit of one day."""

import numpy as np

from sklearn_dp import DPPCA

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
