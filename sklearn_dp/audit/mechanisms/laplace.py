"""Rounded Laplace noise: releases, and inner draws of a step.

What is claimed: the statistic is a vector of integers that moves by at most `sensitivity` in l1,
and the noise is ``round(scale L)`` for L of the density exp(-abs(x)) / 2. The privacy loss is then
at most ``sensitivity / scale``, so the release is pure DP with that epsilon; `cost` is this
epsilon, and not a rho.

A step may ask for the noise of a vector in which one element is the unit's own (`own`): it is
replaced by another one between neighbors, its theorem covers that element separately, and the
sensitivity is a claim about all the others.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from .._epsilon_bounds import rho_of_laplace
from ._law import Law, around, same_shape, too_little, wraps


def laplace_cdf(x: float | np.ndarray) -> np.ndarray:
    """Return the distribution function of the density exp(-abs(x)) / 2; each branch is clipped
    first."""
    return np.where(x < 0, np.exp(np.minimum(x, 0)) / 2, 1 - np.exp(-np.maximum(x, 0)) / 2)


def _numbers(event: Any) -> tuple[np.ndarray, np.ndarray]:
    return around(
        np.asarray(event.output - event.value, dtype=np.float64), event.scale, laplace_cdf
    )


def _claims(event: Any) -> Iterator[str]:
    """``scale >= sensitivity / epsilon``."""
    yield from too_little(event, np.asarray(event.scale) * event.cost)
    yield from wraps(event)


def _shifts(known: Any, event: Any) -> np.ndarray:
    """How far each element moves, in order of size."""
    # Python integers, as for Gaussian noise: a difference of int64 may wrap around to a small one.
    shift = np.asarray(event.value, dtype=object) - np.asarray(known.value, dtype=object)
    return np.sort(np.abs(np.ravel(shift)).astype(np.float64))


def _replay(player: Any, known: Any, event: Any) -> Any:
    if same_shape(player, known, event):
        total = float(_shifts(known, event).sum())
        player.account(event, total / event.sensitivity, total / event.scale)
    return known.output


def _replay_inner(player: Any, known: Any, event: Any) -> Any:
    if same_shape(player, known, event):
        shift = _shifts(known, event)
        # The value of the replaced element itself is the one that moves most, or less is claimed.
        shift = shift[:-1] if event.public["own"] else shift
        player.account(event, float(shift.sum()) / event.sensitivity, 0.0)
    return known.output


LAWS = {
    "laplace": Law(_replay, _numbers, _claims, rho=lambda event: rho_of_laplace(event.cost)),
    "inner_laplace": Law(_replay_inner, _numbers, _claims),
}
