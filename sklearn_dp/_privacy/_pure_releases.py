"""Releases of pure differential privacy: choices by sealed or exact scores, and Laplace noise."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from ._sealed import Sealed
from .mechanisms import laplace as laplace_law
from .mechanisms import selection
from .mechanisms._release import require


def choose(session: Any, entry: str, scores: Sealed, *, epsilon: float) -> int:
    """The number of an entry that is about the largest; see :func:`exponential`."""
    exact, most = session._opened(scores), scores.claim.of_one
    return exponential(session, entry, exact, sensitivity=most, epsilon=epsilon)


def first_above(
    session: Any, entry: str, answers: Sealed, threshold: float, *, epsilon: float
) -> int | None:
    """The first entry about above a public threshold, or None; see :func:`above_threshold`."""
    exact, most = session._opened(answers), answers.claim.of_one
    return above_threshold(session, entry, exact, threshold, sensitivity=most, epsilon=epsilon)


def leader(session: Any, entry: str, scores: Sealed, *, epsilon: float, delta: float) -> int | None:
    """The largest entry if its lead is clear, or None; see :func:`report_leader_if_stable`."""
    exact, most = session._opened(scores), scores.claim.of_one
    return report_leader_if_stable(
        session, entry, exact, sensitivity=int(most), epsilon=epsilon, delta=delta
    )


def exponential(
    session: Any,
    entry: str,
    scores: np.ndarray | Sequence[int],
    *,
    sensitivity: float,
    epsilon: float,
) -> int:
    """Choose an index with probability proportional to exp(epsilon score / (2 sensitivity)). There
    is an int64 score for each public candidate; none changes by more than `sensitivity` between
    neighbors. Epsilon-DP, and of bounded range epsilon, hence epsilon^2/8-zCDP."""
    return int(session._release(entry, selection.exponential(scores, sensitivity, epsilon)))


def above_threshold(
    session: Any, entry: str, queries: Any, threshold: float, *, sensitivity: float, epsilon: float
) -> int | None:
    """Index of the first query that is about above a public threshold, or None; epsilon-DP for the
    whole search. Each exact integer query moves by at most `sensitivity` between neighbors."""
    release = selection.above_threshold(queries, threshold, sensitivity, epsilon)
    return _index(session._release(entry, release))


def report_leader_if_stable(
    session: Any, entry: str, scores: np.ndarray, *, sensitivity: int, epsilon: float, delta: float
) -> int | None:
    """Index of the best of some public candidates if its lead is clear, or None. No int64 score
    moves by more than `sensitivity` between neighbors. (epsilon, delta)-DP: see
    :mod:`sklearn_dp._privacy.mechanisms.selection`."""
    return _index(session._release(entry, selection.lead(scores, sensitivity, epsilon, delta)))


def _index(chosen: int) -> int | None:
    return None if chosen < 0 else int(chosen)


def release_laplace(session: Any, entry: str, sealed: Sealed, *, epsilon: float) -> np.ndarray:
    """Release an answer with Laplace noise for its claim in l1; see :func:`laplace`."""
    exact, claim = session._opened(sealed), sealed.claim
    require(claim.l1 is not None, "a claim in l1")
    most = float(cast(float, claim.l1))
    return laplace(session, entry, exact, sensitivity=most, epsilon=epsilon, unit=claim.unit)


def laplace(
    session: Any, entry: str, value: Any, *, sensitivity: float, epsilon: float, unit: float = 1.0
) -> np.ndarray:
    """Release integers, in steps of length `unit`, with rounded Laplace noise: epsilon-DP.
    `sensitivity` is the l1 distance of the statistics of neighbors, in steps. The plan is charged
    by the tight zCDP conversion for Laplace noise."""
    release = laplace_law.release(value, sensitivity, epsilon, unit)
    return session._release(entry, release) * float(unit)
