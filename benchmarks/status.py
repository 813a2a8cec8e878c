"""Does `status_` tell the truth? 200 settings: what useless and good answers were called.

    python benchmarks/status.py                # 10 fits of each setting; about ten minutes
    python benchmarks/status.py --fits 3

Prints a summary and writes doc/benchmarks/status.md and .csv. A setting is a number of rows, of
features and of clusters, an epsilon, and easy or hard data: easy data are round clusters far
apart; hard ones are, in turn, clusters that overlap, clusters of very different sizes with long
tails, and no clusters at all. "ratio" is the cost over the lowest cost that k-means finds from
the true centers and two starts of its own. An answer is useless where the ratio is above 1.5 and
its cost above half of that of one center; it is good where the ratio is at most 1.1. Where there
are no clusters to find, one center may be within that too: such answers are counted on their own.
"""

import argparse
import csv
import itertools
import warnings
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

import _run  # first: one thread
import kmeans as setting  # the benchmark beside this file
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

from sklearn_dp import DPKMeans

OUTPUT = _run.PAGES / "status"
ROWS, FEATURES, EPSILONS = (300, 1000, 3000, 10_000, 30_000), (2, 10, 50, 200), (0.1, 0.3, 1, 3, 10)
CLUSTERS = (3, 10)
HARD = ("overlapping", "unbalanced", "none")


@dataclass(frozen=True)
class Setting:
    """Data and budget of some fits."""

    n: int
    d: int
    k: int
    epsilon: float
    data: str


def settings():
    """200 of them; the numbers of clusters and the kinds of hard data take turns."""
    for i, (n, d, epsilon) in enumerate(itertools.product(ROWS, FEATURES, EPSILONS)):
        k = CLUSTERS[i % 2]
        yield Setting(n, d, k, epsilon, "separated")
        yield Setting(n, d, CLUSTERS[(i + 1) % 2], epsilon, HARD[i % 3])


MANY = [
    *(
        Setting(20_000, d, 64, epsilon, "blobs")
        for d, epsilon in itertools.product((16, 64, 128), (0.25, 0.5, 1, 2))
    ),
    *(Setting(50_000, 384, 100, epsilon, "unit rows") for epsilon in (0.5, 1)),
]


def rows_of(case, seed):
    """Rows in the unit ball, and centers to start k-means from."""
    rng = np.random.default_rng(seed)
    if case.data == "blobs":
        X, labels = make_blobs(case.n, case.d, centers=case.k, random_state=seed)
        X = setting.into_ball(X)
        return X, np.array([X[labels == j].mean(axis=0) for j in range(case.k)])
    if case.data == "unit rows":
        labels, centers = rng.integers(case.k, size=case.n), rng.normal(size=(case.k, case.d))
        centers *= 0.7 / np.linalg.norm(centers, axis=1, keepdims=True)
        X = centers[labels] + rng.normal(size=(case.n, case.d)) * np.sqrt(0.51 / case.d)
        return X / np.linalg.norm(X, axis=1, keepdims=True), centers
    centers = setting.in_ball(rng, case.k, case.d) * 0.8
    labels = rng.integers(0, case.k, case.n)
    if case.data == "none":
        return setting.into_ball(setting.in_ball(rng, case.n, case.d)), centers
    gap = setting.smallest_gap(centers)
    width = gap / 10 if case.d <= 10 else gap / (2 * np.sqrt(case.d) + 6)
    if case.data == "overlapping":
        width *= 2.5
    noise = rng.normal(size=(case.n, case.d))
    if case.data == "unbalanced":
        labels = rng.choice(
            case.k, case.n, p=0.5 ** np.arange(case.k) / sum(0.5 ** np.arange(case.k))
        )
        noise *= np.exp(rng.normal(size=(case.n, 1)) / 2)
    return setting.into_ball(centers[labels] + width * noise), centers


def fits(case, n_fits, number):
    """One line for each fit: what it was and what it called itself."""
    X, centers = rows_of(case, number)
    best = KMeans(case.k, init=centers, n_init=1).fit(X).inertia_
    if case not in MANY:  # where a start of its own finds nothing better
        best = min(best, KMeans(case.k, n_init=2, random_state=0).fit(X).inertia_)
    alone = setting.cost(X, X.mean(axis=0)[None])
    for seed in range(n_fits):
        model = DPKMeans(case.k, epsilon=case.epsilon, bounds=1.0, random_state=seed).fit(X)
        cost = setting.cost(X, model.cluster_centers_)
        yield {
            **asdict(case),
            "seed": seed,
            "ratio": cost / best,
            "of_one": cost / alone,
            "explained": model.explained_,
            "explained_sd": model.explained_std_error_,
            "status": model.status_,
            "trustworthy": model.trustworthy_,
            "code": model.messages_[0].code if model.messages_ else "none",
        }


def useless(line):
    return line["ratio"] > 1.5 and line["of_one"] > 0.5


def good(line):
    return line["ratio"] <= 1.1


def trusted(line):
    """Whether all numbers could be used: the fit called itself trustworthy."""
    return line["trustworthy"]


def rate(lines, wrong):
    """How many of some lines are wrong, in words."""
    count = sum(map(wrong, lines))
    return f"{count} of {len(lines)} ({100 * count / max(len(lines), 1):.1f}%)"


def summary(lines):
    """The two rates, and what was said how often."""
    bad, fine = [line for line in lines if useless(line)], [line for line in lines if good(line)]
    rest = [line for line in lines if not useless(line) and not good(line)]
    yield f"* useless answers called trustworthy: {rate(bad, trusted)}"
    for words, part in (
        ("at least 5% better than one center", [x for x in fine if x["of_one"] <= 0.95]),
        ("no better than that", [x for x in fine if x["of_one"] > 0.95]),
    ):
        yield (
            f"* good answers, {words}, called anything else: "
            f"{rate(part, lambda line: not trusted(line))}"
        )
    yield f'* of the others, called "ok": {rate(rest, lambda line: line["status"] == "ok")};'
    yield f"  trustworthy: {rate(rest, trusted)}"
    yield ""
    yield "| first message | useless | between | good |"
    yield "|---|---|---|---|"
    counts = [Counter(line["code"] for line in part) for part in (bad, rest, fine)]
    for words in sorted(set().union(*counts), key=lambda words: -sum(c[words] for c in counts)):
        yield f"| {words} | " + " | ".join(str(c[words]) for c in counts) + " |"


def many(n_fits):
    """A line for each setting of many clusters."""
    yield "| rows | n | d | k | epsilon | cost, median | above 1.5 | of these ok | good, not ok |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for number, case in enumerate(MANY):
        lines = [line for seed in range(n_fits) for line in fits(case, 1, 1000 * number + seed)]
        bad = [line for line in lines if line["ratio"] > 1.5]
        fine = [line for line in lines if good(line)]
        called = sum(map(trusted, bad))
        alarms = sum(not trusted(line) for line in fine)
        yield (
            f"| {case.data} | {case.n} | {case.d} | {case.k} | {case.epsilon} | "
            f"{np.median([line['ratio'] for line in lines]):.2f} | {len(bad)} of {len(lines)} | "
            f"{called} | {alarms} of {len(fine)} |"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--fits", type=int, default=10)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = [
        line for number, case in enumerate(settings()) for line in fits(case, options.fits, number)
    ]
    page = [
        "# How often is the status right?",
        "",
        "Fits of `DPKMeans` on 200 settings: rows, features, clusters, epsilon, easy and hard "
        "data. Useless: cost above 1.5 times the best known and above half of that of one "
        "center. Good: at most 1.1 times the best known.",
        "",
        setting.stamp(f"python benchmarks/status.py --fits {options.fits}"),
        "",
        *summary(lines),
        "",
        "## Many clusters",
        "",
        "Blobs of scikit-learn's `make_blobs`, and rows of length one about random centers; new "
        "rows in each fit. Cost over that of KMeans from the true centers.",
        "",
        *many(options.fits),
    ]
    text = "\n".join(page) + "\n"
    print(text)
    options.output.with_suffix(".md").write_text(text, encoding="utf-8")
    with options.output.with_suffix(".csv").open("w", newline="") as file:
        table = csv.DictWriter(file, lines[0], lineterminator="\n")
        table.writeheader()
        table.writerows(
            {
                name: f"{value:.4g}" if isinstance(value, float) else value
                for name, value in line.items()
            }
            for line in lines
        )


if __name__ == "__main__":
    main()
