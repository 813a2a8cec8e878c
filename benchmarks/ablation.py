"""What each piece of the k-means engine is worth: fits with one piece taken out or replaced.

    python benchmarks/ablation.py                  # 15 seeds; about five minutes
    python benchmarks/ablation.py --seeds 5 --data FOLDER

Prints a table and writes doc/benchmarks/ablation.md. Data and settings are those of
benchmarks/kmeans.py (epsilon = 1); the noise of a seed is drawn afresh for each variant. A
variant replaces functions of the package for the time of its fits.
"""

import argparse
import os
import warnings
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

import kmeans as setting  # the benchmark beside this file; it also limits the threads
import numpy as np

from sklearn_dp._aggregate.kmeans import coreset as _coreset
from sklearn_dp._aggregate.kmeans import engine as _engine
from sklearn_dp._aggregate.kmeans import lloyd as _lloyd
from sklearn_dp._aggregate.shared import axes as _pca
from sklearn_dp._aggregate.shared import centering as _centering
from sklearn_dp.exceptions import UtilityWarning

OUTPUT = Path(__file__).resolve().parents[1] / "doc" / "benchmarks" / "ablation.md"
CELLS = [setting.Cell("separated", 10**4, 2, 20), setting.Cell("separated", 10**4, 10, 20),
         setting.Cell("separated", 10**4, 100, 20), setting.Cell("separated", 2 * 10**4, 10, 50),
         setting.Cell("paper", 2 * 10**4, 2, 8), setting.Cell("real", 1797, 64, 10, 1, "digits"),
         setting.Cell("real", 178, 13, 3, 1, "wine")]
WIDE = setting.Cell("separated", 10**4, 2, 10)  # in bounds that are 50 times too wide
FILE_NAMES = ("s3", "unbalance", "letter16")


# --- variants: what is put in the place of which function ------------------------------------


def plain_update(state, sums, sums_sd, radius, gain, *, relax, bold=False):
    """The mean of this step alone, where the count is sure."""
    n, sure = np.maximum(state.count, 2 * state.count_sd), state.count > 2 * state.count_sd
    seen = np.where(sure[:, None], sums / n[:, None], 0.0)
    noise, length = np.square(sums_sd / n), np.einsum("ij,ij->i", seen, seen)
    drift, drift_sd = _lloyd._drift(length, noise, n, radius, sums.shape[1])
    state.centers, state.variance = state.centers + seen, noise
    return drift >= max(0.0005, 1.5 * drift_sd), length


def no_moves(state, excess, doubt, direction, *, most):
    return 0


def exact_number(session, coreset, axes, n_clusters):
    centers = _engine.weighted_kmeans(coreset.points, coreset.weights, n_clusters,
                                      session.rng("start"))
    return axes.lift(centers)


def middles(session, entry, rows, units, leaves):
    """The middles of the cells; the budget of their means goes to Lloyd's steps."""
    return leaves.centers


def one_level(q, size, n_clusters, rho):
    return depths(q, size, n_clusters, rho)[-1:]


depths = _coreset._depths


def all_axes(values, noise, n_clusters):
    return min(8, len(values))


def wide(walk, squared, rho):
    """The radius that nearly all rows are within."""
    walk.inside = 0.97
    return clip_radius(walk, squared, rho)


clip_radius = _lloyd._clip_radius


def whole(walk, squared, rho):
    """Rows clipped to the radius of all the data: not paid for again, nothing local."""
    return walk.radius, 1.0


def never_thrifty(size, n_features, n_clusters):
    return 1.0


def no_leaf_again(tree, parents):
    return np.zeros(0, dtype=np.int64)


def same_guesses(leaves, size, measured):
    return 3.0 if size.small else 0.3


def eager_radius(counts, edges, noise_sd, target):
    """The first bin from the top that stands out of the noise, however many are passed."""
    return quantile(counts, edges, noise_sd / 1.5, target)


quantile = _centering.quantile_from_histogram

VARIANTS = {
    "full": (),
    "plain means instead of the Kalman update": ((_lloyd, "_update", plain_update),),
    "no moves": ((_lloyd, "merge_and_split", no_moves),),
    "as many starts as clusters": ((_engine, "_start", exact_number),),
    "no cell means": ((_coreset, "_leaf_means", middles),),
    "one level of cells": ((_coreset, "_depths", one_level),),
    "leaves counted once": ((_coreset._Tree, "leaf_nodes", no_leaf_again),),
    "public guesses weigh the same whatever the leaves hold": (
        (_coreset, "_faint", same_guesses),),
    "radius at the first bin that stands out": (
        (_centering, "quantile_from_histogram", eager_radius),),
    "eight axes, whatever the noise": ((_pca, "_n_axes", all_axes),),
    "clip near the largest distance": ((_lloyd, "_clip_radius", wide),),
    "clip at the radius of the data": ((_lloyd, "_clip_radius", whole),),
    "the start never takes less": ((_engine, "_thrift", never_thrifty),),
}


@contextmanager
def replaced(pieces):
    with ExitStack() as stack:
        for module, name, other in pieces:
            if not hasattr(module, name):
                raise AttributeError(f"{module.__name__} has no {name} to replace")
            stack.enter_context(patch.object(module, name, other))
        yield


# --- measuring -------------------------------------------------------------------------------


def ratios(cell, n_seeds, wider=1.0):
    """Cost ratios of each variant: (variants, seeds); data shrunk within the bounds `wider`."""
    found, reference = np.empty((len(VARIANTS), n_seeds)), None
    for seed in range(n_seeds):
        X, _, truth = setting.MAKE[cell.setting](cell, 500 + seed)
        if reference is None or cell.setting not in setting.SAME_ROWS:
            reference = setting.best_known(X, cell, truth)
        X, reference = X / wider, reference / wider**2
        for i, pieces in enumerate(VARIANTS.values()):
            with replaced(pieces):
                found[i, seed] = setting.cost(X, setting.ours(X, cell, seed)) / reference
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=15)
    parser.add_argument("--data", help="folder of .npz files: three more columns")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    if options.data:
        os.environ["SKLEARN_DP_DATA"] = options.data
    cells = CELLS + [cell for cell in setting.file_cells() if cell.name in FILE_NAMES]
    warnings.simplefilter("ignore", UtilityWarning)
    columns = [ratios(cell, options.seeds) for cell in cells] + [ratios(WIDE, options.seeds, 50)]
    names = [*map(str, cells), f"{WIDE}, bounds 50 times too wide"]
    lines = ["| variant | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    for i, name in enumerate(VARIANTS):
        cost = [f"{np.median(each[i]):.4f} ({each[i].max():.3f})" for each in columns]
        lines.append(f"| {name} | " + " | ".join(cost) + " |")
    print("\n".join(lines))
    options.output.write_text("\n".join([
        "# What each piece of the k-means engine is worth", "",
        f"Cost over the non-private cost, median of {options.seeds} seeds (worst in brackets); "
        "epsilon = 1. One piece is taken out or replaced in each line.", "",
        setting.stamp(f"python benchmarks/ablation.py --seeds {options.seeds}"), "", *lines, ""]),
        encoding="utf-8")


if __name__ == "__main__":
    main()
