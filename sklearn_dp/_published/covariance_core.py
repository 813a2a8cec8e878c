"""A covariance of any scale and shape from a friendly core (:mod:`.._queries.matrix_cores`), as a
start for :mod:`.._aggregate.moments.rounds`.

No bound and no whitening is needed, but many rows: :meth:`CoreStage.rows` says about how many. All
of the plan (the number of blocks, the distance of friends, the shares) is a function of the budget
and the number of features.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.special import ndtr, ndtri

from .._aggregate.moments.ellipsoid import Ellipsoid, normal_quantile
from .._costs.plan import Mechanism, PlanEntry
from .._privacy._session import PrivacySession
from .._queries.grids import GridRows
from .._queries.matrix_cores import covariance_of_core, noise_of_core

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

    def eta(self, size: float, d: int) -> float | None:
        """The noise for a released core size, or None where it would say nothing."""
        matrix = self.rho[_MATRIX], self.delta[_MATRIX]
        return noise_of_core(size, self.distance, d, *matrix)

    def suffices(self, d: int) -> bool:
        """True if blocks that agree would most probably give an answer: a public prediction.

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
        """The covariance of the core with noise, as a start for the rounds; None if the core is too
        small. Eigenvalues are floored, as tiny ones must not last. The ball holds nearly all rows
        if the shape is off by a half."""
        budgets = [(name, self.rho[name], self.delta[name]) for name in _WORDS]
        core = covariance_of_core(
            session, rows, budgets, self.n_blocks, self.distance, centered=centered
        )
        if core is None:
            return None
        values, vectors = np.linalg.eigh(np.clip(core, -(2.0**100), 2.0**100))
        scales = np.sqrt(np.maximum(values, max(values[-1] * 1e-14, 1e-2)))
        d = len(core)
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
