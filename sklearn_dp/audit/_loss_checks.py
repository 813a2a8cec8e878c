"""Checks of the privacy loss: replays of neighbors, and the noise.

Each takes an estimator and raises `AssertionError` with what is wrong. Sizes of data are a
compromise: enough to meet what is usually wrong, in seconds. What waits for another size is for
`check_drawn_data`.
"""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from .._privacy._trace import Trace, trace
from .._silence.global_generators import own_streams
from .._silence.suppress_output import overheard
from ..exceptions import SeededNoiseWarning
from ._charges import rich_ledger
from ._check_tools import assert_none, check_data, check_groups, hard_groups, succeed
from ._drawn import drawn_audit
from ._neighbors import neighboring_pairs
from ._noise_law import kernel_problems, noise_audit
from ._observe import accepts_groups, prepared, run_fit
from ._plan_consistency import paid
from ._player import Replay
from ._refit import refit_problems
from ._repeats import FINGERPRINT_BITS, entropy_problems, fingerprint, fork_problems
from ._replay import replay_audit
from .mechanisms import law_of

__all__ = [
    "check_drawn_data",
    "check_missing_groups_are_refused",
    "check_noise_has_entropy",
    "check_noise_is_fresh",
    "check_noise_law",
    "check_refit",
    "check_replay",
    "check_replay_of_hard_groups",
    "check_replay_of_methods",
    "check_seeded_noise_is_told",
    "paying_methods",
    "telling_fit",
]


# Numbers of rows and columns, and whether the rows are replayed in groups too.
REPLAYED = (
    (20, 3, True),
    (400, 3, True),
    (30, 12, True),
    (2, 5, True),
    (1, 3, False),
    (0, 3, False),
)
# Which of the ways to name groups are replayed.
HARD_GROUPS = slice(None)
_SIZES = (5e-324, 1e-300, 1e-156, 1e-130, 1e-9, 1.0, 1e9, 1e130, 1e156, 1e300)
# Fits to narrow data, to 128 columns, and with groups.
NOISE_FITS = (30, 3, 10)


def check_replay(estimator: Any) -> None:
    """Neighbors differ only by noise that is paid for; small data and the empty set too.

    20 rows: all kinds of neighbors, and HTML displays. 400: many rows in each cluster or block. 12
    columns: more columns than most public defaults assume. 2, 1 and 0 rows: fits that have to give
    up must do so by releases. Strangers, whose rows come in any number and size, are those of
    20 rows, with groups and without, and of 400 rows, for the way that a fit to many rows goes.
    """
    for n, d, with_groups in REPLAYED:
        X = check_data(n, n, d)
        assert_none(_replayed(estimator, X, html=n == 20, strangers=n in (20, 400)))
        if with_groups and accepts_groups(estimator):
            assert_none(_replayed(estimator, X, groups=check_groups(n), strangers=n == 20))


def check_replay_of_hard_groups(estimator: Any) -> None:
    """Units stay what they are with ids that cannot be sorted, converted or printed faithfully.

    Without strangers, whose ids are plain numbers: `check_replay` has them.
    """
    if accepts_groups(estimator):
        for groups in list(hard_groups(20).values())[HARD_GROUPS]:
            assert_none(_replayed(estimator, check_data(20, 20), groups=groups, strangers=False))


def check_replay_of_methods(estimator: Any) -> None:
    """Methods that pay for what they release (`private_score`) are as private as fits.

    With all sizes of the other numbers that they take: these are refused before the charge, or
    neighbors are within the claims.
    """
    methods, X = paying_methods(type(estimator)), check_data(30)
    if not methods:
        return
    outcome = run_fit(prepared(estimator), X)
    succeed(outcome)
    for name, numbers in methods.items():
        method = getattr(outcome.estimator, name)
        for options in [{}, *({number: size} for number in numbers for size in _SIZES)]:
            found = _method_problems(method, X, options)
            assert_none([f"{name}, {options}: {text}" for text in found])


def paying_methods(kind: type) -> dict[str, Any]:
    """Methods with a budget of their own, but for fits; of each the other numbers that it takes."""
    found = {}
    for name, method in inspect.getmembers(kind, inspect.isfunction):
        known = inspect.signature(method).parameters
        if {"X", "epsilon", "random_state"} <= known.keys() and not name.startswith(("_", "fit")):
            numbers = [
                word for word, each in known.items() if each.annotation in (float, float | None)
            ]
            found[name] = [word for word in numbers if word not in ("epsilon", "delta", "rho")]
    return found


def _method_problems(method: Callable[..., Any], X: Any, options: Any) -> list[str]:
    """What a replay of one call finds wrong."""
    recorder, ledger = Trace(), rich_ledger()
    try:
        with trace(recorder):
            method(X, **options, epsilon=1.0, random_state=0, ledger=ledger)
    except ValueError:
        return ["refused after the charge"] if ledger.entries else []
    found = [text for event in recorder.events for text in law_of(event).claims(event)]
    for pair in neighboring_pairs(X, 0, kinds=("farthest", "remove")):
        replay = Replay(recorder.events, pair.units)
        with trace(replay):
            method(pair.X, **options, epsilon=1.0, random_state=0, ledger=False)
        found += [] if replay.voided else replay.finish()
    return found


def check_missing_groups_are_refused(estimator: Any) -> None:
    """A row without an id belongs to nobody: no fit may guess to whom.

    NaN is not equal to itself, so each such row would be a unit of its own, and one person with
    many missing ids would be protected as if they were many.
    """
    if not accepts_groups(estimator):
        return
    for missing in (None, np.nan, np.datetime64("NaT"), np.ma.masked, (1, np.nan)):
        groups = [missing, *check_groups(19).tolist()]
        outcome = run_fit(prepared(estimator), check_data(20), groups)
        named = isinstance(outcome.error, ValueError) and "groups" in str(outcome.error)
        assert named, f"{missing!r} among the groups is not refused by name: {outcome.error!r}"


def _replayed(estimator: Any, X: Any, **options: Any) -> list[str]:
    """What a replay audit finds wrong.

    An audit in which no pair could be compared has passed nothing: that is a violation too.
    """
    result = replay_audit(estimator, X, stop_at_first=True, **options)
    return result.violations or ([] if result.passed else ["all pairs are voided"])


def check_drawn_data(estimator: Any) -> None:
    """Rows, columns, clusters, arrays, bounds, budgets and groups drawn at random: for triggers.

    Each n up to 48 and each d up to 24 is met; see :func:`drawn_audit` for other chances.
    """
    assert_none(drawn_audit(estimator, stop_at_first=True).violations)


def check_refit(estimator: Any) -> None:
    """A used estimator answers as a fresh one: nothing of an earlier fit is left."""
    X = check_data(40)
    assert_none(refit_problems(estimator, X))
    if accepts_groups(estimator):
        assert_none(refit_problems(estimator, X, groups=check_groups(40)))


def check_noise_law(estimator: Any) -> None:
    """The noise has the claimed law, is independent, and is never used twice.

    1. The kernel's sampler, with half a million numbers, for the tails.
    2. 30 fits of narrow data: dependence between releases and between fits.
    3. Three fits of 128 columns: they have most of the numbers that a shape needs.
    4. Ten fits with groups, whose noise scales are other ones.
    """
    narrow, wide, grouped = NOISE_FITS
    assert_none(kernel_problems())
    assert_none(noise_audit(estimator, check_data(400), fits=narrow))
    assert_none(noise_audit(estimator, check_data(300, d=128), fits=wide))
    if accepts_groups(estimator):
        assert_none(noise_audit(estimator, check_data(30), groups=check_groups(30), fits=grouped))


def check_noise_has_entropy(estimator: Any) -> None:
    """Many short fits without a seed, and forked processes, all have noise of their own.

    See `_repeats` for how few bits of entropy would be found.
    """
    moderate, X = telling_fit(estimator)
    assert_none(entropy_problems(moderate, X))
    assert_none(fork_problems(moderate, X))


def telling_fit(estimator: Any) -> tuple[Any, np.ndarray]:
    """A short fit whose releases tell it apart from any other: little budget makes few of them.

    The estimator with the first budget at which the noise has enough bits, and few rows of 8
    columns, which are fast.
    """
    tables = [(check_data(3, d=8), 1.0), (check_data(3, d=8), 1000.0)]
    tables += [(check_data(60, d=8), 30.0), (check_data(60, d=8), 1000.0)]
    # A list of what is frequent has noise where there is something frequent.
    tables += [(np.tile(np.arange(600.0)[:, None] % 5, 8), 1.0)]
    for X, epsilon in tables:
        moderate = prepared(estimator, epsilon=epsilon, rho=None)
        if fingerprint(moderate, X)[1] >= FINGERPRINT_BITS:
            break
    return moderate, X


def check_noise_is_fresh(estimator: Any) -> None:
    """Without random_state, noise is new each time, whatever numpy's global seed."""
    with overheard(), own_streams() as seed:  # the generator is the process's: threads take turns
        first = _drawn_with_global_seed(estimator, seed)
        # Where a fit draws one small number, two may be alike: once in 150 times. Not nine.
        same = all(
            np.array_equal(first, _drawn_with_global_seed(estimator, seed)) for _ in range(8)
        )
    assert not same, "the same noise again and again with random_state=None"


def _drawn_with_global_seed(estimator: Any, seed: Callable[[int], None]) -> np.ndarray:
    """All noise of a fit with a moderate budget, so that there is noise to see."""
    seed(0)  # the global state is what must have no effect
    recorder = Trace()
    moderate = prepared(estimator, random_state=None, epsilon=1.0, rho=None)
    succeed(run_fit(moderate, check_data(30), recorder=recorder))
    return np.concatenate(
        [
            np.ravel(event.output - event.value).astype(float)
            for event in paid(recorder.events)
            if event.kind == "gaussian"
        ]
    )


def check_seeded_noise_is_told(estimator: Any) -> None:
    """A seed is warned of, and told by the report."""
    for seed, source in ((0, "seeded"), (None, "system")):
        outcome = run_fit(prepared(estimator, random_state=seed), check_data(30))
        succeed(outcome)
        warned = any(issubclass(kind, SeededNoiseWarning) for kind, _ in outcome.warnings)
        assert warned == (seed is not None), "SeededNoiseWarning, if and only if there is a seed"
        told = outcome.estimator.privacy_report_.noise
        assert told in (source, "altered"), "the report's noise source"  # altered: by a mutant
