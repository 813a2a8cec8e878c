"""How to look for a small ball, and what that costs: public settings and the plan."""

import dataclasses
from dataclasses import dataclass

from ..._privacy._plan import Mechanism, PlanEntry
from ..._privacy._rounding import sum_down
from ..._published.one_cluster.good_center import paper_entries
from .center import grid_entries
from .radius import good_radius_entries

__all__ = ["Search", "one_cluster_entries"]

_CHOICE_SHARE = 0.1  # of the budget of several starts, for the choice of one


@dataclass(frozen=True)
class Search:
    """How to look for a cluster; all of it public."""

    radius_method: str = "exponential"  # one of `RADIUS_METHODS`, see :mod:`.radius`
    # "grid", "pca", "clip" or "paper", see :mod:`.center`; "clip" needs no radius: none is released
    center_method: str = "grid"
    grid: str = "log"  # of the radii to choose from: "log" or "linear"
    # in lengths; None: 2**-15 of the radius of the domain (2**-11 for a linear grid)
    min_radius: float | None = None
    sample_size: int = 2**15  # most points whose pairwise distances are compared, about
    n_init: int = 1  # number of independent restarts
    replace: bool = False  # neighbours replace one of a public number of points

    def __post_init__(self) -> None:
        if self.replace and self.center_method == "pca":
            raise ValueError("principal axes are for neighbours that add or remove a point.")

    def start(self, prefix: str, number: int) -> str:
        """Prefix of the plan entries of one search for a center."""
        return prefix if self.n_init == 1 else f"{prefix}start {number}/"


def one_cluster_entries(
    rho: float, delta: float, search: Search, prefix: str = ""
) -> tuple[PlanEntry, ...]:
    """Plan entries of :func:`fit_one_cluster`: at most `rho` and `delta` in all.

    1 % for the number of points, 20 % for the last radius, 2 % for the number of points in the
    ball; of the rest 30 % for the radius of the boxes, where one is needed, and what remains in
    equal parts for the searches for a center. `prefix` is for several searches in one plan.
    """
    count, inside, final = 0.01 * rho, 0.02 * rho, 0.2 * rho
    entries = [PlanEntry("count", Mechanism.GAUSSIAN, count, sensitivity="1 unit")]
    left, leaves = sum_down([rho, -count, -inside, -final]), 0.0
    if search.center_method != "clip":
        leaves = 0.25 if search.radius_method == "rec_concave" else 0.0
        entries += good_radius_entries(search.radius_method, 0.3 * left, leaves * delta)
        left = sum_down([left, -entries[-1].rho])
    if search.n_init > 1:
        entries.append(
            PlanEntry(
                "choice",
                Mechanism.EXPONENTIAL,
                _CHOICE_SHARE * left,
                sensitivity="1 unit in a ball",
            )
        )
        left = sum_down([left, -entries[-1].rho])
    part = 1 / search.n_init * (1 - 1e-12)
    for number in range(search.n_init):
        entries += [
            dataclasses.replace(entry, name=search.start("", number) + entry.name)
            for entry in _start_entries(part * left, part * (1 - leaves) * delta, search)
        ]
    entries += [
        PlanEntry(
            "radius of the ball", Mechanism.EXPONENTIAL, final, sensitivity="1 unit in a ball"
        ),
        PlanEntry("points in the ball", Mechanism.GAUSSIAN, inside, sensitivity="1 unit"),
    ]
    return tuple(dataclasses.replace(entry, name=prefix + entry.name) for entry in entries)


def _start_entries(rho: float, delta: float, search: Search) -> list[PlanEntry]:
    """Of one search for a center: a box, then means and the radii of the balls about them.

    The means ("center") of all passes share 70 % of what a box leaves,
    their radii ("approach") 30 %.
    """
    entries: list[PlanEntry]
    entries, method = [], search.center_method
    if method == "paper":
        entries += paper_entries(4 / 7 * rho, delta)
    elif method != "clip":
        entries += grid_entries(5 / 14 * rho, delta, principal=method == "pca")
    left = sum_down([rho, *(-entry.rho for entry in entries)])
    return [
        *entries,
        PlanEntry(
            "center", Mechanism.GAUSSIAN, 0.7 * left, uses=None, sensitivity="radius of a ball"
        ),
        PlanEntry(
            "approach",
            Mechanism.EXPONENTIAL,
            0.3 * left * (1 - 1e-9),
            uses=None,
            sensitivity="1 unit in a ball",
        ),
    ]
