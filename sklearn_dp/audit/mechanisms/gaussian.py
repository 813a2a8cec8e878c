"""Rounded Gaussian noise: releases, and inner draws of a step.

What is claimed: the statistic is a vector of integers that moves by at most one in the norm
``sum_i ((v_i - v'_i) / sensitivity_i)^2``, and the noise is ``round(scale Z)``. Rounding after an
integer is added is the same as rounding before, so the release is post-processing of the ideal
Gaussian mechanism, and costs ``(sensitivity / scale)^2 / 2`` in rho.

What is tested of it:

* a replay compares the two exact statistics with the sensitivity, and their distance in units of
  the scale with the cost (`_replay`);
* the scale has to be enough for the sensitivity and the cost that are stated (`_claims`);
* the noise that came out has to be what the scale says (`gaussian_numbers`).

An inner draw is part of a step that is charged as a whole: it claims (epsilon, delta)-DP on its
own, and realizes no cost that a replay could add up.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import ndtr

from .._epsilon_bounds import gaussian_delta
from ._law import Law, around, free, same_shape, too_little, wraps

_CLOSE_DELTA = 1e-6  # relative: two ways to compute a delta agree much better than this


def squared_shift(known: Any, event: Any, scale: float | np.ndarray) -> float:
    """Squared l2 distance of two integer statistics of any size, in units of `scale`."""
    # Differences of Python integers: those of int64 could wrap around, those of floats be rounded.
    shift = np.asarray(event.value, dtype=object) - np.asarray(known.value, dtype=object)
    return float(np.sum(np.square(np.asarray(shift, dtype=np.float64) / scale)))


def gaussian_numbers(event: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return both sides of the rounding, in [0, 1], under the claimed scale; see
    :attr:`Law.numbers`."""
    # A sum may hold more shares of the noise than are needed.
    scale = np.asarray(event.scale) * np.sqrt(event.public.get("shares", 1.0))
    return around(np.asarray(event.output - event.value, dtype=np.float64), scale, ndtr)


def _replay(player: Any, known: Any, event: Any) -> Any:
    if same_shape(player, known, event):
        player.account(
            event,
            math.sqrt(squared_shift(known, event, event.sensitivity)),
            squared_shift(known, event, event.scale) / 2,
        )
    return known.output


def _claims(event: Any) -> Iterator[str]:
    """``scale >= sensitivity / sqrt(2 rho)``: the cost of a shift, solved for the scale."""
    yield from too_little(event, np.asarray(event.scale) * math.sqrt(2 * event.cost))
    yield from wraps(event)


def _replay_inner(player: Any, known: Any, event: Any) -> Any:
    if same_shape(player, known, event):
        player.account(event, math.sqrt(squared_shift(known, event, event.sensitivity)), 0.0)
    return known.output


def _claims_inner(event: Any) -> Iterator[str]:
    """(epsilon, delta)-DP of a shift by the sensitivity, by integration of the privacy loss, not by
    a formula."""
    mu = float(np.max(np.asarray(event.sensitivity) / np.asarray(event.scale)))
    if not gaussian_delta(mu, event.cost) <= event.public["delta"] * (1 + _CLOSE_DELTA):
        yield f"{event.entry}: too little noise for its sensitivity and cost"
    yield from wraps(event)


LAWS = {
    "gaussian": Law(_replay, gaussian_numbers, _claims, rho=lambda event: event.cost, in_rho=True),
    "inner_gaussian": Law(_replay_inner, gaussian_numbers, _claims_inner, delta=free),
}
