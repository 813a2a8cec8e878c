"""The handle on the rows of a grid, and the ranks of these rows.

Rows are quantized, moved to another origin, or projected; questions are about active ones, those
that an earlier step has left. Algorithms have a handle (see :mod:`._query`), and no row. Ranks are
along an axis, or of lengths.
"""

from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np

from .._privacy._entries import exact_integers
from .._privacy._grid import Domain, Grid, NearRows, clip_integer_rows, weighted_bincount
from .._privacy._units import Claim, UnitFacts, Units
from .._rows.rows import WHOLE, GridGeometry, Rows, map_rows
from .._rows.single_rows import counted
from .._rows.table import ROWS, Part
from .._rows.table import LocalEngine as _LocalEngine
from .._rows.table import Part as _Part
from .._rows.table import PartSource as _PartSource
from .._rows.table import Table as _Table
from ._query import Facts, GridFacts, Public, Query, Step, TableRows
from .ranks import RankQuery

BASIS_BITS = 20
"""A basis is in steps of 2**-20."""


# -- steps -----------------------------------------------------------------------------------------


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


# -- the handle ------------------------------------------------------------------------------------


class GridRows(GridGeometry):
    """The rows of a table as integers, clipped into a ball; another grid ends those before."""

    def __init__(self, table: TableRows, ball: float, unit: float = 1.0) -> None:
        super().__init__(table.n_features, ball, unit)
        self.table, self.units = table, table.units

    @classmethod
    def of_rows(
        cls, rows: Rows, active: np.ndarray | None = None, units: Units | None = None
    ) -> Self:
        """A handle of integer rows in memory, units by default, of which some are `active`."""
        units, state = units or Units(rows.n_rows), {} if active is None else {ACTIVE: active}
        engine = _LocalEngine([_Part(_PartSource(), units, {ROWS: rows, **state})], guarded=False)
        handle = cls(
            TableRows(_Table(engine, rows.n_features, np.float64, units.facts)),
            rows.ball,
            rows.unit,
        )
        GridGeometry.recenter(handle, rows.origin)
        return handle

    @classmethod
    def quantize(
        cls, table: TableRows, domain: Domain, within: Domain | None = None, *, kept: bool = True
    ) -> Self:
        """Move rows `within`, clip, and round them: in the next pass, and `kept` for others."""
        grid = Grid.for_radius(domain.radius)
        table.apply(Quantized(domain, within, table.n_parts, kept))
        return cls(table, grid.steps(domain.radius), grid.unit)

    def ask(self, query: Query) -> Any:
        """Sealed answers: one pass over the rows."""
        return self.table.ask(query, self._facts)

    def apply(self, step: Step) -> None:
        """Let the parts find something out, in the next pass."""
        self.table.apply(step, self._facts)

    @property
    def _facts(self) -> GridFacts:
        return GridFacts(self.n_features, self.limit, self.unit)

    def recenter(self, origin: np.ndarray) -> None:
        """Serve the rows about a released integer origin from now on."""
        self.apply(Recentered(origin))
        super().recenter(origin)

    def project(self, basis: np.ndarray) -> Self:
        """The rows of fewer features that the parts hold until `unproject`; see `Projected`."""
        projected = copy(self)
        GridGeometry.__init__(projected, basis.shape[1], self.limit, self.unit)
        self.apply(Projected(basis, self.table.n_parts))
        return projected

    def unproject(self) -> None:
        """Go back to the rows before `project`."""
        self.table.apply(Unprojected())


# -- ranks -----------------------------------------------------------------------------------------


class LineRanks(RankQuery):
    """Ranks of rows on a grid, along one axis: a row is in the bin whose lower edge it reaches."""

    axis: Axes  # a single one
    edges: np.ndarray  # (n_bins - 1,), increasing, in steps

    def _check(self) -> None:
        if len(self.axis.spread) != 1:
            raise ValueError("ranks are along one axis.")

    @property
    def n_histograms(self) -> int:
        return 1

    @property
    def n_bins(self) -> int:
        return len(self.edges) + 1

    def on(self, part: Part) -> tuple[Part, tuple]:
        rows = part[ROWS].map(self.axis.project, 1)
        bins = np.empty(rows.n_rows, dtype=np.int64)
        for place, x in rows.chunks():
            bins[place] = np.searchsorted(self.edges, x[:, 0], side="right")
        return part, (weighted_bincount(bins, part.units, self.n_bins)[None],)


class LengthRanks(RankQuery):
    """Ranks of rows, the longest first: a row is in the bin whose upper edge the square of its
    length does not exceed, and in none beyond the last edge."""

    squares: np.ndarray  # (n_bins,), increasing, in squared steps

    @property
    def n_histograms(self) -> int:
        return 1

    @property
    def n_bins(self) -> int:
        return len(self.squares)

    def on(self, part: Part) -> tuple[Part, tuple]:
        row_squares = part[ROWS].squares

        def cells(place: slice) -> np.ndarray:
            bins = np.searchsorted(self.squares, row_squares[place])
            return self.n_bins - 1 - bins  # negative beyond the last edge

        return part, (counted(cells, len(row_squares), part.units, self.n_bins)[None],)
