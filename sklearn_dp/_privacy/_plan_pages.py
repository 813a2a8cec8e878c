"""What is shown of a plan: its table, how large the noise will be, what a fit will take."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from . import _accounting as accounting
from ._checks import is_integer
from ._communication_cost import CommunicationCost, Workload
from ._optional import extra
from ._report import PrivacyReport

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
        >>> from sklearn_dp._privacy._plan import Mechanism, PlanEntry, PrivacyPlan
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


def budget_for(plan: Any, shared: Any, times: float) -> str:
    """The budget at which noise is so many `times` smaller, as the parameter that sets it.

    That of the whole fit (`plan`, or what several steps share), also for a candidate of a search, a
    segment or a step of a pipeline: all parts of a budget grow in proportion. Noise falls with the
    root of rho. Empty where so much would protect hardly anybody.
    """
    if shared is not None:
        epsilon = accounting.zcdp_epsilon(times**2 * cast(float, shared.rho), shared.delta)
        return _stated("epsilon", epsilon, " in privatize")
    if plan.target.rho is not None:
        return _stated("rho", times**2 * plan.target.rho)
    if plan.one_step:
        return _stated("epsilon", times * cast(float, plan.target.epsilon))
    rho, failure = times**2 * plan.rho, plan.delta_failure
    return _stated("epsilon", plan.target.epsilon_of(rho, plan.gaussian, failure))


def _stated(name: str, number: float, where: str = "") -> str:
    """A parameter with two digits, as people write them, unless it is too much to advise.

    >>> _stated("epsilon", 13.3), _stated("rho", 0.0123), _stated("epsilon", 333.0)
    ('epsilon = 13', 'rho = 0.012', '')
    """
    return f"{name} = {float(f'{number:.2g}'):.12g}{where}" if number <= _MOST_ADVISED else ""
