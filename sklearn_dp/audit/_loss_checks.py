"""Checks of the privacy loss: replays of neighbors, and the noise.

Each takes an estimator and raises `AssertionError` with what is wrong. Sizes of data are a
compromise: enough to meet what is usually wrong, in seconds. What waits for another size is for
`check_drawn_data`.
"""

import inspect
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from inspect import signature
from typing import Any

import numpy as np
from scipy.special import ndtri

from .._costs.budget import PrivacyBudget
from .._costs.ledger_terms import LedgerCharge
from .._costs.plan import PrivacyPlan
from .._privacy._ledger import PrivacyLedger
from .._privacy._trace import Event, Trace, trace
from .._silence.global_generators import own_streams
from .._silence.suppress_output import overheard
from ..exceptions import SeededNoiseWarning, UtilityWarning
from ._drawn import drawn_audit
from ._neighbors import neighboring_pairs
from ._noise_law import kernel_problems, noise_audit
from ._observe import (
    Explosion,
    Outcome,
    accepts_groups,
    n_features_of,
    n_features_seen,
    prepared,
    run_fit,
)
from ._recount import all_gaussian, paid
from ._replay import Replay, different, record, replay_audit
from .mechanisms import law_of

_RECENT = timedelta(hours=1)


def rich_ledger(plan: PrivacyPlan | None = None) -> PrivacyLedger:
    """Return a ledger in memory that allows more than any fit costs, with the unit and relation of
    a plan."""
    terms = {} if plan is None else {"unit": plan.unit, "relation": plan.relation}
    known = signature(PrivacyLedger).parameters
    return PrivacyLedger(
        PrivacyBudget(epsilon=1e12, delta=0.999),
        **{name: term for name, term in terms.items() if name in known},
    )


def charge_problems(estimator: Any, X: Any, *, groups: Any = None) -> list[str]:
    """Fit a clone with a ledger and compare each field of the charge with the plan. Exact. A field
    that the audit does not know is a problem too. The unit is compared with what the fit was given,
    and `gaussian` with the kinds of the releases, besides the plan."""
    unit = "row" if groups is None else "group"
    plan = prepared(estimator).privacy_plan(n_features_seen(estimator, X), unit=unit)
    ledger, recorder = rich_ledger(plan), Trace()
    outcome = run_fit(prepared(estimator, ledger=ledger), X, groups, recorder=recorder)
    if outcome.error is not None:
        return [f"a fit with a ledger raises {outcome.error!r}"]
    if len(ledger.entries) != 1:
        return [f"a fit is charged {len(ledger.entries)} times"]
    (charge,) = ledger.entries
    problems = list(_fields(charge, plan, type(estimator).__name__))
    # Unit and kinds of releases are also taken from what was done: a plan that is wrong about them
    # is no witness of a charge that repeats the mistake.
    if charge.unit != unit:
        problems.append(f"the ledger hears of {charge.unit}s where {unit}s are protected")
    if charge.gaussian and not all_gaussian(recorder.events):
        problems.append("the ledger hears of Gaussian releases where there are others")
    return problems


def _fields(charge: LedgerCharge, plan: PrivacyPlan, label: str) -> Iterator[str]:
    """Compare every field with the plan. Fields are those of the class, so a new one is
    reported."""
    reported = {
        "epsilon": plan.epsilon,
        "delta": plan.target.delta,
        "rho": plan.rho,
        "delta_failure": plan.delta_failure,
        "gaussian": plan.gaussian,
        "unit": plan.unit,
        "relation": plan.relation,
        "label": label,
        "key": "",  # the ledger is not of one value
        "value": "",
    }
    for field in fields(LedgerCharge):
        value = getattr(charge, field.name)
        if field.name == "time":
            age = datetime.now(UTC) - datetime.fromisoformat(value).astimezone(UTC)
            if not -_RECENT < age < _RECENT:
                yield "the charge has another time than the fit"
        elif field.name not in reported:
            yield f"the audit does not know the field {field.name!r} of a charge"
        elif value != reported[field.name]:
            yield (
                f"the ledger hears {field.name} = {value!r} where the plan says "
                f"{reported[field.name]!r}"
            )


# -- check tools -----------------------------------------------------------------------------------


_EXPECTED_WARNINGS = (SeededNoiseWarning, UtilityWarning)
N_FEATURES = 3


def check_data(n: int, seed: int = 0, d: int = N_FEATURES) -> np.ndarray:
    """Two well separated groups of points (n, d), with values of many digits, which leaks can be
    told by."""
    rng = np.random.default_rng(seed)
    # Each place is repeated by itself: they are apart in every d, also where 6 divides it.
    places = np.stack([np.resize(place, d) for place in ([-3.0, 0.5, 0.1], [2.0, 2.0, -1.0])])
    return places[np.arange(n) % 2] + 0.3 * ndtri(rng.random((n, d)))


def check_groups(n: int) -> np.ndarray:
    """Groups of one to four rows, out of order."""
    return np.random.default_rng(1).permutation(np.arange(n) * 2 // 5)


def assert_none(problems: Sequence[str]) -> None:
    """Fail with the first three problems, if there are any."""
    assert not problems, "; ".join(problems[:3]) + (" ..." if len(problems) > 3 else "")


def succeed(outcome: Outcome, context: str = "") -> None:
    """No error, and no warning but those that the contract knows."""
    if outcome.error is not None:
        raise AssertionError(f"{context}a fit raises {outcome.error!r}") from outcome.error
    other = [text for kind, text in outcome.warnings if not issubclass(kind, _EXPECTED_WARNINGS)]
    assert not other, f"{context}a fit warns: {other[0]}"


def released_state(estimator: Any, *but: str) -> bytes:
    """Return the contents of a pickle, but for the parameters that may differ or have no pickle.
    And but for attributes whose names end in one of `but`."""
    state, left_out = estimator.__getstate__(), ("ledger", "n_jobs")
    return pickle.dumps(
        {name: state[name] for name in state if name not in left_out and not name.endswith(but)}
    )


def hard_groups(n: int) -> dict[str, Any]:
    """Groups with ids of which an array or a sort would make something else, by what they are. Of
    about three rows each, so that neither a merged nor a split unit goes unnoticed."""
    big = [*(2**53 + k for k in range(4)), 0.5, 1.5, -1, -2]
    sets = [frozenset(range(i, j)) for i in range(3) for j in range(i, 4)]
    mixed = [1, "1", b"1", (1,), ("1",), 2**53 + 1, float(2**53), -1]
    return {
        name: [kinds[k % len(kinds)] for k in check_groups(n)]
        for name, kinds in (("big numbers", big), ("sets", sets), ("mixed", mixed))
    }


class Watched:
    """An array-like whose shape is public, and that tells when its values are asked for. `rows` are
    the values, for the audit alone: no estimator knows this name."""

    def __init__(self, X: Any, touch: Callable[[], Any]) -> None:
        self.rows, self._touch = X, touch
        self.shape = X.shape

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        """Tell, and hand the values over."""
        self._touch()
        return np.asarray(self.rows, dtype=dtype)


class Bomb:
    """A trace that breaks the fit at its first release."""

    def record(self, event: Event) -> Any:
        """Let the seed event pass, which belongs to no plan entry; the first release explodes."""
        if event.entry:
            raise Explosion
        return event.output


# -- refit -----------------------------------------------------------------------------------------


def refit_problems(
    estimator: Any, X: Any, *, groups: Any = None, random_state: int = 0
) -> list[str]:
    """Compare a fit of a used estimator with a fresh one, under replay. Exact, no false alarms.

    Before it gets `X`, the used estimator was fitted to other rows of the same shape, to rows of
    another shape, with other parameters that were then set back, and was pickled in between. Does
    not see state that only fits of other objects leave behind.
    """
    fresh = record(estimator, X, groups=groups, random_state=random_state)
    if fresh.problems:
        return list(fresh.problems)
    problems = []
    for name, use in _USES.items():
        used = use(prepared(estimator, random_state=random_state), np.asarray(X, dtype=float))
        units = np.arange(len(X) if groups is None else len(set(groups)))
        replay = Replay(fresh.events, units)
        outcome = run_fit(used, X, groups, recorder=replay)
        # Which equal objects are one object changes a pickle and tells nothing: compare memory.
        faces = [
            {name: shown for name, shown in each.face().items() if name != "pickle"}
            for each in (fresh.outcome, outcome)
        ]
        texts = [
            *replay.finish(),
            *(
                f"{entry}: the statistic is another one"
                for entry, ratio in replay.ratios.items()
                if ratio > 0
            ),
            *different(faces[0], faces[1], "from a fresh fit"),
        ]
        problems += [f"after {name}: {text}" for text in texts]
    return problems


def _other_rows(X: Any) -> np.ndarray:
    """Rows of the same shape that are unlike the usual data. Far from the usual data, and of
    another spread: a row that is left over moves every sum."""
    rng = np.random.default_rng(1)
    return 50 + 7 * ndtri(rng.random(np.shape(X)))


def _same_shape(used: Any, X: Any) -> Any:
    run_fit(used, _other_rows(X))
    return used


def _another_shape(used: Any, X: Any) -> Any:
    run_fit(used, _other_rows(np.zeros((2 * len(X) + 1, n_features_of(X) + 2))))
    return used


def _other_parameters(used: Any, X: Any) -> Any:
    """A past fit with another budget, delta and bounds, which were then set back."""
    other = {"epsilon": 7.0, "rho": None, "delta": 1e-3, "bounds": 1e4}
    before = {name: getattr(used, name) for name in other.keys() & used.get_params(deep=False)}
    used.set_params(**{name: other[name] for name in before})
    run_fit(used, _other_rows(X))
    return used.set_params(**before)


def _pickled(used: Any, X: Any) -> Any:
    run_fit(used, _other_rows(X))
    return pickle.loads(pickle.dumps(used))


_USES = {
    "a fit to other rows": _same_shape,
    "a fit to another shape": _another_shape,
    "a fit with other parameters": _other_parameters,
    "a fit and a pickle": _pickled,
}


# -- loss checks -----------------------------------------------------------------------------------


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
    columns: more than most public defaults assume. 2, 1 and 0 rows: fits that give up must do so by
    releases. Strangers, whose rows come in any number and size, join 20 and 400 rows.
    """
    for n, d, with_groups in REPLAYED:
        X = check_data(n, n, d)
        assert_none(_replayed(estimator, X, html=n == 20, strangers=n in (20, 400)))
        if with_groups and accepts_groups(estimator):
            assert_none(_replayed(estimator, X, groups=check_groups(n), strangers=n == 20))


def check_replay_of_hard_groups(estimator: Any) -> None:
    """Units stay what they are with ids that cannot be sorted, converted or printed faithfully.
    Without strangers, whose ids are plain numbers: `check_replay` has them."""
    if accepts_groups(estimator):
        for groups in list(hard_groups(20).values())[HARD_GROUPS]:
            assert_none(_replayed(estimator, check_data(20, 20), groups=groups, strangers=False))


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


def _replayed(estimator: Any, X: Any, **options: Any) -> list[str]:
    """Return the violations that a replay audit finds. An audit in which no pair could be compared
    has passed nothing: that is a violation too."""
    result = replay_audit(estimator, X, stop_at_first=True, **options)
    return result.violations or ([] if result.passed else ["all pairs are voided"])


def check_drawn_data(estimator: Any) -> None:
    """Rows, columns, clusters, arrays, bounds, budgets and groups drawn at random: for triggers.
    Each n up to 48 and each d up to 24 is met; see :func:`drawn_audit` for other chances."""
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
        noise = outcome.estimator.privacy_report_.noise
        assert noise in (source, "altered"), "the report's noise source"  # altered: by a mutant
