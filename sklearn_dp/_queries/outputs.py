"""Outputs of blocks, as points: one of a public number may be replaced by any other."""

import numpy as np

from .._privacy._integers import exact_integers
from .._privacy._sealed import Claim
from .._rows.table import ArraySource, Part
from ._query import Facts, PointQuery, Step
from .balls import Crossing, counts_within
from .grids import ACTIVE

_LARGEST = 1e100  # entries of outputs: squares of larger ones may overflow


def _working(part: Part) -> np.ndarray:
    return np.isfinite(np.asarray(part.source.read())).all(axis=1)


class Working(PointQuery):
    """The number of outputs that are finite."""

    def on(self, part: Part) -> tuple[Part, tuple]:
        return part, (exact_integers([_working(part).sum()]),)

    def _claims(self, facts: Facts) -> tuple[Claim, ...]:
        """Another output instead of one changes the number that worked by at most one."""
        return (Claim(1.0, most=1.0),)


class Usable(Step):
    """Outputs that are not finite are zero, and not active; the entries of others are clipped."""

    def on(self, part: Part) -> Part:
        working, rows = _working(part), np.asarray(part.source.read())
        rows = np.clip(np.where(working[:, None], rows, 0.0), -_LARGEST, _LARGEST)
        return part.reading(ArraySource(rows, part.source.number)).having(**{ACTIVE: working})


def _active(part: Part) -> np.ndarray:
    """The active outputs."""
    rows, active = np.asarray(part.source.read()), part.state.get(ACTIVE)
    return rows if active is None else rows[active]


class MiddleScores(PointQuery):
    """Scores that are best at the smallest number of an increasing grid that `half` of the active
    outputs are no more than: in one column, or in the distance of it from `about`."""

    column: int
    grid: np.ndarray
    half: int
    about: float | None

    def on(self, part: Part) -> tuple[Part, tuple]:
        values = _active(part)[:, self.column]
        values = values if self.about is None else np.abs(values - self.about)
        return part, (counts_within(values, self.grid),)

    def exact(self, sums: tuple) -> tuple:
        (within,) = sums
        before = self.half - np.append(0, within[:-1])
        return (np.minimum(np.minimum(within - self.half, before), 0),)

    def _claims(self, facts: Facts) -> tuple[Claim, ...]:
        """Another output in the place of one moves each number by at most 1, and so each score."""
        return (Claim.of_entries(1.0, len(self.grid)),)


class LengthScores(PointQuery):
    """Scores of increasing squared lengths, by the numbers of active outputs within."""

    crossing: Crossing
    squares: np.ndarray

    def on(self, part: Part) -> tuple[Part, tuple]:
        rows = _active(part)
        squared = np.zeros(len(rows))
        for column in rows.T:  # elementwise: each a function of its own block
            squared += np.square(column)
        return part, (counts_within(squared, self.squares),)

    def exact(self, sums: tuple) -> tuple:
        return (self.crossing.scores(sums[0]),)

    def _claims(self, facts: Facts) -> tuple[Claim, ...]:
        """Another output in the place of one moves each number by at most one."""
        return (Claim.of_entries(1.0, len(self.squares)),)
