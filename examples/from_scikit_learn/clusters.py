"""Examples of the gallery about clusters."""

import numpy as np
from _example import COLORS, Example, crosses, scatter
from sklearn.cluster import BisectingKMeans, KMeans, MiniBatchKMeans
from sklearn.datasets import load_digits, load_iris, load_sample_image, make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score, silhouette_score, v_measure_score


def assumptions(make, factor, ax):
    n = 1500 * factor
    blobs, truth = make_blobs(n_samples=n, random_state=170)
    varied, _ = make_blobs(n_samples=n, cluster_std=[1.0, 2.5, 0.5], random_state=170)
    kept = np.concatenate(
        [np.flatnonzero(truth == k)[: m * factor] for k, m in enumerate((500, 100, 10))]
    )
    stretched = blobs @ [[0.6, -0.64], [-0.41, 0.85]]
    sets = [(blobs, 2), (stretched, 3), (varied, 3), (blobs[kept], 3)]
    costs = []
    for place, (X, k) in zip(((0, 0), (1, 0), (0, -1), (1, -1)), sets, strict=True):
        model = make(KMeans(n_clusters=k, n_init=10, random_state=0)).fit(X)
        costs.append(-model.score(X) / len(X))
        shown = (X - X.mean(axis=0)) / np.ptp(X, axis=0)
        scatter(ax, shown, model.predict(X), 2, np.array(place) * 1.1)
    return np.mean(costs)


def palette(make, factor, ax):
    image = load_sample_image("china.jpg")[::2, ::2] / 255.0
    pixels = image.reshape(-1, 3)
    sample = pixels[np.random.default_rng(0).permutation(len(pixels))[:30000]]
    model = make(KMeans(n_clusters=32, n_init=1, random_state=0), bounds=(0.0, 1.0)).fit(sample)
    painted = np.clip(model.cluster_centers_[model.predict(pixels)], 0, 1)
    if ax is not None:
        ax.imshow(painted.reshape(image.shape))
    return np.sqrt(np.mean((painted - pixels) ** 2)) * 255


def iris(make, factor, ax):
    X, species = load_iris(return_X_y=True)
    model = make(KMeans(n_clusters=3, n_init=10, random_state=0), bounds=(0.0, 8.0)).fit(X)
    scatter(ax, X[:, [3, 0]], model.predict(X), 12)
    crosses(ax, model.cluster_centers_[:, [3, 0]])
    return adjusted_rand_score(species, model.predict(X))


def digits(make, factor, ax):
    X, digit = load_digits(return_X_y=True)
    model = make(KMeans(n_clusters=10, n_init=4, random_state=0), bounds=(0.0, 16.0)).fit(X)
    if ax is not None:
        pictures = np.pad(
            model.cluster_centers_.reshape(2, 5, 8, 8), ((0, 0), (0, 0), (1, 1), (1, 1))
        )
        ax.imshow(np.block([list(row) for row in pictures]), cmap="gray_r")
    return v_measure_score(digit, model.predict(X))


def silhouettes(make, factor, ax):
    X, _ = make_blobs(
        n_samples=500 * factor, centers=4, cluster_std=1, center_box=(-10, 10), random_state=1
    )
    scores = {}
    for k in range(2, 7):
        labels = make(KMeans(n_clusters=k, n_init=10, random_state=10)).fit(X).predict(X)
        several = len(np.unique(labels)) > 1
        scores[k] = silhouette_score(X, labels, sample_size=500, random_state=0) if several else 0.0
    if ax is not None:
        ax.plot(scores.keys(), scores.values(), "o-", color=COLORS[0])
        ax.set(xticks=list(scores), yticks=[0, 0.5], ylim=(0, 0.8), xlabel="clusters")
    return scores[4]


def inductive(make, factor, ax):
    """New rows get clusters from a classifier, which has learned those of old rows."""
    places = [[-5, -5], [0, 0], [5, 5]]
    X, truth = make_blobs(
        n_samples=5000 * factor, cluster_std=[1.0, 1.0, 0.5], centers=places, random_state=42
    )
    old = np.arange(len(X)) % 2 == 0
    found = make(KMeans(n_clusters=3, n_init=10, random_state=0), bounds=12.0).fit(X[old])
    output = ("coef_", "intercept_")
    options = {"output": output, "classes": [0, 1, 2], "output_bounds": 20.0}
    classifier = make(LogisticRegression(), bounds=12.0, aggregate=options)
    classifier.fit(X[old], found.predict(X[old]))
    labels = classifier.predict(X[~old])
    scatter(ax, X[~old], labels)
    return adjusted_rand_score(truth[~old], labels)


def mini_batches(make, factor, ax):
    places = [[1, 1], [-1, -1], [1, -1]]
    X, truth = make_blobs(n_samples=3000 * factor, centers=places, cluster_std=0.7, random_state=0)
    model = make(MiniBatchKMeans(n_clusters=3, n_init=10, random_state=0)).fit(X)
    scatter(ax, X, model.predict(X))
    crosses(ax, model.cluster_centers_)
    return adjusted_rand_score(truth, model.predict(X))


def bisecting(make, factor, ax):
    X, _ = make_blobs(n_samples=10000 * factor, centers=2, random_state=0)
    model = make(BisectingKMeans(n_clusters=8, random_state=0)).fit(X)
    scatter(ax, X, model.predict(X))
    crosses(ax, model.cluster_centers_)
    return -model.score(X) / len(X)


def hundred(make, factor, ax):
    grid = np.stack(np.meshgrid(np.linspace(-22, 22, 10), np.linspace(-22, 22, 10)))
    centers = grid.reshape(2, -1).T
    X, truth = make_blobs(n_samples=25000 * factor, centers=centers, random_state=0)
    model = make(MiniBatchKMeans(n_clusters=100, n_init=3, random_state=0), bounds=32.0).fit(X)
    scatter(ax, X, model.predict(X), 2)
    crosses(ax, model.cluster_centers_)
    return adjusted_rand_score(truth, model.predict(X))


ARI = "adjusted Rand index"
EXAMPLES = [
    Example(
        "plot_kmeans_assumptions", "Assumptions of k-means", "mean squared distance, four sets",
        1.0, 1500, True,
        "Four sets of blobs: too few clusters, stretched ones, unequal spreads, unequal sizes. "
        "The private version makes the same mistakes.",
        assumptions,
    ),
    Example(
        "plot_color_quantization", "The colors of a photograph", "error of a color, of 255",
        1.0, 30000, False,
        "A photograph repainted in 32 colors, found from a sample of its pixels. Colors lie "
        "between 0 and 1, which are the public bounds.",
        palette,
    ),
    Example(
        "plot_cluster_iris", "Iris flowers", f"{ARI} to the species", 5.0, 150, False,
        "150 flowers are a small data set. At epsilon = 5 the three clusters are found; at 1 the "
        "index is about 0.54 (median of 15 fits).",
        iris,
    ),
    Example(
        "plot_kmeans_digits", "Handwritten digits", "V-measure", 4.0, 1797, False,
        "The ten centers of 8 x 8 images; each of the 64 features lies between 0 and 16.",
        digits,
    ),
    Example(
        "plot_kmeans_silhouette_analysis", "Silhouettes", "silhouette at 4 clusters", 1.0, 500,
        True,
        "How many clusters? There are five fits, each at this budget. The silhouette is "
        "computed from the rows and is not private: see [how to choose without spending "
        "budget](user_guide.md#what-will-epsilon-cost-me).",
        silhouettes,
    ),
    Example(
        "plot_inductive_clustering", "A classifier trained on clusters", f"{ARI} of new rows", 1.0,
        2500, True,
        "A classifier learns the cluster labels of the training rows, then labels new rows. "
        "Both steps are private, each at this budget: `DPKMeans`, and `SampleAndAggregate` of a "
        "logistic regression. (scikit-learn's page uses agglomerative clustering and a random "
        "forest, which have no private versions.) The classifier needs more rows than the "
        "clustering: of eight runs at 2,500 rows, five gave 0.93 to 1 and three about 0.5.",
        inductive,
    ),
    Example(
        "plot_mini_batch_kmeans", "Mini batches", ARI, 1.0, 3000, True,
        "`MiniBatchKMeans` exists for speed; `DPKMeans` is already fast.",
        mini_batches,
    ),
    Example(
        "plot_bisect_kmeans", "Bisecting k-means", "mean squared distance", 1.0, 10000, True,
        "Eight clusters for data with two blobs.",
        bisecting,
    ),
    Example(
        "plot_birch_vs_minibatchkmeans", "A hundred clusters", ARI, 1.0, 25000, True,
        "A grid of a hundred blobs, 250 rows each.",
        hundred,
    ),
]  # fmt: skip
