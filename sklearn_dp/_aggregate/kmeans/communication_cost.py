"""What the passes of the k-means engine take, from public shapes: the estimate of a plan.

The sizes are those of what :mod:`.passes` broadcasts and returns, in the order of a fit. How many
cells hold rows, and how many iterations there are, the releases say: here they are given, or the
most that there may be.
"""

import math
from dataclasses import dataclass, replace

from ..._privacy._communication_cost import CommunicationCost, Pass, Workload
from ..shared.centering import Size
from .cell_tree import MOST_BITS_A_LEVEL, depths_of_levels
from .projection import may_project
from .tuning import TUNING

_WORDS = 400  # bytes of a message beside its arrays: names of functions, shapes, a small one's
_NUMBER = 8
_CELL = 16  # a cell and its count
_GROUP = 16  # an id of a group and its size
_DIGESTS = 24  # the number of a part, and digests of its rows, groups and weights
_NORMS = 402  # bins of norms; see `norm_counts`


@dataclass(frozen=True)
class KMeansPasses:
    """What is public of a fit before there is a table."""

    n_features: int
    n_clusters: int
    rho: float  # of the whole fit
    bounds_known: bool
    grouped: bool
    columns: tuple[float, float]  # parts of the budget: for their units, and to refine centers
    started: bool  # whether there are centers to start from

    def cost(self, work: Workload) -> CommunicationCost:
        """What the passes take, without the look at far rows that a long tail asks for.

        The parts are assumed to be alike. Where a fit may look for its clusters in a projection,
        what it needs there is added to what it needs without.
        """
        d, k = self.n_features, self.n_clusters
        q, size = min(d, TUNING.most_axes), Size(float(work.n_rows), math.sqrt(2 * self.rho))
        may = may_project(d, k, TUNING) and not self.started and not size.small
        p = TUNING.projection_features if may else 0
        found = self._located(work)
        if may:
            found.append(_pass("projected moment", d * p, p * p))
        if not self.started:
            found += [_pass("moment", d, d * d)] * (d > 3)
            found += _tree(d * (p + q), q, work, depths_of_levels(q, size, k, TUNING))
        k0 = round(TUNING.start_surplus * k) if q > 3 and not self.started else k
        if may:
            found += _lloyd(p, k0, k, work.n_iter, 2 * TUNING.most_iterations, "projected ")
        most = TUNING.few_iterations if size.small else TUNING.most_iterations
        found += _lloyd(d, k0, k, work.n_iter, most)
        found.append(_pass("quality", k * (d + 1) + d + 2, 2))
        found += _columns(d, k, *self.columns)
        row_bytes = float(work.row_bytes or 4 * d)
        return CommunicationCost(tuple(found), work.n_parts, work.n_rows, work.n_workers, row_bytes)

    def _located(self, work: Workload) -> list[Pass]:
        """What opens the table, and finds where its rows are."""
        d, digests = self.n_features, _DIGESTS * work.n_parts
        found, ids = [Pass("rows", _WORDS, _WORDS + _DIGESTS, _WORDS + digests)], 0
        if self.grouped:
            ids = _GROUP * (work.n_rows if work.n_groups is None else work.n_groups)
            up = _WORDS + min(_GROUP * _rows_of_a_part(work), ids)
            found.append(Pass("groups", _WORDS, up, ids))
        if not self.bounds_known:
            found.append(_pass("bound", 2 * d, _NORMS))
        found += [
            _pass("totals", 2 * d, d + 1),
            _pass("lengths", d + TUNING.radius_bins + 1, TUNING.radius_bins),
        ]
        # Digests of all parts travel with the pass after the first, and the sizes of all groups
        # with the pass after that which has counted them.
        found[1] = replace(found[1], down=found[1].down + digests)
        if self.grouped:
            found[2] = replace(found[2], down=found[2].down + ids)
        return found


def _rows_of_a_part(work: Workload) -> int:
    return -(-work.n_rows // work.n_parts)


def _columns(d: int, k: int, scales: float, refined: float) -> list[Pass]:
    """Units of columns, and centers that are refined in them."""
    found = []
    if scales:  # the second one, of columns far from zero, is repeated where they are very far
        found += [_pass("octaves", 404 * d, 401 * d), _pass("column bins", 66 * d, 64 * d)]
    if refined:
        up = k * (d + 1) + 2 * d
        for name in ("columns", "columns again")[: 1 + (k > 1)]:
            found.append(_pass(name, 3 * k * d + 4 * d, up))
    return found


def _tree(axes: int, q: int, work: Workload, depths: list[int]) -> list[Pass]:
    """The levels of the cell tree, and the sums of its leaves: a cell is a leaf at the most."""
    most = min(work.n_rows, 2 ** min(MOST_BITS_A_LEVEL, depths[-1]))
    cells = most if work.n_cells is None else min(work.n_cells, most)
    found, nodes = [], 2
    for number in range(len(depths)):
        down = nodes + (axes + 3 * q if number == 0 else 2 * cells)  # slots; axes, or new nodes
        up, total = _CELL * min(_rows_of_a_part(work), cells), _CELL * cells
        name = f"level {number + 1}"
        found.append(Pass(name, 3 * _WORDS + _NUMBER * down, _WORDS + up, _WORDS + total))
        nodes += cells
    return [*found, _pass("leaves", 2 * cells + nodes + (q + 1) * cells, q * cells)]


def _lloyd(d: int, k0: int, k: int, n_iter: int | None, most: int, where: str = "") -> list[Pass]:
    """Two passes for each iteration, the first of them from surplus centers."""
    n_iter = most if n_iter is None else min(n_iter, most)
    found = []
    for step, centers, times in (("start", k0, 1), ("iteration", k, n_iter - 1)):
        name = where + step
        down, bins = centers * (d + 1), TUNING.clip_bins
        found += [
            _pass(f"{name} a", down + bins + 1, bins + centers, times),
            _pass(f"{name} b", down + centers, centers * (d + 1), times),
        ]
    return [one for one in found if one.times]


def _pass(name: str, down: int, up: int, times: int = 1) -> Pass:
    """A pass of so many numbers, whose totals are as long as the sums of a part."""
    sums = _WORDS // 2 + _NUMBER * up
    return Pass(name, _WORDS + _NUMBER * down, sums, sums, times)
