"""Rows on a grid, and public numbers that fit them, for random questions."""

from dataclasses import dataclass

import numpy as np
from query_tools import PLAN, WIDE, Case

from sklearn_dp._parameters import domain_of
from sklearn_dp._privacy._grid import Domain, Grid
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._queries import balls, grids, halves, samples
from sklearn_dp._queries.grids import GridRows


def a_basis(rng, d):
    """Of half as many axes, perhaps too long."""
    basis = np.linalg.qr(rng.normal(size=(d, max(1, d // 2))))[0] * rng.choice([1.0, 3.0])
    return np.rint(basis * 2.0**grids.BASIS_BITS)


def features(rng, most=5):
    return WIDE if rng.random() < 0.2 else int(rng.integers(1, most + 1))


@dataclass
class Ground:
    """Rows on a grid, perhaps about another origin, or projected."""

    d: int
    domain: Domain
    within: Domain | None
    origin: np.ndarray | None
    basis: np.ndarray | None

    @classmethod
    def draw(cls, rng, plain=False):
        d = features(rng)
        radius = float(rng.choice([1.0, 3.7, 1e-3, 5e4]))
        kind = rng.integers(6)
        domain = domain_of(radius, d)
        if kind == 0:
            domain = domain_of((-np.full(d, radius), np.full(d, 1.5 * radius)), d)
        within = domain_of(0.9 * radius, d) if kind == 1 else None
        ground = cls(d, domain, within, None, None)
        if kind in (2, 3) and not plain:
            ground.origin = np.trunc(rng.uniform(-0.5, 0.5, d) / np.sqrt(d) * ground.ball)
        if kind in (3, 4) and not plain and d > 1:
            ground.basis = a_basis(rng, d)
        return ground

    @property
    def ball(self):
        return Grid.for_radius(self.domain.radius).steps(self.domain.radius)

    @property
    def unit(self):
        return Grid.for_radius(self.domain.radius).unit

    @property
    def n_features(self):
        return self.d if self.basis is None else self.basis.shape[1]

    @property
    def limit(self):
        shift = 0.0 if self.origin is None else float(np.linalg.norm(self.origin))
        return self.ball + shift

    def rows(self, table):
        rows = GridRows.quantize(table, self.domain, self.within)
        if self.origin is not None:
            rows.recenter(self.origin)
        return rows if self.basis is None else rows.project(self.basis)

    def points(self, rng, m, part=0.6):
        """Integer points inside."""
        q = self.n_features
        return np.trunc(rng.uniform(-1, 1, (m, q)) * part / np.sqrt(q) * self.ball)

    def case(self, query, *steps, **options):
        """A question after steps, and after other questions whose answers nobody wants."""

        def prepare(table):
            rows = self.rows(table)
            for step in steps:
                (rows.apply if isinstance(step, grids.Step) else rows.ask)(step)
            return rows

        return Case(query, self.d, self.domain.radius, prepare, **options)

    def points_case(self, query, *steps, **options):
        """A case of rows that have no weights and no groups."""
        return self.case(query, *steps, units=False, **options)

    def view(self, rng):
        """Coordinates about a place, whose limit may be less than rows are long, or more."""
        basis = a_basis(rng, self.n_features) if rng.random() < 0.7 else None
        return halves.View(self.points(rng, 1)[0], float(self.limit * rng.uniform(0.1, 2)), basis)

    def cut(self, rng):
        view, square = self.view(rng), float((0.5 * self.limit) ** 2)
        return halves.Cut(view, view.of_points(self.points(rng, 1))[0], square, None, None)

    def node(self, rng):
        """From a table to one of two nodes of it."""
        cut, view = self.cut(rng), self.view(rng)

        def prepare(table):
            rows = self.rows(table)
            rows.apply(halves.Divided(0, cut, (1, 2)))
            return halves.viewed(rows, 1, view)

        return prepare

    def half(self, rng):
        """From a table to some of one half of its points, along axes."""
        second, axes = (
            bool(rng.random() < 0.5),
            a_basis(rng, self.d) if rng.random() < 0.7 else None,
        )
        center = rng.uniform(-0.3, 0.3, self.d if axes is None else axes.shape[1])
        taken = balls.Beyond(np.trunc(center * self.ball), self.ball**2 / 9)

        def prepare(table):
            points, numbers = self.rows(table), samples.numbered(table)
            draws = samples.unit_draws(PrivacySession(PLAN, random_state=0), numbers)
            half = halves.half_of_points(points, numbers, draws, second=second, axes=axes)
            half.apply(taken)
            return half

        return prepare


def edges(rng, top, n=6):
    return np.concatenate([[0.0], np.sort(rng.uniform(0.05, 1, n - 1)) * top, [top]])


def around(ground, centers, radius, rng):
    """Rows about as far from a center as a radius, in lengths; where rows are as they came."""
    if ground.basis is not None:
        return None
    origin = 0.0 if ground.origin is None else ground.origin

    def likely(direction):
        own = rng.integers(len(centers), size=len(direction))
        steps = centers[own] + direction * radius[own][:, None] * rng.choice([1.0, 1.001, 2.0])
        return (steps + origin) * ground.unit + ground.domain.center

    return likely
