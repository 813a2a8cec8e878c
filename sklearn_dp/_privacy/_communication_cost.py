"""What a fit of a table in parts takes: passes over the rows, and bytes that travel.

A plan says what is released; this is the other side of it: what the exact sums cost that are behind
the releases. Made of public shapes alone, before there are data.
"""

from dataclasses import dataclass
from typing import Any

from ._optional import extra

_GIGABYTE = 1e9


@dataclass(frozen=True)
class Pass:
    """One pass over all rows, at the most."""

    name: str
    down: float  # bytes to a part
    up: float  # bytes from a part
    # bytes of the sums of all parts together: more than those of a part where these are cells
    total: float
    times: int = 1


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A table in parts, and what is known of its fit: public numbers of at least one."""

    n_rows: int
    n_parts: int
    n_workers: int = 1
    n_groups: int | None = None  # None: as many as rows
    row_bytes: float | None = None  # None: 4 for each feature
    n_iter: int | None = None  # Lloyd iterations; None: the most there may be
    n_cells: int | None = None  # of a level of the tree, with rows; None: the most there may be


@dataclass(frozen=True, repr=False)
class CommunicationCost:
    """The total cost of the passes of a fit.

    >>> CommunicationCost((Pass("sums", 100, 50, 50, times=3),), 10, 10**9, 2, 8.0)
    pass         times   bytes down     bytes up    of a part
    sums             3          100           50
    all              3          300          150
    driver: 0.0 MB more memory; 12.0 s to read the rows at 1 GB/s by each of 2 workers, and
    0.0 s for data transfer
    """

    passes: tuple[Pass, ...]
    n_parts: int
    n_rows: int
    n_workers: int
    row_bytes: float  # of a row

    def _sum(self, name: str) -> float:
        return sum(one.times * getattr(one, name) for one in self.passes)

    @property
    def n_passes(self) -> int:
        """Passes over all rows."""
        return sum(one.times for one in self.passes)

    @property
    def down(self) -> float:
        """Bytes to a part, in all passes."""
        return self._sum("down")

    @property
    def up(self) -> float:
        """Bytes from a part, in all passes."""
        return self._sum("up")

    @property
    def driver_bytes(self) -> float:
        """Memory of the program that fits, beside itself: a message, a total and one to add."""
        return max(one.down + 2 * one.total for one in self.passes)

    @property
    def read_seconds(self) -> float:
        """Time in which the workers read all rows in each pass, at 1 GB/s each."""
        return self.n_passes * self.n_rows * self.row_bytes / self.n_workers / _GIGABYTE

    @property
    def transfer_seconds(self) -> float:
        """Time of what travels, at 1 GB/s to and from each worker."""
        return (self.down + self.up) * self.n_parts / self.n_workers / _GIGABYTE

    def rows(self) -> list[dict[str, Any]]:
        """The table as a list of dicts."""
        return [
            {"pass": one.name, "times": one.times, "down": one.down, "up": one.up}
            for one in self.passes
        ]

    def to_frame(self) -> Any:
        """The table as a pandas DataFrame (needs pandas)."""
        with extra("pandas"):
            import pandas as pd

        return pd.DataFrame(self.rows())

    def __repr__(self) -> str:
        lines = [f"{'pass':<12}{'times':>6}{'bytes down':>13}{'bytes up':>13}    of a part"]
        total = {"pass": "all", "times": self.n_passes, "down": self.down, "up": self.up}
        lines += [
            f"{row['pass']:<12}{row['times']:>6}{row['down']:>13,.0f}{row['up']:>13,.0f}"
            for row in (*self.rows(), total)
        ]
        lines.append(
            f"driver: {self.driver_bytes / 1e6:,.1f} MB more memory; "
            f"{self.read_seconds:,.1f} s to read the rows at 1 GB/s by each of {self.n_workers} "
            f"workers, and\n{self.transfer_seconds:,.1f} s for data transfer"
        )
        return "\n".join(lines)
