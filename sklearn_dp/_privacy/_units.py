"""Privacy units: which rows belong together, and how much each of them weighs.

Groups are told apart by the values as they are given. Nothing is converted first: an array of
floats cannot tell 2**53 from 2**53 + 1, and a sort cannot order every set of values; either would
merge two persons or split one, and the guarantee would be false.

How a group becomes a unit: each of its m rows gets the weight 1/m, rounded down to whole steps of
2^-20, so that all of its rows together count for at most one. A statistic that adds up weighted
rows then has the sensitivity of one row, whatever the sizes of the groups are; nobody has to know,
or to bound, how many rows a person has. The weights need no release: a row's weight depends on its
own group alone, so a neighbour without that group has the same weights for all other rows.
"""

from dataclasses import dataclass
from datetime import date, time, timedelta
from enum import Enum
from fractions import Fraction
from numbers import Number

import numpy as np

__all__ = ["UnitFacts", "Units", "code_groups", "unit_of"]

_WEIGHT_STEPS = 2**20
_EXACT = {bool, bytes, int, str}  # never missing, and equal only to themselves
_PLAIN = (Number, bytes, date, str, time, timedelta, Enum)
_PLAIN_MODULES = ("pandas", "uuid")  # scalars with a hash and an equality of their own
_READERS = ("tolist", "to_pylist")  # of pandas and of pyarrow
_CUT = ("time64[ns]", "date64")  # types of Arrow whose values Python rounds
_DATES = (np.datetime64, np.timedelta64)
_MISSING = "groups must not hold missing or infinite values (NaN, None, NaT, NA, masked)."
_KINDS = (
    "groups must be one-dimensional and hold plain ids: numbers, texts, bytes, dates, or "
    "tuples of these."
)


@dataclass(frozen=True)
class UnitFacts:
    """What is public of some units: what a sum of rows needs to be released.

    Attributes
    ----------
    scale : int
        Weight of a whole unit, in integer steps.
    unit_weight : float
        What a whole unit weighs, where rows have weights of their own.
    own_weights : bool
        Whether they have.
    """

    scale: int = 1
    unit_weight: float = 1.0
    own_weights: bool = False

    @property
    def step(self):
        """Length of a weight step, in units."""
        return 1.0 / self.scale


class Units:
    """Which rows form one privacy unit, and how much each of them weighs.

    Parameters
    ----------
    n_rows : int
    groups : array-like of shape (n_rows,), optional
        Rows with the same value belong to one unit; see :func:`code_groups`. None: every row is
        a unit.

    Attributes
    ----------
    scale : int
        Weight of a whole unit, in integer steps (1 without groups).
    weights : ndarray of int64 of shape (n_rows,), or None
        Weight of each row; those of a unit sum to at most `scale`. None: one each.
    index : ndarray of shape (n_rows,), or None
        The unit of each row, in the order of their first rows.
    own_weights : bool
        Whether rows have weights of their own (see :meth:`weighted`).
    unit_weight : float
        What a whole unit weighs, where they have.
    """

    own_weights = False
    unit_weight = 1.0

    def __init__(self, n_rows, groups=None):
        self.n_rows = int(n_rows)
        if groups is None:
            self.scale, self.weights, self.index, self.size = 1, None, None, self.n_rows
            return
        self.index = code_groups(groups)
        if len(self.index) != self.n_rows:
            raise ValueError("groups must have one entry for each row.")
        members = np.bincount(self.index)
        self.scale, self.size = _WEIGHT_STEPS, len(members)
        # floor: the weights of a unit of m rows sum to m * floor(scale / m) <= scale.
        self.weights = (_WEIGHT_STEPS // members)[self.index].astype(np.int64)

    @classmethod
    def weighted(cls, weights, largest, groups=None):
        """Units of rows that have weights of their own, and the rows that are there.

        Parameters
        ----------
        weights : ndarray of float of shape (n,), finite and at least 0
        largest : float
            Public. Larger weights count as this one, and a row of this weight as a whole unit.
        groups : array-like of shape (n,), optional

        Returns
        -------
        units : Units
            Of the rows that are there.
        there : ndarray of bool of shape (n,)
            False for rows that weigh less than a step, `largest` / 2**20: the units are those
            that there would be without them, bit for bit.
        """
        # A function of the weight of one row and of `largest`: at most a whole unit, rounded down.
        parts = np.floor(np.minimum(weights, largest) / largest * _WEIGHT_STEPS).astype(np.int64)
        there = parts > 0
        if groups is not None:
            groups = code_groups(groups)
            if len(groups) != len(parts):
                raise ValueError("groups must have one entry for each row.")
            groups = groups[there]
        units = cls(int(there.sum()), groups)
        whole = _WEIGHT_STEPS if groups is None else units.weights
        # whole * part / 2**20 is at most `whole`, whatever the weights are: those of a unit sum to
        # at most `scale`, as without weights. Products stay below 2**41.
        units.weights = whole * parts[there] // _WEIGHT_STEPS
        units.scale, units.unit_weight = _WEIGHT_STEPS, float(largest)
        units.own_weights = True
        return units, there

    def of_points(self):
        """The same units, where one point stands for each: with the weight that its rows have.

        Without weights of their own all units are alike, and a point counts as one.
        """
        alone = Units(self.size)
        if self.own_weights:
            # Integers of sum at most `scale`: exact as floats, and no point weighs more than that.
            weights = np.bincount(self.spread(np.arange(self.size)), self.weights, self.size)
            alone.weights, alone.scale = weights.astype(np.int64), self.scale
            alone.own_weights, alone.unit_weight = True, self.unit_weight
        return alone

    @property
    def facts(self):
        """What is public of them."""
        return UnitFacts(self.scale, self.unit_weight, self.own_weights)

    @property
    def name(self):
        """The unit in words."""
        return "row" if self.index is None else "group"

    @property
    def step(self):
        """Length of a weight step, in units."""
        return 1.0 / self.scale

    def spread(self, per_unit):
        """A value of each unit, for each of its rows.

        Parameters
        ----------
        per_unit : ndarray of shape (size, ...)

        Returns
        -------
        per_row : ndarray of shape (n_rows, ...)
        """
        return per_unit if self.index is None else per_unit[self.index]

    def weigh(self, rows):
        """Rows times their weights, rounded toward zero: |row| never grows.

        Parameters
        ----------
        rows : ndarray of shape (n_rows, d)
            Integer-valued, of norm at most 2**26.

        Returns
        -------
        weighted : ndarray of shape (n_rows, d), integer-valued
            The rows of one unit together have a norm of at most the longest of them.
        """
        if self.weights is None:
            return rows
        # Both factors are integers, |row| <= 2**26 and the weight at most 2**20: exact.
        return np.trunc(rows * (self.weights[:, None] * self.step))

    def take(self, rows):
        """The same units, restricted to some rows (a mask or indices)."""
        other = object.__new__(Units)
        other.scale, other.size, other.unit_weight = self.scale, self.size, self.unit_weight
        other.own_weights = self.own_weights
        other.weights = None if self.weights is None else self.weights[rows]
        other.index = None if self.index is None else self.index[rows]
        other.n_rows = int(np.count_nonzero(rows)) if np.asarray(rows).dtype == bool else len(rows)
        return other


def unit_of(groups):
    """What a fit with these groups protects; wrong types are refused, and no value is looked at.

    Asked before the ledger is charged, which has to know the unit.

    Examples
    --------
    >>> unit_of(None), unit_of(["ann", "bob", "ann"])
    ('row', 'group')
    """
    if groups is None:
        return "row"
    _check_container(groups)
    return "group"


def _check_container(groups):
    """Refuse what is no list of ids by its type alone, before any value is looked at."""
    scalar = np.ndim(groups) == 0 if isinstance(groups, np.ndarray) else isinstance(groups, Number)
    if scalar or getattr(groups, "ndim", 1) != 1:
        raise ValueError("groups must be one-dimensional.")
    known = (list, tuple, range, np.ndarray)
    if not isinstance(groups, known) and _reader(groups) is None:
        raise TypeError(
            f"groups must be a list or a one-dimensional array of ids, not {type(groups).__name__}."
        )


def code_groups(groups):
    """The unit of each row: 0, 1, ... in the order of their first rows.

    Parameters
    ----------
    groups : list, tuple, ndarray, Series, or other array of shape (n_rows,)
        Ids, compared as Python compares them: by hash and equality, each as it is given. So
        1 == 1.0 == True and 0.0 == -0.0 are one unit, "1" and b"1" two others, and
        2**53 + 1 is not 2.0**53. A list is taken element by element. What a user has put into an
        array or a column beforehand is taken at the values that it holds there.

    Returns
    -------
    index : ndarray of int64 of shape (n_rows,)

    Raises
    ------
    ValueError
        For missing and infinite ids, and for other shapes.
    TypeError
        For ids without an equality that can be relied on: lists, dicts, objects of other classes,
        which mostly equal nothing but themselves; NumPy dates of several units in a list.

    Notes
    -----
    The numbers of the units depend on the order of the rows, as those of rows do. They serve to
    address units and are never released.

    Examples
    --------
    >>> code_groups(["bob", "ann", "bob"])
    array([0, 1, 0])
    >>> code_groups([2**53, 2**53 + 1])  # as floats they would be one
    array([0, 1])
    """
    _check_container(groups)
    if isinstance(groups, np.ma.MaskedArray) and np.ma.getmaskarray(groups).any():
        raise ValueError(_MISSING)
    values = _values(groups)
    if isinstance(values, np.ndarray):
        return _code_array(values)
    return _code_list(values)


def _reader(groups):
    """How to get the values out of an array that is not NumPy's: a function, or None."""
    if isinstance(groups, (type, str, bytes, bytearray, memoryview, dict)):
        return None
    if isinstance(getattr(groups, "dtype", None), np.dtype) and hasattr(groups, "__array__"):
        return lambda: np.asarray(groups)
    # The type of an array of pyarrow or pandas, or of its categories, in words.
    kind = getattr(groups, "dtype", getattr(groups, "type", ""))
    words = str(getattr(getattr(kind, "categories", None), "dtype", kind))
    if any(cut in words for cut in _CUT):
        raise TypeError("groups must not be of a type that Python rounds: give it as integers.")
    if hasattr(groups, "to_physical") and hasattr(
        groups, "to_list"
    ):  # polars, where times would be cut to microseconds
        return lambda: groups.to_physical().to_list()
    found = [getattr(groups, name) for name in _READERS if hasattr(groups, name)]
    return found[0] if found else None


def _values(groups):
    """The ids as a NumPy array of one exact kind, or as a list of Python objects."""
    if isinstance(groups, (list, tuple, range)):
        return list(groups)
    values = np.asarray(groups) if isinstance(groups, np.ndarray) else _read(_reader(groups))
    if not isinstance(values, np.ndarray):
        return values
    if values.dtype.kind in "biufcmM":
        return values
    if values.dtype.kind == "V":
        raise TypeError(_KINDS)
    return values.tolist()


def _read(reader):
    try:
        return reader()
    except MemoryError:
        raise
    except Exception:  # libraries have kinds of their own
        pass
    # Outside the handler: the error of the array's own library may quote values.
    raise ValueError("groups could not be read: give a list or an array of ids.")


def _code_array(values):
    """Codes of numbers or dates of one exact type, by sorting: faster than hashing each of them."""
    if values.dtype.kind in "mM":
        if np.isnat(values).any():
            raise ValueError(_MISSING)
    elif not np.isfinite(values).all():
        raise ValueError(_MISSING)
    _, first, index = np.unique(values, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[index]


def _code_list(values):
    """Codes of Python objects, by hash and equality.

    A dict keeps the order of the first rows, and it compares hashes first: it is as fast as the
    hash of the ids is good.
    """
    kinds = set(map(type, values))
    if kinds in ({_DATES[0]}, {_DATES[1]}) and len({value.dtype for value in values}) == 1:
        return _code_array(np.array(values))
    if not kinds <= _EXACT:
        values = list(map(_plain, values))
    distinct = dict.fromkeys(values)
    codes = dict(zip(distinct, range(len(distinct)), strict=True))
    return np.fromiter(map(codes.__getitem__, values), np.int64, count=len(values))


def _plain(value):
    """An id with an equality that can be relied on, or an error."""
    if type(value) in _EXACT:
        return value
    if isinstance(value, np.generic) and not isinstance(value, (*_DATES, np.void)):
        # NumPy rounds its own numbers before it compares them with Python's.
        if isinstance(value, np.longdouble) and np.isfinite(value):
            value = Fraction(*value.as_integer_ratio())
        else:
            value = value.item()
    if _is_missing(value):
        raise ValueError(_MISSING)
    if isinstance(value, (tuple, frozenset)):
        return (tuple if isinstance(value, tuple) else frozenset)(map(_plain, value))
    known = type(value).__module__.partition(".")[0] in _PLAIN_MODULES
    if isinstance(value, np.generic) or not (isinstance(value, _PLAIN) or known):
        raise TypeError(_KINDS)
    return value


def _is_missing(value):
    """Whether an id is None, unequal to itself, not to be compared at all (NA), or infinite."""
    if value is None or value is np.ma.masked:
        return True
    try:
        if isinstance(value, Number) and not isinstance(value, np.generic):
            return bool(value - value != 0)  # type: ignore[operator] # true unless finite
        return bool(value != value)
    except (ArithmeticError, TypeError, ValueError):
        return True
