"""Neighboring data sets: one unit more, or one unit less."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri


def ids(groups: Any) -> list[Any]:
    """The ids of any array-like, as they are: numpy would make equal texts of 1 and "1"."""
    return list(groups)


def unit_numbers(groups: Any) -> np.ndarray:
    """The number of the unit of each row, by a dictionary over the ids as given."""
    number_of: dict[object, int] = {}
    return np.array(
        [number_of.setdefault(value, len(number_of)) for value in ids(groups)], dtype=np.int64
    )


def fresh_id(groups: Any, rng: np.random.Generator) -> Any:
    """An id that no unit has: of the kind of the others, or in half of the cases of another one."""
    values = ids(groups)
    known = set(values)
    k = int(rng.integers(len(known) + 2))
    others: list[Any] = [
        *(0.5 + k, -1 - k, 2**53 + 1 + k, 2**63 + k, 2**70 + k, f"unit {k}", str(k), b"unit"),
        *(("unit", k), frozenset({k, "unit"}), date(1900 + k % 100, 1, 1)),
    ]
    rng.shuffle(others)
    near = [new for i in rng.permutation(len(known) + 2) for new in _alike(values, int(i))]
    # A list has no dtype and takes any object, like an array of objects.
    typed = str(getattr(groups, "dtype", "object")).lower() != "object"
    candidates = [*near, *others] if typed or rng.random() < 0.5 else others
    return next(new for new in candidates if new not in known)


def _alike(values: Any, k: int) -> list[Any]:
    """Ids of the kind of the first of those there are."""
    first = values[0] if values else 0
    match first:
        case bool() | np.bool_():
            return [bool(k % 2)]
        case np.datetime64() | np.timedelta64():
            return [first + k]
        case Integral():
            return [k]
        case Real():
            return [k + 0.5]
        case bytes():
            return [first + b"%d" % k]
        case str():
            return [first + str(k)]
        case date():
            return [first.replace(year=1900 + k)]
    return []


def refilled(groups: Any, values: Any) -> Any:
    """An array of the kind of `groups` with other ids, equal to `values`; else a list."""
    if isinstance(groups, (list, tuple)):
        return type(groups)(values)
    try:
        if not isinstance(groups, np.ndarray):
            # Categories of pandas are those that occur; it is about to refuse others.
            dtype = "category" if str(groups.dtype) == "category" else groups.dtype
            full = type(groups)(values, dtype=dtype)
        elif groups.dtype.kind in "US":
            full = np.array(values, dtype=groups.dtype.type)  # as wide as it takes
        else:
            full = np.empty(len(values), dtype=groups.dtype)
            for place, value in enumerate(values):
                full[place] = value
        return full if ids(full) == values else values
    except (ArithmeticError, TypeError, ValueError):
        return values


# -- neighbors -------------------------------------------------------------------------------------


KINDS = (
    "random", "duplicate", "far", "farthest", "zero", "tiny", "released", "first", "last",
    "remove", "remove_first", "remove_last",
)  # fmt: skip
"""The units by which neighbors differ; see `neighboring_pairs`."""

_FARTHEST = 1.7e308  # sums of two overflow, and of both signs are no number
_LARGEST_SCALE = 1e300  # of the data, for rows that must stay finite at a multiple of it
_MOST_ROWS = 5  # of an added group


@dataclass(frozen=True)
class Neighbor:
    """A data set that differs from another one by one unit.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    X : ndarray of shape (n_samples, n_features)
        All the rows.
    groups : array-like of shape (n_samples,), or None
        Ids as given, in an array of the same type if it can hold them.
    units : ndarray of int of shape (n_units,)
        For each unit, its index in the other data set, or -1 for the added one. Units are rows, or
        groups in the order of their first rows.
    """

    kind: str
    X: np.ndarray
    groups: object
    units: np.ndarray


def neighboring_pairs(
    X: ArrayLike,
    rng: int | np.random.Generator | None = None,
    *,
    kinds: Sequence[str] = KINDS,
    groups: ArrayLike | None = None,
    points: ArrayLike | None = None,
    repeats: int = 1,
) -> Iterator[Neighbor]:
    """Generate neighbors of a data set, random and adversarial.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        May be empty.
    rng : int or Generator, optional
        Source of randomness for rows, positions and the choice of units.
    kinds : sequence of str, default=KINDS
        Added unit: ``"random"`` (near the others), ``"duplicate"`` (of an existing row), ``"far"``
        (1e6 times the scale of the data), ``"farthest"`` (1.7e308, of random signs), ``"zero"``,
        ``"tiny"`` (subnormal numbers), ``"released"`` (equal to one of `points`), ``"first"`` and
        ``"last"`` (at that end, where the others are anywhere). Removed unit: ``"remove"``,
        ``"remove_first"``, ``"remove_last"``.
    groups : array-like of shape (n_samples,), optional
        The unit of each row. An added group has up to five rows, at random positions, and a new id:
        of the same type, or, if the array can hold anything, of another type.
    points : ndarray of shape (n_points, n_features), optional
        Released points, such as centers: the most sensitive positions for a row.
    repeats : int, default=1
        Number of times to go through `kinds`.

    Yields
    ------
    neighbor : Neighbor
        One for each kind; none that removes a unit from an empty data set.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dp.audit import neighboring_pairs
    >>> (pair,) = neighboring_pairs(np.zeros((3, 2)), 0, kinds=["remove_first"])
    >>> pair.X.shape, pair.units.tolist()
    ((2, 2), [1, 2])
    """
    rng = np.random.default_rng(rng)
    X = np.asarray(X, dtype=np.float64)
    for kind in [kind for _ in range(repeats) for kind in kinds]:
        if not kind.startswith("remove"):
            yield _with_unit(kind, X, groups, rng, points)
        elif len(X):
            yield _without_unit(kind, X, groups, rng)


def unrelated(X: Any, rng: np.random.Generator, *, groups: Any = None) -> Iterator[Neighbor]:
    """Data sets that have nothing in common with `X` but the number of features."""
    n, d = X.shape
    base = ndtri(rng.random((2 * n + 3, d)))
    for other in (1e3 * base, np.zeros((n, d)), np.full((n // 2 + 1, d), 7.0), 1e-9 * base + 5):
        names = None if groups is None else rng.integers(0, len(other), len(other))
        size = len(other) if names is None else len(np.unique(names))
        yield Neighbor("unrelated data", other, names, np.full(size, -1))


def _without_unit(kind: str, X: Any, groups: Any, rng: np.random.Generator) -> Neighbor:
    numbers = np.arange(len(X)) if groups is None else unit_numbers(groups)
    n_units = int(numbers.max()) + 1
    gone = {"remove": int(rng.integers(n_units)), "remove_first": 0, "remove_last": n_units - 1}[
        kind
    ]
    stay = np.flatnonzero(numbers != gone)
    if groups is not None:
        values = ids(groups)
        groups = refilled(groups, [values[i] for i in stay])
    return Neighbor(kind, X[stay], groups, np.delete(np.arange(n_units), gone))


def _with_unit(kind: str, X: Any, groups: Any, rng: np.random.Generator, points: Any) -> Neighbor:
    size = 1 if groups is None else int(rng.integers(1, _MOST_ROWS + 1))
    rows = np.array([_row(kind, X, rng, points) for _ in range(size)])
    places = {"first": np.zeros(size, int), "last": np.full(size, len(X))}.get(
        kind, rng.integers(0, len(X) + 1, size)
    )
    wider = np.insert(X, places, rows, axis=0)
    if groups is None:
        return Neighbor(kind, wider, None, np.insert(np.arange(len(X)), places, -1))
    numbers = unit_numbers(groups)
    # Of the units there are, those that come before the first new row keep their numbers.
    before = len(set(numbers[: places.min()].tolist()))
    units = np.insert(np.arange(len(set(numbers.tolist()))), before, -1)
    values, new = ids(groups), fresh_id(groups, rng)
    for place in sorted(places.tolist(), reverse=True):
        values.insert(place, new)
    return Neighbor(kind, wider, refilled(groups, values), units)


def _row(kind: str, X: Any, rng: np.random.Generator, points: np.ndarray) -> np.ndarray:
    """One row of an added unit."""
    d = X.shape[1]
    direction = ndtri(rng.random(d))
    scale = min(float(np.abs(X).max(initial=1.0)), _LARGEST_SCALE)
    near = X[rng.integers(len(X))] if len(X) else np.zeros(d)
    if kind == "released" and points is not None and len(points):
        return np.asarray(points[rng.integers(len(points))], dtype=np.float64)
    signs = np.where(direction > 0, 1.0, -1.0)
    fixed = {
        "duplicate": near,
        "far": 1e6 * scale * direction,
        "farthest": _FARTHEST * signs,
        "zero": np.zeros(d),
        "tiny": 5e-324 * signs,
    }
    return fixed.get(kind, near + scale * 10.0 ** rng.integers(-3, 1) * direction)
