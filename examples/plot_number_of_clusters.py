"""
How many clusters? Let the fit choose
=====================================

`DPKMeans("auto")` chooses the number of clusters from values that it releases anyway, at epsilon =
1: in the plane by the gap statistic of its coreset, in 20 features by a criterion evaluated on
noisy iterations. The third panel has the costs of other numbers.

In a terminal::

    python examples/plot_number_of_clusters.py [--quick] [--output FILE.png]
"""

import numpy as np
from _common import ACCENT, MUTED, OTHER, parse_arguments, print_table, save, timed
from scipy.spatial.distance import pdist
from sklearn.cluster import KMeans

from sklearn_dp import DPKMeans

TRUE, CANDIDATES, TRIED = 12, (2, 24), (6, 9, 10, 11, 12, 13, 14, 18)


def mixture(n, d):
    """Round clusters, at least five standard deviations apart."""
    rng = np.random.default_rng(2)
    draws = [rng.uniform(size=(TRUE, d)) for _ in range(50)]
    centers = max(draws, key=lambda places: pdist(places).min())
    centers *= 5 / pdist(centers).min()
    return centers[rng.integers(TRUE, size=n)] + rng.normal(size=(n, d))


def draw(figure, X, models, ratios):
    """The rows with the centers, both criteria, and the costs of other numbers."""
    figure.set_layout_engine("constrained")
    left, middle, right = figure.subplots(1, 3)
    flat = models[2]
    left.scatter(*X[:4000].T, s=2, color=MUTED, alpha=0.5)  # synthetic, so they may be shown
    left.scatter(*flat.cluster_centers_.T, s=60, color=ACCENT, edgecolor="white")
    left.set(aspect="equal", title=f"Chosen in the plane: {flat.n_clusters_} clusters")
    for (d, model), color, marker in zip(models.items(), (ACCENT, OTHER), "os", strict=True):
        numbers, values = np.array(list(model.n_clusters_criterion_.items())).T
        # The two criteria have no common unit: each from 0, the least, to 1, the chosen number.
        values = (values - values.min()) / (values.max() - values.min())
        name = f"{d} features: {'gap' if d <= 5 else 'bic'}"
        middle.plot(numbers, values, color=color, marker=marker, ms=4, label=name)
    middle.axvline(TRUE, color=MUTED, lw=1, ls="--")
    middle.set(xlabel="clusters", ylabel="criterion, scaled", title="What it was chosen by")
    middle.legend(loc="lower right")
    right.plot(TRIED, ratios, color=ACCENT, marker="o")
    right.axhline(1, color=MUTED, lw=1)
    right.set(xlabel="clusters", title="What another number costs", xticks=TRIED, yscale="log")
    right.set_ylabel(f"cost in the plane, over KMeans({TRUE})")
    right.set_yticks(ticks := [0.7, 1, 2, 4, 8], [str(tick) for tick in ticks])
    right.minorticks_off()


def main(argv=None):
    options = parse_arguments(__doc__, "number_of_clusters.png", argv)
    tables = {d: mixture(10_000 if options.quick else 20_000, d) for d in (2, 20)}
    models, times = {}, {}
    for d, X in tables.items():
        models[d], times[d] = timed(DPKMeans(CANDIDATES, epsilon=1.0).fit, X)
    print(models[2].privacy_report_)
    print()
    print_table(
        ("features", "chosen", "CPU seconds", "status"),
        [
            (str(d), str(model.n_clusters_), f"{times[d].cpu:.2f}", str(model.messages_))
            for d, model in models.items()
        ],
    )
    X, ratios = tables[2], []
    least = KMeans(TRUE, n_init=5, random_state=0).fit(X).inertia_
    for k in TRIED:  # on synthetic rows: with private rows each of these fits would be charged
        ratios.append(-DPKMeans(k, epsilon=1.0).fit(X).score(X) / least)
    print()
    print_table(
        ("clusters", f"cost / KMeans({TRUE})"),
        [(str(k), f"{ratio:.3f}") for k, ratio in zip(TRIED, ratios, strict=True)],
    )
    save(lambda figure: draw(figure, X, models, ratios), options.output, (14, 4.6))


if __name__ == "__main__":
    main()
