"""check_dp_estimator as a function; what its checks catch is tested with the mutants."""

import numpy as np
import pytest

from sklearn_dp.audit import _checks, check_dp_estimator
from sklearn_dp.audit._checks import CHECKS, check_pickle


def test_the_first_failure_is_raised(make_toy, after_fit, monkeypatch):
    """Two checks, of which the first passes: all of them would take longer and tell no more."""

    def spoil(self, X, session):
        self.mean_ = self.mean_ * float("nan")

    after_fit(spoil)
    few = ("check_parameters_are_kept", "check_small_data")
    monkeypatch.setattr(_checks, "CHECKS", [c for c in CHECKS if c.__name__ in few])
    with pytest.raises(AssertionError, match="mean_ is not finite"):
        check_dp_estimator(make_toy())
    assert "mean_ is not finite" in failure(make_toy(), "check_small_data")


def failure(estimator, name):
    """What one of the checks says."""
    (check,) = [check for check in CHECKS if check.__name__ == name]
    with pytest.raises(AssertionError) as caught:
        check(estimator)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "check", "message"),
    [
        ("bounds", 1.0, "check_parameters_are_kept", "changes parameters"),
        ("status_", "", "check_small_data", "must be words"),
    ],
)
def test_what_breaks_the_contract_is_told(make_toy, after_fit, name, value, check, message):
    after_fit(lambda self, X, session: setattr(self, name, value))
    assert message in failure(make_toy(), check)


@pytest.mark.parametrize(
    ("length", "kept"),
    [
        (lambda model, X: max(int(model.signs_.sum()), 1), True),
        (lambda model, X: len(X), False),
        (lambda model, X: len(X) // 1000, False),
    ],
    ids=["released", "n", "thousands"],
)
def test_what_is_said_to_be_of_released_length_is(make_toy, after_fit, monkeypatch, length, kept):
    """An array that is excused from being weighed must not hide a number of rows."""
    monkeypatch.setattr(make_toy, "_length_released", ("table_",))
    after_fit(lambda self, X, session: setattr(self, "table_", np.zeros(length(self, X))))
    if kept:
        check_pickle(make_toy())
    else:
        with pytest.raises(AssertionError, match="differs with n, and not with the releases"):
            check_pickle(make_toy())
