"""One result for each region: each alone, one model for all, and both together.

    python benchmarks/segments.py [--seeds 4]

prints its table and writes ``doc/benchmarks/segments.md``, which says what is compared.
"""

import argparse
import warnings

import _run  # first: one thread
import numpy as np
from scipy.stats import multivariate_normal
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture

from sklearn_dp import (
    DPBySegment,
    DPGaussianMixture,
    DPKMeans,
    FriendlyCovariance,
    FriendlyMean,
    PrivacyBudget,
)

PAGE = _run.PAGES / "segments.md"
REGIONS, FEATURES, CLUSTERS, NOISE = 20, 4, 5, 0.12
BOX = {"bounds": (-2.5, 2.5)}
RHO = PrivacyBudget(1.0, 1e-6).to_rho()
INTRO = """# One result for each region

Made by `{made}` with {versions}; epsilon 1, delta 1e-6 for all regions together.

Twenty regions of as many rows each, four features. Clusters: five in each region, with a standard
deviation of .12, whose centers lie `regions apart` from the common ones in each feature; the cost
of the released centers over that of k-means without privacy in the region. Means: normal rows with
a standard deviation of .5, and means that lie `regions apart`; the root mean squared error as
estimates of the region's mean over that of the exact mean of its rows. Covariances: the same for
normal rows, where logarithms of covariances lie `regions apart`, in coordinates where the true one
is the identity. 1 is as good as without privacy, and less is what borrowing gains. Mixtures:
three components of three features, whose means and log variances lie `regions
apart`; how much lower the mean log-likelihood of new rows is than under the truth, in brackets that
of EM without privacy.

* alone: each region has the whole budget, and learns nothing from the others
  (`DPBySegment(borrow=False)`, or a ledger with disjoint keys);
* shared: as many fits with a twentieth of rho each, which is what they may have where nothing is
  known to be disjoint;
* pooled: one fit of all rows, for every region;
* borrowing: `DPBySegment` as it is.

Small regions gain most. Where clusters of a region lie several widths from the common ones (.3 is
two and a half), a start from these is a bad start for some regions: once the first regions show
that, those from about 1,000 rows on find a start of their own.
"""
WAYS = ("alone", "shared", "pooled", "borrowing")


def clusters(n, apart, seed):
    """Regions whose clusters lie a little differently, and are of different sizes."""
    rng = np.random.default_rng(seed)
    common = rng.uniform(-1, 1, size=(CLUSTERS, FEATURES))
    tables = []
    for _ in range(REGIONS):
        centers = common + apart * rng.normal(size=common.shape)
        sizes = rng.dirichlet(np.full(CLUSTERS, 8.0))
        labels = rng.choice(CLUSTERS, n, p=sizes)
        tables.append(centers[labels] + NOISE * rng.normal(size=(n, FEATURES)))
    return tables


def fitted(estimator, tables):
    """The estimators of each way, a list with one for each region."""
    X, key = np.vstack(tables), np.repeat(np.arange(REGIONS), [len(table) for table in tables])
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for way in WAYS:
            if way == "pooled":
                found[way] = [DPBySegment(estimator).fit(X).estimators_["all"]] * REGIONS
                continue
            options = {"rho": RHO / REGIONS} if way == "shared" else {}
            model = DPBySegment(
                estimator, values=range(REGIONS), borrow=way == "borrowing", **options
            )
            found[way] = [*model.fit(X, by=key).estimators_.values()]
    return found


def costs(n, apart, seed):
    """Cost of each region over that of k-means without privacy."""
    tables = clusters(n, apart, seed)
    best = [KMeans(CLUSTERS, n_init=4, random_state=0).fit(table).inertia_ for table in tables]
    return {
        way: [-m.score(t) / b for m, t, b in zip(models, tables, best, strict=True)]
        for way, models in fitted(DPKMeans(CLUSTERS, **BOX), tables).items()
    }


def errors(estimator, name, n, apart, seed):
    """Squared errors of means as estimates of the region's, over those without privacy."""
    rng = np.random.default_rng(seed + 1000)
    truth = apart * rng.normal(size=(REGIONS, FEATURES))
    tables = [mean + 0.5 * rng.normal(size=(n, FEATURES)) for mean in truth]
    return {
        way: np.concatenate(
            [getattr(model, name) - mean for model, mean in zip(models, truth, strict=True)]
        )
        / (0.5 / np.sqrt(n))
        for way, models in fitted(estimator, tables).items()
    }


def near(matrix, apart, rng):
    """A matrix whose logarithm, in coordinates where the given one is 1, scatters by `apart`."""
    noise = rng.normal(size=matrix.shape)
    scales, axes = np.linalg.eigh(apart * (noise + noise.T) / 2)
    factor = np.linalg.cholesky(matrix)
    return factor @ (axes * np.exp(scales)) @ axes.T @ factor.T


def off(matrix, truth):
    """Distance of a matrix from the true one, in coordinates where that is the identity."""
    inverse = np.linalg.inv(np.linalg.cholesky(truth))
    return np.linalg.norm(inverse @ matrix @ inverse.T - np.eye(len(truth)))


def covariances(n, apart, seed):
    """Root mean squared errors of covariances over those without privacy."""
    rng = np.random.default_rng(seed + 2000)
    root = rng.normal(size=(FEATURES, FEATURES))
    common = root @ root.T / FEATURES + 0.1 * np.eye(FEATURES)
    truth = [near(common / np.trace(common), apart, rng) for _ in range(REGIONS)]
    tables = [rng.multivariate_normal(np.zeros(FEATURES), each, size=n) for each in truth]
    exact = np.sqrt(np.mean([off(np.cov(t.T), c) ** 2 for t, c in zip(tables, truth, strict=True)]))
    return {
        way: [off(m.covariance_, c) / exact for m, c in zip(models, truth, strict=True)]
        for way, models in fitted(FriendlyCovariance(**BOX), tables).items()
    }


def mixtures(n, apart, seed):
    """What mean log-likelihoods of new rows lose to those under the truth; "exact": by EM."""
    rng = np.random.default_rng(seed + 3000)
    common = np.array([[-1.0, -0.5, 0.0], [1.0, 0.5, 0.0], [0.0, 1.2, 0.8]])
    tables, new, best = [], [], []
    for _ in range(REGIONS):
        laws = [
            multivariate_normal(
                place + apart * rng.normal(size=3), near(0.04 * np.eye(3), 2 * apart, rng)
            )
            for place in common
        ]
        weights = rng.dirichlet(np.full(3, 8.0))
        labels = rng.choice(3, n + 1500, p=weights)
        rows = np.array([laws[label].rvs(random_state=rng) for label in labels])
        tables.append(rows[:n])
        new.append(rows[n:])
        density = sum(w * law.pdf(new[-1]) for w, law in zip(weights, laws, strict=True))
        best.append(np.log(density).mean())
    models = fitted(DPGaussianMixture(3, **BOX), tables)
    models["exact"] = [GaussianMixture(3, n_init=2, random_state=0).fit(t) for t in tables]
    return {
        way: [b - m.score(t) for b, m, t in zip(best, each, new, strict=True)]
        for way, each in models.items()
    }


def lines(seeds):
    """Rows of the table."""
    for apart in (0.05, 0.15, 0.3):
        for n in (300, 1000, 3000):
            found = [costs(n, apart, seed) for seed in range(seeds)]
            yield (
                "k-means: cost, mean (median)",
                apart,
                n,
                *(
                    f"{np.mean(each):.3f} ({np.median(each):.3f})"
                    for way in WAYS
                    for each in ([cost for one in found for cost in one[way]],)
                ),
            )
    for title, estimator, name in (
        ("mean: error", FriendlyMean(**BOX), "mean_"),
        ("location of a covariance: error", FriendlyCovariance(**BOX), "location_"),
    ):
        for apart in (0.01, 0.05, 0.3):
            for n in (300, 1000, 3000):
                found = [errors(estimator, name, n, apart, seed) for seed in range(seeds)]
                yield (
                    title,
                    apart,
                    n,
                    *(
                        f"{np.sqrt(np.mean(np.square([one[way] for one in found]))):.2f}"
                        for way in WAYS
                    ),
                )
    for apart in (0.05, 0.2, 0.6):
        for n in (300, 1000, 3000):
            found = [covariances(n, apart, seed) for seed in range(seeds)]
            mean = {way: np.mean(np.square([one[way] for one in found])) for way in WAYS}
            yield "covariance: error", apart, n, *(f"{np.sqrt(mean[way]):.2f}" for way in WAYS)
    for apart in (0.05, 0.15, 0.3):
        for n in (300, 1000, 3000):
            found = mixtures(n, apart, 0)
            exact = f"mixture: loss, median ({np.median(found['exact']):.3f})"
            yield exact, apart, n, *(f"{np.median(found[way]):.3f}" for way in WAYS)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=4)
    seeds = parser.parse_args().seeds
    head = ("", "regions apart", "rows each", *WAYS)
    table = [head, ("---",) * len(head)]
    for line in lines(seeds):
        table.append(tuple(map(str, line)))
        print("  ".join(table[-1]), flush=True)
    text = "\n".join(f"| {' | '.join(line)} |" for line in table)
    made = f"python benchmarks/segments.py --seeds {seeds}"
    versions = _run.versions("numpy")
    PAGE.write_text(f"{INTRO.format(made=made, versions=versions)}\n{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
