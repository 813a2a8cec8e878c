"""Flower: the same fit through real processes. Needs the extra `federated`."""

import importlib.util
import shutil
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from sklearn_dp import FederatedDPKMeans, PrivacyLedger
from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp.federated._clients import is_grid

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "federated_flower.py"


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_flower_gives_the_same_bits_as_the_local_engine():
    pytest.importorskip("flwr")
    if shutil.which("flower-superlink", path=str(Path(sys.executable).parent)) is None:
        pytest.skip("no flower-superlink beside the interpreter")
    spec = importlib.util.spec_from_file_location("federated_flower", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    found = example.run_flower(2)
    assert found.keys() == {"server", "clients"}
    for noise, fit in found.items():
        assert np.array_equal(np.array(fit["centers"]), example.fit_here(noise, 2).cluster_centers_)
        assert [line["kind"] for line in fit["communication"]] == ["moment", "weights", "lift"]
    centers = [np.array(fit["centers"]) for fit in found.values()]
    assert not np.array_equal(*centers)


class Grid:
    """One node answers twice, one fails, one is silent, two send what cannot be read."""

    def get_node_ids(self):
        return [3, 1, 2, 5, 4]

    def send_and_receive(self, messages, *, timeout):
        assert messages == [1, 2, 3, 4, 5] and timeout == 5.0
        other, broken = reply(4, 0), reply(5, 0)
        other.content = {"something": 1}
        broken.content = {"answer": {"weights": "no array"}}
        return [reply(1, 10), reply(1, 99), reply(3, 0, failed=True), other, broken]


def reply(node, value, failed=False):
    array = types.SimpleNamespace(numpy=lambda: np.array([value]))
    return types.SimpleNamespace(
        metadata=types.SimpleNamespace(src_node_id=node),
        has_error=lambda: failed,
        content={"answer": {"weights": array}},
    )


def test_a_grid_without_nodes_is_refused_before_anything_is_charged():
    grid = Grid()
    grid.get_node_ids = list
    ledger = PrivacyLedger(PrivacyBudget(epsilon=1.0, delta=1e-6), unit="group")
    with pytest.raises(RuntimeError, match="no node"):
        FederatedDPKMeans(2, ledger=ledger).fit_clients(grid, n_features=3)
    assert ledger.entries == ()


def test_flower_is_no_dependency_of_the_package():
    """A grid is told from its methods, and from nothing that a sequence of arrays has."""
    assert is_grid(Grid()) and not is_grid([np.zeros((2, 2))]) and not is_grid({"a": np.zeros(2)})
