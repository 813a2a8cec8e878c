"""Tuples that far balls partition: one test and one answer, paid for as a whole."""

import math

import numpy as np

from .._privacy._composite_mechanism import open_step
from .._privacy._grid import Grid
from .._privacy._session import PrivacySession
from .blocks import exact_tuples
from .k_averages import MOST_CELLS, k_averages
from .noisy_centers import noisy_centers
from .separated_balls import release_if_private
from .table_rows import TableRows


def far_centers(
    session: PrivacySession,
    entry: str,
    rows: TableRows,
    center: np.ndarray,
    radius: float,
    *,
    cost: tuple[float, float],
    inner: tuple[float, float],
    separation: float,
    averages: bool,
    resolution: float,
    beta: float,
) -> np.ndarray | None:
    """k points (k, d) less a center, of the tuples of a handle; or None.

    The points of all tuples are within `radius` of the center, both public or released. The step
    costs epsilon and delta; the test for far balls and its answer have those of `inner` for
    replacing a tuple, which the caller proves to be the same. See :mod:`.separated_balls`;
    `averages` for :func:`.k_averages.k_averages`, with boxes of that `resolution` in radii, and
    else noisy centers. Each point is put on the integer grid on its own.
    """
    tuples = exact_tuples(rows, len(center)) - center
    grid = Grid.for_radius(radius)
    ball, steps = math.ceil(radius / grid.unit), np.trunc(tuples / grid.unit)
    step = open_step(session, entry, epsilon=cost[0], delta=cost[1])

    def answer(centers: np.ndarray, most: float, epsilon: float, delta: float) -> np.ndarray:
        if not averages:
            return noisy_centers(session, step, centers, separation, ball + 1, epsilon, delta)
        cell = math.ceil(max(resolution * ball, 2 * ball / MOST_CELLS, 1.0))
        return k_averages(
            session,
            step,
            steps,
            centers,
            ball,
            most,
            cell,
            epsilon=epsilon,
            delta=delta,
            beta=beta / 2,
        )

    epsilon, delta = inner
    released = release_if_private(
        step, steps, separation=separation, epsilon=epsilon, delta=delta, beta=beta, answer=answer
    )
    return None if released is None else released * grid.unit
