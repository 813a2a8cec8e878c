"""Tables for random questions, and what is proved of each question, checked exactly."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy.sparse import csr_array

from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.plan import PlanEntry, PrivacyPlan
from sklearn_dp._privacy._grid import Grid
from sklearn_dp._privacy._units import Sealed, Units, opened
from sklearn_dp._queries._query import Query, TableRows
from sklearn_dp._queries.grids import ACTIVE
from sklearn_dp._rows import single_rows
from sklearn_dp._rows.single_rows import SparseRows
from sklearn_dp._rows.table import ArraySource, LocalEngine, Part, Table

WIDE = 32  # features of rows of which few entries are not zero
PLAN = PrivacyPlan(PrivacyBudget(rho=1.0, delta=1e-6), (PlanEntry("e", "gaussian", 1.0),))


@dataclass
class Case:
    """A question of rows that are prepared first; `likely` rows are at its borders."""

    query: Any
    d: int
    radius: float = 1.0  # of the rows, about
    prepare: Callable = lambda rows: rows  # from the handle of a table to the one that is asked
    likely: Callable | None = None  # from directions (n, d) to rows ...
    often: bool = False  # ... that most are
    reached: float = 0.9  # part of its claims that rows come to
    units: bool = True  # whether rows may have groups and weights
    additive: bool = True  # whether answers are sums over rows
    together: bool = False  # whether all rows of a unit are in one part
    replace: bool = False  # whether neighbors may also replace a row ...
    fixed: bool = False  # ... and do nothing else
    numbered: bool = False  # whether rows are told apart by their numbers


def answers(case, X, units, cuts=()):
    """The exact statistics, their claims, by the way of a fit: a handle, and a sealed answer."""
    places = np.split(np.arange(len(X)), cuts)
    parts = [
        Part(ArraySource(X[own], number), units.take(own)) for number, own in enumerate(places)
    ]
    table = Table(LocalEngine(parts), X.shape[1], X.dtype, units.facts)
    rows = case.prepare(TableRows(table))
    query = case.query if isinstance(case.query, Query) else case.query(rows)
    found = rows.ask(query)
    found = [found] if isinstance(found, Sealed) else [each for each in found if each is not None]
    # What nobody could release is for other questions.
    found = [each for each in found if np.all(np.isfinite(each.claim.l2))]
    coins = getattr(query, "coins", None)
    assert all(each.claim.rate >= (1.0 if coins is None else coins.rate) for each in found)
    return [(_plain(opened(each, PLAN)), each.claim) for each in found]


def _plain(value):
    """Python integers, which never wrap; of cells, by their numbers."""
    if isinstance(value, tuple):
        return dict(zip(*(each.tolist() for each in value), strict=True))
    return np.asarray(value).astype(object)


def _sum(values):
    if not isinstance(values[0], dict):
        return sum(values)
    return {c: sum(v.get(c, 0) for v in values) for v in values for c in v}


def _same(one, other):
    if isinstance(one, dict):
        return {c: n for c, n in one.items() if n} == {c: n for c, n in other.items() if n}
    return np.shape(one) == np.shape(other) and bool(np.all(one == other))


def _less(value, other):
    if not isinstance(value, dict):
        return value - other
    return {c: value.get(c, 0) - other.get(c, 0) for c in {*value, *other}}


def used(value, claim):
    """Of what one unit adds, exactly: sum_i (v_i / l2_i)^2, and the largest part of the other norms
    that are claimed."""
    entries = np.array(list(value.values()), dtype=object) if isinstance(value, dict) else value
    flat = np.ravel(entries)
    l2 = np.broadcast_to(np.asarray(claim.l2, dtype=np.float64), np.shape(entries)).ravel()
    there = np.flatnonzero(flat != 0)
    square = sum((Fraction(int(flat[i])) / Fraction(float(l2[i]))) ** 2 for i in there)
    sizes = [abs(int(flat[i])) for i in there]
    others = [(sum(sizes), claim.l1), (max(sizes, default=0), claim.most)]
    shares = [Fraction(n) / Fraction(most) for n, most in others if most is not None]
    return square, max(shares, default=Fraction(0))


def problem(case, rng, n=10):
    """What is not as proved of one question and some rows, or None; what units use of the claims.

    Every row alone, all of them, all of them in parts, and neighbors, which have one unit less.
    """
    if not case.additive:
        n = int(rng.integers(2, n))
    X, units = table_for(rng, case, n)
    n = len(X)
    if not n:
        return None, []
    index = np.arange(n) if units.index is None else units.index
    with np.errstate(all="ignore"):
        whole = answers(case, X, units)
        cut = answers(case, X, units, np.sort(rng.integers(n + 1, size=2)))
        alike = [_same(one, other) for (one, _), (other, _) in zip(whole, cut, strict=True)]
        if not (case.together or all(alike)):
            return "it depends on where the rows are", []
        changes = [[] for _ in whole]
        if case.additive:
            chosen = index[rng.integers(n)]
            less = answers(case, X[index != chosen], units.take(index != chosen))
            alone = [answers(case, X[i : i + 1], units.take(slice(i, i + 1))) for i in range(n)]
            for number, (value, _) in enumerate(whole):
                rows = [each[number][0] for each in alone]
                if not _same(value, _sum(rows)):
                    return "it is not the sum of what its rows add", []
                own = [rows[i] for i in np.flatnonzero(index == chosen)]
                if not _same(value, _sum([less[number][0], *own])):
                    return "a unit adds something else where others are", []
                changes[number] = [
                    _sum([rows[i] for i in np.flatnonzero(index == unit)]) for unit in {*index}
                ]
        for other in neighbors(case, rng, X, units):
            for own, (value, _), (without, _) in zip(changes, whole, other, strict=True):
                own.append(_less(value, without))
    most = []
    for own, (_, claim) in zip(changes, whole, strict=True):
        found = [used(each, claim) for each in own]
        worst = max(max(float(square) ** 0.5, float(share)) for square, share in found)
        if any(square > 1 or share > 1 for square, share in found):
            return f"a unit changes {worst:.12g} of what is claimed", []
        most.append(worst)
    return None, most


def neighbors(case, rng, X, units):
    """Answers of neighbors: without a unit, or of points with another one instead."""
    n, index = len(X), np.arange(len(X)) if units.index is None else units.index
    if not case.additive and not case.fixed:
        for unit in [n - 1] if case.numbered else {*index.tolist()}:
            kept = index != unit
            yield answers(case, X[kept], units.take(kept))
    if case.replace:
        new = np.asarray(rows_for(rng, case, n), dtype=X.dtype)
        for i in range(n):
            yield answers(case, np.where(np.arange(n)[:, None] == i, new, X), units)


# -- tables ----------------------------------------------------------------------------------------


def table_for(rng, case, n):
    """Normal and extreme rows, as arrays of either type and order or sparse, and their units."""
    X = rows_for(rng, case, n)
    units, there = units_for(rng, n) if case.units else (Units(n), np.ones(n, dtype=bool))
    kind, X = rng.integers(5), X[there]
    if case.replace:
        return X, units
    if kind == 0:
        X = np.clip(X, -3e38, 3e38).astype(np.float32)
    if kind == 1:
        X = np.asfortranarray(X)
    return (SparseRows(csr_array(X)) if kind > 1 and case.d == WIDE else X), units


def rows_for(rng, case, n):
    d, radius = case.d, case.radius
    direction = rng.normal(size=(n, d))
    if d == WIDE:
        direction[np.argsort(rng.random((n, d)), axis=1) >= 3] = 0.0
    direction /= np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), 1e-300)
    X = direction * radius * 10.0 ** rng.uniform(-2, 0.5, (n, 1))
    kind = rng.integers(9, size=n)
    X[kind == 0] = direction[kind == 0] * radius  # at the border
    X[kind == 1] = direction[kind == 1] * radius * 10.0 ** rng.choice([1, 8, 100])
    X[kind == 2] = np.sign(direction[kind == 2]) * radius
    X[kind == 3] = 0.0 if rng.random() < 0.5 else direction[kind == 3] * 1e-300
    if case.likely is not None:
        likely = kind >= (1 if case.often else 6)
        X[likely] = case.likely(direction[likely])
    unit = Grid.for_radius(radius).unit  # on edges of bins and cells: whole steps of the grid
    X[kind == 5] = np.rint(X[kind == 5] / unit) * unit
    return X


def units_for(rng, n):
    """Rows as units, with weights, in groups, or both; and which rows have a weight."""
    kind = rng.integers(4)
    groups = rng.integers(max(1, n // 2), size=n) if kind & 1 else None
    if kind < 2:
        return Units(n, groups), np.ones(n, dtype=bool)
    weights = rng.choice([0.0, 1e-9, 0.3, 1.0, 2.0, 5.0, 1e6], size=n)
    return Units.weighted(weights, 2.0, groups)


# -- a planted bug ---------------------------------------------------------------------------------


class _OfTheFirst(np.ndarray):
    """A mask that gives the first rows of a part, whichever are asked for."""

    def __getitem__(self, place):
        own = np.asarray(self)
        return own[: place.stop - place.start] if isinstance(place, slice) else own[place]


def masks_of_the_first_rows(original):  # which are others in all chunks but the first
    def on(self, part):
        active = part.state.get(ACTIVE)
        if active is not None:
            part = part.having(**{ACTIVE: active.view(_OfTheFirst)})
        with patch.object(single_rows, "_CHUNK_ENTRIES", 8):
            return original(self, part)

    return on
