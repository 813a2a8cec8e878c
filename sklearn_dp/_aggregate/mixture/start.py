"""First guesses of components, as wide as half of the rows of a part; and where they miss one."""

import dataclasses
import math
from collections.abc import Iterator

import numpy as np

from ..._privacy._session import PrivacySession
from ..._queries.whitened import LabelDistances
from ..moments.ellipsoid import Ellipsoid, normal_quantile
from ..moments.moment_releases import MOMENTS
from ..shared.adaptive_center import CenterRadius
from ..shared.centering import geometric_edges, noise_sd
from .mixture_plan import RADII
from .parts import Parts

_BINS, _RATIO = 44, math.sqrt(2.0)  # a factor of 2**21.5 from the narrowest to the widest
_WINDOW, _CLEAR = 5, 3.5  # bins of the distances in a component, and deviations of their noise
_EMPTY = 0.02  # of an average component
_COUNTED = 0.004  # of the budget of the moments, for the counts of the first round, about
_LONG = 2.5  # usual standard deviations: two components that are 5 of them apart


def first_guesses(parts: Parts, place: CenterRadius, form: str) -> list[Ellipsoid]:
    """A ball of released weight for each center, as wide as half of the rows of its part."""
    rows, centers = parts.rows, parts.centers
    edges = geometric_edges(2 * place.radius, _BINS, _RATIO)
    rho = parts.session.remaining(RADII)
    answer = rows.ask(LabelDistances(centers, edges))
    counts = parts.session.release(RADII, answer, rho=rho).reshape(len(centers), _BINS)
    d, sd = rows.n_features, noise_sd(rho)
    widths = [_median(row, edges, sd) for row in counts]
    usual = np.median([width for width in widths if width is not None] or [place.radius / 2])
    if form == "tied":  # one shape, and one whitening that its moments are released in
        widths = [usual] * len(centers)
    unit = math.sqrt(normal_quantile(0.5, d))  # of the median distance, in standard deviations
    square = 1.5 * normal_quantile(0.9, d)
    floor = sd * math.sqrt(_BINS)  # of a weight: the noise of the sum of a histogram
    return [
        Ellipsoid.ball(
            center, (usual if width is None else width) / unit, square, max(row.sum(), floor)
        )
        for center, width, row in zip(centers, widths, counts, strict=True)
    ]


def _median(counts: np.ndarray, edges: np.ndarray, sd: float) -> float | None:
    """The median of the fullest few bins of a noisy histogram; None if they may be only noise.

    A component's rows span a few bins whatever its scale is. A single bin in the noise must not be
    taken for them: a component that is far too narrow ruins densities.

    >>> edges = np.arange(9.0)
    >>> round(_median(np.array([0.1, -0.2, 0, 40, 40, 0.3, 0, 0.2]), edges, sd=1.0), 2)
    4.01
    >>> _median(np.array([0.1, 3.0, -1, 0, 1, 0.3, 0, 0.2]), edges, sd=1.0) is None
    True
    """
    sums = np.convolve(counts, np.ones(_WINDOW), mode="valid")
    first = int(np.argmax(sums))
    if sums[first] < _CLEAR * sd * math.sqrt(_WINDOW):
        return None
    part = np.maximum(counts[first : first + _WINDOW], 0.0)
    below = np.cumsum(part)
    i = int(np.searchsorted(below, below[-1] / 2))
    share = (below[-1] / 2 - (below[i] - part[i])) / part[i]  # linear within the bin
    i += first
    return float(edges[i] + share * (edges[i + 1] - edges[i]))


def least_weight(session: PrivacySession, k: int, size: float) -> float:
    """A weight that a component without rows seldom seems to exceed after the first round."""
    sd = noise_sd(session.remaining(MOMENTS) * _COUNTED)
    return max(_EMPTY * size / k, 2 * sd)


def split_widest(ellipsoids: list[Ellipsoid], least_weight: float, ball: float) -> list[Ellipsoid]:
    """Halve a component that is much longer than wide for each that is next to empty: a center in
    the middle of two components has no way to move through the void."""
    split = list(ellipsoids)
    for _ in split:
        empty = int(np.argmin([e.weight for e in split]))
        usual = _lower_median([_lower_median(e.scales) for e in split if e.weight > least_weight])
        length = [e.scales.max() if e.weight > 2 * least_weight else 0.0 for e in split]
        longest = int(np.argmax(length))
        if split[empty].weight > least_weight or length[longest] < _LONG * usual:
            break
        split[empty], split[longest] = _halves(split[longest], usual, ball)
    return split


def _lower_median(values: list[float] | np.ndarray) -> float:
    return float(np.quantile(values, 0.5, method="lower")) if len(values) else math.inf


def _halves(ellipsoid: Ellipsoid, width: float, ball: float) -> Iterator[Ellipsoid]:
    """Two components, a standard deviation from the center on its longest axis."""
    j = int(np.argmax(ellipsoid.scales))
    step = ellipsoid.axes[:, j] * ellipsoid.scales[j]
    scales = ellipsoid.scales.copy()
    scales[j] = min(scales[j], width)
    for center in (ellipsoid.center + step, ellipsoid.center - step):
        center = np.rint(center * min(1.0, ball / max(float(np.linalg.norm(center)), 1.0)))
        yield dataclasses.replace(
            ellipsoid, center=center, scales=scales, weight=ellipsoid.weight / 2
        )
