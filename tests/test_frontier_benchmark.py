"""The search for the smallest number of rows, its limit, and the page that prints the table."""

import json
from pathlib import Path

import numpy as np
import pytest
from benchmark_tools import benchmark_module

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def benchmark():
    return benchmark_module("frontier")


@pytest.fixture(scope="module")
def table():
    path = ROOT / "doc" / "benchmarks" / "frontier.json"
    return json.loads(path.read_text(encoding="utf-8"))


def cell(benchmark, good, guess=100.0, n_fits=40):
    return benchmark.Cell("made up", 2, 5, 1.0, "none", good, n_fits, guess)


@pytest.mark.parametrize("least", [20, 97, 128, 1000, 5000])
@pytest.mark.parametrize("guess", [30.0, 100.0, 3000.0])
def test_the_first_size_of_the_grid_that_passes_is_found(benchmark, least, guess):
    made = cell(benchmark, lambda n, seed: np.array([n >= least]), guess)
    n = benchmark.smallest(made, {}, lambda: None)
    assert least <= n < least * 2 ** (1 / benchmark.STEPS) + 1


def test_beyond_the_most_rows_there_is_no_answer(benchmark):
    tested = {}
    made = cell(benchmark, lambda n, seed: np.array([n >= 5000]))
    assert benchmark.smallest(made, tested, lambda: None, most=4000) is None
    assert max(int(n) for n in tested if n != "cpu") <= 4000


@pytest.mark.parametrize(("n_bad", "ok", "fits"), [(2, True, 40), (3, False, 3), (40, False, 3)])
def test_a_size_is_given_up_at_the_fit_that_is_too_many(benchmark, n_bad, ok, fits):
    tested = {}
    made = cell(benchmark, lambda n, seed: np.array([seed >= n_bad]))
    assert benchmark.passes(made, 40, tested) is ok
    assert tested["1024"] == [ok, min(n_bad, 3), fits]


def test_one_variant_has_to_serve_all_fits(benchmark):
    """Each of two variants is good in every other fit: in hindsight one has to be taken."""
    tested = {}
    made = cell(benchmark, lambda n, seed: np.array([seed % 2 == 0, seed % 2 == 1]))
    assert not benchmark.passes(made, 40, tested)


@pytest.mark.parametrize(("shrunk", "low", "high"), [(False, 0.9, 1.1), (True, 0.0, 0.75)])
def test_the_limit_does_not_shrink_toward_the_centers_it_is_given(benchmark, shrunk, low, high):
    """Rows a little beside a given center: the step goes all the way, whatever it clips."""
    way = np.array([0.1, 0.0, 0.0])
    X = np.random.default_rng(0).normal(size=(200_000, 3)) + way
    labels, given = np.zeros(len(X), dtype=int), np.zeros((1, 3))
    found = list(benchmark.noisy_means(X, labels, given, 100.0, 0, shrunk=shrunk))
    tight = np.array(found)[: len(benchmark.SHARES), 0] @ way / (way @ way)
    assert (tight > low).all() and (tight < high).all()


def test_noise_of_the_limit_is_that_of_its_budget(benchmark):
    """Standard deviation over 4,000 coordinates: a sigma that is wrong by a tenth would show."""
    X = np.zeros((1000, 4000))
    X[:, 0] = np.resize([1.0, -1.0], 1000)  # residuals of length 1 that add up to nothing
    labels, given = np.zeros(1000, dtype=int), np.zeros((1, 4000))
    found = list(benchmark.noisy_means(X, labels, given, 1.0, 0))
    sigma = benchmark.gaussian_sigma(1.0, benchmark.DELTA)
    for centers, share in zip(found[-4:], benchmark.SHARES, strict=True):
        # The count of a thousand has a noise of 2.3 % where its share is .05.
        assert np.isclose(centers.std() * 1000, sigma / np.sqrt(1 - share), rtol=0.08)


def test_the_table_holds_every_cell_with_forty_fits(benchmark, table):
    for each in benchmark.kmeans_cells({"DPKMeans": benchmark.ours}):
        entry = table[str(each)]
        ok, bad, fits = entry["tested"][str(entry["n"])]
        assert ok and bad <= 2 and fits == 40


def test_pages_print_the_table(benchmark, table):
    for page in ("how_many_rows.md", "benchmarks/frontier.md"):
        text = (ROOT / "doc" / page).read_text(encoding="utf-8")
        assert all(line in text for line in benchmark.kmeans_table(table))
        assert all(line in text for line in benchmark.other_table(table))


def test_the_rules_of_thumb_are_as_good_as_the_page_says(benchmark, table):
    page = (ROOT / "doc" / "how_many_rows.md").read_text(encoding="utf-8")
    c, b, worst = benchmark.rule(table)
    assert f"{c:.0f} x clusters x sqrt(features + {b}) / epsilon, is within" in page
    assert f"a factor of {worst:.1f} of the table" in page
    assert (
        "250 x clusters / epsilon" in page
        and "24 cells of the table below to within a factor of 1.6" in page
    )
    factors = []
    for each in benchmark.kmeans_cells({"DPKMeans": benchmark.ours}):
        if each.method == "DPKMeans":
            factors.append(table[str(each)]["n"] * each.epsilon / each.k / 250)
    assert len(factors) == 24 and 1.5 < max(*factors, 1 / min(factors)) < 1.6
