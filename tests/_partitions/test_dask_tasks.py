"""Tasks of collections of Dask, and clients that are closed before a fit, or during one."""

import contextlib
import warnings

import numpy as np
import pandas as pd
import pytest
from estimators import all_estimators
from partition_tools import ROWS, again_and_first, passes, quotes_nothing, shuffled, sums, table_of

from sklearn_dp import DPKMeans
from sklearn_dp._partitions import engine_of
from sklearn_dp.exceptions import PartError
from sklearn_dp.ledger import PrivacyBudget, PrivacyLedger

dask = pytest.importorskip("dask", reason="needs the extra dask")
da = pytest.importorskip("dask.array", reason="needs the extra dask")
dd = pytest.importorskip("dask.dataframe", reason="needs the extra dask")

GONE = "^{}: the Dask client that holds it is closed or gone"


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


def long_ids(number):
    """Some 14 MB in all: Dask warns of graphs from 10 MB on."""
    return [f"{number} {row} {'x' * 2_400_000}" for row in range(3)]


@pytest.mark.slow
def test_no_warning_tells_how_large_ids_of_groups_are():
    distributed = pytest.importorskip("distributed", reason="needs the extra dask")
    options = {"processes": False, "n_workers": 1, "threads_per_worker": 1}
    with (
        distributed.Client(**options, dashboard_address=None) as client,
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        client.submit(len, "x" * 14_000_000).result()  # there is such a warning
        assert any("MiB" in str(warning.message) for warning in caught)
        caught.clear()
        rows = [dask.delayed(np.zeros)((3, 2)) for _ in range(2)]
        ids = [dask.delayed(long_ids)(number) for number in range(2)]
        DPKMeans(2, bounds=1.0).fit(rows, groups=ids)
        assert [w.message for w in caught if "MiB" in str(w.message)] == []
