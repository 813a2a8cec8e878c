"""The friendly core of block covariances."""

import numpy as np
import pytest
from scipy.linalg import eigh

from sklearn_dp._bounds import domain_of
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


# -- blocks -------------------------------------------------------------------------------------


def block_matrices(rows, units, blocks, n_blocks, *, centered):
    """Those of a table in one part; of two parts they are the same."""
    found = matrix_cores.block_matrices(
        *block_sums(rows, units, blocks, n_blocks), centered=centered
    )
    x = np.concatenate([np.empty((0, rows.n_features)), *(chunk for _, chunk in rows.chunks())])
    halves = []
    for half in (slice(None, None, 2), slice(1, None, 2)):
        part = Rows.of(x[half], rows.ball)
        halves.append(block_sums(part, units.take(half), blocks[half], n_blocks))
    assert (matrix_cores.block_matrices(*add_sums(*halves), centered=centered) == found).all()
    return found


def table(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.geomspace(1, 1e-3, d) + 0.5
    return Rows.quantize(X, domain_of(8.0, d)), rng.integers(0, 5, size=n)


def test_block_matrices_are_exact():
    """Integers: the same for any order of the rows, and a block's own rows decide."""
    rows, blocks = table(300, 4)
    ((_, x),) = rows.chunks()
    whole = block_matrices(rows, Units(300), blocks, 5, centered=False)
    order = np.random.default_rng(1).permutation(300)
    turned = block_matrices(
        Rows.of(x[order], rows.ball), Units(300), blocks[order], 5, centered=False
    )
    assert (whole == turned).all()
    for b in range(5):
        inside = x[blocks == b]
        alone = block_matrices(
            Rows.of(inside, rows.ball),
            Units(len(inside)),
            np.full(len(inside), 3),
            5,
            centered=False,
        )
        assert (alone[3] == whole[b]).all()
        exact = inside.astype(np.int64).astype(object)
        n, total = len(exact), exact.sum(axis=0)
        expected = ((n * (exact.T @ exact) - np.outer(total, total)) << 20) // n**2
        assert (whole[b] == expected).all()


def test_one_more_row_changes_one_block():
    """friendly_core:5: also at n = 0 and for a whole group; the others keep their matrices."""
    rows, blocks = table(60, 2)
    ((_, x),) = rows.chunks()
    for n in (0, 1, 59):
        pair = [
            block_matrices(Rows.of(x[:m], rows.ball), Units(m), blocks[:m], 5, centered=True)
            for m in (n, n + 1)
        ]
        assert len(pair[0]) == len(pair[1]) == 5
        assert np.count_nonzero((pair[0] != pair[1]).any(axis=(1, 2))) == 1
    groups = np.repeat(np.arange(20), 3)
    units = Units(60, groups)
    spread = units.spread(blocks[:20])
    fewer = Units(57, groups[:57])
    pair = [
        block_matrices(rows, units, spread, 5, centered=True),
        block_matrices(Rows.of(x[:57], rows.ball), fewer, spread[:57], 5, centered=True),
    ]
    assert np.count_nonzero((pair[0] != pair[1]).any(axis=(1, 2))) == 1


def test_a_group_counts_as_one():
    """A group of all its rows equal is one row."""
    rows, blocks = table(40, 2)
    ((_, x),) = rows.chunks()
    times = 1 + np.arange(40) % 4
    repeated = np.repeat(np.arange(40), times)
    one = block_matrices(Rows.of(x, rows.ball), Units(40), blocks, 5, centered=True)
    many = block_matrices(
        Rows.of(x[repeated], rows.ball),
        Units(len(repeated), repeated),
        blocks[repeated],
        5,
        centered=True,
    )
    assert np.allclose(one.astype(float), many.astype(float), rtol=0.01)
