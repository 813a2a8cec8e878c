"""Counts of units by names that nobody could list: the categories of columns."""

from collections import Counter
from typing import Any

import numpy as np

from .._privacy._entries import exact_integers
from .._privacy._session import PrivacySession
from .._privacy._units import Claim, Units
from .._privacy.mechanisms.stability import unit_draws
from .._rows.categories import code_of, keys_of
from .._rows.table import CellCounts, Part
from ._query import Facts, Several, TableRows
from .cells import NamedCells


def row_of_each_unit(X: np.ndarray, units: Units, session: PrivacySession) -> TableRows:
    """A handle of one row of each unit, drawn at random from the rows of that unit alone."""
    chosen = _one_of_each(units, session)
    X = X if chosen is None else X[chosen]
    points = Units(len(X))
    points.unit = units.unit
    return TableRows.in_memory(X, points)


def _one_of_each(units: Units, session: PrivacySession) -> np.ndarray | None:
    """A row of each unit; None: all, as each is one."""
    if units.index is None:
        return None
    sizes = np.bincount(units.index)
    # 31 random bits of the unit, times its number of rows, over 2^31: a place among its rows.
    bits = exact_integers(unit_draws(session, units.size) >> np.uint64(33))
    place = np.cumsum(sizes) - sizes + (bits * sizes >> 31)
    return np.argsort(units.index, kind="stable")[place]


class CategoryCounts(NamedCells):
    """The numbers of rows by the names of their categories, an answer for each column."""

    Answer = Several

    def on(self, part: Part) -> tuple[Part, tuple]:
        return part, tuple(_counts_of(values) for values in part.source.read().T)

    def _claims(self, facts: Facts) -> tuple[Claim, ...]:
        """A row is in one category of each column (what is no category is one), or in none."""
        return super()._claims(facts) * facts.n_features


def _counts_of(values: Any) -> CellCounts:
    codes = (code_of(key) for key in keys_of(values))
    counted = sorted(Counter(code for code in codes if code is not None).items())
    names = np.array([name for name, _ in counted], dtype="S")
    return CellCounts(names, exact_integers([number for _, number in counted]))
