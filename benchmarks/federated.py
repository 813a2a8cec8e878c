"""Federated private k-means on the set-up of its paper, and on real federated data.

    python benchmarks/federated.py                      # all of it; some hours
    python benchmarks/federated.py --seeds 2 --quick    # ours alone, epsilon 1
    python benchmarks/federated.py --parts rows,few,real --data DIRECTORY
    python benchmarks/federated.py --plot               # tables and plot of what the csv holds
    python benchmarks/federated.py --targets            # ours against targets: federated_targets.py

Adds lines to doc/benchmarks/federated.csv (``--output`` for another place); what it holds already
is left out, so an interrupted run can go on. `DIRECTORY` (or the environment variable
SKLEARN_DP_DATA) holds acs_20states.npz and wisdm_har.npz; without it that part is left out.

The mixture: 10 means uniform on [0, 1]^100, covariance I / 2; 100 clients of 1000 rows for rows as
the unit, 1000, 2000 or 5000 clients of 50 rows for clients; the server has 20 fresh points of each
component and 100 uniform ones. "excess" is the mean squared distance to the nearest center minus
that of k-means started at the true means. delta = 1e-6; each seed is a new data set and new noise.

  ours               FederatedDPKMeans, its defaults
  paper, PLD         the paper's split, Laplace counts and points about the origin, with the budget
                     that an exact composition (dp-accounting) allows
  paper, basic       the same with epsilons that are added up, delta / 2 for each Gaussian step
  kmeans++, lloyd, sphere_packing   the server's start, and 5 private Lloyd rounds
  server alone       k-means on the server's points: no round, no budget
  k-FED              not private

The part "few" has 100 clients who hold 20,000 rows of 8 separated components in 20 dimensions,
which is too few for clients as the unit at epsilon 1: what counts is to be no worse than the
server alone.

"; T = 2" after a method is another number of Lloyd rounds; the part "rounds" compares them.
"""

import argparse
import csv
import math
import os
import sys
import time
import warnings
from functools import lru_cache
from pathlib import Path

import _run  # first: one thread
import numpy as np
from _federated_baselines import k_fed, optimal_centers
from _style import COLORS, INK, MARKERS, legend_on_top, new, plain_ticks, save
from sklearn.metrics import pairwise_distances_argmin_min

from sklearn_dp import DPKMeans, FederatedDPKMeans
from sklearn_dp._costs import accounting
from sklearn_dp._published.feddp_kmeans import PAPER_SPLIT, step_cost
from sklearn_dp.federated import FederatedOptions
from sklearn_dp.federated._state import server_lloyds

DELTA = 1e-6
LAPLACE = FederatedOptions(count_noise="laplace")
EPSILONS = (0.1, 0.2, 0.4, 1.0)
OUTPUT = _run.PAGES / "federated"
FIELDS = ("part", "method", "epsilon", "seed", "excess", "optimum", "seconds")


def mixture(seed, n_clients, rows):
    """The paper's synthetic data: rows, their clients, the true means, the server's points."""
    rng = np.random.default_rng(seed)
    means = rng.uniform(size=(10, 100))
    X = means[rng.integers(10, size=n_clients * rows)]
    X = X + math.sqrt(0.5) * rng.normal(size=X.shape)
    server = np.repeat(means, 20, axis=0) + math.sqrt(0.5) * rng.normal(size=(200, 100))
    server = np.vstack([server, rng.uniform(size=(100, 100))])
    return X, np.repeat(np.arange(n_clients), rows), means, server


def cost(X, centers):
    return float(np.square(pairwise_distances_argmin_min(X, centers)[1]).mean())


# --- budgets of the paper's method ---------------------------------------------------------------


def steps_of(epsilon, unit):
    names = list(PAPER_SPLIT[unit])[:4]
    return {name: epsilon * PAPER_SPLIT[unit][name] for name in names}


def pld_total(steps, delta):
    """Epsilon of Gaussian steps of (epsilon_i, delta) and Laplace steps, composed exactly."""
    import dp_accounting as dp
    from dp_accounting import pld

    events = [
        dp.LaplaceDpEvent(1 / epsilon)
        if name in ("weights", "lift counts", "client presence")
        else dp.GaussianDpEvent(accounting.gaussian_sigma(epsilon, delta))
        for name, epsilon in steps.items()
    ]
    accountant = pld.PLDAccountant(value_discretization_interval=1e-3)
    return accountant.compose(dp.ComposedDpEvent(events)).get_epsilon(delta)


@lru_cache(maxsize=64)
def paper_rho(epsilon, unit, exact):
    """What to ask of ``method="paper"`` so that its noise is that of the paper at epsilon."""
    delta, scaled = DELTA / 2, epsilon
    if exact:
        delta, low, high = DELTA, epsilon / 2, 3 * epsilon
        for _ in range(12):
            scaled = (low + high) / 2
            fits = pld_total(steps_of(scaled, unit), DELTA) <= epsilon
            low, high = (scaled, high) if fits else (low, scaled)
        scaled = low
    return math.fsum(
        step_cost(
            "laplace" if name in ("weights", "lift counts", "client presence") else "gaussian",
            step,
            delta,
        )
        for name, step in steps_of(scaled, unit).items()
    )


def model(method, epsilon, seed, server, unit="row"):
    if method.startswith("paper"):
        return FederatedDPKMeans(
            10,
            rho=paper_rho(epsilon, unit, "PLD" in method),
            delta=DELTA,
            bounds=float(np.linalg.norm(server, axis=1).max()),
            method="paper",
            options=LAPLACE,
            random_state=seed,
        )
    method, _, rounds = method.partition("; T = ")
    options = {} if method == "ours" else {"method": method, "n_lloyd": 5}
    if rounds:
        options["n_lloyd"] = int(rounds)
    return FederatedDPKMeans(10, epsilon=epsilon, delta=DELTA, random_state=seed, **options)


# --- parts ---------------------------------------------------------------------------------------


def rows_part(options):
    """Rows as the unit: 100 clients of 1000 rows."""
    yield from mixture_part("rows", 100, 1000, "row", options)


def clients_part(options):
    """Clients as the unit: 50 rows each."""
    for n_clients in options.clients:
        yield from mixture_part(f"{n_clients} clients", n_clients, 50, "group", options)


def rounds_part(options):
    """Rows as the unit: other numbers of Lloyd rounds."""
    turns = {
        "ours": (1, 2),
        "lloyd": (1, 2, 3, 10),
        "kmeans++": (1, 2, 3, 10),
        "sphere_packing": (1, 2, 3, 10),
    }
    methods = [f"{method}; T = {t}" for method in turns for t in turns[method]]
    yield from mixture_part(
        "Lloyd rounds",
        100,
        1000,
        "row",
        argparse.Namespace(**{**vars(options), "methods": methods}),
    )


WITHOUT_NOISE = {
    "k-FED": lambda clients, server, rng: k_fed(clients, 10, rng),
    "server alone": lambda clients, server, rng: server_lloyds(server, 10, rng),
}


def mixture_part(part, n_clients, rows, unit, options):
    for seed in options.seeds:
        cells = [
            (part, method, epsilon, seed)
            for method in options.methods
            for epsilon in ((math.inf,) if method in WITHOUT_NOISE else options.epsilons)
        ]
        cells = [cell for cell in cells if not options.done(*cell)]
        if not cells:
            continue
        X, clients, means, server = mixture(seed, n_clients, rows)
        best = cost(X, optimal_centers(X, 10, start=means))
        for _, method, epsilon, _ in cells:
            start = time.process_time()
            if method in WITHOUT_NOISE:
                centers = WITHOUT_NOISE[method](
                    np.split(X, n_clients), server, np.random.default_rng(seed)
                )
            else:
                fitted = model(method, epsilon, seed, server, unit)
                centers = fitted.fit(
                    X, groups=None if unit == "row" else clients, X_server=server
                ).cluster_centers_
            took = time.process_time() - start
            yield part, method, epsilon, seed, cost(X, centers) - best, best, took


def real_part(options):
    """Real clients; the server has one row in fifty, which are then nobody's."""
    directory = options.data or os.environ.get("SKLEARN_DP_DATA")
    for name in ("acs_20states", "wisdm_har"):
        path = Path(directory or ".") / f"{name}.npz"
        if not path.exists():
            print(f"{name}: not there, left out", file=sys.stderr)
            continue
        for seed in options.seeds:
            epsilons = (1.0,) if options.quick else (0.4, 1.0, 4.0)
            cells = [
                (label, epsilon)
                for epsilon in epsilons
                for label in REAL
                if not options.done(name, label, epsilon, seed)
            ]
            if not cells:
                continue
            with np.load(path, allow_pickle=False) as data:
                low, high = data["bounds_lo"], data["bounds_hi"]
                X = np.clip((data["X"] - low) / np.where(high > low, high - low, 1.0), 0, 1)
                groups = data["groups"]
            public = np.random.default_rng(seed).random(len(X)) < 0.02
            server, X, groups = X[public], X[~public], groups[~public]
            best = cost(X, optimal_centers(X, 10, n_init=5))
            for label, epsilon in cells:
                start = time.process_time()
                centers = REAL[label](
                    X,
                    groups,
                    server,
                    bounds=(0.0, 1.0),
                    epsilon=epsilon,
                    delta=DELTA,
                    random_state=seed,
                ).cluster_centers_
                took = time.process_time() - start
                yield name, label, epsilon, seed, cost(X, centers) - best, best, took


REAL = {
    "rows": lambda X, groups, server, **common: FederatedDPKMeans(10, **common).fit(
        X, X_server=server
    ),
    "rows, no server data": lambda X, groups, server, **common: FederatedDPKMeans(10, **common).fit(
        X
    ),
    "persons or states": lambda X, groups, server, **common: FederatedDPKMeans(10, **common).fit(
        X, groups=groups, X_server=server
    ),
    "server's start": lambda X, groups, server, **common: FederatedDPKMeans(
        10, method="lloyd", n_lloyd=1, **common
    ).fit(X, X_server=server),
    "pooled rows (DPKMeans)": lambda X, groups, server, **common: DPKMeans(10, **common).fit(X),
}

# --- few clients: a fit must not be worse than what costs nothing ---------------------------------


def few_clients(kind, seed):
    """Rows, their clients, and 20 public rows of each component, spoiled in one way or another."""
    rng = np.random.default_rng([seed, 20])
    means = max((rng.uniform(-1, 1, size=(8, 20)) for _ in range(200)), key=smallest_gap)
    spread = smallest_gap(means) / (2 * math.sqrt(20) + 6)
    labels = rng.integers(8, size=20_000)
    X = means[labels] + spread * rng.normal(size=(20_000, 20))
    server = np.repeat(means, 20, axis=0) + spread * rng.normal(size=(160, 20))
    clients = rng.integers(100, size=20_000)
    if kind == "outliers":
        server = np.vstack([server, rng.uniform(-1, 1, size=(100, 20))])
    elif kind == "two components missing":
        server = server[40:]
    elif kind == "shifted":
        away = rng.normal(size=20)
        server = server + 0.3 * math.sqrt(20 / 3) * away / np.linalg.norm(away)
    elif kind == "clients of few components":
        clients = (labels * 100 // 8 + rng.integers(20, size=20_000)) % 100
    return X, clients, None if kind == "no server data" else server


def smallest_gap(means):
    gaps = np.linalg.norm(means[:, None] - means, axis=2)
    return gaps[np.triu_indices(len(means), 1)].min()


FEW = (
    "true rows",
    "outliers",
    "two components missing",
    "shifted",
    "clients of few components",
    "no server data",
)


def few_part(options):
    """Few clients as the unit: ours, and the server alone (or the exact mean, without one)."""
    for kind in FEW:
        part = f"100 clients, {kind}"
        for seed in options.seeds:
            X, clients, server = few_clients(kind, seed)
            best = cost(X, optimal_centers(X, 8))
            free = (
                X.mean(axis=0, keepdims=True)
                if server is None
                else server_lloyds(server, 8, np.random.default_rng(seed))
            )
            if not options.done(part, "server alone", math.inf, seed):
                yield part, "server alone", math.inf, seed, cost(X, free) - best, best, 0.0
            for epsilon in options.epsilons:
                if options.done(part, "ours", epsilon, seed):
                    continue
                start = time.process_time()
                fitted = FederatedDPKMeans(
                    8, epsilon=epsilon, delta=DELTA, bounds=3.0, random_state=seed
                )
                centers = fitted.fit(X, groups=clients, X_server=server).cluster_centers_
                took = time.process_time() - start
                yield part, "ours", epsilon, seed, cost(X, centers) - best, best, took


PARTS = {
    "rows": rows_part,
    "clients": clients_part,
    "few": few_part,
    "rounds": rounds_part,
    "real": real_part,
}


# --- output --------------------------------------------------------------------------------------


def table(lines):
    """Median [smallest, largest] excess of each part, method and epsilon."""
    groups = {}
    for line in lines:
        groups.setdefault((line[0], line[1]), {}).setdefault(float(line[2]), []).append(
            float(line[4])
        )
    for part in dict.fromkeys(part for part, _ in groups):
        epsilons = sorted(
            {
                e
                for key, values in groups.items()
                if key[0] == part
                for e in values
                if math.isfinite(e)
            }
        )
        yield ""
        yield f"| {part} | " + " | ".join(f"{e:g}" for e in epsilons) + " |"
        yield "|" + "---|" * (len(epsilons) + 1)
        for (where, method), values in groups.items():
            if where != part:
                continue
            cells = [values.get(e, values.get(math.inf)) for e in epsilons]
            yield (
                f"| {method} | "
                + " | ".join(
                    ""
                    if cell is None
                    else f"{np.median(cell):.3g} [{min(cell):.3g}, {max(cell):.3g}]"
                    for cell in cells
                )
                + " |"
            )


STYLES = [
    {"color": COLORS[i % len(COLORS)], "marker": MARKERS[i % len(MARKERS)], "ms": 4}
    for i in range(9)
]


def plot(lines, path):
    """Cost over epsilon, as in the paper's figures, and what it exceeds the optimum by."""
    parts = sorted(
        {line[0] for line in lines if line[0] == "rows" or line[0].endswith(" clients")},
        key=lambda part: (part != "rows", len(part), part),
    )
    methods = sorted(
        {line[1] for line in lines if line[0] in parts}, key=lambda m: (m != "ours", m)
    )
    figure, axes = new((3.5 * len(parts), 7), 2, len(parts), sharey="row", squeeze=False)
    for column, part in zip(axes.T, parts, strict=True):
        best = np.median([float(line[5]) for line in lines if line[0] == part])
        for method, style in zip(methods, STYLES, strict=False):
            draw(column, medians(lines, part, method), best, {**style, "label": method})
        column[0].axhline(best, ls="--", color=INK, lw=1, label="optimum")
        title = f"{part} of 50 rows" if part != "rows" else "Rows are protected"
        column[0].set(title=title, ylim=(49.5, 60))
        column[1].set(yscale="log")
        for axis in column:
            axis.set(xscale="log", xlabel="epsilon")
            plain_ticks(axis.xaxis, [0.1, 0.2, 0.4, 1])
            axis.grid(axis="y")
    plain_ticks(axes[1, 0].yaxis, [0.01, 0.1, 1, 10, 100])
    axes[0, 0].set_ylabel("cost per row (cut at 60)")
    axes[1, 0].set_ylabel("cost per row above the optimum")
    legend_on_top(figure, 5)
    save(figure, path, dpi=100)


def medians(lines, part, method):
    """Median excess by epsilon."""
    found = {}
    for line in lines:
        if (line[0], line[1]) == (part, method):
            found.setdefault(float(line[2]), []).append(float(line[4]))
    return {epsilon: float(np.median(values)) for epsilon, values in sorted(found.items())}


def draw(axes, excess, best, style):
    """The curve of a method in both pictures, or a line where it knows no epsilon."""
    if math.inf in excess:
        line = {"color": style["color"], "label": style["label"], "ls": ":", "lw": 2}
        for axis, base in zip(axes, (best, 0.0), strict=True):
            axis.axhline(base + excess[math.inf], **line)
    elif excess:
        x, y = np.array(list(excess)), np.array(list(excess.values()))
        axes[0].plot(x, best + y, **style)
        axes[1].plot(x, np.maximum(y, 1e-4), **style)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", help="default: all of them")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--targets", action="store_true", help="see federated_targets.py")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--methods", default="")
    parser.add_argument("--epsilons", default="")
    parser.add_argument("--clients", default="1000,2000,5000")
    parser.add_argument("--data")
    parser.add_argument("--plot", action="store_true", help="draw what the csv holds already")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    if options.targets:
        import federated_targets

        warnings.simplefilter("ignore")
        options.parts = options.parts or ""
        federated_targets.main(options)
        return
    options.parts = options.parts or ",".join(PARTS)
    options.seeds = options.seeds or 6
    everything = [
        "ours",
        "paper, PLD",
        "paper, basic",
        "kmeans++",
        "lloyd",
        "sphere_packing",
        "server alone",
        "k-FED",
    ]
    options.seeds = range(options.first_seed, options.first_seed + options.seeds)
    options.methods = (
        options.methods.split(";") if options.methods else ["ours"] if options.quick else everything
    )
    options.epsilons = (
        [float(e) for e in options.epsilons.split(",")]
        if options.epsilons
        else [1.0]
        if options.quick
        else list(EPSILONS)
    )
    options.clients = [int(n) for n in options.clients.split(",")]
    warnings.simplefilter("ignore")
    file = options.output.with_suffix(".csv")
    if options.plot:
        with file.open() as source:
            lines = [tuple(line) for line in list(csv.reader(source))[1:]]
        plot(lines, options.output.with_suffix(".png"))
        print("\n".join(table(lines)))
        return
    new, known = not file.exists(), set()
    if not new:
        with file.open() as source:
            known = {
                (part, method, float(epsilon), int(seed))
                for part, method, epsilon, seed, *_ in list(csv.reader(source))[1:]
            }
    options.done = lambda *cell: cell in known
    with file.open("a", newline="") as target:
        writer, lines = csv.writer(target), []
        if new:
            writer.writerow(FIELDS)
        for part in options.parts.split(","):
            for line in PARTS[part](options):
                lines.append(line)
                writer.writerow([f"{x:.6g}" if isinstance(x, float) else x for x in line])
                target.flush()
                print(*(f"{x:.4g}" if isinstance(x, float) else x for x in line), flush=True)
    print("\n".join(table(lines)))


if __name__ == "__main__":
    main()
