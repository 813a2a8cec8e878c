"""No number of the k-means engine without a row of the ablation, and no row of an old value."""

import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from benchmark_tools import benchmark_module

from sklearn_dp import DPKMeans
from sklearn_dp._aggregate.kmeans import tuning
from sklearn_dp._aggregate.kmeans.tuning import TUNING

ROOT = Path(__file__).resolve().parents[1]
ENGINE = Path(tuning.__file__).parent
PAGE = ROOT / "doc" / "benchmarks" / "ablation.md"
TOLD = "## Numbers: what the ablation says, and does not"  # of the page of the engine


def rows_of_the_page():
    """(title, name, value, what it says) of each row of a number."""
    for section in re.split(r"^(?=## )", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        title, _, text = section.partition("\n")
        for name, value, rest in re.findall(r"^\| (\w+) \| ([^|]+) \|(.*)$", text, re.MULTILINE):
            if title != "## Pieces" and name != "number":
                yield title, name, value.strip(), rest


@pytest.fixture(scope="module")
def benchmark():
    return benchmark_module("ablation")


def test_every_number_has_a_row_with_its_value(benchmark):
    rows = {(name, value) for _, name, value, _ in rows_of_the_page()}
    names = [*(field.name for field in fields(TUNING)), *benchmark.MODULE_NUMBERS]
    missing = [name for name in names if (name, str(benchmark.value_of(name))) not in rows]
    assert not missing, "measure these, as benchmarks/ablation.py says"


def test_no_row_is_of_an_old_value_or_name(benchmark):
    names = {*(field.name for field in fields(TUNING)), *benchmark.MODULE_NUMBERS}
    old = [
        (title, name, value)
        for title, name, value, _ in rows_of_the_page()
        if name not in names or value != str(benchmark.value_of(name))
    ]
    assert not old, "measure these again, as benchmarks/ablation.py says"


def test_a_number_that_no_fit_of_its_table_reads_is_told_of():
    text = (ROOT / "doc" / "development" / "kmeans_engine.md").read_text(encoding="utf-8")
    told = set(re.findall(r"`(\w+)`", text.partition(TOLD)[2].partition("\n## ")[0]))
    moved, all_rows = set(), set()
    for _, name, _, rest in rows_of_the_page():
        all_rows.add(name)
        if rest.count("the same fits") < 2:
            moved.add(name)
    assert all_rows - moved <= told


def test_every_number_is_in_one_table_that_is_measured(benchmark):
    titles = set(benchmark.TITLES) - {benchmark.PIECES, benchmark.PAIRS}
    names = [name for title in titles for name in benchmark.names_of(title)]
    assert sorted(names) == sorted([*(f.name for f in fields(TUNING)), *benchmark.MODULE_NUMBERS])


@pytest.mark.parametrize(
    ("value", "halved", "doubled"),
    [(4, 2, 8), (1, 1, 2), (0.5, 0.25, 1.0), ((0.02, 0.2), (0.01, 0.1), (0.04, 0.4))],
)
def test_halves_and_doubles(benchmark, value, halved, doubled):
    assert benchmark.scaled(value, 0.5) == halved
    assert benchmark.scaled(value, 2.0) == doubled


def test_of_parts_that_are_kept_the_rest_is_scaled(benchmark):
    assert np.allclose(benchmark.scaled((0.999, 0.4), 0.5), (0.9995, 0.7))
    assert np.allclose(benchmark.scaled((0.999, 0.4), 2.0), (0.998, 0.05))


def test_rows_measured_again_take_the_place_of_old_ones(benchmark, tmp_path):
    page, title = tmp_path / "page.md", benchmark.NUMBERS
    table = "| number | value | halved |\n|---|---|---|"
    old = f"{title}\n\nAbout.\n\n{table}\n| center_share | 1 | a |\n| evidence | 2 | b |"
    benchmark.written(page, title, old)
    benchmark.written(page, benchmark.CHOICE, f"{benchmark.CHOICE}\n\nOther.")
    lines = [*table.splitlines(), "| evidence | 3 | c |", "| leaf_reach | 4 | d |"]
    benchmark.written(page, title, benchmark.among_others(page, title, lines))
    _, sections = benchmark.sections(page)
    assert sections[benchmark.CHOICE].endswith("Other.")
    assert sections[title].endswith(
        f"{table}\n| center_share | 1 | a |\n| leaf_reach | 4 | d |\n| evidence | 3 | c |"
    )


@pytest.mark.slow
def test_every_piece_can_be_taken_out(benchmark):
    """The names and the arguments of what is replaced are those of the engine."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.3, 0.3, (4, 12))[rng.integers(4, size=500)]
    X += 0.01 * rng.standard_t(2.0, size=X.shape)
    model = DPKMeans(4, epsilon=9.0, bounds=1.0, random_state=0)
    for name, pieces in benchmark.VARIANTS.items():
        with benchmark.replaced(pieces):
            assert np.isfinite(model.fit(X).cluster_centers_).all(), name
