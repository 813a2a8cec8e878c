"""With a growing budget, every estimator ends at the result without privacy: errors fall or stay.

What is released is compared with what scikit-learn computes of the same rows, at epsilon = 100 to a
million. Noise is nothing there: what is left is a clip, a grid or a choice that does not follow the
budget.
"""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture

from sklearn_dp import (
    DPPCA,
    DPBySegment,
    DPCoreset,
    DPGaussianMixture,
    DPKMeans,
    DPKTupleKMeans,
    DPOneClusterKMeans,
    DPQuantiles,
    DPRobustScaler,
    DPStandardScaler,
    FederatedDPKMeans,
    FriendlyCovariance,
    FriendlyMean,
)

N, D = 2000, 4
BUDGETS = (1e2, 1e4, 1e6)


def rows(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    if kind == "normal":
        return X * [1, 2, 0.5, 1]
    if kind == "skewed":
        return np.exp(X)
    if kind == "tails":
        return rng.standard_t(3, size=(N, D))
    if kind == "spikes":
        return np.where(rng.random((N, D)) < [0.7, 0.7, 0.0, 0.0], 0.0, X)
    if kind == "codes":
        return rng.integers(1, 6, size=(N, D)).astype(float)
    if kind == "far away":
        return 1e4 + X
    centers = rng.uniform(-6, 6, size=(3, D))
    sizes = [0.6, 0.25, 0.15] if kind == "uneven blobs" else None
    return centers[rng.choice(3, size=N, p=sizes)] + 0.5 * X


ALL = ("normal", "skewed", "tails", "spikes", "codes", "blobs", "far away")


def bounds_of(X, kind):
    return {
        "box": {"bounds": (X.min(axis=0) - 1, X.max(axis=0) + 1)},
        "ball": {"bounds": 2 * float(np.linalg.norm(X, axis=1).max())},
        "none": {},
    }[kind]


def off(found, true, X):
    """In standard deviations of the columns."""
    return float(np.sqrt(np.mean(np.square((np.asarray(found) - true) / X.std(axis=0)))))


def more_cost(centers, X):
    squares = np.square(X[:, None] - centers).sum(axis=2).min(axis=1).sum()
    return squares / KMeans(len(centers), n_init=10, random_state=0).fit(X).inertia_ - 1


def covariance(model, X):
    scale = X.std(axis=0)
    return float(
        np.abs((model.covariance_ - np.cov(X.T, bias=True)) / np.outer(scale, scale)).max()
    )


def points(model, X):
    weights = np.maximum(model.weights_, 0.0)
    found = KMeans(3, n_init=5, random_state=0).fit(model.points_, sample_weight=weights)
    return more_cost(found.cluster_centers_, X)


def density(model, X):
    return GaussianMixture(3, n_init=5, random_state=0).fit(X).score(X) - model.score(X)


def halves(model, X):
    return off(model.estimators_[0].mean_, X[::2].mean(axis=0), X)


# The estimator, its error, the kinds of rows, and an error that is none: of grids, of the factor
# n / (n - 1), and of other local optima.
LAWS = {
    "mean": (FriendlyMean, lambda m, X: off(m.mean_, X.mean(axis=0), X), ALL, 1e-3),
    "scaler": (DPStandardScaler, lambda m, X: off(m.mean_, X.mean(axis=0), X), ALL, 1e-3),
    "scale": (DPStandardScaler, lambda m, X: off(m.scale_, X.std(axis=0), X), ALL, 0.02),
    "median": (DPRobustScaler, lambda m, X: off(m.center_, np.median(X, axis=0), X), ALL, 0.005),
    "quantiles": (
        lambda **options: DPQuantiles([0.1, 0.5, 0.9], **options),
        lambda m, X: off(m.quantiles_, np.quantile(X, [0.1, 0.5, 0.9], axis=0), X),
        ALL,
        0.005,
    ),
    "covariance": (FriendlyCovariance, covariance, ALL, 0.02),
    "components": (
        DPPCA,
        lambda m, X: float(
            np.abs(m.explained_variance_ / PCA().fit(X).explained_variance_ - 1).max()
        ),
        ALL,
        0.005,
    ),
    "clusters": (
        lambda **options: DPKMeans(3, **options),
        lambda m, X: more_cost(m.cluster_centers_, X),
        ALL,
        0.02,
    ),
    "mixture": (lambda **o: DPGaussianMixture(3, **o), density, ("blobs",), 1e-3),
    "tuples": (
        lambda **options: DPKTupleKMeans(3, **options),
        lambda m, X: more_cost(m.cluster_centers_, X),
        ("blobs",),
        1e-3,
    ),
    "balls": (
        lambda **options: DPOneClusterKMeans(3, **options),
        lambda m, X: more_cost(m.cluster_centers_, X),
        ("blobs", "uneven blobs"),
        0.05,
    ),
    "points": (lambda **o: DPCoreset(n_clusters=3, **o), points, ("blobs", "normal"), 0.02),
    "segments": (
        lambda **options: DPBySegment(
            FriendlyMean(bounds=options.pop("bounds", None)), values=[0, 1], **options
        ),
        halves,
        ("blobs", "skewed"),
        2e-3,
    ),
    "clients": (
        lambda **options: FederatedDPKMeans(3, **options),
        lambda m, X: more_cost(m.cluster_centers_, X),
        ("blobs",),
        1e-3,
    ),
}
CASES = [
    pytest.param(name, kind, bounds, id=f"{name}-{kind}-{bounds}")
    for name, (_, _, kinds, _) in LAWS.items()
    for kind in kinds
    for bounds in ("box", "ball", "none")
    if not (name in ("tuples", "balls", "clients", "points") and bounds == "none")
]


def fitted(model, X):
    if isinstance(model, DPBySegment):
        return model.fit(X, by=np.arange(N) % 2)
    if isinstance(model, FederatedDPKMeans):
        return model.fit_clients([X[i::20] for i in range(20)])
    return model.fit(X)


@pytest.mark.quick("mean-skewed-none", "mean-spikes-box", "*-blobs-box")
@pytest.mark.parametrize(("name", "kind", "bounds"), CASES)
def test_errors_fall_or_stay(name, kind, bounds):
    """The median of three fits at each budget: at most 1.5 times the best before, or nothing."""
    made, error, _, nothing = LAWS[name]
    X = rows(kind)
    options = bounds_of(X, bounds)
    found = [
        float(
            np.median(
                [
                    error(fitted(made(epsilon=budget, random_state=seed, **options), X), X)
                    for seed in range(3)
                ]
            )
        )
        for budget in (*FROM_ONE.get(name, ()), *BUDGETS)
    ]
    best = np.minimum.accumulate(found)
    assert all(
        now <= max(1.5 * before, nothing) for now, before in zip(found[1:], best, strict=False)
    ), found
    assert found[-1] <= nothing, found


FROM_ONE = {"balls": (1.0, 3.0, 10.0)}
