"""Examples of the gallery about mixtures, principal components and covariances."""

import numpy as np
from _example import COLORS, Example, crosses, ellipse, scatter
from sklearn.covariance import EmpiricalCovariance
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score, roc_auc_score
from sklearn.mixture import GaussianMixture


def density(make, factor, ax):
    def draw(n, seed):
        rng = np.random.RandomState(seed)
        shifted = rng.randn(n, 2) + [20, 20]
        return np.vstack([shifted, rng.randn(n, 2) @ [[0.0, -0.7], [3.5, 0.7]]])

    X, fresh = draw(300 * factor, 0), draw(1000, 1)
    model = make(GaussianMixture(n_components=2, random_state=0), bounds=50.0).fit(X)
    if ax is not None:
        x, y = np.meshgrid(np.linspace(-20, 30, 60), np.linspace(-20, 40, 60))
        height = -model.score_samples(np.column_stack([x.ravel(), y.ravel()])).reshape(x.shape)
        ax.contour(x, y, height, levels=np.logspace(0, 3, 12), linewidths=0.7)
    scatter(ax, X, np.zeros(len(X), int))
    return model.score(fresh)


def selection(make, factor, ax):
    rng = np.random.RandomState(0)
    n = 500 * factor
    stretched = rng.randn(n, 2) @ [[0.0, -0.1], [1.7, 0.4]]
    X = np.vstack([stretched, 0.7 * rng.randn(n, 2) + [-6, 3]])
    model = make(GaussianMixture(n_components=2, random_state=0), bounds=15.0).fit(X)
    labels = model.predict(X)
    scatter(ax, X, labels)
    for k in range(2):
        ellipse(ax, model.means_[k], model.covariances_[k], COLORS[k])
    return adjusted_rand_score(np.repeat([0, 1], n), labels)


def components(make, factor, ax):
    X, species = load_iris(return_X_y=True)
    model = make(PCA(n_components=3), bounds=(0.0, 8.0)).fit(X)
    scores = np.asarray(model.transform(X))
    scatter(ax, scores, species, 12)
    centered = X - X.mean(axis=0)
    return np.sum((centered @ model.components_.T) ** 2) / np.sum(centered**2)


def distances(make, factor, ax):
    rng = np.random.RandomState(7)
    n, n_far = 125 * factor, 25 * factor
    inliers = rng.randn(n - n_far, 2) @ np.diag([2.0, 1.0])
    far = rng.randn(n_far, 2) @ np.diag([1.0, 7.0])
    X = np.vstack([inliers, far])
    model = make(EmpiricalCovariance(), bounds=25.0).fit(X)
    scatter(ax, X, np.repeat([0, 1], [n - n_far, n_far]), 6)
    ellipse(ax, model.location_, model.covariance_, "black", (1, 2, 3))
    crosses(ax, np.atleast_2d(model.location_))
    return roc_auc_score(np.repeat([0, 1], [n - n_far, n_far]), model.mahalanobis(X))


EXAMPLES = [
    Example(
        "plot_gmm_pdf", "The density of a mixture", "mean log-likelihood of fresh rows", 1.0, 600,
        True,
        "Contour lines of the density of two components.",
        density,
    ),
    Example(
        "plot_gmm_selection", "Two components", "adjusted Rand index", 1.0, 1000, True,
        "The model that the original selects: two components with full covariances. (The "
        "original compares many fits by BIC; each fit would cost budget.)",
        selection,
    ),
    Example(
        "plot_pca_iris", "Three components of iris", "share of the variance", 5.0, 150, False,
        "150 rows and 4 features, at epsilon = 5.",
        components,
    ),
    Example(
        "plot_mahalanobis_distances", "Distances from the bulk", "area under the curve", 1.0, 125,
        True,
        "Outliers should have the largest distances. 125 rows are too few for a private "
        "covariance. Ten times as many are enough, and then clipping far rows helps.",
        distances,
    ),
]  # fmt: skip
