"""Tables in every container, and what is no table of numbers, for several test files."""

from collections import deque, namedtuple
from enum import Enum

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse as sp

ROWS = [[1.0, 2.0], [3.5, -4.0], [0.1, 2.0**60]]
TABLE = np.array(ROWS)
FRAME = pd.DataFrame(ROWS, columns=["a", "b"])
Row = namedtuple("Row", "a b")

LISTS = {
    "list": list,
    "tuples": lambda rows: tuple(map(tuple, rows)),
    "deque": deque,
    "deque of deques": lambda rows: deque(map(deque, rows)),
    "namedtuples": lambda rows: [Row(*row) for row in rows],
    "arrays": lambda rows: [*map(np.array, rows)],
    "arrays of objects": lambda rows: [np.array(row, dtype=object) for row in rows],
    "arrays of no axes": lambda rows: [[np.array(value) for value in row] for row in rows],
    "series": lambda rows: [pd.Series(row, index=["a", "b"]) for row in rows],
    "polars series": lambda rows: [*map(pl.Series, rows)],
    "arrow arrays": lambda rows: [*map(pa.array, rows)],
    "mixed": lambda rows: [tuple(rows[0]), np.array(rows[1]), *map(pd.Series, rows[2:])],
}
"""Lists of rows: nothing has a type of its own."""

TABLES = {
    "array": TABLE,
    "Fortran": np.asfortranarray(TABLE),
    "objects": TABLE.astype(object),
    "masked, no mask": np.ma.masked_array(TABLE),
    "frame": FRAME,
    "frame of objects": FRAME.astype(object),
    "half of objects": FRAME.astype({"b": object}),
    "nullable": FRAME.astype("Float64"),
    "arrow in pandas": FRAME.astype("float64[pyarrow]"),
    "categories": FRAME.astype("category"),
    "sparse columns, one dense": FRAME.astype({"b": pd.SparseDtype(float)}),
    "columns that leave out NaN": FRAME.astype(pd.SparseDtype(float)),
    "columns that leave out ones": FRAME.astype(pd.SparseDtype(float, 1.0)),
    "polars": pl.DataFrame(FRAME),
    "polars integers": pl.DataFrame({"a": [1.0, 3.5, 0.1], "b": [2, -4, 2**60]}),
    "wide integers": pl.DataFrame(
        {"a": [1.0, 3.5, 0.1], "b": pl.Series([2, -4, 2**60], dtype=pl.Int128)}
    ),
    "arrow": pa.Table.from_pandas(FRAME),
    "record batch": pa.RecordBatch.from_pandas(FRAME),
    **{name: make(ROWS) for name, make in LISTS.items()},
}


NO_TABLES = {
    "a dict": {"a": [1.0]}, "a text": "ab", "a set": {1.0}, "a generator": (row for row in ROWS),
    "an iterator": iter(ROWS), "a number": 5.0, "None": None, "a class": np.ndarray,
    "a function": deque.append, "a range": range(4), "a series": FRAME["a"], "polars series":
    pl.Series([1.0]), "arrow array": pa.array([1.0]), "dict rows": [{"a": 1.0, "b": 2.0}],
    "texts": ["ab", "cd"], "a vector": [1.0, 2.0], "no axes": np.array(1.0), "empty": [],
    "three axes": np.ones((1, 2, 2)), "np.matrix": np.asmatrix(TABLE), "bytes": b"abc",
    "no columns": TABLE[:, :0], "no columns of a frame": FRAME[[]],
    "fields": TABLE.view("f8,f8").ravel(),
    "sparse line": sp.coo_array(TABLE[0]), "a buffer": memoryview(TABLE),
    "twice": pd.DataFrame(TABLE, columns=["a", "a"]), "twice a number":
    pd.DataFrame(TABLE, columns=[0, 0]), "mixed names": pd.DataFrame(TABLE, columns=["a", 0]),
}  # fmt: skip


DATES = pd.to_datetime(["2020-01-01"] * 3)
OTHERS = {
    "dates": DATES.to_numpy()[:, None], "days": DATES.to_numpy().astype("M8[D]")[:, None],
    "spans": np.ones((3, 1), "m8[s]"), "pandas": pd.DataFrame({"t": DATES}),
    "beside a number": pd.DataFrame({"t": DATES, "x": 1.0}), "with a zone":
    pd.DataFrame({"t": DATES.tz_localize("UTC")}), "periods": pd.DataFrame({"t":
    pd.period_range("2020", periods=3)}), "spans of pandas": pd.DataFrame({"t": DATES - DATES[0]}),
    "categories": pd.DataFrame({"t": DATES.astype("category")}),
    "categories of days": pd.DataFrame({"t": pd.Categorical(DATES.date)}),
    "categories of bytes": pd.DataFrame({"t": pd.Categorical([b"a", b"b"])}),
    "categories of tuples": pd.DataFrame({"t": pd.Categorical([(1, 2), (3,)])}),
    "categories of members": pd.DataFrame({"t": pd.Categorical([Enum("Color", "RED").RED])}),
    "arrow in pandas": pd.DataFrame({"t": DATES}).convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.DataFrame({"t": DATES.to_list()}), "polars, missing": pl.DataFrame({"t": [None,
    *DATES.to_list()]}), "polars days": pl.DataFrame({"t": DATES.date.tolist()}),
    "polars spans": pl.DataFrame({"t": (DATES - DATES[0]).to_pytimedelta().tolist()}),
    "arrow": pa.table({"t": DATES.to_numpy()}), "intervals": pd.DataFrame({"t":
    pd.cut(pd.Series([1, 2, 3]), 2)}), "complex": TABLE * 1j, "bytes": TABLE.astype("S"),
    "lists": pl.DataFrame({"t": [[1], [2]]}), "structures": pl.DataFrame({"t": [{"a": 1}]}),
    "sparse complex": sp.csr_array(TABLE * 1j), "binary": pa.table({"t": [b"a"]}),
}  # fmt: skip
TEXTS = {
    "texts": TABLE.astype(str), "StringDType": TABLE.astype(str).astype(np.dtypes.StringDType()),
    "frame of texts": FRAME.astype(str), "string": FRAME.astype("string"),
    "categories": FRAME.astype(str).astype("category"), "polars": pl.DataFrame(FRAME.astype(str)),
    "enum": pl.DataFrame({"a": pl.Series(["x"], dtype=pl.Enum(["x"]))}),
    "dictionary": pa.table({"a": pa.array(["x"]).dictionary_encode()}),
}  # fmt: skip
