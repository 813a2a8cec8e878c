"""The estimate of passes and bytes, beside the counted traffic of a fit in 64 parts."""

import pickle

import numpy as np
import pytest

from sklearn_dp import DPCoreset, DPKMeans
from sklearn_dp._rows.table import CellCounts, LocalEngine

N_PARTS = 64


class Counted:
    """Bytes to a part and from it in each pass, the largest of the parts."""

    def __init__(self, monkeypatch):
        self.down, self.up, self.cells = [], [], 0
        reduce, step = LocalEngine.reduce, LocalEngine._step

        def counted_step(engine, number, function, broadcast):
            sums = step(engine, number, function, broadcast)
            self.up[-1] = max(self.up[-1], len(pickle.dumps(sums)))
            return sums

        def counted(engine, function, *broadcast):
            self.down.append(len(pickle.dumps((function, broadcast))))
            self.up.append(0)
            totals = reduce(engine, function, *broadcast)
            for total in totals:
                if isinstance(total, CellCounts):
                    self.cells = max(self.cells, len(total.cells))
            return totals

        monkeypatch.setattr(LocalEngine, "_step", counted_step)
        monkeypatch.setattr(LocalEngine, "reduce", counted)


def data(n_rows, n_features, n_clusters):
    rng = np.random.default_rng(0)
    centers = rng.uniform(-1, 1, (n_clusters, n_features))
    noise = 0.1 * rng.normal(size=(n_rows, n_features))
    return (centers[rng.integers(n_clusters, size=n_rows)] + noise).astype(np.float32)


SHAPES = [  # and how far the estimate may be above what is counted
    (3_000, 7, 3, 2.0, None, 3),
    *(
        pytest.param(*shape, marks=pytest.mark.slow)
        for shape in (
            (100_000, 20, 20, None, None, 2),
            (6_400, 7, 5, None, 3, 4),
            # Levels of the tree that are not needed, and cells that are no leaves.
            (40_000, 5, 8, 3.0, None, 5),
            (200_000, 2, 12, None, None, 12),
        )
    ),
]


@pytest.mark.parametrize(
    ("n_rows", "n_features", "n_clusters", "bounds", "rows_each", "factor"), SHAPES
)
def test_the_estimate_beside_counted_traffic(
    n_rows, n_features, n_clusters, bounds, rows_each, factor, monkeypatch
):
    X = data(n_rows, n_features, n_clusters)
    model = DPKMeans(n_clusters, epsilon=2.0, bounds=bounds, random_state=0)
    groups = None if rows_each is None else np.arange(n_rows) // rows_each
    counted = Counted(monkeypatch)
    model.fit(
        np.array_split(X, N_PARTS),
        groups=None if groups is None else np.array_split(groups, N_PARTS),
    )
    plan = model.privacy_plan(n_features, unit="row" if groups is None else "group")
    given = {"n_rows": n_rows, "n_parts": N_PARTS}
    if groups is not None:
        given["n_groups"] = int(groups[-1]) + 1
    known = plan.cost(**given, n_iter=model.n_iter_, n_cells=counted.cells)
    # Columns may need no second look, and no refined centers.
    unsure = int(n_features < 6)
    unsure += sum(one.name == "octaves" or one.name.startswith("columns") for one in known.passes)
    assert len(counted.down) <= known.n_passes <= len(counted.down) + unsure
    assert sum(counted.down) <= known.down <= factor * sum(counted.down)
    assert sum(counted.up) <= known.up <= factor * sum(counted.up)
    most = plan.cost(**given)
    assert most.n_passes >= known.n_passes and most.down >= known.down and most.up >= known.up


def test_what_cannot_be_asked():
    plan = DPKMeans(3).privacy_plan(2)
    for bad, kind in ((0, ValueError), (1.5, TypeError), ("many", TypeError), (True, TypeError)):
        for name in ("n_rows", "n_parts", "n_workers", "n_iter", "n_cells", "n_groups"):
            with pytest.raises(kind, match=f"^{name} must be"):
                plan.cost(**{"n_rows": 5, "n_parts": 2, name: bad})
    with pytest.raises(TypeError, match=r"cost\(\) got an unexpected keyword argument 'n_cell'"):
        plan.cost(n_rows=5, n_parts=2, n_cell=3)
    for other in (DPKMeans("auto"), DPKMeans((2, 5)), DPCoreset(3)):
        with pytest.raises(TypeError, match="an estimate exists only for DPKMeans"):
            other.privacy_plan(2).cost(n_rows=5, n_parts=2)
