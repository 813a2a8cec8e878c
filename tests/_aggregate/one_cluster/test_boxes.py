"""Boxes of a grid: cuts, fullest boxes, names, and counts of parts."""

import numpy as np
import pytest
from scipy import stats

from sklearn_dp._aggregate.one_cluster import boxes as _boxes
from sklearn_dp._aggregate.one_cluster.balls import ACTIVE
from sklearn_dp._aggregate.shared.samples import Coins
from sklearn_dp._privacy._budget import PrivacyBudget
from sklearn_dp._privacy._plan import PlanEntry, PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._units import Units
from sklearn_dp._rows.rows import ROWS, Rows
from sklearn_dp._rows.table import ArraySource, Part, add_sums

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")


def open_session(*entries, seed=0):
    rho = sum(entry.rho for entry in entries) * 1.01
    return PrivacySession(
        PrivacyPlan(PrivacyBudget(rho=rho, delta=0.01), entries), random_state=seed
    )


def fullest(cells):
    return _boxes.fullest(_boxes.counts_of(_boxes.keys_of(cells)))


def heaviest(session, cells):
    found = _boxes.counts_of(_boxes.names_of(cells))
    return _boxes.heaviest(session, "box", found, 1.0, 1e-6, False)


def test_probability_that_a_grid_does_not_cut_a_segment():
    """(1 - w/l)^k = 0.349 at k = 10 and w/l = 0.1; 5000 shifts; false alarms at 1e-6."""
    rng = np.random.default_rng(6)
    ends = np.stack([np.zeros(10), np.full(10, 0.1)])
    whole = sum(
        (_boxes.boxes(ends, shift, 1.0)[0] == _boxes.boxes(ends, shift, 1.0)[1]).all()
        for shift in rng.random((5000, 10))
    )
    assert stats.binomtest(whole, 5000, 0.9**10).pvalue > 1e-6


def test_fullest_box_moves_by_at_most_one():
    rng = np.random.default_rng(7)
    for _ in range(300):
        cells = rng.integers(-2, 3, (rng.integers(1, 40), 2))
        exact = np.unique(cells, axis=0, return_counts=True)[1].max()
        assert fullest(cells) == exact
        assert exact - fullest(cells[1:]) in (0, 1)
    assert fullest(np.empty((0, 3), dtype=int)) == 0


def test_heavy_cells_keep_their_names():
    cells = np.repeat(np.array([[-3, 2**40, 0], [5, -1, -(2**40)]]), [400, 300], axis=0)
    session = open_session(PlanEntry("box", "stability histogram", 1.0, 1e-6))
    found = heaviest(session, cells)
    assert found.tolist() == [-3, 2**40, 0]
    session = open_session(PlanEntry("box", "stability histogram", 1.0, 1e-6))
    assert heaviest(session, cells[:0]) is None


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


def in_parts(function, *broadcast, active=ACTIVES):
    """What a pass gives of parts, of which one is empty."""
    total = None
    for number, (start, stop) in enumerate([(0, 110), (110, 110), (110, 300)]):
        sums = function(part_of(slice(start, stop), number, active), *broadcast)[1]
        total = sums if total is None else add_sums(total, sums)
    return total


def expected(cells):
    return {tuple(c): n for c, n in zip(*np.unique(cells, axis=0, return_counts=True), strict=True)}


@pytest.mark.parametrize("matrix", [None, MATRIX])
@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("active", [ACTIVES, None])
def test_parts_count_the_boxes_of_their_rows(monkeypatch, matrix, sampled, active):
    """Whatever is counted at once: the active rows, or those of them with numbers below 200."""
    coins = Coins(Draws(), np.uint64(199), {0: 0, 1: 110, 2: 110}) if sampled else None
    chosen = np.ones(300, bool) if active is None else active
    chosen = chosen & (np.arange(300) < 200) if sampled else chosen
    images = POINTS[chosen] if matrix is None else POINTS[chosen] @ matrix.T
    grid = _boxes.Boxes(matrix, 25.0)
    shifts = np.array([[0.0], [10.0], [20.0]]) + np.zeros(images.shape[1])
    monkeypatch.setattr(_boxes, "_FEW_ROWS", 100)
    monkeypatch.setattr(_boxes, "_AT_ONCE", 2)
    found = in_parts(_boxes.counted_boxes, grid, shifts, ACTIVE, coins, 3, active=active)
    names = [
        in_parts(_boxes.named_boxes, grid, shift, ACTIVE, coins, active=active)[0]
        for shift in shifts
    ]
    top = _boxes.counted_boxes(part_of(slice(300), 0, active), grid, shifts, ACTIVE, None, 1)[1]
    if not sampled:  # of a single part
        assert [each.counts.tolist() for each in top] == [[_boxes.fullest(each)] for each in found]
    for shift, keyed, named in zip(shifts, found, names, strict=True):
        known = expected(_boxes.boxes(images, shift, 25.0))
        assert sorted(keyed.counts) == sorted(known.values())
        assert (np.diff(keyed.cells) > 0).all()
        width = named.cells.dtype.itemsize
        cells = [np.frombuffer(name.ljust(width, b"\0"), ">i8") for name in named.cells]
        assert {tuple(c): n for c, n in zip(cells, named.counts, strict=True)} == known


def test_columns_are_boxes_of_their_own():
    columns = [slice(0, 1), slice(1, 3)]
    found = in_parts(_boxes.named_boxes, _boxes.Boxes(None, 9.0), 0.0, ACTIVE, None, columns)
    cells = _boxes.boxes(POINTS[ACTIVES], 0.0, 9.0)
    for each, column in zip(found, columns, strict=True):
        known = expected(cells[:, column])
        assert sorted(each.counts) == sorted(known.values())
        assert each.counts.sum() == ACTIVES.sum()


@pytest.mark.parametrize("active", [ACTIVES, None])
def test_who_is_in_a_box(active):
    grid, box = _boxes.Boxes(None, 40.0), np.array([0, -1, 0])
    part, sums = _boxes.in_box(part_of(slice(None), 0, active), grid, np.zeros(3), box, ACTIVE)
    inside = (np.floor(POINTS / 40) == box).all(axis=1)
    assert sums == () and inside.any()
    assert np.array_equal(part[_boxes.INSIDE], inside if active is None else inside & active)
