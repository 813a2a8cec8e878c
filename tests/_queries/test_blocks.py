"""Random blocks and the non-private fits on them."""

import pickle
from operator import attrgetter

import numpy as np
import pytest
from block_tools import draw_blocks, fit_blocks
from grid_tools import parts_in_memory
from joblib import parallel_backend
from kernel_tools import open_session
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from test_partitions import Elsewhere, Piece

from sklearn_dp._partitions._sources import open_units
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp._privacy._units import UnitFacts, Units
from sklearn_dp._privacy.mechanisms.stability import (
    UnitDraws,
    addressed_draws,
    blocks_of_draws,
    unit_draws,
)
from sklearn_dp._queries import blocks
from sklearn_dp._queries.blocks import BlockFits, fit_table_blocks
from sklearn_dp._rows import table as _pieces
from sklearn_dp._rows.table import LocalEngine, Table
from sklearn_dp.exceptions import PartError

centers = attrgetter("cluster_centers_")  # a worker process can import it, unlike a test module


class Mean(ClusterMixin, BaseEstimator):
    """One center, the mean; fails, or answers badly, where it is told to."""

    def __init__(self, bad=None, random_state=None):
        self.bad = bad
        self.random_state = random_state

    def fit(self, X, y=None):
        if self.bad == "raise" and X[0, 0] > 0:
            raise FloatingPointError("secret")
        self.cluster_centers_ = X.mean(axis=0, keepdims=True)
        if self.bad == "shape":
            self.cluster_centers_ = self.cluster_centers_.ravel()
        if self.bad == "nan":
            self.cluster_centers_ = self.cluster_centers_ * np.nan
        self.seed_ = self.random_state
        return self


def test_results_are_those_of_direct_fits():
    rng = np.random.default_rng(0)
    X, blocks = rng.normal(size=(300, 2)), rng.integers(0, 5, 300)
    inner = KMeans(n_clusters=3, n_init=1)
    results = fit_blocks(inner, X, blocks, range(5), centers, (3, 2))
    for block in range(5):
        expected = KMeans(n_clusters=3, n_init=1, random_state=block).fit(X[blocks == block])
        assert np.array_equal(results[block], expected.cluster_centers_)


@pytest.mark.parametrize("bad", ["raise", "shape", "nan"])
def test_a_failing_fit_is_a_null_result_and_nothing_else(bad, recwarn, capsys):
    X = np.array([[1.0, 0.0], [-1.0, 0.0], [-1.0, 1.0]])
    results = fit_blocks(Mean(bad), X, np.array([0, 1, 1]), [0, 1, 2], centers, (1, 2))
    assert results.shape == (3, 1, 2)
    assert np.isnan(results[0]).all()
    assert np.isnan(results[2]).all()  # an empty block
    assert np.isnan(results[1]).all() == (bad != "raise")
    assert not len(recwarn) and capsys.readouterr() == ("", "")


@pytest.mark.quick("threading")
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_backends_agree_bit_for_bit(backend):
    rng = np.random.default_rng(2)
    X, blocks = rng.normal(size=(400, 4)), rng.integers(0, 6, 400)
    inner = KMeans(3, n_init=1)
    alone = fit_blocks(inner, X, blocks, range(6), centers, (3, 4))
    with parallel_backend(backend, n_jobs=2):
        assert np.array_equal(fit_blocks(inner, X, blocks, range(6), centers, (3, 4)), alone)


def test_nested_random_states_come_from_the_seed_and_output_is_silenced(capsys):
    inner = make_pipeline(PCA(2, svd_solver="randomized"), KMeans(2, n_init=1, verbose=1))
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 5))
    read = {"seed": 5}
    one, two = (
        fit_blocks(
            inner, X, np.zeros(60, int), [read["seed"]], lambda e: e[-1].cluster_centers_, (2, 2)
        )
        for _ in range(2)
    )
    assert np.array_equal(one, two) and np.isfinite(one).all()
    assert capsys.readouterr().out == ""


N, T = 400, 70
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
GROUPS = RNG.integers(0, 150, N)
CUTS = ([], [100, 100, 101, 300], range(20, N, 20))


class InOrder(BaseEstimator):
    """A result that every row of a block has a say in, by its place, and the seed."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, rows):
        self.found_ = np.append(np.arange(1, len(rows) + 1) @ rows, self.random_state)
        return self


def found_of(estimator):
    return estimator.found_


def doubled(rows):
    return 2 * rows


def second_half(draws):
    return (draws & np.uint64(1)).astype(bool)


def fits(**options):
    return BlockFits(InOrder(), T, found_of, (3,), **options)


def parts(cuts, groups, engine=LocalEngine, dtype=float):
    pieces = [
        Piece(number, X[rows].astype(dtype), None if groups is None else groups[rows], None)
        for number, rows in enumerate(np.split(np.arange(N), cuts))
    ]
    table = Table(engine(pieces), 2, np.dtype(dtype), UnitFacts())
    open_units(table, grouped=groups is not None)
    return table


def by_blocks(session, groups, rate, dtype=float):
    """The same of an array in memory."""
    blocks = draw_blocks(session, Units(N, groups), T, rate)
    seeds = session.rng("inner fits").integers(2**31, size=T)
    return fit_blocks(
        InOrder(), X.astype(dtype), blocks, seeds, found_of, (3,), min_rows=2, prepare=doubled
    )


@pytest.mark.quick("groups1-0.5-float64")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("rate", [None, 0.5])
@pytest.mark.parametrize("groups", [None, GROUPS])
def test_blocks_of_parts_are_those_in_memory(groups, rate, dtype):
    session, asked = open_session(), fits(rate=rate, min_rows=2, prepare=doubled)
    expected = by_blocks(session, groups, rate, dtype)
    assert np.isnan(expected).any() and np.isfinite(expected).any()
    memory = Table.in_memory(X.astype(dtype), Units(N, groups), 3)
    for table in [memory, *(parts(cuts, groups, Elsewhere, dtype) for cuts in CUTS)]:
        found = fit_table_blocks(session, table, asked)
        assert np.array_equal(found, expected, equal_nan=True)


def test_rows_that_do_not_take_part_are_in_no_block():
    session = open_session()
    draws = unit_draws(session, N)
    blocks = blocks_of_draws(draws, T)
    known = fit_table_blocks(session, parts(CUTS[1], None), fits(takes_part=second_half))
    for block in range(T):
        rows = X[(blocks == block) & second_half(draws)]
        expected = np.arange(1, len(rows) + 1) @ rows
        assert np.array_equal(known[block, :2], expected) or np.isnan(known[block]).all()


@pytest.mark.parametrize("most", [2**28, 0])
def test_files_are_read_once_for_all_tasks(most, monkeypatch):
    monkeypatch.setattr(_pieces, "_KEPT_BYTES", most)
    reads = []

    class Counted(Piece):
        def read(self):
            reads.append(self.number)
            return self.X

        def n_rows(self):
            return len(self.X)

    pieces = [Counted(i, rows, None, None) for i, rows in enumerate(np.split(X, [150]))]
    table = Table(LocalEngine(pieces), 2, X.dtype, UnitFacts())
    open_units(table)
    session = open_session()
    found = fit_table_blocks(session, table, fits(min_rows=2, prepare=doubled))
    assert reads == [0, 1]
    assert np.array_equal(found, by_blocks(session, None, None), equal_nan=True)


def test_a_part_that_cannot_be_read_ends_the_fit():
    class Bad(Piece):
        def read(self):
            raise OSError("secret")

        def n_rows(self):
            return 3

    table = Table(LocalEngine([Bad(0, None, None, None)]), 2, X.dtype, UnitFacts())
    open_units(table)
    with pytest.raises(PartError, match=r"^part 0 could not be read .*\(OSError\)") as caught:
        fit_table_blocks(open_session(), table, fits())
    assert "secret" not in str(caught.value) and caught.value.__context__ is None


def test_copies_are_noted_for_audits_and_nothing_else_is():
    for rate, kinds in ((0.5, ["seed", "draws", "copies"]), (None, ["seed", "draws"])):
        with trace(Trace()) as recording:
            session = open_session()
            found = fit_table_blocks(session, parts(CUTS[1], GROUPS), fits(rate=rate))
        assert [event.kind for event in recording.events] == kinds
        assert len(recording.events[1].output) == len(set(GROUPS))
        alone = fit_table_blocks(open_session(), parts(CUTS[1], GROUPS), fits(rate=rate))
        assert np.array_equal(found, alone, equal_nan=True)


def test_what_tasks_give_each_other_is_not_printed():
    (part,) = parts_in_memory(parts([], None))
    numbers = blocks.UnitNumbers(N, np.array([N]), {0: 0})
    draws = addressed_draws(open_session(), N)
    shared = blocks._Shared(fits(), numbers, draws, np.array([0, 30, T]), None)
    held = blocks._drawn(part, shared)
    rows, own, copies = pickle.loads(pickle.dumps(held[1]))
    assert np.array_equal(np.sort(np.concatenate([held[0][0], rows]), axis=0), np.sort(X, axis=0))
    assert own.min() == 30 and set(copies) == {0} and "array" not in repr(held)


@pytest.mark.parametrize("bug", [False, True])
@pytest.mark.parametrize("rate", [None, 0.5])
def test_neighbors_differ_in_one_block(bug, rate, monkeypatch):
    """Draws are coupled row by row, as an audit does it. By place in a part, more blocks differ."""
    words = np.random.default_rng(3).integers(0, 2**64, N, dtype=np.uint64)
    words[:] &= np.uint64(2**63)  # with replacement: one copy at most
    words |= np.random.default_rng(4).integers(0, 2**62, N, dtype=np.uint64)
    session = open_session()
    if bug:
        own = blocks.UnitNumbers.draws_of

        def by_place(self, part, draws):
            moved = blocks.UnitNumbers(self.size, self.totals, dict.fromkeys(self.starts, 0))
            return own(moved, part, draws)

        monkeypatch.setattr(blocks.UnitNumbers, "draws_of", by_place)
    found = []
    for kept in (np.arange(N), np.delete(np.arange(N), 120)):
        pieces = [Piece(i, X[rows], None, None) for i, rows in enumerate(np.split(kept, [90, 200]))]
        table = Table(LocalEngine(pieces), 2, X.dtype, UnitFacts())
        open_units(table)
        draws = UnitDraws(0, "units", words[kept])
        monkeypatch.setattr(blocks, "addressed_draws", lambda session, n, draws=draws: draws)
        found.append(fit_table_blocks(session, table, fits(rate=rate)))
    same = (found[0] == found[1]) | (np.isnan(found[0]) & np.isnan(found[1]))
    assert (np.count_nonzero(~same.all(axis=1)) > 1) == bug


def clear(share, probability, n):
    """Whether a share of n independent events is within seven standard deviations."""
    return abs(share - probability) < 7 * np.sqrt(probability * (1 - probability) / n)


@pytest.mark.parametrize("bug", [None, "one block", "two blocks", "block tells number"])
def test_copies_of_a_unit_go_to_blocks_of_their_own(bug, monkeypatch):
    """Poisson numbers of mean one. Any two copies of a unit are together once in 20 times, and the
    block of a copy does not tell how many there are."""
    mixed, unmixed = blocks.mixed_words, lambda words, copy: words
    planted = {
        None: mixed,
        "one block": lambda words, copy: mixed(words, 0),
        "two blocks": lambda words, copy: mixed(words, copy % 2),
        "block tells number": lambda words, copy: (mixed if copy else unmixed)(words, copy),
    }
    monkeypatch.setattr(blocks, "mixed_words", planted[bug])
    draws = np.random.default_rng(0).integers(2**64, size=20_000, dtype=np.uint64)
    rows, copies, found = blocks.drawn_rows(draws, 20, 1.0)
    number = np.bincount(rows, minlength=len(draws))
    assert abs(number.mean() - 1) < 0.05 and abs(number.var() - 1) < 0.09
    block = np.full((len(draws), 3), -1)
    block[rows[copies < 3], copies[copies < 3]] = found[copies < 3]
    good = []
    for one, other in ((0, 1), (0, 2), (1, 2)):
        both = block[number > other]
        good.append(clear(np.mean(both[:, one] == both[:, other]), 0.05, len(both)))
    for units in (number == 1, number > 1):
        good += [clear(np.mean(block[units, 0] == each), 0.05, units.sum()) for each in range(20)]
    assert all(good) == (bug is None)
