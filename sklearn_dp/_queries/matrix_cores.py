"""The covariance of a friendly core of the covariances of random blocks.

Every unit draws one of a public number of blocks, so neighbors differ in the matrix of one block.
Two matrices are friends if each is at most 1 + g times the other in the order of semidefinite
matrices, whatever their scale. A filter keeps those with many friends. Any two survivors then have
a friend in common, so they are within a factor of (1 + g)^2, and their average moves by so small a
factor that noise in proportion to itself hides it (FriendlyCore, ICML 2022, appendix F; here with
independent blocks, a filter for replaced elements and the noise of
:mod:`sklearn_dp._privacy.mechanisms.proportional`).
"""

import math
from collections.abc import Sequence

import numpy as np

from .._privacy._entries import exact_integers
from .._privacy._grid import sum_type
from .._privacy._session import PrivacySession
from .._privacy._units import Units
from .._privacy.mechanisms.proportional import least_eta, proportional_noise_psd
from .._privacy.mechanisms.stability import UnitDraws, addressed_draws, blocks_of_draws
from .._rows.rows import ROWS, Rows
from .._rows.table import Part
from .averages import core_fixed_size, core_size
from .grids import GridRows
from .samples import UnitNumbers, numbered

_WIDEST = 0.25  # eta sqrt(d): eigenvalues then are released up to a factor of about 2
_BITS = 20  # the matrix of a block is in steps of 2**-20 squared grid steps
_WEIGHT_BITS = 10
_HALF = 2.0**12  # rows are split into two parts of at most 13 bits
_MARGIN = 2.0**-36  # of the traces, far above the rounding errors of a Cholesky decomposition
_UP = 1 + 1e-9


def covariance_of_core(
    session: PrivacySession,
    rows: GridRows,
    budgets: Sequence[tuple[str, float, float]],
    n_blocks: int,
    distance: float,
    *,
    centered: bool,
) -> np.ndarray | None:
    """The noisy covariance (d, d) of the core, in squared grid steps; None if it is too small.
    `budgets` are the plan entries of the filter, of the size and of the matrix, with their rho and
    delta. The size is released lowered, so that it is too large with probability at most delta; the
    noise is chosen for it."""
    (core, *of_core), (size_of, *of_size), (matrix, *of_matrix) = budgets
    numbers = numbered(rows.table)
    draws = addressed_draws(session, numbers.size)
    sums = rows.table._raw().sums(_drawn_sums, numbers, draws, n_blocks)
    matrices = block_matrices(*sums, centered=centered)
    friends, d = friend_counts(matrices, distance), rows.n_features
    keep = core_fixed_size(session, core, friends, rho=of_core[0], delta=of_core[1])
    m = int(np.count_nonzero(keep))
    size = core_size(session, size_of, m, rows.units, rho=of_size[0], delta=of_size[1])
    eta = noise_of_core(size, distance, d, *of_matrix)
    if eta is None:
        return None
    # The size is at most m, but for delta: see `spread`.
    noisy = proportional_noise_psd(
        session,
        matrix,
        matrices[keep].sum(axis=0) + np.zeros((d, d), dtype=np.int64).astype(object),
        m,
        bits=_BITS,
        distance=spread(distance) / size,
        eta=eta,
        rho=of_matrix[0],
        delta=of_matrix[1],
    )
    return noisy / (1 + eta**2 * d)


def _drawn_sums(
    part: Part, numbers: UnitNumbers, draws: UnitDraws, n_blocks: int
) -> tuple[Part, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """The sums of the rows that a part has of each block."""
    blocks = blocks_of_draws(numbers.draws_of(part, draws), n_blocks)
    return part, block_sums(part[ROWS], part.units, blocks, n_blocks)


def spread(distance: float) -> float:
    """k with ``Avg / (1 + k/n) <= Avg' <= (1 + k/n) Avg`` for cores of size n, of friends at a
    distance g.

    With k = (1 + g)^2 - 1, any two elements satisfy X <= (1 + k) Y. With Y in the place of X,
    n (Avg - Avg') = X - Y. Of X <= (1 + k) Y take the share 1 / (1 + k), of
    X <= (1 + k) Avg' the rest: X <= Y + k Avg'. The other way round it is the same. With X
    added to n - 1 others, n Avg = (n - 1) Avg' + X and Avg' / (1 + k) <= X <= (1 + k) Avg', so
    that Avg <= (1 + k/n) Avg' and Avg >= (1 - k / ((1 + k) n)) Avg' >= Avg' / (1 + k/n)."""
    return ((1 + distance) ** 2 - 1) * _UP


def noise_of_core(size: float, distance: float, d: int, rho: float, delta: float) -> float | None:
    """The noise for a released core size, or None where it would say nothing."""
    if size < 1:
        return None
    eta = least_eta(spread(distance) / size, d, rho, delta)
    return eta if eta is not None and eta * math.sqrt(d) <= _WIDEST else None


def block_matrices(
    weight: np.ndarray, total: np.ndarray, parts: np.ndarray, *, centered: bool
) -> np.ndarray:
    """Second moment, if `centered`, or covariance of the rows of each block, zero for an empty one:
    Python integers (n_blocks, d, d), in steps of 2**-20 squared grid steps."""
    weight, total, (high, middle, low) = (a.astype(object) for a in (weight, total, parts))
    weight = np.maximum(weight, 1)[:, None, None]
    square = (high << 24) + (middle << 12) + low
    if centered:
        return (square << _BITS) // weight
    outer = total[:, :, None] * total[:, None, :]
    return ((weight * square - outer) << _BITS) // weight**2


def block_sums(
    rows: Rows, units: Units, blocks: np.ndarray, n_blocks: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Exact weights, weighted sums and second moments of the rows of each block (n,).

    A row is 2**12 times its high part plus its low part, of at most 13 bits each with a weight of
    at most 10: no sum of up to 2**17 products in a block of a chunk exceeds 2**53. Products of
    whole rows would, at 2**48 each: three products of parts, put together as Python integers, are
    the exact second moment. Of shape (n_blocks,), (n_blocks, d) and (3, n_blocks, d, d), the last
    with products of high parts, of a high and a low one, and of low parts."""
    d = rows.n_features
    exact = sum_type(rows.n_rows, 36)
    weight, total = np.zeros(n_blocks, np.int64), np.zeros((n_blocks, d), exact)
    parts = np.zeros((3, n_blocks, d, d), exact)
    for part, x in rows.chunks():
        w = (
            np.ones(len(x))
            if units.weights is None
            else np.maximum(1.0, np.floor(units.weights[part] * 2.0**-_WEIGHT_BITS))
        )
        order = np.argsort(blocks[part], kind="stable")
        ends = np.searchsorted(blocks[part][order], np.arange(n_blocks + 1))
        for b in np.flatnonzero(np.diff(ends)):
            inside = order[ends[b] : ends[b + 1]]
            high = np.floor(x[inside] / _HALF)
            low = x[inside] - _HALF * high
            weighted = w[inside][:, None]
            weight[b] += int(w[inside].sum())
            total[b] += exact_integers((x[inside] * weighted).sum(axis=0))
            cross = (weighted * high).T @ low
            for place, product in enumerate(
                ((weighted * high).T @ high, cross + cross.T, (weighted * low).T @ low)
            ):
                parts[place, b] += exact_integers(product)
    return weight, total, parts


# -- friends ------------------------------------------------------------------------------------


def friend_counts(matrices: np.ndarray, distance: float) -> np.ndarray:
    """Number of friends of each symmetric matrix (t, d, d), itself included.

    Friends are at most 1 + distance times each other; zero matrices are nobody's friends.

    All is elementwise in a fixed order, so whether two matrices are friends depends on them alone.
    A Cholesky decomposition of (1 + g) S - S' less a multiple of the identity that exists in
    floating point shows that (1 + g) S - S' has no eigenvalue below 2^-37 of the traces."""
    # What is not definite may overflow on the way; that must not show.
    with np.errstate(over="ignore", invalid="ignore"):
        return _counts(matrices, distance)


def _counts(matrices: np.ndarray, distance: float) -> np.ndarray:
    stack = np.moveaxis(matrices.astype(np.float64), 0, -1).copy()
    traces = sum(stack[i, i] for i in range(len(stack)))
    t = stack.shape[-1]
    counts = np.zeros(t, dtype=np.int64)
    for i in range(t):
        one, others = stack[:, :, i : i + 1], stack[:, :, i:]
        shift = _MARGIN * (traces[i] + traces[i:])
        friends = _definite((1 + distance) * one - others, shift)
        friends &= _definite((1 + distance) * others - one, shift)
        counts[i] += np.count_nonzero(friends)
        counts[i + 1 :] += friends[1:]
    return counts


def _definite(stack: np.ndarray, shift: np.ndarray | float) -> np.ndarray:
    """Which matrices (d, d, m) stay positive definite with a lowered diagonal: Cholesky's."""
    definite = np.ones(stack.shape[-1], dtype=bool)
    for k in range(len(stack)):
        pivot = stack[k, k] - shift
        definite &= pivot > 0
        if not definite.any():
            return definite
        column = stack[k + 1 :, k] / np.where(definite, pivot, 1.0)
        stack[k + 1 :, k + 1 :] -= column[:, None] * stack[k, k + 1 :][None]
    return definite
