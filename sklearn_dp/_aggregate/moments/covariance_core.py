"""A covariance of any scale and shape from the friendly core of the covariances of blocks.

1. Every unit draws one of a public number of blocks, so neighbors differ in the matrix of one
   block (:func:`block_matrices`).
2. Two matrices are friends if each is at most 1 + g times the other in the order of semidefinite
   matrices, whatever their scale (:func:`friend_counts`). A filter keeps those with many friends,
   by noisy counts. Any two survivors then have a friend in common, so they are within a factor of
   (1 + g)^2, and their average moves by so small a factor that noise in proportion to itself hides
   it [1]_.
3. The number of survivors is released, lowered so that it is too large with probability at most
   delta; the noise is chosen for it.
4. Their sum is released with that noise, as a start for :mod:`.rounds`.

No bound and no whitening is needed, but many rows: :meth:`CoreStage.rows` says about how many. All
of the plan (the number of blocks, g, the shares) is a function of the budget and the number of
features.

References
----------
.. [1] E. Tsfadia, E. Cohen, H. Kaplan, Y. Mansour and U. Stemmer, "FriendlyCore: practical
   differentially private aggregation", ICML 2022, appendix F; here with independent blocks, a
   filter for replaced elements and the noise of :mod:`sklearn_dp._privacy.mechanisms.proportional`.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from ..._privacy._grid import sum_type
from ..._privacy._plan import Mechanism, PlanEntry
from ..._privacy._rounding import exact_integers
from ..._privacy._session import PrivacySession
from ..._privacy._unit_draws import UnitDraws, addressed_draws, blocks_of_draws
from ..._privacy._units import Units
from ..._privacy.mechanisms.proportional import least_eta, proportional_noise_psd
from ..._queries.averages import core_size
from ..._queries.cores import core_fixed_size
from ..._queries.handles import GridRows
from ..._queries.samples import numbered
from ..._rows.rows import Rows
from ..._rows.table import ROWS, Part
from .ellipsoid import Ellipsoid, normal_quantile

BLOCK_LIMIT = 2000
"""Number of blocks up to which comparing all pairs is a matter of seconds."""

_CORE, _SIZE, _MATRIX = "covariance core", "covariance core size", "core covariance"
_SHARES = {_CORE: (0.72, 0.5), _SIZE: (0.04, 0.2), _MATRIX: (0.24, 0.3)}  # of rho and of delta
_WORDS = {  # mechanism and sensitivity
    _CORE: (Mechanism.FRIENDLY_CORE, "one friend more or less"),
    _SIZE: (Mechanism.FRIENDLY_AVERAGE, "one block"),
    _MATRIX: (Mechanism.PROPORTIONAL, "the friends' factor over the released size"),
}
_DISTANCES = (0.3, 0.4, 0.5, 0.6, 0.75, 1.0, 1.25, 1.5)
_FRIENDS, _KEPT = 0.95, 0.9  # a block that matches so many should survive with this probability
_WIDEST = 0.25  # eta sqrt(d): eigenvalues then are released up to a factor of about 2
_BITS = 20  # the matrix of a block is in steps of 2**-20 squared grid steps
_WEIGHT_BITS = 10
_HALF = 2.0**12  # rows are split into two parts of at most 13 bits
_MARGIN = 2.0**-36  # of the traces, far above the rounding errors of a Cholesky decomposition
_UP = 1 + 1e-9


@dataclass(frozen=True)
class CoreStage:
    """How a budget is used, from public facts only."""

    n_blocks: int
    distance: float  # the g of friends
    rho: dict[str, float]  # of each plan entry
    delta: dict[str, float]  # of each plan entry

    def entries(self) -> tuple[PlanEntry, ...]:
        """Plan entries."""
        return tuple(
            PlanEntry(name, kind, self.rho[name], self.delta[name], sensitivity=words)
            for name, (kind, words) in _WORDS.items()
        )

    @property
    def spread(self) -> float:
        """k with ``Avg / (1 + k/n) <= Avg' <= (1 + k/n) Avg`` for cores of size n.

        With k = (1 + g)^2 - 1, any two elements satisfy X <= (1 + k) Y. With Y in the place of X,
        n (Avg - Avg') = X - Y. Of X <= (1 + k) Y take the share 1 / (1 + k), of
        X <= (1 + k) Avg' the rest: X <= Y + k Avg'. The other way round it is the same. With X
        added to n - 1 others, n Avg = (n - 1) Avg' + X and Avg' / (1 + k) <= X <= (1 + k) Avg', so
        that Avg <= (1 + k/n) Avg' and Avg >= (1 - k / ((1 + k) n)) Avg' >= Avg' / (1 + k/n).
        """
        return ((1 + self.distance) ** 2 - 1) * _UP

    def eta(self, size: float, d: int) -> float | None:
        """The noise for a released core size, or None where it would say nothing.

        With A = R R^T the average, R (I + eta G) (I + eta G)^T R^T is released, the entries of
        G being standard normal: see :mod:`sklearn_dp._privacy.mechanisms.proportional`.
        """
        if size < 1:
            return None
        eta = least_eta(self.spread / size, d, self.rho[_MATRIX], self.delta[_MATRIX])
        return eta if eta is not None and eta * math.sqrt(d) <= _WIDEST else None

    def suffices(self, d: int) -> bool:
        """Whether blocks that agree would most probably give an answer: a public prediction.

        A block with 95% of the others for friends has to pass the noisy threshold nine times in
        ten, and nine tenths of the blocks have to do, if the released size is two standard
        deviations low.
        """
        t, rho = self.n_blocks, self.rho[_CORE]
        sigma = math.sqrt((t - 1) / (2 * rho))
        threshold = -sigma * float(ndtri(self.delta[_CORE] / t))
        if ndtr(((_FRIENDS - 0.5) * t - threshold) / sigma) < _KEPT:
            return False
        sd = 1 / math.sqrt(2 * self.rho[_SIZE])
        size = _KEPT * t - 1.5 + sd * (float(ndtri(self.delta[_SIZE])) - 2)
        return self.eta(size, d) is not None

    def rows(self, d: int) -> float:
        """About how many rows it takes for most blocks to agree: eigenvalues of one block's matrix,
        of m rows, with respect to another's reach from exp(-4 sqrt(d / m)) to exp(4 sqrt(d / m)).
        """
        return self.n_blocks * 16 * d / math.log1p(self.distance) ** 2

    def run(self, session: PrivacySession, rows: GridRows, *, centered: bool) -> Ellipsoid | None:
        """The covariance of the core with noise, as a start for others; None if it is too small."""
        draws = addressed_draws(session, (numbers := numbered(rows.table)).size)
        sums = rows.table._raw().sums(_drawn_sums, numbers, draws, self.n_blocks)
        matrices = block_matrices(*sums, centered=centered)
        friends, rho, delta = friend_counts(matrices, self.distance), self.rho, self.delta
        keep = core_fixed_size(session, _CORE, friends, rho=rho[_CORE], delta=delta[_CORE])
        m, d = int(np.count_nonzero(keep)), rows.n_features
        size = core_size(session, _SIZE, m, rho=rho[_SIZE], delta=delta[_SIZE])
        eta = self.eta(size, d)
        if eta is None:
            return None
        # The size is at most m, but for delta: see `spread`.
        noisy = proportional_noise_psd(
            session,
            _MATRIX,
            matrices[keep].sum(axis=0) + np.zeros((d, d), dtype=np.int64).astype(object),
            m,
            bits=_BITS,
            distance=self.spread / size,
            eta=eta,
            rho=rho[_MATRIX],
            delta=delta[_MATRIX],
        )
        return _ellipsoid(noisy / (1 + eta**2 * d))


def _ellipsoid(matrix: np.ndarray) -> Ellipsoid:
    """A start for the rounds, of floored eigenvalues, as tiny ones must not last. The ball holds
    nearly all rows if the shape is off by a half."""
    d = len(matrix)
    values, vectors = np.linalg.eigh(np.clip(matrix, -(2.0**100), 2.0**100))
    scales = np.sqrt(np.maximum(values, max(values[-1] * 1e-14, 1e-2)))
    return Ellipsoid(np.zeros(d), vectors, scales, 1.5 * normal_quantile(0.99, d))


@lru_cache(maxsize=64)
def core_stage(rho: float, delta: float, d: int, n_blocks: int | None = None) -> CoreStage | None:
    """The stage, of cost `rho` and `delta`, that should need the fewest rows; None: too many
    blocks.

    `n_blocks` is used whatever may come of it; by default it is the smallest that suffices for each
    of some distances g: a wide one lets small blocks agree, and needs many of them.
    """
    stages = [stage for stage in (_stage(rho, delta, d, g, n_blocks) for g in _DISTANCES) if stage]
    return min(stages, key=lambda stage: stage.rows(d)) if stages else None


def _stage(
    rho: float, delta: float, d: int, distance: float, n_blocks: int | None
) -> CoreStage | None:
    """The smallest sufficient number of blocks at a distance, by bisection over even numbers."""
    shares = {name: _part(share, rho) for name, (share, _) in _SHARES.items()}
    deltas = {name: _part(share, delta) for name, (_, share) in _SHARES.items()}
    stage = CoreStage(n_blocks or BLOCK_LIMIT, distance, shares, deltas)
    if n_blocks:
        return stage if stage.suffices(d) or distance == _DISTANCES[3] else None
    if not stage.suffices(d):
        return None
    low, high = 2, BLOCK_LIMIT
    while high - low > 2:
        middle = (low + high) // 4 * 2
        enough = replace(stage, n_blocks=middle).suffices(d)
        low, high = (low, middle) if enough else (middle, high)
    return replace(stage, n_blocks=high)


def _part(share: float, whole: float) -> float:
    """A share, rounded down: all of them sum to at most the whole."""
    return math.nextafter(share * whole * (1 - 1e-12), 0.0)


# -- the matrices of blocks ---------------------------------------------------------------------


def _drawn_sums(
    part: Part, numbers: Any, draws: UnitDraws, n_blocks: int
) -> tuple[Part, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """The sums of the rows that a part has of each block."""
    blocks = blocks_of_draws(numbers.draws_of(part, draws), n_blocks)
    return part, block_sums(part[ROWS], part.units, blocks, n_blocks)


def block_matrices(
    weight: np.ndarray, total: np.ndarray, parts: np.ndarray, *, centered: bool
) -> np.ndarray:
    """Second moment, if `centered`, or covariance of the rows of each block: zero for an empty one.
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
    with products of high parts, of a high and a low one, and of low parts.
    """
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
    floating point shows that (1 + g) S - S' has no eigenvalue below 2^-37 of the traces.
    """
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
    """Which matrices (d, d, m) stay positive definite when their diagonal is lowered. Cholesky, all
    m at a time and in place: those that failed go on with a pivot of one."""
    found = np.ones(stack.shape[-1], dtype=bool)
    for k in range(len(stack)):
        pivot = stack[k, k] - shift
        found &= pivot > 0
        if not found.any():
            return found
        column = stack[k + 1 :, k] / np.where(found, pivot, 1.0)
        stack[k + 1 :, k + 1 :] -= column[:, None] * stack[k, k + 1 :][None]
    return found
