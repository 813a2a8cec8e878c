"""Time and memory of private k-means as the number of rows grows; d = 10, k = 10.

    python benchmarks/scale.py                 # n = 1e4, 1e5, 1e6
    python benchmarks/scale.py --largest 7     # up to 1e7 (k-means itself takes minutes there)
    python benchmarks/scale.py --estimators    # the memory of all estimators

Each method runs in a process of its own, on one thread, on the same rows of float64, all in memory.
"CPU s" is the process time of the fit (the fastest of a few for small n). "bytes a row" is how far
the peak memory of the process rose above what it held before the fit, by the number of rows; the
rows themselves, 80 bytes each, are not in it. For small n that is mostly what any fit needs once.
"--estimators" measures each of them in the same way, on rows of float32 (40 bytes each), and
"--estimators --only NAME" some of them; CPU seconds there are of the largest table measured.
Writes doc/benchmarks/scale.md, .json and .png; sizes that are not measured anew are kept. Needs
Linux, which forgets an earlier peak when it is told to.
"""

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import _run  # first: one thread
import numpy as np
from _style import COLORS, MARKERS, MUTED, legend_on_top, new, plain_ticks, save

D = K = 10
CHUNK = 2**16
OUTPUT = _run.PAGES / "scale"
METHODS = {
    "KMeans(n_init=10)": "KMeans(10, n_init=10, random_state=0)",
    "DPKMeans, epsilon=1": "DPKMeans(10, epsilon=1, delta=1e-8, bounds=1.0)",
    "DPKTupleKMeans, epsilon=1": "DPKTupleKMeans(10, epsilon=1, delta=1e-8, bounds=1.0)",
    "DPKTupleKMeans, rho=1": "DPKTupleKMeans(10, rho=1, delta=1e-8, bounds=1.0)",
    "DPKTupleKMeans, rho=2": "DPKTupleKMeans(10, rho=2, delta=1e-8, bounds=1.0)",
}


ESTIMATORS = {
    "DPKMeans": "DPKMeans(10, epsilon=1, delta=1e-8, bounds=1.0)",
    "DPKMeans, no bounds": "DPKMeans(10, epsilon=1, delta=1e-8)",
    "DPCoreset": "DPCoreset(10, epsilon=1, delta=1e-8, bounds=1.0)",
    "DPKTupleKMeans, tuples": METHODS["DPKTupleKMeans, rho=2"],
    "DPPCA": "DPPCA(3, epsilon=1, bounds=1.0)",
    "FriendlyMean": "FriendlyMean(epsilon=1, bounds=1.0)",
    "FriendlyMean, no bounds": "FriendlyMean(epsilon=1)",
    "FriendlyCovariance": "FriendlyCovariance(epsilon=1, bounds=1.0)",
    "FriendlyCovariance, friendly_core": "FriendlyCovariance(epsilon=1, bounds=1.0, "
    "method='friendly_core')",
    "DPGaussianMixture": "DPGaussianMixture(10, epsilon=1, delta=1e-8, bounds=1.0)",
    "DPGaussianMixture, k_tuples": "DPGaussianMixture(3, epsilon=8, delta=1e-8, bounds=1.0, "
    "method='k_tuples')",
    "DPGaussianMixture, partition": "DPGaussianMixture(3, epsilon=8, delta=1e-8, bounds=1.0, "
    "method='partition')",
    "DPOneCluster": "DPOneCluster(0.1, epsilon=1, bounds=1.0)",
    "DPOneClusterKMeans": "DPOneClusterKMeans(3, epsilon=1, bounds=1.0)",
    "DPOutlierScreen": "DPOutlierScreen(epsilon=1)",
}
SIZES = (1_000_000, 3_000_000)  # of the tables of all estimators


def make_rows(path, n):
    """Separated Gaussians in the unit ball, chunk by chunk."""
    rng = np.random.default_rng(0)
    centers = 0.8 * rng.normal(size=(K, D)) / np.sqrt(D)
    gaps = np.linalg.norm(centers[:, None] - centers, axis=2) + 9 * np.eye(K)
    with open(path, "wb") as file:
        for start in range(0, n, CHUNK):
            size = min(CHUNK, n - start)
            noise = gaps.min() / 10 * rng.normal(size=(size, D))
            part = centers[rng.integers(K, size=size)] + noise
            length = np.linalg.norm(part, axis=1, keepdims=True)
            (part / np.maximum(1.0, length)).tofile(file)


def memory(name):
    """A line of what the system knows of the memory of this process, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise KeyError(name)


def fit_once(path, n, method):
    """In a child process: fit, and print what it took."""
    import time

    from sklearn.cluster import KMeans

    import sklearn_dp

    names = {name: getattr(sklearn_dp, name) for name in sklearn_dp.__all__} | {"KMeans": KMeans}
    warnings.simplefilter("ignore")
    rows, known = np.fromfile(path).reshape(n, D), METHODS
    if method in ESTIMATORS:
        rows, known = rows.astype(np.float32), ESTIMATORS
    eval(known[method], names).fit(rows[:2000])  # what is loaded or made once, at the first fit
    Path("/proc/self/clear_refs").write_text("5")  # from now on: a new peak
    best, before = np.inf, memory("VmRSS")
    for _ in range(max(1, min(5, 200_000 // n))):
        estimator = eval(known[method], names)
        start = time.process_time()
        estimator.fit(rows)
        best = min(best, time.process_time() - start)
    print(
        json.dumps(
            {
                "cpu": best,
                "bytes": memory("VmHWM") - before,
                "score": estimator.score(rows) if known is METHODS else 0.0,
                "path": getattr(estimator, "path_", ""),
            }
        )
    )


def measure(sizes, methods):
    for n in sizes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows"
            make_rows(path, n)
            for method in methods:
                out = subprocess.run(
                    [sys.executable, __file__, "--one", str(path), str(n), method],
                    capture_output=True,
                    text=True,
                    check=True,
                ).stdout
                cell = {"n": n, "method": method, **json.loads(out.splitlines()[-1])}
                print(
                    f"n={n:.0e} {method}: {cell['cpu']:.3f} CPU s, {cell['bytes'] / 2**20:.0f} MB",
                    flush=True,
                )
                yield cell


def table(cells):
    lines = [
        "| n | method | CPU s | of KMeans | ns a row | bytes a row | cost / KMeans' | path |",
        "|--:|---|--:|--:|--:|--:|--:|---|",
    ]
    reference = {cell["n"]: cell for cell in cells if cell["method"].startswith("KMeans")}
    for cell in cells:
        base = reference[cell["n"]]
        lines.append(
            f"| {cell['n']:,} | {cell['method']} | {cell['cpu']:.3f} "
            f"| {cell['cpu'] / base['cpu']:.2f} | {cell['cpu'] / cell['n'] * 1e9:.0f} "
            f"| {cell['bytes'] / cell['n']:.0f} | {cell['score'] / base['score']:.4f} "
            f"| {cell['path']} |"
        )
    return "\n".join(lines)


def memory_table(cells):
    """The cells of all estimators, a line for each: bytes a row beside the rows, CPU."""
    lines = [
        "| estimator | " + " | ".join(f"bytes a row, n = {n:.0e}" for n in SIZES) + " | CPU s |",
        "|---|" + "--:|" * (len(SIZES) + 1),
    ]
    for name in ESTIMATORS:
        own = {cell["n"]: cell for cell in cells if cell["method"] == name}
        if own:
            sizes = [f"{own[n]['bytes'] / n:.0f}" if n in own else "" for n in SIZES]
            lines.append(f"| {name} | {' | '.join(sizes)} | {own[max(own)]['cpu']:.1f} |")
    return "\n".join(lines)


def plot(cells, path):
    """Time over the number of rows, and memory as bytes a row."""
    figure, (time, space) = new((10.5, 4.4), 1, 2)
    for method, color, marker in zip(METHODS, COLORS, MARKERS, strict=False):
        own = [cell for cell in cells if cell["method"] == method]
        n = [cell["n"] for cell in own]
        style = {"color": color, "marker": marker, "mfc": "none" if "Tuple" in method else color}
        time.plot(n, [cell["cpu"] for cell in own], label=method, **style)
        space.plot(n, [cell["bytes"] / cell["n"] for cell in own], **style)
    n = sorted({cell["n"] for cell in cells})
    space.axhline(8 * D, color=MUTED, ls="--", lw=1)
    words = "as much as the rows themselves"
    space.text(n[0], 8 * D * 0.95, words, color=MUTED, va="top", fontsize=9)
    time.set(xscale="log", yscale="log", ylabel="CPU seconds of a fit", title="Time")
    space.set(
        xscale="log",
        yscale="log",
        ylabel="bytes a row, beside the rows",
        title="Peak memory of a fit",
    )
    for axis in (time, space):
        axis.set_xlabel("rows")
        axis.grid(axis="y")
        plain_ticks(axis.xaxis, n, [f"{each:,}" for each in n])
    plain_ticks(time.yaxis, [0.1, 1, 10, 100])
    plain_ticks(space.yaxis, [50, 100, 200, 400, 800, 1600])
    legend_on_top(figure, 3)
    save(figure, path)


def write(cells, output):
    memories = memory_table(cells)
    cells = [cell for cell in cells if cell["method"] in METHODS]
    cells.sort(key=lambda cell: (cell["n"], list(METHODS).index(cell["method"])))
    text = table(cells)
    print(text, memories, sep="\n\n")
    output.with_suffix(".md").write_text(
        f"# Time and memory of private k-means\n\n```text\n{__doc__.strip()}\n```"
        f"\n\nPython {platform.python_version()}, numpy {np.__version__}, "
        f"{platform.machine()}, one thread.\n\n{text}\n\n![time and memory](scale.png)\n"
        f"\n## Memory of all estimators\n\n{memories}\n"
    )
    plot(cells, output.with_suffix(".png"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smallest", type=int, default=4, help="exponent of the smallest n")
    parser.add_argument("--largest", type=int, default=6, help="and of the largest")
    parser.add_argument("--plot", action="store_true", help="draw what is stored")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--one", nargs=3, metavar=("PATH", "N", "METHOD"), help=argparse.SUPPRESS)
    parser.add_argument("--estimators", action="store_true", help="measure the memory of each")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="some of the estimators")
    parser.add_argument("--sizes", nargs="+", type=int, choices=SIZES, help="of their tables")
    options = parser.parse_args()
    if options.one:
        return fit_once(options.one[0], int(options.one[1]), options.one[2])
    kept = options.output.with_suffix(".json")
    cells = json.loads(kept.read_text()) if kept.exists() else []
    if options.plot:
        shown = [cell for cell in cells if cell["method"] in METHODS]
        return plot(shown, options.output.with_suffix(".png"))
    sizes, methods = [10**e for e in range(options.smallest, options.largest + 1)], METHODS
    if options.estimators:
        sizes, methods = options.sizes or SIZES, options.only or ESTIMATORS
    for cell in measure(sizes, methods):
        cells = [old for old in cells if (old["n"], old["method"]) != (cell["n"], cell["method"])]
        cells.append(cell)
        kept.write_text(json.dumps(cells, indent=1))
    write(cells, options.output)


if __name__ == "__main__":
    main()
