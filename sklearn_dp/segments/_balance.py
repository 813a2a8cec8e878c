"""Rows of encoded columns, brought to one scale by what has been released of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

_NARROW = 0.02  # of its range: a column whose standard deviation is smaller is not stretched more


@dataclass(frozen=True)
class Balance:
    """Multipliers and centers of encoded columns without weights; all are released or public.

    Known numbers have about unit variance, and all coordinates of a category together. A number
    that is not known is at the mean of the known ones, one standard deviation apart in a direction
    of its own: so rows with a missing value differ by about as much as any two rows do, whatever
    the range of the column is.
    """

    columns: tuple[Any, ...]
    weights: np.ndarray  # of each column, asked for and released
    means: np.ndarray  # encoded means of known numbers; 0 for categories
    asked: np.ndarray  # of each column

    @classmethod
    def of(cls, columns: list[Any], scales: Any, asked: dict[Any, float]) -> Self:
        """From the means and variances that a `DPStandardScaler` has released."""
        mean, variance = (np.nan_to_num(each) for each in (scales.mean_, scales.var_))
        spreads, means, place = [], [], 0
        for column in columns:
            block = slice(place, place + len(column.names))
            place, middle, square = block.stop, 0.0, np.maximum(variance[block], 0.0).sum()
            if hasattr(column, "beyond"):
                known = 1 - float(np.clip(column.unknown(mean[None, block])[0], 0.0, 0.9))
                middle = float(np.clip(mean[block][1] / known, -0.5, 0.5))
                value = float(variance[block][1]) + float(mean[block][1]) ** 2
                square = value / known - middle**2
            # No column is spread wider than its range allows.
            spreads.append(np.clip(np.sqrt(max(square, 0.0)), _NARROW, np.sqrt(column.square)))
            means.append(middle)
        wanted = np.array([asked.get(column.name, 1.0) for column in columns])
        return cls(tuple(columns), wanted / np.array(spreads), np.array(means), wanted)

    def rows(self, rows: np.ndarray) -> np.ndarray:
        """Encoded rows, balanced, each of them by itself; or means of rows."""
        parts = []
        for column, weight, mean, asked, block in self._each:
            part = rows[:, block]
            if hasattr(column, "beyond"):
                unknown = column.unknown(part)
                part = np.stack([unknown * asked / weight, part[:, 1] + unknown * mean], axis=1)
            parts.append(part * weight)
        return np.hstack(parts)

    def errors(self, errors: np.ndarray) -> np.ndarray:
        """Standard errors of means of balanced rows, from those of encoded rows."""
        parts = []
        for column, weight, mean, asked, block in self._each:
            part = errors[:, block]
            if hasattr(column, "beyond"):
                unknown = column.unknown(part)
                part = np.stack([unknown * asked / weight, np.hypot(part[:, 1], unknown * mean)], 1)
            parts.append(part * weight)
        return np.hstack(parts)

    def variances(self, scales: Any) -> np.ndarray:
        """Of the balanced coordinates of each column together."""
        mean, variance = (np.nan_to_num(each) for each in (scales.mean_, scales.var_))
        found = []
        for column, weight, middle, asked, block in self._each:
            square = float(np.maximum(variance[block], 0.0).sum())
            if hasattr(column, "beyond"):
                unknown = float(np.clip(column.unknown(mean[None, block])[0], 0.0, 0.9))
                square = float(variance[block][1] + mean[block][1] ** 2) - (1 - unknown) * middle**2
                square = max(square, 0.0) + unknown * (1 - unknown) * (asked / weight) ** 2
            found.append(square * weight**2)
        return np.array(found)

    @property
    def radius(self) -> float:
        """Of a ball around the origin that has all balanced rows."""
        lengths = [
            np.hypot(max(column.square**0.5, abs(mean)) * weight, asked * hasattr(column, "beyond"))
            for column, weight, mean, asked, _ in self._each
        ]
        return float(np.linalg.norm(lengths)) * (1 + 1e-9)

    @property
    def blocks(self) -> list[slice]:
        """The coordinates of each column."""
        ends = np.cumsum([0, *(len(column.names) for column in self.columns)])
        return [slice(*pair) for pair in zip(ends, ends[1:], strict=False)]

    @property
    def _each(self) -> Iterator[tuple[Any, float, float, float, slice]]:
        return zip(self.columns, self.weights, self.means, self.asked, self.blocks, strict=True)
