"""Noisy numbers of rows next to public points, and which of the points are worth keeping.

Part of the paper's theory: see :mod:`.theory`, which puts the parts together. Algorithm 4 thins out
the server's points until few are left that have no rows next to them:

1. count the rows next to every point that is still there, with noise;
2. points with a high count are kept for good;
3. each of the others is dropped with a probability of one half; again from 1.

A point without rows is counted high with small probability only, and so is gone after a few
rounds. One with many rows near it, all of which are nearest to its neighbours, gets a high count
as soon as these are gone.

Corrected here: the noise is made for T + 1 rounds, where the printed algorithm counts T; points
that have been kept are not halved again; the rows that are counted are those of the clients.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._privacy._domain import Domain
from ..._privacy._session import PrivacySession
from ...federated._engines import total_of
from ...federated._messages import empty_message
from ...federated._state import Sealed
from ...federated._statistics import row_bounds

__all__ = ["NearCounts", "simplify_rounds", "simplify_server_data"]


@dataclass(frozen=True)
class NearCounts:
    """Counts the rows of clients next to points, under one entry of a plan.

    The entry is Gaussian, with a use for each call; the engine has a method ``ask(kind, message)``.
    Rows are clipped into the public domain. `basis`, (d, q), is that of a released subspace, in
    steps of 2**-20; None: rows and points stay in the whole space.
    """

    session: PrivacySession
    entry: str
    engine: Any
    domain: Domain
    basis: np.ndarray | None = None

    def __call__(self, points: np.ndarray, rho: float) -> np.ndarray:
        """Noisy numbers of rows next to each point, at a cost of `rho`.

        Points are distinct integers (m, q), in steps of the domain's grid.
        """
        message = empty_message(len(self.domain.center), self.domain) | {"points": points}
        if self.basis is not None:
            message["basis"] = self.basis
        # A row is next to one point, the first among equals, so it moves one count by one.
        # Settled, and the message copied, before anybody is asked.
        sealed, bound = Sealed(message), row_bounds("weights", message)["weights"]
        total, _ = total_of("weights", message, self.engine.ask("weights", sealed.open()))
        counts = np.zeros(len(points), dtype=np.int64) if total is None else total["weights"]
        return self.session.gaussian(self.entry, counts, sensitivity=bound, rho=rho)


def simplify_rounds(n_server: int, epsilon: float, w_min: float) -> int:
    """Rounds of :func:`simplify_server_data`: T + 1, where the printed algorithm says T.

    `w_min` is the smallest weight of a component.

    >>> simplify_rounds(100, 1.0, 0.2)  # T = 10 log(4 log(100) / 0.2), rounded up
    47
    """
    return max(1, math.ceil(10 * math.log(4 * math.log(n_server) / (epsilon * w_min)))) + 1


def simplify_server_data(
    near: NearCounts, points: np.ndarray, n_rounds: int, *, rho: float, threshold: float
) -> np.ndarray:
    """Indices of the points with rows next to them; the others are thinned out (Algorithm 4).

    The entry of `near` has `n_rounds` uses worth `rho` in all; see :func:`simplify_rounds`. It may
    stop earlier: when no point is left to decide about is a matter of releases. Points are distinct
    integers (m, q), in grid steps; noisy counts up to the threshold are low.
    """
    rng = near.session.rng(f"{near.entry} halving")
    kept, left = np.empty(0, dtype=np.int64), np.arange(len(points))
    share = math.nextafter(rho / n_rounds, 0.0)
    for _ in range(n_rounds):
        candidates = np.concatenate([kept, left])
        if not len(left):
            break
        counts = near(points[candidates], share)
        high = counts[len(kept) :] > threshold
        kept = np.concatenate([kept, left[high]])
        low = left[~high]
        left = low[rng.random(len(low)) < 0.5]
    return np.sort(kept)
