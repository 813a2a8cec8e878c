"""One private mean by each library that offers one, on the same rows.

Run ``python benchmarks/rivals.py --runs 100``; it prints a table and writes
``doc/benchmarks/rivals.md``. Each library works in a process of its own, because some cannot be
installed beside each other: ``--python tumult=/path/to/python`` names the interpreter of one. What
an interpreter cannot import is listed as not installed (the extra ``bench-rivals`` has all but
Tumult Analytics, which needs numpy 1). Tumult Analytics starts Spark; it is run ``--slow-runs``
times only. ``--only FriendlyMean`` measures one library anew and keeps the lines of the others;
that one takes three seconds a run in the larger cells, the others take a minute together.

All libraries get epsilon = 1 for adding or removing one row (diffprivlib: for replacing one),
delta = 1e-6 where it is used, and the same public limits. In the last cell the location of the rows
is unknown: the limits are a million wide, and FriendlyMean is told none.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import types
import warnings
from pathlib import Path

import _run  # first: one thread
import numpy as np

PAGE = _run.PAGES / "rivals.md"
DELTA = 1e-6
SLOW = {"tumult"}


def cells():
    """(name, rows, limits) of each cell; the limits are facts about the instrument."""
    from sklearn.datasets import load_breast_cancer

    heights = np.random.default_rng(0).normal(170.0, 10.0, size=10_000)
    yield "radius of 569 tumors, in (0, 40)", load_breast_cancer().data[:, 0], (0.0, 40.0)
    yield "height of 10,000 people, in (0, 300)", heights, (0.0, 300.0)
    yield "the same, in (-1e6, 1e6)", heights, (-1e6, 1e6)


# -- the libraries: each a generator-like function of rows, limits and the number of runs ---------


def ours(x, limits, runs):
    from sklearn_dp import FriendlyMean

    bounds = None if limits[1] >= 1e6 else limits
    X = x[:, None]
    return [
        FriendlyMean(epsilon=1.0, delta=DELTA, bounds=bounds).fit(X).mean_[0] for _ in range(runs)
    ]


def diffprivlib(x, limits, runs):
    # Its forests import names that newer versions of scikit-learn have not; its tools need none.
    sys.modules["diffprivlib.models.forest"] = stub = types.ModuleType("diffprivlib.models.forest")
    stub.RandomForestClassifier = stub.DecisionTreeClassifier = None
    from diffprivlib import tools

    return [tools.mean(x, epsilon=1.0, bounds=limits) for _ in range(runs)]


def opendp(x, limits, runs):
    """A noisy sum about the middle of the limits and a noisy count, half of the budget each."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    middle, half = sum(limits) / 2, (limits[1] - limits[0]) / 2

    def one():
        context = dp.Context.compositor(
            data=(x - middle).tolist(), privacy_unit=dp.unit_of(contributions=1),
            privacy_loss=dp.loss_of(epsilon=1.0), split_evenly_over=2,
            domain=dp.vector_domain(dp.atom_domain(T=float, nan=False)),
        )  # fmt: skip
        count = context.query().count().laplace().release()
        total = context.query().clamp((-half, half)).sum().laplace().release()
        return middle + total / max(count, 1)

    return [one() for _ in range(runs)]


def pydp(x, limits, runs):
    """Google's C++ library, as PyDP wraps it."""
    from pydp.algorithms.laplacian import BoundedMean

    low, high = limits
    return [
        BoundedMean(epsilon=1.0, lower_bound=low, upper_bound=high, dtype="float").quick_result(
            x.tolist()
        )
        for _ in range(runs)
    ]


def pipelinedp(x, limits, runs):
    import pipeline_dp

    low, high = limits
    params = pipeline_dp.AggregateParams(
        metrics=[pipeline_dp.Metrics.MEAN], noise_kind=pipeline_dp.NoiseKind.LAPLACE,
        max_partitions_contributed=1, max_contributions_per_partition=1,
        min_value=low, max_value=high,
    )  # fmt: skip
    extract = pipeline_dp.DataExtractors(
        partition_extractor=lambda row: 0,
        privacy_id_extractor=lambda row: row[0],
        value_extractor=lambda row: row[1],
    )
    rows = list(enumerate(x.tolist()))

    def one():
        accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=1.0, total_delta=DELTA)
        engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
        result = engine.aggregate(rows, params, extract, public_partitions=[0])
        accountant.compute_budgets()
        return next(iter(result))[1].mean

    return [one() for _ in range(runs)]


def tumult(x, limits, runs):
    os.environ["PYSPARK_PYTHON"] = sys.executable
    import pandas as pd
    from pyspark.sql import SparkSession
    from tmlt.analytics import AddOneRow, PureDPBudget, QueryBuilder, Session

    # One partition: with Spark's 200, most of the time goes into empty ones.
    spark = (
        SparkSession.builder.master("local[1]").config("spark.sql.shuffle.partitions", "1")
    ).getOrCreate()
    table = spark.createDataFrame(pd.DataFrame({"x": x}))
    low, high = limits
    session = Session.from_dataframe(
        PureDPBudget(float(runs)), "rows", table, protected_change=AddOneRow()
    )
    query = QueryBuilder("rows").average("x", low=low, high=high)
    return [
        session.evaluate(query, PureDPBudget(1.0)).collect()[0]["x_average"] for _ in range(runs)
    ]


RIVALS = {
    "FriendlyMean": (ours, "sklearn-dp"),
    "diffprivlib": (diffprivlib, "diffprivlib"),
    "OpenDP": (opendp, "opendp"),
    "Google's C++ library (PyDP)": (pydp, "python-dp"),
    "PipelineDP": (pipelinedp, "pipeline-dp"),
    "Tumult Analytics": (tumult, "tmlt.analytics"),
}


# -- a process for each ---------------------------------------------------------------------------


def work(name, file, runs):
    """In the process of one library: print its version and its answers."""
    from importlib.metadata import version

    function, package = RIVALS[name]
    answers = []
    with np.load(file) as cells_:
        for i in range(len(cells_.files) // 2):
            x, limits = cells_[f"rows{i}"], tuple(cells_[f"limits{i}"].tolist())
            answers.append([float(a) for a in function(x, limits, runs)])
    print(json.dumps({"version": version(package), "answers": answers}))


def answers_of(name, python, file, runs):
    """What the process of a library has printed, or None where it is not installed."""
    command = [python, "-W", "ignore", __file__, "--work", name, "--file", file]
    # Spark leaves files where it runs.
    done = subprocess.run(
        [*command, "--runs", str(runs)], capture_output=True, text=True, cwd=Path(file).parent
    )
    if done.returncode and "ModuleNotFoundError" in done.stderr:
        return None
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def rows_of(found, truths):
    """Median absolute error, with the larger quartile in brackets."""
    for name, result in found.items():
        if result is None:
            yield [name, "not installed", "", *("" for _ in truths)]
            continue
        errors = [np.abs(np.array(a) - t) for a, t in zip(result["answers"], truths, strict=True)]
        yield [
            name, result["version"], str(len(errors[0])),
            *(f"{np.median(e):.3g} [{np.quantile(e, 0.75):.3g}]" for e in errors),
        ]  # fmt: skip


def kept_rows(path):
    """The lines of the table of a page, by library."""
    from _style import read_table

    return {
        row["library"]: list(row.values()) for row in read_table(path.read_text("utf-8"), "library")
    }


def page(names, rows):
    header = ["library", "version", "runs", *names]
    lines = [f"| {' | '.join(row)} |" for row in (header, *rows)]
    lines.insert(1, f"|{' --- |' * len(header)}")
    about = " ".join(__doc__.split("\n\n")[-1].split())
    return "\n".join([
        "# One mean, by six libraries", "",
        f"Made by `python benchmarks/rivals.py` (Python {platform.python_version()}). Absolute",
        "error of a private mean: median [third quartile].", "", *lines, "", about, "",
    ])  # fmt: skip


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--slow-runs", type=int, default=10)
    parser.add_argument("--python", action="append", default=[], metavar="LIBRARY=PATH")
    parser.add_argument("--only", action="append", choices=list(RIVALS), metavar="LIBRARY")
    parser.add_argument("--output", type=Path, default=PAGE)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--file", help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    options = parse()
    if options.work:
        warnings.simplefilter("ignore")
        return work(options.work, options.file, options.runs)
    pythons = dict(choice.split("=", 1) for choice in options.python)
    names, rows, limits = zip(*cells(), strict=True)
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "cells.npz")
        arrays = {f"rows{i}": x for i, x in enumerate(rows)}
        np.savez(file, **arrays, **{f"limits{i}": both for i, both in enumerate(limits)})
        found = {}
        for name, (function, _) in RIVALS.items():
            if options.only and name not in options.only:
                continue
            runs = options.slow_runs if function.__name__ in SLOW else options.runs
            python = pythons.get(function.__name__, sys.executable)
            found[name] = answers_of(name, python, file, runs)
            print(f"{name}: {'done' if found[name] else 'not installed'}", flush=True)
    kept = kept_rows(options.output) if options.only else {}
    kept |= {row[0]: row for row in rows_of(found, [x.mean() for x in rows])}
    text = page(names, [kept[name] for name in RIVALS if name in kept])
    print(text)
    options.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
