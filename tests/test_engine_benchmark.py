"""Paired fits of two releases: what is compared, what is stored, and the page that prints it."""

from pathlib import Path

import numpy as np
import pytest
from benchmark_tools import benchmark_module

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def benchmark():
    return benchmark_module("engine")


class Told:
    """In the place of a release: centers that are told, and what it was asked."""

    def __init__(self, centers, status="ok"):
        self.centers, self.status, self.asked = centers, status, []

    def fit(self, rows, k, **parameters):
        self.asked.append((np.load(rows), k, parameters))
        return {"centers": self.centers, "cpu": 2.0, "status": self.status}


def cell(benchmark, **changes):
    """Four rows about two centers, one length away from either."""

    def make(seed):
        centers = np.array([[0.0, 0.0], [10.0 + seed, 0.0]])
        return np.concatenate([centers + [0.0, 1.0], centers - [0.0, 1.0]]), centers

    return benchmark.Cell("made up", 2, make, 0.5, **changes)


def test_both_releases_see_the_same_rows_and_seeds(benchmark, tmp_path):
    releases = {"before": Told([[0.0, 0.0]] * 2), "after": Told([[0.0, 0.0]] * 2)}
    lines = list(benchmark.measure(cell(benchmark), releases, {}, 3, tmp_path))
    assert [(line["seed"], line["release"]) for line in lines] == [
        (0, "before"), (0, "after"), (1, "after"), (1, "before"), (2, "before"), (2, "after"),
    ]  # fmt: skip
    for before, after in zip(releases["before"].asked, releases["after"].asked, strict=True):
        assert np.array_equal(before[0], after[0])
        assert before[1:] == after[1:]
    assert [asked[0][1, 0] for asked in releases["after"].asked] == [10.0, 11.0, 12.0]
    assert releases["after"].asked[1][2] == {
        "epsilon": 0.5, "delta": 1e-6, "bounds": 1.0, "random_state": 1,
    }  # fmt: skip


def test_costs_are_those_of_all_rows(benchmark, tmp_path):
    (line,) = benchmark.measure(
        cell(benchmark), {"after": Told([[0.0, 0.0], [10.0, 2.0]])}, {}, 1, tmp_path
    )
    assert line["best"] == pytest.approx(4.0)
    assert line["cost"] == pytest.approx(1 + 1 + 1 + 9)
    assert line["one"] == pytest.approx(4 * (25 + 1))


def test_stored_fits_are_not_made_again(benchmark, tmp_path):
    told = Told([[0.0, 0.0], [10.0, 0.0]])
    path, made = tmp_path / "fits.csv", cell(benchmark)
    done = {}
    for line in benchmark.measure(made, {"after": told}, {}, 2, tmp_path):
        done[line["cell"], line["seed"], line["release"]] = line
    benchmark.write(path, done)
    assert benchmark.read(path) == done
    more = list(benchmark.measure(made, {"after": told}, benchmark.read(path), 3, tmp_path))
    assert [line["seed"] for line in more] == [2]


def test_the_best_known_cost_is_taken_over(benchmark, tmp_path):
    """For a release that comes later, and for all fits of the same rows."""
    stored = {("made up", 0, "before"): {"best": 1.5, "one": 7.0}}
    told = {"after": Told([[0.0, 0.0], [10.0, 0.0]])}
    for fresh, expected in ((True, [1.5, 4.0]), (False, [1.5, 1.5])):
        lines = benchmark.measure(cell(benchmark, fresh=fresh), told, stored, 2, tmp_path)
        assert [line["best"] for line in lines] == pytest.approx(expected)


def test_figures_are_of_pairs(benchmark):
    done = {}
    for seed, before, after in ((0, 1.0, 1.1), (1, 1.2, 1.0), (2, 3.0, None)):
        for release, cost in (("before", before), ("after", after)):
            if cost is not None:
                done["made up", seed, release] = {
                    "cell": "made up", "seed": seed, "release": release, "cost": 2 * cost,
                    "best": 2.0, "one": 8.0, "cpu": 1.0 if release == "before" else 1.5,
                    "status": "ok" if seed else "too few rows",
                }  # fmt: skip
    (entry,) = benchmark.summary(done, ["gone", "made up"])
    assert entry["fits"] == 2 and entry["one"] == 4.0
    assert entry["bad"] == {"before": 0.5, "after": 0.5} and entry["ok"]["after"] == 0.5
    assert entry["difference"] == pytest.approx(-0.05)
    assert entry["error"] == pytest.approx(0.15) and entry["cpu"] == 1.5
    assert "1.0500 [1.0250 1.0750] | 0.5 | 0.5 | -0.05 ± 0.1 | 1.50 |" in benchmark.in_table(entry)


def test_cells_have_rows_within_their_bounds(benchmark):
    """Those of generated data that are made quickly; the names of all are their own."""
    cells = {each.name: each for each in benchmark.all_cells()}
    assert len(cells) == len(benchmark.all_cells())
    X, centers = cells["unbalanced n=13467 d=2 k=20"].make(0)
    assert X.shape == (13467, 2) and centers.shape == (20, 2)
    X, _ = cells["unbalanced n=3738 d=2 k=20"].make(0)
    sizes = np.bincount(benchmark.setting.nearest(X, benchmark.unbalanced(3738, 0)[1]))
    assert abs(sizes.max() - 2 * 3738 / 3) < 20 and 15 <= sizes.min() <= 25
    X, _ = cells["census n=3e4 d=5 k=8"].make(0)
    assert X.shape == (30_000, 5) and np.linalg.norm(X, axis=1).max() <= 1.0
    X, centers = cells["issue n=1024 d=128 k=16"].make(0)
    assert X.shape == (1024, 128) and np.linalg.norm(X, axis=1).max() <= 1.0
    assert np.bincount(benchmark.setting.nearest(X, centers)).tolist() == [64] * 16


@pytest.mark.slow
def test_a_release_of_a_folder_fits(benchmark, tmp_path):
    rows = tmp_path / "rows.npy"
    np.save(rows, np.random.default_rng(0).normal(size=(500, 2)))
    with benchmark.Release(ROOT) as release:
        first, second = (
            release.fit(rows, 2, epsilon=1.0, bounds=4.0, random_state=seed) for seed in (0, 0)
        )
    assert np.shape(first["centers"]) == (2, 2) and first["cpu"] > 0 and first["status"]
    assert first["centers"] == second["centers"]


def test_the_free_answer_has_the_noise_of_the_whole_budget(benchmark):
    """Rows far from the public center in units of the noise: no shrinkage to speak of."""
    X = np.random.default_rng(0).normal(size=(2000, 5)) * 0.01 + 0.3
    costs = benchmark.free_costs(X, 1.0)
    sigma = benchmark.gaussian_sigma(1.0, 1e-6)
    # The sum's noise, and that of the number of rows along the mean; 1.25 for the two together.
    noise = 1.25 * sigma**2 * (5 + 4 * 5 * 0.3**2) / 2000
    plain = benchmark.setting.cost(X, X.mean(axis=0)[None])
    assert costs.mean() - plain == pytest.approx(noise, rel=0.15)


def test_settings_above_the_free_answer_are_listed(benchmark):
    lines = [
        {"cell": cell, "cost": cost, "free": 2.0, "free_above": above, "one": 1.6, "status": status}
        for cell, above, status, costs in (
            ("fine", 0.0, "ok", [2.0] * 20),
            ("late", 0.0, "ok", [2.06] * 20),
            ("often", 0.0, "one center for all", [2.0] * 16 + [2.2] * 4),
            ("as often as the free one", 0.2, "ok", [2.0] * 16 + [2.2] * 4),
        )
        for cost in costs
    ]
    entries = list(benchmark.free_summary(lines))
    text = "\n".join(benchmark.free_page(entries))
    assert "1 have a median above 1.02" in text and "Of all fits 10.0%" in text
    assert "| late | 1.250 | 0.00 | 1.030 | 0.00 | 1.030 | 0.00 |" in text
    assert "| often | 1.250 | 0.00 | 1.000 | 0.20 | 1.100 | 1.00 |" in text
    assert "| fine" not in text and "| as often" not in text


def test_the_command_names_no_folder(benchmark):
    words = benchmark.in_words(["--before", "/x/y", "--data", "/z"], {"/x/y": "FOLDER", "/z": "Z"})
    assert words == "python benchmarks/engine.py --before FOLDER --data Z"


def test_the_page_prints_the_stored_fits(benchmark):
    done = benchmark.read(benchmark.OUTPUT.with_suffix(".csv"))
    page = benchmark.OUTPUT.with_suffix(".md").read_text(encoding="utf-8")
    entries = list(benchmark.summary(done, dict.fromkeys(key[0] for key in done)))
    assert entries and all(benchmark.in_table(entry) in page for entry in entries)
    free = list(
        benchmark.free_summary(benchmark.read_free(benchmark.OUTPUT.with_name("engine_free.csv")))
    )
    assert free and all(line in page for line in benchmark.free_page(free))
