"""Checks of what estimators have from the package: the sampler, groups, and methods that pay.

An estimator of one's own changes none of it, so these are no checks of `check_dp_estimator`.
"""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.plan import Mechanism, PlanEntry, PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp._privacy._units import Claim, Sealed, UnitFacts
from sklearn_dp._privacy.mechanisms.pure import release_laplace
from sklearn_dp.audit._checks import (
    assert_none,
    check_data,
    check_groups,
    replay_problems,
    rich_ledger,
    succeed,
)
from sklearn_dp.audit._laws import law_of
from sklearn_dp.audit._noise_law import noise_problems
from sklearn_dp.audit._observe import accepts_groups, neighboring_pairs, prepared, run_fit
from sklearn_dp.audit._replay import Replay

HARD_GROUPS = slice(None)  # which of the ways to name groups are replayed
_SIZES = (5e-324, 1e-300, 1e-156, 1e-130, 1e-9, 1.0, 1e9, 1e130, 1e156, 1e300)


def hard_groups(n: int) -> dict[str, Any]:
    """Groups of about three rows each, of ids that an array or a sort would change."""
    big = [*(2**53 + k for k in range(4)), 0.5, 1.5, -1, -2]
    sets = [frozenset(range(i, j)) for i in range(3) for j in range(i, 4)]
    mixed = [1, "1", b"1", (1,), ("1",), 2**53 + 1, float(2**53), -1]
    return {
        name: [kinds[k % len(kinds)] for k in check_groups(n)]
        for name, kinds in (("big numbers", big), ("sets", sets), ("mixed", mixed))
    }


def check_replay_of_hard_groups(estimator: Any) -> None:
    """Units stay what they are with ids that cannot be sorted, converted or printed faithfully."""
    if accepts_groups(estimator):
        for groups in list(hard_groups(20).values())[HARD_GROUPS]:
            assert_none(
                replay_problems(estimator, check_data(20, 20), groups=groups, strangers=False)
            )


def check_replay_of_methods(estimator: Any) -> None:
    """Methods that pay for what they release (`private_score`) are as private as fits."""
    methods, X = paying_methods(type(estimator)), check_data(30)
    if not methods:
        return
    outcome = run_fit(prepared(estimator), X)
    succeed(outcome)
    for name, numbers in methods.items():
        method = getattr(outcome.estimator, name)
        for options in [{}, *({number: size} for number in numbers for size in _SIZES)]:
            problems = _method_problems(method, X, options)
            assert_none([f"{name}, {options}: {text}" for text in problems])


def paying_methods(kind: type) -> dict[str, Any]:
    """Methods with a budget of their own, but for fits; of each the other numbers that it takes."""
    methods = {}
    for name, method in inspect.getmembers(kind, inspect.isfunction):
        known = inspect.signature(method).parameters
        if {"X", "epsilon", "random_state"} <= known.keys() and not name.startswith(("_", "fit")):
            numbers = [
                word for word, each in known.items() if each.annotation in (float, float | None)
            ]
            methods[name] = [word for word in numbers if word not in ("epsilon", "delta", "rho")]
    return methods


def _method_problems(method: Callable[..., Any], X: Any, options: Any) -> list[str]:
    """Return the problems that a replay of one call finds."""
    recorder, ledger = Trace(), rich_ledger()
    try:
        with trace(recorder):
            method(X, **options, epsilon=1.0, random_state=0, ledger=ledger)
    except ValueError:
        return ["refused after the charge"] if ledger.entries else []
    problems = [text for event in recorder.events for text in law_of(event).claims(event)]
    for pair in neighboring_pairs(X, 0, kinds=("farthest", "remove")):
        replay = Replay(recorder.events, pair.units)
        with trace(replay):
            method(pair.X, **options, epsilon=1.0, random_state=0, ledger=False)
        problems += [] if replay.voided else replay.finish()
    return problems


def check_missing_groups_are_refused(estimator: Any) -> None:
    """No fit may guess the unit of a row without an id: NaN is not equal to itself."""
    if not accepts_groups(estimator):
        return
    for missing in (None, np.nan, np.datetime64("NaT"), np.ma.masked, (1, np.nan)):
        groups = [missing, *check_groups(19).tolist()]
        outcome = run_fit(prepared(estimator), check_data(20), groups)
        named = isinstance(outcome.error, ValueError) and "groups" in str(outcome.error)
        assert named, f"{missing!r} among the groups is not refused by name: {outcome.error!r}"


def check_kernel_noise(estimator: Any) -> None:
    """The sampler, whatever the estimator: half a million numbers of a bare session."""
    assert_none(kernel_problems())


def kernel_problems(random_state: None | int = 0, *, size: Any = 450_000) -> list[str]:
    """Test a bare session: `size` numbers of Gaussian noise, and a quarter of Laplace."""
    plan = PrivacyPlan(
        PrivacyBudget(rho=8.0, delta=0.5),
        (
            PlanEntry("gaussian", Mechanism.SEVERAL, 4.0, uses=None),
            PlanEntry("laplace", Mechanism.LAPLACE, 4.0, uses=None),
        ),
    )
    shape, claim = (size // 1000, 250), Claim(2.0**20, l1=2.0**20)
    with trace(Trace()) as recorder:
        session = PrivacySession(plan, random_state=random_state)
        for _ in range(4):
            zeros = np.zeros(shape, np.int64), np.zeros((shape[0], 62), np.int64)
            of_both = (Sealed(each, claim, UnitFacts(), "zeros") for each in zeros)
            session.release("gaussian", next(of_both), rho=0.5)
            release_laplace(session, "laplace", next(of_both), epsilon=0.5)
    return noise_problems([recorder.events])
