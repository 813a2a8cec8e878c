"""Levels of a hierarchy: nested clusters found again, errors that hold, sizes that are sure.

    python benchmarks/hierarchy.py [--seeds 10]

prints its table and writes ``doc/benchmarks/hierarchy.md``, which says what is compared.
"""

import argparse
import warnings

import _run  # first: one thread
import numpy as np
from scipy.spatial.distance import pdist
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from sklearn_dp import DPCoreset, DPKMeans
from sklearn_dp.cluster import ClusterHierarchy

PAGE = _run.PAGES / "hierarchy.md"
ROWS, FEATURES, LEVELS, SMALLEST = 50_000, 4, (5, 20, 60), 500
EPSILONS = (10.0, 4.0, 1.0, 0.3)
INTRO = """# Levels of a hierarchy

Made by `{made}` with {versions}; delta 1e-6.

{rows:,} rows in {features} features: {top} regions, each of {each} cities, each of {last}
districts, whose sizes differ by a factor of up to 20. One fit finds the districts
(`DPKMeans(n_clusters={most})`, or a `DPCoreset`); the coarser levels are cuts of its
`ClusterHierarchy`. The numbers below {levels} are adjusted Rand indices with the truth of the level
of so many clusters. `Ward` has no privacy: k-means from k-means++ (the best of 3), and the same
hierarchy of its centers with exact sizes.

`centers` and `weights` are the shares of 95% intervals on the level of {middle} clusters that hold
what they are about: the mean of the law of the rows of a city, and the number of rows. `of found`
is the share of centers in the cities where no center of the fit is shared by several districts;
where two districts share one, its own interval does not hold either, and the status of most such
fits is not "ok". `smallest` is the least true size of what `merge_small({smallest})`
leaves, in any fit, `kept` how many clusters that are. Means of {seeds} fits.
"""


def apart(rng, n_parents, n):
    """Normal offsets (n, d) of the children of some parents, those of one not close together."""
    found = []
    while len(found) < n_parents:
        drawn = rng.normal(size=(n // n_parents, FEATURES))
        if pdist(drawn).min() > 1.5:
            found.append(drawn)
    return np.concatenate(found)


def nested(seed):
    """Rows, their true labels on each level, and the means of the cities."""
    rng = np.random.default_rng(seed)
    regions = 3 * apart(rng, 1, LEVELS[0])
    cities = regions.repeat(LEVELS[1] // LEVELS[0], axis=0) + 0.6 * apart(rng, *LEVELS[:2])
    districts = cities.repeat(LEVELS[2] // LEVELS[1], axis=0) + 0.12 * apart(rng, *LEVELS[1:])
    shares = 20 ** rng.random(LEVELS[2])
    labels = rng.choice(LEVELS[2], size=ROWS, p=shares / shares.sum())
    X = districts[labels] + 0.03 * rng.normal(size=(ROWS, FEATURES))
    weighted = (shares[:, None] * districts).reshape(LEVELS[1], -1, FEATURES).sum(axis=1)
    means = weighted / shares.reshape(LEVELS[1], -1).sum(axis=1)[:, None]
    return X, [labels // (LEVELS[2] // k) for k in LEVELS], means


def indices(tree, X, truth):
    """Adjusted Rand index of each level."""
    return [
        adjusted_rand_score(labels, tree.cut(k).predict(X))
        for k, labels in zip(LEVELS, truth, strict=True)
    ]


def held(tree, X, truth, means):
    """Shares of intervals of the middle level that hold the means of cities, and the sizes.

    The second one is of cities whose every center has rows of a single district.
    """
    level = tree.cut(LEVELS[1])
    fine, labels = tree.cut(LEVELS[2]).predict(X), level.predict(X)
    counts = np.zeros((LEVELS[2], LEVELS[2]))
    np.add.at(counts, (fine, truth[2]), 1)
    pure = counts.max(axis=1) > 0.95 * counts.sum(axis=1)
    found = np.array([pure[level.labels == i].all() for i in range(LEVELS[1])])
    city = [np.bincount(truth[1][labels == i], minlength=1).argmax() for i in range(LEVELS[1])]
    sizes = np.bincount(labels, minlength=LEVELS[1])
    centers = np.abs(level.centers - means[city]) <= 1.96 * level.centers_std_error
    weights = np.abs(level.weights - sizes) <= 1.96 * level.weights_std_error
    return [centers.mean(), centers[found].mean(), weights.mean()]


def sure(tree, X):
    """The least true size of what remains, and how many remain."""
    try:
        level = tree.merge_small(SMALLEST)
    except ValueError:
        return [np.inf, 0]
    return [np.bincount(level.predict(X), minlength=len(level.weights)).min(), len(level.weights)]


def results_of(seeds):
    """Numbers of each fit, by the name of the line."""
    results = {}
    for seed in range(seeds):
        X, truth, means = nested(300 + seed)
        model = KMeans(LEVELS[2], n_init=3, random_state=seed).fit(X)
        tree = ClusterHierarchy(model.cluster_centers_, np.bincount(model.labels_))
        results.setdefault("Ward", []).append(indices(tree, X, truth))
        for epsilon in EPSILONS:
            options = {"epsilon": epsilon, "bounds": 12.0, "random_state": seed}
            model = DPKMeans(LEVELS[2], **options).fit(X)
            tree = ClusterHierarchy.from_estimator(model)
            found = [*indices(tree, X, truth), *held(tree, X, truth, means), *sure(tree, X)]
            results.setdefault(f"DPKMeans, ε = {epsilon:g}", []).append(found)
            tree = ClusterHierarchy.from_estimator(DPCoreset(LEVELS[2], **options).fit(X))
            if len(tree.weights) >= LEVELS[2]:
                found = indices(tree, X, truth)
                results.setdefault(f"DPCoreset, ε = {epsilon:g}", []).append(found)
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    heads = [*LEVELS, "centers", "of found", "weights", "smallest", "kept"]
    lines = ["| | " + " | ".join(map(str, heads)) + " |", "|---" * (len(heads) + 1) + "|"]
    for name, found in results_of(options.seeds).items():
        means = np.mean(found, axis=0)
        cells = [f"{each:.3f}" for each in means[:6]]
        if len(means) > 6:
            cells += [f"{np.min(found, axis=0)[6]:.0f}", f"{means[7]:.1f}"]
        cells += [""] * (len(heads) - len(cells))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    print("\n".join(lines))
    intro = INTRO.format(
        made=f"python benchmarks/hierarchy.py --seeds {options.seeds}",
        versions=_run.versions("numpy"),
        rows=ROWS, features=FEATURES, top=LEVELS[0], each=LEVELS[1] // LEVELS[0],
        last=LEVELS[2] // LEVELS[1], most=LEVELS[2], middle=LEVELS[1], smallest=SMALLEST,
        levels=", ".join(map(str, LEVELS)), seeds=options.seeds,
    )  # fmt: skip
    PAGE.write_text(intro + "\n" + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
