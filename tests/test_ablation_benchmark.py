"""No number of the k-means engine without a row of the ablation, and no row of an old value."""

import ast
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
NOT_TUNED = {  # constants of modules that are no numbers to choose
    "block_kmeans._ITERATIONS": "of the plain k-means of a block, for DPKTupleKMeans",
    "block_kmeans._TOLERANCE": "the same",
    "block_kmeans._TRIALS": "the same",
    "candidates.MOST_CHOICES": "what a user may ask for",
    "cell_grid._TABLE_BITS": "speed: the bits are the same",
    "cell_tree.MOST_BITS_A_LEVEL": "memory",
    "cell_tree.MOST_BITS": "what an integer holds",
    "cell_tree._SHOWN": "above any noise",
    "days._DISTANCES": "of partial_fit: no cell of the table is fitted day by day",
    "days._EARLIER": "the same",
    "days._FADE": "the same",
    "days._FORGOTTEN": "the same",
    "days._LONGER": "the same",
    "days._QUIET": "the same",
    "days._STILL": "the same",
    "days._WINDOW": "the same",
    "gap._LEAST_POINTS": "fewer points have no gap",
    "gap._MOST_ENTRIES": "speed: the bits are the same",
    "gap._MOST_POINTS": "speed: half or twice of it changes no choice",
    "projection._TIMES": "where a projection may pay is public: features over those of it",
    "quality._OUTSIDE": "of the last release: no center depends on it",
    "caps._CLEAR": "of errors: no center depends on it",
    "caps._SEEN": "follows from the number of windows that are tried",
    "caps._SEEN_THERE": "the same, of one window",
    "caps._HIDDEN": "of errors: no center depends on it",
    "caps._PILED": "the same",
    "caps._HEAVY_POWER": "the same",
    "caps._LEAST_POWER": "the same",
    "caps._LIKELY_POWER": "the same",
    "quality._MUCH": "the same",
    "quality._VISIBLE": "the same",
    "private_coreset._SAFE": "rounding",
    "n_clusters._LEAST": "rounding",
    "status._MISSED": "of the advice in words; no status depends on it",
    "status._NOISE": "of the advice in words; no status depends on it",
    "communication_cost._WORDS": "bytes",
    "communication_cost._NUMBER": "bytes",
    "communication_cost._CELL": "bytes",
    "communication_cost._GROUP": "bytes",
    "communication_cost._NORMS": "bins of another room",
    "communication_cost._DIGESTS": "bytes of a message",
}


def rows_of_the_page():
    """(title, name, value, what it says) of each row of a number."""
    for section in re.split(r"^(?=## )", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        title, _, text = section.partition("\n")
        for name, value, rest in re.findall(r"^\| (\w+) \| ([^|]+) \|(.*)$", text, re.MULTILINE):
            if title != "## Pieces" and name != "number":
                yield title, name, value.strip(), rest


def constants():
    """Numbers that modules of the engine give a name, but for the tuned ones."""
    for path in sorted(ENGINE.glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and not any(
                isinstance(part, ast.Name | ast.Call | ast.List | ast.Dict)
                or (isinstance(part, ast.Constant) and not isinstance(part.value, int | float))
                for part in ast.walk(node.value)
            ):
                names = [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]
                yield from (f"{path.stem}.{name}" for name in names)


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


def test_constants_of_modules_have_a_row_or_a_reason():
    rows = {name for _, name, _, _ in rows_of_the_page()}
    found = set(constants())
    assert {name for name in found if name.partition(".")[2] not in rows} == set(NOT_TUNED)
    # A number of a module is seen; so are tuples of numbers, and what is computed of numbers.
    assert {"cell_tree.MOST_BITS", "cell_tree._SHOWN", "private_coreset._SAFE"} <= found


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
