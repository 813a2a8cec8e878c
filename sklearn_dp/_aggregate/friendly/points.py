"""The points of a friendly mean: where they are, and a sample of them that are compared.

A point stands for a privacy unit. Without groups it is a row, wherever the row is; that of a group
is the mean of its rows (`_queries.group_points`).

Pairs of points are compared within a sample of a few thousand. The sample, and nothing else of the
rows, is collected at the place of the fit, which is trusted. Which points are in it is a function
of a seed and of their numbers: rows are numbered part after part, so that a table in parts has the
sample, and with it the bits, of the same rows in memory.
"""

from typing import Any

import numpy as np

from ..._privacy._session import PrivacySession
from ..._queries.coordinates import Columns, InColumns
from ..._queries.point_pairs import PointPairs
from ..._queries.samples import Coins, numbered
from ..._queries.table_rows import TableRows
from .mean_facts import most_pairs


class Points:
    """The points of a table whose rows are units, in coordinates of `columns` from here on."""

    def __init__(self, table: TableRows, columns: Columns) -> None:
        self.rows, self.columns = table, columns
        self.rows.apply(InColumns(columns))
        self._pairs: Any = None

    @property
    def n_features(self) -> int:
        return self.rows.n_features

    def pairs(self, session: PrivacySession, size: float, radii: np.ndarray | None = None) -> Any:
        """All points, or about as many of them as can be compared, always the same ones: by coins
        of each point's own, so that the samples of neighbors are neighbors, or equal. The first
        call says for which radii."""
        if self._pairs is None:
            most, coins = most_pairs(self.n_features), None
            if size > most:
                coins = Coins.of(session, numbered(self.rows), most / size)
            self._pairs = self.rows.ask(PointPairs(np.empty(0) if radii is None else radii, coins))
        return self._pairs
