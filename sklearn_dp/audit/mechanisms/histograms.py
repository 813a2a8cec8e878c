"""Histograms over public candidates, nearly all of which are empty.

The exact statistic is a pair of arrays (codes of occupied cells, their counts). There is rounded
Gaussian noise on every count, and published is every cell whose noisy count reaches the public
level `low`, occupied or not, with its noisy count. That is post-processing of a release of all the
counts, so only their l2 distance matters. Every empty cell has noise too: how many of them are
published, and with which values, is tested as well (`_sparse`).
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import betaincc, ndtr

from ._law import Law, around, too_little


def _counts(event: Any) -> dict[Any, int]:
    """Counts by cell, of the cells that are occupied."""
    return dict(zip(*map(np.ndarray.tolist, event.value), strict=True))


def _claims(event: Any) -> Iterator[str]:
    """sigma >= sensitivity / sqrt(2 rho)."""
    return too_little(event, np.asarray(event.scale) * math.sqrt(2 * event.cost))


def _replay_sparse(player: Any, known: Any, event: Any) -> Any:
    """l2 distance over all the cells: an empty one has the count 0."""
    before, after = _counts(known), _counts(event)
    square = float(
        sum((after.get(c, 0) - before.get(c, 0)) ** 2 for c in before.keys() | after.keys())
    )
    player.account(event, math.sqrt(square) / event.sensitivity, square / event.scale**2 / 2)
    return known.output


def _published(event: Any) -> tuple[np.ndarray, np.ndarray]:
    """Occupied cells: the noisy count where it was published, else only that it is below `low`."""
    codes, counts = event.value
    cells, values = event.output
    place = np.searchsorted(cells, codes)
    released = np.isin(codes, cells)
    noise = np.where(
        released, values[np.minimum(place, max(len(cells) - 1, 0))] - counts if len(cells) else 0, 0
    ).astype(np.float64)
    low, high = around(
        np.where(noise + counts < event.public["low"], -np.inf, noise), event.scale, ndtr
    )
    hidden = ndtr((event.public["low"] - counts - 0.5) / event.scale)
    return np.where(released, low, 0.0), np.where(released, high, hidden)


def _sparse(event: Any) -> tuple[np.ndarray, np.ndarray]:
    """Occupied cells one by one; of the empty ones, their binomial number and their values above
    the level."""
    low, high = _published(event)
    cells, values = event.output
    empty = ~np.isin(cells, event.value[0])
    chance = ndtr(-(event.public["low"] - 0.5) / event.scale)
    size, n_empty = event.public["n_candidates"] - len(event.value[0]), int(empty.sum())
    # Given that an empty cell is published, in the upper tail: 1 - P[noise > v] / P[published].
    tail = [1 - ndtr(-(values[empty] + side) / event.scale) / chance for side in (-0.5, 0.5)]
    number = [_binomial_cdf(k, size, chance) for k in (n_empty - 1, n_empty)]
    return (
        np.concatenate([low, number[:1], np.maximum(tail[0], 0.0)]),
        np.concatenate([high, number[1:], tail[1]]),
    )


def _binomial_cdf(k: int, n: int, p: float) -> float:
    """P[at most k of n]; n may be 2^50, so it is an incomplete beta function and no sum."""
    if 0 <= k < n:
        return betaincc(k + 1.0, float(n - k), p)
    return float(k >= n)


LAWS = {
    "sparse": Law(_replay_sparse, _sparse, _claims, rho=lambda event: event.cost, in_rho=True),
}
