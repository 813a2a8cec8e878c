"""The partition of a mixture by terrific balls, as a whole."""

import numpy as np
import pytest
from mixture_tools import in_ball, labels_of, partition

from sklearn_dp._published import terrific

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")


@pytest.mark.parametrize(("ball", "most"), [("joint", None), ("points", None), ("points", 400)])
def test_three_pure_leaves(ball, most, monkeypatch):
    """separated_gaussians:E3: balls of radius 1 about 0, 100 e_1 and 10^4 e_2, c = 5."""
    if most is not None:  # pairs of so many points of a sample are compared
        monkeypatch.setattr(terrific, "_SAMPLE", most)
    rng = np.random.default_rng(0)
    places = np.array([[0, 0, 0], [100, 0, 0], [0, 1e4, 0]], dtype=float)
    X = np.vstack([in_ball(300, place, 1.0, rng) for place in places])
    parts, root, _ = partition(X, 3, rho=1e8, ratio=5.0, ball=ball)
    assert parts.path == "partition" and len(root.leaves()) == 3
    groups = labels_of(parts).reshape(3, 300)
    assert (groups == groups[:, :1]).all() and len(set(groups[:, 0])) == 3


@pytest.mark.slow
@pytest.mark.parametrize("d, n", [(1, 5000), (2, 20000), (10, 10000)])
@pytest.mark.parametrize("k", [3, 4])
def test_one_gaussian_is_not_cut(d, n, k):
    """separated_gaussians:B2: at the usual budget and at a generous one."""
    for seed in range(2):
        X = np.random.default_rng(seed).normal(size=(n, d))
        for rho in (0.01, 1.0):
            parts, root, _ = partition(X, k, rho=rho, seed=seed)
            assert len(root.leaves()) == 1 and parts.path == "partition, then coreset"
