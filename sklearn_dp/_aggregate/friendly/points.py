"""The points of a friendly mean: what they are, where they are, and a sample of them.

A point stands for a privacy unit. Without groups it is a row, wherever the row is
(:class:`Points`); that of a group is the mean of its rows (`_queries.group_points`).

Pairs of points are compared within a sample of a few thousand. The sample, and nothing else of the
rows, is collected at the place of the fit, which is trusted. Which points are in it is a function
of a seed and of their numbers: rows are numbered part after part, so that a table in parts has the
sample, and with it the bits, of the same rows in memory.
"""

from typing import Any, NamedTuple

import numpy as np

from ..._privacy._randomness import UnitDraws
from ..._privacy._session import PrivacySession
from ..._queries.coordinates import Columns, ColumnSource
from ..._queries.cores import sample_bound
from ..._queries.group_points import group_points, unit_points  # noqa: F401 - for others
from ..._queries.samples import ByPart, drawn_places
from ..shared.table import Part, Table
from .mean_facts import most_pairs


class Sample(NamedTuple):
    """Points that are compared with each other; unreleased."""

    points: np.ndarray  # (m, d)
    numbers: np.ndarray | None  # (m,), which of all points they are; None: all of them

    def __repr__(self) -> str:
        return "Sample"  # its points are nothing to print


class Points:
    """The points of a table whose rows are units, in coordinates of `columns`; one pass counts
    them.

    From here on the sources of the table give points. Their `number`, and `totals` of their weights
    (`Units.totals`), are unreleased.
    """

    def __init__(self, table: Table, columns: Columns) -> None:
        self.table, self.columns = table, columns
        self._sizes, self.totals = table.sums(_as_points, columns)
        self.number = sum(self._sizes.values.values())
        self._sample: Sample | None = None

    @property
    def n_features(self) -> int:
        return self.table.n_features

    def within(self, columns: Columns) -> "Points":
        """The same points in coordinates that have been released."""
        return Points(self.table, columns)

    def sample(self, session: PrivacySession, size: float) -> Sample:
        """All points, or about as many of them as can be compared, always the same ones: by coins
        of each point's own, so that the samples of neighbors are neighbors, or equal."""
        if self._sample is None:
            most, draws = most_pairs(self.n_features), None
            if size > most:
                draws = session.addressed_draws(self.number)
            firsts = self._sizes.starts()
            bound = None if draws is None else sample_bound(most / size)
            (found,) = self.table.sums(_sampled, firsts, draws, bound)
            points, places = zip(*found.in_order(), strict=True)
            self._sample = Sample(
                np.concatenate(points), None if draws is None else np.concatenate(places)
            )
        return self._sample


# -- passes ----------------------------------------------------------------------------------------


def _as_points(part: Part, columns: Columns) -> tuple[Part, tuple[ByPart, Any]]:
    """The part with points for rows; how many, and what they weigh."""
    part, units = part.reading(ColumnSource(part.source, columns)), part.units
    return part, (ByPart({part.source.number: units.n_rows}), units.totals)


def _sampled(
    part: Part, firsts: dict[int, int], draws: UnitDraws | None, bound: Any
) -> tuple[Part, tuple[ByPart]]:
    """The points of the part whose draw is within the bound, or all, and their numbers among
    all."""
    number, n = part.source.number, part.units.n_rows
    if draws is None:
        return part, (ByPart({number: (part.source.read()[:], None)}),)
    first = firsts[number]
    places = drawn_places(draws, bound, first, n)
    return part, (ByPart({number: (part.source.read()[places], first + places)}),)
