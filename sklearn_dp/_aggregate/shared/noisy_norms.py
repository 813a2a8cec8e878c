"""Noisy histograms of norms, and radii that are read off them: post-processing."""

import math
from typing import NamedTuple

import numpy as np

from ..._privacy._domain import NORM_EDGES
from ..._privacy._sealed import Sealed
from ..._privacy._session import PrivacySession

_FAR = 1000.0  # times the radius of the fullest bin: more than rows of one kind differ by
_MOST = 0.99  # of the rows: bins of the others have to be seen more clearly


class NoisyNorms(NamedTuple):
    """Released weights of units in public bins of norms."""

    # (b,), noisy, in whole units; bin i is [edges[i], edges[i + 1]), the last one all beyond
    counts: np.ndarray
    edges: np.ndarray  # (b + 1,), increasing from 0
    sd: float  # standard deviation of the noise of one bin


def private_radius(
    session: PrivacySession,
    entry: str,
    counts: Sealed,
    *,
    rho: float | None = None,
    fraction: float = 0.99,
) -> tuple[float | None, NoisyNorms]:
    """A radius about the origin that holds most of the rows, with no public bound at all.

    `fraction` is the share of the units that should lie inside. `counts` are those of
    :class:`..._queries.places.NormCounts`. Releases a noisy histogram of the norms over disjoint
    public bins, which is returned too; the end bins take everything beyond. None when there are too
    few units to see any, or they are beyond the last edge.
    """
    rho = session.remaining(entry) if rho is None else rho
    norms = NoisyNorms(session.release(entry, counts, rho=rho), NORM_EDGES, 1 / math.sqrt(2 * rho))
    return radius_from_bins(*norms, fraction), norms


def quantile_from_histogram(
    counts: np.ndarray, edges: np.ndarray, noise_sd: float, target: float
) -> float | None:
    """The point above which about `target` units lie, from a noisy histogram (post-processing).

    Bin i is [edges[i], edges[i+1]), its noise has the standard deviation `noise_sd`. From the top
    bin down; the limit is max(target, 1.5 sd sqrt(bins summed)), so that noise alone seldom stops
    the search; log-linear interpolation inside the bin that crosses it. None when the histogram is
    nothing but noise: no prefix from the top ever exceeds the limit.
    """
    above = np.cumsum(counts[::-1])[::-1]
    summed = len(counts) - np.arange(len(counts))
    limit = np.maximum(target, 1.5 * noise_sd * np.sqrt(summed))
    crossing = np.flatnonzero(above > limit)
    if crossing.size == 0:
        return None
    i = crossing[-1]
    over = above[i + 1] if i + 1 < len(counts) else 0.0
    share = np.clip((limit[i] - over) / max(above[i] - over, 1e-300), 0.0, 1.0)
    low = edges[i] if edges[i] > 0 else edges[i + 1] / 2
    return float(edges[i + 1] * (low / edges[i + 1]) ** share)


def radius_from_bins(
    noisy: np.ndarray, edges: np.ndarray, noise_sd: float, fraction: float
) -> float | None:
    """A radius (or None) from noisy bins of norms: those that stand out from the noise, and the
    quantile among them. A `fraction` of 1 is all of one kind, of which noise alone adds one to 99%
    in one of 100,000 histograms. Post-processing.
    """
    # Noise is rounded to whole units: half a unit more, or little noise would show as one. One bin
    # of noise in 200 histograms exceeds the first level. Where it is a thousand times as far out
    # as the fullest bin, all rows would lie in one step of the grid: the second level, which is
    # exceeded in one of 100,000.
    near, far = (noise_sd * math.sqrt(2 * math.log(q * len(noisy))) + 0.5 for q in (20, 1e4))
    beyond = edges[:-1] > _FAR * edges[np.argmax(noisy[1:]) + 2]  # zeros have no scale
    counts = np.where(noisy > np.where(beyond, far, near), noisy, 0.0)
    if not counts.any():
        return None
    above = np.cumsum(counts[::-1])[::-1]
    last = np.flatnonzero(above > (1 - min(fraction, _MOST)) * counts.sum())[-1]
    if fraction > _MOST:
        last = max([last, *np.flatnonzero((noisy > far) & ~beyond)])
    # The last bin has no end: rows in it may be at any distance.
    return float(edges[last + 1]) if last + 1 < len(noisy) else None
