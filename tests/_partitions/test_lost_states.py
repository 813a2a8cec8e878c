"""States that are lost and made again: the same bits, or an error where a source has changed.

A row that two parts have had, one after the other, would count twice.
"""

import os
import signal
import sys
from dataclasses import replace

import numpy as np
import pytest
from lost_state_tools import (
    N_PARTS,
    any_order,
    dask_parts,
    on_dask,
    on_ray,
    on_spark,
    piece,
    same_order,
)
from partition_tools import ROOT, quotes_nothing
from sklearn.linear_model import Ridge

from sklearn_dp import DPKMeans, SampleAndAggregate, _fit
from sklearn_dp._partitions._ray import from_references
from sklearn_dp._rows.table import Table
from sklearn_dp.exceptions import PartError

TESTS = str(ROOT / "tests")
RNG = np.random.default_rng(0)
TABLE = {
    "X": RNG.normal(size=(200, 3)),
    "groups": RNG.integers(0, 40, 200),
    "sample_weight": RNG.uniform(size=200),
}
ENGINES = {"dask": on_dask, "ray": on_ray, "spark": on_spark}
OF = {"dask": list(TABLE), "ray": list(TABLE), "spark": ["X"]}


def weighted_sums(part):
    steps = np.rint(part.source.read() * 2**20).astype(np.int64)
    weights = np.ones(len(steps), np.int64) if part.units.weights is None else part.units.weights
    return part, ((steps * weights[:, None]).sum(axis=0), weights.sum(), len(steps))


def totals(engine, monkeypatch, changing, names):
    found = ENGINES[engine](monkeypatch, changing, **{name: TABLE[name] for name in names})
    table = found.opened(None)
    return [[np.asarray(total).tolist() for total in table.sums(weighted_sums)] for _ in range(2)]


@pytest.mark.parametrize(
    ("engine", "changing"), [(engine, name) for engine, names in OF.items() for name in names]
)
def test_a_state_made_of_other_values_is_refused(engine, changing, monkeypatch):
    """A shuffle of an unseeded order: each part has other rows, groups or weights each time."""
    with pytest.raises(PartError, match=rf"^{changing}, part \d: its \w+ have changed") as caught:
        totals(engine, monkeypatch, changing, OF[engine])
    assert quotes_nothing(caught.value)


def test_targets_that_change_are_refused(monkeypatch):
    import dask

    monkeypatch.setattr(dask, "persist", lambda *collections: collections)
    X, order = TABLE["X"], dask.delayed(np.random.default_rng().permutation, pure=False)(200)
    parts = [dask.delayed(piece) for piece in np.split(X, N_PARTS)]
    y = [dask.delayed(np.split)(order, N_PARTS)[number] for number in range(N_PARTS)]
    model = SampleAndAggregate(
        Ridge(), output=("coef_",), n_blocks=9, aggregator="mean", output_bounds=5.0
    )
    with pytest.raises(PartError, match=r"^y, part \d: its values have changed"):
        model.fit(parts, y)


@pytest.mark.parametrize("engine", ["dask", "ray"])
def test_a_fit_without_any_memory_has_the_same_bits(engine, monkeypatch):
    found = ENGINES[engine](monkeypatch, None, **TABLE)
    own = _fit.engine_of
    monkeypatch.setattr(_fit, "engine_of", lambda X, *_: found if X is None else own(X))
    model = DPKMeans(2, bounds=4.0, max_weight=1.0, random_state=0)
    beside = {name: TABLE[name] for name in ("groups", "sample_weight")}
    in_parts = model.fit(None, **beside).cluster_centers_
    monkeypatch.undo()
    assert np.array_equal(in_parts, model.fit(TABLE["X"], **beside).cluster_centers_)


# -- clusters --------------------------------------------------------------------------------------


def killing(client, monkeypatch, after=3):
    """After some passes both workers are killed: of one, what the other has may be all it takes."""
    passed, sums = [], Table.sums

    def seen(table, *arguments):
        found = sums(table, *arguments)
        passed.append(arguments)
        if len(passed) == after:
            for process in client.run(os.getpid).values():
                os.kill(process, signal.SIGKILL)
        return found

    monkeypatch.setattr(Table, "sums", seen)


@pytest.mark.slow
@pytest.mark.parametrize("changing", [None, *TABLE])
def test_workers_of_dask_are_killed_in_a_fit(changing, monkeypatch):
    """Rows were counted none to two times, and nothing was said."""
    distributed = pytest.importorskip("distributed")
    model = DPKMeans(2, bounds=4.0, max_weight=1.0, random_state=0)
    known = model.fit(**TABLE).cluster_centers_
    options = {"n_workers": 2, "threads_per_worker": 1, "silence_logs": 50}
    with distributed.Client(**options, dashboard_address=None) as client:
        killing(client, monkeypatch)
        if changing is None:
            assert np.array_equal(model.fit(**dask_parts(None, **TABLE)).cluster_centers_, known)
            return
        with pytest.raises(PartError, match=rf"^{changing}, part \d: its \w+ have ch") as caught:
            model.fit(**dask_parts(changing, **TABLE))
    assert quotes_nothing(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("changing", [None, *TABLE])
def test_a_node_of_ray_is_gone(changing):
    """Beside the node of the program there is one for all of the tasks, then another one."""
    ray = pytest.importorskip("ray", reason="needs the extra ray")
    from ray.cluster_utils import Cluster

    paths = {"PYTHONPATH": os.pathsep.join([TESTS, *sys.path])}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    node = cluster.add_node(num_cpus=2)
    ray.init(address=cluster.address, log_to_driver=False, runtime_env={"env_vars": paths})
    try:
        cut = ray.remote(piece)
        # Long enough to be kept by the node: what is short, the program keeps.
        values = {name: np.repeat(held, 1000, axis=0) for name, held in TABLE.items()}
        parts = {}
        for name, held in values.items():
            order = ray.remote(any_order if name == changing else same_order).remote(len(held))
            parts[name] = [cut.remote(held, order, number) for number in range(N_PARTS)]
        found = replace(from_references(*parts.values()), grouped=True, weighted=True)
        table = found.opened(None)
        first = table.sums(weighted_sums)
        cluster.remove_node(node)
        cluster.add_node(num_cpus=2)
        if changing is None:
            assert np.array_equal(table.sums(weighted_sums)[0], first[0])
            return
        with pytest.raises(PartError, match=rf"^{changing}, part \d: its \w+ have ch") as caught:
            table.sums(weighted_sums)
        assert quotes_nothing(caught.value)
    finally:
        ray.shutdown()
        cluster.shutdown()
