"""Seeded bugs: an audit that has never caught anything proves nothing.

A mutant breaks one thing for as long as its context lasts. The checks that it names must then fail
for every estimator that reaches the broken code. Never plant one outside a test.
"""

import sys
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

from ._charges import rich_ledger
from ._check_tools import check_data, check_groups, hard_groups
from ._checks import CHECKS
from ._noise_law import kernel_problems
from ._observe import accepts_groups, prepared, run_fit

__all__ = ["MUTANTS", "Mutant", "after_fit", "killer", "mutant"]

MUTANTS = []
"""All registered mutants: those of :mod:`sklearn_dp.audit.mutants`, and whatever tests add."""


@dataclass(frozen=True)
class Mutant:
    """One bug.

    Attributes
    ----------
    name : str
    killed_by : tuple of str
        Names of checks, of which at least one must fail.
    changes : tuple of (owner, attribute, change)
        `owner` is a class or a module; ``change(original)`` is what takes the attribute's place. A
        function of a module is replaced wherever the package has imported it.
    """

    name: str
    killed_by: tuple
    changes: tuple

    @contextmanager
    def planted(self):
        """Break the code inside this context; yields a list that fills when it is reached."""
        reached = []
        with ExitStack() as stack:
            for owner, attribute, change in self.changes:
                broken = _noting(change(getattr(owner, attribute)), reached)
                for place, name in _bindings(owner, attribute):
                    stack.enter_context(_replaced(place, name, broken))
            yield reached


def mutant(name, killed_by, owner, attribute):
    """Register the decorated change as a mutant; see :class:`Mutant`."""

    def register(change):
        MUTANTS.append(Mutant(name, tuple(killed_by.split()), ((owner, attribute, change),)))
        return change

    return register


def killer(bug, estimator):
    """The check that kills a mutant.

    Parameters
    ----------
    bug : Mutant
    estimator : estimator of this package

    Returns
    -------
    check : str or None
        Name of the first check that fails; "not reached" if the estimator does not run the
        broken code; None if the mutant survives.
    """
    with bug.planted() as reached:
        _visit(estimator)
        if not reached:
            return "not reached"
        for check in CHECKS:
            if check.__name__ in bug.killed_by and _fails(check, estimator):
                return check.__name__
    return None


def _visit(estimator):
    """Run once what the checks run often: their sizes of data, groups, bounds, displays, errors."""
    with suppress(Exception):  # what a mutant does to the kernel's own session, a check will tell
        kernel_problems(size=8000)
    bounded = prepared(estimator, bounds=1.0)
    for copy, X in (
        (prepared(estimator), check_data(400)),
        (bounded, check_data(20)),
        (prepared(estimator), check_data(30, d=12)),
        (bounded, 1j * check_data(20)),
    ):
        outcome = run_fit(copy, X)
        if outcome.error is None:
            outcome.face(html=True)
    for unit, groups in (("row", None), ("group", check_groups(20))):
        if groups is None or accepts_groups(estimator):
            ledger = rich_ledger(prepared(estimator).privacy_plan(3, unit=unit))
            run_fit(prepared(estimator, ledger=ledger), check_data(20), groups)
    if accepts_groups(estimator):
        for groups in (check_groups(20), hard_groups(20)["mixed"]):
            run_fit(prepared(estimator), check_data(20), groups)


def _fails(check, estimator):
    try:
        check(estimator)
    except Exception:  # a crash is a catch too
        return True
    return False


def _noting(function, reached):
    if not callable(function):
        reached.append(True)
        return function

    def noted(*args, **options):
        reached.append(True)
        return function(*args, **options)

    return noted


def _bindings(owner, attribute):
    """An attribute of the class that has it, or all names in the package for a function."""
    if isinstance(owner, type):
        return [next((each, attribute) for each in owner.__mro__ if attribute in vars(each))]
    original, package = getattr(owner, attribute), __package__.split(".")[0]
    return [
        (module, name)
        for key, module in list(sys.modules.items())
        if key.split(".")[0] == package
        for name, value in list(vars(module).items())
        if value is original
    ]


@contextmanager
def _replaced(owner, attribute, value):
    before = vars(owner)[attribute]
    setattr(owner, attribute, value)
    try:
        yield
    finally:
        setattr(owner, attribute, before)


def after_fit(change):
    """Let `change(estimator, X, session)` spoil what a fit leaves."""

    def wrap(original):
        def fit(self, X, units, session):
            result = original(self, X, units, session)
            change(self, X, session)
            return result

        return fit

    return wrap
