"""Tasks of collections of Dask, and clients that are closed before a fit, or during one."""

import contextlib

import numpy as np
import pandas as pd
import pytest
from partition_tools import (
    ROWS,
    again_and_first,
    passes,
    quotes_nothing,
    shuffled,
    sums,
    table_of,
)

from sklearn_dp._partitions import engine_of
from sklearn_dp._partitions._dask_tasks import check_clients, futures, own_tasks
from sklearn_dp.audit import all_estimators
from sklearn_dp.exceptions import PartError
from sklearn_dp.ledger import PrivacyBudget, PrivacyLedger

dask = pytest.importorskip("dask", reason="needs the extra dask")
da = pytest.importorskip("dask.array", reason="needs the extra dask")
dd = pytest.importorskip("dask.dataframe", reason="needs the extra dask")

GONE = "^{}: the client of Dask that holds it is closed or gone"


def test_collections_without_a_client_hold_no_futures():
    for X in (da.ones((4, 2), chunks=2).persist(), dd.from_pandas(pd.DataFrame(ROWS), 2)):
        assert list(futures([X])) == []
        check_clients("X", [X])


def test_parts_that_share_a_task_have_no_tasks_of_their_own():
    one = dask.delayed(np.ones, pure=True)((3, 2))
    assert own_tasks([one + 1, one + 2]) is None
    assert [len(own()) for own in own_tasks([dask.delayed(np.ones)((n, 2)) for n in (3, 5)])] == [
        3, 5,
    ]  # fmt: skip


@contextlib.contextmanager
def connected():
    distributed = pytest.importorskip("distributed", reason="needs the extra dask")
    with distributed.Client(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    ) as client:
        yield client


KINDS = [kind for _, kind in all_estimators() if hasattr(kind(), "fit_partitions")]
KEPT = {
    "array": lambda client: da.from_array(ROWS, chunks=60).persist(),
    "frame": lambda client: dd.from_pandas(pd.DataFrame(ROWS), npartitions=2).persist(),
    "delayed": lambda client: list(dask.persist(dask.delayed(np.array)(ROWS))),
    "future": lambda client: [dask.delayed(client.submit(np.array, ROWS))],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", KEPT)
def test_a_client_that_is_closed_before_a_fit_is_named_before_the_charge(name):
    ledger = PrivacyLedger(PrivacyBudget(epsilon=3.0, delta=1e-5))
    with connected() as client:
        X = KEPT[name](client)
        found, before = engine_of(X), ledger.remaining
    for kind in KINDS:
        with pytest.raises(PartError, match=GONE.format("X")) as caught:
            kind(ledger=ledger).fit(X)
        assert ledger.remaining == before and quotes_nothing(caught.value)
    with pytest.raises(PartError, match=GONE.format("X")) as caught:  # closed after the charge
        passes(found)
    assert quotes_nothing(caught.value)


@pytest.mark.slow
def test_groups_whose_client_is_closed_are_named():
    with connected() as client:
        groups = [dask.delayed(client.submit(np.arange, len(ROWS)))]
    for given in ({"groups": groups}, {"sample_weight": groups}):
        with pytest.raises(PartError, match=GONE.format(*given)):
            engine_of([dask.delayed(ROWS)], **given)


@pytest.mark.slow
@pytest.mark.parametrize("name", KEPT)
def test_a_client_that_is_closed_in_the_middle_of_a_fit_is_named(name):
    with connected() as client:
        table = table_of(engine_of(KEPT[name](client)))
        table.update(again_and_first)
        new = shuffled(table)
        table.sums(sums, 1)
        new.sums(sums, 1)
    for lost in (table, new):
        with pytest.raises(PartError, match=GONE.format("X")) as caught:
            lost.sums(sums, 1)
        assert quotes_nothing(caught.value)


@pytest.mark.slow
def test_a_future_that_is_cancelled_is_gone():
    with connected() as client:
        future = client.submit(np.array, ROWS)
        X = [dask.delayed(future)]
        check_clients("X", X)
        client.cancel([future])
        with pytest.raises(PartError, match=GONE.format("X")):
            check_clients("X", X)
