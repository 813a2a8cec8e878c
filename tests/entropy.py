"""Whether noise without a seed has entropy: of short fits, and of processes that are forked.

No estimator has a part in this, as all noise is the kernel's. So it is no check of
`check_dp_estimator`; the mutants of `mutants.law` die of it.
"""

import operator
import os
from contextlib import suppress
from typing import Any

import numpy as np

from sklearn_dp._privacy._trace import Event, Shares, trace
from sklearn_dp._silence import overheard
from sklearn_dp.audit._checks import assert_none, check_data
from sklearn_dp.audit._observe import prepared

FINGERPRINT_BITS = 90
"""No two of a million fingerprints agree by chance, but for 2^-51."""

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
    """Whether short fits without a seed ever have the same noise; false alarms below 2^-60.

    By birthday: with an entropy of b bits all fits differ with a probability of exp(-fits^2 / 2^(b
    + 1)) only, so 1300 fits see 16 bits but for 3e-6, 18 bits but for 4%, and nothing above 22
    bits.
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
    """Whether forked processes have the noise of each other or of their parent."""
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
    """Return a fingerprint that a child makes. It ends by ``os._exit``: no buffer of the parent is
    written twice."""
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


def check_noise_has_entropy(estimator: Any) -> None:
    """Many short fits without a seed, and forked processes, all have noise of their own.

    See `entropy_problems` for how few bits of entropy would be found.
    """
    moderate, X = telling_fit(estimator)
    assert_none(entropy_problems(moderate, X))
    assert_none(fork_problems(moderate, X))


def telling_fit(estimator: Any) -> tuple[Any, np.ndarray]:
    """A short fit with the first budget at which its noise has enough bits, and few rows of 8
    columns."""
    tables = [(check_data(3, d=8), 1.0), (check_data(3, d=8), 1000.0)]
    tables += [(check_data(60, d=8), 30.0), (check_data(60, d=8), 1000.0)]
    # A list of what is frequent has noise where there is something frequent.
    tables += [(np.tile(np.arange(600.0)[:, None] % 5, 8), 1.0)]
    for X, epsilon in tables:
        moderate = prepared(estimator, epsilon=epsilon, rho=None)
        if fingerprint(moderate, X)[1] >= FINGERPRINT_BITS:
            break
    return moderate, X
