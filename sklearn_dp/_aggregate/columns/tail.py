"""Tails of distances by noisy numbers of rows.

Power laws: a likely one, by which a clip is chosen, and one that is as heavy as the numbers allow
for, which says what the clip may take.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from sklearn.isotonic import isotonic_regression

FREE = 0.2
"""Part of the sampling error that noise may be and add next to nothing to: 2% in all."""

UPPER = 2.0
"""Standard deviations that all numbers may be too small by."""

_HIDDEN = 1.5  # standard deviations of noise that points may hide in
_LEAST, _MOST = 1.25, 16.0  # powers of tails
_STEEPER = 2.0  # times the power of the last half octave that the likely one is at the most
_SPIKE = 0.85  # of the points, in a single bin: they tell of no law


# Standard deviations of noise: above which a number of points is none, and by which numbers farther
# out are too large, at the least and as a rule.
_CLEAR, _HEAVY, _LIKELY = 3.5, 0.5, 1.0


class PowerLaw(NamedTuple):
    """How many points are farther out than a distance: beyond * (distance / start) ** -power."""

    start: float
    beyond: float
    power: float
    end: float  # no point is farther out

    def excess(self, radius: Any, order: int = 1) -> Any:
        """By how much distances (or squares) exceed those of a radius: the integral of ``order *
        r**(order - 1)`` times the tail."""
        fall = self.power - order
        fall = math.copysign(max(abs(fall), 1e-6), fall)  # a logarithm at 0
        near, far = (
            (np.maximum(place, self.start) / self.start) ** -fall for place in (radius, self.end)
        )
        return order * self.beyond * self.start**order * (near - far) / fall


class Tail(NamedTuple):
    """The tail beyond the farthest distance where points stand out from the noise."""

    start: float
    spike: bool  # whether nearly all points are in one bin: they tell of no law
    likely: PowerLaw
    heavy: PowerLaw


class Laws(NamedTuple):
    """The result of :func:`laws_of`."""

    likely: PowerLaw
    heavy: PowerLaw
    spike: bool


def laws_of(beyond: np.ndarray, sd: np.ndarray, edges: np.ndarray) -> Laws | None:
    """The likely and the heavy law of :func:`tail_of`, and whether nearly all is in one bin. Where
    numbers tell that most of it ends before the next edge, as that of vectors of one length does,
    the likely one starts there, as steep as that is."""
    tail = tail_of(beyond, sd, edges)
    if tail is None:
        return None
    law, i = tail.likely, int(np.searchsorted(edges, tail.start, side="right"))
    if i < len(beyond):
        far, ratio = max(float(beyond[i]), _HIDDEN * float(sd[i])), float(edges[i]) / law.start
        power = math.log(max(law.beyond / far, 1.0)) / math.log(ratio)
        if power > law.power:
            law = PowerLaw(float(edges[i]), far, min(power, _MOST), law.end)
    return Laws(law, tail.heavy, tail.spike)


def tail_of(beyond: np.ndarray, sd: np.ndarray, edges: np.ndarray) -> Tail | None:
    """The tail by noisy numbers of points `beyond` edges; None if no point stands out.

    Its powers are those of the octave and of the half octave before its start. Tails of most laws
    are lighter farther out, so the likely one is bent by as much as that of the octave before; the
    heavy one is not. Neither is steeper than the numbers farther out allow for.
    """
    places = np.flatnonzero(beyond > _CLEAR * sd + 0.5)
    if not places.size:
        return None
    last = max(int(places[-1]), 1)
    start, end = float(edges[last]), max(float(edges[-1]), float(edges[last]))
    fallen = isotonic_regression(beyond, y_min=0.0, increasing=False)
    far = max(float(fallen[last]), _HIDDEN * float(sd[last]))

    def number(part: float, less: float = 0.0) -> float:
        """Binary logarithm of the number beyond a part of the start."""
        place = int(np.searchsorted(edges, start * part * (1 + 1e-9))) - 1
        place = min(max(place, 0), len(sd) - 1)
        return math.log2(max(float(fallen[place]) - less * float(sd[place]), far * 2.0**-_MOST))

    here = math.log2(far)
    octave = max(number(0.5) - here, 0.0)
    half = 2 * max(number(math.sqrt(0.5)) - here, 0.0)
    bent = max(octave - (number(0.25) - number(0.5)), 0.0)

    def allowed(sds: float) -> float:
        return min(here - number(2.0, sds), (here - number(4.0, sds)) / 2)

    heavy = min(octave, half, allowed(_HEAVY))
    likely = min(octave + bent, _STEEPER * half, allowed(_LIKELY))
    powers = (likely, 2.0), (heavy, _LEAST)
    laws = (PowerLaw(start, far, min(max(power, least), _MOST), end) for power, least in powers)
    spike = float(np.max(-np.diff(fallen), initial=0.0)) > _SPIKE * float(fallen[0])
    return Tail(start, spike, *laws)


def heaviest(
    law: PowerLaw, beyond: np.ndarray, edges: np.ndarray, radius: float, order: int
) -> float:
    """The excess of a tail that falls by a law from the edge on with which it is largest."""
    places = np.flatnonzero((edges[:-1] >= law.start) & (edges[:-1] <= 4 * law.start))
    laws = (law._replace(start=edges[i], beyond=max(beyond[i], 0.0)) for i in places)
    return min(float(each.excess(radius, order)) for each in (law, *laws))


def at_most(beyond: np.ndarray, edges: np.ndarray, radius: float, order: int) -> float:
    """The excess of `PowerLaw` for so many points beyond the lower edges of bins."""
    fallen = isotonic_regression(beyond, y_min=0.0, increasing=False)
    return float(fallen @ np.diff(np.maximum(edges, radius) ** order))


def tail_shares(fourths: np.ndarray, noise: float) -> np.ndarray:
    """Which part of what a clip takes is taken from each column: most where tails are longest, by
    noisy fourth powers that are positive. Noise cut off at zero adds 0.4 of its standard deviations
    for each to their sum; what is left of that is at least a quarter."""
    total = float(fourths.sum())
    total = max(total - 0.4 * len(fourths) * noise, total / 4, 1e-300)
    return np.sqrt(fourths / total).clip(max=1.0)
