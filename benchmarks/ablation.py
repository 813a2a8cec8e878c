"""What each piece and each tuned number of the k-means engine is worth.

    python benchmarks/ablation.py                  # pieces, 15 seeds; about five minutes
    python benchmarks/ablation.py --numbers        # each number halved and doubled: three minutes
                                                   # of a quiet core for each seed
    python benchmarks/ablation.py --choice         # the same for the numbers of n_clusters="auto"
    python benchmarks/ablation.py --pairs --seeds 10   # numbers of the moves, on two-scale data
    python benchmarks/ablation.py --seeds 5 --data FOLDER
    python benchmarks/ablation.py --numbers --only "clip_"   # these rows anew; others stay

What no cost at epsilon = 1 shows, one center, the status and the errors, has its tables in
benchmarks/ablation_rest.py.

Prints a table and writes it into doc/benchmarks/ablation.md. Data and settings are those of
benchmarks/kmeans.py (epsilon = 1). Variants see the same data under the same seeds of the noise.
A piece is removed by replacing a function of the package for the time of its fits; a number is
a field of :class:`sklearn_dp._aggregate.kmeans.fit_context.Tuning`.
"""

import argparse
import os
import re
import warnings
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from unittest.mock import patch

import _run  # first: one thread
import choice  # the benchmarks beside this file
import embeddings
import engine as paired
import kmeans as setting
import numpy as np
import selection

from sklearn_dp._aggregate.kmeans import (
    coreset,
    engine,
    fit_context,
    lloyd,
    lloyd_state,
    n_clusters,
    quality,
    result,
)
from sklearn_dp._aggregate.kmeans.fit_context import TUNING, Tuning
from sklearn_dp._aggregate.shared import centering
from sklearn_dp._aggregate.shared.bounds import Axes
from sklearn_dp._costs.plan import PlanError
from sklearn_dp._privacy._grid import clip_integer_rows
from sklearn_dp.cluster import DPKMeans
from sklearn_dp.exceptions import SeededNoiseWarning, UtilityWarning

OUTPUT = _run.PAGES / "ablation.md"
CELLS = [
    setting.Cell("separated", 10**4, 2, 20),
    setting.Cell("separated", 10**4, 10, 20),
    setting.Cell("separated", 10**4, 100, 20),
    setting.Cell("separated", 2 * 10**4, 10, 50),
    setting.Cell("paper", 2 * 10**4, 2, 8),
    setting.Cell("real", 1797, 64, 10, 1, "digits"),
    setting.Cell("real", 178, 13, 3, 1, "wine"),
]
MORE_CELLS = [  # for the numbers: dense cells, small data, few rows far out
    setting.Cell("separated", 2 * 10**4, 10, 8),
    setting.Cell("separated", 10**3, 2, 3),
    setting.Cell("unbalanced", 13_467, 2, 20),
    setting.Cell("census", 30_000, 5, 8),
]
WIDE = setting.Cell("separated", 10**4, 2, 10)  # in bounds that are 50 times too wide, or in none
FILE_NAMES = ("s3", "unbalance", "letter16")
MORE_FILE_NAMES = ("cabs_sf",)
CHOICE_CELLS = [  # rows, features, clusters; "touching": those of selection.overlapping
    (2000, 2, 20),
    ("touching", 2, 35),
    (2000, 5, 8),
    (10_000, 5, 20),
    (2000, 20, 3),
    (2000, 20, 8),
    (10_000, 20, 20),
    (10_000, 50, 8),
    (10_000, 50, 20),
]
PAIRS_CELLS = [  # benchmarks/choice.py: ten clusters of 10,000 rows, in pairs that are .02 apart
    setting.Cell("pairs", 10**5, 50, 10),
    setting.Cell("pairs", 10**5, 10, 10),
]
EMBEDDINGS_CELLS = [  # benchmarks/embeddings.py; the name is how far apart clusters are
    setting.Cell("embeddings", 50_000, 256, embeddings.CLUSTERS, name="0.7"),
    setting.Cell("embeddings", 80_000, 768, embeddings.CLUSTERS, name="0.6"),
]
OF_PAIRS = (  # numbers that only such data read, and those of moves
    "precise_centers",
    "moves_share",
    "least_count",
)
OF_CHOICE = ("choice_", "gap_", "surplus_")  # names of these numbers begin so
OF_PROJECTION = "projection_"  # names of these numbers begin so
OF_ONE_CENTER = (  # read where noise rules; this and what follows: ablation_rest.py
    "one_center_noise",
    "spread_gain",
    "shrink",
    "shrink_spread",
)
OF_STATUS = (  # read after the centers
    "useless_signal",
    "useless_noise",
    "useless_loss",
    "doubtful_loss",
    "unexplained_sd",
    "useless_loss_alike",
    "faint_signal",
    "partial",
    "rowless",
    "uneven",
    "points_noise",
)
OF_MISSED = (  # of the last release, and what it tells of clusters that were missed
    "far_sure",
    "far_part",
    "far_least",
)
OF_ERRORS = ("one_center_reach",)
PIECES, NUMBERS, CHOICE = "## Pieces", "## Numbers", "## Numbers of the choice"
PAIRS = "## Numbers of the moves, on two-scale data"
PROJECTION = "## Numbers of the projection, on embeddings"
ONE_CENTER = "## Numbers of one center, where noise rules"
STATUS, ERRORS = "## Numbers of the status", "## Numbers of the errors"
MISSED = "## Numbers of the status, where clusters are missed"
TITLES = (PIECES, NUMBERS, PAIRS, PROJECTION, ONE_CENTER, STATUS, MISSED, ERRORS, CHOICE)
MODULE_NUMBERS = {  # name: module and section
    "_SMALL_SIGNAL": (centering, NUMBERS)
}


def pairs(cell, seed):
    """Rows of benchmarks/choice.py, no labels, and the true centers."""
    X, centers = choice.mixture("pairs", cell.n, cell.d, cell.k, 0.02, seed)
    return X, None, centers


def unbalanced(cell, seed):
    """Rows of benchmarks/engine.py: two thirds of them in one cluster."""
    X, centers = paired.unbalanced(cell.n, seed)
    return X, None, centers


def census(cell, seed):
    """Rows of benchmarks/engine.py: 148 of them are far out."""
    return paired.census(seed)[0], None, None


def unit_rows(cell, seed):
    """Rows of benchmarks/embeddings.py."""
    return embeddings.embeddings(cell.n, cell.d, float(cell.name), 1.0, seed, cell.k)


_OWN = {"pairs": pairs, "unbalanced": unbalanced, "census": census, "embeddings": unit_rows}
MAKE = {**setting.MAKE, **_OWN}
DELTA = {**setting.DELTA, **dict.fromkeys(_OWN, 1e-6)}


# --- pieces: what is put in the place of which function --------------------------------------


def plain_update(state, observed, tuning, *, relax, low_signal=False):
    """The mean of this iteration alone, where the count is sure."""
    n = state.certain_counts(tuning.certain_count_sd)
    sure = state.counts > tuning.certain_count_sd * state.counts_sd
    seen = np.where(sure[:, None], observed.sums / n[:, None], 0.0)
    noise, length = np.square(observed.sums_sd / n), np.einsum("ij,ij->i", seen, seen)
    d, radius = seen.shape[1], observed.clip.radius
    drift, drift_sd = lloyd_state._drift(length, noise, n, radius, d)
    state.centers, state.variance = state.centers + seen, noise
    return drift >= tuning.certain_count_sd * drift_sd, length


def no_moves(*_, **options):
    return 0


def middles(context, leaves):
    """The middles of the cells; the budget of their means goes to Lloyd's iterations."""
    return leaves.centers


def one_level(q, size, n_clusters, tuning):
    return depths(q, size, n_clusters, tuning)[-1:]


depths = coreset.depths_of_levels


def all_axes(values, noise, n_clusters, tuning):
    return min(tuning.most_axes, len(values))


def wide(context, *others):
    """The radius that nearly all rows are within."""
    return lloyd_state.clip_radius(replace(context, inside=0.97), *others)


def whole(context, exact, scales, *others):
    """Rows clipped to the radius of all the data: not paid for again, nothing local."""
    everything = np.full(len(scales), context.radius)
    return lloyd_state.ClipRadii(everything, 1.0, everything)


def one_width(context, centers):
    return np.ones(len(centers))


def clipped_before(axes, rows, squares):
    """Far rows are pulled in before they are projected."""
    return project(axes, clip_integer_rows(rows, axes.limit, squares), squares)


project = Axes.project


def no_leaf_again(tree, parents):
    return np.zeros(0, dtype=np.int64)


def same_guesses(leaves, context):
    return 1.0


def tuned(**changes):
    """The engine with other numbers, as pieces to replace."""
    return with_tuning(replace(TUNING, **changes))


def with_tuning(tuning):
    return (
        (engine, "TUNING", tuning),
        *((module, "TUNING", tuning) for module in (n_clusters, quality, result)),
        (fit_context, "TUNING", tuning),  # which criterion, and for how many clusters before it
    )


VARIANTS = {
    "full": (),
    "plain means instead of the Kalman update": ((lloyd, "update", plain_update),),
    "no moves": ((lloyd, "merge_and_split", no_moves),),
    "as many starts as clusters": tuned(start_surplus=1.0),
    "no cell means": ((coreset, "_leaf_means", middles),),
    "one level of cells": ((coreset, "depths_of_levels", one_level),),
    "leaves counted once": ((coreset.Tree, "leaf_nodes", no_leaf_again),),
    "public guesses weigh the same whatever the leaves hold": (
        (coreset, "_guess_weight", same_guesses),
    ),
    "radius at the first bin that stands out": tuned(radius_sd=1.0),
    "eight axes, whatever the noise": ((coreset, "_n_axes", all_axes),),
    "clip near the largest distance": ((lloyd, "clip_radius", wide),),
    "clip at the radius of the data": ((lloyd, "clip_radius", whole),),
    "one clip radius for all clusters": ((lloyd, "cluster_scales", one_width),),
    "far rows clipped before they are projected": ((Axes, "project", clipped_before),),
    "no look at far cells": tuned(far_cells=0.0),
    "counts and spreads never get more": tuned(precise_centers=0.0),
    "centers in empty space keep their weight": tuned(least_count=TUNING.reduce_floor),
    "the start never takes less": tuned(lean_noise=np.inf),
    "no release of the quality": tuned(quality_share=1e-7),
    "centers are not shrunk": tuned(shrink=0.0),
    "several centers, however lost": tuned(one_center_noise=np.inf),
}


# --- numbers: halved and doubled -------------------------------------------------------------


def scaled(value, factor):
    """A tuned number, halved or doubled in the sense of its kind."""
    if isinstance(value, tuple):
        if max(value) < 0.99:
            return tuple(factor * each for each in value)
        # Parts of the rows that are kept: what is left out is scaled.
        return tuple(max(0.05, 1 - factor * (1 - each)) for each in value)
    if isinstance(value, int):
        return max(1, round(factor * value))
    return factor * value


class WatchedTuning(Tuning):
    """The defaults, and which of them a fit has read: the others cannot change it."""

    read = set()

    def __getattribute__(self, name):
        if name in NAMES:
            WatchedTuning.read.add(name)
        return super().__getattribute__(name)


NAMES = {field.name for field in fields(TUNING)}


def names_of(title):
    """The names of the numbers that have a row in a section, in their order."""
    of_modules = [name for name, (_, section) in MODULE_NUMBERS.items() if section == title]
    elsewhere = {ONE_CENTER: OF_ONE_CENTER, STATUS: OF_STATUS, MISSED: OF_MISSED, ERRORS: OF_ERRORS}
    told = {PAIRS: OF_PAIRS, **elsewhere}
    if title in told:
        return [*told[title], *of_modules]
    others = {name for names in elsewhere.values() for name in names}
    begin = {CHOICE: OF_CHOICE, PROJECTION: OF_PROJECTION}

    def section(name):
        return next((each for each, start in begin.items() if name.startswith(start)), NUMBERS)

    names = [field.name for field in fields(TUNING) if field.name not in others]
    own = NUMBERS if title == PIECES else title
    return [name for name in names if section(name) == own] + of_modules


def value_of(name):
    """A number as it is."""
    return getattr(MODULE_NUMBERS[name][0] if name in MODULE_NUMBERS else TUNING, name)


def with_number(name, factor):
    """The engine with one number halved or doubled, as pieces to replace."""
    value = scaled(value_of(name), factor)
    if name in MODULE_NUMBERS:
        return ((MODULE_NUMBERS[name][0], name, value),)
    return tuned(**{name: value})


def number_variants(names):
    """The default, then each number halved and doubled."""
    yield "full", ()
    for name in names:
        for factor in (0.5, 2.0):
            yield (name, factor), with_number(name, factor)


@contextmanager
def replaced(pieces):
    with ExitStack() as stack:
        for module, name, other in pieces:
            if not hasattr(module, name):
                raise AttributeError(f"{module.__name__} has no {name} to replace")
            stack.enter_context(patch.object(module, name, other))
        yield


# --- measuring -------------------------------------------------------------------------------


def ours(X, cell, seed, bounds=1.0):
    """Centers of a fit whose noise is that of the seed."""
    model = DPKMeans(
        cell.k, epsilon=cell.epsilon, delta=DELTA[cell.setting], bounds=bounds, random_state=seed
    )
    return model.fit(X).cluster_centers_


def needless(variant, read):
    """Whether a variant changes a number of the tuning that the fit has not read."""
    return isinstance(variant, tuple) and variant[0] in NAMES - read


def ratios(variants, cell, n_seeds, wider=1.0, bounds=1.0, over_best=True):
    """Cost ratios of each variant: (variants, seeds); data shrunk within the bounds `wider`.

    Over the best known cost, or as they are, where only changes are asked for. nan where a variant
    asks for more than the plan has.
    """
    found, reference = np.empty((len(variants), n_seeds)), None if over_best else 1.0
    for seed in range(n_seeds):
        X, _, truth = MAKE[cell.setting](cell, 500 + seed)
        if reference is None or (over_best and cell.setting not in setting.SAME_ROWS):
            reference = setting.best_known(X, cell, truth)
        shrunk = X / wider
        WatchedTuning.read.clear()
        with replaced(with_tuning(WatchedTuning())):
            default = setting.cost(shrunk, ours(shrunk, cell, seed, bounds))
        read = set(WatchedTuning.read)
        for i, (variant, pieces) in enumerate(variants.items()):
            found[i, seed] = default
            if pieces and not needless(variant, read):
                found[i, seed] = np.nan
                with replaced(pieces), suppress(PlanError):
                    found[i, seed] = setting.cost(shrunk, ours(shrunk, cell, seed, bounds))
        found[:, seed] *= wider**2 / reference
    return found


def piece_lines(names, columns):
    """A line for each piece: median and worst ratio in each cell."""
    yield "| variant | " + " | ".join(names) + " |"
    yield "|---|" + "---|" * len(names)
    for i, name in enumerate(VARIANTS):
        cost = [f"{np.median(each[i]):.4f} ({each[i].max():.3f})" for each in columns]
        yield f"| {name} | " + " | ".join(cost) + " |"


def number_lines(names, keys, columns):
    """A line for each number: the change of the cost, in the mean and in the cell it hurts most."""
    yield (
        "| number | value | halved: mean change | worst cell | doubled: mean change | worst cell |"
    )
    yield "|---|---|---|---|---|---|"
    # Mean of logarithms: a fit that misses a cluster counts, and does not rule.
    change = np.array([np.log(each) - np.log(each[0]) for each in columns])
    mean, error = change.mean(axis=2), change.std(axis=2) / np.sqrt(change.shape[2])
    for name in measured(keys):
        cells = [f"| {name} | {value_of(name)}"]
        for factor in (0.5, 2.0):
            i = keys.index((name, factor))
            cells += number_cells(names, mean[:, i], error[:, i])
        yield " | ".join(cells) + " |"


def measured(keys):
    """The names of the numbers among variants."""
    return [key[0] for key in keys if key != "full" and key[1] == 0.5]


def number_cells(names, mean, error):
    """The two fields of a variant: its mean change, and where it is clearest for the worse."""
    fits = np.flatnonzero(np.isfinite(mean))
    if not len(fits):
        return ["does not fit the plan", ""]
    if not mean[fits].any():
        return ["the same fits" + ", or no room in the plan" * (len(fits) < len(mean)), ""]
    total = f"{100 * mean[fits].mean():+.2f} ± {100 * np.linalg.norm(error[fits]) / len(fits):.2f}%"
    if len(fits) < len(mean):
        total += f" (in {len(fits)} cells; the others' plans have no room)"
    clear = fits[np.argmax(mean[fits] / np.maximum(error[fits], 1e-9))]
    if mean[clear] < max(2 * error[clear], 1e-4):
        return [total, "none"]
    return [total, f"{100 * mean[clear]:+.2f} ± {100 * error[clear]:.2f}%: {names[clear]}"]


def chosen(variants, cell, n_seeds):
    """Numbers of clusters that each variant chooses, and costs: (variants, seeds) of both.

    nan where a variant asks for more than the plan has.
    """
    n, d, k = cell
    found = np.full((2, len(variants), n_seeds), np.nan)
    for seed in range(n_seeds):
        touching = n == "touching"
        X = (
            selection.overlapping(k, 600 + seed)
            if touching
            else selection.mixture(n, d, k, 60_000 + seed)
        )
        model = DPKMeans((1, 100) if touching else "auto", random_state=seed)
        WatchedTuning.read.clear()
        with replaced(with_tuning(WatchedTuning())):
            default = model.fit(X).n_clusters_, -model.score(X)
        read = set(WatchedTuning.read)
        for i, (variant, pieces) in enumerate(variants.items()):
            if not pieces or needless(variant, read):
                found[:, i, seed] = default
                continue
            with replaced(pieces), suppress(PlanError):
                found[:, i, seed] = model.fit(X).n_clusters_, -model.score(X)
    return found


def pairs_lines(variants, columns):
    """A line for each number of the moves: how often a cluster is missed."""
    names = [f"d={cell.d}: {name}" for name in ("halved", "doubled") for cell in PAIRS_CELLS]
    yield "| number | value | " + " | ".join(names) + " |"
    yield "|---" * (2 + len(names)) + "|"
    lost = {key: [np.sum(each[i] > 1.05) for each in columns] for i, key in enumerate(variants)}
    yield f"| (all as they are) | | {' | '.join(str(n) for n in lost['full'] * 2)} |"
    for name in measured(variants):
        counts = [*lost[name, 0.5], *lost[name, 2.0]]
        yield f"| {name} | {value_of(name)} | {' | '.join(map(str, counts))} |"


def choice_lines(keys, columns):
    """A line for each number of the choice: how often it is right, and what it costs."""
    names = [
        f"touching clusters k={k}" if n == "touching" else f"n={n} d={d} k={k}"
        for n, d, k in CHOICE_CELLS
    ]
    near = np.array(
        [
            (np.abs(each[0] - k) <= 0.1 * k + 1e-9).sum(axis=1)
            for each, (_, _, k) in zip(columns, CHOICE_CELLS, strict=True)
        ]
    )
    change = np.array([np.log(each[1]) - np.log(each[1, 0]) for each in columns])
    mean, error = change.mean(axis=2), change.std(axis=2) / np.sqrt(change.shape[2])
    yield (
        "| number | value | halved: right | mean change | worst cell | doubled: right | "
        "mean change | worst cell |"
    )
    yield "|---" * 8 + "|"
    total = near[:, 0].sum()
    shown = ", ".join(f"{right} {name}" for name, right in zip(names, near[:, 0], strict=True))
    yield f"| (all as they are) | | {total} | | {shown} | {total} | | |"
    for name in measured(keys):
        cells = [f"| {name} | {value_of(name)}"]
        for factor in (0.5, 2.0):
            i = keys.index((name, factor))
            right = "" if np.isnan(mean[:, i]).any() else str(near[:, i].sum())
            cells += [right, *number_cells(names, mean[:, i], error[:, i])]
        yield " | ".join(cells) + " |"


def sections(path):
    """What stands before the first section of the page, and the sections by their titles."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    head, *found = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    return head, {section.partition("\n")[0]: section.strip() for section in found}


def written(path, title, text):
    """Put one section into the page, and leave the other ones as they are."""
    head, kept = sections(path)
    kept[title] = text.strip()
    head = head or "# Ablation of the k-means engine"
    parts = [head.strip(), *(kept[name] for name in TITLES if name in kept)]
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def rows_of(section):
    """The rows of the table of a section, by the names of their numbers."""
    rows = [line for line in section.splitlines() if re.match(r"\| \w+ \|", line)]
    return {row.split(" | ")[0].strip("| "): row for row in rows if not row.startswith("| number")}


def among_others(path, title, lines):
    """The section of the page with new rows in the place of old ones, in the order of numbers."""
    section = sections(path)[1][title]
    rows = rows_of(section) | rows_of("\n".join(lines))
    before = [line for line in section.splitlines() if line not in set(rows_of(section).values())]
    return "\n".join([*before, *(rows[name] for name in names_of(title) if name in rows)])


ABOUT = {
    PIECES: "Cost over the non-private cost, median of {n} seeds (worst in brackets); epsilon = 1."
    " Each line removes or replaces one piece.",
    NUMBERS: "Change of the cost (logarithm, mean of {n} seeds and of the cells of the table "
    "above and six more, with its standard error) when a number is halved or doubled, and the cell "
    "where the change for the worse is clearest, if one is worse by two standard errors; "
    "epsilon = 1. A fit that does not use a number is unchanged.",
    PAIRS: "Fits above 1.05 of the cost from the true centers, of {n}, when a number is halved or "
    "doubled: ten clusters of 10,000 rows in five pairs that are .02 apart, delta = 1e-6.",
    PROJECTION: "Change of the cost (logarithm, mean of {n} seeds of two cells) on "
    "[embeddings](embeddings.md) of power 1, when a number is halved or doubled.",
    CHOICE: 'The same for `DPKMeans("auto")` without bounds, {n} seeds of each of {m} mixtures of '
    "[the benchmark of choices](selection.md). Right: fits within 10% of the true number, of {t}. "
    "A number of clusters that is too large lowers the cost: both columns are needed.",
}


def arguments(parser):
    """Those that all tables have."""
    parser.add_argument("--data", help="folder of .npz files: more cells")
    parser.add_argument("--only", default="", help="numbers to measure: a regular expression")
    parser.add_argument("--output", type=Path, default=OUTPUT)


def publish(options, title, about, command, lines):
    """Print a section, and write it into the page: with `--only`, its rows among the others."""
    text = "\n".join([title, "", about, "", setting.stamp(command), "", *lines])
    print(text, flush=True)
    if options.only:
        text = among_others(options.output, title, lines)
    written(options.output, title, text)


def wanted(options, title):
    """Variants of the numbers of a section that were asked for."""
    names = [name for name in names_of(title) if re.search(options.only, name)]
    return dict(number_variants(names))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=15)
    parser.add_argument("--numbers", action="store_true", help="halve and double each number")
    parser.add_argument("--choice", action="store_true", help="those of the choice of a number")
    parser.add_argument("--pairs", action="store_true", help="those of the moves")
    parser.add_argument("--projection", action="store_true", help="those of the projection")
    arguments(parser)
    options = parser.parse_args()
    if options.data:
        os.environ["SKLEARN_DP_DATA"] = options.data
    warnings.simplefilter("ignore", UtilityWarning)
    warnings.simplefilter("ignore", SeededNoiseWarning)
    title = CHOICE if options.choice else NUMBERS if options.numbers else PIECES
    title = PAIRS if options.pairs else PROJECTION if options.projection else title
    tables = {CHOICE: of_choice, PAIRS: of_pairs, PROJECTION: of_projection}
    lines = tables.get(title, of_engine)(options)
    flags = {NUMBERS: "numbers", PAIRS: "pairs", CHOICE: "choice", PROJECTION: "projection"}
    flag = f"--{flags[title]} " if title in flags else ""
    about = ABOUT[title].format(
        n=options.seeds, m=len(CHOICE_CELLS), t=options.seeds * len(CHOICE_CELLS)
    )
    publish(
        options,
        title,
        about,
        f"python benchmarks/ablation.py {flag}--seeds {options.seeds}"
        + " --data FOLDER" * bool(options.data),
        list(lines),
    )


def of_pairs(options):
    """Lines of the numbers of the moves."""
    variants = wanted(options, PAIRS)
    return pairs_lines(variants, [ratios(variants, cell, options.seeds) for cell in PAIRS_CELLS])


def of_projection(options):
    """Lines of the numbers of the projection."""
    variants, seeds = wanted(options, PROJECTION), options.seeds
    columns = [ratios(variants, cell, seeds, over_best=False) for cell in EMBEDDINGS_CELLS]
    names = [f"d={cell.d}" for cell in EMBEDDINGS_CELLS]
    return number_lines(names, list(variants), columns)


def of_choice(options):
    """Lines of the numbers of the choice."""
    variants = wanted(options, CHOICE)
    columns = [chosen(variants, cell, options.seeds) for cell in CHOICE_CELLS]
    return choice_lines(list(variants), columns)


def of_engine(options):
    """Lines of the pieces, or of the numbers of fits that are given theirs."""
    files = FILE_NAMES + MORE_FILE_NAMES * options.numbers
    cells = CELLS + MORE_CELLS * options.numbers
    cells += [cell for cell in setting.file_cells() if cell.name in files]
    variants = wanted(options, NUMBERS) if options.numbers else VARIANTS
    measured_in = partial(ratios, variants, n_seeds=options.seeds, over_best=not options.numbers)
    columns = [measured_in(cell) for cell in cells]
    columns.append(measured_in(WIDE, wider=50))
    names = [*map(str, cells), f"{WIDE}, bounds 50 times too wide"]
    if options.numbers:
        columns.append(measured_in(WIDE, bounds=None))
        names.append(f"{WIDE}, no bounds")
        return number_lines(names, list(variants), columns)
    return piece_lines(names, columns)


if __name__ == "__main__":
    main()
