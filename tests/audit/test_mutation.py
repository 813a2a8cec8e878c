"""Seeded bugs: planted everywhere, taken out again, and killed by what they name."""

import numpy as np
import pytest
from mutants import MUTANTS

from sklearn_dp._privacy import _aggregates, _grid
from sklearn_dp.audit import killer
from sklearn_dp.audit._mutation import Mutant


@pytest.fixture(scope="module")
def verdicts():
    """What the checks say of the toy without a mutant: each runs once for all the tests here."""
    return {}


def test_code_that_does_not_run_is_not_reached(toy):
    (bug,) = [bug for bug in MUTANTS if bug.name == "selection too sharp"]
    assert killer(bug, toy) == "not reached"


def breaking(change, attribute="count", check="check_replay"):
    """A mutant of the count of the toy."""
    return Mutant("of this test", (check,), ((_aggregates, attribute, change),))


def test_a_harmless_change_survives(toy):
    assert killer(breaking(lambda original: original), toy) is None


def refusing(original):
    def count(session, entry, units, rho=None):
        raise ValueError("this is refused.")

    return count


def wrong_for_the_kernel(original):
    return lambda session, entry, units, rho=None: original(session, "no such entry", units, rho)


@pytest.mark.parametrize("change", [refusing, wrong_for_the_kernel])
def test_a_crash_of_the_code_under_test_is_a_kill(change, toy, verdicts):
    assert killer(breaking(change), toy, verdicts) == "check_replay"


def test_a_check_that_fails_without_the_mutant_too_has_killed_nothing(toy, after_fit):
    after_fit(lambda self, X, session: setattr(self, "extra_", len(X)))
    with pytest.raises(ValueError, match="check_replay fails without the mutant"):
        killer(breaking(lambda original: original), toy)


def test_a_mutant_is_everywhere_and_leaves_no_trace():
    originals = _grid.clip_integer_rows, _aggregates.clip_integer_rows
    (bug,) = [bug for bug in MUTANTS if bug.name == "clip skipped"]
    with bug.planted() as reached:
        rows = np.full((1, 2), 100.0)
        for module in (_grid, _aggregates):
            assert module.clip_integer_rows(rows, 1.0) is rows
        assert len(reached) == 2
    assert (_grid.clip_integer_rows, _aggregates.clip_integer_rows) == originals


def test_a_mutant_is_taken_out_after_an_error():
    bug = MUTANTS[0]
    owner, attribute, _ = bug.changes[0]
    original = getattr(owner, attribute)
    with pytest.raises(ZeroDivisionError), bug.planted():
        assert getattr(owner, attribute) is not original
        raise ZeroDivisionError
    assert getattr(owner, attribute) is original
