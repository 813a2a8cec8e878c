"""Rows that come day by day: `partial_fit` beside what can be done without it.

    python benchmarks/days.py [--seeds 12]

prints its table and writes ``doc/benchmarks/days.md``, which says what is compared.
"""

import argparse
import math
import warnings

import _run  # first: one thread
import numpy as np
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture

from sklearn_dp import (
    DPPCA,
    DPCoreset,
    DPGaussianMixture,
    DPKMeans,
    FriendlyCovariance,
    FriendlyMean,
    PrivacyBudget,
)

PAGE = _run.PAGES / "days.md"
RHO = PrivacyBudget(1.0, 1e-6).to_rho()
DRIFT_DAYS = 30  # in which a center moves by its width
HALF_LIFE = 10
INTRO = """# Rows that come day by day

Made by `{made}` with {versions}; epsilon 1, delta 1e-6 for all days together, each row on one day.

The cost of the last day's centers over that of k-means without privacy on all rows; for the drift,
over that of the true centers of the last day on fresh rows of it.

* blobs: 20,000 rows, 16 features, 16 clusters with a standard deviation of .05 in a cube of side 1;
* digits: the 1,797 digits ten times over, 64 features, 10 clusters;
* drift: 20,000 rows, 4 features, 8 clusters with a standard deviation of .1, each of which moves by
  its width in 30 days.

The ways:

* by day: `partial_fit`; for the drift with a half-life of ten days. Rows are not kept;
* refits: a fit of all rows so far on each day, with an equal part of rho each (what is shown is the
  last one). All rows are kept, and the number of days has to be known;
* coresets: a `DPCoreset` of each day with the whole budget, merged for weighted k-means;
* one fit: no answer before the last day.

`first ok` is the first day on which `status_` of the stream had nothing to complain of, and the
cost of the centers on that day (for the drift, whose clusters were elsewhere then, the day only).
"""

MEANS = """
## Means

The root mean squared error of `FriendlyMean` over four columns alike, in sampling errors of 20,000
rows (1: the mean of all rows without privacy), within bounds:

* normal: 12 standard deviations wide;
* skewed: lognormal, with a sigma of .8, up to the 40 times of its median.

`each day` is the mean of separate fits of all days, with the whole budget each, by their sizes.
"""

COVARIANCES = """
## Covariances

The Frobenius norm of the error of `FriendlyCovariance`, in coordinates where the true covariance is
the identity: means over the seeds, beside the covariance of all rows without privacy. There are
20,000 rows of four features:

* normal: with standard deviations that differ by a factor of 20;
* exponential: independent columns, whose long tails are clipped.
"""

COMPONENTS = """
## Principal components

What `DPPCA` leaves of the squared distances of rows from their projections, over what PCA without
privacy leaves: means over the seeds. A covariance fitted day by day, and its eigenvectors, are
beside it. There are 20,000 rows:

* four: four features, with standard deviations that differ by a factor of 20; two components;
* twenty: three wide directions of twenty, the others with a tenth of the standard deviation of the
  widest; three components;
* digits: as above; five components;
* drift: ten features, two of them wide; the first of these turns toward another one, by a right
  angle in 60 days. A half-life of ten days; rows are fresh ones of the last day.
"""

MIXTURES = """
## Mixtures

The mean log-likelihood of 20,000 rows under scikit-learn's `GaussianMixture` of all of them, less
that under `DPGaussianMixture`, per row, with full covariances: means over the seeds. Components
have 2 to k + 1 parts of the rows, means in a cube of side 8 and standard deviations from .3 to 1
along axes of their own. `first ok` has the loss of that day, too.
"""

CORESETS = """
## Weighted points that stand for all days

The cost of weighted k-means on released points, over that of k-means without privacy on all rows:
means over the seeds, of the tables above. `DPCoreset` has no `partial_fit`, because this is better:

* centers: twice as many centers as there are clusters, fitted by `DPKMeans.partial_fit`, with their
  `cluster_weights_`;
* merged: a `DPCoreset` of each day with the whole budget;
* refits: a `DPCoreset` of all rows so far on each day, with an equal part of rho each;
* one coreset: no points before the last day.
"""


def blobs(rng, n_days, n=20_000, k=16, d=16):
    """Rows of each day."""
    centers = rng.uniform(-0.5, 0.5, size=(k, d))
    X = centers[rng.integers(k, size=n)] + 0.05 * rng.normal(size=(n, d))
    return np.array_split(X, n_days), k, 0.6 * math.sqrt(d)


def digits(rng, n_days):
    """The same, of digits."""
    X = np.tile(load_digits().data / 16 - 0.3, (10, 1))
    return np.array_split(X[rng.permutation(len(X))], n_days), 10, 4.0


def drift(rng, n_days, n=20_000, k=8, d=4):
    """The same, of clusters that move; and fresh rows of the last day, with their true centers."""
    centers, width = rng.uniform(-0.8, 0.8, size=(k, d)), 0.1
    way = rng.normal(size=(k, d))
    way *= width * math.sqrt(d) / DRIFT_DAYS / np.linalg.norm(way, axis=1, keepdims=True)

    def rows(day, n):
        return (centers + day * way)[rng.integers(k, size=n)] + width * rng.normal(size=(n, d))

    days = [rows(day, n // n_days) for day in range(n_days)]
    return days, k, 2.5, rows(n_days - 1, 5000), centers + (n_days - 1) * way


def cost(X, centers):
    """Sum of squared distances to the nearest center."""
    return float(np.min([((X - center) ** 2).sum(axis=1) for center in centers], axis=0).sum())


def by_day(days, model, judge, **options):
    """Last centers; the first day with a status that is ok, and the cost on that day."""
    first = None
    for number, rows in enumerate(days, 1):
        model.partial_fit(rows, **options)
        if first is None and model.trustworthy_:
            first = number, judge(model.cluster_centers_)
    return model.cluster_centers_, first


def merged(days, k, bounds, seed):
    """Weighted k-means of the coresets of all days."""
    seeds = np.random.default_rng(seed).integers(2**31, size=len(days)).tolist()
    fits = [
        DPCoreset(k, bounds=bounds, random_state=own).fit(rows)
        for own, rows in zip(seeds, days, strict=True)
    ]
    points = np.vstack([fit.points_ for fit in fits])
    return solved(points, np.concatenate([fit.weights_ for fit in fits]), k)


def solved(points, weights, k):
    """Centers of weighted points."""
    weights = np.maximum(weights, 1e-9)
    return KMeans(k, n_init=5, random_state=0).fit(points, sample_weight=weights).cluster_centers_


def costs(make, n_days, seed):
    """Relative cost of each way, and the first good day."""
    days, k, bounds, *last = make(np.random.default_rng(seed), n_days)
    X = np.vstack(days)
    if last:
        rows, best = last[0], cost(*last)
    else:
        rows, best = X, KMeans(k, n_init=5, random_state=0).fit(X).inertia_

    def judge(centers):
        return cost(rows, centers) / best

    one = DPKMeans(k, bounds=bounds, random_state=seed)
    ours, first = by_day(days, clone(one), judge, **({"half_life": HALF_LIFE} if last else {}))
    refit = clone(one).set_params(rho=RHO / n_days).fit(X).cluster_centers_
    ways = ours, refit, merged(days, k, bounds, seed), one.fit(X).cluster_centers_
    return [judge(centers) for centers in ways], first


def lines(seeds):
    """Rows of the table."""
    for make in (blobs, digits, drift):
        for n_days in (7, 30, 90):
            found = [costs(make, n_days, seed) for seed in range(seeds)]
            relative = np.array([each for each, _ in found])
            good = [first for _, first in found if first is not None]
            words = "none"
            if good:
                day, then = np.median(good, axis=0)
                words = f"day {day:.0f}" + ("" if make is drift else f": {then:.2f}")
            means = zip(relative.mean(axis=0), np.median(relative, axis=0), strict=True)
            yield (
                make.__name__,
                n_days,
                *(f"{mean:.3f} ({median:.3f})" for mean, median in means),
                f"{words} ({len(good)} of {seeds})",
            )


# -- means -----------------------------------------------------------------------------------------


def mean_errors(skewed, n_days, seed, n=20_000, d=4):
    """Of means, in sampling errors: exact, and of each way; and the first good day."""
    rng = np.random.default_rng(seed)
    X = rng.lognormal(0, 0.8, (n, d)) if skewed else rng.normal(size=(n, d))
    bounds = (0.0, 40.0) if skewed else (-6.0, 6.0)
    X, truth = np.clip(X, *bounds), math.exp(0.32) if skewed else 0.0
    unit = X.std(axis=0) / math.sqrt(n)
    one, first = FriendlyMean(bounds=bounds, random_state=seed), None
    model, alone, days = clone(one), [], np.array_split(X, n_days)
    for number, rows in enumerate(days, 1):
        model.partial_fit(rows)
        alone.append(clone(one).set_params(random_state=1000 * seed + number).fit(rows).mean_)
        if first is None and model.trustworthy_:
            first = number
    separate = np.average(alone, axis=0, weights=[len(rows) for rows in days])
    refit = clone(one).set_params(rho=RHO / n_days).fit(X)
    ways = X.mean(axis=0), model.mean_, refit.mean_, separate, one.fit(X).mean_
    return [np.square((mean - truth) / unit).mean() for mean in ways], first


def mean_lines(seeds):
    """Rows of the table of means."""
    for skewed in (False, True):
        for n_days in (7, 30, 90):
            found = [mean_errors(skewed, n_days, seed) for seed in range(seeds)]
            roots = np.sqrt(np.mean([each for each, _ in found], axis=0))
            good = [first for _, first in found if first is not None]
            words = f"day {np.median(good):.0f}" if good else "none"
            ways = (f"{root:.2f}" for root in roots)
            yield (
                "skewed" if skewed else "normal",
                n_days,
                *ways,
                f"{words} ({len(good)} of {seeds})",
            )


# -- covariances -----------------------------------------------------------------------------------


def normal(rng, n=20_000, d=4):
    """Rows, and their true covariance."""
    factor = rng.normal(size=(d, d)) * np.geomspace(1, 20, d)
    return rng.normal(size=(n, d)) @ factor.T, factor @ factor.T, 400.0


def exponential(rng, n=20_000, d=4):
    """The same, of long tails."""
    return rng.exponential(size=(n, d)), np.eye(d), (0.0, 30.0)


def errors(make, n_days, seed):
    """Of covariances, in coordinates where the true one is the identity: exact, and of each way;
    and the first good day."""
    X, truth, bounds = make(np.random.default_rng(seed))
    white = np.linalg.inv(np.linalg.cholesky(truth))

    def off(covariance):
        return float(np.linalg.norm(white @ covariance @ white.T - np.eye(len(truth))))

    one, first = FriendlyCovariance(bounds=bounds, random_state=seed), None
    model = clone(one)
    for number, rows in enumerate(np.array_split(X, n_days), 1):
        model.partial_fit(rows)
        if first is None and model.trustworthy_:
            first = number
    refit = clone(one).set_params(rho=RHO / n_days).fit(X)
    ways = np.cov(X.T), model.covariance_, refit.covariance_, one.fit(X).covariance_
    return [off(covariance) for covariance in ways], first


def covariance_lines(seeds):
    """Rows of the second table."""
    for make in (normal, exponential):
        for n_days in (7, 30, 90):
            found = [errors(make, n_days, seed) for seed in range(seeds)]
            means = np.mean([each for each, _ in found], axis=0)
            good = [first for _, first in found if first is not None]
            words = f"day {np.median(good):.0f}" if good else "none"
            ways = (f"{mean:.3f}" for mean in means)
            yield make.__name__, n_days, *ways, f"{words} ({len(good)} of {seeds})"


# -- components ------------------------------------------------------------------------------------


def four(rng, n_days, n=20_000):
    """Rows of each day, the number of components, bounds."""
    X, _, bounds = normal(rng, n)
    return np.array_split(X, n_days), 2, bounds


def twenty(rng, n_days, n=20_000, d=20):
    """The same, of a few wide directions."""
    axes = np.linalg.qr(rng.normal(size=(d, d)))[0]
    spread = np.array([1.0, 0.7, 0.5, *[0.1] * (d - 3)])
    X = (rng.normal(size=(n, d)) * spread) @ axes.T + 2
    return np.array_split(X, n_days), 3, 20.0


def ten_digits(rng, n_days):
    """The same, of digits."""
    days, _, bounds = digits(rng, n_days)
    return days, 5, bounds


def turning(rng, n_days, n=20_000, d=10):
    """The same, of a wide direction that turns; and fresh rows of the last day."""
    spread = np.array([1.0, 0.7, *[0.15] * (d - 2)])

    def rows(day, n):
        X, angle = rng.normal(size=(n, d)) * spread, math.pi / 2 * day / 60
        turn = [[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]]
        X[:, [0, d - 1]] = X[:, [0, d - 1]] @ np.array(turn)
        return X

    return [rows(day, n // n_days) for day in range(n_days)], 2, 20.0, rows(n_days - 1, 5000)


def left(X, mean, components):
    """Sum of squared distances from the projections."""
    X = X - mean
    return float(np.square(X).sum() - np.square(X @ components.T).sum())


def losses(make, n_days, seed):
    """Relative loss of each way, and the first good day."""
    days, k, bounds, *last = make(np.random.default_rng(seed), n_days)
    X = np.vstack(days)
    rows, options = (last[0], {"half_life": HALF_LIFE}) if last else (X, {})
    exact = PCA(k).fit(rows)
    one, first = DPPCA(k, bounds=bounds, random_state=seed), None
    model, shape = clone(one), FriendlyCovariance(bounds=bounds, random_state=seed)
    for number, each in enumerate(days, 1):
        model.partial_fit(each, **options)
        shape.partial_fit(each, **options)
        if first is None and model.trustworthy_:
            first = number
    by_shape = shape.location_, np.linalg.eigh(shape.covariance_)[1][:, ::-1][:, :k].T
    fits = model, clone(one).set_params(rho=RHO / n_days).fit(X), one.fit(X)
    ours, refit, end = ((fit.mean_, fit.components_) for fit in fits)
    best = left(rows, exact.mean_, exact.components_)
    return [left(rows, *way) / best for way in (ours, by_shape, refit, end)], first


def component_lines(seeds):
    """Rows of the third table."""
    for make in (four, twenty, ten_digits, turning):
        for n_days in (7, 30, 90):
            found = [losses(make, n_days, seed) for seed in range(seeds)]
            means = np.mean([each for each, _ in found], axis=0)
            good = [first for _, first in found if first is not None]
            words = f"day {np.median(good):.0f}" if good else "none"
            name = {"ten_digits": "digits", "turning": "drift"}.get(make.__name__, make.__name__)
            yield (
                name,
                n_days,
                *(f"{mean:.3f}" for mean in means),
                f"{words} ({len(good)} of {seeds})",
            )


# -- mixtures --------------------------------------------------------------------------------------


def components(rng, k, d, n=20_000):
    """Rows of a mixture."""
    means, parts = rng.uniform(-4, 4, size=(k, d)), np.arange(2.0, k + 2)
    labels = rng.choice(k, size=n, p=parts / parts.sum())
    widths = np.geomspace(0.3, 1, d)
    factors = np.array([np.linalg.qr(rng.normal(size=(d, d)))[0] * widths for _ in range(k)])
    return means[labels] + np.einsum("nij,nj->ni", factors[labels], rng.normal(size=(n, d)))


def likelihoods(k, d, n_days, seed):
    """Loss of each way, and the first good day with its loss."""
    X = components(np.random.default_rng(seed), k, d)
    best, first = GaussianMixture(k, n_init=3, random_state=0).fit(X).score(X), None
    one = DPGaussianMixture(k, bounds=12.0, random_state=seed)
    model = clone(one)
    for number, rows in enumerate(np.array_split(X, n_days), 1):
        model.partial_fit(rows)
        if first is None and model.trustworthy_:
            first = number, best - model.score(X)
    refit = clone(one).set_params(rho=RHO / n_days).fit(X)
    return [best - fit.score(X) for fit in (model, refit, one.fit(X))], first


def mixture_lines(seeds):
    """Rows of the table of mixtures."""
    for k, d in ((3, 2), (4, 4), (8, 4)):
        for n_days in (7, 30, 90):
            found = [likelihoods(k, d, n_days, seed) for seed in range(seeds)]
            means = np.mean([each for each, _ in found], axis=0)
            good = [first for _, first in found if first is not None]
            words = "day {:.0f}: {:.2f}".format(*np.median(good, axis=0)) if good else "none"
            ways = (f"{mean:.3f}" for mean in means)
            name = f"{k} components, {d} features"
            yield name, n_days, *ways, f"{words} ({len(good)} of {seeds})"


# -- coresets --------------------------------------------------------------------------------------


def coreset_costs(make, n_days, seed):
    """Relative cost of each way to points."""
    days, k, bounds = make(np.random.default_rng(seed), n_days)
    X, model = np.vstack(days), DPKMeans(2 * k, bounds=bounds, random_state=seed)
    for rows in days:
        model.partial_fit(rows)
    one = DPCoreset(k, bounds=bounds, random_state=seed)
    refit, end = (fit.fit(X) for fit in (clone(one).set_params(rho=RHO / n_days), one))
    ways = (
        solved(model.cluster_centers_, model.cluster_weights_, k),
        merged(days, k, bounds, seed),
        *(solved(fit.points_, fit.weights_, k) for fit in (refit, end)),
    )
    best = KMeans(k, n_init=5, random_state=0).fit(X).inertia_
    return [cost(X, centers) / best for centers in ways]


def coreset_lines(seeds):
    """Rows of the last table."""
    for make in (blobs, digits):
        for n_days in (7, 30, 90):
            found = np.mean([coreset_costs(make, n_days, seed) for seed in range(seeds)], axis=0)
            yield make.__name__, n_days, *(f"{mean:.3f}" for mean in found)


def shown(head, rows):
    """A table in Markdown, printed line by line."""
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    for row in rows:
        print("  ".join(map(str, row)), flush=True)
        yield f"| {' | '.join(map(str, row))} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=12)
    seeds = parser.parse_args().seeds
    warnings.simplefilter("ignore")
    head = "", "days", "by day: mean (median)", "refits", "coresets", "one fit", "first ok"
    text = "\n".join(shown(head, lines(seeds)))
    head = "", "days", "no privacy", "by day", "refits", "each day", "one fit", "first ok"
    means = "\n".join(shown(head, mean_lines(seeds)))
    head = "", "days", "no privacy", "by day", "refits", "one fit", "first ok"
    covariances = "\n".join(shown(head, covariance_lines(seeds)))
    head = "", "days", "by day", "covariance by day", "refits", "one fit", "first ok"
    parts_of_pca = "\n".join(shown(head, component_lines(seeds)))
    head = "", "days", "by day", "refits", "one fit", "first ok"
    mixtures = "\n".join(shown(head, mixture_lines(seeds)))
    made = f"python benchmarks/days.py --seeds {seeds}"
    versions = _run.versions("numpy")
    intro = INTRO.format(made=made, versions=versions)
    head = "", "days", "centers", "merged", "refits", "one coreset"
    coresets = "\n".join(shown(head, coreset_lines(seeds)))
    sections = MEANS, means, COVARIANCES, covariances, COMPONENTS, parts_of_pca
    sections = *sections, MIXTURES, mixtures, CORESETS, coresets
    parts = intro, text, *sections, ""
    PAGE.write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
