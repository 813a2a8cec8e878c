"""Private choices: what they cost by the theorem, and what they choose when they are made.

    python benchmarks/selection.py                        # all tables, 12 seeds; half an hour
    python benchmarks/selection.py price refit            # only these
    python benchmarks/selection.py auto --seeds 3 --sizes 2000 10000
    python benchmarks/selection.py files --data FOLDER    # of .npz files, as benchmarks/kmeans.py

Prints tables and keeps them in doc/benchmarks/selection.json, of which selection.md is made; tables
that are not remade are kept. delta = 1e-6 everywhere.

price     how much more noise a run has than a single fit (closed form; the bound of the library)
refit     the same of a last fit after the search
auto      the number of clusters, chosen by the fit itself: epsilon = 1, no public bounds,
          candidates 1 to 30
hard      numbers that are hard to find, and whether the status says so
files     the same on real and on published data, also below and above epsilon = 1
encoded   the number on encoded tables of persons, with categories
search    the number of clusters by DPGridSearch, beside other ways to spend the same epsilon
shares    how much of the budget the candidates should have, where the best one is fitted again
pipeline  the number of components in front of a k-means
curve     what utility_curve says from 2,000 public rows, beside fits of all rows
"""

import argparse
import json
import math
import os
import re
import time
import warnings
from pathlib import Path

import _run  # first: one thread
import numpy as np
import profiles
from _style import COLORS, INK, legend_on_top, new, plain_ticks, read_table, save
from scipy.spatial.distance import pdist
from scipy.special import ndtr
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, make_blobs
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from sklearn_dp import DPPCA, DPKMeans, PublicEncoder
from sklearn_dp._costs.accounting import gaussian_delta, gaussian_mu
from sklearn_dp._privacy._selection import Geometric, Thin, _thinning, selection_mu, selection_refit
from sklearn_dp.inspection import utility_curve
from sklearn_dp.mixture import DPGaussianMixture
from sklearn_dp.model_selection import DPGridSearch, Shares, preflight

FOLDER = _run.PAGES
DELTA = 1e-6
COVERAGE = 0.9
LEAST = 6.0  # standard deviations between two centers


def mixture(n, d, k, seed):
    """Round clusters of unit variance; of 30 draws of centers the one that spreads them best."""
    rng = np.random.default_rng(seed)
    draws = [rng.normal(size=(k, d)) if d > 5 else rng.uniform(size=(k, d)) for _ in range(30)]
    centers = max(draws, key=lambda c: pdist(c).min() / pdist(c).mean())
    centers *= LEAST / pdist(centers).min()
    labels = rng.choice(k, n, p=rng.dirichlet(np.full(k, 8.0)))
    return centers[labels] + rng.normal(size=(n, d))


def radius_of(X):
    """A public radius, for example: the next power of two above all norms."""
    return float(2 ** math.ceil(math.log2(np.linalg.norm(X, axis=1).max())))


def timed(model, X, **options):
    """A fit, and its CPU seconds."""
    begin = time.process_time()
    model.fit(X, **options)
    return model, time.process_time() - begin


def cost(X, centers):
    """Sum of squared distances to the nearest center."""
    products = X @ centers.T
    squares = np.square(X).sum(axis=1)[:, None] - 2 * products + np.square(centers).sum(axis=1)
    return float(np.maximum(squares, 0).min(axis=1).sum())


# ------------------------------------------------------------------------------- closed forms


def thin(m):
    return Thin(m, _thinning(m, COVERAGE))


def geometric(m):
    return Geometric(m, (1 - COVERAGE) / (COVERAGE * (m - 1)))


def largest(allowed, top):
    """The largest mu in (1e-4 top, top) that is allowed; those below it are."""
    low, high = 1e-4 * top, top
    while high / low > 1 + 1e-5:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if allowed(middle) else (low, middle)
    return low


def by_profiles(mu, epsilon, rule):
    """Delta by the bound of Koskela, Redberg and Wang (2024), with the Gaussian trade-off."""
    t = np.linspace(-9, 9, 2001)
    ratio = float(np.max(rule.rate(t + mu) / rule.rate(t)))
    left = epsilon - math.log(ratio)
    return rule.expected_runs * gaussian_delta(mu, left) if left > 0 else 1.0


def by_renyi(mu, epsilon, rule):
    """Delta by Papernot and Steinke (2022), Theorem 2, for a geometric number of runs."""
    order = np.exp(np.linspace(math.log(1.01), math.log(3000), 4000))
    other = order[:, None]
    free = 2 * (1 - 1 / other) * other * mu**2 / 2 + 2 * math.log(1 / rule.gamma) / other
    loss = order * mu**2 / 2 + float(free.min()) + math.log(rule.expected_runs) / (order - 1)
    logs = (order - 1) * (loss - epsilon + np.log1p(-1 / order)) - np.log(order)
    return float(np.exp(min(0.0, logs.min())))


def attack(mu, epsilon, rule):
    """Delta that a pair of neighbors certainly has: runs whose score follows the likelihood ratio.

    Outcomes of a ratio in (e^c, e^tau] score lowest, those above e^tau next, then the rest; the set
    is that of the ratios above e^tau.
    """
    c, tau = np.meshgrid(np.linspace(-1.0, 1.0, 201), np.linspace(0.0, 3.0, 301))
    c, tau = c[c < tau], tau[c < tau]
    z_c, z_tau = c / mu + mu / 2, tau / mu + mu / 2
    won = []
    for mean in (mu, 0.0):
        beaten = ndtr(z_tau - mean) - ndtr(z_c - mean)
        won.append(_wins(rule, beaten + ndtr(mean - z_tau)) - _wins(rule, beaten))
    return float((won[0] - math.exp(epsilon) * won[1]).max())


def _wins(rule, u):
    """Probability that the winner is of the lowest-scoring outcomes, which have probability u."""
    if isinstance(rule, Thin):
        none = (1 - rule.p) ** rule.m
        return (1 - rule.p + rule.p * u) ** rule.m - none + none * u
    return rule.gamma * u / (1 - (1 - rule.gamma) * u)


def price():
    """How much more noise each run has than a single fit."""
    yield (
        "| epsilon | m | all released | thin | geometric | constant time | fixed | "
        "Koskela et al. | Papernot, Steinke | no less than | runs |"
    )
    yield "|---" * 11 + "|"
    for epsilon in (1.0, 3.0):
        alone = gaussian_mu(epsilon, DELTA)
        for m in (2, 3, 5, 10, 20, 50):
            rules = (
                thin(m),
                geometric(m),
                Geometric(m, geometric(m).gamma, round(2 / geometric(m).gamma)),
                Thin(m, 1.0),
            )
            ours = [alone / selection_mu(epsilon, DELTA, rule) for rule in rules]
            rule = rules[0] if m <= 5 else rules[1]
            others = [
                alone / largest(lambda mu, f=form, e=epsilon, r=used: f(mu, e, r) <= DELTA, alone)
                for form, used in ((by_profiles, rule), (by_renyi, rules[1]), (attack, rule))
            ]
            cells = [math.sqrt(m), *ours, *others]
            yield (
                f"| {epsilon:g} | {m} | "
                + " | ".join(f"{cell:.2f}" for cell in cells)
                + f" | {rule.expected_runs:.3g} |"
            )


def refit():
    """How much more noise the last fit has than a single fit, where runs have mu0 / x each."""
    parts = (3.0, 4.0, 6.0)
    yield "| m | " + " | ".join(f"x = {x:g}: all / thin / geometric" for x in parts) + " |"
    yield "|---" * (1 + len(parts)) + "|"
    alone = gaussian_mu(1.0, DELTA)
    for m in (3, 5, 10, 20, 50):
        cells = []
        for x in parts:
            released = 1 / math.sqrt(1 - m / x**2) if m < x**2 else math.nan
            hidden = [_last(alone, x, rule) for rule in (thin(m), geometric(m))]
            cells.append(" / ".join(_factor(value) for value in (released, *hidden)))
        yield f"| {m} | " + " | ".join(cells) + " |"


def _last(alone, x, rule):
    try:
        return alone / selection_refit(1.0, DELTA, rule, alone / x)
    except ValueError:
        return math.nan


def _factor(value):
    return "-" if math.isnan(value) else f"{value:.2f}"


# ------------------------------------------------------------------------ number of clusters

FEATURES = (2, 5, 20, 50)
FILES = {  # clusters, or classes
    "s1": 15, "s2": 15, "s3": 15, "s4": 15, "unbalance": 8, "letter16": 26, "dim064": 16,
}  # fmt: skip
CLUSTERS = (3, 8, 20)
SIZES = (2000, 10_000, 100_000)


def overlapping(k, seed, each=150):
    """Clusters of a plane that touch: at least 3.5 of their standard deviations apart."""
    rng, centers = np.random.default_rng(seed), []
    while len(centers) < k:
        new = rng.uniform(0, 4.6 * np.sqrt(k), 2)
        if all(np.hypot(*(new - old)) > 3.5 for old in centers):
            centers.append(new)
    widths = rng.uniform(0.7, 1.1, k)
    return np.concatenate(
        [c + s * rng.normal(size=(each, 2)) for c, s in zip(centers, widths, strict=True)]
    )


def kmeans_line(n, d, k, n_seeds):
    """One line of the table: how often the number is right, the costs, the times."""
    found, ratios, seconds = [], [], []
    for seed in range(n_seeds):
        X = mixture(n, d, k, 10_000 + seed)
        chosen, of_chosen = timed(DPKMeans("auto"), X)
        given, of_given = timed(DPKMeans(k), X)
        found.append(chosen.n_clusters_)
        ratios.append(chosen.score(X) / given.score(X))
        seconds.append((of_chosen, of_given))
    off = np.abs(np.array(found) - k)
    times = " / ".join(f"{value:.2f}" for value in np.median(seconds, axis=0))
    return (
        f"| {n:,} | {d} | {k} | {np.sum(off == 0)} | {np.sum(off <= 0.1 * k + 1e-9)} | "
        f"{min(found)} to {max(found)} | {np.median(ratios):.3f} ({max(ratios):.3f}) | {times} |"
    )


def other_lines(n_seeds):
    """Clusters that touch, and mixtures with and without groups."""
    for k in (20, 35, 50):
        found = [
            DPKMeans((1, 30 if k < 30 else 100)).fit(overlapping(k, seed)).n_clusters_
            for seed in range(n_seeds)
        ]
        yield "`DPKMeans`, touching clusters of 150 rows, d = 2", k, found
    for d, k in ((2, 8), (5, 8), (20, 8)):
        for each in (1, 3):
            found = []
            for seed in range(n_seeds):
                X = mixture(10_000 * each, d, k, 20_000 + seed)
                groups = {} if each == 1 else {"groups": np.arange(len(X)) // each}
                found.append(DPGaussianMixture("auto").fit(X, **groups).n_components_)
            unit = "10,000 rows" if each == 1 else "10,000 groups of 3 rows"
            yield f"`DPGaussianMixture`, {unit}, d = {d}", k, found


def auto(n_seeds, sizes):
    """The lines of the page about the number of clusters, as they are measured."""
    yield "| rows | features | clusters | exact | within 10% | chosen | cost | seconds |"
    yield "|---" * 8 + "|"
    for n in sizes:
        for d in FEATURES:
            for k in CLUSTERS:
                yield kmeans_line(n, d, k, n_seeds)
    yield ""
    yield "| data | clusters | exact | within 10% | chosen |"
    yield "|---" * 5 + "|"
    for name, k, found in other_lines(n_seeds):
        off = np.abs(np.array(found) - k)
        shown = ", ".join(str(number) for number in sorted(found))
        yield f"| {name} | {k} | {np.sum(off == 0)} | {np.sum(off <= 0.1 * k + 1e-9)} | {shown} |"


def published(folder):
    """Name, rows and the number of clusters or classes of each data set that is there."""
    yield "digits", load_digits().data, 10
    for name, k in FILES.items():
        path = Path(folder) / f"{name}.npz"
        if path.exists():
            with np.load(path, allow_pickle=False) as file:
                yield name, file["X"].astype(float), k


def files(n_seeds, folder):
    """The number of clusters of published data: one line for each and each epsilon."""
    yield (
        "| data | rows | features | clusters | epsilon | exact | within 10% | chosen | "
        "cost (largest) |"
    )
    yield "|---" * 9 + "|"
    for name, X, k in published(folder):
        for epsilon in (1.0, 4.0):
            found, ratios = [], []
            for _ in range(n_seeds):
                chosen, given = (DPKMeans(m, epsilon=epsilon).fit(X) for m in ("auto", k))
                found.append(chosen.n_clusters_)
                ratios.append(chosen.score(X) / given.score(X))
            off = np.abs(np.array(found) - k)
            shown = ", ".join(str(number) for number in sorted(found))
            yield (
                f"| {name} | {len(X):,} | {X.shape[1]} | {k} | {epsilon:g} | {np.sum(off == 0)} | "
                f"{np.sum(off <= 0.1 * k + 1e-9)} | {shown} | "
                f"{np.median(ratios):.3f} ({max(ratios):.3f}) |"
            )


def encoded(n_seeds, folder):
    """The number of clusters of tables with categories, and how many fits call it clear."""
    yield "| table | rows | columns | chosen | called clear | off by over 20% |"
    yield "|---" * 6 + "|"
    folder = Path(folder)
    kept = [
        name
        for name, (file, _) in profiles.TABLES.items()
        if (folder / f"{file}_mixed.csv.gz").exists()
    ]
    for name in ("made up", *kept):
        table, schema = profiles.read(folder if name in kept else None, name)
        X = PublicEncoder(schema).fit_transform(table)
        fits = [DPKMeans("auto").fit(X) for _ in range(n_seeds)]
        chosen = sorted(fit.n_clusters_ for fit in fits)
        clear = [fit.n_clusters_ for fit in fits if fit.trustworthy_]
        middle = np.median(clear or [np.nan])
        yield (
            f"| {name} | {len(X):,} | {X.shape[1]} | {', '.join(map(str, chosen))} | "
            f"{len(clear)} | {sum(abs(k - middle) > 0.2 * middle for k in clear)} |"
        )


def flower(rng):
    """As r15: one cluster, about it rings of 7 near and 7 far ones; 40 rows each."""
    turns = 2 * np.pi * np.arange(7) / 7
    near = 1.6 * np.column_stack([np.cos(turns), np.sin(turns)])
    centers = np.vstack([np.zeros((1, 2)), near, 2.8 * near])
    return np.repeat(centers, 40, axis=0) + 0.25 * rng.normal(size=(600, 2))


def crowded(rng):
    """As d31: 31 clusters of 100 rows in a square, at least 4.6 standard deviations apart."""
    centers = []
    while len(centers) < 31:
        new = rng.uniform(-13, 13, 2)
        if all(np.hypot(*(new - old)) > 3 for old in centers):
            centers.append(new)
    return np.repeat(centers, 100, axis=0) + 0.65 * rng.normal(size=(3100, 2))


HARD = (  # name, rows, clusters, candidates, public radius
    ("few rows, as r15", flower, 15, (1, 30), 5.5),
    ("many clusters, as d31", crowded, 31, (1, 50), 20.0),
    (
        "two in 128 features",
        lambda rng: make_blobs(5000, 128, centers=2, random_state=int(rng.integers(2**31)))[0],
        2,
        (1, 10),
        130.0,
    ),
    (
        "a hundred in 10 features",
        lambda rng: make_blobs(10**5, 10, centers=100, random_state=int(rng.integers(2**31)))[0],
        100,
        (60, 140),
        40.0,
    ),
)


def hard(n_seeds):
    """Numbers that are hard to find, and whether the status says so."""
    yield (
        "| data | clusters | within 20% | ok, not within | chosen | k given, cost | cost over it |"
    )
    yield "|---" * 7 + "|"
    for name, make, k, candidates, radius in HARD:
        found, n_wrong, given, ratios = [], 0, [], []
        for seed in range(n_seeds):
            X = make(np.random.default_rng([31, seed]))
            least = KMeans(k, n_init=5, random_state=seed).fit(X).inertia_
            chosen, known = (DPKMeans(m, bounds=radius).fit(X) for m in (candidates, k))
            found.append(chosen.n_clusters_)
            off = abs(found[-1] - k) > 0.2 * k
            n_wrong += off and chosen.trustworthy_
            given.append(-known.score(X) / least)
            ratios.append(chosen.score(X) / known.score(X))
        within = np.sum(np.abs(np.array(found) - k) <= 0.2 * k)
        shown = ", ".join(str(number) for number in sorted(found))
        yield (
            f"| {name} | {k} | {within} | {n_wrong} | {shown} | {np.median(given):.2f} | "
            f"{np.median(ratios):.2f} ({max(ratios):.2f}) |"
        )


# ----------------------------------------------------------------------------------- searches

SEARCHES = (  # rows, features, clusters, candidates
    (10_000, 2, 8, (4, 6, 8, 10, 12)),
    (2000, 5, 3, (2, 3, 4, 5, 6)),
    (10_000, 10, 8, (3, 4, 5, 6, 7, 8, 9, 10, 11, 12)),
)
FOLDS = 5


def silhouette(model, X, y=None):
    """The library's score without noise: for GridSearchCV."""
    nearest = np.partition(model.transform(X), 1, axis=1)
    return float(np.mean(1 - nearest[:, 0] / np.maximum(nearest[:, 1], 1e-300)))


def by_search(**options):
    """A way: DPGridSearch with these options."""

    def fit(X, k, bounds, candidates):
        search = DPGridSearch(
            DPKMeans(bounds=bounds), {"n_clusters": list(candidates)}, epsilon=1.0, **options
        )
        return timed(search, X)

    return fit


def by_cross_validation(X, k, bounds, candidates):
    """GridSearchCV whose fits cost epsilon = 1 together; its scores are not private."""
    fits = FOLDS * len(candidates) + 1
    each = DPKMeans(bounds=bounds, rho=_rho(1.0) / fits)
    grid = {"n_clusters": list(candidates)}
    return timed(GridSearchCV(each, grid, cv=FOLDS, scoring=silhouette), X)


def _rho(epsilon):
    return gaussian_mu(epsilon, DELTA) ** 2 / 2


WAYS = {
    "number given, one fit": lambda X, k, bounds, _: timed(DPKMeans(k, bounds=bounds), X),
    '`DPKMeans("auto")`': lambda X, k, bounds, _: timed(DPKMeans("auto", bounds=bounds), X),
    "all, refit": by_search(selection="all", final="refit"),
    "all, winner (m fits composed)": by_search(selection="all", final="winner"),
    "best, winner": by_search(selection="best", final="winner"),
    "best, refit": by_search(selection="best", final="refit"),
    "`GridSearchCV`, fits only": by_cross_validation,
}


def search(n_seeds):
    """How often the number of clusters is right, and what the answer is worth."""
    yield "| rows, features, clusters, m | way | right | cost (largest) | CPU s |"
    yield "|---" * 5 + "|"
    for n, d, k, candidates in SEARCHES:
        found = {way: [] for way in WAYS}
        for seed in range(n_seeds):
            X = mixture(n, d, k, 30_000 + seed)
            least = KMeans(k, n_init=10, random_state=0).fit(X).inertia_
            for way, fit in WAYS.items():
                if way == "best, refit" and len(candidates) > 5:
                    continue  # nearly a hundred fits, for what "best, winner" shows as well
                model, seconds = fit(X, k, radius_of(X), candidates)
                answer = getattr(model, "best_estimator_", model)
                centers = answer.cluster_centers_
                found[way].append((len(centers) == k, cost(X, centers) / least, seconds))
        for way, runs in found.items():
            if runs:
                right, ratios, seconds = np.array(runs).T
                yield (
                    f"| {n:,}, {d}, {k}, {len(candidates)} | {way} | {int(right.sum())} | "
                    f"{np.median(ratios):.4f} ({ratios.max():.3f}) | {np.median(seconds):.2f} |"
                )


def charged():
    """What GridSearchCV costs at epsilon = 1 for each fit, and DPGridSearch."""
    yield "| m | fits | charged, basic composition | Gaussian composition | `DPGridSearch` |"
    yield "|---" * 5 + "|"
    for m in (5, 10, 50):
        grid = {"n_clusters": list(range(2, 2 + m))}
        told = preflight(GridSearchCV(DPKMeans(epsilon=1.0), grid, cv=FOLDS), np.zeros((99, 2)))
        mu = gaussian_mu(1.0, DELTA) * math.sqrt(told.n_fits)
        together = largest(lambda e, mu=mu: gaussian_delta(mu, e) >= DELTA, 1000.0)
        yield f"| {m} | {told.n_fits} | {told.epsilon:.0f} | {together:.1f} | 1 |"


SPENT = (  # rows, features, clusters, candidates
    (10_000, 10, 8, tuple(range(3, 13))),
    (2000, 5, 3, tuple(range(1, 9))),
    (2000, 2, 8, (3, 4, 6, 8, 10, 12, 14, 16)),
    (20_000, 20, 20, (5, 10, 15, 20, 25, 30, 35, 40)),
)


def shares(n_seeds):
    """How often a search with a last fit is right, by the part of the budget before that fit."""
    parts = (0.1, 0.3, 0.5, 0.7)
    yield "| rows, features, clusters, m | " + " | ".join(f"{part:g}" for part in parts) + " |"
    yield "|---" * (1 + len(parts)) + "|"
    for n, d, k, candidates in SPENT:
        found = {part: [] for part in parts}
        for seed in range(n_seeds):
            X = mixture(n, d, k, 35_000 + seed)
            least = KMeans(k, n_init=10, random_state=0).fit(X).inertia_
            for part in parts:
                way = by_search(selection="all", final="refit", shares=Shares(search=part))
                centers = way(X, k, radius_of(X), candidates)[0].best_estimator_.cluster_centers_
                found[part].append((len(centers) == k, cost(X, centers) / least))
        cells = [
            f"{int(sum(right for right, _ in runs))}: "
            f"{np.median([ratio for _, ratio in runs]):.4f} ({max(ratio for _, ratio in runs):.2f})"
            for runs in found.values()
        ]
        yield f"| {n:,}, {d}, {k}, {len(candidates)} | " + " | ".join(cells) + " |"


COMPONENTS = (2, 4, 7, 12, 20, 35, 50)


def pipeline(n_seeds, n=10_000, d=50, k=8):
    """DPPCA in front of DPKMeans: the number of components by cost, its first step shared."""
    yield "| way | components | cost (largest) | CPU s |"
    yield "|---" * 4 + "|"
    ways = {
        "`DPKMeans`, no search": None,
        "7 components given": ((7,), "refit"),
        "all, refit": (COMPONENTS, "refit"),
        "all, winner (m fits composed)": (COMPONENTS, "winner"),
    }
    found = {way: [] for way in ways}
    for seed in range(n_seeds):
        X = mixture(n, d, k, 40_000 + seed)
        bounds, least = radius_of(X), KMeans(k, n_init=10, random_state=0).fit(X).inertia_
        for way, options in ways.items():
            if options is None:
                model, seconds = timed(DPKMeans(k, bounds=bounds), X)
                found[way].append((cost(X, model.cluster_centers_) / least, seconds, d))
                continue
            candidates, final = options
            pipe = make_pipeline(DPPCA(bounds=bounds), DPKMeans(k, bounds=bounds))
            grid = {"dppca__n_components": list(candidates)}
            model, seconds = timed(
                DPGridSearch(pipe, grid, scoring="cost", epsilon=1.0, final=final), X
            )
            reduction, clusters = (step for _, step in model.best_estimator_.steps)
            centers = reduction.inverse_transform(clusters.cluster_centers_)
            chosen = model.best_params_["dppca__n_components"]
            found[way].append((cost(X, centers) / least, seconds, chosen))
    for way, runs in found.items():
        ratios, seconds, chosen = np.array(runs).T
        shown = ", ".join(f"{value:.0f}" for value in sorted(chosen))
        shown = shown if len(set(chosen)) > 1 else f"{chosen[0]:.0f}"
        yield (
            f"| {way} | {shown} | {np.median(ratios):.4f} ({ratios.max():.3f}) | "
            f"{np.median(seconds):.2f} |"
        )


# ------------------------------------------------------------------------------------- curves

CURVES = ((10_000, 2, 8), (20_000, 20, 8), (10_000, 10, 10))
LEVELS = (0.1, 0.3, 1.0, 3.0)
N_PUBLIC = 2000


def curve(n_seeds):
    """Cost over that without privacy: all rows, 2,000 public ones with a scaled budget, floor."""
    yield (
        "| rows, features, clusters | epsilon | all rows (half of the fits) | "
        f"{N_PUBLIC:,} public rows | floor |"
    )
    yield "|---" * 5 + "|"
    for n, d, k in CURVES:
        X = mixture(n + N_PUBLIC, d, k, 50_000)
        estimator = DPKMeans(k, bounds=radius_of(X))
        options = {"n_units": n, "epsilons": LEVELS, "n_repeats": n_seeds}
        real, scaled = (utility_curve(estimator, rows, **options) for rows in (X[:n], X[n:]))
        for i, epsilon in enumerate(LEVELS):
            low, median, high = real.quartiles[:, i]
            yield (
                f"| {n:,}, {d}, {k} | {epsilon:g} | {median:.5f} ({low:.5f} to {high:.5f}) | "
                f"{scaled.quartiles[1, i]:.5f} | {real.floor[i]:.5f} |"
            )


LABELS = {
    f"{N_PUBLIC:,} public rows": f"{N_PUBLIC:,} public rows, scaled budget",
    "floor": "floor: what the noise costs at least",
}


def draw_curve(lines):
    """Extra cost against epsilon, on logarithmic axes, from the lines of the table."""
    data, _, low_to_high, public, floor = (cell.strip() for cell in lines[0].strip("|").split("|"))
    groups = {}
    for row in read_table("\n".join(lines), data):
        groups.setdefault(row[data], []).append(row)
    figure, axes = new((12, 4.2), 1, len(groups))
    for axis, (title, rows) in zip(axes, groups.items(), strict=True):
        levels = [float(row["epsilon"]) for row in rows]
        numbers = [re.findall(r"[\d.]+", row[low_to_high]) for row in rows]
        median, low, high = np.maximum(np.array(numbers, dtype=float).T - 1, 1e-6)
        axis.fill_between(levels, low, high, color=COLORS[0], alpha=0.15, lw=0)
        axis.plot(
            levels, median, color=COLORS[0], marker="o", label="all rows (band: half of the fits)"
        )
        for name, color, marker, style in ((public, COLORS[1], "s", "-"), (floor, INK, "", ":")):
            extra = [float(row[name]) - 1 for row in rows]
            axis.plot(
                levels, extra, color=color, marker=marker, ls=style, label=LABELS.get(name, name)
            )
        n, d, k = title.split(", ")
        axis.set(
            xscale="log",
            yscale="log",
            title=f"{n} rows, {d} features, {k} clusters",
            xlabel="epsilon",
            ylim=(5e-6, 1),
        )
        plain_ticks(axis.xaxis, levels)
        plain_ticks(
            axis.yaxis,
            [1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1],
            ["0.001%", "0.01%", "0.1%", "1%", "10%", "100%"],
        )
        axis.grid(axis="y")
    axes[0].set_ylabel("cost above that without privacy")
    legend_on_top(figure, 3)
    save(figure, FOLDER / "selection_curve.png", dpi=100)


# --------------------------------------------------------------------------------------- page

TABLES = {
    "price": (lambda options: price(), "What each fit of a search costs", """
How many times as much noise each run of a search among m candidates has as a single fit of the
same guarantee. Closed forms. "all released": m fits and scores, composed. "thin", "geometric" and
"constant time": only the best of secretly many runs is released, each candidate is tried with
probability .9; `DPGridSearch` takes "thin" up to 5 candidates and "geometric" above. "fixed": all
m are run, and everybody knows it. The two rivals are published bounds, of the rule that
`DPGridSearch` takes (Papernot and Steinke: of the geometric one). "no less than": no bound can be
below this, because some pair of neighbors loses as much. "runs": expected number of them.
"""),
    "refit": (lambda options: refit(), "A last fit after the search", """
Each run has mu0 / x, where mu0 is the mu of a single fit with the whole budget (epsilon = 1). The
cells tell how many times as much noise the last fit has as that single fit; "-": nothing is left.
x = 20 is enough for runs that are a score alone, as where all candidates are made of one released
`DPCoreset`. Releasing all of them then costs 1 / sqrt(1 - m / 400): 1.01 for 10, 1.07 for 50.
"""),
    "charged": (lambda options: charged(), "What `GridSearchCV` is charged", """
Five folds, epsilon = 1 for each fit. The epsilon of all fits together: as `preflight` says and a
ledger of basic composition counts, and by the exact composition of Gaussian fits. It does not cover
the scores, which have no noise. `DPGridSearch(epsilon=1)` is charged 1, scores included.
"""),
    "auto": (lambda options: auto(options.seeds, options.sizes), "The number of clusters", """
`DPKMeans("auto")` at epsilon = 1, without public bounds, among 1 to 30 clusters. Up
to 5 features the gap statistic of the coreset chooses, above a criterion on noisy iterations.
Round clusters at least 6 standard deviations apart, {seeds} mixtures for each line, each with
noise of its own. "within 10%" also counts 18 to 22 for 20. Cost: on the rows, over that of
`DPKMeans(k)` with the true k; median (largest). Seconds are CPU seconds of a fit that chooses, and
of one with the true k.
"""),
    "hard": (lambda options: hard(options.seeds), "Numbers that are hard to find", """
Fits that choose among many numbers at epsilon = 1, {seeds} of each, with public bounds. "ok, not
within": fits whose status is "ok" although the number is more than 20% off. "k given": the cost
of `DPKMeans(k)` over that of `KMeans`, median; "cost over it": that of the fit that chooses over
that of `DPKMeans(k)`, median (largest).
"""),
    "files": (lambda options: files(options.seeds, options.data), "Clusters of published data", """
The number of clusters in data that others have published, chosen as above: `s1` to `s4` (15 round
clusters that overlap more and more), `unbalance` (three clusters of 2,000 rows, five of 100),
`dim064` (16 clusters of 64 rows), and two sets with classes, which need not be clusters: digits and
`letter16`. {seeds} fits for each line. Cost: over that of `DPKMeans(k)`; below 1 where more
clusters were chosen.
"""),
    "encoded": (lambda options: encoded(options.seeds, options.data), "Tables with categories", """
`DPKMeans("auto")` at epsilon = 1 on the encoded tables of `profiles.py`,
{seeds} fits of each. "called clear": fits whose status is "ok"; "off": those of them that are more
than 20% from the median of the clear ones.
"""),
    "search": (lambda options: search(options.seeds), "Searches over the number of clusters", """
epsilon = 1 for everything in a line (but the scores of `GridSearchCV`); {seeds} mixtures, each with
noise of its own; round clusters at least 6 standard deviations apart, of unequal weights; `bounds`:
the next power of two above the largest norm; m candidates, by silhouette. "right": the number of
clusters was chosen. Cost: on the rows, over that of `KMeans` with ten starts and the true number;
below 1 where more clusters were chosen. `DPKMeans("auto")` chooses among 1 to 30.
"""),
    "shares": (lambda options: shares(options.seeds), "How much for the candidates", """
A search with `selection="all"` and a last fit, by silhouette, at epsilon = 1: the part of the
budget that its candidates have together (`Shares(search=...)`; the default is 0.3). Cells: how
often of {seeds} the number of clusters was right, and the cost over that of `KMeans` with ten
starts and the true number, median (largest).
"""),
    "pipeline": (lambda options: pipeline(options.seeds), "Components in front of k-means", """
`DPPCA` and `DPKMeans` in a pipeline, (10,000, 50 features, 8 clusters), epsilon = 1, {seeds}
mixtures, `scoring="cost"`, seven candidates from 2 to 50. The first step is fitted once and
cut to size. Plain `DPKMeans`, which finds its own subspace, is the better choice for k-means alone.
"""),
    "curve": (lambda options: curve(options.seeds), "Curves before spending", """
`utility_curve` with all rows and without scaling, and with 2,000 other rows of the same mixture,
which stand for them at a scaled budget. Cost over that of `KMeans` with ten starts; medians of
{seeds} fits. The floor is what the plan's noise costs at least.

![Extra cost of DPKMeans over epsilon: all rows, 2,000 public rows, floor](selection_curve.png)
"""),
}  # fmt: skip


def page(tables):
    """The Markdown page of all tables that were measured."""
    parts = ["# Private choices\n", "delta = 1e-6. CPU seconds are those of one thread.\n"]
    for name, (_, title, words) in TABLES.items():
        if name in tables:
            kept = tables[name]
            parts.append(f"## {title}\n\n{words.strip().format(seeds=kept['seeds'])}\n")
            parts.append(f"`{kept['command']}` with {kept['versions']}.\n")
            parts.append("\n".join(kept["lines"]) + "\n")
    return "\n".join(parts)


def _command(name, options):
    """How to make a table again."""
    words = f"python benchmarks/selection.py {name}"
    if name in ("price", "refit", "charged"):  # closed forms
        return words
    words += f" --seeds {options.seeds}"
    if name == "auto" and tuple(options.sizes) != SIZES:
        words += f" --sizes {' '.join(map(str, options.sizes))}"
    if name in ("files", "encoded"):
        words += " --data FOLDER"
    return words


def main():
    """Measure, print, write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tables", nargs="*", metavar="table", help=f"some of {', '.join(TABLES)}")
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="rows, for auto")
    parser.add_argument(
        "--data", default=os.environ.get("SKLEARN_DP_DATA", "."), help="for files, encoded"
    )
    parser.add_argument("--plot", action="store_true", help="draw what is stored")
    parser.add_argument("--no-page", action="store_true", help="print only")
    options = parser.parse_args()
    if unknown := set(options.tables) - set(TABLES):
        parser.error(f"no such table: {', '.join(sorted(unknown))}")
    warnings.simplefilter("ignore")
    store = FOLDER / "selection.json"
    if options.plot:
        return draw_curve(json.loads(store.read_text(encoding="utf-8"))["curve"]["lines"])
    for name in options.tables or TABLES:
        lines = []
        for line in TABLES[name][0](options):
            print(line, flush=True)
            lines.append(line)
        if options.no_page:
            continue
        tables = json.loads(store.read_text(encoding="utf-8")) if store.exists() else {}
        tables[name] = {
            "command": _command(name, options),
            "seeds": options.seeds,
            "versions": _run.versions("numpy", "scikit-learn"),
            "lines": lines,
        }
        store.write_text(json.dumps(tables, indent=1) + "\n", encoding="utf-8")
        (FOLDER / "selection.md").write_text(page(tables), encoding="utf-8")
        if name == "curve":
            draw_curve(lines)


if __name__ == "__main__":
    main()
