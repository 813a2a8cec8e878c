"""Time and memory of private k-means as the number of rows grows; d = 10, k = 10.

    python benchmarks/scale.py                 # n = 1e4, 1e5, 1e6
    python benchmarks/scale.py --largest 7     # up to 1e7 (k-means itself takes minutes there)

Each fit runs in a process of its own, on one thread, on rows that are read from a memory-mapped
file of float64 made in chunks. "CPU s" is the process time of the fit (the fastest of a few for
small n), "MB" is how much the fit raised the peak memory of its process beyond the mapped rows (0:
not all of these were in memory at once, nor anything as large).
Writes doc/benchmarks/scale.md, .json and .png; sizes that are not measured anew are kept.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402
from _style import COLORS, MARKERS, MUTED, legend_on_top, new, plain_ticks, save  # noqa: E402

D = K = 10
CHUNK = 2**16
OUTPUT = Path(__file__).resolve().parents[1] / "doc" / "benchmarks" / "scale"
METHODS = {
    "KMeans(n_init=10)": "KMeans(10, n_init=10, random_state=0)",
    "DPKMeans, epsilon=1": "DPKMeans(10, epsilon=1, delta=1e-8, bounds=1.0)",
    "DPKTupleKMeans, epsilon=1": "DPKTupleKMeans(10, epsilon=1, delta=1e-8, bounds=1.0)",
    "DPKTupleKMeans, rho=1": "DPKTupleKMeans(10, rho=1, delta=1e-8, bounds=1.0)",
    "DPKTupleKMeans, rho=2": "DPKTupleKMeans(10, rho=2, delta=1e-8, bounds=1.0)",
}


def make_rows(path, n):
    """Separated Gaussians in the unit ball, chunk by chunk."""
    rng = np.random.default_rng(0)
    centers = 0.8 * rng.normal(size=(K, D)) / np.sqrt(D)
    gaps = np.linalg.norm(centers[:, None] - centers, axis=2) + 9 * np.eye(K)
    rows = np.memmap(path, dtype=np.float64, mode="w+", shape=(n, D))
    for start in range(0, n, CHUNK):
        size = min(CHUNK, n - start)
        part = centers[rng.integers(K, size=size)] + gaps.min() / 10 * rng.normal(size=(size, D))
        length = np.linalg.norm(part, axis=1, keepdims=True)
        rows[start : start + size] = part / np.maximum(1.0, length)
    rows.flush()


def fit_once(path, n, method):
    """In a child process: fit, and print what it took."""
    import resource
    import time

    from sklearn.cluster import KMeans  # noqa: F401 - for eval

    from sklearn_dp import DPKMeans, DPKTupleKMeans  # noqa: F401 - for eval

    warnings.simplefilter("ignore")
    rows = np.memmap(path, dtype=np.float64, mode="r", shape=(n, D))
    best, before = np.inf, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(max(1, min(5, 200_000 // n))):
        estimator = eval(METHODS[method])
        start = time.process_time()
        estimator.fit(rows)
        best = min(best, time.process_time() - start)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(
        json.dumps(
            {
                "cpu": best,
                "mb": grown / 1024 - rows.nbytes / 2**20,
                "score": estimator.score(rows),
                "path": getattr(estimator, "path_", ""),
            }
        )
    )


def measure(exponents, methods):
    for exponent in exponents:
        n = 10**exponent
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
                    f"n=1e{exponent} {method}: {cell['cpu']:.3f} CPU s, {cell['mb']:.0f} MB",
                    flush=True,
                )
                yield cell


def table(cells):
    lines = [
        "| n | method | CPU s | of KMeans | ns a row | MB more | cost / KMeans' | path |",
        "|--:|---|--:|--:|--:|--:|--:|---|",
    ]
    reference = {cell["n"]: cell for cell in cells if cell["method"].startswith("KMeans")}
    for cell in cells:
        base = reference[cell["n"]]
        lines.append(
            f"| {cell['n']:,} | {cell['method']} | {cell['cpu']:.3f} "
            f"| {cell['cpu'] / base['cpu']:.2f} | {cell['cpu'] / cell['n'] * 1e9:.0f} "
            f"| {max(cell['mb'], 0):.0f} | {cell['score'] / base['score']:.4f} | {cell['path']} |"
        )
    return "\n".join(lines)


def plot(cells, path):
    """Time and memory over the number of rows.

    Memory is that of the process with the mapped rows, as bytes a row: how many of the mapped rows
    are in memory is up to the system, so what is left without them can be less than nothing.
    """
    figure, (time, memory) = new((10.5, 4.4), 1, 2)
    for method, color, marker in zip(METHODS, COLORS, MARKERS, strict=False):
        own = [cell for cell in cells if cell["method"] == method]
        n = [cell["n"] for cell in own]
        bytes_a_row = [cell["mb"] * 2**20 / cell["n"] + 8 * D for cell in own]
        style = {"color": color, "marker": marker, "mfc": "none" if "Tuple" in method else color}
        time.plot(n, [cell["cpu"] for cell in own], label=method, **style)
        memory.plot(n, bytes_a_row, **style)
    memory.axhline(8 * D, color=MUTED, ls="--", lw=1)
    words = "the rows themselves;\nof mapped rows, not all need be in memory"
    memory.text(n[0], 8 * D * 0.95, words, color=MUTED, va="top", fontsize=9)
    time.set(xscale="log", yscale="log", ylabel="CPU seconds of a fit", title="Time")
    memory.set(xscale="log", yscale="log", ylabel="bytes a row, rows included", title="Peak memory")
    for axis in (time, memory):
        axis.set_xlabel("rows")
        axis.grid(axis="y")
        plain_ticks(axis.xaxis, n, [f"{each:,}" for each in n])
    plain_ticks(time.yaxis, [0.1, 1, 10, 100])
    plain_ticks(memory.yaxis, [50, 100, 200, 400, 800])
    legend_on_top(figure, 3)
    save(figure, path)


def write(cells, output):
    cells.sort(key=lambda cell: (cell["n"], list(METHODS).index(cell["method"])))
    text = table(cells)
    print(text)
    output.with_suffix(".md").write_text(
        f"# Time and memory of private k-means\n\n```text\n{__doc__.strip()}\n```"
        f"\n\nPython {platform.python_version()}, numpy {np.__version__}, "
        f"{platform.machine()}, one thread.\n\n{text}\n\n![time and memory](scale.png)\n"
    )
    plot(cells, output.with_suffix(".png"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smallest", type=int, default=4, help="exponent of the smallest n")
    parser.add_argument("--largest", type=int, default=6, help="and of the largest")
    parser.add_argument("--plot", action="store_true", help="draw what is stored")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--one", nargs=3, metavar=("PATH", "N", "METHOD"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        return fit_once(options.one[0], int(options.one[1]), options.one[2])
    kept = options.output.with_suffix(".json")
    cells = json.loads(kept.read_text()) if kept.exists() else []
    if options.plot:
        return plot(cells, options.output.with_suffix(".png"))
    for cell in measure(range(options.smallest, options.largest + 1), METHODS):
        cells = [old for old in cells if (old["n"], old["method"]) != (cell["n"], cell["method"])]
        cells.append(cell)
        kept.write_text(json.dumps(cells, indent=1))
    write(cells, options.output)


if __name__ == "__main__":
    main()
