"""The spherical case: what its reach relies on."""

import math

import numpy as np

from sklearn_dp._published import separated_gaussians, terrific


def test_spherical_laws_are_shells():
    """separated_gaussians:C4: for d >= 64 log(n k / beta) all squared distances are close to d, of
    pairs to 2 d.

    Hence what the partition counts on there: a few radii of a ball with a part of a component hold
    all of it, and half as much again as a ball with most of a node holds all of the node.
    """
    n, k, beta = 200, 2, 0.05
    d = math.ceil(64 * math.log(n * k / beta))
    rng, right = np.random.default_rng(0), 0
    for _ in range(60):
        x = rng.normal(size=(n, d))
        squares = np.einsum("ij,ij->i", x, x)
        pairs = (squares[:, None] + squares - 2 * x @ x.T)[np.triu_indices(n, 1)]
        right += (
            0.75 * d <= squares.min()
            and squares.max() <= 1.5 * d
            and 1.5 * d <= pairs.min()
            and pairs.max() <= 3 * d
        )
        about = np.sort(np.linalg.norm(x - x[0], axis=1))  # a ball about any of the points
        assert about[-1] < terrific._NEAR * about[n // 4]
        lengths = np.sqrt(np.sort(squares))
        assert (
            lengths[-1] < separated_gaussians._WIDER * lengths[int(separated_gaussians._HELD * n)]
        )
    assert right >= 57  # 95%
