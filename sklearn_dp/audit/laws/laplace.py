"""Rounded Laplace noise: releases, and inner draws of a step."""

import numpy as np

from ..._privacy import _accounting as accounting
from ._law import Law, around, same_shape, too_little

__all__ = ["LAWS", "laplace_cdf"]


def laplace_cdf(x):
    """Of density exp(-abs(x)) / 2."""
    return np.where(x < 0, np.exp(np.minimum(x, 0)) / 2, 1 - np.exp(-np.maximum(x, 0)) / 2)


def _numbers(event):
    return around(
        np.asarray(event.output - event.value, dtype=np.float64), event.scale, laplace_cdf
    )


def _claims(event):
    """scale >= sensitivity / epsilon."""
    return too_little(event, np.asarray(event.scale) * event.cost)


def _shifts(known, event):
    shift = np.abs(np.asarray(event.value) - np.asarray(known.value))
    return np.sort(np.ravel(shift).astype(np.float64))


def _replay(player, known, event):
    if same_shape(player, known, event):
        total = float(_shifts(known, event).sum())
        player.account(event, total / event.sensitivity, total / event.scale)
    return known.output


def _replay_inner(player, known, event):
    if same_shape(player, known, event):
        shift = _shifts(known, event)
        # The value of the replaced element itself is the one that moves most, or less is claimed.
        shift = shift[:-1] if event.public["own"] else shift
        player.account(event, float(shift.sum()) / event.sensitivity, 0.0)
    return known.output


LAWS = {
    "laplace": Law(
        _replay, _numbers, _claims, rho=lambda event: accounting.laplace_zcdp_rho(event.cost)
    ),
    "inner_laplace": Law(_replay_inner, _numbers, _claims),
}
