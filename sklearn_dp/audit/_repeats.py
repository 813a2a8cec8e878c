"""Noise that was used before: in the same fit, in another one, in another process.

Fine noise is as good as a fingerprint: two numbers z = noise / scale of 2^20 steps agree by chance
once in a million. So runs of numbers are looked for that agree within their rounding, at any
distance, whatever the scales, with the same or with the opposite sign; a union bound over all pairs
of places makes the p-value.
"""

import operator
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from .._privacy._trace import Event, Shares, trace
from .._silence.suppress_output import overheard
from ._observe import prepared

__all__ = ["FINGERPRINT_BITS", "entropy_problems", "fingerprint", "fork_problems", "repeat_tests"]

_FINE = 2.0**14  # steps; coarser numbers agree too often
_LONGEST = 8  # numbers of a run
_MOST_PARTNERS = 100  # of a place: noise of few values agrees everywhere, and some runs are enough
_MOST = 40_000  # numbers that are compared with each other
FINGERPRINT_BITS = 90
"""No two of a million fingerprints agree by chance, but for 2^-51."""


def repeat_tests(traces: list[list[Event]]) -> Iterator[tuple[str, float]]:
    """Runs of fine noise that come twice in all these fits: one test, if there is any fine noise.

    It finds any three or four fine numbers in a row that are used again; not single numbers, nor
    noise of less than 2^14 steps.
    """
    numbers, radii, fits = _fine_numbers(traces)
    if len(numbers) < 2:
        return
    chance = min(_longest_run(numbers, radii, fits, sign) for sign in (1, -1))
    # Pairs of places, lengths of a run, two signs.
    yield "noise is used again", min(1.0, chance * len(numbers) ** 2 * _LONGEST)


def _fine_numbers(traces: list[list[Event]]) -> tuple[np.ndarray, ...]:
    """z of fine noise with the radius of its rounding, and the fit that it comes from.

    Fine is noise of at least 2^14 steps. At most 40,000 numbers of all fits together, and at least
    64 of each fit: the start of a fit.
    """
    most = max(64, _MOST // max(len(traces), 1))
    numbers, radii, fits = [np.empty(0)], [np.empty(0)], [np.empty(0, dtype=int)]
    for number, events in enumerate(traces):
        left = most
        for event in events:
            if event.kind not in ("gaussian", "inner_gaussian", "share"):
                continue
            noise = np.ravel(np.asarray(event.output - event.value, dtype=np.float64))
            scale = np.ravel(np.broadcast_to(event.scale, np.shape(event.value)))
            noise, scale = (side[scale >= _FINE][:left] for side in (noise, scale))
            numbers.append(noise / scale)
            radii.append(0.5 / scale)
            fits.append(np.full(len(noise), number))
            left -= len(noise)
    return tuple(map(np.concatenate, (numbers, radii, fits)))


def _longest_run(numbers: np.ndarray, radii: np.ndarray, fits: np.ndarray, sign: int) -> float:
    """Smallest bound of the chance that a given pair of places begins a run as good as this.

    `radii` are half a step of the rounding of the standardized noise, in the same unit. Runs do not
    cross from one of the `fits` into the next. The product of the chances of agreement along the
    best run; 1 where nothing agrees.
    """
    first, second = _agreeing(numbers, radii, sign)
    chance, best = np.ones(len(first)), 1.0
    for step in range(_LONGEST):
        a, b = first + step, second + step
        here = (b < len(numbers)) & (a < len(numbers))
        a, b = a[here], b[here]
        reach = radii[a] + radii[b]
        same = (fits[a] == fits[first[here]]) & (fits[b] == fits[second[here]])
        same &= np.abs(numbers[a] - sign * numbers[b]) <= reach
        # Rounded numbers agree only if ideal ones do within twice the reach; the later of the two
        # is fresh, with a density of at most 0.4 whatever came before.
        chance = (chance[here] * np.minimum(1.0, 1.6 * reach))[same]
        first, second = first[here][same], second[here][same]
        if not len(first):
            break
        best = min(best, float(chance.min()))
    return best


def _agreeing(numbers: np.ndarray, radii: np.ndarray, sign: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of places i < j with ``abs(z_i - sign z_j)`` within twice the largest radius.

    A sign of -1 finds noise that is taken back. By sorting, in O(n log n): all pairs would be 10^9.
    At most 100 partners of each place.
    """
    order = np.argsort(numbers)
    ranked, reach = numbers[order], 2 * float(radii.max())
    low = np.searchsorted(ranked, sign * numbers - reach)
    high = np.searchsorted(ranked, sign * numbers + reach, side="right")
    sizes = np.minimum(high - low, _MOST_PARTNERS)
    second = np.repeat(np.arange(len(numbers)), sizes)
    inside = np.arange(len(second)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    first = order[np.repeat(low, sizes) + inside]
    keep = first < second
    return first[keep], second[keep]


# -- fingerprints of fits --------------------------------------------------------------------------


_LOST, _LOST_OF_FEW = 0.1, 4  # part of the fits that may say nothing, and how many more of them


class _Enough(BaseException):
    """Stops a fit whose noise has shown who it is; no handler for errors may catch it."""


class _Fingerprint(Shares):
    """Collects noise until it has enough bits, and then stops the fit."""

    def __init__(self) -> None:
        self.marks: list[Any]
        self.marks, self.bits, self._added = [], 0.0, {}

    def record(self, event: Event) -> Any:
        if event.kind == "share":
            self.add_share(event)
        elif event.kind in ("gaussian", "laplace", "inner_gaussian", "inner_laplace"):
            noise = np.ravel(np.asarray(event.output - event.value))
            scale = np.ravel(np.broadcast_to(event.scale, np.shape(event.value)))
            self.marks += noise.tolist()
            # Bits that tell it apart: two draws agree with probability at most 1 / (2 scale).
            self.bits += float(np.sum(np.log2(np.maximum(2 * scale, 1.0))))
        elif event.kind == "stability":
            # Of the cells that are published; the lower half of the noise may stay hidden.
            counts = dict(zip(*map(np.ndarray.tolist, event.value), strict=True))
            seen = list(zip(*map(np.ndarray.tolist, event.output), strict=True))
            self.marks += [value - counts[cell] for cell, value in seen]
            self.bits += len(seen) * float(np.log2(max(event.scale, 1.0)))
        if self.bits >= FINGERPRINT_BITS:
            raise _Enough
        return event.output


def fingerprint(estimator: Any, X: Any) -> tuple[tuple[Any, ...], float]:
    """First noise of a fit, without a seed, and how many bits at least should tell it apart.

    The fit is stopped as soon as that is known.
    """
    recorder = _Fingerprint()
    copy = prepared(estimator, random_state=None)
    with overheard(), trace(recorder), suppress(_Enough):
        copy.fit(X)
    return tuple(recorder.marks), recorder.bits


def entropy_problems(estimator: Any, X: Any, *, fits: int = 1300) -> list[str]:
    """Whether short fits without a seed ever have the same noise.

    By birthday: if the noise has an entropy of b bits, whatever the report says, all fits differ
    with a probability of exp(-fits^2 / 2^(b + 1)) only. So 1300 fits see 16 bits but for 3e-6, 18
    bits but for 4%, and nothing above 22 bits. Without a seed there is nothing to repeat; the
    chance of a false alarm is below 2^-60.
    """
    told: set[tuple[Any, ...]] = set()
    for number in range(fits):
        marks, bits = fingerprint(estimator, X)
        if marks in told:
            return [f"fit {number + 1} without a seed has the noise of another one"]
        # Released values may lead a fit down a shorter way, with less noise: it tells nothing. That
        # happens to 2% of some fits, so to 6 of 10 with a probability of 3e-8.
        if bits >= FINGERPRINT_BITS:
            told.add(marks)
        if number + 1 - len(told) > _LOST * fits + _LOST_OF_FEW:
            return ["too little noise to tell fits apart"]
    return []


def fork_problems(estimator: Any, X: Any, *, children: int = 3) -> list[str]:
    """Whether forked processes have the noise of each other or of their parent.

    Sees state that a fork copies. Does not see what clones of a virtual machine share. Where there
    is no fork, there is nothing to copy.
    """
    if not hasattr(os, "fork"):
        return []
    marks = [
        _longest(estimator, X),
        *(_in_fork(estimator, X) for _ in range(children)),
        _longest(estimator, X),
    ]
    return [] if len(set(marks)) == len(marks) else ["forked processes have the same noise"]


def _longest(estimator: Any, X: Any) -> Any:
    """The fingerprint with most bits of eight: one fit in ten may say nothing (:data:`_LOST`)."""
    return max((fingerprint(estimator, X) for _ in range(8)), key=operator.itemgetter(1))[0]


def _in_fork(estimator: Any, X: Any) -> tuple[int, ...]:
    """A fingerprint that a child of this process makes.

    The child writes its marks into a pipe and ends at once by ``os._exit``, so that no handler or
    buffer of the parent runs a second time.
    """
    read, write = os.pipe()
    with overheard():  # a DeprecationWarning: threads, of which the child has none
        child = os.fork()
    if child == 0:
        try:
            os.write(write, repr(_longest(estimator, X)).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        text = pipe.read().decode()
    os.waitpid(child, 0)
    if not text:
        raise RuntimeError("a forked fit failed")
    return tuple(number for number in map(int, text.strip("(),").split(", ")))
