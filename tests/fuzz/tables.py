"""Tables and groups of every kind, made of a seed and the name of the kind.

All numbers in them begin with the digits of `PLANT`, all texts hold it, and some have a number of
rows of `PLANTED_ROWS`: where any of these shows, a message quotes private data.
"""

import datetime
import decimal
import fractions
import tempfile
import uuid

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse

PLANT = 7319
PLANTED_ROWS = (1013, 1021)
"""Numbers of rows that no message shows by chance: words of a fit round to two or three digits."""

ROWS = (13, 17, 23, 29)
FEW_ROWS = (0, 1, 2, 3)


def _mantissas(rng, shape):
    """Numbers 7319.xxx of both signs, around a few places."""
    signs = np.where(rng.integers(0, 3, size=shape) > 0, 1.0, -1.0)
    return signs * (PLANT + rng.random(shape) / 2 ** rng.integers(1, 20))


def _scaled(*exponents):
    def make(rng, shape):
        return _mantissas(rng, shape) * 10.0 ** rng.choice(exponents, size=shape)

    return make


def _one_row(value):
    """Ordinary rows and, at a random place, one that is not."""

    def make(rng, shape):
        X = _mantissas(rng, shape)
        if len(X):
            X[rng.integers(len(X))] = value * np.where(rng.integers(0, 2, shape[1]), 1.0, -1.0)
        return X

    return make


def _denormal(rng, shape):
    return 5e-324 * np.rint(rng.integers(-3, 4, size=shape) * PLANT)


VALUES = {
    "clusters": _scaled(0),
    "scales": _scaled(-9, 0, 6),
    "tiny": _scaled(-300, -160, -20),
    "huge": _scaled(80, 150, 303),
    "all scales": _scaled(-325, -180, 0, 180, 303),
    "denormal": _denormal,
    "zero": lambda rng, shape: np.zeros(shape),
    "equal": lambda rng, shape: np.full(shape, PLANT + 0.4825),
    "a row of 1.7e308": _one_row(1.7e308),
    "a row of 1e200": _one_row(1e200),
    "a denormal row": _one_row(5e-324),
    "a row of -0.0": _one_row(-0.0),
}
"""Finite numbers: from a generator and a shape to an array of doubles."""

SPOILED = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}


def numbers(kind, seed, shape):
    """An array of doubles of a kind of `VALUES`, or with one entry of `SPOILED`."""
    rng = np.random.default_rng(seed)
    if kind in VALUES:
        return VALUES[kind](rng, shape)
    X = _mantissas(rng, shape)
    if X.size:
        X.flat[rng.integers(X.size)] = SPOILED[kind]
    return X


# -- containers ------------------------------------------------------------------------------------


def _capped(X, dtype):
    """As another type of number, without an overflow of the conversion itself."""
    kind = np.finfo if np.dtype(dtype).kind == "f" else np.iinfo
    limit = float(kind(dtype).max) / 2
    return np.clip(np.nan_to_num(X), -limit if np.dtype(dtype).kind != "u" else 0, limit).astype(
        dtype
    )


def _memmap(X):
    with tempfile.TemporaryFile() as file:
        file.write(np.ascontiguousarray(X).tobytes() or b"\0")
        file.flush()
        # The mapping outlives the file object.
        return np.memmap(file, dtype=X.dtype, mode="r", shape=X.shape)


def _read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def _frame(X, prefix="x"):
    return pd.DataFrame(X, columns=[f"{prefix}{j}" for j in range(X.shape[1])])


def _fields(X):
    names = [(f"f{j}", "f8") for j in range(X.shape[1])]
    return np.array([tuple(row) for row in X], dtype=names)


class ArrayLike:
    """What is an array by protocol only."""

    def __init__(self, X):
        self._X = X
        self.shape = X.shape

    def __len__(self):
        return len(self._X)

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self._X, dtype=dtype)


GOOD = {
    "array": lambda X: X,
    "F order": np.asfortranarray,
    "reversed": lambda X: X[::-1, ::-1],
    "every other": lambda X: np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2],
    "big-endian": lambda X: X.astype(">f8"),
    "float32": lambda X: _capped(X, np.float32),
    "float16": lambda X: _capped(X, np.float16),
    "longdouble": lambda X: X.astype(np.longdouble),
    "int8": lambda X: _capped(X, np.int8),
    "int64": lambda X: _capped(X, np.int64),
    "uint64": lambda X: _capped(X, np.uint64),
    "bool": lambda X: X > 0,
    "memmap": _memmap,
    "read-only": _read_only,
    "array-like": ArrayLike,
    "list": lambda X: X.tolist(),
    "tuple": lambda X: tuple(map(tuple, X.tolist())),
    "list of arrays": list,
    "object": lambda X: X.astype(object),
    "pandas": _frame,
    "pandas objects": lambda X: _frame(X).astype(object),
    "pandas nullable": lambda X: _frame(X).astype("Float64"),
    "pandas by number": pd.DataFrame,
    "polars": lambda X: pl.DataFrame({f"x{j}": X[:, j] for j in range(X.shape[1])}),
    "masked, no mask": np.ma.masked_array,
}
"""Containers of finite numbers that a fit has to take."""


def _texts(X):
    return np.char.add(X.astype(str), "m")


def _with(value):
    """An object array with one entry that is no number."""

    def make(X):
        X = X.astype(object)
        if X.size:
            X.flat[X.size // 2] = value
        return X

    return make


def _masked(X):
    return np.ma.masked_array(X, mask=X > 0)


def _mixed_columns(X):
    frame = _frame(X)
    frame.insert(0, "name", [f"person {PLANT}-{i}" for i in range(len(X))])
    return frame


BAD = {
    "csr": scipy.sparse.csr_array,
    "coo": scipy.sparse.coo_array,
    "csc matrix": scipy.sparse.csc_matrix,
    "np.matrix": np.asmatrix,
    "one column": lambda X: X[:, 0],
    "one row": lambda X: X[0] if len(X) else X.ravel(),
    "three axes": lambda X: X[None],
    "no columns": lambda X: X[:, :0],
    "no axes": lambda X: np.float64(PLANT + 0.25),
    "a number": lambda X: PLANT + 0.25,
    "None": lambda X: None,
    "a text": lambda X: f"{PLANT}.csv",
    "bytes": lambda X: X.tobytes(),
    "memoryview": lambda X: memoryview(X.tobytes()),
    "generator": lambda X: (row for row in X.tolist()),
    "iterator": lambda X: iter(X.tolist()),
    "dict": lambda X: {f"x{j}": X[:, j].tolist() for j in range(X.shape[1])},
    "dict by number": lambda X: dict(enumerate(X.tolist())),
    "set": lambda X: set(X.ravel().tolist()),
    "frozenset of rows": lambda X: frozenset(map(tuple, X.tolist())),
    "range": lambda X: range(5),
    "texts": _texts,
    "list of texts": lambda X: _texts(X).tolist(),
    "bytes array": lambda X: _texts(X).astype("S"),
    "complex": lambda X: X * 1j,
    "complex objects": _with(complex(PLANT, 1)),
    "objects": _with(object()),
    "text inside": _with(f"{PLANT}m"),
    "None inside": _with(None),
    "NA inside": _with(pd.NA),
    "a list inside": _with([PLANT, 1]),
    "a dict inside": _with({PLANT: 1}),
    "a huge int inside": _with(PLANT * 10**400),
    "dates": lambda X: _capped(X, np.int64).astype("M8[s]"),
    "time spans": lambda X: _capped(X, np.int64).astype("m8[s]"),
    "fields": _fields,
    "masked": _masked,
    "series": lambda X: pd.Series(X.ravel()),
    "polars series": lambda X: pl.Series(X.ravel()),
    "polars lazy": lambda X: pl.DataFrame({"x": X.ravel()}).lazy(),
    "polars expression": lambda X: pl.col("x"),
    "pandas with texts": _mixed_columns,
    "pandas with NA": lambda X: _frame(X).astype("Float64").mask(X > 0),
    "pandas with dates": lambda X: _frame(X).assign(x0=pd.Timestamp("2020-01-01")),
    "pandas categories": lambda X: _frame(_texts(X)).astype("category"),
    "pandas names mixed": lambda X: pd.DataFrame(
        X, columns=[0, *(f"x{j}" for j in range(1, X.shape[1]))]
    ),
    "pandas names doubled": lambda X: pd.DataFrame(X, columns=["x"] * X.shape[1]),
    "ragged": lambda X: [*X.tolist(), [PLANT + 0.5]],
    "ragged arrays": lambda X: [*X, X[:1].ravel()[:1]],
    "nested": lambda X: [[[value] for value in row] for row in X.tolist()],
    "a class": lambda X: np.ndarray,
    "a function": lambda X: numbers,
    "an exception": ValueError,
}
"""Containers that a fit may refuse, each with an error of its own."""


def table(kind, values, seed, shape):
    """Something in the place of `X`: a kind of `GOOD` or `BAD`, filled with a kind of values."""
    with np.errstate(all="ignore"):
        return (GOOD | BAD)[kind](numbers(values, seed, shape))


# -- groups ----------------------------------------------------------------------------------------


def _ids(rng, n):
    return PLANT + rng.integers(0, max(n // 2, 1), size=n)


def _objects(items):
    found = np.empty(len(items), dtype=object)
    found[:] = items
    return found


def _missing(value):
    def make(ids):
        return _objects([value if i == len(ids) // 2 else int(x) for i, x in enumerate(ids)])

    return make


GOOD_GROUPS = {
    "ints": lambda ids: ids,
    "list": lambda ids: ids.tolist(),
    "int8": lambda ids: ids.astype("i1"),
    "uint64": lambda ids: ids.astype("u8") + np.uint64(2**63),
    "floats": lambda ids: ids / 8,
    "texts": lambda ids: np.char.add("person ", ids.astype(str)),
    "list of texts": lambda ids: [f"person {x}" for x in ids],
    "bytes": lambda ids: ids.astype("S"),
    "bools": lambda ids: ids % 2 == 0,
    "dates": lambda ids: ids.astype("M8[D]"),
    "objects": lambda ids: _objects(ids.tolist()),
    "tuples": lambda ids: _objects([(int(x), "a") for x in ids]),
    "frozensets": lambda ids: _objects([frozenset([int(x), 1]) for x in ids]),
    "mixed": lambda ids: _objects([int(x) if i % 2 else str(x) for i, x in enumerate(ids)]),
    "huge ints": lambda ids: [2**53 + int(x) if i % 3 else 2**70 for i, x in enumerate(ids)],
    "uuids": lambda ids: _objects([uuid.UUID(int=int(x)) for x in ids]),
    "python dates": lambda ids: _objects([datetime.date.fromordinal(int(x)) for x in ids]),
    "decimals": lambda ids: _objects([decimal.Decimal(int(x)) for x in ids]),
    "fractions": lambda ids: _objects([fractions.Fraction(int(x), 7) for x in ids]),
    "series": lambda ids: pd.Series(ids, index=ids),
    "string series": lambda ids: pd.Series(ids.astype(str), dtype="string"),
    "nullable": lambda ids: pd.Series(ids, dtype="Int64"),
    "categories": lambda ids: pd.Categorical(ids),
    "polars": lambda ids: pl.Series(ids),
    "polars texts": lambda ids: pl.Series(ids.astype(str)),
    "complex": lambda ids: ids * 1j,
}
BAD_GROUPS = {
    "short": lambda ids: ids[1:],
    "long": lambda ids: np.append(ids, PLANT),
    "column": lambda ids: ids[:, None],
    "a number": lambda ids: PLANT,
    "a text": lambda ids: str(PLANT),
    "nan": lambda ids: np.where(np.arange(len(ids)) == len(ids) // 2, np.nan, ids),
    "inf": lambda ids: np.where(np.arange(len(ids)) == len(ids) // 2, np.inf, ids),
    "nan object": _missing(np.nan),
    "None inside": _missing(None),
    "NA inside": _missing(pd.NA),
    "NaT inside": _missing(pd.NaT),
    "unhashable": lambda ids: _objects([[int(x)] for x in ids]),
    "dates missing": lambda ids: np.append(ids.astype("M8[D]")[1:], np.datetime64("NaT")),
    "generator": lambda ids: (int(x) for x in ids),
    "set": lambda ids: set(ids.tolist()),
    "dict": lambda ids: dict(enumerate(ids.tolist())),
    "frame": lambda ids: pd.DataFrame({"g": ids}),
    "categories missing": lambda ids: pd.Categorical([None, *ids[1:].tolist()]),
    "nullable missing": lambda ids: pd.Series([None, *ids[1:].tolist()], dtype="Int64"),
    "polars expression": lambda ids: pl.col("g"),
    "polars lazy": lambda ids: pl.DataFrame({"g": ids}).lazy(),
    "polars missing": lambda ids: pl.Series([None, *ids[1:].tolist()]),
    "an object": lambda ids: object(),
    "sparse": lambda ids: scipy.sparse.csr_array(ids[None]),
    "ragged": lambda ids: [[int(x)] * (i % 2 + 1) for i, x in enumerate(ids)],
    "fields": lambda ids: np.array([(int(x), 1) for x in ids], dtype=[("a", "i8"), ("b", "i8")]),
    "masked": lambda ids: np.ma.masked_array(ids, mask=ids > PLANT),
}


def groups(kind, seed, n):
    """Something in the place of `groups`, for `n` rows."""
    with np.errstate(all="ignore"):
        return (GOOD_GROUPS | BAD_GROUPS)[kind](_ids(np.random.default_rng(seed), n))
