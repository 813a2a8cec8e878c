"""Bad parts, for every estimator that takes parts: a typed error, no data in it, and who pays.

What types and shapes tell is refused before the charge. What takes a look at a part, but for the
columns of the first, is paid for: the ledger has been charged when a part is read.
"""

import warnings
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
from estimators import all_estimators
from partition_tools import SECRET, quotes_nothing
from scipy.sparse import csr_array

from sklearn_dp import DPKMeans
from sklearn_dp.exceptions import PartError
from sklearn_dp.ledger import PrivacyBudget, PrivacyLedger

X = np.full((12, 3), SECRET) + np.arange(36).reshape(12, 3)
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
IDS = np.arange(12) // 2
KINDS = {
    name: kind
    for name, kind in all_estimators()
    if hasattr(kind(), "fit_partitions")  # some have to have a setting for it: not by default
}


def with_entry(value):
    rows = X.astype(object)
    rows[5, 1] = value
    return rows


def unreadable():
    raise KeyError(SECRET)


def given(value):
    return value if callable(value) else lambda: value


BAD = {  # the second part, and what is said of it
    "another width": (X[:, :2], "its number of columns differs from that of X"),
    "no columns": (X[:, :0], "0 feature"),
    "one dimension": (X[:, 0], "Expected 2D array"),
    "three dimensions": (X[None], "dim 3"),
    "NaN": (with_entry(np.nan).astype(float), "Input X contains NaN"),
    "infinity": (with_entry(-np.inf).astype(float), "contains infinity"),
    "texts": (np.char.add(X.astype(str), "m"), "X must be numeric"),
    "a text": (with_entry(f"{SECRET}m"), "X must be numeric"),
    "an object": (with_entry(object()), "argument must be"),
    "a list inside": (with_entry([SECRET]), "X must be"),
    "too large": (with_entry(10**400), "X"),
    "complex": (X + 1j, "[Cc]omplex"),
    "sparse": (csr_array(X), "sparse"),
    "ragged": ([[SECRET, 1.0, 2.0], [SECRET]], "X must be"),
    "None": (None, "Expected 2D array"),
    "a number": (SECRET, "Expected 2D array"),
    "an error": (unreadable, r"it could not be read \(KeyError\)\.$"),
}
BAD_NAMES = {
    "other names": (FRAME.rename(columns={"a": "d"}), "its column names"),
    "other names of polars": (pl.DataFrame(X, schema=["a", "b", "d"]), "its column names"),
}
BAD_GROUPS = {
    "too few": (IDS[1:], "it must have one entry for each row"),
    "an error": (unreadable, r"it could not be read \(KeyError\)\.$"),
    "NaN": ([*IDS[1:].tolist(), np.nan], ""),
    "None": ([*IDS[1:].tolist(), None], ""),
    "lists": ([[i] for i in IDS.tolist()], ""),
}
BAD_WEIGHTS = {
    "too few": (IDS[1:], "it must have one entry for each row"),
    "an error": (unreadable, r"it could not be read \(KeyError\)\.$"),
    "negative": (-X[:, 0], ""),
    "NaN": (with_entry(np.nan).astype(float)[:, 1], ""),
    "texts": (X[:, 0].astype(str).tolist()[1:] + [f"{SECRET}m"], ""),
}


def fits():
    """What reads a table in parts and pays for it: each gives a ledger, and a call."""
    budget = PrivacyBudget(epsilon=9.0, delta=1e-3)
    for name, kind in KINDS.items():
        # With few rows, what measures columns ends without bounds after its first pass.
        of_columns = ("FriendlyMean", "FriendlyCovariance", "DPStandardScaler")
        options = {"bounds": 1e5} if name in of_columns else {}
        options |= {"diameter": 100.0} if name == "FriendlyMean" else {}
        options |= {"max_weight": 1e9} if weighted(name) else {}
        for grouped in (False, True):
            ledger = PrivacyLedger(budget, unit="group" if grouped else "row")
            yield name, grouped, ledger, kind(ledger=ledger, **options).fit_partitions
    fitted = centers()
    for grouped in (False, True):
        fitted.ledger = PrivacyLedger(budget, unit="group" if grouped else "row")
        yield "private_score", grouped, fitted.ledger, fitted.private_score


@cache
def centers():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return DPKMeans(2, bounds=1.0).fit(X)


def refused(parts, words, *, paid, kind=PartError, groups=None, weights=None):
    """Every fit refuses the parts, and reads those after the first when it has been charged."""
    tried = 0
    for name, grouped, ledger, fit in fits():
        if grouped != (groups is not None) or (weights is not None and not weighted(name)):
            continue
        if not paid and name == "private_score" and not parts:  # a table in memory: it pays first
            continue
        beside = {} if groups is None else {"groups": groups}
        beside |= {} if weights is None else {"sample_weight": weights}
        read = [parts[0], *(charged(part, ledger) for part in parts[1:])] if paid else parts
        with pytest.raises(kind, match=words) as caught:
            fit(read, **beside)
        assert quotes_nothing(caught.value), name
        assert bool(ledger.entries) == paid, name
        tried += 1
    assert tried >= (6 if weights is not None else 11)


def weighted(name):
    return "max_weight" in KINDS[name]().get_params() if name in KINDS else False


def charged(part, ledger):
    def read():
        assert ledger.entries
        return part()

    return read


@pytest.mark.parametrize("name", BAD)
def test_a_bad_part_is_paid_for(name):
    bad, words = BAD[name]
    refused([lambda: X, given(bad)], f"^X, part 1: .*{words}", paid=True)


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_part_with_other_names_is_paid_for(name):
    bad, words = BAD_NAMES[name]
    refused([lambda: FRAME, given(bad)], f"^X, part 1: .*{words}", paid=True)


@pytest.mark.parametrize("name", BAD_GROUPS)
def test_bad_groups_of_a_part_are_paid_for(name):
    bad, words = BAD_GROUPS[name]
    words = f"^groups, part 1: .*{words}" if words else "part 1"
    groups = [lambda: IDS, given(bad)]
    refused([lambda: X, lambda: X], words, paid=True, groups=groups)


@pytest.mark.parametrize("name", BAD_WEIGHTS)
def test_bad_weights_of_a_part_are_paid_for(name):
    bad, words = BAD_WEIGHTS[name]
    words = f"^sample_weight, part 1: .*{words}" if words else "part 1"
    weights = [lambda: np.ones(12), given(bad)]
    refused([lambda: X, lambda: X], words, paid=True, weights=weights)


def test_no_rows_in_any_part_are_paid_for():
    words = "^X: Found array with 0 sample"
    refused([lambda: X[:0], lambda: X[:0]], words, paid=True, kind=ValueError)


def test_rows_that_change_are_paid_for():
    """Those of the last part, whenever a pass finds out."""
    turns = []

    def changing():
        turns.append(1)
        return X + len(turns)

    groups = [lambda: IDS, lambda: IDS]
    for beside in ({}, {"groups": groups}):
        refused([lambda: X, changing], "^X, part 1: its rows have changed", paid=True, **beside)


class Bag:
    """A collection of another library, which is no table."""

    __module__ = "dask.bag.core"


FREE = {
    "no parts": ([], ValueError, "^parts? must not be empty|0 sample|2D"),
    "another collection": (Bag(), TypeError, "^X must not be of type Bag.*dask.array.Array"),
    "no columns": ([X[:, :0], X], PartError, "^X, part 0: .*0 feature"),
    "one dimension": ([lambda: X[:, 0], lambda: X], PartError, "^X, part 0: .*2D"),
    "a part that is no table": ([lambda: 3.0, lambda: X], PartError, "^X, part 0: .*2D"),
    "an error": ([unreadable, lambda: X], PartError, r"^X, part 0: .*\(KeyError\)"),
    "no such file": (f"{SECRET}.parquet", ValueError, "^X must be a table, or the path"),
    "a sparse part": ([csr_array(X), csr_array(X)], PartError, "^X, part 0: .*sparse"),
    "a complex part": ([X + 1j, X], PartError, "^X, part 0: .*[Cc]omplex"),
}


@pytest.mark.parametrize("name", FREE)
def test_what_types_and_shapes_tell_is_free(name):
    parts, kind, words = FREE[name]
    refused(parts, words, paid=False, kind=kind)


@pytest.mark.parametrize(
    ("groups", "kind", "words"),
    [
        ([IDS], ValueError, "their number differs"),
        (IDS, TypeError, "not ndarray"),
        ([1, 2], TypeError, "it contains int"),
        (SECRET, TypeError, "not float"),
    ],
)
def test_groups_and_weights_that_are_not_in_parts_are_free(groups, kind, words):
    parts = [lambda: X, lambda: X]
    refused(parts, f"^groups must be a list .*{words}", paid=False, kind=kind, groups=groups)
    words = f"^sample_weight must be a list .*{words}"
    refused(parts, words, paid=False, kind=kind, weights=groups)
