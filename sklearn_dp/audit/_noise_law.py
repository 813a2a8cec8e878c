"""Does the noise of recorded releases follow the law that they claim?

Every release is turned into numbers that are independent N(0, 1) *exactly* if the claim holds, by
the randomized probability integral transform: the claimed distribution function on both sides of
the integer that came out, and a uniform number in between. A mistake in the scale, in the shape, in
the mean or in the independence then shows in exact tests: see :mod:`sklearn_dp.audit._distribution`
for what each of them can see.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri
from sklearn.base import BaseEstimator

from .._privacy._budget import PrivacyBudget
from .._privacy._plan import Mechanism, PlanEntry, PrivacyPlan
from .._privacy._pure_releases import laplace
from .._privacy._session import PrivacySession
from .._privacy._trace import Event, Trace, trace
from ._distribution import (
    between_tests,
    law_tests,
    lean_test,
    shape_tests,
    within_release_tests,
)
from ._repeats import repeat_tests
from ._replay import record
from .mechanisms import law_of

__all__ = ["FALSE_ALARM", "kernel_problems", "noise_audit", "noise_problems", "scale_problems"]

FALSE_ALARM = 1e-6
"""Chance that all the tests together blame a correct estimator."""

_LAGS = range(1, 25)  # releases apart
_FITS = range(1, 7)  # fits apart
_COARSE = 2.0  # noise below this many steps says too little about its bits
_BEYOND = 40.0  # an impossible outcome, as a number of sigmas
_FINE = "fine numbers of "
_SHAPED = ("gaussian", "laplace", "inner_gaussian", "inner_laplace", "share")


def noise_audit(
    estimator: BaseEstimator,
    X: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    fits: int = 20,
    random_state: int = 0,
) -> list[str]:
    """Test the noise of many fits against the claimed distributions.

    Parameters
    ----------
    estimator : estimator of this package
        Clones are fitted.
    X : ndarray of shape (n_samples, n_features)
        Many columns give many numbers: with 256, one fit is often enough to test the tails.
    groups : array-like of shape (n_samples,), optional
        The unit of each row.
    fits : int, default=20
        Number of fits, each with fresh noise; their numbers are tested together.
    random_state : int, default=0
        First seed of the fits; the audit is then deterministic.

    Returns
    -------
    problems : list of str
        Each failed test, with its p-value. For a correct estimator the list is empty except with a
        probability of 1e-6.

    Notes
    -----
    Tests, for each plan entry and over all of them: scale, mean, shape (goodness of fit), tails
    beyond 1.75, 2.5, 3, 3.5 and 4 sigma, dependence within a release (halves, mirror images,
    neighbors, rows) and between releases up to 24 apart and fits up to 6 apart, reuse of fine noise
    anywhere, and noise that leans toward the value. The module ``sklearn_dp.audit._distribution``
    has a table of how many numbers each deficit needs; with m numbers from an entry, noise too
    small by a factor of 1 - h is found when about m h^2 > 20.

    Not tested: tails beyond 4 sigma, or beyond 3 if fits release fewer than some 9000 numbers
    (:func:`kernel_problems` tests the kernel's own sampler with more of them); a wrong distribution
    of a single entry that releases one number, if the difference is too small for the number of
    fits; noise with too few bits behind it (:func:`sklearn_dp.audit._repeats.entropy_problems`);
    wrong sensitivities (replay).
    """
    recordings = [
        record(estimator, X, groups=groups, random_state=random_state + i) for i in range(fits)
    ]
    found = [text for recording in recordings for text in recording.problems]
    return found + noise_problems([recording.events for recording in recordings], random_state)


def noise_problems(traces: list[list[Event]], random_state: int = 0) -> list[str]:
    """The same for recordings that are there already; the seed is for the auditor's own numbers."""
    rng = np.random.default_rng(random_state)
    fits = [[(event, _standardized(event, rng)) for event in events] for events in traces]
    tests = [*_entry_tests(fits), *_dependence_tests(fits), *repeat_tests(traces)]
    return _unlikely(tests)


def scale_problems(
    events: list[Event], random_state: int = 0, false_alarm: float = FALSE_ALARM
) -> list[str]:
    """Scales only, of one recording: for a few fits of many different data sets.

    The seed is for the auditor's own uniform numbers.

    All tests of the recording together have a false alarm with the given probability. At 1e-6 over
    54 recordings, one with m numbers is found when its scales are all too small by 1 - h with
    m h^2 > 20, and so is a single entry with m numbers. Noise of less than a step is mostly
    rounding, which the auditor fills up with random numbers: eleven fine numbers without any noise
    were hidden by three coarse ones, and 44 by four. So each entry has a test of its own, and so
    have its fine numbers where others are coarse.
    """
    rng = np.random.default_rng(random_state)
    entries = defaultdict(list)
    for event in events:
        numbers = _standardized(event, rng)
        entries[event.entry].append(np.ravel(numbers))
        if event.kind in _SHAPED:  # one scale for each number: some may be of many steps
            scale = np.broadcast_to(np.atleast_1d(event.scale), numbers.shape)
            fine = numbers[scale > _COARSE]
            if 0 < fine.size < numbers.size:
                entries[_FINE + event.entry].append(fine)
    parts = {entry: np.concatenate(numbers) for entry, numbers in entries.items()}
    whole = [numbers for entry, numbers in parts.items() if not entry.startswith(_FINE)]
    tests = law_tests("all of the fit", np.concatenate([np.empty(0), *whole]))
    for entry, numbers in parts.items():
        tests += law_tests(entry, numbers)
    return _unlikely(tests, false_alarm)


def kernel_problems(random_state: None | int = 0, *, size: Any = 450_000) -> list[str]:
    """The same tests for releases of a bare session, which gives enough numbers for the tails
    beyond 4 sigma.

    `size` numbers of Gaussian noise, and a quarter as many of Laplace noise.
    """
    plan = PrivacyPlan(
        PrivacyBudget(rho=8.0, delta=0.5),
        (
            PlanEntry("gaussian", Mechanism.LAPLACE, 4.0, uses=None),
            PlanEntry("laplace", Mechanism.LAPLACE, 4.0, uses=None),
        ),
    )
    shape = (size // 1000, 250)
    with trace(Trace()) as recorder:
        session = PrivacySession(plan, random_state=random_state)
        for _ in range(4):
            session.gaussian("gaussian", np.zeros(shape, np.int64), sensitivity=2.0**20, rho=0.5)
            laplace(
                session,
                "laplace",
                np.zeros((shape[0], 62), np.int64),
                sensitivity=2.0**20,
                epsilon=0.5,
            )
    return noise_problems([recorder.events])


def _unlikely(tests: list[tuple[str, float]], false_alarm: float = FALSE_ALARM) -> list[str]:
    """The tests that fail: less likely than the false alarm over their number (Bonferroni).

    A chance that is no number is a failure too.
    """
    limit = false_alarm / max(len(tests), 1)
    return [f"{text} (p = {chance:.2g})" for text, chance in tests if not chance >= limit]


def _entry_tests(fits: Any) -> Iterator[tuple[str, float]]:
    """Laws of the numbers of each entry, and of all."""
    entries = defaultdict(list)
    for event, numbers in (pair for fit in fits for pair in fit):
        # Noise that clients add is no release, and only their sum is.
        share = "share of " if event.kind == "share" else ""
        entries[share + event.entry].append(np.ravel(numbers))
        entries["all entries"].append(np.ravel(numbers))
    for entry, parts in entries.items():
        numbers = np.concatenate(parts)
        yield from law_tests(entry, numbers)
        yield from shape_tests(entry, numbers)


def _dependence_tests(fits: Any) -> Iterator[tuple[str, float]]:
    """Numbers that should have nothing to do with each other, nor with the sign of the statistic.

    In a release, between releases, between fits. Only kinds whose numbers are as many as the
    entries of the release take part.
    """
    shaped = [pair for fit in fits for pair in fit if pair[0].kind in _SHAPED]
    yield from within_release_tests([numbers for _, numbers in shaped])
    yield from lean_test(
        *(
            np.concatenate([np.empty(0), *side])
            for side in (
                [np.ravel(numbers) for _, numbers in shaped],
                [np.ravel(event.value).astype(np.float64) for event, _ in shaped],
            )
        )
    )
    # Noise of so many steps that nearly all of a number is the kernel's bits.
    kinds = ("gaussian", "inner_gaussian")
    fine = [
        [np.ravel(v) for event, v in fit if event.kind in kinds and np.min(event.scale) > _COARSE]
        for fit in fits
    ]
    yield from between_tests(fine, _LAGS, "between releases")
    nothing = np.empty(0)
    columns = [list(column) for column in zip_longest(*fine, fillvalue=nothing)]
    yield from between_tests(columns, _FITS, "between fits")


def _standardized(event: Event, rng: np.random.Generator) -> np.ndarray:
    """Numbers that are N(0, 1) if the event's noise follows its claim."""
    law = law_of(event)
    low, high = map(np.atleast_1d, law.numbers(event))
    numbers = ndtri(low + rng.random(low.shape) * (high - low))
    if law.folded:
        numbers = numbers * np.where(rng.random(low.shape) < 0.5, -1.0, 1.0)
    return np.clip(numbers, -_BEYOND, _BEYOND)
