"""Tables of numbers and categories: private k-prototypes beside k-prototypes.

    python benchmarks/mixed.py [--runs 5] [--data FOLDER]

prints its table and writes ``doc/benchmarks/mixed.md``. It needs the library kmodes. ``--data`` is
a folder with acs_20states.npz and credit_default.npz; without it these lines are left out.
"""

import argparse
import platform
import time
import warnings
from importlib.metadata import version
from pathlib import Path

import _run  # first: one thread
import numpy as np
import pandas as pd
from kmodes.kprototypes import KPrototypes
from sklearn.cluster import KMeans

from sklearn_dp import DPKMeans, DPOneHotEncoder, PublicEncoder

PAGE = _run.PAGES / "mixed.md"
BUDGETS = (0.5, 1.0, 2.0)
N_INIT = 2  # starts of k-prototypes and of k-means, of which the best counts

# Age, hours and log income (mean and standard deviation) of each group of persons, and how likely
# the categories of three columns are in it.
WORK = ["none", "private", "public", "self-employed", "retired", "unpaid"]
MARITAL = ["single", "married", "divorced", "widowed"]
SCHOOL = ["primary", "high school", "college", "bachelor", "master"]
GROUPS = [  # share; age, hours, log income; work; marital; school
    (0.15, (21, 3, 15, 9, 9.0, 0.6), (30, 50, 10, 2, 0, 8), (92, 6, 2, 0), (2, 50, 40, 8, 0)),
    (0.25, (34, 7, 41, 6, 10.5, 0.4), (2, 75, 15, 8, 0, 0), (45, 45, 10, 0), (5, 45, 25, 20, 5)),
    (0.25, (46, 8, 43, 6, 11.2, 0.4), (1, 55, 25, 19, 0, 0), (8, 76, 15, 1), (2, 15, 20, 38, 25)),
    (0.10, (42, 9, 18, 7, 9.6, 0.5), (15, 55, 18, 7, 0, 5), (8, 85, 6, 1), (8, 42, 28, 18, 4)),
    (0.20, (71, 7, 3, 5, 10.0, 0.5), (6, 4, 1, 4, 85, 0), (5, 58, 12, 25), (22, 44, 18, 11, 5)),
    (0.05, (45, 12, 4, 6, 8.6, 0.7), (90, 4, 1, 3, 0, 2), (40, 28, 30, 2), (32, 48, 15, 4, 1)),
]


def persons(n, seed):
    """Made-up persons like those of a census, and the ranges and lists of their columns."""
    rng = np.random.default_rng(seed)
    shares, numbers, *kinds = map(np.array, zip(*GROUPS, strict=True))
    group = rng.choice(len(GROUPS), n, p=shares / shares.sum())
    age, hours, income = (
        rng.normal(numbers[group, place], numbers[group, place + 1]) for place in (0, 2, 4)
    )
    table = pd.DataFrame({"age": age.round(), "hours": hours.round(), "log income": income})
    lists = {"work": WORK, "marital": MARITAL, "school": SCHOOL}
    for (name, values), chance in zip(lists.items(), kinds, strict=True):
        cut = np.cumsum(chance / chance.sum(axis=1, keepdims=True), axis=1)[group]
        table[name] = np.array(values, dtype=object)[(rng.random((n, 1)) > cut[:, :-1]).sum(axis=1)]
    regions = [f"region {i}" for i in range(8)]
    table["region"] = rng.choice(np.array(regions, dtype=object), n)
    ranges = {"age": (15.0, 95.0), "hours": (0.0, 80.0), "log income": (7.0, 13.0)}
    return table, {**ranges, **lists, "region": regions}


def census(folder, n, seed):
    """Adults of a census: age, income and earnings; sex, marital status and state."""
    with np.load(folder / "acs_20states.npz", allow_pickle=False) as file:
        rows = np.random.default_rng(seed).choice(len(file["X"]), n, replace=False)
        table = pd.DataFrame(
            {
                **dict(zip(["age", "income", "earnings"], file["X"][rows, :3].T, strict=True)),
                "sex": file["sex"][rows],
                "marital": file["marital"][rows],
                "state": file["group_names"][file["groups"][rows]].astype(object),
            }
        )
        states = file["group_names"].tolist()
    ranges = {"age": (18.0, 99.0), "income": (0.0, 2e5), "earnings": (0.0, 2e5)}
    return table, {**ranges, "sex": [1, 2], "marital": [1, 2, 3, 4, 5], "state": states}


def credit(folder, n, seed):
    """Clients of a bank: limit, age, bill and payment; sex, education and two delays."""
    with np.load(folder / "credit_default.npz", allow_pickle=False) as file:
        rows = np.random.default_rng(seed).choice(len(file["X"]), n, replace=False)
        table = pd.DataFrame(
            {
                **dict(zip(["limit", "age", "bill"], file["X"][rows][:, [0, 1, 2]].T, strict=True)),
                "sex": file["sex"][rows],
                "education": file["groups"][rows],
                "delay": file["repay_status"][rows, 0],
                "delay before": file["repay_status"][rows, 1],
            }
        )
    ranges = {"limit": (0.0, 1e6), "age": (20.0, 80.0), "bill": (0.0, 5e5)}
    delays = list(range(-2, 9))
    lists = {"sex": [1, 2], "education": list(range(7)), "delay": delays, "delay before": delays}
    return table, {**ranges, **lists}


class Costs:
    """The cost of k-prototypes: squared distances of numbers over their ranges, and `gamma` for
    each category that is not that of the prototype."""

    def __init__(self, table, schema):
        self.numbers = [name for name, kind in schema.items() if isinstance(kind, tuple)]
        self.kinds = [name for name in schema if name not in self.numbers]
        self.schema = schema
        self.low, high = np.array([schema[name] for name in self.numbers]).T
        self.width = high - self.low
        self.X = (np.clip(table[self.numbers], self.low, high).to_numpy() - self.low) / self.width
        self.C = table[self.kinds].astype(str).to_numpy(dtype=object)
        self.gamma = 0.5 * self.X.std(axis=0).mean()  # as kmodes has it

    def of(self, points, modes):
        """Mean cost of the rows, each with the nearest prototype."""
        far = np.zeros((len(self.X), len(points)))
        for number, (point, mode) in enumerate(zip(points, modes, strict=True)):
            far[:, number] = np.square(self.X - point).sum(axis=1)
            far[:, number] += self.gamma * (mode != self.C).sum(axis=1)
        return far.min(axis=1).mean()

    def prototypes(self, k, seed):
        """Of k-prototypes, the best of some starts."""
        model = KPrototypes(
            k, init="Huang", gamma=self.gamma, n_init=N_INIT, random_state=seed, max_iter=30
        )
        rows = np.hstack([self.X.astype(object), self.C])
        places = range(len(self.numbers), rows.shape[1])
        centers = model.fit(rows, categorical=list(places)).cluster_centroids_
        return self.of(
            centers[:, : len(self.numbers)].astype(float), centers[:, len(self.numbers) :]
        )

    def encoder(self, schema):
        """Rows whose squared distances are these costs."""
        kinds = [name for name in schema if name in self.kinds]
        return PublicEncoder(schema, weights=dict.fromkeys(kinds, np.sqrt(self.gamma)))

    def centers(self, encoder, centers):
        """The cost of centers of encoded rows: their numbers, and the most frequent categories."""
        table = encoder.inverse_transform(centers)
        points = (table[self.numbers].to_numpy() - self.low) / self.width
        modes = np.full((len(centers), len(self.kinds)), None, dtype=object)
        for place, name in enumerate(self.kinds):
            values = encoder.schema.get(name)
            if values:
                shares = table[[f"{name}_{value}" for value in values]].to_numpy()
                modes[:, place] = np.array([str(v) for v in values], object)[shares.argmax(axis=1)]
        return self.of(points, modes)


def costs(table, schema, k, seed):
    """The cost of each method, by its name."""
    known = Costs(table, schema)
    found = {"k-prototypes": known.prototypes(k, seed)}
    encoder = known.encoder(schema)
    X = encoder.fit_transform(table)
    plain = KMeans(k, n_init=N_INIT, random_state=seed).fit(X)
    found["k-means"] = known.centers(encoder, plain.cluster_centers_)
    for epsilon in BUDGETS:
        model = DPKMeans(k, epsilon=epsilon, bounds=encoder.output_bounds, random_state=seed).fit(X)
        found[f"epsilon {epsilon:g}"] = known.centers(encoder, model.cluster_centers_)
    lists = DPOneHotEncoder(epsilon=0.2, random_state=seed).fit(table[known.kinds])
    ranges = {name: schema[name] for name in known.numbers}
    encoder = known.encoder({**ranges, **lists.schema_})
    X, bounds = encoder.fit_transform(table), encoder.output_bounds
    model = DPKMeans(k, epsilon=0.8, bounds=bounds, random_state=seed).fit(X)
    found["epsilon 1, lists found"] = known.centers(encoder, model.cluster_centers_)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--data", type=Path, help="folder of .npz files")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    cells = [("persons", persons, 3000, 6), ("persons", persons, 10_000, 6)]
    if options.data:
        cells += [
            (name, lambda n, seed, make=make: make(options.data, n, seed), 10_000, k)
            for name, make, k in (("census", census, 6), ("credit", credit, 5))
        ]
    rows = []
    for name, make, n, k in cells:
        began = time.perf_counter()
        found = [costs(*make(n, seed), k, seed) for seed in range(options.runs)]
        frame = pd.DataFrame(found)
        ratios = frame.div(frame["k-prototypes"], axis=0).drop(columns="k-prototypes")
        shown = (f"{ratios[each].median():.3f} ({ratios[each].max():.3f})" for each in ratios)
        rows.append((name, f"{n:,}", k, *shown))
        print(*rows[-1], f"{time.perf_counter() - began:.0f} s", flush=True)
    head = ("table", "rows", "k", *ratios)
    text = [
        "# Tables of numbers and categories",
        "",
        f"Made by `python benchmarks/mixed.py --runs {options.runs}"
        f"{' --data FOLDER' if options.data else ''}` with Python "
        f"{platform.python_version()}, NumPy {version('numpy')} and kmodes {version('kmodes')}.",
        "",
        "`PublicEncoder` and `DPKMeans` beside k-prototypes without privacy. The cost is that of",
        "k-prototypes: squared distances of numbers over their ranges, and gamma (half of their",
        "mean standard deviation, as kmodes has it) for each category that is not that of the",
        "prototype. A center's prototype has its numbers, and of each column its most frequent",
        f"category. Medians, and the worst, of {options.runs} ratios to the cost of k-prototypes",
        f"(the best of {N_INIT} starts); k-means is scikit-learn's on the same encoded rows,",
        "without privacy. In the last column a fifth of epsilon finds the lists of categories",
        "(`DPOneHotEncoder`).",
        "",
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
        *("| " + " | ".join(map(str, row)) + " |" for row in rows),
        "",
        "The persons are made up; census and credit are real tables, which are not part of the",
        "project.",
    ]
    PAGE.write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
