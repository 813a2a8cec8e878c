"""Exact statistics that only a session can open.

A question about rows (:mod:`sklearn_dp._queries`) is answered with a :class:`Sealed`: integers, and
the :class:`Claim` that is proved of them. All that an algorithm can do with one is to hand it to a
session, whose noise follows from the claim (:meth:`.PrivacySession.release`). It cannot be computed
with, compared, printed, pickled or copied. So an algorithm that holds sealed answers and released
numbers only is post-processing, whatever it computes and decides. Python hides nothing from those
who look for it, so `tests/_queries/test_laws.py` reads the syntax trees: nobody but the kernel
opens a statistic, and nobody but the questions seals one.
"""

import math
from dataclasses import dataclass
from typing import Any, NoReturn, Self

import numpy as np

from .._costs.plan import PlanError, PrivacyPlan
from .._costs.rounding import round_up
from ._units import UnitFacts

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
