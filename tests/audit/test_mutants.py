"""Every seeded bug is caught by the checks that it names, for every estimator that it reaches."""

import numpy as np
import pytest
from configurations import configurations
from mutants import MUTANTS

from sklearn_dp._privacy import _grid, _mechanisms
from sklearn_dp.audit import _mutation, killer
from sklearn_dp.audit._check_tools import check_data
from sklearn_dp.audit._checks import CHECKS
from sklearn_dp.audit._mutation import Mutant, complaint
from sklearn_dp.audit._player import Replay

NOT_FOR_THE_TOY = {
    "selection too sharp",
    "cells: sensitivity too small by 1.25",
    "cells published by their true count",
    "cells without noise",
    "blocks by position",
    "friendly core without noise",
    "friendly core: sensitivity too small",
}


def test_the_registry_is_in_order():
    names = [bug.name for bug in MUTANTS]
    assert len(names) == len(set(names)) >= 100
    assert {check for bug in MUTANTS for check in bug.killed_by} == {c.__name__ for c in CHECKS}
    assert set(names) >= LISTED


# What an outside review planted, and the audits of that time did not see.
LISTED = {
    "noise is a coin flip of sigma",
    "noise is uniform",
    "noise clamped at 3 sigma",
    "halves of noise are antithetic",
    "halves of noise are equal",
    "a stream that repeats every 6 calls",
    "noise from a 16-bit seed, told as the system's",
    "ledger told of rows where groups are protected",
    "ledger told that Gaussian is not, and the other way round",
    "ledger told nothing where there are groups",
    "accounting twice as generous in both directions",
    "a refit mixes in the rows of the last fit",
    "status tells n where it is 29",
    "sigma halved above 12 columns",
    "predictions leak where n is 23",
}


@pytest.mark.parametrize("bug", MUTANTS, ids=lambda bug: bug.name)
def test_every_mutant_finds_what_it_breaks(bug):
    """What has another name by now is seen here, not hours later in `make audit`."""
    for owner, attribute, _ in bug.changes:
        assert hasattr(owner, attribute), f"{owner} has no {attribute}"


def home(bug):
    """The module that holds a mutant."""
    return bug.changes[0][2].__module__.split(".")[-1]


def mutants_of_the_toy():
    """Those of the kernel and of the base class, but for mechanisms that it does not use."""
    for bug in MUTANTS:
        if bug.name not in NOT_FOR_THE_TOY and home(bug) != "building_blocks":
            slow = "check_noise_has_entropy" in bug.killed_by  # thousands of fits
            yield pytest.param(bug, id=bug.name, marks=pytest.mark.slow if slow else ())


@pytest.fixture(scope="module")
def verdicts():
    """What the checks say of the toy without a mutant: each runs once for all the tests here."""
    return {}


@pytest.mark.parametrize("bug", list(mutants_of_the_toy()))
def test_every_mutant_of_the_toy_is_killed(bug, toy, verdicts):
    assert killer(bug, toy, verdicts) in bug.killed_by


@pytest.mark.slow
@pytest.mark.parametrize("bug", MUTANTS, ids=lambda bug: bug.name)
def test_no_mutant_survives_everywhere(bug, toy):
    """The whole matrix is in `tests/test_common.py`; here each is reached, and then killed."""
    candidates = [toy, *(setting.estimator for setting in configurations("mutants"))]
    assert any(killer(bug, estimator) in bug.killed_by for estimator in candidates)


def test_code_that_does_not_run_is_not_reached(toy):
    (bug,) = [bug for bug in MUTANTS if bug.name == "selection too sharp"]
    assert killer(bug, toy) == "not reached"


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_without_a_mutant_the_toy_passes(check, toy, verdicts):
    if check.__name__ not in verdicts:
        verdicts[check.__name__] = complaint(check, toy)
    assert verdicts[check.__name__] is None


def breaking(change, attribute="count", check="check_replay"):
    """A mutant of the count of the toy."""
    return Mutant("of this test", (check,), ((_mechanisms, attribute, change),))


def test_a_harmless_change_survives(toy):
    assert killer(breaking(lambda original: original), toy) is None


# -- crashes ---------------------------------------------------------------------------------------


def refusing(original):
    def count(session, entry, units, rho=None):
        raise ValueError("this is refused.")

    return count


def wrong_for_the_kernel(original):
    return lambda session, entry, units, rho=None: original(session, "no such entry", units, rho)


@pytest.mark.parametrize("change", [refusing, wrong_for_the_kernel])
def test_a_crash_of_the_code_under_test_is_a_kill(change, toy, verdicts):
    assert killer(breaking(change), toy, verdicts) == "check_replay"


def of_another_signature(original):
    return lambda session, name: 1.0


def of_another_attribute(original):
    return lambda session, entry, units, rho=None: units.no_such_attribute


def overflowing(original):
    return lambda session, entry, units, rho=None: float(np.array([1e308]) * np.float64(10.0))


@pytest.mark.parametrize("change", [of_another_signature, of_another_attribute, overflowing])
def test_a_mutant_that_does_not_fit_the_code_is_an_error(change, toy):
    """Every check fails at such a mutant, and it was said to be killed."""
    with pytest.raises(RuntimeError, match="does not fit the code that it breaks"):
        killer(breaking(change), toy)


def test_a_mistake_of_a_check_is_no_kill(toy, monkeypatch):
    """A check with a typing error killed every mutant that named it."""

    def check_replay(estimator):
        check_data(3).no_such_method()

    monkeypatch.setitem(check_replay.__globals__, "__name__", "sklearn_dp.audit._checks")
    monkeypatch.setattr(_mutation, "CHECKS", (check_replay,))
    with pytest.raises(AttributeError, match="no_such_method"):
        killer(breaking(lambda original: original), toy)


def test_a_mistake_of_the_comparison_inside_a_fit_is_no_kill(toy, monkeypatch):
    """A fit hid it, and the replay blamed the fit for it."""
    monkeypatch.setattr(Replay, "_played", lambda self, event: self.no_such_attribute)
    monkeypatch.setitem(globals(), "__name__", "sklearn_dp.audit._player")
    with pytest.raises(AttributeError, match="no_such_attribute"):
        killer(breaking(lambda original: original), toy)


def test_a_check_that_fails_without_the_mutant_too_has_killed_nothing(toy, after_fit):
    after_fit(lambda self, X, session: setattr(self, "extra_", len(X)))
    with pytest.raises(ValueError, match="check_replay fails without the mutant"):
        killer(breaking(lambda original: original), toy)


def test_a_mutant_is_everywhere_and_leaves_no_trace():
    originals = _grid.clip_integer_rows, _mechanisms.clip_integer_rows
    (bug,) = [bug for bug in MUTANTS if bug.name == "clip skipped"]
    with bug.planted() as reached:
        rows = np.full((1, 2), 100.0)
        for module in (_grid, _mechanisms):
            assert module.clip_integer_rows(rows, 1.0) is rows
        assert len(reached) == 2
    assert (_grid.clip_integer_rows, _mechanisms.clip_integer_rows) == originals


def test_a_mutant_is_taken_out_after_an_error():
    bug = MUTANTS[0]
    owner, attribute, _ = bug.changes[0]
    original = getattr(owner, attribute)
    with pytest.raises(ZeroDivisionError), bug.planted():
        assert getattr(owner, attribute) is not original
        raise ZeroDivisionError
    assert getattr(owner, attribute) is original
