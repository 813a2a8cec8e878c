"""What each number of the k-means engine is worth that no cost at epsilon = 1 shows.

    python benchmarks/ablation_rest.py                 # all four tables, 3 fits of each setting
    python benchmarks/ablation_rest.py one_center --fits 2
    python benchmarks/ablation_rest.py status --only "useless"   # these rows anew; others stay

Prints tables and writes them into doc/benchmarks/ablation.md, beside those of ablation.py.

one_center  Numbers that are read where noise rules: fits of the settings of `engine.py --free`,
            beside one center that was released with the whole budget.
status      What `status_` is told by. Each fit is made once; its signs, which are released, are
            put into words with other numbers. Settings: those of status.py, with what useless and
            good mean there, and those of tiny.py for `DPKMeans(2)` and for the points of
            `DPCoreset(2)`.
missed      What rows far from every center tell of clusters that were missed: fits of data where
            some are, and of such where rows are far from all centers by nature.
errors      What standard errors and `inertia_` follow from: how often 95% intervals hold the true
            centers, and how far the released sum of squares is from the true one.
"""

import argparse
import re
import warnings
from contextlib import contextmanager, suppress
from functools import partial
from unittest.mock import patch

import ablation  # the benchmarks beside this file; first, as it sets the threads
import engine as paired
import kmeans as setting
import numpy as np
import status as told
import tiny
from ablation import ERRORS, MISSED, ONE_CENTER, STATUS
from sklearn.cluster import KMeans

from sklearn_dp import DPKMeans
from sklearn_dp._aggregate.kmeans import private_coreset, result
from sklearn_dp._costs.plan import PlanError

LEVEL, SD = 0.95, 1.959964
UNEVEN = ((10**4, 2, 20), (3000, 10, 5), (1000, 2, 5))  # rows, features, clusters


# --- one center ----------------------------------------------------------------------------------


def free_groups():
    """Settings of few rows and small budgets, by the number of features and the kind of data."""
    groups = {}
    for number, case in enumerate(paired.free_settings()):
        groups.setdefault(f"{case.data} d={case.d}", []).append((number, case))
    return groups


def rows_of(number, case):
    if case.data == "digits":
        return setting.real_data(setting.Cell("real", 1797, 64, 10, name="digits"), 0)[0]
    return told.rows_of(case, number)[0]


def over_free(variants, cases, n_fits):
    """Costs of each variant over that of the free answer: (variants, fits).

    nan where a variant asks for more than the plan has.
    """
    found = np.empty((len(variants), len(cases) * n_fits))
    for i, (number, case) in enumerate(cases):
        X = rows_of(number, case)
        free = np.median(paired.free_costs(X, case.epsilon))
        for seed in range(n_fits):
            model = DPKMeans(case.k, epsilon=case.epsilon, bounds=1.0, random_state=seed)
            costs = found[:, i * n_fits + seed]
            ablation.WatchedTuning.read.clear()
            with ablation.replaced(ablation.with_tuning(ablation.WatchedTuning())):
                costs[:] = setting.cost(X, model.fit(X).cluster_centers_) / free
            read = set(ablation.WatchedTuning.read)
            for j, (variant, pieces) in enumerate(variants.items()):
                if pieces and not ablation.needless(variant, read):
                    costs[j] = np.nan
                    # Iterations that spend all before the last one leave it no finite noise.
                    with ablation.replaced(pieces), suppress(PlanError, ValueError):
                        costs[j] = setting.cost(X, model.fit(X).cluster_centers_) / free
    return found


def one_center_lines(options):
    """A line for each number: how many fits are worse than what is free, and the change."""
    variants = ablation.wanted(options, ONE_CENTER)
    groups = free_groups()
    columns = [over_free(variants, cases, options.fits) for cases in groups.values()]
    change = [np.log(each) - np.log(each[0]) for each in columns]
    mean = np.array([each.mean(axis=1) for each in change])
    error = np.array([each.std(axis=1) / np.sqrt(each.shape[1]) for each in change])
    costs = np.concatenate(columns, axis=1)
    above = np.where(np.isnan(costs).any(axis=1), np.nan, np.mean(costs > paired.LOSS, axis=1))
    head = [f"{name}: {what}" for name in ("halved", "doubled") for what in ("above", "change")]
    head = [column for each in head for column in (each, "worst group")[: 1 + ("change" in each)]]
    yield f"| number | value | {' | '.join(head)} |"
    yield "|---" * (2 + len(head)) + "|"
    yield f"| (all as they are) | | {above[0]:.3f} | | | {above[0]:.3f} | | |"
    keys = list(variants)
    for name in ablation.measured(keys):
        cells = [f"| {name} | {ablation.value_of(name)}"]
        for factor in (0.5, 2.0):
            i = keys.index((name, factor))
            numbers = ablation.number_cells(list(groups), mean[:, i], error[:, i])
            cells += ["" if np.isnan(above[i]) else f"{above[i]:.3f}", *numbers]
        yield " | ".join(cells) + " |"


# --- status --------------------------------------------------------------------------------------


@contextmanager
def kept(module, name):
    """What a function of a module was called with: all that it is told follows from releases."""
    calls, real = [], getattr(module, name)

    def noted(*arguments, **options):
        calls.append(partial(real, *arguments, **options))
        return calls[-1]()

    with patch.object(module, name, noted):
        yield calls


def said(calls, name=None, factor=1.0):
    """Whether each fit would have been called "ok" with one number halved or doubled."""
    with ablation.replaced(ablation.with_number(name, factor) if name else ()):
        return np.array([call() == "ok" for call in calls])


def answers_of_settings(n_fits):
    """Which fits of the 200 settings are useless, and good and better than one center."""
    for number, case in enumerate(told.settings()):
        for line in told.fits(case, n_fits, number):
            yield told.useless(line), told.good(line) and line["of_one"] <= LEVEL


def answers_of_many_clusters(n_fits):
    """The same of many clusters, where any answer that costs 1.5 times the best is useless."""
    for number, case in enumerate(told.MANY):
        for line in told.fits(case, n_fits, number):
            yield line["ratio"] > 1.5, told.good(line)


def answers_of_tiny(name):
    """Which fits of tiny data are useless, and which are not."""

    def found(n_fits):
        for line in tiny.fits(tiny.CASES[name], n_fits):
            yield line["useless"], not line["useless"]

    return found


GROUPS = {
    "200 settings": (answers_of_settings, result, "format_status"),
    "many clusters": (answers_of_many_clusters, result, "format_status"),
    "tiny": (answers_of_tiny("DPKMeans(2)"), result, "format_status"),
    "points": (answers_of_tiny("DPCoreset(2)"), private_coreset, "format_status"),
}


def status_lines(options):
    """A line for each number: useless answers called "ok", and good ones called anything else."""
    found = {}
    for name, (answers, module, function) in GROUPS.items():
        with kept(module, function) as calls:
            useless, good = np.array(list(answers(options.fits)), dtype=bool).T
        assert len(calls) == len(useless), "one call for each fit"
        found[name] = calls, useless, good

    def row(name, factor):
        for calls, useless, good in found.values():
            ok = said(calls, name, factor)
            yield f"{np.sum(ok & useless)} / {np.sum(~ok & good)}"

    heads = [f"{name}: {group}" for name in ("halved", "doubled") for group in found]
    yield f"| number | value | {' | '.join(heads)} |"
    yield "|---" * (2 + len(heads)) + "|"
    totals = " | ".join(
        f"of {np.sum(useless)} / {np.sum(good)}" for _, useless, good in found.values()
    )
    yield f"| (all fits) | | {totals} | {totals} |"
    same = " | ".join(row(None, 1.0))
    yield f"| (all as they are) | | {same} | {same} |"
    for name in ablation.names_of(STATUS):
        if re.search(options.only, name):
            cells = [*row(name, 0.5), *row(name, 2.0)]
            yield f"| {name} | {ablation.value_of(name)} | {' | '.join(cells)} |"


# --- clusters that were missed -------------------------------------------------------------------

KINDS = {  # of benchmarks/engine.py: seed -> rows and centers, and the number of clusters
    "unbalanced": [(partial(paired.unbalanced, n), 20) for n in (3738, 13_467)],
    "heavy tails": [(partial(paired.heavy_tails, 10**4, d, 10), 10) for d in (2, 10)],
    "separated": [(partial(paired.separated, 10**4, d, 20), 20) for d in (2, 10)],
}


def missed_counts(variants, cases, n_fits):
    """Useless answers called "ok" and good ones called anything else, of each variant; and all."""
    wrong, total = {key: np.zeros(2, dtype=int) for key in variants}, np.zeros(2, dtype=int)
    for make, k in cases:
        for seed in range(n_fits):
            X, centers = make(seed)
            best = KMeans(k, init=centers, n_init=1).fit(X).inertia_
            for key, pieces in variants.items():
                with ablation.replaced(pieces):
                    model = DPKMeans(k, bounds=1.0, random_state=seed).fit(X)
                ratio = setting.cost(X, model.cluster_centers_) / best
                kinds = np.array([ratio > 1.5, ratio <= 1.1])
                ok = model.status_ == "ok"
                wrong[key] += kinds & [ok, not ok]
                if key == "full":
                    total += kinds
    return wrong, total


def missed_lines(options):
    """A line for each number: useless answers called "ok", and good ones called anything else."""
    variants = ablation.wanted(options, MISSED)
    found = [missed_counts(variants, cases, 10 * options.fits) for cases in KINDS.values()]
    heads = [f"{name}: {group}" for name in ("halved", "doubled") for group in KINDS]
    yield f"| number | value | {' | '.join(heads)} |"
    yield "|---" * (2 + len(heads)) + "|"
    totals = " | ".join(f"of {total[0]} / {total[1]}" for _, total in found)
    yield f"| (all fits) | | {totals} | {totals} |"

    def cells(key):
        return " | ".join(f"{wrong[key][0]} / {wrong[key][1]}" for wrong, _ in found)

    yield f"| (all as they are) | | {cells('full')} | {cells('full')} |"
    for name in ablation.measured(variants):
        value = ablation.value_of(name)
        yield f"| {name} | {value} | {cells((name, 0.5))} | {cells((name, 2.0))} |"


# --- errors --------------------------------------------------------------------------------------


def uneven(n, d, k, seed):
    """Separated clusters whose widths differ by a factor of up to four."""
    cell = setting.Cell("separated", n, d, k)
    rng = np.random.default_rng([seed, n, d, k])
    _, _, centers = setting.separated_mixture(cell, seed)
    width = setting.smallest_gap(centers) / (10 if d <= 10 else 2 * np.sqrt(d) + 6)
    labels = rng.integers(k, size=n)
    widths = width * np.geomspace(0.5, 2, k)[labels, None]
    return setting.into_ball(centers[labels] + widths / 2 * rng.normal(size=(n, d))), centers


def off(X, centers, model, sd):
    """Distances from the true centers to those released, in standard errors, entry by entry."""
    nearest = setting.nearest(model.cluster_centers_, centers)
    apart = model.cluster_centers_ - centers[nearest]
    # A center that two clusters share is no estimate of either.
    single = np.linalg.norm(apart, axis=1) < setting.smallest_gap(centers) / 4
    return (apart / sd[:, None])[single].ravel()


def errors_of(options, variants):
    """Of each variant: entries within 95%, and how far `inertia_` is from the cost."""
    inside = {key: [] for key in variants}
    inertia, errors = {key: [] for key in variants}, {key: [] for key in variants}
    for n, d, k in UNEVEN:
        for seed in range(10 * options.fits):
            X, centers = uneven(n, d, k, seed)
            for key, pieces in variants.items():
                with ablation.replaced(pieces):
                    model = DPKMeans(k, bounds=1.0, random_state=seed).fit(X)
                sd = model.cluster_centers_std_error_[:, 0]
                inside[key].append(np.abs(off(X, centers, model, sd)) < SD)
                cost = setting.cost(X, model.cluster_centers_)
                inertia[key].append(abs(model.inertia_ / cost - 1))
                errors[key].append(model.explained_std_error_)
    return {
        key: (np.concatenate(inside[key]).mean(), np.median(inertia[key]), np.median(errors[key]))
        for key in variants
    }


def error_lines(options):
    """A line for each number: coverage, and errors of the released quality."""
    variants = ablation.wanted(options, ERRORS)
    found = errors_of(options, variants)

    def cells(key):
        coverage, inertia, error = found[key]
        return f"{coverage:.3f} | {100 * inertia:.2f}% | {100 * error:.2f}%"

    heads = ("intervals that hold", "`inertia_` off by", "error of `explained_`")
    heads = [f"{name}: {what}" for name in ("halved", "doubled") for what in heads]
    yield f"| number | value | {' | '.join(heads)} |"
    yield "|---" * (2 + len(heads)) + "|"
    yield f"| (all as they are) | | {cells('full')} | {cells('full')} |"
    for name in ablation.measured(variants):
        halved, doubled = cells((name, 0.5)), cells((name, 2.0))
        yield f"| {name} | {ablation.value_of(name)} | {halved} | {doubled} |"


TABLES = {
    "one_center": (ONE_CENTER, one_center_lines),
    "status": (STATUS, status_lines),
    "missed": (MISSED, missed_lines),
    "errors": (ERRORS, error_lines),
}
ABOUT = {
    ONE_CENTER: "{n} fits of each of 196 settings of [few rows and small budgets]"
    "(engine.md#never-worse-than-one-center). Above: part of the fits that cost more than 1.05 "
    "times one center that was released with the whole budget. Change: of the cost (logarithm, "
    "mean of all groups, with its standard error), and the group where it is clearest for the "
    "worse. A group is a kind of data in so many features.",
    STATUS: 'Useless answers called "ok" / good answers called anything else, when a number is '
    "halved or doubled, over {n} fits of each of the 200 settings of [the benchmark of the "
    "status](status.md) (good: at least 5% better than one center, too), and of [tiny data]"
    "(tiny.md), there for `DPKMeans(2)` and for the points of `DPCoreset(2)` (good: what is not "
    "useless), and of many clusters (status.md; useless: any that costs 1.5 times the best). The "
    "fits are the same in all lines.",
    MISSED: 'Useless answers called "ok" (cost above 1.5 times that from the true centers) / good '
    "ones called anything else (at most 1.1 times), when a number is halved or doubled: {m} fits, "
    "ten for each of `--fits` on each of six data sets of [the paired fits](engine.md); "
    "epsilon = 1. The answers are the same in all lines.",
    ERRORS: "{k} fits, ten for each of `--fits` on each of three data sets whose clusters differ "
    "in width by a factor of four; epsilon = 1. Entries of true centers in their 95% intervals; "
    "`inertia_` against the cost of the released centers, and the standard error of `explained_`, "
    "both in the median.",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tables", nargs="*", default=list(TABLES), help=", ".join(TABLES))
    parser.add_argument("--fits", type=int, default=3)
    ablation.arguments(parser)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for table in options.tables:
        title, lines = TABLES[table]
        n = options.fits
        about = ABOUT[title].format(n=n, m=10 * 6 * n, k=10 * len(UNEVEN) * n)
        command = f"python benchmarks/ablation_rest.py {table} --fits {options.fits}"
        ablation.publish(options, title, about, command, list(lines(options)))


if __name__ == "__main__":
    main()
