"""The run of scikit-learn's own tests: what counts, what is classified, and a floor."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest
import sklearn
from benchmark_tools import benchmark_module
from sklearn.base import clone
from sklearn.cluster import KMeans

from sklearn_dp import DPKMeans

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "benchmarks" / "dropin.py"


@pytest.fixture(scope="module")
def benchmark():
    return benchmark_module("dropin")


def failing(benchmark, name, *errors, cases=1):
    found = benchmark.Function("test_pca", name, cases, used=True, errors=set(errors))
    found.failures = [f"{name}: {error}" for error in errors]
    return found


LINE = {"class": "missing", "errors": ["TypeError"], "reason": "it is"}


@pytest.mark.parametrize(
    ("errors", "lines", "told"),
    [
        (("TypeError",), {("test_pca", "a"): LINE}, []),
        (("TypeError",), {}, ["no line"]),
        ((), {("test_pca", "a"): LINE}, ["stale"]),
        ((), {("test_other", "a"): LINE}, []),
        (("ValueError",), {("test_pca", "a"): LINE}, ["fails by ['ValueError']"]),
        (("TypeError", "KeyError"), {("test_pca", "a"): LINE}, ["KeyError"]),
        (("TypeError",), {("test_pca", "a"): {**LINE, "class": "whatever"}}, ["a line has"]),
        (("TypeError",), {("test_pca", "a"): {"class": "missing"}}, ["a line has"]),
    ],
)
def test_what_is_wrong_with_the_file_is_told(benchmark, errors, lines, told):
    found = benchmark.problems([failing(benchmark, "a", *errors)], lines)
    assert len(found) == len(told)
    for problem, words in zip(found, told, strict=True):
        assert words in problem


def test_each_line_of_the_file_gives_a_reason(benchmark):
    lines, _ = benchmark.classified()
    assert lines
    for (suite, name), line in lines.items():
        assert suite in benchmark.SUITES and name.startswith("test_")
        assert line["class"] in benchmark.CLASSES and len(line["reason"]) > 5 and line["errors"]


def test_the_stand_in_is_ours_under_their_name(benchmark):
    recorder = benchmark.Recorder()
    recorder._now = benchmark.Function("test_k_means", "a")
    stand_in = benchmark.stand_in(KMeans, DPKMeans, recorder)
    assert stand_in.__name__ == "KMeans" and issubclass(stand_in, DPKMeans)
    assert inspect.signature(stand_in) == inspect.signature(DPKMeans)
    model = clone(stand_in(3, n_init=4).set_params(tol=0.1))
    assert (model.n_clusters, model.epsilon, model.random_state) == (3, benchmark.EPSILON, 0)
    assert recorder._now.used and recorder._now.dropped == {"n_init", "tol"}
    with pytest.raises(TypeError, match="nonsense"):
        stand_in(nonsense=1)


def test_scikit_learn_keeps_its_own_class(benchmark):
    benchmark.load("test_covariance", benchmark.Recorder())
    assert sklearn.covariance.EmpiricalCovariance.__module__.startswith("sklearn.")
    module = sys.modules["sklearn.covariance.tests.test_covariance"]
    assert issubclass(module.EmpiricalCovariance, benchmark.SUITES["test_covariance"][2])


@pytest.mark.slow
def test_all_failures_are_classified():
    """Two minutes: the script's own exit status, and no more that is missing than there was."""
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    total = next(line for line in done.stdout.splitlines() if line.startswith("| all "))
    functions, *_, missing = [int(cell) for cell in total.strip("| ").split("|")[1:]]
    assert functions >= 112 and missing <= MOST_MISSING


MOST_MISSING = 0
