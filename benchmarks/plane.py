"""Few rows in the plane or on a line: DPKMeans compared with k-means of a plain noisy grid.

    python benchmarks/plane.py               # 20 fits of each cell
    python benchmarks/plane.py --fits 5 --only near

A grid is hard to beat in the plane: it spends the whole budget on one histogram (EUGkM, 2016; its
code is that of benchmarks/kmeans.py), and so does DPKMeans where the rows are few. Public bounds
are the ball of radius 1 for DPKMeans, and the box about it for the grid. Each fit has rows and
noise of its own, the same rows for both. The grid knows how many rows there are; DPKMeans spends a
part of epsilon on their number.

separated  round Gaussians, standard deviation a tenth of the smallest distance of two centers
near       the same, a fifth of it: clusters that touch, as in the sets r15 and d31
uneven     as "near", the largest cluster ten times the smallest, and twice its width
two        (k = 2) clusters of 22 and 24 rows, far apart, and nothing else
line       "near" on a line
spike      on a line, like the gains of a year: 92% of the rows are at -1, and the logarithms of
           how far the others are above it are normal

"cost" is the mean over the fits of the cost over the lowest one that k-means without privacy finds
(ten starts, and the true centers); "ratio" is DPKMeans' over the grid's, with the standard error of
the paired differences. The page is written by whole runs: doc/benchmarks/plane.md.
"""

import argparse
import platform
import warnings
from dataclasses import dataclass

import _run  # first: one thread
import kmeans as setting  # the benchmark beside this file
import numpy as np
from sklearn.cluster import KMeans

from sklearn_dp.cluster import DPKMeans

PAGE = _run.PAGES / "plane.md"
COLUMNS = ("rows", "n", "k", "epsilon", "DPKMeans", "grid", "ratio", "ok")


@dataclass(frozen=True)
class Cell:
    rows: str
    n: int
    k: int
    epsilon: float
    d: int = 2

    def data(self, seed):
        """(n, d) rows in the unit ball and the centers of their clusters."""
        rng = np.random.default_rng([seed, self.n, self.k])
        if self.rows == "spike":
            gains = np.exp(rng.normal(-2.4, 1.0, (self.n, 1)))
            X = np.where(rng.random((self.n, 1)) < 0.92, -1.0, np.minimum(gains - 1, 1.0))
            return X, np.linspace(-1, 1, self.k)[:, None]
        if self.rows == "two":
            centers = np.array([[-0.6, 0.1], [0.6, -0.2]])
            return np.repeat(centers, [22, 24], axis=0) + 0.02 * rng.normal(size=(46, 2)), centers
        drawn = (0.8 * setting.in_ball(rng, self.k, self.d) for _ in range(200))
        centers = max(drawn, key=setting.smallest_gap)
        width = setting.smallest_gap(centers) / (10 if self.rows == "separated" else 5)
        share = np.ones(self.k)
        if self.rows == "uneven":
            share, width = np.geomspace(1, 10, self.k), width * np.geomspace(0.7, 1.4, self.k)
        labels = rng.choice(self.k, size=self.n, p=share / share.sum())
        noise = rng.normal(size=(self.n, self.d)) * np.broadcast_to(width, self.k)[labels, None]
        return setting.into_ball(centers[labels] + noise), centers


def cells():
    found = [
        Cell(rows, n, k, epsilon)
        for rows in ("separated", "near", "uneven")
        for n in (300, 1000, 3000)
        for k in (5, 15, 30)
        for epsilon in (0.3, 1.0)
    ]
    line = [
        Cell(rows, n, k, epsilon, 1)
        for rows, k in (("line", 5), ("line", 15), ("spike", 5))
        for n in (300, 1000, 3000, 10_000)
        for epsilon in (0.3, 1.0)
    ]
    return [*found, Cell("two", 46, 2, 1.0), *line]


def measure(cell, n_fits):
    """A line of the table."""
    ours, grid, n_ok = [], [], 0
    for seed in range(n_fits):
        X, centers = cell.data(seed)
        starts = {"n_init": 10, "random_state": seed}, {"n_init": 1, "init": centers}
        least = min(KMeans(cell.k, **start).fit(X).inertia_ for start in starts)
        model = DPKMeans(cell.k, epsilon=cell.epsilon, delta=1e-6, bounds=1.0, random_state=seed)
        model.fit(X)
        n_ok += model.trustworthy_
        ours.append(setting.cost(X, model.cluster_centers_) / least)
        grid.append(setting.cost(X, setting.uniform_grid(X, cell, seed)) / least)
    ours, grid = np.array(ours), np.array(grid)
    error = (ours - grid).std(ddof=1) / np.sqrt(n_fits) / grid.mean()
    ratio = f"{ours.mean() / grid.mean():.2f} ± {error:.2f}"
    shown = f"{ours.mean():.2f}", f"{grid.mean():.2f}", ratio, f"{n_ok} of {n_fits}"
    return cell.rows, f"{cell.n:,}", str(cell.k), f"{cell.epsilon:g}", *shown


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fits", type=int, default=20)
    parser.add_argument("--only", default="", help="one kind of rows; the page is not written")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = ["| " + " | ".join(COLUMNS) + " |", "|---" + "|--:" * (len(COLUMNS) - 1) + "|"]
    for cell in cells():
        if options.only in cell.rows:
            lines.append("| " + " | ".join(measure(cell, options.fits)) + " |")
            print(lines[-1], flush=True)
    if not options.only:
        made = f"`python benchmarks/plane.py --fits {options.fits}` with Python "
        made += f"{platform.python_version()}, numpy {np.__version__}."
        head = [
            "# Few rows in the plane or on a line",
            "",
            "```text",
            __doc__.strip(),
            "```",
            "",
            made,
            "",
        ]
        PAGE.write_text("\n".join([*head, *lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
