"""Every seeded bug is caught by the checks that it names, for every estimator that it reaches."""

import pytest
from mutants import MUTANTS
from mutants.planting import CHECKS, complaint, killer

NOT_FOR_THE_TOY = {
    "selection too sharp",
    "cells: sensitivity too small by 1.25",
    "cells published by their true count",
    "cells without noise",
    "draws that hang on the number of units",
    "friendly core without noise",
    "friendly core: sensitivity too small",
}


def test_the_registry_is_in_order():
    names = [bug.name for bug in MUTANTS]
    assert len(names) == len(set(names)) >= 100
    assert {check for bug in MUTANTS for check in bug.killed_by} == {c.__name__ for c in CHECKS}


def test_every_mutant_finds_what_it_breaks():
    """What has another name by now is seen here, not hours later in `make audit`."""
    for bug in MUTANTS:
        for owner, attribute, _ in bug.changes:
            assert hasattr(owner, attribute), f"{bug.name}: {owner} has no {attribute}"


# Checks of hundreds of fits, and the one mutant of them that is found within a few.
HUNDREDS_OF_FITS = {"check_noise_has_entropy", "check_drawn_data"}
OF_DRAWN_DATA = {"status tells n between 1,000 and 5,000"}


def home(bug):
    """The module that holds a mutant."""
    return bug.changes[0][2].__module__.split(".")[-1]


def mutants_of_the_toy():
    """Those of the kernel and of the base class, but for mechanisms that it does not use.

    Three of each check are in the normal suite, from all of its list; `make audit` has all.
    """
    lists = {}
    for bug in MUTANTS:
        if bug.name not in NOT_FOR_THE_TOY and home(bug) != "building_blocks":
            lists.setdefault(bug.killed_by, []).append(bug)
    for checks, bugs in lists.items():
        quick = () if HUNDREDS_OF_FITS & {*checks} else bugs[:: -(-len(bugs) // 3)]
        for bug in bugs:
            marks = () if bug in quick or bug.name in OF_DRAWN_DATA else pytest.mark.slow
            yield pytest.param(bug, id=bug.name, marks=marks)


@pytest.fixture(scope="module")
def verdicts():
    """What the checks say of the toy without a mutant: each runs once for all the tests here."""
    return {}


@pytest.mark.parametrize("bug", list(mutants_of_the_toy()))
def test_every_mutant_of_the_toy_is_killed(bug, toy, verdicts):
    assert killer(bug, toy, verdicts) in bug.killed_by


@pytest.mark.quick(but=HUNDREDS_OF_FITS)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_without_a_mutant_the_toy_passes(check, toy, verdicts):
    if check.__name__ not in verdicts:
        verdicts[check.__name__] = complaint(check, toy)
    assert verdicts[check.__name__] is None
