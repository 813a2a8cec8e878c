"""The k-means engine before and after: fits of two releases, paired by data and by seed.

    python benchmarks/engine.py --before FOLDER --data FILES    # the fits that are not stored yet
    python benchmarks/engine.py --cells "pairs" --again         # fits of this release anew
    python benchmarks/engine.py --cells unbalance --fits 500    # few fits are bad: more of them
    python benchmarks/engine.py --free                          # beside one center, which is free
    python benchmarks/engine.py --report                        # page and picture of what is stored

FOLDER is a checkout of an older release (`git worktree add --detach FOLDER d58abef6` is the one
of the page); each release runs in a process of its own (`_release.py`). FILES is the folder of
data of benchmarks/kmeans.py (`--data` there). Each fit is written to doc/benchmarks/engine.csv as
soon as it is done, so a run that was stopped goes on where it was; then .md and .png.

"ratio" is the cost over the best known one: KMeans from the true centers, where there are any, or
with so many starts as benchmarks/kmeans.py takes. "one" is the cost of the mean of all rows over
the same. The difference is the mean of those of pairs, after less before, with its standard error.
The CPU ratio is the median of those of pairs. "ok" is the share of fits whose status is that
word.

Cells: epsilon = 1 and delta = 1e-6 unless the name says more; public bounds. New data in each fit,
but for files and real tables.
  files, real   benchmarks/kmeans.py
  separated     benchmarks/kmeans.py; delta = 1e-8
  pairs         benchmarks/choice.py: ten clusters, in five pairs `gap` apart
  heavy tails   `heavy_tails`: t of 2.5 degrees of freedom about each center
  unbalanced    `unbalanced`: two thirds of the rows in one cluster, 19 small ones
  rare flag     `rare_flag`: a column of zeros and few ones beside columns of normal numbers
  census        `census`: near-discrete columns, 148 rows with the largest gain there is
  issue         what an issue complained of: blobs of few rows in many features, digits at a tenth
                of the budget, 64 rows a cluster in 128 features, word counts (tf-idf; 10 fits), 38
                extreme rows without bounds

What is free, in doc/benchmarks/engine_free.csv: one center that is released with the whole budget,
the noisy sum over the noisy number of rows, shrunk toward the public center as the package does.
Its cost is the median of 200 draws. Settings: those of benchmarks/status.py with few rows and
small budgets, and digits. Asked for: in each of them a median of at most 1.02 times that, and at
most one fit in twenty above 1.05 times; the free answer itself is, in so many draws as the table
says.
"""

import argparse
import csv
import itertools
import math
import os
import re
import shlex
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import _run  # first: one thread
import choice  # the benchmarks beside this file
import kmeans as setting
import numpy as np
import status
from _release import Release
from _style import COLORS, MUTED, new, plain_ticks, save
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

from sklearn_dp import DPKMeans
from sklearn_dp._costs.accounting import gaussian_sigma

OUTPUT = _run.PAGES / "engine"
FITS, MORE, LOSS = 40, 500, 1.05
COLUMNS = ("cell", "seed", "release", "cost", "best", "one", "cpu", "status")
BEFORE, AFTER = "before", "after"


# --- data: seed -> rows, and centers to start k-means from or None -------------------------------


def separated(n, d, k, seed):
    X, _, centers = setting.separated_mixture(setting.Cell("separated", n, d, k), seed)
    return X, centers


def pairs(d, gap, seed):
    return choice.mixture("pairs", 100_000, d, 10, gap, seed)


def stored(cell, seed):
    """Rows of a file or of a real table."""
    return setting.MAKE[cell.setting](cell, seed)[0], None


def heavy_tails(n, d, k, seed):
    """Multivariate t with 2.5 degrees of freedom; scale: a tenth of the least distance."""
    rng = np.random.default_rng([seed, n, d, k])
    centers = choice.spread_out(rng, k, d)
    scale = choice.smallest_distance(centers) / (10 if d <= 10 else 2 * math.sqrt(d) + 6)
    noise = rng.normal(size=(n, d)) / np.sqrt(rng.chisquare(2.5, size=(n, 1)) / 2.5)
    return setting.into_ball(centers[rng.integers(k, size=n)] + scale * noise), centers


def unbalanced(n, seed):
    """Two thirds of the rows in one cluster, the rest in 19, Gaussian, in the plane.

    19 of 20 to 150 rows, in equal ratios, are 1,246 rows: with n = 3,738 they are the last third.
    With more rows, sixteen of them stay as they are, and three share what is left.
    """
    rng = np.random.default_rng([seed, n])
    centers = choice.spread_out(rng, 20, 2)
    light = np.rint(np.geomspace(20, 150, 19)).astype(int)
    if n > 3 * light.sum():
        light = light[:16]
        light = np.append(light, np.full(3, (n // 3 - light.sum()) // 3))
    sizes = np.append(n - light.sum(), light)
    scale = choice.smallest_distance(centers) / 10
    labels = np.repeat(np.arange(20), sizes)
    return setting.into_ball(centers[labels] + scale * rng.normal(size=(n, 2))), centers


def rare_flag(n, d, seed):
    """A column that is one in a row of twenty, else zero, beside others that know nothing of it."""
    rng = np.random.default_rng([seed, n, d])
    flag = (rng.random(n) < 0.05) - 0.5
    X = setting.into_ball(np.column_stack([0.1 * rng.normal(size=(n, d - 1)), flag]))
    return X, np.array([X[flag == value].mean(axis=0) for value in (-0.5, 0.5)])


def census(seed):
    """Five columns as of a census table, in standard deviations; 148 rows have the largest gain."""
    rng, n = np.random.default_rng(seed), 30_000
    age = np.clip(17 + np.rint(rng.gamma(3.0, 7.2, n)), 17, 90)
    years = np.clip(np.rint(rng.normal(10.1, 2.5, n)), 1, 16)
    gain = np.where(rng.random(n) < 0.08, np.rint(rng.lognormal(8.6, 0.6, n)), 0).clip(0, 41_310)
    gain[rng.choice(n, 148, replace=False)] = 99_999
    loss = np.where(rng.random(n) < 0.05, np.rint(rng.normal(1870, 370, n)), 0).clip(0, 4356)
    hours = np.where(rng.random(n) < 0.47, 40, np.rint(rng.normal(41, 17, n))).clip(1, 99)
    X = np.column_stack([age, years, gain, loss, hours])
    low, high = np.array([17, 1, 0, 0, 1]), np.array([90, 16, 99_999, 4356, 99])
    scale = np.array([13.0, 2.5, 7400.0, 404.0, 12.0])  # public: standard deviations of the columns
    half = (high - low) / 2 / scale
    return ((X - low) / scale - half) / np.linalg.norm(half), None


def blobs(d, seed):
    X, _, centers = make_blobs(500, d, centers=4, random_state=seed, return_centers=True)
    return X, centers


def narrow(seed):
    """64 rows about each of 16 centers in 128 features, 8-bit numbers that are scaled to a ball."""
    rng = np.random.default_rng(seed)
    centers = rng.uniform(30, 225, size=(16, 128))
    X = np.rint(np.repeat(centers, 64, axis=0) + rng.normal(size=(1024, 128)) * 3)
    scaled = [setting.into_box(part, np.zeros(128), np.full(128, 255.0)) for part in (X, centers)]
    return tuple(scaled)


def words(seed):
    """3,000 documents, 3,000 words, 4 topics: tf-idf of words that follow Zipf's law."""
    rng = np.random.default_rng(seed)
    common = 1 / np.arange(1, 3001)
    topics = []
    for _ in range(4):
        own = np.zeros(3000)
        own[rng.choice(3000, 200, replace=False)] = 1 / np.arange(1, 201)
        topics.append(0.6 * common / common.sum() + 0.4 * own / own.sum())
    labels = rng.integers(4, size=3000)
    counts = np.array([rng.multinomial(60, topics[label]) for label in labels])
    seen = (counts > 0).sum(axis=0)
    X = counts * (np.log(3001 / (1 + seen)) + 1)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.array([X[labels == j].mean(axis=0) for j in range(4)])


def extremes(seed):
    """Two clouds in nine features, and 38 rows in five groups, hundreds of their widths away."""
    rng = np.random.default_rng(seed)
    bulk = rng.normal(size=(43_462, 9)) * np.geomspace(0.3, 1.0, 9)
    bulk[:, 0] += 4 * (rng.random(len(bulk)) < 0.2)
    far = rng.normal(size=(5, 9))
    far *= np.geomspace(60, 400, 5)[:, None] / np.linalg.norm(far, axis=1, keepdims=True)
    far = np.repeat(far, [14, 10, 7, 4, 3], axis=0) + rng.normal(size=(38, 9))
    return np.concatenate([bulk, far]), None


@dataclass(frozen=True)
class Cell:
    """One line of the table."""

    name: str
    k: int
    make: Callable
    epsilon: float = 1.0
    delta: float = 1e-6
    bounds: object = 1.0
    fresh: bool = True
    starts: int = 10
    most_fits: int = FITS

    @property
    def parameters(self):
        """Of `DPKMeans`, but for the seed."""
        return {"epsilon": self.epsilon, "delta": self.delta, "bounds": self.bounds}


def all_cells():
    """All of them; those of files only with a folder."""
    cells = [
        Cell(
            str(cell),
            cell.k,
            partial(stored, cell),
            fresh=False,
            starts=60 if cell.setting == "real" else 20,
            most_fits=MORE if cell.name == "unbalance" else FITS,
        )
        for cell in setting.all_cells()
        if cell.setting == "files" or (cell.setting == "real" and cell.epsilon == 1)
    ]
    cells += [
        Cell(str(setting.Cell("separated", n, d, 20)), 20, partial(separated, n, d, 20), delta=1e-8)
        for n in (10**4, 10**5)
        for d in (2, 10, 50, 100)
    ]
    cells += [
        Cell(f"pairs d={d} gap={gap:g}", 10, partial(pairs, d, gap))
        for d, gap in ((10, 0.02), (10, 0.005), (50, 0.02))
    ]
    cells += [
        Cell(f"heavy tails n=1e4 d={d} k=10", 10, partial(heavy_tails, 10**4, d, 10))
        for d in (2, 10, 50)
    ]
    cells += [Cell(f"unbalanced n={n} d=2 k=20", 20, partial(unbalanced, n)) for n in (13467, 3738)]
    cells += [
        Cell(f"rare flag n={n} d={d} k=2", 2, partial(rare_flag, n, d))
        for n, d in ((2000, 3), (4000, 4), (4000, 8))
    ]
    digits = setting.Cell("real", 1797, 64, 10, 0.1, "digits")
    return [
        *cells,
        Cell("census n=3e4 d=5 k=8", 8, census),
        *(
            Cell(f"issue blobs n=500 d={d} k=4", 4, partial(blobs, d), bounds=[-12.0, 12.0])
            for d in (200, 50)
        ),
        Cell(f"issue {digits.name} eps=0.1", 10, partial(stored, digits), 0.1, fresh=False),
        Cell("issue n=1024 d=128 k=16", 16, narrow),
        Cell("issue words n=3000 d=3000 k=4", 4, words, starts=1, most_fits=10),
        Cell("issue extremes n=43500 d=9 k=7, no bounds", 7, extremes, bounds=None),
    ]


# --- fits ----------------------------------------------------------------------------------------


def best_known(cell, X, centers):
    """The lowest cost that KMeans finds: from the true centers, and from many starts of its own."""
    found = [] if centers is None else [KMeans(cell.k, init=centers, n_init=1).fit(X).inertia_]
    if centers is None or cell.starts == 1:
        found.append(KMeans(cell.k, n_init=cell.starts, random_state=1).fit(X).inertia_)
    return min(found)


def measure(cell, releases, done, n_fits, folder):
    """A line for each fit that is not among those done, one release after the other.

    Parameters
    ----------
    cell : Cell
    releases : dict of Release, by name
    done : dict
        Lines by (cell, seed, release).
    n_fits : int
    folder : Path
        For the file of rows.

    Yields
    ------
    line : dict
    """
    rows, known = folder / "rows.npy", None
    for seed in range(min(n_fits, cell.most_fits)):
        missing = [name for name in releases if (cell.name, seed, name) not in done]
        if not missing:
            continue
        if cell.fresh or known is None:
            X, centers = cell.make(seed)
            np.save(rows, X)
            known = costs_known(cell, seed, done) or (
                best_known(cell, X, centers),
                setting.cost(X, X.mean(axis=0, keepdims=True)),
            )
        # Releases take turns: caches are warm for one as often as for the other.
        for name in missing[:: (-1) ** seed]:
            fit = releases[name].fit(rows, cell.k, random_state=seed, **cell.parameters)
            cost = setting.cost(X, np.array(fit["centers"]))
            yield dict(
                zip(
                    COLUMNS,
                    (cell.name, seed, name, cost, *known, fit["cpu"], fit["status"]),
                    strict=True,
                )
            )


def costs_known(cell, seed, done):
    """Costs of the same rows that are stored already: the best known, and of one center."""
    for (name, other, _), line in done.items():
        if name == cell.name and (other == seed or not cell.fresh):
            return line["best"], line["one"]
    return None


def run(cells, releases, path, n_fits, again):
    """Add what is missing to the file of fits; write each cell as it goes."""
    done = read(path)
    if again:
        names = {cell.name for cell in cells}
        done = {key: line for key, line in done.items() if key[0] not in names or key[2] != again}
        write(path, done)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        running = {name: stack.enter_context(Release(place)) for name, place in releases.items()}
        for cell in cells:
            for line in measure(cell, running, done, n_fits, folder):
                done[line["cell"], line["seed"], line["release"]] = line
                write(path, done)
            for entry in summary(done, [cell.name]):
                print(in_table(entry), flush=True)
    return done


def read(path):
    """Stored lines, by (cell, seed, release)."""
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    for line in lines:
        line["seed"] = int(line["seed"])
        line.update({name: float(line[name]) for name in ("cost", "best", "one", "cpu")})
    return {(line["cell"], line["seed"], line["release"]): line for line in lines}


def write(path, done):
    """All lines of fits."""
    write_lines(path, COLUMNS, done.values())


def write_lines(path, columns, lines):
    """First to another file: one that is cut off never takes the place of a whole."""
    part = path.with_suffix(".part")
    with part.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, columns, lineterminator="\n")
        table.writeheader()
        for line in lines:
            table.writerow({k: f"{v:.7g}" if isinstance(v, float) else v for k, v in line.items()})
    part.replace(path)


# --- what is free --------------------------------------------------------------------------------

FREE_COLUMNS = ("cell", "seed", "cost", "free", "free_above", "one", "status")
FREE_FITS, DRAWS = 20, 200


def free_settings():
    """Few rows, small budgets; the numbers of clusters take turns."""
    grid = itertools.product(
        (100, 500, 2000, 5000),
        (2, 10, 50, 200),
        (0.01, 0.03, 0.1, 0.3),
        ("separated", "none", "overlapping"),
    )
    for i, (n, d, epsilon, data) in enumerate(grid):
        yield status.Setting(n, d, status.CLUSTERS[i % 2], epsilon, data)
    for epsilon in (0.01, 0.03, 0.1, 0.3):
        yield status.Setting(1797, 64, 10, epsilon, "digits")


def free_costs(X, epsilon, delta=1e-6):
    """Costs of the one center that is released with the whole budget, radius 1: some draws."""
    (n, d), rng = X.shape, np.random.default_rng(0)
    # A row moves (sum, count / 2) by at most sqrt(5) / 2.
    sigma, middle = gaussian_sigma(epsilon, delta) * math.sqrt(1.25), X.mean(axis=0)
    costs = np.empty(DRAWS)
    for i in range(DRAWS):
        count = max(n + 2 * sigma * rng.normal(), 8 * sigma)
        found = (n * middle + sigma * rng.normal(size=d)) / count
        length = np.linalg.norm(found)
        if d > 2:  # positive-part James-Stein
            found = found * max(0.0, 1 - d * (sigma / count / length) ** 2)
        found = found * min(1.0, 1.0 / max(np.linalg.norm(found), 1e-300))
        costs[i] = n * np.square(found - middle).sum()
    return setting.cost(X, middle[None]) + costs


def measure_free(pattern, n_fits, path):
    """Add the settings that are not stored, each when it is done."""
    done = list(read_free(path))
    stored = {line["cell"] for line in done}
    for number_, case in enumerate(free_settings()):
        name = f"{case.data} n={case.n} d={case.d} k={case.k} eps={case.epsilon}"
        if name in stored or not re.search(pattern, name):
            continue
        if case.data == "digits":
            X = setting.real_data(setting.Cell("real", 1797, 64, 10, name="digits"), 0)[0]
        else:
            X = status.rows_of(case, number_)[0]
        costs = free_costs(X, case.epsilon)
        free, one = float(np.median(costs)), setting.cost(X, X.mean(axis=0, keepdims=True))
        for seed in range(n_fits):
            model = DPKMeans(case.k, epsilon=case.epsilon, bounds=1.0, random_state=seed).fit(X)
            cost = setting.cost(X, model.cluster_centers_)
            above = float(np.mean(costs > LOSS * free))
            line = (name, seed, cost, free, above, one, model.status_)
            done.append(dict(zip(FREE_COLUMNS, line, strict=True)))
        write_lines(path, FREE_COLUMNS, done)
        print(name, flush=True)
    return done


def read_free(path):
    """Stored lines."""
    if path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            for line in csv.DictReader(file):
                numbers = {key: float(line[key]) for key in ("cost", "free", "free_above", "one")}
                yield {**line, **numbers}


def free_summary(lines):
    """Figures of each setting."""
    cells = {}
    for line in lines:
        cells.setdefault(line["cell"], []).append(line)
    for name, found in cells.items():
        ratio = np.array([line["cost"] / line["free"] for line in found])
        yield {
            "cell": name,
            "fits": len(found),
            "free": found[0]["free"] / found[0]["one"],
            "free_above": found[0]["free_above"],
            "median": float(np.median(ratio)),
            "above": float(np.mean(ratio > LOSS)),
            "worst": float(ratio.max()),
            "alone": float(np.mean([line["status"].startswith("one center") for line in found])),
        }


def free_page(entries):
    """How many settings are as asked for, and the lines of those that are not."""
    late = [entry for entry in entries if entry["median"] > 1.02]
    # One fit in twenty more than the free answer has itself: 3 in 20 are within its scatter.
    often = [entry for entry in entries if entry["above"] > max(0.05, entry["free_above"] + 0.1)]
    fits = sum(entry["fits"] for entry in entries)
    above = sum(entry["above"] * entry["fits"] for entry in entries) / max(fits, 1)
    free = sum(entry["free_above"] * entry["fits"] for entry in entries) / max(fits, 1)
    yield (
        f"Of {len(entries)} settings with {entries[0]['fits']} fits each, {len(late)} have a "
        f"median above 1.02 times the free answer. Of all fits {above:.1%} cost more than 1.05 "
        f"times its median; of free answers themselves {free:.1%} do. In {len(often)} settings "
        "more than one fit in twenty does, and a tenth more than of the free answers."
    )
    yield ""
    yield (
        "| setting | free, over the mean | free above 1.05 | median | above 1.05 | worst "
        "| called one center |"
    )
    yield "|---|---|---|---|---|---|---|"
    for entry in entries:
        if entry in late or entry in often or entry["cell"].startswith("digits"):
            yield (
                f"| {entry['cell']} | {entry['free']:.3f} | {entry['free_above']:.2f} "
                f"| {entry['median']:.3f} | {entry['above']:.2f} | {entry['worst']:.3f} "
                f"| {entry['alone']:.2f} |"
            )


# --- page and picture ----------------------------------------------------------------------------


def summary(done, names):
    """Figures of each cell, in this order: of both releases, and of their pairs."""
    for name in names:
        found = {
            release: {line["seed"]: line for (cell, _, of), line in done.items() if
                      cell == name and of == release}
            for release in (BEFORE, AFTER)
        }  # fmt: skip
        both = sorted(found[BEFORE].keys() & found[AFTER].keys())
        if not both:
            continue
        ratio, cpu, ok = (
            {
                release: np.array([of_line(lines[seed]) for seed in both])
                for release, lines in found.items()
            }
            for of_line in (
                lambda line: line["cost"] / line["best"],
                lambda line: line["cpu"],
                lambda line: line["status"] == "ok",
            )
        )
        one = np.median([found[AFTER][seed]["one"] / found[AFTER][seed]["best"] for seed in both])
        way = ratio[AFTER] - ratio[BEFORE]
        yield {
            "cell": name,
            "fits": len(both),
            "one": float(one),
            "ratio": ratio,
            "bad": {release: float(np.mean(ratio[release] > LOSS)) for release in ratio},
            "ok": {release: float(ok[release].mean()) for release in ok},
            "difference": float(way.mean()),
            "error": float(way.std(ddof=1) / math.sqrt(len(way))) if len(way) > 1 else math.nan,
            "cpu": float(np.median(cpu[AFTER] / cpu[BEFORE])),
        }


def number(value):
    """Four decimals, or as many figures.

    >>> number(1.00123), number(384.256)
    ('1.0012', '384.3')
    """
    return f"{value:.4f}" if abs(value) < 10 else f"{value:.4g}"


def spread(ratio):
    """Median and quartiles in words."""
    low, median, high = np.quantile(ratio, [0.25, 0.5, 0.75])
    return f"{number(median)} [{number(low)} {number(high)}]"


HEADER = (
    "| cell | fits | one | before: median [quartiles] | above 1.05 | \"ok\" "
    "| after: median [quartiles] | above 1.05 | \"ok\" | difference | CPU ratio |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|"
)  # fmt: skip


def in_table(entry):
    """A line of the table."""
    cells = [entry["cell"], str(entry["fits"]), f"{entry['one']:.3g}"]
    for release in (BEFORE, AFTER):
        cells += [
            spread(entry["ratio"][release]),
            f"{entry['bad'][release]:.3g}",
            f"{entry['ok'][release]:.3g}",
        ]
    cells += [f"{entry['difference']:+.2g} ± {entry['error']:.1g}", f"{entry['cpu']:.2f}"]
    return "| " + " | ".join(cells) + " |"


def page(entries, free, command):
    return "\n".join(
        [
            "# The k-means engine, before and after",
            "",
            "Cost over the best known one; paired fits.",
            "",
            f"```text\n{__doc__.strip()}\n```",
            "",
            setting.stamp(command),
            "",
            "![loss of each cell, before and after](engine.png)",
            "",
            HEADER,
            *map(in_table, entries),
            "",
            "## Never worse than one center",
            "",
            "`python benchmarks/engine.py --free`",
            "",
            *(free_page(free) if free else ["Not measured."]),
            "",
        ]
    )


SMALLEST = 1e-5


def picture(entries, path):
    """Median loss of each cell, before and after, and from which quartile to which."""
    figure, axis = new((10, 0.24 * len(entries) + 1.6))
    for at, entry in enumerate(entries):
        for release, shift, color in ((BEFORE, -0.14, MUTED), (AFTER, 0.14, COLORS[0])):
            low, median, high = np.maximum(
                np.quantile(entry["ratio"][release], [0.25, 0.5, 0.75]) - 1, SMALLEST
            )
            label = f"{release}: median and quartiles" if at == 0 else None
            axis.plot([low, high], [at + shift] * 2, color=color, lw=2)
            axis.plot([median], [at + shift], "o", color=color, ms=4.5, label=label)
    axis.axvline(LOSS - 1, color=MUTED, lw=0.8, ls=":")
    axis.set(
        xscale="log",
        xlabel="cost above that without privacy, in relation to it",
        ylim=(len(entries) - 0.4, -0.6),
    )
    plain_ticks(axis.yaxis, range(len(entries)), [entry["cell"] for entry in entries])
    plain_ticks(
        axis.xaxis,
        [1e-5, 1e-4, 1e-3, 0.01, 0.05, 0.1, 1, 10, 100, 1000],
        ["≤ 0.001%", "0.01%", "0.1%", "1%", "5%", "10%", "100%", "10 times", "100 times",
         "1,000 times"],
    )  # fmt: skip
    axis.tick_params(axis="x", labelsize=7, rotation=30)
    axis.tick_params(axis="y", length=0, labelsize=8)
    axis.grid(axis="x")
    figure.legend(loc="outside upper center", ncols=2)
    save(figure, path, dpi=100)


def in_words(arguments, hidden):
    """The command of the page, without names of folders.

    >>> in_words(["--before", "/a/b", "--fits", "3"], {"/a/b": "FOLDER"})
    'python benchmarks/engine.py --before FOLDER --fits 3'
    """
    return shlex.join(["python", "benchmarks/engine.py", *(hidden.get(a, a) for a in arguments)])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--before", type=Path, help="checkout of an older release")
    parser.add_argument("--data", help="folder of .npz files")
    parser.add_argument("--fits", type=int, default=FITS)
    parser.add_argument("--cells", default="", help="only cells whose name has this pattern")
    parser.add_argument("--again", action="store_true", help="fits of this release anew")
    parser.add_argument("--free", action="store_true", help="beside one center, which is free")
    parser.add_argument(
        "--plot", "--report", action="store_true", dest="report", help="no fits: page and picture"
    )
    parser.add_argument("--output", type=Path, default=OUTPUT, help="path without a suffix")
    options = parser.parse_args()
    if options.data:
        os.environ["SKLEARN_DP_DATA"] = options.data
    path = options.output.with_suffix(".csv")
    free_path = options.output.with_name(options.output.name + "_free.csv")
    if options.free:
        warnings.simplefilter("ignore")  # few rows, seeds: on purpose
        if options.again:
            write_lines(free_path, FREE_COLUMNS, [])
        measure_free(options.cells, min(options.fits, FREE_FITS), free_path)
    if options.report or options.free:
        done = read(path)
    else:
        releases = {AFTER: _run.PAGES.parents[1]}
        if options.before:
            releases = {BEFORE: options.before, **releases}
        cells = [cell for cell in all_cells() if re.search(options.cells, cell.name)]
        print(HEADER)
        done = run(cells, releases, path, options.fits, AFTER if options.again else None)
    order = dict.fromkeys([*(cell.name for cell in all_cells()), *(key[0] for key in done)])
    entries = list(summary(done, order))
    folders = {str(options.before): "FOLDER", options.data: "FILES"}
    command = in_words(sys.argv[1:], folders)
    if options.report or options.cells or options.again or options.free:
        command = "python benchmarks/engine.py --before FOLDER --data FILES"
    options.output.with_suffix(".md").write_text(
        page(entries, list(free_summary(read_free(free_path))), command), encoding="utf-8"
    )
    if entries:
        picture(entries, options.output.with_suffix(".png"))


if __name__ == "__main__":
    main()
