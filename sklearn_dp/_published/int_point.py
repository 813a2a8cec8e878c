"""An interior point of numbers on a line, from a solver of the 1-cluster problem.

The reduction that shows why a private cluster needs a finite domain (algorithm 3): an interior
point cannot be found privately on an infinite one. It is also a way to a private median.

RecConcave gives way to the exponential mechanism, which is better for as few candidates as there
are here."""

import math

import numpy as np

from .._aggregate.one_cluster.center import exponential_epsilon
from .._aggregate.one_cluster.search import Search, fit_one_cluster, one_cluster_entries
from .._costs.numbers import sum_down
from .._costs.plan import Mechanism, PlanEntry
from .._privacy._session import PrivacySession
from .._privacy.mechanisms.pure import choose
from .._queries.boxes import InteriorScores, middle_rows
from .._queries.grids import GridRows

_FACTOR = 8  # the ball is cut into this many pieces on each side of its center
_SMALL = 64  # a ball of so few steps is not cut


def int_point_entries(rho: float, delta: float, search: Search) -> tuple[PlanEntry, ...]:
    """Plan entries of :func:`int_point`: half for the cluster, half for the choice."""
    half = rho / 2
    return (
        *one_cluster_entries(half, delta, search),
        PlanEntry(
            "interior point",
            Mechanism.EXPONENTIAL,
            sum_down([rho, -half]),
            sensitivity="1 unit on either side",
        ),
    )


def int_point(session: PrivacySession, rows: GridRows, n_points: int, search: Search) -> float:
    """A number between the smallest and the largest of some numbers, near their median.

    With n = n_points + m numbers, m of them left out at the ends, it is interior unless the choice
    among the candidates, 129 at most, loses more than m / 2: with probability at least 95% for m >=
    4 log(129 / 0.05) / epsilon, where the ball holds any number of the middle. The search, among
    the public number `n_points` of the middle rows of a handle, is run for neighbors that replace
    (:func:`sklearn_dp._queries.boxes.middle_rows`)."""
    ball = fit_one_cluster(session, middle_rows(rows, n_points), max(1, n_points // 2), search)
    reach = max(math.ceil(math.sqrt(ball.square)), 1)
    # The ends of pieces of the ball, or all numbers in a small one: released, so they are public.
    pieces = reach if reach <= _SMALL else _FACTOR
    candidates = np.rint(ball.center[0] + reach * np.arange(-pieces, pieces + 1) / pieces)
    epsilon = exponential_epsilon(session.remaining("interior point"))
    scores = rows.ask(InteriorScores(candidates))
    return float(candidates[choose(session, "interior point", scores, epsilon=epsilon)])
