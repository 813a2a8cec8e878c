"""Rounded Gaussian noise: releases, and inner draws of a step."""

import math

import numpy as np
from scipy.special import ndtr

from ..._privacy import _accounting as accounting
from ._law import Law, around, free, same_shape, too_little

__all__ = ["LAWS", "gaussian_numbers", "squared_shift"]


def squared_shift(known, event, scale):
    """Squared l2 distance of two integer statistics of any size, in units of `scale`."""
    shift = np.asarray(event.value, dtype=object) - np.asarray(known.value, dtype=object)
    return float(np.sum(np.square(np.asarray(shift, dtype=np.float64) / scale)))


def gaussian_numbers(event):
    """Both sides of the rounding, under the claimed scale."""
    # A sum may hold more shares of the noise than are needed.
    scale = np.asarray(event.scale) * np.sqrt(event.public.get("shares", 1.0))
    return around(np.asarray(event.output - event.value, dtype=np.float64), scale, ndtr)


def _replay(player, known, event):
    if same_shape(player, known, event):
        player.account(
            event,
            math.sqrt(squared_shift(known, event, event.sensitivity)),
            squared_shift(known, event, event.scale) / 2,
        )
    return known.output


def _claims(event):
    """sigma >= sensitivity / sqrt(2 rho)."""
    return too_little(event, np.asarray(event.scale) * math.sqrt(2 * event.cost))


def _replay_inner(player, known, event):
    if same_shape(player, known, event):
        player.account(event, math.sqrt(squared_shift(known, event, event.sensitivity)), 0.0)
    return known.output


def _claims_inner(event):
    """sigma >= sensitivity times that of the analytic formula for (epsilon, delta)."""
    return too_little(
        event,
        np.asarray(event.scale) / accounting.gaussian_sigma(event.cost, event.public["delta"]),
    )


LAWS = {
    "gaussian": Law(_replay, gaussian_numbers, _claims, rho=lambda event: event.cost, in_rho=True),
    "inner_gaussian": Law(_replay_inner, gaussian_numbers, _claims_inner, delta=free),
}
