"""What federated fits are to reach, and whether they do: one table, of ours alone.

    python benchmarks/federated.py --targets --data DIRECTORY      # adds what the csv lacks
    python benchmarks/federated.py --targets --plot                # the table of what it holds
    python benchmarks/federated.py --targets --parts "next;few" --seeds 2

Adds lines to doc/benchmarks/federated_targets.csv. "free" is the cost of k-means of the server's
points, the median of five runs of 100 starts each; without server data, that of the exact mean,
which is not private. A fit is "useless" where its cost is above 1.5 times the optimum and above
half of that of the mean.
"""

import csv
import math
import os
import time
from dataclasses import dataclass
from pathlib import Path

import federated as setting  # the benchmark beside this file, which calls this one
import numpy as np
from _federated_baselines import optimal_centers

from sklearn_dp import FederatedDPKMeans
from sklearn_dp.federated._state import server_lloyds

FIELDS = ["part", "epsilon", "seed", "excess", "optimum", "free", "one", "ok", "seconds"]


@dataclass(frozen=True)
class Case:
    """A data set, and how it is fitted.

    Attributes
    ----------
    X, server : ndarray
    clients : ndarray or None
        None: rows are the unit.
    k : int
    bounds : object
    best : ndarray
        Centers of (nearly) the lowest cost.
    """

    X: np.ndarray
    server: np.ndarray | None
    clients: np.ndarray | None
    k: int
    bounds: object
    best: np.ndarray


def mixture(n_clients, rows, per_client, seed):
    X, clients, means, server = setting.mixture(seed, n_clients, rows)
    best = optimal_centers(X, 10, start=means)
    return Case(X, server, clients if per_client else None, 10, None, best)


def few(kind, n_clients, seed):
    X, clients, server = setting.few_clients(kind, seed)
    if n_clients != 100:
        clients = np.random.default_rng([seed, n_clients]).integers(n_clients, size=len(X))
    return Case(X, server, clients, 8, 3.0, optimal_centers(X, 8, n_init=3))


def next_to_nothing(kind, n_clients, seed):
    """12 features, 4 clusters, 3,000 rows; 32 public points, spoiled in one way or another."""
    rng = np.random.default_rng([seed, 12])
    means = rng.uniform(-1, 1, size=(4, 12))
    X = means[rng.integers(4, size=3000)] + 0.15 * rng.normal(size=(3000, 12))
    server = np.repeat(means, 8, axis=0) + 0.15 * rng.normal(size=(32, 12))
    if kind == "outliers":
        server = np.vstack([server, rng.uniform(-1, 1, size=(10, 12))])
    elif kind == "shifted":
        away = rng.normal(size=12)
        server = server + 0.5 * away / np.linalg.norm(away)
    clients = rng.integers(n_clients, size=3000)
    return Case(X, server, clients, 4, 3.0, optimal_centers(X, 4, n_init=3))


def real(name, unit, with_server, seed):
    """One row in fifty is public, and belongs to no client."""
    path = Path(os.environ.get("SKLEARN_DP_DATA", ".")) / f"{name}.npz"
    with np.load(path, allow_pickle=False) as data:
        low, high = data["bounds_lo"], data["bounds_hi"]
        X = np.clip((data["X"] - low) / np.where(high > low, high - low, 1.0), 0, 1)
        groups = data["groups"]
    public = np.random.default_rng(seed).random(len(X)) < 0.02
    rows, groups = X[~public], None if unit == "rows" else groups[~public]
    best = optimal_centers(rows, 10, n_init=3)
    return Case(rows, X[public] if with_server else None, groups, 10, (0.0, 1.0), best)


@dataclass(frozen=True)
class Cell:
    """Fits of one kind, and what they are to reach.

    Attributes
    ----------
    make : callable
        From a seed to a `Case`.
    epsilons : tuple of float
    targets : tuple of str
        For each epsilon "excess .19" or "ratio 1.05" of the median; or nothing.
    seeds : int
    """

    make: object
    epsilons: tuple
    targets: tuple
    seeds: int = 10


def excess(*values):
    return tuple(f"excess {value:g}" for value in values)


FOUR = (0.1, 0.2, 0.4, 1.0)
CELLS = {
    "rows, 100 clients": Cell(
        lambda seed: mixture(100, 1000, False, seed), FOUR, excess(0.19, 0.045, 0.0125, 0.0035), 6
    ),
    "1000 clients": Cell(
        lambda seed: mixture(1000, 50, True, seed), FOUR, excess(3.6, 3.0, 2.1, 0.68), 6
    ),
    "2000 clients": Cell(
        lambda seed: mixture(2000, 50, True, seed), FOUR, excess(2.91, 2.26, 1.01, 0.125), 4
    ),
    "5000 clients": Cell(
        lambda seed: mixture(5000, 50, True, seed), FOUR, excess(1.5, 0.55, 0.11, 0.018), 3
    ),
}
_RATIOS = {
    "true rows": "1.05",
    "outliers": "1.30",
    "two components missing": "3.13",
    "shifted": "1.64",
    "clients of few components": "1.046",
    "no server data": "7.3",
}
for _kind in setting.FEW:
    CELLS[f"few: {_kind}"] = Cell(
        lambda seed, kind=_kind: few(kind, 100, seed),
        (0.1, 0.4, 1.0, 4.0),
        ("", "", f"ratio {_RATIOS[_kind]}", "ratio 2.89" if _kind == "no server data" else ""),
    )
CELLS["few: two components missing, 2000 clients"] = Cell(
    lambda seed: few("two components missing", 2000, seed), (1.0,), ("ratio 2.85",), 4
)
for _kind in ("true rows", "outliers", "shifted"):
    for _number in (5, 30):
        CELLS[f"next to no budget: {_kind}, {_number} clients"] = Cell(
            lambda seed, kind=_kind, number=_number: next_to_nothing(kind, number, seed),
            (0.01, 0.1, 0.5),
            ("", "", ""),
        )
CELLS |= {
    "wisdm, 36 persons": Cell(
        lambda seed: real("wisdm_har", "persons", True, seed),
        (0.4, 1.0, 4.0),
        ("ratio 1.202", "ratio 1.189", "ratio 1.175"),
    ),
    "wisdm, rows": Cell(
        lambda seed: real("wisdm_har", "rows", True, seed),
        (0.4, 1.0),
        ("ratio 1.108", "ratio 1.081"),
    ),
    "wisdm, 36 persons, no server data": Cell(
        lambda seed: real("wisdm_har", "persons", False, seed),
        (1.0, 4.0),
        ("ratio 31.1", "ratio 3.68"),
    ),
    "acs, 20 states": Cell(
        lambda seed: real("acs_20states", "states", True, seed), (1.0,), ("ratio 1.006",), 4
    ),
}


def measured(part, cell, seed, done):
    """A line of the csv for each budget that it lacks."""
    missing = [epsilon for epsilon in cell.epsilons if (part, epsilon, seed) not in done]
    if not missing:
        return
    case = cell.make(seed)
    X, optimum = case.X, setting.cost(case.X, case.best)
    one = setting.cost(X, X.mean(axis=0, keepdims=True))
    free = one
    if case.server is not None:
        rngs = [np.random.default_rng([seed, i]) for i in range(5)]
        free = np.median([setting.cost(X, server_lloyds(case.server, case.k, rng)) for rng in rngs])
    for epsilon in missing:
        start = time.process_time()
        model = FederatedDPKMeans(
            case.k, epsilon=epsilon, delta=setting.DELTA, bounds=case.bounds, random_state=seed
        ).fit(X, groups=case.clients, X_server=case.server)
        took = time.process_time() - start
        above = setting.cost(X, model.cluster_centers_) - optimum
        yield part, epsilon, seed, above, optimum, float(free), one, model.status_ == "ok", took


def table(lines):
    """A row for each set-up and budget, and what all the fits together come to."""
    cells = {}
    for part, epsilon, _, *values in lines:
        ok = str(values[4]) == "True"
        cells.setdefault((part, float(epsilon)), []).append([*map(float, values[:4]), ok])
    yield (
        "| set-up | epsilon | fits | excess | ratio to the optimum | target | met | "
        "over free: median, largest | above 1.02 | above 1.05 | ok | ok, though bad |"
    )
    yield "|" + "---|" * 12
    total = np.zeros(5, dtype=int)
    for part, cell in CELLS.items():
        for epsilon, target in zip(cell.epsilons, cell.targets, strict=True):
            if (part, epsilon) not in cells:
                continue
            found = np.array(cells[part, epsilon], dtype=float)
            above, best, free, one, ok = found.T
            cost, ratio = above + best, (above + best) / best
            served = "no server" not in part
            over = cost / free
            useless = (ratio > 1.5) & (cost > one / 2)
            bad = (ok > 0) & (useless | (served & (over > 1.05)))
            reached = {"excess": np.median(above), "ratio": np.median(ratio)}
            word, _, number = target.partition(" ")
            met = "" if not target else "yes" if reached[word] <= float(number) else "no"
            counts = [(over > 1.02).sum(), (over > 1.05).sum()]
            if served:
                total += [len(found), *counts, 0, 0]
            total += [0, 0, 0, int(ok.sum()), int(bad.sum())]
            yield (
                f"| {part} | {epsilon:g} | {len(found)} | "
                f"{np.median(above):.3g} [{above.min():.3g}, {above.max():.3g}] | "
                f"{np.median(ratio):.4g} | {target} | {met} | "
                + (f"{np.median(over):.3f}, {over.max():.3f} | " if served else "| ")
                + (f"{counts[0]} | {counts[1]} | " if served else "| | ")
                + f"{int(ok.sum())} | {int(bad.sum())} |"
            )
    yield ""
    yield (
        f"Of {total[0]} fits with server data {total[1]} are above 1.02 and {total[2]} above 1.05 "
        f'of the server alone; of {total[3]} that are called "ok", with or without a server, '
        f"{total[4]} are bad."
    )


def main(options):
    """Measure what the csv lacks, and print the table."""
    path = setting.OUTPUT.with_name("federated_targets.csv")
    if options.output != setting.OUTPUT:
        path = options.output.with_suffix(".csv")
    if options.data:
        os.environ["SKLEARN_DP_DATA"] = options.data
    lines = []
    if path.exists():
        with path.open() as source:
            lines = list(csv.reader(source))[1:]
    done = {(part, float(epsilon), int(seed)) for part, epsilon, seed, *_ in lines}
    wanted = [word for word in options.parts.split(";") if word] or [""]
    with path.open("a", newline="") as target:
        writer = csv.writer(target)
        if not lines:
            writer.writerow(FIELDS)
        for part, cell in {} if options.plot else CELLS.items():
            if not any(part.startswith(word) for word in wanted):
                continue
            for seed in range(min(cell.seeds, options.seeds or math.inf)):
                for line in measured(part, cell, seed, done):
                    lines.append(line)
                    writer.writerow([f"{x:.6g}" if type(x) is float else x for x in line])
                    target.flush()
    print("\n".join(table(lines)))
