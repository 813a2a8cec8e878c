"""Boxes of a grid: cuts, fullest boxes, names, and counts of parts."""

import numpy as np
import pytest
from grid_tools import parts_in_memory, points_of
from kernel_tools import spending
from scipy import stats

from sklearn_dp._aggregate.one_cluster.center import heaviest
from sklearn_dp._costs.plan import PlanEntry
from sklearn_dp._privacy._units import Units
from sklearn_dp._queries import boxes as _boxes
from sklearn_dp._queries.boxes import Boxes, FullestBoxes, InBox, NamedBoxes
from sklearn_dp._queries.grids import ACTIVE
from sklearn_dp._queries.samples import Coins
from sklearn_dp._rows.rows import Rows
from sklearn_dp._rows.table import ROWS, ArraySource, Part, add_sums


def test_probability_that_a_grid_does_not_cut_a_segment():
    """(1 - w/l)^k = 0.349 at k = 10 and w/l = 0.1; 5000 shifts; false alarms at 1e-6."""
    rng, grid = np.random.default_rng(6), Boxes(None, 1.0)
    ends = np.stack([np.zeros(10), np.full(10, 0.1)])
    whole = sum(np.equal(*grid.of(ends, shift)).all() for shift in rng.random((5000, 10)))
    assert stats.binomtest(int(whole), 5000, 0.9**10).pvalue > 1e-6


def test_heavy_cells_keep_their_names():
    cells = np.repeat(np.array([[-3, 2**20, 0], [5, -1, -(2**20)]]), [400, 300], axis=0)
    for points, expected in ((cells, [-3, 2**20, 0]), (cells[:0], None)):
        entry = PlanEntry("box", "stability histogram", 1.0, 1e-6)
        session = spending(entry)
        (found,) = points_of(points).ask(NamedBoxes(Boxes(None, 1.0), 0.0))
        box = heaviest(session, "box", found, 3)
        assert (box if box is None else box.tolist()) == expected


POINTS = np.random.default_rng(0).integers(-40, 40, (300, 3)).astype(float)
ACTIVES = np.random.default_rng(1).random(300) < 0.8
MATRIX = np.array([[1.0, -1.0, 1.0], [1.0, 1.0, -1.0]])


class Draws:
    """The number of a row itself is its draw."""

    def take(self, first, n_rows):
        return np.arange(first, first + n_rows, dtype=np.uint64)


def part_of(place, number=0, active=ACTIVES):
    rows = Rows.of(POINTS[place], 2.0**24)
    state = {ROWS: rows} if active is None else {ROWS: rows, ACTIVE: active[place]}
    return Part(ArraySource(None, number), Units(rows.n_rows), state)


def in_parts(query, active=ACTIVES):
    """What a pass gives of parts, of which one is empty."""
    total = None
    for number, (start, stop) in enumerate([(0, 110), (110, 110), (110, 300)]):
        sums = query.on(part_of(slice(start, stop), number, active))[1]
        total = sums if total is None else add_sums(total, sums)
    return total


def expected(cells):
    return {tuple(c): n for c, n in zip(*np.unique(cells, axis=0, return_counts=True), strict=True)}


@pytest.mark.parametrize("matrix", [None, MATRIX])
@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("active", [ACTIVES, None])
def test_parts_count_the_boxes_of_their_rows(monkeypatch, matrix, sampled, active):
    """Whatever is counted at once: the active rows, or those of them with numbers below 200."""
    coins = Coins(200 * 2.0**-64, Draws(), {0: 0, 1: 110, 2: 110}) if sampled else None
    chosen = np.ones(300, bool) if active is None else active
    chosen = chosen & (np.arange(300) < 200) if sampled else chosen
    images = POINTS[chosen] if matrix is None else POINTS[chosen] @ matrix.T
    grid = Boxes(matrix, 25.0)
    shifts = np.array([[0.0], [10.0], [20.0]]) + np.zeros(images.shape[1])
    monkeypatch.setattr(_boxes, "_FEW_ROWS", 100)
    monkeypatch.setattr(_boxes, "_AT_ONCE", 2)
    query = FullestBoxes(grid, shifts, 3, coins)
    found = in_parts(query, active)
    names = [in_parts(NamedBoxes(grid, shift, coins=coins), active)[0] for shift in shifts]
    top = FullestBoxes(grid, shifts, 1).on(part_of(slice(300), 0, active))[1]
    if not sampled:  # of a single part
        assert [each.counts.tolist() for each in top] == [[n] for n in query.exact(found)[0]]
    for shift, keyed, named in zip(shifts, found, names, strict=True):
        known = expected(grid.of(images, shift))
        assert sorted(keyed.counts) == sorted(known.values())
        assert (np.diff(keyed.cells) > 0).all()
        width = named.cells.dtype.itemsize
        cells = [np.frombuffer(name.ljust(width, b"\0"), ">i8") for name in named.cells]
        assert {tuple(c): n for c, n in zip(cells, named.counts, strict=True)} == known


@pytest.mark.parametrize("active", [ACTIVES, None])
def test_who_is_in_a_box(active):
    rows = points_of(POINTS, active=active)
    rows.apply(InBox(Boxes(None, 40.0), np.zeros(3), np.array([0, -1, 0])))
    (part,) = parts_in_memory(rows)
    inside = (np.floor(POINTS / 40) == [0, -1, 0]).all(axis=1)
    assert inside.any()
    assert np.array_equal(part[_boxes.INSIDE], inside if active is None else inside & active)
