"""Seeded bugs: an audit that has never caught anything proves nothing.

A mutant breaks one thing, in its context only: a `_Switch` stands in the place of the attribute,
and every context finds its own value there. The checks that the mutant names must then fail for
every estimator that reaches the broken code. Sessions that are opened in the context say so in
their reports.
"""

import dis
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import update_wrapper
from typing import Any

from entropy import check_noise_has_entropy
from sklearn.base import BaseEstimator

from benchmarks.certify.checks import EVERY_CHECK
from benchmarks.certify.inherited import hard_groups, kernel_problems, paying_methods
from sklearn_dp._privacy._trace import altered, altering
from sklearn_dp.audit._checks import check_data, check_groups, rich_ledger
from sklearn_dp.audit._observe import (
    accepts_groups,
    is_library,
    is_of_audit,
    module_of,
    prepared,
    run_fit,
)

MUTANTS: list["Mutant"] = []

CHECKS = (*EVERY_CHECK, check_noise_has_entropy)


class Planted(list):
    """An entry for each time that a planted mutant was reached; `mistakes` are those of its own
    code."""

    def __init__(self) -> None:
        super().__init__()
        self.mistakes: list[Exception] = []


@dataclass(frozen=True)
class Mutant:
    """One bug: its name says what is wrong, and one of the checks that it names must fail.

    Of each change ``(owner, attribute, change)``, `owner` is a class or a module and
    ``change(original)`` takes the attribute's place, wherever the package has imported it.
    """

    name: str
    killed_by: tuple[str, ...]
    changes: tuple[tuple[Any, str, Callable[..., Any]], ...]

    @contextmanager
    def planted(self) -> Iterator[Planted]:
        """Break the code in this context; the list fills each time the broken code is reached."""
        happened = Planted()
        with ExitStack() as stack:
            for owner, attribute, change in self.changes:
                switch = stack.enter_context(_switched(owner, attribute))
                broken = _noting(change(switch.__get__(None, owner)), happened)
                stack.enter_context(altering(switch, broken))
            yield happened


class _Switch:
    """Stands in the place of an attribute: the mutant in contexts that planted one, the original in
    all others. In a class it is a descriptor; in a module it is called as the function is."""

    def __init__(self, original: Any) -> None:
        update_wrapper(self, original)  # what asks for a name, a module or a signature
        self.plantings = 0

    def _here(self) -> Any:
        return altered().get(self, self.__wrapped__)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        value = self._here()
        bind = getattr(type(value), "__get__", None)
        return value if bind is None else bind(value, instance, owner)

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self._here()(*args, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._here(), name)

    def __reduce__(self) -> str:  # by its name, as a function is
        return self.__qualname__


_PLANTING = threading.RLock()


@contextmanager
def _switched(owner: Any, attribute: str) -> Iterator[_Switch]:
    """Put a switch in the place of an attribute, or use the one there; the last mutant takes it
    away."""
    with _PLANTING:
        found = vars(_home(owner, attribute))[attribute]
        switch = found if isinstance(found, _Switch) else _Switch(found)
        switch.plantings += 1
        for place, name in _bindings(owner, attribute, switch.__wrapped__):
            setattr(place, name, switch)
    try:
        yield switch
    finally:
        with _PLANTING:
            switch.plantings -= 1
            if not switch.plantings:
                for place, name in _bindings(owner, attribute, switch):
                    setattr(place, name, switch.__wrapped__)


def mutant(name: str, killed_by: str, owner: Any, attribute: str) -> Callable[..., Any]:
    """Register the decorated change as a mutant; the names of checks are separated by spaces."""

    def register(change: Callable[..., Any]) -> Callable[..., Any]:
        MUTANTS.append(Mutant(name, tuple(killed_by.split()), ((owner, attribute, change),)))
        return change

    return register


def killer(
    bug: Mutant, estimator: BaseEstimator, verdicts: dict[str, str | None] | None = None
) -> str | None:
    """The name of the first check that fails; "not reached", or None if the mutant survives.

    That check is run without the mutant too: a ValueError if it then fails as well. A RuntimeError
    if the mutant's own code fails, other than by a ``raise``: it no longer fits what it breaks. A
    crash of the code under test is a kill; an exception in the check's own code propagates.

    `verdicts` has what each check says of the estimator without any mutant. Hand in the same dict
    for many mutants of one estimator, so that no check runs more than once without a mutant.
    """
    with bug.planted() as happened:
        if not any(happened for _ in _visits(estimator)):  # no further than to where it is reached
            return "not reached"
        _refuse_mistakes(bug, happened)
        for check in CHECKS:
            if check.__name__ in bug.killed_by:
                found = complaint(check, estimator)
                _refuse_mistakes(bug, happened)
                if found is not None:
                    break
        else:
            return None
    verdicts = {} if verdicts is None else verdicts
    name = check.__name__
    if name not in verdicts:
        verdicts[name] = complaint(check, estimator)
    if verdicts[name] is not None:
        raise ValueError(f"{name} fails without the mutant {bug.name!r} too: {verdicts[name]}")
    return name


def _refuse_mistakes(bug: Mutant, happened: Planted) -> None:
    if happened.mistakes:
        raise RuntimeError(
            f"the mutant {bug.name!r} does not fit the code that it breaks: "
            f"{happened.mistakes[0]!r}"
        ) from happened.mistakes[0]


def _visits(estimator: Any) -> Iterator[Any]:
    """Run once what the checks run often: their sizes of data, groups, bounds, displays, errors."""
    with suppress(Exception):  # what a mutant does to the kernel's own session, a check will tell
        kernel_problems(size=8000)
    yield
    bounded = prepared(estimator, **dict.fromkeys({"bounds"} & {*estimator.get_params()}, 1.0))
    for copy, X in (
        (prepared(estimator), check_data(400)),
        (bounded, check_data(20)),
        (prepared(estimator), check_data(30, d=12)),
        (bounded, 1j * check_data(20)),
    ):
        outcome = run_fit(copy, X)
        if outcome.error is None:
            outcome.face(html=True)
            for name in paying_methods(type(copy)):
                with suppress(Exception):
                    getattr(copy, name)(X, epsilon=1.0, random_state=0)
        yield
    for unit, groups in (("row", None), ("group", check_groups(20))):
        if groups is None or accepts_groups(estimator):
            ledger = rich_ledger(prepared(estimator).privacy_plan(3, unit=unit))
            run_fit(prepared(estimator, ledger=ledger), check_data(20), groups)
            yield
    if accepts_groups(estimator):
        for groups in (check_groups(20), hard_groups(20)["mixed"]):
            run_fit(prepared(estimator), check_data(20), groups)
            yield


def complaint(check: Callable[..., Any], estimator: BaseEstimator) -> str | None:
    """What a check complains of, in words, or None; the audit's own crash is raised."""
    try:
        check(estimator)
    except Exception as error:
        if is_of_audit(error):
            raise
        return f"{type(error).__name__}: {error}"
    return None


def _noting(function: Callable[..., Any], happened: Planted) -> Callable[..., Any]:
    """The function, with its calls and mistakes noted; what is no function counts as reached."""
    if not callable(function):
        happened.append(True)
        return function

    def noted(*args: Any, **options: Any) -> Any:
        happened.append(True)
        try:
            return function(*args, **options)
        except Exception as error:
            if _is_of_mutant(error):
                happened.mistakes.append(error)
            raise

    return noted


def _is_of_mutant(error: BaseException) -> bool:
    """Whether a mutant failed by mistake: with no code of the package running, and no ``raise``."""
    modules = [module_of(frame) for frame, _ in traceback.walk_tb(error.__traceback__)]
    if any(name.split(".")[0] == "sklearn_dp" and ".audit" not in name for name in modules):
        return False
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None or is_library(module_of(last.tb_frame)):
        return True
    code = last.tb_frame.f_code.co_code
    return code[last.tb_lasti] != dis.opmap["RAISE_VARARGS"]


def _home(owner: Any, attribute: str) -> Any:
    """The module, or the class that defines the attribute: it may be inherited."""
    if not isinstance(owner, type):
        return owner
    return next(each for each in owner.__mro__ if attribute in vars(each))


def _bindings(owner: Any, attribute: str, value: Any) -> list[Any]:
    """Where a value is found: in its class, or under all names in the package and its module."""
    home = _home(owner, attribute)
    if isinstance(owner, type):
        return [(home, attribute)] * (vars(home)[attribute] is value)
    return [
        (module, name)
        for key, module in list(sys.modules.items())
        if key.split(".")[0] == "sklearn_dp" or module is home
        for name, found in list(vars(module).items())
        if found is value
    ]
