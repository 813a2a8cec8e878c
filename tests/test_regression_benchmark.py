"""The comparison with stored ratios, and that it sees noise which is larger than it should be."""

import json

import numpy as np
import pytest
from benchmark_tools import benchmark_module

from sklearn_dp._privacy._noise import NoiseSource


@pytest.fixture(scope="module")
def benchmark():
    return benchmark_module("regression")


@pytest.mark.parametrize(
    ("kind", "stored", "value", "word"),
    [
        ("cost", 1.2, 1.2, "ok"),
        ("cost", 1.2, 1.29, "ok"),
        ("cost", 1.2, 1.31, "WORSE"),
        ("cost", 1.2, 1.05, "better"),
        ("cost", 1.0, 1.0019, "ok"),
        ("cost", 1.0, 1.01, "WORSE"),
        ("cost", 1.2, float("nan"), "WORSE"),
        ("error", 2.0, 2.5, "ok"),
        ("error", 2.0, 2.7, "WORSE"),
        ("error", 2.0, 1.0, "better"),
        ("cpu", 0.5, 1.4, "ok"),
        ("cpu", 0.5, 1.6, "WORSE"),
        ("cpu", None, 1.0, "new"),
    ],
)
def test_verdicts(benchmark, kind, stored, value, word):
    assert benchmark.verdict(kind, stored, value) == word


def test_a_cell_on_one_side_only_is_told(benchmark, capsys):
    table = {"gone": {"kind": "cpu", "ratio": 1.0}, "kept": {"kind": "cpu", "ratio": 1.0}}
    measured = {"kept": ("cpu", 1.1), "added": ("cpu", 1.0)}
    assert benchmark.compare(measured, table) == ["gone", "added"]
    assert "added" in capsys.readouterr().out


def test_the_table_holds_every_cell(benchmark):
    table = json.loads(benchmark.TABLE.read_text(encoding="utf-8"))
    assert {name.rpartition(": ")[0] for name in table} == set(benchmark.CELLS)
    assert all(row["kind"] in benchmark.MARGIN for row in table.values())


@pytest.mark.slow
def test_noise_half_as_large_again_is_worse(benchmark, monkeypatch):
    """What `make regression` is for, on its quickest cell; the others see it as well."""
    name = "DPKMeans, n=20000 d=2 k=8, epsilon=0.1"
    stored = json.loads(benchmark.TABLE.read_text(encoding="utf-8"))[f"{name}: median"]["ratio"]
    original = NoiseSource.rounded_gaussian

    def louder(self, sigma, size=None):
        return original(self, 1.5 * np.asarray(sigma), size)

    monkeypatch.setattr(benchmark, "CELLS", {name: benchmark.CELLS[name]})
    kind, honest = benchmark.measure()[f"{name}: median"]
    assert benchmark.verdict(kind, stored, honest) == "ok"
    monkeypatch.setattr(NoiseSource, "rounded_gaussian", louder)
    kind, spoiled = benchmark.measure()[f"{name}: median"]
    assert benchmark.verdict(kind, stored, spoiled) == "WORSE"


def test_check_and_update(benchmark, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(benchmark, "TABLE", tmp_path / "ratios.json")
    monkeypatch.setattr(benchmark, "CELLS", {"cell": lambda: {"cpu": ("cpu", 2.0)}})
    assert benchmark.main([]) == 1  # nothing is stored
    assert benchmark.main(["--update"]) == 0
    assert json.loads(benchmark.TABLE.read_text()) == {"cell: cpu": {"kind": "cpu", "ratio": 2.0}}
    assert benchmark.main(["--check"]) == 0
    monkeypatch.setattr(benchmark, "CELLS", {"cell": lambda: {"cpu": ("cpu", 7.0)}})
    assert benchmark.main(["--check"]) == 1
    assert "cell: cpu" in capsys.readouterr().err
