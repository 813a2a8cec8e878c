"""Real tables in their own units: laws of means, scales, covariances and quantiles, with rivals.

    python benchmarks/raw_tables.py FOLDER [--runs 24] [--only scale clusters] [--no-page]

FOLDER holds a .npz file for each table: `X` (rows, columns), public bounds `lo` and `hi`. Each run
draws the rows of a table with replacement and clips them to the bounds; the whole table is their
population. The plain rival is ten lines: sums of clipped columns and of their squares, with
Gaussian noise of the same budget. diffprivlib and OpenDP take part if they are installed. The
constants of the package were chosen on the tables in CHOSEN; the others show them, in columns of
their own. Prints each law as it is measured and writes ``doc/benchmarks/raw_tables.md``: in less
than 20 minutes on a quiet core.
"""

import argparse
import math
import sys
import types
import warnings
from collections import defaultdict
from pathlib import Path

import _run  # first: one thread
import numpy as np
from sklearn.cluster import KMeans

from sklearn_dp import DPKMeans, FriendlyCovariance, FriendlyMean, PrivacyBudget, __version__
from sklearn_dp.preprocessing import DPQuantiles, DPStandardScaler

PAGE = _run.PAGES / "raw_tables.md"
CHOSEN = ("adult", "airbnb", "framingham", "insurance")
EPSILONS, DELTA, SMALL = (0.5, 1.0, 2.0), 1e-6, 0.02
DRAWS = 20  # of the plain rival's noise for each fit: what it costs is known, not another chance
LEVELS = (0.25, 0.5, 0.75)


# -- what is fitted: each yields (quantity, values, standard errors, codes) ------------------------


def scaler(Y, bounds, epsilon):
    model = DPStandardScaler(epsilon=epsilon, bounds=bounds).fit(Y)
    codes = model.column_status_
    yield "scale", model.scale_, model.scale_std_error_, codes
    yield (
        "scaler's mean",
        model.mean_,
        model.mean_std_error_,
        np.where(codes == "scale", "ok", codes),
    )


def mean(Y, bounds, epsilon):
    model = FriendlyMean(epsilon=epsilon, bounds=bounds).fit(Y)
    yield "mean", model.mean_, model.mean_std_error_, model.column_status_


def covariance(Y, bounds, epsilon):
    model = FriendlyCovariance(epsilon=epsilon, bounds=bounds).fit(Y)
    deviations = np.sqrt(np.maximum(np.diag(model.covariance_), 1e-300))
    error = np.diag(model.covariance_std_error_) / (2 * deviations)
    codes = model.column_status_
    yield "deviation", deviations, error, np.where(codes == "covariance", "ok", codes)


def quantiles(Y, bounds, epsilon):
    model = DPQuantiles(LEVELS, epsilon=epsilon, bounds=bounds).fit(Y)
    for level, values, errors in zip(
        LEVELS, model.quantiles_, model.quantiles_std_error_, strict=True
    ):
        yield f"quantile {level}", values, errors, model.column_status_


MODELS = {"scale": scaler, "mean": mean, "deviation": covariance, "quantile": quantiles}


def plain(Y, lo, hi, epsilon, rng, squares):
    """Noisy sums of columns in the box, and of their squares if these are asked for."""
    n, d = Y.shape
    middle, half = (lo + hi) / 2, (hi - lo) / 2
    rho = PrivacyBudget(epsilon=epsilon, delta=DELTA).to_rho(gaussian=True)
    sd = math.sqrt((2 * d + 1 if squares else d + 1) / (2 * rho))
    Z = (Y - middle) / half
    size = n + rng.normal(0, sd)
    first = (Z.sum(axis=0) + rng.normal(0, sd, d)) / size
    if not squares:
        return middle + half * first
    second = (np.square(Z).sum(axis=0) + rng.normal(0, sd, d)) / size
    return half * np.sqrt(np.maximum(second - np.square(first), 1e-9))


def diffprivlib(Y, lo, hi, epsilon, rng, squares):
    # Its forests import names that newer versions of scikit-learn have not.
    stub = types.ModuleType("diffprivlib.models.forest")
    stub.RandomForestClassifier = stub.DecisionTreeClassifier = None
    sys.modules.setdefault(stub.__name__, stub)
    from diffprivlib.models import StandardScaler

    found = StandardScaler(epsilon=epsilon, bounds=(lo, hi), with_std=squares).fit(Y)
    return found.scale_ if squares else found.mean_


def opendp(Y, lo, hi, epsilon, rng, squares):
    import opendp.prelude as dp

    dp.enable_features("contrib")
    d, middle, half = Y.shape[1], (lo + hi) / 2, (hi - lo) / 2

    def sums(rows, low, high, part):
        space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
        clamped = space >> dp.t.then_clamp((low, high)) >> dp.t.then_sum()
        make = dp.binary_search_chain(lambda s: clamped >> dp.m.then_laplace(s), 1, part)
        return np.array([make(column.tolist()) for column in rows.T])

    # Equal parts for the number of rows, each sum and each sum of squares.
    part = epsilon / (2 * d + 1 if squares else d + 1)
    Z = (Y - middle) / half
    size = sums(np.ones((len(Z), 1)), 0.0, 1.0, part)[0]
    first = sums(Z, -1.0, 1.0, part) / size
    if not squares:
        return middle + half * first
    second = sums(np.square(Z), 0.0, 1.0, part) / size
    return half * np.sqrt(np.maximum(second - np.square(first), 1e-9))


def rivals():
    """Those that are installed, and the names of the others."""
    found, missing = {"plain": plain}, []
    for rival in (diffprivlib, opendp):
        try:
            rival(
                np.ones((9, 1)), np.zeros(1), np.full(1, 2.0), 1.0, np.random.default_rng(0), True
            )
            found[rival.__name__] = rival
        except ImportError:
            missing.append(rival.__name__)
    return found, missing


# -- fits ------------------------------------------------------------------------------------------


def tables(folder):
    for path in sorted(Path(folder).glob("*.npz")):
        with np.load(path, allow_pickle=False) as file:
            X, lo, hi = (np.asarray(file[name], dtype=np.float64) for name in ("X", "lo", "hi"))
        yield path.stem, np.clip(X, lo, hi), lo, hi


def drawn(X, run, part=1.0):
    rng = np.random.default_rng([run, 47])
    return X[rng.integers(len(X), size=int(part * len(X)))], rng


def bounds_of(kind, lo, hi):
    """The box, none, or a box of which each second upper bound is missing."""
    if kind == "none":
        return None
    return (lo, hi if kind == "box" else np.where(np.arange(len(hi)) % 2, hi, np.inf))


def truth(quantity, X):
    if quantity.startswith("quantile"):
        return np.quantile(X, float(quantity.split()[1]), axis=0)
    return X.mean(axis=0) if "mean" in quantity else X.std(axis=0)


def error(quantity, values, X):
    """In standard deviations of the column; of scales the logarithm of the ratio."""
    right, sd = truth(quantity, X), X.std(axis=0)
    if quantity in ("scale", "deviation"):
        return np.log(np.maximum(values, 1e-12) / right)
    return (values - right) / sd


class Fits:
    """Errors (runs, columns) by (who, quantity, bounds, epsilon, table), and what models say."""

    def __init__(self, folder, runs, models, clusters):
        self.errors, self.held, self.codes = (defaultdict(list) for _ in range(3))
        self.names, self.runs, self.models, self.tables = [], runs, models, list(tables(folder))
        self.clusters, (others, self.missing) = clusters, rivals() if models else ({}, [])
        for name, X, lo, hi in self.tables:
            self.names.append(name)
            for epsilon in EPSILONS:
                for run in range(runs):
                    Y, rng = drawn(X, run)
                    for kind in ("box", "none", "half"):
                        self.add(name, X, Y, epsilon, kind, bounds_of(kind, lo, hi))
                    for who, rival in others.items():
                        for quantity, squares in (("scale", True), ("mean", False)):
                            if quantity in models or squares and "deviation" in models:
                                key = who, quantity, "box", epsilon, name
                                for _ in range(DRAWS if who == "plain" else 1):
                                    found = rival(Y, lo, hi, epsilon, rng, squares)
                                    self.errors[key].append(error(quantity, found, Y))
            print(f"# {name} fitted", file=sys.stderr, flush=True)

    def add(self, name, X, Y, epsilon, kind, bounds):
        for model in self.models.values():
            try:
                answers = list(model(Y, bounds, epsilon))
            except ValueError:  # bounds on one side are not for all
                if kind != "half":
                    raise
                continue
            for quantity, values, errors, codes in answers:
                key = "ours", quantity, kind, epsilon, name
                self.errors[key].append(error(quantity, values, Y))
                self.held[key].append(np.abs(values - truth(quantity, X)) <= 1.96 * errors)
                self.codes[key].append(codes)

    def rms(self, *key):
        """Of each column."""
        return np.sqrt(np.mean(np.square(self.errors[key]), axis=0))

    def keys(self, kind, quantity=None):
        return [
            key
            for key in self.errors
            if key[0] == "ours" and key[2] == kind and quantity in (None, key[1])
        ]


# -- laws: each yields (law, goal, {table: (number that break it, number of cases)}, worst) --------


def share(cases):
    return {name: (int(np.sum(bad)), len(bad)) for name, bad in cases.items()}


def never_worse(fits):
    """Of columns and epsilons, whose error is more than 1.1 times that of the best rival, and more
    than the chance of so many runs explains: two standard errors of a root mean square."""
    chance = 1 + 2 / math.sqrt(2 * fits.runs)
    for quantity in ("scale", "scaler's mean", "deviation", "mean"):
        cases, worst, of_rival = defaultdict(list), 0.0, "scale"
        if "mean" in quantity:
            of_rival = "mean"
        fitted = any(key[0] != "ours" and key[1] == of_rival for key in list(fits.errors))
        for *_, epsilon, name in fits.keys("box", quantity) if fitted else ():
            best = np.min(
                [
                    fits.rms(*key)
                    for key in list(fits.errors)
                    if key[0] != "ours" and key[1:] == (of_rival, "box", epsilon, name)
                ],
                axis=0,
            )
            own = fits.rms("ours", quantity, "box", epsilon, name)
            cases[name] += list(own > np.maximum(1.1 * best, SMALL) * chance)
            worst = max(worst, float(np.max(own / np.maximum(best, SMALL))))
        if cases:
            yield f"{quantity}: never worse than the best rival", "0", share(cases), worst


def monotone(fits):
    """Median errors that grow by more than a tenth with epsilon or rows."""
    for quantity in ("scale", "deviation", "mean"):
        for kind in ("box", "none"):
            cases, worst = defaultdict(list), 0.0
            for name, X, lo, hi in fits.tables:
                if not fits.keys(kind, quantity):
                    continue
                medians = [
                    np.median(fits.rms("ours", quantity, kind, epsilon, name))
                    for epsilon in EPSILONS
                ]
                more = []
                for part in (0.25, 4.0):
                    found = []
                    for run in range(fits.runs):
                        Y, _ = drawn(X, run, part)
                        bounds = bounds_of(kind, lo, hi)
                        answer = next(iter(fits.models[quantity](Y, bounds, 1.0)))
                        found.append(error(quantity, answer[1], Y))
                    more.append(np.median(np.sqrt(np.mean(np.square(found), axis=0))))
                for line in (medians, [more[0], medians[1], more[1]]):
                    for before, after in zip(line, line[1:], strict=False):
                        ratio = after / max(before, SMALL / 2)
                        cases[name].append(ratio > 1.1)
                        worst = max(worst, float(ratio))
            if cases:
                yield f"{quantity}, {kind}: more budget or rows", "0", share(cases), worst


def without_one(fits):
    """Columns whose error falls to less than 1 / 1.3 when another column is left out."""
    for quantity in ("scale", "mean"):
        if quantity not in fits.models:
            continue
        cases, worst = defaultdict(list), 0.0
        for name, X, lo, hi in fits.tables:
            d = X.shape[1]
            whole = fits.rms("ours", quantity, "box", 1.0, name)
            for out in range(min(d, 6)):
                left = np.delete(np.arange(d), out)
                found = []
                for run in range(fits.runs):
                    Y, _ = drawn(X, run)
                    answer = next(
                        iter(fits.models[quantity](Y[:, left], (lo[left], hi[left]), 1.0))
                    )
                    found.append(error(quantity, answer[1], Y[:, left]))
                less = np.sqrt(np.mean(np.square(found), axis=0)) * math.sqrt(d / (d - 1))
                ratio = float(np.median(whole[left] / np.maximum(less, SMALL)))
                cases[name].append(ratio > 1.3)
                worst = max(worst, ratio)
        yield f"{quantity}: leave one column out", "0", share(cases), worst


def without_bounds(fits):
    """Columns whose error is more than 1.5 times that in the box."""
    for quantity in ("scale", "deviation", "mean"):
        for kind in ("none", "half"):
            cases, worst = defaultdict(list), 0.0
            for *_, epsilon, name in fits.keys(kind, quantity):
                own = fits.rms("ours", quantity, kind, epsilon, name)
                box = fits.rms("ours", quantity, "box", epsilon, name)
                cases[name] += list(own > np.maximum(1.5 * box, SMALL))
                worst = max(worst, float(np.median(own / np.maximum(box, SMALL))))
            if cases:
                yield f"{quantity}: {kind} bounds", "few", share(cases), worst


def status(fits):
    """Values that are wrong and called ok, and good ones that are not."""
    for quantity in ("scale", "scaler's mean", "deviation", "mean"):
        for kind in ("box", "none", "half"):
            wrong, alarms = defaultdict(list), defaultdict(list)
            for key in fits.keys(kind, quantity):
                off, codes = np.array(fits.errors[key]), np.array(fits.codes[key])
                ok, name = codes == "ok", key[-1]
                if quantity in ("scale", "deviation"):
                    off = np.exp(off) - 1
                wrong[name] += list((ok & (np.abs(off) > 0.5)).ravel())
                good = np.abs(off) < 0.1
                alarms[name] += list((~ok & (codes != "constant"))[good])
            if wrong:
                yield f"{quantity}, {kind}: wrong and ok", "0.5%", share(wrong), math.nan
                yield f"{quantity}, {kind}: good and not ok", "3%", share(alarms), math.nan


def intervals(fits):
    """95% intervals of what is ok that do not hold the value of the population."""
    quantities = dict.fromkeys(key[1] for key in fits.held)
    for quantity in quantities:
        for kind in ("box", "none", "half"):
            missed = defaultdict(list)
            for key in fits.keys(kind, quantity):
                ok = np.array(fits.codes[key]) == "ok"
                missed[key[-1]] += list(~np.array(fits.held[key])[ok])
            if missed:
                yield (
                    f"{quantity}, {kind}: intervals that miss",
                    "1 to 7%",
                    share(missed),
                    math.nan,
                )


def invariance(fits):
    """Columns in other units, and moved by 2023 of their standard deviations."""
    for quantity in ("scale", "mean"):
        if quantity not in fits.models:
            continue
        cases, worst = defaultdict(list), 0.0
        for name, X, lo, hi in fits.tables:
            unit = 10.0 ** np.random.default_rng(0).uniform(-6, 6, X.shape[1])
            by = 2023 * X.std(axis=0)
            for kind in ("box", "none"):
                whole = np.median(fits.rms("ours", quantity, kind, 1.0, name))
                found = []
                for run in range(fits.runs):
                    Y = (drawn(X, run)[0] + by) * unit
                    bounds = bounds_of(kind, (lo + by) * unit, (hi + by) * unit)
                    answer = next(iter(fits.models[quantity](Y, bounds, 1.0)))
                    found.append(error(quantity, answer[1], Y))
                ratio = np.median(np.sqrt(np.mean(np.square(found), axis=0))) / max(whole, SMALL)
                cases[name].append(ratio > 1.3)
                worst = max(worst, float(ratio))
        yield f"{quantity}: other units, and moved", "0", share(cases), worst


def clusters(fits):
    """Costs of DPKMeans on raw rows, over those of KMeans, against diffprivlib's."""
    if not fits.clusters:
        return
    try:
        from diffprivlib.models import KMeans as Rival
    except ImportError:
        return
    cases, worst = defaultdict(list), 0.0
    for name, X, lo, hi in fits.tables:
        costs = defaultdict(list)
        for run in range(fits.runs):
            Y, _ = drawn(X, run)
            best = KMeans(5, n_init=3, random_state=run).fit(Y).inertia_
            for who, model in (
                ("ours", DPKMeans(5, bounds=(lo, hi))),
                ("rival", Rival(5, epsilon=1.0, bounds=(lo, hi))),
            ):
                centers = model.fit(Y).cluster_centers_
                squares = np.square(Y[:, None] - centers).sum(axis=-1).min(axis=1).sum()
                costs[who].append(squares / best)
        ratio = float(np.median(costs["ours"]) / min(np.median(costs["rival"]), 10.0))
        cases[name].append(ratio > 1.1)
        worst = max(worst, ratio)
    yield "k-means on raw rows, best rival", "0", share(cases), worst


def single_columns(fits):
    """The same of each column alone, against k-means of a histogram of 1,000 bins with Laplace
    noise: ten lines of NumPy."""
    if not fits.clusters:
        return
    cases, worst, logs = defaultdict(list), 0.0, []
    for name, X, lo, hi in fits.tables:
        for column in np.flatnonzero([len(np.unique(x)) > 11 for x in X.T]):
            x, ends = X[:, [column]], (lo[column], hi[column])
            best = KMeans(5, n_init=3, random_state=0).fit(x).inertia_
            costs = []
            for run in range(fits.runs):
                both = DPKMeans(5, bounds=ends).fit(x).cluster_centers_, histogram(x, ends, run)
                costs.append([np.square(x - np.ravel(c)).min(axis=1).sum() / best for c in both])
            ours, rival = np.median(costs, axis=0)
            cases[name].append(ours > 1.1 * max(rival, 1.0))
            worst = max(worst, ours / max(rival, 1.0))
            logs.append(np.log([ours, rival]))
    ours, rival = np.exp(np.mean(logs, axis=0))
    words = f"k-means of one column, noisy histogram (means {ours:.2f} and {rival:.2f})"
    yield words, "0", share(cases), worst


def histogram(x, ends, run):
    """Five centers of the bins that stand out from the noise."""
    edges = np.linspace(*ends, 1001)
    counts = np.histogram(x, edges)[0] + np.random.default_rng(run).laplace(size=1000)
    counts, middle = np.where(counts > 4, counts, 0.0), (edges[1:] + edges[:-1])[:, None] / 2
    found = KMeans(min(5, max(np.count_nonzero(counts), 1)), n_init=5, random_state=0)
    return found.fit(middle, sample_weight=counts).cluster_centers_


LAWS = (
    *(never_worse, monotone, without_one, without_bounds, status, intervals, invariance),
    *(clusters, single_columns),
)


# -- the page --------------------------------------------------------------------------------------


def lines(fits):
    yield "| law | broken where constants were chosen | on the other tables | worst ratio | goal |"
    yield "|---|---|---|---|---|"
    for law in LAWS:
        for words, goal, cases, worst in law(fits):
            parts = []
            for chosen in (True, False):
                bad, number = (
                    sum(own[i] for name, own in cases.items() if (name in CHOSEN) == chosen)
                    for i in (0, 1)
                )
                parts.append(f"{bad} of {number} ({100 * bad / number:.1f}%)" if number else "")
            ratio = "" if math.isnan(worst) else f"{worst:.2f}"
            yield f"| {words} | {parts[0]} | {parts[1]} | {ratio} | {goal} |"


def sizes(fits):
    """Root mean square and median errors of each table."""
    yield "| table | epsilon | quantity | bounds | ours | plain |"
    yield "|---|---|---|---|---|---|"
    for key in (each for kind in ("box", "none", "half") for each in fits.keys(kind)):
        _, quantity, kind, epsilon, name = key
        if quantity.startswith("quantile"):
            continue
        own = fits.rms(*key)
        other = fits.errors.get(
            ("plain", "mean" if "mean" in quantity else "scale", "box", epsilon, name)
        )
        rms = [own, np.sqrt(np.mean(np.square(other), axis=0)) if other else np.full(1, np.nan)]
        cells = [f"{math.sqrt(np.mean(each**2)):.3f} / {np.median(each):.3f}" for each in rms]
        yield f"| {name} | {epsilon:g} | {quantity} | {kind} | {cells[0]} | {cells[1]} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--runs", type=int, default=24)
    laws = [*MODELS, "clusters"]
    parser.add_argument("--only", nargs="*", default=laws, choices=laws)
    parser.add_argument("--commit", default="", help="what the page says that was measured")
    parser.add_argument("--no-page", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    models = {name: MODELS[name] for name in options.only if name in MODELS}
    fits = Fits(options.folder, options.runs, models, "clusters" in options.only)
    text = [
        "# Raw tables",
        "",
        f"Made by `python benchmarks/raw_tables.py FOLDER --runs {options.runs}` on the tables "
        f"{', '.join(fits.names)}, of which constants were chosen on {', '.join(CHOSEN)}; epsilon "
        f"0.5, 1 and 2, delta 1e-6; sklearn_dp {__version__} {options.commit}. An error below "
        f"{SMALL} breaks no law that compares errors, and rivals are better only beyond two "
        "standard errors of so many runs.",
        "",
        *(f"Not installed: {', '.join(fits.missing)}.\n" for _ in range(bool(fits.missing))),
    ]
    for part in (lines(fits), ("", "Root mean square and median over columns.", ""), sizes(fits)):
        for line in part:
            print(line, flush=True)
            text.append(line)
    if not options.no_page:
        PAGE.write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
