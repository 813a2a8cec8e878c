"""Whose mistake an exception is: of the code under test, of the audit, of a mutant."""

import numpy as np
import pytest

from sklearn_dp._privacy import _aggregates
from sklearn_dp.audit import _mutation, killer
from sklearn_dp.audit._loss_checks import check_data
from sklearn_dp.audit._mutation import Mutant
from sklearn_dp.audit._replay import Replay


def breaking(change, attribute="count", check="check_replay"):
    """A mutant of the count of the toy."""
    return Mutant("of this test", (check,), ((_aggregates, attribute, change),))


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
    monkeypatch.setitem(globals(), "__name__", "sklearn_dp.audit._replay")
    with pytest.raises(AttributeError, match="no_such_attribute"):
        killer(breaking(lambda original: original), toy)
