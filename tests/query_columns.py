"""Random questions about columns as they came, and bugs planted in their counts."""

import numpy as np
from query_ground import features
from query_tools import Case

from sklearn_dp._privacy._grid import Domain
from sklearn_dp._queries import clusters, columns, grids, ranks, vectors
from sklearn_dp._rows import single_rows


def column_ranks(rng):
    d, n_bins = int(rng.integers(1, 5)), int(rng.choice([2, 7, 1024]))
    low = rng.normal(size=d) - 1
    high = low + rng.choice([0.0, 1.0, 3.0, np.inf], size=d)
    edges = np.sort(rng.normal(size=(d, n_bins - 1)), axis=1)
    return Case(ranks.ColumnRanks(edges, low, high), d)


def column_blocks(rng):
    case = column_ranks(rng)
    query, n_bins = case.query, 64 * int(rng.integers(1, 4))
    edges = np.sort(rng.normal(size=(len(query.edges), n_bins - 1)), axis=1)
    return Case(ranks.ColumnBlocks(edges, query.low, query.high), len(edges))


def unit_totals(rng):
    return Case(vectors.UnitTotals(), features(rng))


def _ends(rng):
    """Some columns of a table, and ends of them."""
    d = features(rng)
    chosen = rng.permutation(d)[: int(rng.integers(1, min(d, 5) + 1))]
    low = rng.normal(size=len(chosen)) - 1
    return d, chosen, low, low + rng.choice([0.0, 1.0, 3.0], size=len(chosen))


def octaves(rng):
    d, chosen, low, high = _ends(rng)
    high[rng.random(len(high)) < 0.5] = np.inf
    anchor = np.clip(0.0, low, high)
    return Case(columns.Octaves(chosen, low, high, anchor), d)


def equal_bins(rng):
    d, chosen, low, high = _ends(rng)
    width = rng.uniform(0.01, 0.3, len(chosen))
    outer = np.full(len(chosen), np.inf)
    first = rng.uniform(-1, 0, len(chosen))
    return Case(columns.EqualBins(chosen, -outer, outer, first, width, 8), d)


def grid_cells_(rng):
    d = int(rng.integers(1, 4))
    low, side = rng.normal(size=d) - 1, float(rng.uniform(0.1, 2.0))
    return Case(columns.GridCells(low, side, rng.integers(1, 6, d)), d)


def _vectors(rng):
    d, chosen, low, high = _ends(rng)
    powers = ((2, 1.0), (4, 0.3))[: int(rng.integers(3))]
    shifts = tuple(rng.uniform(0, 0.5, len(chosen)) for _ in powers)
    outer = np.array([low - 1.0, high]) if rng.random() < 0.3 else None
    return d, vectors.Vectors(
        chosen,
        low,
        high,
        low + rng.random() * (high - low),
        signed=not powers or rng.random() < 0.5,
        powers=powers,
        shifts=shifts,
        beyond=float(rng.choice([0.0, 0.06, 0.5])),
        outer=outer,
    )


def vector_ranks(rng):
    d, made = _vectors(rng)
    edges = made.most * rng.uniform(0.3, 1.0) * 2.0 ** (np.arange(-6, 1) / 2)
    return Case(vectors.VectorRanks(made, edges), d, 3.0)


def vector_sums(rng):
    d, made = _vectors(rng)
    return Case(vectors.VectorSums(made, made.most * float(rng.uniform(0.1, 1))), d, 3.0)


def outside(rng):
    d = features(rng)
    low = rng.normal(size=d) - 1
    box = Domain.within(low, low + rng.choice([0.0, 1.0, 3.0], size=d))
    return Case(vectors.Outside(box if rng.random() < 0.7 else Domain.about_origin(1.0, d)), d)


def tail_counts(rng):
    d, chosen, low, high = _ends(rng)
    unit, edges = rng.uniform(0.1, 1.0, len(chosen)), 2.0 ** np.arange(-1, 3)
    return Case(vectors.TailCounts(chosen, (low + high) / 2, unit, edges), d)


def in_two_cells(original):
    def counts(cells_of, units, n):
        return original(cells_of, units, n) + original(np.where(cells_of > 0, 0, -1), units, n)

    return counts


OF_COLUMNS = {
    "a value in two ranks": (ranks, "weighted_bincount", in_two_cells, ranks.ColumnRanks),
    "a value in two blocks": (ranks, "weighted_bincount", in_two_cells, ranks.ColumnBlocks),
    "a row in two ranks": (grids, "weighted_bincount", in_two_cells, grids.LineRanks),
    "a value in two bins": (columns, "weighted_bincount", in_two_cells, columns.EqualBins),
    "a row in two cells of a grid": (
        columns, "weighted_bincount", in_two_cells, columns.GridCells,
    ),
    "a row in two cells of a box": (clusters, "weighted_bincount", in_two_cells,
        clusters.GridCounts),
    "a value in two octaves": (columns, "weighted_bincount", in_two_cells, columns.Octaves),
    "a vector in two bins": (single_rows, "weighted_bincount", in_two_cells, vectors.VectorRanks),
    "the clip skipped (vectors)": (
        vectors, "clip_integer_rows", lambda _: lambda rows, *_, **__: rows, vectors.VectorSums,
    ),
    "counted for each column that it is beyond": (
        vectors, "_of_one_row", lambda _: lambda found: found * 2**10, vectors.Outside,
    ),
    "counted for each column that it is far out in": (
        vectors, "_of_one_row", lambda _: lambda found: found * 2**10, vectors.TailCounts,
    ),
}  # fmt: skip
