"""The composite of block covariances: a unit moves the matrix of one block, and each of the other
blocks' scores by no more than the filter is told; whatever the parts, groups and weights are."""

import numpy as np
import pytest
from query_tools import units_for

from sklearn_dp._parameters import domain_of
from sklearn_dp._privacy.mechanisms.stability import UnitDraws
from sklearn_dp._queries import matrix_cores
from sklearn_dp._queries._query import TableRows
from sklearn_dp._queries.grids import GridRows
from sklearn_dp._queries.samples import UnitNumbers, numbered
from sklearn_dp._rows.table import ArraySource, LocalEngine, Part, Table

SEEDS = 60
N_BLOCKS = 6


def asked(X, units, cuts, centered):
    """The exact sums of all blocks, their matrices, and how many friends each has."""
    places = np.split(np.arange(len(X)), cuts)
    parts = [
        Part(ArraySource(X[own], number), units.take(own)) for number, own in enumerate(places)
    ]
    table = TableRows(Table(LocalEngine(parts), X.shape[1], X.dtype, units.facts))
    rows = GridRows.quantize(table, domain_of(4.0, X.shape[1]))
    numbers, draws = numbered(table), UnitDraws(3, "units")
    sums = table._raw().sums(matrix_cores._drawn_sums, numbers, draws, N_BLOCKS)
    assert rows.n_features == X.shape[1]
    matrices = matrix_cores.block_matrices(*sums, centered=centered)
    return sums, matrices, matrix_cores.friend_counts(matrices, 3.0)


def problem(seed):
    """What is not as proved of some rows, or None."""
    rng = np.random.default_rng([seed, 11])
    n, d = int(rng.integers(2, 60)), int(rng.integers(1, 4))
    units, there = units_for(rng, n)
    X = (rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-2, 1, (n, 1)))[there]
    if not len(X):
        return None
    centered = bool(rng.random() < 0.5)
    whole = asked(X, units, [], centered)
    cut = asked(X, units, np.sort(rng.integers(len(X) + 1, size=2)), centered)
    if not all((one == other).all() for one, other in zip(whole[0], cut[0], strict=True)):
        return "it depends on where the rows are"
    index = np.arange(len(X)) if units.index is None else units.index
    kept = index != index.max()  # the last one: all others keep their numbers
    less = asked(X[kept], units.take(kept), [], centered)
    moved = np.flatnonzero((whole[1] != less[1]).any(axis=(1, 2)))
    if len(moved) > 1:
        return "a unit moves several blocks"
    scores = np.delete(2 * (whole[2] - less[2]), moved)
    return "scores move by more than 2" if np.abs(scores).max(initial=0) > 2 else None


def test_the_composite_is_as_proved():
    assert [problem(seed) for seed in range(SEEDS)] == [None] * SEEDS


def by_place(self, part, draws):
    return draws.take(0, part.units.n_rows)


def by_row(self, part, draws):
    return draws.take(self.starts[part.source.number], part.units.n_rows)


def of_all(original):
    def matrices(weight, total, parts, *, centered):
        return original(np.full_like(weight, weight.sum()), total, parts, centered=centered)

    return matrices


def of_others(original):
    def counts(matrices, distance):
        return original(matrices, distance) * (1 + int(matrices[0].any()))

    return counts


BUGS = {
    "blocks by the place in a part": (UnitNumbers, "draws_of", lambda _: by_place),
    "a block for each row": (UnitNumbers, "draws_of", lambda _: by_row),
    "over all rows": (matrix_cores, "block_matrices", of_all),
    "scores by another block": (matrix_cores, "friend_counts", of_others),
}


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_seen(name, monkeypatch):
    owner, attribute, change = BUGS[name]
    monkeypatch.setattr(owner, attribute, change(getattr(owner, attribute)))
    assert any(map(problem, range(SEEDS)))
