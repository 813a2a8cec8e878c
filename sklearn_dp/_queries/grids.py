"""Rows on a grid: quantized, about another origin, or projected; and questions about active ones,
those that an earlier step has left."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from .._privacy._domain import Domain
from .._privacy._grid import NearRows, clip_integer_rows
from .._privacy._integers import exact_integers
from .._privacy._sealed import Claim
from .._privacy._units import UnitFacts, Units
from .._rows.rows import WHOLE, Rows, map_rows
from .._rows.table import ROWS, Part
from ._query import Facts, Public, Query, Step

BASIS_BITS = 20
"""A basis is in steps of 2**-20."""


class Quantized(Step):
    """Move rows into the public bounds `within`, clip them into a domain, round them to its grid;
    they are kept in memory, as far as all `n_parts` may, unless one pass reads them."""

    domain: Domain
    within: Domain | None
    n_parts: int
    kept: bool

    def on(self, part: Part) -> Part:
        options: Any = {"within": self.within, "n_parts": self.n_parts, "kept": self.kept}
        rows = Rows.of_source(part.source, self.domain, part.units.n_rows, **options)
        return part.having(**{ROWS: rows})


class Recentered(Step):
    """Serve the rows about an integer origin."""

    origin: np.ndarray

    def on(self, part: Part) -> Part:
        return part.having(**{ROWS: part[ROWS].about(self.origin)})


def _check_basis(basis: np.ndarray) -> None:
    """Raise unless products with integer rows, of norm at most 2**25, are exact."""
    lengths = np.einsum("ij,ij->j", basis, basis)
    if not np.array_equal(basis, np.rint(basis)) or not (lengths <= 2.0**54).all():
        raise ValueError("a basis must be integers, in steps of 2**-20 of about the length one.")


def _products(rows: Any, basis: np.ndarray) -> np.ndarray:
    """Integer coordinates: products and sums are exact, whatever BLAS does."""
    return np.floor(rows @ basis * 2.0**-BASIS_BITS)


class Projected(Step):
    """Products of the rows with a basis (d, q) take their place, until `Unprojected`."""

    basis: np.ndarray  # integers, in steps of 2**-20
    n_parts: int

    def _check(self) -> None:
        _check_basis(self.basis)

    def on(self, part: Part) -> Part:
        function = partial(projected, basis=self.basis, limit=part[ROWS].limit)
        mapped = map_rows(part, function, self.basis.shape[1], self.n_parts)
        return part.having(**{WHOLE: part[ROWS], ROWS: mapped})


def projected(rows: Any, squares: Any, *, basis: np.ndarray, limit: float) -> np.ndarray:
    """Integer coordinates of norm at most `limit`: rounding, and a basis, may lengthen a row."""
    return clip_integer_rows(_products(rows, basis), limit)


class Unprojected(Step):
    """Go back to the rows before `Projected`."""

    def on(self, part: Part) -> Part:
        return part.without(WHOLE).having(**{ROWS: part[WHOLE]})


class Axes(Public):
    """An integer basis of a subspace, and the released spread along it."""

    # (d, q), orthonormal up to rounding to multiples of 2**-20, in such steps; None: the identity
    basis: np.ndarray | None
    spread: np.ndarray  # (q,), standard deviations, in grid steps
    half_widths: np.ndarray  # (q,), of the box that is searched
    limit: float  # rows are clipped to this norm where there is no basis
    rest: float = 0.0  # released mean squared length off these axes

    def _check(self) -> None:
        if self.basis is not None:
            _check_basis(self.basis)

    def project(self, rows: Any, squares: np.ndarray) -> np.ndarray:
        """Integer rows (m, d), of norm at most 2**25, to integer coordinates (m, q), unclipped."""
        if self.basis is None:
            rows = rows.dense() if isinstance(rows, NearRows) else rows
            return clip_integer_rows(rows, self.limit, squares)
        return _products(rows, self.basis)

    def flatten(self, points: np.ndarray) -> np.ndarray:
        """Released points of the whole space to coordinates along the axes, in plain floats."""
        return points if self.basis is None else points @ (self.basis * 2.0**-BASIS_BITS)

    def lift(self, points: np.ndarray) -> np.ndarray:
        """Coordinates along the axes to points of the whole space."""
        return points if self.basis is None else points @ (self.basis.T * 2.0**-BASIS_BITS)


ACTIVE = "active"
"""Name, in the state of a part, of which of its rows are active; all are, where it is not."""


class Active(Query):
    """A question about the active rows, each of which is a unit of weight one; others count as if
    they were not there."""

    query: Query

    def on(self, part: Part) -> tuple[Part, tuple]:
        units, active = Units(part.units.n_rows), part.state.get(ACTIVE)
        units.weights = (
            np.ones(units.n_rows, np.int64) if active is None else exact_integers(active)
        )
        return part, self.query.on(replace(part, units=units))[1]

    def exact(self, sums: tuple) -> tuple:
        return self.query.exact(sums)

    def claims(self, facts: Facts) -> tuple[Claim, ...]:
        """That of the question, of rows of weight one: whether one is active follows from the row
        and from released values."""
        if facts.units.grouped:
            raise TypeError("a row must be all of its unit here.")
        return self.query.claims(facts._replace(units=UnitFacts(unit=facts.units.unit)))
