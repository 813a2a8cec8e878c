"""What is shown of a plan: its table, how large the noise will be, what its passes will take."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

from . import accounting
from .checks import extra, is_integer
from .report import PrivacyReport

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


_MOST_ADVISED = 20.0  # epsilon or rho: more protects hardly anybody


class PlanPages:
    """The methods of a plan that show it; nothing is decided by them."""

    entries: tuple[Any, ...]
    communication_cost: Callable[[Workload], CommunicationCost] | None
    report: Callable[..., PrivacyReport]

    def rows(self) -> list[dict[str, Any]]:
        """The table as a list of dicts."""
        return [
            {
                "release": e.name,
                "mechanism": str(e.mechanism),
                "sensitivity": e.sensitivity,
                "rho": e.rho,
                "cap": e.cap,
                "delta": e.delta,
                "path": " | ".join(e.paths) or "all",
            }
            for e in self.entries
        ]

    def to_frame(self) -> Any:
        """The table as a pandas DataFrame (extra ``pandas``)."""
        with extra("pandas"):
            import pandas as pd

        return pd.DataFrame(self.rows())

    def noise(self, n_units: int) -> PrivacyReport:
        """The table with one more column: how large the noise will be beside the sums.

        Parameters
        ----------
        n_units : int
            About how many units there will be; public.

        Returns
        -------
        report : PrivacyReport
            Its column "noise / signal" is the standard deviation of each release, over `n_units`
            times its sensitivity, which is the largest that an exact sum can be. It is not known
            (NaN) where the noise is not Gaussian.

        Examples
        --------
        >>> from sklearn_dp import PrivacyBudget
        >>> from sklearn_dp._costs.plan import Mechanism, PlanEntry, PrivacyPlan
        >>> plan = PrivacyPlan(
        ...     PrivacyBudget(rho=0.5, delta=1e-6), (PlanEntry("sum", Mechanism.GAUSSIAN, rho=0.5),)
        ... )
        >>> plan.noise(1000).releases[0]["noise / signal"]
        0.001
        """
        if not is_integer(n_units):
            raise TypeError("n_units must be an integer.")
        if n_units < 1:
            raise ValueError("n_units must be at least 1.")
        report = self.report()
        rows = []
        for entry, row in zip(self.entries, report.releases, strict=True):
            relative = math.nan
            if entry.mechanism == "gaussian":
                # Gaussian noise of scale sigma costs rho = (sensitivity / sigma)^2 / 2. Where an
                # entry pays for several releases, this is the noise of their best average. No
                # guarantee hangs on it, so it is not rounded outward.
                scale = int(n_units) * math.sqrt(2 * entry.rho)
                relative = 1 / scale if scale > 0 else math.inf
            rows.append(row | {"noise / signal": relative})
        return replace(report, releases=tuple(rows))

    def cost(
        self,
        *,
        n_rows: int,
        n_parts: int,
        n_workers: int = 1,
        row_bytes: float | None = None,
        n_iter: int | None = None,
        n_cells: int | None = None,
        n_groups: int | None = None,
    ) -> CommunicationCost:
        """What a fit of a table in parts takes, beside its budget: passes, bytes, memory, time.

        An estimate on paper, of the most, but for what is known.

        Parameters
        ----------
        n_rows, n_parts : int
            About how many there will be; public.
        n_workers : int, default=1
            That read at the same time.
        row_bytes : float, optional
            Of a row where it is read; by default those of float32.
        n_iter : int, optional
            Lloyd iterations; by default the most there may be.
        n_cells : int, optional
            Cells of a level of the cell tree that hold rows: some for each cluster where clusters
            are dense, up to 2**20 where rows are everywhere. By default the most there may be.
        n_groups : int, optional
            By default as many as rows.

        Returns
        -------
        cost : CommunicationCost
            Prints as a table; `n_passes`, `down` and `up` (bytes to a part and from it),
            `driver_bytes`, `read_seconds` and `transfer_seconds`.

        Raises
        ------
        TypeError
            Where there is no estimate: so far for `DPKMeans` with a given number of clusters.
        """
        if self.communication_cost is None:
            raise TypeError("an estimate exists only for DPKMeans with a given number of clusters.")
        given = {"n_rows": n_rows, "n_parts": n_parts, "n_workers": n_workers}
        known = {"n_iter": n_iter, "n_cells": n_cells, "n_groups": n_groups}
        given |= {name: value for name, value in known.items() if value is not None}
        for name, value in given.items():
            if not is_integer(value):
                raise TypeError(f"{name} must be an integer.")
            if value < 1:
                raise ValueError(f"{name} must be at least 1.")
        return self.communication_cost(Workload(row_bytes=row_bytes, **given))

    def __repr__(self) -> str:
        return repr(self.report())

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()


class BudgetFor:
    """The budget at which noise is so many `times` smaller, as the parameter that sets it.

    That of the whole fit (`plan`, or what several steps share), also for a candidate of a search, a
    segment or a step of a pipeline: all parts of a budget grow in proportion. Noise falls with the
    root of rho. Empty where so much would protect hardly anybody.
    """

    def __init__(self, plan: Any, shared: Any) -> None:
        self.plan, self.shared = plan, shared
        self.units = f"{plan.unit}s"

    def __call__(self, times: float, /) -> str:
        plan, shared = self.plan, self.shared
        if shared is not None:
            epsilon = accounting.zcdp_epsilon(times**2 * cast(float, shared.rho), shared.delta)
            return _stated("epsilon", epsilon, " in privatize")
        if plan.target.rho is not None:
            return _stated("rho", times**2 * plan.target.rho)
        if plan.unconverted:
            return _stated("epsilon", times * cast(float, plan.target.epsilon))
        rho, failure = times**2 * plan.rho, plan.delta_failure
        return _stated("epsilon", plan.target.epsilon_of(rho, plan.gaussian, failure))


def _stated(name: str, number: float, where: str = "") -> str:
    """A parameter with two digits, as people write them, unless it is too much to advise.

    >>> _stated("epsilon", 13.3), _stated("rho", 0.0123), _stated("epsilon", 333.0)
    ('epsilon = 13', 'rho = 0.012', '')
    """
    return f"{name} = {float(f'{number:.2g}'):.12g}{where}" if number <= _MOST_ADVISED else ""
