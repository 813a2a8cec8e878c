"""What the passes of the k-means engine take, from public shapes: the estimate of a plan.

The sizes are those of what :mod:`.passes` broadcasts and returns, in the order of a fit. How many
cells hold rows, and how many iterations there are, the releases say: here they are given, or the
most that there may be.
"""

import math
from dataclasses import replace

from ..._privacy._communication_cost import CommunicationCost, Pass
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


def kmeans_cost(
    n_features: int,
    n_clusters: int,
    rho: float,
    bounds_known: bool,
    grouped: bool,
    columns: tuple[float, float] = (0.0, 0.0),
    started: bool = False,
    *,
    n_rows: int,
    n_parts: int,
    n_workers: int = 1,
    n_iter: int | None = None,
    n_cells: int | None = None,
    n_groups: int | None = None,
    row_bytes: float | None = None,
) -> CommunicationCost:
    """What the passes of a fit take, without the look at far rows that a long tail asks for.

    `rho` is of the whole fit; `columns` are the parts of the budget for the units of columns, and
    to refine centers by column. The parts are taken to be alike. Where a fit may look for its
    clusters in a projection, what it needs there is added to what it needs without. By default,
    `n_iter` and `n_cells`, the cells of a level of the tree that hold rows, are the most there are,
    there are as many groups as rows, and a row has 4 bytes for each feature.
    """
    d, q, m = n_features, min(n_features, TUNING.most_axes), -(-n_rows // n_parts)
    size = Size(float(n_rows), math.sqrt(2 * rho))
    depths = depths_of_levels(q, size, n_clusters, TUNING)
    most = min(n_rows, 2 ** min(MOST_BITS_A_LEVEL, depths[-1]))
    cells = most if n_cells is None else min(n_cells, most)
    digests = _DIGESTS * n_parts  # of all parts: they travel with the pass after the first
    found = [Pass("rows", _WORDS, _WORDS + _DIGESTS, _WORDS + digests)]
    if grouped:
        ids = _GROUP * (n_rows if n_groups is None else n_groups)
        found.append(Pass("groups", _WORDS, _WORDS + min(_GROUP * m, ids), ids))
    if not bounds_known:
        found.append(_pass("bound", 2 * d, _NORMS))
    found += [
        _pass("totals", 2 * d, d + 1),
        _pass("lengths", d + TUNING.radius_bins + 1, TUNING.radius_bins),
    ]
    if grouped:  # the sizes of all groups travel with the pass after that which has counted them
        first = found[2]
        found[2] = Pass(first.name, first.down + ids, first.up, first.total)
    found[1] = replace(found[1], down=found[1].down + digests)
    may = may_project(d, n_clusters, TUNING) and not started and not size.small
    p = TUNING.projection_features if may else 0
    if may:
        found.append(_pass("projected moment", d * p, p * p))
    if d > 3 and not started:
        found.append(_pass("moment", d, d * d))
    if not started:
        found += _tree(d * (p + q), q, m, cells, len(depths))
    k0 = round(TUNING.start_surplus * n_clusters) if q > 3 and not started else n_clusters
    if may:
        found += _lloyd(p, k0, n_clusters, n_iter, 2 * TUNING.most_iterations, "projected ")
    most = TUNING.few_iterations if size.small else TUNING.most_iterations
    found += _lloyd(d, k0, n_clusters, n_iter, most)
    found.append(_pass("quality", n_clusters * (d + 1) + d + 2, 2))
    found += _columns(d, n_clusters, *columns)
    return CommunicationCost(tuple(found), n_parts, n_rows, n_workers, float(row_bytes or 4 * d))


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


def _tree(axes: int, q: int, m: int, cells: int, n_levels: int) -> list[Pass]:
    """The levels of the cell tree, and the sums of its leaves: a cell is a leaf at the most."""
    found, nodes = [], 2
    for number in range(n_levels):
        down = nodes + (axes + 3 * q if number == 0 else 2 * cells)  # slots; axes, or new nodes
        up, total = _CELL * min(m, cells), _CELL * cells
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
