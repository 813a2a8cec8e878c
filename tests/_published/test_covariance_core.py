"""The friendly core of block covariances."""

import numpy as np
import pytest
from scipy.linalg import eigh

from sklearn_dp._parameters import domain_of
from sklearn_dp._privacy._units import Units
from sklearn_dp._queries import matrix_cores
from sklearn_dp._queries.matrix_cores import block_sums, friend_counts, spread
from sklearn_dp._rows.rows import Rows
from sklearn_dp._rows.table import add_sums


def matrix_distance(one, other):
    """max over generalized eigenvalues w of max(w, 1/w) - 1."""
    w = eigh(one, other, eigvals_only=True)
    return max(w.max(), 1 / w.min()) - 1


def random_matrices(rng, t, d, m, condition=1.0):
    scales = np.sqrt(np.geomspace(1, 1 / condition, d)) * 10.0 ** rng.uniform(-3, 3)
    X = rng.normal(size=(t, m, d)) * scales
    return X.transpose(0, 2, 1) @ X / m


@pytest.mark.parametrize("condition", [1.0, 1e6])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_friends_are_those_of_the_eigenvalue_formula(d, condition):
    """friendly_core:9: the two definitions agree, and no scale matters."""
    rng = np.random.default_rng(d)
    matrices = random_matrices(rng, 30, d, 12 * d, condition)
    far = np.array([[matrix_distance(a, b) for b in matrices] for a in matrices])
    for distance in (0.3, 1.0, 3.0):
        expected = np.count_nonzero(far <= distance, axis=1)
        assert np.array_equal(friend_counts(matrices, distance), expected)
        assert np.array_equal(friend_counts(matrices * 2.0**80, distance), expected)


def test_whether_two_are_friends_depends_on_them_alone():
    """Bit for bit: counts are sums over pairs, however many others there are."""
    rng = np.random.default_rng(0)
    matrices = random_matrices(rng, 12, 4, 25)
    far = matrix_distance(matrices[0], matrices[1])
    for distance in np.nextafter(far, [0, 9]).tolist() + [far, 0.7]:
        pairs = np.array(
            [
                [friend_counts(matrices[[i, j]], distance)[0] - 1 for j in range(12)]
                for i in range(12)
            ]
        )
        assert np.array_equal(pairs, pairs.T)
        assert np.array_equal(friend_counts(matrices, distance), pairs.sum(axis=1))


def test_friends_of_friends_are_close():
    """(1 + g)^2 - 1 = 2 g + g^2, sharper than three halves of 2 g (F.2), and attained."""
    rng, g, worst = np.random.default_rng(0), 0.5, 0.0
    for _ in range(300):
        middle = random_matrices(rng, 1, 2, 10)[0]
        root = np.linalg.cholesky(middle)
        sides = []
        for _ in range(2):
            turn = np.linalg.qr(rng.normal(size=(2, 2)))[0] if rng.random() < 0.5 else np.eye(2)
            scales = (1 + g) ** rng.uniform(-1, 1, size=2)
            scales = np.where(rng.random(2) < 0.5, (1 + g) ** np.sign(scales - 1), scales)
            sides.append(root @ (turn * scales) @ turn.T @ root.T)
        worst = max(worst, matrix_distance(*sides))
    assert 0.99 * (2 * g + g**2) < worst <= (2 * g + g**2) * (1 + 1e-9)


def test_a_core_moves_by_no_more_than_is_claimed():
    """friendly_core:9, for one element more and for another one: kappa / n, both attained."""
    g = 0.6
    kappa = (1 + g) ** 2 - 1
    rng, worst = np.random.default_rng(1), np.zeros(2)
    for _ in range(2000):
        n, d = int(rng.integers(2, 9)), int(rng.integers(1, 4))
        logs = (
            rng.uniform(0, 1, size=(n + 1, d))
            if rng.random() < 0.5
            else (rng.integers(0, 2, size=(n + 1, d)))
        )
        turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
        # All eigenvalues within a factor of 1 + kappa: every two are within kappa.
        core = (turn * ((1 + kappa) ** logs)[:, None, :]) @ turn.T
        more = matrix_distance(core[:n].mean(axis=0), core[: n - 1].mean(axis=0)) if n > 1 else 0
        other = matrix_distance(core[:n].mean(axis=0), core[1:].mean(axis=0))
        worst = np.maximum(worst, [more * n / kappa, other * n / kappa])
        assert max(more, other) <= spread(g) / n
    assert worst.max() <= 1 + 1e-9 and worst.min() > 0.95


def test_block_matrices_are_exact():
    """Integers, whichever part the rows of a block are in."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)) * np.geomspace(1, 1e-3, 4) + 0.5
    rows, blocks = Rows.quantize(X, domain_of(8.0, 4)), rng.integers(0, 5, size=300)
    ((_, x),) = rows.chunks()
    halves = [
        block_sums(Rows.of(x[half], rows.ball), Units(150), blocks[half], 5)
        for half in (slice(None, None, 2), slice(1, None, 2))
    ]
    found = matrix_cores.block_matrices(*add_sums(*halves), centered=False)
    for b in range(5):
        exact = x[blocks == b].astype(np.int64).astype(object)
        n, total = len(exact), exact.sum(axis=0)
        assert (found[b] == ((n * (exact.T @ exact) - np.outer(total, total)) << 20) // n**2).all()
