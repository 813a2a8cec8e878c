"""Privacy units, and exact answers that are sealed with a claim about what one unit changes.

*Units.* Each of the m rows of a group gets the weight 1/m, rounded down to whole steps of 2^-20, so
that all of its rows together count for at most one, and a statistic that adds up weighted rows has
the sensitivity of one row, whatever the sizes of the groups are. The weights need no release: a
row's weight depends on its own group alone.

Groups are told apart by the values as they are given: an array of floats cannot tell 2**53 from
2**53 + 1, and a sort cannot order every set of values; either would merge two persons or split one,
and the guarantee would be false.

*Sealed answers* are exact statistics that only a session can open. A question about rows
(:mod:`sklearn_dp._queries`) is answered with a :class:`Sealed`: integers, and the :class:`Claim`
that is proved of them. All that an algorithm can do with one is to hand it to a session, whose
noise follows from the claim (:meth:`.PrivacySession.release`). It cannot be computed with,
compared, printed, pickled or copied. So an algorithm that holds sealed answers and released numbers
only is post-processing, whatever it computes and decides. Python hides nothing from those who look
for it, so `tests/_queries/test_laws.py` reads the syntax trees: nobody but the kernel opens a
statistic, and nobody but the questions seals one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from numbers import Number
from typing import Any, NoReturn, Self

import numpy as np

from .._costs.numbers import round_up
from .._costs.plan import PlanError, PrivacyPlan
from ._entries import (
    Wrong,
    dtype_of,
    entries_of,
    exact,
    exact_integers,
    is_column,
    kind_of,
    quietly_read,
    unwrapped,
)

_EXACT = {bool, bytes, int, str}  # never missing, and equal only to themselves
_NUMBERS = {int, float, bool, complex, Decimal, Fraction}
_PLAIN = (date, time, timedelta, Enum)
_PLAIN_MODULES = ("pandas", "uuid")  # scalars with a hash and an equality of their own
_CUT = ("time64[ns]", "date64")  # types of Arrow whose values Python rounds
_DATES = (np.datetime64, np.timedelta64)
_STEPS = ("Date", "Datetime", "Duration", "Time")  # of polars, which keeps them as integers
_MISSING = "groups must not contain missing or infinite values (NaN, None, NaT, NA, masked)."
_KINDS = (
    "groups must be one-dimensional and hold plain ids: numbers, texts, bytes, dates, or "
    "tuples of these."
)


# -- units -----------------------------------------------------------------------------------------


def check_container(groups: Any) -> None:
    """Refuse what is no list of ids by its type alone, before any value is looked at."""
    scalar = np.ndim(groups) == 0 if isinstance(groups, np.ndarray) else isinstance(groups, Number)
    if scalar or getattr(groups, "ndim", 1) != 1:
        raise ValueError("groups must be one-dimensional.")
    if not is_column(groups):
        raise TypeError(
            f"groups must be a list or a one-dimensional array of ids, not {type(groups).__name__}."
        )
    declared = dtype_of(groups)
    if kind_of(declared) == "other":
        raise TypeError(_KINDS)
    # Of an array of pyarrow or pandas, or of its categories, in words.
    words = str(getattr(getattr(declared, "categories", None), "dtype", declared))
    if not isinstance(declared, np.dtype) and any(cut in words for cut in _CUT):
        raise TypeError(
            "groups must not be of a type that loses precision in Python: convert it to integers."
        )


def code_groups(groups: Any) -> np.ndarray:
    """The unit of each row, as int64: 0, 1, ... in the order of their first rows; never released.

    Ids are compared by hash and equality, each as it is given: 1 == 1.0 == True and 0.0 == -0.0 are
    one unit, "1" and b"1" two others, and 2**53 + 1 is not 2.0**53. A list is taken element by
    element, an array or a column at the values that it holds.

    A ValueError for missing and infinite ids, and for other shapes than (n_rows,); a TypeError for
    ids without an equality that can be relied on: lists, dicts, objects of other classes, which
    mostly equal nothing but themselves; NumPy dates of several units in a list."""
    check_container(groups)
    return quietly_read("groups", _codes, groups)


def _codes(groups: Any) -> np.ndarray:
    if isinstance(groups, np.ma.MaskedArray) and np.ma.getmaskarray(groups).any():
        raise Wrong(ValueError, _MISSING)
    values = _values(groups)
    return _code_array(values) if isinstance(values, np.ndarray) else _code_list(values)


def group_keys(groups: Any) -> tuple[list[Any], np.ndarray]:
    """The distinct groups of some rows as Python values, equal in all parts, and the group of each
    row as int64, as :func:`code_groups` tells ids. Dates: see :func:`check_one_kind`."""
    index = code_groups(groups)
    _, first = np.unique(index, return_index=True)
    # What is an integer here only because polars keeps it as one equals no integer elsewhere.
    kind = str(groups.dtype) if _is_of_steps(groups) else None
    return quietly_read("groups", _keys, groups, first.tolist(), kind), index


def _keys(groups: Any, places: list[int], kind: str | None) -> list[Any]:
    values = _values(groups)
    return [_key(values[place], kind) for place in places]


@dataclass(frozen=True)
class _Date:
    """A date or a length of time, as a number of steps of its type; no id of a user equals it."""

    kind: str
    steps: int


def _key(value: Any, kind: str | None) -> Any:
    if kind is not None:
        return _Date(kind, value)
    if isinstance(value, _DATES):
        return _Date(value.dtype.str, int(value.view(np.int64)))
    return _plain(value)


def check_one_kind(keys: Iterable[Any]) -> None:
    """Refuse dates next to ids of another type, over all parts: one person in two parts would be
    two units."""
    kinds = {key.kind if isinstance(key, _Date) else None for key in keys}
    if len(kinds) > 1:
        raise TypeError("groups must be of the same type in all parts if they are dates.")


def _is_of_steps(groups: Any) -> bool:
    """True if an array of polars is read as the integers that it keeps."""
    words = str(getattr(groups, "dtype", "")).partition("(")[0]
    return hasattr(groups, "to_physical") and words in _STEPS


def _values(groups: Any) -> Any:
    """The ids as a NumPy array of one exact kind, or as a list of Python objects."""
    # As Python's own, times of polars would be cut to microseconds.
    return entries_of(groups.to_physical() if _is_of_steps(groups) else groups)


def _code_array(values: np.ndarray) -> np.ndarray:
    """Codes of numbers or dates of one exact type, by sorting: faster than hashing each of them."""
    if values.dtype.kind in "mM":
        if np.isnat(values).any():
            raise Wrong(ValueError, _MISSING)
    elif not np.isfinite(values).all():
        raise Wrong(ValueError, _MISSING)
    _, first, index = np.unique(values, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[index]


def _code_list(ids: list[Any]) -> np.ndarray:
    """Codes of Python objects, by hash and equality, in the order of the first rows."""
    kinds = set(map(type, ids))
    if kinds in ({_DATES[0]}, {_DATES[1]}) and len({each.dtype for each in ids}) == 1:
        return _code_array(np.array(ids))
    if not kinds <= _EXACT:
        ids = list(map(_plain, ids))
    distinct = dict.fromkeys(ids)
    codes = dict(zip(distinct, range(len(distinct)), strict=True))
    return np.fromiter(map(codes.__getitem__, ids), np.int64, count=len(ids))


def _plain(value: Any) -> Any:
    """An id with an equality that can be relied on, or an error."""
    if type(value) in _EXACT:
        return value
    kind = type(value)
    if issubclass(kind, np.generic) and not issubclass(kind, (*_DATES, np.void)):
        value = exact(value)
        kind = type(value)
    for whole in (tuple, frozenset):
        if issubclass(kind, whole):
            return whole(map(_plain, unwrapped([*whole.__iter__(value)])))
    known = kind in _NUMBERS or kind.__module__.partition(".")[0] in (*_PLAIN_MODULES, "numpy")
    # Of others no code is run.
    if value is not None and not known and not issubclass(kind, _PLAIN):
        raise Wrong(TypeError, _KINDS)
    if _is_missing(value):
        raise Wrong(ValueError, _MISSING)
    if issubclass(kind, np.generic):
        raise Wrong(TypeError, _KINDS)
    return value


def _is_missing(value: Any) -> bool:
    """True if an id is None, unequal to itself, not to be compared at all (NA), or infinite."""
    if value is None or value is np.ma.masked:
        return True
    try:
        if type(value) in _NUMBERS:
            return bool(value - value != 0)  # true unless finite
        return bool(value != value)
    except (ArithmeticError, TypeError, ValueError):
        return True


_WEIGHT_STEPS = 2**20


@dataclass(frozen=True)
class UnitFacts:
    """Public facts of some units: what a sum of rows needs to be released."""

    scale: int = 1  # weight of a whole unit, in integer steps
    unit_weight: float = 1.0  # what a whole unit weighs, where rows have weights of their own
    own_weights: bool = False  # whether they have
    grouped: bool = False  # whether a unit may have several rows
    # what a unit is: a "group" also where there is one point for each, which stands for its rows
    unit: str = "row"

    @property
    def step(self) -> float:
        """Length of a weight step, in units."""
        return 1.0 / self.scale


class Units:
    """Which rows form one privacy unit, and how much each of them weighs.

    Rows of the same value in `groups` belong to one unit; see :func:`code_groups`. None: every row
    is a unit. Arrays have an entry for each row:

    * `scale`: weight of a whole unit, in integer steps (1 without groups);
    * `weights`: weight of each row; those of a unit sum to at most `scale`. None: one each;
    * `index`: the unit of each row, in the order of their first rows, or None;
    * `unit`: what a unit is, a "row" or a "group";
    * `own_weights`: whether rows have weights of their own (see :meth:`weighted`), and
      `unit_weight`, what a whole unit weighs where they have;
    * `excess`: by how much the own weight of each row exceeds that of a whole unit, in steps of
      `weights`; that of a unit counts as one unit at most. None: not known, and taken for nothing;
    * `numbers`: of the units among those of all parts, where these are the rows of one; or None,
      for 0, 1, ..."""

    weights: Any  # ndarray of int64, or None
    own_weights = False
    unit_weight = 1.0
    unit = "row"
    excess: np.ndarray | None = None
    numbers: np.ndarray | None = None

    def __init__(self, n_rows: int, groups: Any = None) -> None:
        self.n_rows = int(n_rows)
        if groups is None:
            self.scale, self.weights, self.index, self.size = 1, None, None, self.n_rows
            return
        self.index, self.unit = code_groups(groups), "group"
        if len(self.index) != self.n_rows:
            raise ValueError("groups must have one entry for each row.")
        members = np.bincount(self.index)
        self.scale, self.size = _WEIGHT_STEPS, len(members)
        # floor: the weights of a unit of m rows sum to m * floor(scale / m) <= scale.
        self.weights = exact_integers((_WEIGHT_STEPS // members)[self.index])

    @classmethod
    def of_sizes(
        cls, index: np.ndarray, sizes: np.ndarray, numbers: np.ndarray | None = None
    ) -> Self:
        """Units of rows whose groups may have more rows elsewhere: `sizes` are numbers of rows
        everywhere, `numbers` those of the groups in all parts."""
        units = cls(len(index))
        units.index, units.size, units.scale = index, len(sizes), _WEIGHT_STEPS
        units.numbers, units.unit = numbers, "group"
        # As above: wherever its m rows are, their weights sum to m * floor(scale / m) <= scale.
        units.weights = exact_integers((_WEIGHT_STEPS // sizes)[index])
        return units

    def with_weights_of(self, rows: Units) -> Self:
        """Return these units with the weights of their rows multiplied in, if `rows` have
        weights."""
        if rows.own_weights:
            # As in `weighted`: at most the weight in the group, and below 2**41.
            if rows.excess is not None:
                self.excess = self.weights * rows.excess // _WEIGHT_STEPS
            self.weights = self.weights * rows.weights // _WEIGHT_STEPS
            self.own_weights, self.unit_weight = True, rows.unit_weight
        return self

    @classmethod
    def weighted(
        cls, weights: np.ndarray, largest: float, groups: Any = None
    ) -> tuple[Units, np.ndarray]:
        """Units of rows that have weights of their own, and which rows are there.

        Weights are finite and at least 0; those above the public `largest` count as this one, a
        whole unit. Rows that weigh less than a step, `largest` / 2**20, are not there: the units
        are those without them, bit for bit."""
        # A function of the weight of one row and of `largest`: at most a whole unit, rounded down.
        parts, more = (
            exact_integers(np.floor(np.minimum(part, largest) / largest * _WEIGHT_STEPS))
            for part in (weights, np.maximum(weights - largest, 0.0))
        )
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
        units.excess = whole * more[there] // _WEIGHT_STEPS
        units.scale, units.unit_weight = _WEIGHT_STEPS, float(largest)
        units.own_weights = True
        return units, there

    @property
    def totals(self) -> np.ndarray:
        """Unreleased sums over all rows, to each of which a unit adds at most `scale` steps: of the
        weight; with own weights, of the squared weight of units, or what is no less, and of the
        excess."""
        if self.weights is None:
            return np.full(1, self.n_rows)
        weight = int(self.weights.sum())
        if not self.own_weights:
            return np.array([weight])
        # A weight w of at most `scale` has a square of at most `scale` w, so this is at most the
        # weight. Other rows of a group may be elsewhere: its weight takes the place of its square.
        squares = weight if self.index is not None else int((self.weights**2 // self.scale).sum())
        # Rows have at most `_WEIGHT_STEPS` of excess each, as they have of weight.
        return np.array([weight, squares, 0 if self.excess is None else int(self.excess.sum())])

    @property
    def facts(self) -> UnitFacts:
        """Public facts of these units."""
        grouped = self.index is not None
        return UnitFacts(self.scale, self.unit_weight, self.own_weights, grouped, self.unit)

    @property
    def step(self) -> float:
        """Length of a weight step, in units."""
        return 1.0 / self.scale

    def spread(self, per_unit: np.ndarray) -> np.ndarray:
        """A value (or row) of each unit, for each of its rows."""
        return per_unit if self.index is None else per_unit[self.index]

    def weigh(self, rows: np.ndarray) -> np.ndarray:
        """Integer-valued rows (n_rows, d), of norm at most 2**26, times their weights, toward zero:
        |row| never grows. The rows of a unit together have at most the norm of the longest."""
        if self.weights is None:
            return rows
        # Both factors are integers, |row| <= 2**26 and the weight at most 2**20: exact.
        return np.trunc(rows * (self.weights[:, None] * self.step))

    def take(self, chosen: Any) -> Units:
        """Return these units restricted to some rows (a mask, indices or a slice)."""
        other = object.__new__(Units)
        other.scale, other.size, other.unit_weight = self.scale, self.size, self.unit_weight
        other.own_weights, other.numbers, other.unit = self.own_weights, self.numbers, self.unit
        other.weights = None if self.weights is None else self.weights[chosen]
        other.excess = None if self.excess is None else self.excess[chosen]
        other.index = None if self.index is None else self.index[chosen]
        if isinstance(chosen, slice):
            other.n_rows = len(range(*chosen.indices(self.n_rows)))
            return other
        mask = np.asarray(chosen).dtype == bool
        other.n_rows = int(np.count_nonzero(chosen)) if mask else len(chosen)
        return other


def unit_of(groups: Any) -> str:
    """The unit that a fit with these groups protects, by types alone: it is asked before the ledger
    is charged."""
    if groups is None:
        return "row"
    check_container(groups)
    return "group"


# -- sealed answers --------------------------------------------------------------------------------


_set = object.__setattr__  # objects refuse that of their own


@dataclass(frozen=True)
class Claim:
    """What is proved of an answer v, and of the answer v' for a neighbor, which has a unit more.

    ``sum_i ((v_i - v'_i) / l2_i)^2 <= 1``, with one number for all entries or one for each; where
    there is an `l1`, also ``sum_i |v_i - v'_i| <= l1``, and where there is a `most`, no entry moves
    by more. `unit` is the length of a step. `rate` below one: all this is about a sample, in which
    each unit is with that probability by coins that nobody knows."""

    l2: Any
    unit: Any = 1.0
    l1: float | None = None
    most: float | None = None
    rate: float = 1.0

    @classmethod
    def of_entries(cls, most: float, n: int, rate: float = 1.0) -> Self:
        """Where each of n entries moves by at most `most`."""
        return cls(round_up(most * math.sqrt(n)) if n > 1 else most, most=most, rate=rate)

    @property
    def of_one(self) -> float:
        """The most that any entry moves by."""
        return float(np.max(self.l2)) if self.most is None else self.most


class Sealed:
    """Exact integers, of public shape, claim, units and question. What cannot be released, with an
    infinite claim, has no shape: it may be as long as there are rows."""

    __slots__ = ("__exact", "about", "claim", "shape", "units")

    about: str
    claim: Claim
    shape: tuple[int, ...]
    units: UnitFacts

    def __init__(self, exact: Any, claim: Claim, units: UnitFacts, about: str) -> None:
        _set(self, "_Sealed__exact", exact)
        _set(self, "shape", np.shape(exact) if np.all(np.isfinite(claim.l2)) else ())
        _set(self, "claim", claim)
        _set(self, "units", units)
        _set(self, "about", about)

    def __repr__(self) -> str:
        return f"<sealed {self.about} of shape {self.shape}>"

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(f"{self!r} is not released: only a session can open it.")

    __hash__ = None  # type: ignore[assignment]
    __setattr__ = __delattr__ = _refuse
    __bool__ = __len__ = __iter__ = __contains__ = __getitem__ = __reversed__ = _refuse
    __int__ = __float__ = __complex__ = __index__ = __round__ = __trunc__ = __floor__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __ceil__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = _refuse
    __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __divmod__ = _refuse
    __rdivmod__ = __pow__ = __rpow__ = __matmul__ = __rmatmul__ = __neg__ = __pos__ = _refuse
    __abs__ = __invert__ = __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _refuse
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __bytes__ = __format__ = _refuse
    __array__ = __array_ufunc__ = __array_function__ = __buffer__ = _refuse
    __reduce_ex__ = __reduce__ = __getstate__ = __copy__ = __deepcopy__ = _refuse
    __str__ = __repr__


class SealedCells(Sealed):
    """Exact counts of those of `n_cells` public cells that hold anything. Which do is not public.
    The last `n_shown` cells are released whatever they count."""

    __slots__ = ("n_cells", "n_shown")

    n_cells: int
    n_shown: int

    def __init__(
        self, exact: Any, claim: Claim, units: UnitFacts, about: str, n_cells: int, n_shown: int
    ) -> None:
        super().__init__(exact, claim, units, about)
        _set(self, "shape", ())
        _set(self, "n_cells", n_cells)
        _set(self, "n_shown", n_shown)


class SealedNames(Sealed):
    """Exact counts of those cells that hold anything, by names that nobody could list. A unit
    counts once in each of at most `cells` of them."""

    __slots__ = ("cells",)

    cells: int

    def __init__(
        self, exact: Any, claim: Claim, units: UnitFacts, about: str, cells: int = 1
    ) -> None:
        super().__init__(exact, claim, units, about)
        _set(self, "shape", ())
        _set(self, "cells", cells)


def opened(sealed: Sealed, plan: PrivacyPlan, rate: float = 1.0) -> Any:
    """The exact statistic, for a release of a session with that plan; a release that is paid for as
    one of a sample, of a `rate` below one, opens statistics of such a sample only."""
    if not isinstance(sealed, Sealed):
        raise TypeError("only what a question was answered with can be released.")
    if plan.unit == "group" and sealed.units.unit != "group":
        raise PlanError(f"{sealed!r} claims what a row changes, and the plan protects groups")
    if rate < 1 and sealed.claim.rate != rate:
        raise PlanError(f"{sealed!r} is of no sample at the rate that it would be paid for")
    return exact_of(sealed)


def entry_of(sealed: Sealed, index: int) -> Sealed:
    """One entry, of a public or released number."""
    claim = sealed.claim
    unit = claim.unit if np.ndim(claim.unit) == 0 else np.asarray(claim.unit).ravel()[index]
    entry_claim = Claim(claim.of_one, unit, most=claim.most, rate=claim.rate)
    return Sealed(exact_of(sealed)[index], entry_claim, sealed.units, sealed.about)


def exact_of(sealed: Sealed) -> Any:
    """For questions that make other numbers of these, and prove what one unit adds to them."""
    return object.__getattribute__(sealed, "_Sealed__exact")
