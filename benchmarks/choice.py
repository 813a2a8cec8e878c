"""Which private k-means: the coreset or k-tuples, and what either costs.

    python benchmarks/choice.py                 # about ten minutes on an idle core
    python benchmarks/choice.py --only scale --runs 2

Writes doc/benchmarks/choice.md, .json and .png (`--output` for another place); parts that are not
made anew are kept.

cost     8 clusters of `make_blobs` (centers uniform in a cube of side 20, standard deviation 1), no
         bounds, delta 1e-6: median cost over that of KMeans with ten starts, CPU seconds
budget   rows and epsilon; d = 10, k = 10
shape    dimension and clusters; n = 1e5, epsilon = 8
scale    distance of the nearest centers; n = 1e5, k = 10, epsilon = 8

The last three fit DPKMeans and the tuple path, whose public limits are lifted, to the same rows,
new ones in each run; bounds = 1, delta = 1e-6. Data: "separated", k centers in the ball of
radius 0.8, the best of 50 draws by their smallest distance m; "pairs", k/2 such centers, each of
them two that are 0.02 apart (in part `scale`: as the table says). Gaussian clusters of standard
deviation m/10 (above d = 10: m / (2 sqrt(d) + 6)). Excess is the cost over that of KMeans from the
true centers, minus 1; a fit is wrong if it exceeds 0.05: a cluster is missed.
"""

import argparse
import json
import statistics
import time
import warnings
from pathlib import Path

import _run  # first: one thread
import numpy as np
from _style import new, plain_ticks, save
from matplotlib.patches import Rectangle
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

from sklearn_dp import DPKMeans, DPKTupleKMeans
from sklearn_dp._aggregate import tuples as _tuple_stage
from sklearn_dp.cluster import _dp_k_tuple_kmeans as _limits
from sklearn_dp.exceptions import UtilityWarning

OUTPUT = _run.PAGES / "choice"
BLOBS = [  # n, d, epsilon
    (1_000, 2, 1.0), (10_000, 2, 1.0), (100_000, 2, 1.0),
    (1_000, 10, 1.0), (10_000, 10, 1.0), (100_000, 10, 1.0),
    (10_000, 50, 1.0), (100_000, 50, 1.0),
    (10_000, 10, 0.25), (10_000, 10, 4.0), (100_000, 10, 8.0),
]  # fmt: skip
ROWS, BUDGETS = (10_000, 30_000, 100_000, 300_000), (4.0, 8.0, 16.0)
MAPS = {  # data, n, d, k, distance of pairs, epsilon
    "budget": [
        (data, n, 10, 10, 0.02, epsilon)
        for data in ("separated", "pairs")
        for n in ROWS
        for epsilon in BUDGETS
    ],
    "shape": [
        (data, 100_000, d, k, 0.02, 8.0)
        for data in ("separated", "pairs")
        for d in (2, 10, 50)
        for k in (4, 10, 20)
    ],
    "scale": [
        ("pairs", 100_000, d, 10, gap, 8.0)
        for d in (2, 10)
        for gap in (0.1, 0.05, 0.02, 0.01, 0.005, 0.002)
    ],
}
WRONG = 0.05


def timed(model, X):
    """Cost and seconds of one fit."""
    start = time.process_time()
    model.fit(X)
    seconds = time.process_time() - start
    return -model.score(X), seconds


def cost(runs):
    for n, d, epsilon in BLOBS:
        X, _ = make_blobs(n, d, centers=8, center_box=(-10, 10), random_state=n + d)
        known, seconds = timed(KMeans(8, n_init=10, random_state=0), X)
        cells = {"n": n, "d": d, "epsilon": epsilon, "KMeans s": seconds}
        for kind in (DPKMeans, DPKTupleKMeans):
            models = [kind(8, epsilon=epsilon) for _ in range(runs)]
            costs, taken = zip(*(timed(model, X) for model in models), strict=True)
            cells[f"{kind.__name__} cost"] = statistics.median(costs) / known
            cells[f"{kind.__name__} s"] = statistics.median(taken)
        yield {**cells, "path": statistics.mode(model.path_ for model in models)}


# --- the map -------------------------------------------------------------------------------------


def spread_out(rng, k, d):
    """The best of 50 sets of centers in the ball of radius 0.8, and their smallest distance."""
    best, most = None, -1.0
    for _ in range(50):
        centers = rng.normal(size=(k, d))
        centers *= 0.8 * rng.random((k, 1)) ** (1 / d) / np.linalg.norm(centers, axis=1)[:, None]
        least = smallest_distance(centers)
        if least > most:
            best, most = centers, least
    return best


def smallest_distance(centers):
    gaps = np.linalg.norm(centers[:, None] - centers, axis=2)
    return (gaps + 9 * np.eye(len(centers))).min()


def mixture(data, n, d, k, gap, seed):
    rng = np.random.default_rng([n, d, k, seed])
    if data == "separated":
        centers = spread_out(rng, k, d)
    else:
        centers, step = spread_out(rng, k // 2, d), rng.normal(size=(k // 2, d))
        step *= gap / 2 / np.linalg.norm(step, axis=1, keepdims=True)
        centers = np.concatenate([centers + step, centers - step])
    sigma = smallest_distance(centers) / (10 if d <= 10 else 2 * np.sqrt(d) + 6)
    X = centers[rng.integers(k, size=n)] + sigma * rng.normal(size=(n, d))
    return X / np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True)), centers


def by_rule(model, n, d):
    """Whether "auto" would have tried the tuples, but for the noise of the count."""
    t = model._stage(model._target(), d)[0].size
    return bool(t) and n >= t * model_rows(model)


def model_rows(model):
    return KNOWN["rows"] * model.n_clusters


KNOWN = {"rows": _limits._ROWS_PER_CENTER, "tuples": _tuple_stage._MOST_CORE}


def lift(lifted):
    _limits._ROWS_PER_CENTER = 2 if lifted else KNOWN["rows"]
    _tuple_stage._MOST_CORE = 3000 if lifted else KNOWN["tuples"]


def compare(cells, runs):
    for data, n, d, k, gap, epsilon in cells:
        excess, seconds, agreed = {"coreset": [], "tuples": []}, {"coreset": [], "tuples": []}, 0
        auto = by_rule(DPKTupleKMeans(k, epsilon=epsilon, bounds=1.0), n, d)
        for seed in range(runs):
            X, centers = mixture(data, n, d, k, gap, seed)
            known = KMeans(k, init=centers, n_init=1, tol=0).fit(X).inertia_
            for name, kind in (("coreset", DPKMeans), ("tuples", DPKTupleKMeans)):
                lift(True)
                model = kind(k, epsilon=epsilon, bounds=1.0)
                found, taken = timed(model, X)
                lift(False)
                excess[name].append(found / known - 1)
                seconds[name].append(taken)
            agreed += model.path_ == "tuples"
        line = {"data": data, "n": n, "d": d, "k": k, "epsilon": epsilon, "runs": runs}
        if data == "pairs":
            line["nearest"] = gap
        for name in excess:
            line |= {
                f"{name} wrong": sum(e > WRONG for e in excess[name]),
                f"{name} excess": statistics.median(excess[name]),
                f"{name} s": statistics.median(seconds[name]),
            }
        yield {
            **line,
            "blocks": model.n_tuples_,
            "agreed": agreed,
            "auto": "tuples" if auto else "coreset",
        }


# --- table and plot ------------------------------------------------------------------------------


def markdown(rows):
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = ["| " + " | ".join(names) + " |", "|" + " --- |" * len(names)]
    for row in rows:
        cells = [row.get(name, "") for name in names]
        lines.append(
            "| "
            + " | ".join(
                f"{c:.3g}"
                if isinstance(c, float) and name != "KMeans s" and abs(c) < 1
                else f"{c:.4g}"
                if isinstance(c, float)
                else f"{c:,}"
                if isinstance(c, int)
                else str(c)
                for c, name in zip(cells, names, strict=True)
            )
            + " |"
        )
    return "\n".join(lines)


AXES = [  # part, data, along, across, title
    ("budget", "separated", "n", "epsilon", "Separated: 10 features, 10 clusters"),
    ("budget", "pairs", "n", "epsilon", "Pairs: 10 features, 10 clusters"),
    ("shape", "separated", "d", "k", "Separated: 100,000 rows, epsilon = 8"),
    ("shape", "pairs", "d", "k", "Pairs: 100,000 rows, epsilon = 8"),
    ("scale", "pairs", "nearest", "d", "Pairs: 100,000 rows, 10 clusters, epsilon = 8"),
]
WORDS = {
    "n": "rows", "d": "features", "k": "clusters", "epsilon": "epsilon",
    "nearest": "distance of the two clusters of a pair",
}  # fmt: skip
FEWER, SAME, MORE = "#9ecbe8", "#f0f1f3", "#f5c39b"  # dark text is read on all three


def plot(tables, path):
    """A tile for each cell of the maps: how many fits of each aggregator miss a cluster."""
    figure, axes = new((13, 7.6), 2, 3)
    for axis, (part, data, along, across, title) in zip(axes.flat, AXES, strict=False):
        rows = [row for row in tables.get(part, []) if row["data"] == data]
        xs, ys = (sorted({row[name] for row in rows}) for name in (along, across))
        for row in rows:
            draw_tile(axis, row, xs.index(row[along]), ys.index(row[across]), len(xs))
        axis.set(
            xlabel=WORDS[along],
            ylabel=WORDS[across],
            title=title,
            xlim=(-0.5, len(xs) - 0.5),
            ylim=(-0.5, len(ys) - 0.5),
        )
        plain_ticks(axis.xaxis, range(len(xs)), [f"{x:,g}" for x in xs])
        plain_ticks(axis.yaxis, range(len(ys)), [f"{y:g}" for y in ys])
        axis.tick_params(length=0)
    draw_key(axes.flat[-1])
    save(figure, path, dpi=100)


def draw_tile(axis, row, x, y, n_columns):
    """Fits that miss a cluster, of all: coreset and tuples; and what the rule takes, in bold."""
    more = row["tuples wrong"] - row["coreset wrong"]
    color = SAME if not more else FEWER if more < 0 else MORE
    axis.add_patch(Rectangle((x - 0.48, y - 0.47), 0.96, 0.94, color=color, lw=0))
    for name, up in (("coreset", 0.13), ("tuples", -0.13)):
        axis.text(
            x,
            y + up,
            f"{name} {row[f'{name} wrong']}/{row['runs']}",
            ha="center",
            va="center",
            fontsize=9 if n_columns < 5 else 7.5,
            weight="bold" if row["auto"] == name else "normal",
        )


def draw_key(axis):
    """What the tiles say, where the sixth map would be."""
    axis.axis("off")
    axis.set(xlim=(0, 1), ylim=(0, 1))
    axis.text(0, 0.97, "In each tile", weight="bold", fontsize=11, va="top")
    axis.text(
        0,
        0.87,
        "fits that miss a cluster, of all fits:\nby the coreset, and by the k-tuples",
        va="top",
    )
    for y, color, words in (
        (0.58, FEWER, "the tuples miss fewer"),
        (0.47, MORE, "the coreset misses fewer"),
        (0.36, SAME, "no difference"),
    ):
        axis.add_patch(Rectangle((0, y), 0.09, 0.08, color=color, lw=0))
        axis.text(0.13, y + 0.04, words, va="center")
    axis.text(0, 0.22, "bold", weight="bold", va="center")
    axis.text(0.13, 0.22, 'what aggregator="auto" takes', va="center")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", choices=["cost", *MAPS], action="append")
    parser.add_argument(
        "--cells",
        type=lambda text: slice(*map(int, text.split(":"))),
        default=slice(None),
        help="of the parts, as FIRST:LAST",
    )
    parser.add_argument("--plot", action="store_true", help="draw what is stored")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    warnings.simplefilter("ignore", UtilityWarning)
    kept = options.output.with_suffix(".json")
    tables = json.loads(kept.read_text()) if kept.exists() else {}
    if options.plot:
        return plot(tables, options.output.with_suffix(".png"))
    for name in options.only or ["cost", *MAPS]:
        made = (
            cost(options.runs)
            if name == "cost"
            else compare(MAPS[name][options.cells], options.runs)
        )
        rows = tables.setdefault(name, [])
        for row in made:
            print(row, flush=True)
            place = {key: row.get(key) for key in ("data", "n", "d", "k", "nearest", "epsilon")}
            rows[:] = [old for old in rows if {key: old.get(key) for key in place} != place]
            rows.append(row)
            kept.write_text(json.dumps(tables, indent=1))
    text = f"# Coreset or k-tuples\n\n```text\n{__doc__.strip()}\n```"
    for name, rows in tables.items():
        text += f"\n\n## {name}\n\n{markdown(rows)}"
    options.output.with_suffix(".md").write_text(text + "\n\n![the map](choice.png)\n")
    plot(tables, options.output.with_suffix(".png"))


if __name__ == "__main__":
    main()
