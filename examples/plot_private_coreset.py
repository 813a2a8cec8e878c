"""
A private coreset: one fit, then any number of clusterings for free
===================================================================

`DPCoreset` releases weighted points once, at epsilon = 1. Scikit-learn's `DBSCAN` and nine runs of
`KMeans` then use these points at no further privacy cost.

In a terminal::

    python examples/plot_private_coreset.py [--quick] [--output FILE.png]
"""

import numpy as np
from _common import ACCENT, MUTED, OTHER, parse_arguments, print_table, save, timed
from sklearn.cluster import DBSCAN, KMeans
from sklearn.datasets import make_moons
from sklearn.metrics import adjusted_rand_score, pairwise_distances_argmin_min

from sklearn_dp import DPCoreset

CLUSTERS = range(2, 11)


def cost(X, centers):
    """Sum of squared distances of the rows to the nearest center."""
    return float(np.square(pairwise_distances_argmin_min(X, centers)[1]).sum())


def colors_of(labels):
    """Blue and orange; gray for points in no cluster."""
    return np.array([MUTED, OTHER, ACCENT])[np.clip(labels, -1, 1) + 1]


def draw(figure, X, coreset, labels, ratios):
    """The points, the rows labeled by their nearest points, and the costs."""
    figure.set_layout_engine("constrained")
    left, middle, right = figure.subplots(1, 3)
    sizes = 400 * coreset.weights_ / coreset.weights_.max()
    left.scatter(*coreset.points_.T, s=sizes, c=colors_of(labels), alpha=0.7, lw=0)
    left.set_title(f"{len(labels)} released points, DBSCAN")
    # The rows are synthetic, so they may be shown.
    middle.scatter(*X[:4000].T, s=2, c=colors_of(labels[coreset.predict(X[:4000])]))
    middle.set_title("Rows, with the labels of their points")
    for axis in (left, middle):
        axis.set(aspect="equal", xlabel="first feature", ylabel="second feature")
    right.plot(list(CLUSTERS), ratios, color=ACCENT, marker="o")
    right.axhline(1, color=MUTED, lw=1)
    right.set(xlabel="clusters", title="KMeans on the points", xticks=list(CLUSTERS))
    right.set_ylabel("cost on the rows, over KMeans on the rows")


def main(argv=None):
    options = parse_arguments(__doc__, "private_coreset.png", argv)
    X, truth = make_moons(10_000 if options.quick else 20_000, noise=0.05, random_state=0)
    coreset, seconds = timed(DPCoreset(epsilon=1.0, bounds=3.0).fit, X)
    print(coreset.privacy_report_)
    print(f"\n{len(coreset.points_)} points in {seconds.cpu:.2f} CPU seconds")
    weights = coreset.weights_
    dbscan = DBSCAN(eps=2 * coreset.resolution_, min_samples=int(0.0025 * weights.sum()) + 1)
    labels = dbscan.fit(coreset.points_, sample_weight=weights).labels_
    index = adjusted_rand_score(truth, labels[coreset.predict(X)])
    print(f"DBSCAN on the points: ARI to the truth {index:.3f}\n")
    ratios = []
    for k in CLUSTERS:
        ours = KMeans(k, n_init=5, random_state=0).fit(coreset.points_, sample_weight=weights)
        rows = KMeans(k, n_init=5, random_state=0).fit(X)
        ratios.append(cost(X, ours.cluster_centers_) / rows.inertia_)
    print_table(
        ("clusters", "cost / KMeans"),
        [(str(k), f"{ratio:.4f}") for k, ratio in zip(CLUSTERS, ratios, strict=True)],
    )
    save(lambda figure: draw(figure, X, coreset, labels, ratios), options.output, (14, 4.6))


if __name__ == "__main__":
    main()
