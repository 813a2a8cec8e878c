"""The runner finds what is planted: a check that has never caught anything proves nothing."""

import contextlib
import logging
import time
import warnings

import numpy as np
import pytest

from sklearn_dp.exceptions import BudgetExceededError, UtilityWarning

from . import runner
from .runner import problems, run

NAMES = ("X", "epsilon")


def raises(error):
    def call():
        raise error

    return call


def chained():
    try:
        float("person 7319.25")
    except ValueError as error:
        raise ValueError("X must be numeric.") from error


def warns(kind, text="X is odd."):
    return lambda: warnings.warn(text, kind, stacklevel=1)


FINE = {
    "a value": lambda: 3,
    "a named error": raises(ValueError("epsilon must be positive.")),
    "a budget": raises(BudgetExceededError("nothing is left")),
    "an expected warning": warns(UtilityWarning),
    "a number of two digits": warns(UtilityWarning, "an epsilon of about 17 would do"),
    "an address": raises(TypeError("X must not be <object at 0x7f7319ab7319>")),
    "scikit-learn's words": raises(ValueError("Expected 2D array: reshape your data.")),
}
WRONG = {
    "another error": (raises(KeyError("X")), "raises KeyError"),
    "an error from inside": (raises(np.linalg.LinAlgError("X is singular")), "raises LinAlgError"),
    "an exit": (raises(SystemExit("X")), "raises SystemExit"),
    "no name": (raises(ValueError("bad value")), "names no argument"),
    "raw words": (raises(TypeError("unhashable type: 'list'")), "raw words"),
    "data": (raises(ValueError("X holds 7319.4825")), "quotes '7319'"),
    "data, scaled": (raises(ValueError("X holds 7.3194825e+155")), "quotes '7.319'"),
    "a name of a person": (raises(ValueError("X holds person 12")), "quotes 'person'"),
    "data, as a small number": (raises(ValueError("X holds 0.007319")), "quotes '0.007319'"),
    "number of rows": (raises(ValueError("X has 1013 rows")), "quotes '1013'"),
    "number of rows, with a comma": (raises(ValueError("X has 1,013 rows")), "quotes '1,013'"),
    "data in the cause": (chained, "quotes"),
    "another warning": (warns(RuntimeWarning), "warns RuntimeWarning"),
    "data in a warning": (warns(UtilityWarning, "about 7319"), "quotes '7319'"),
    "a print": (lambda: print("done"), "prints"),
    "a log record": (lambda: logging.getLogger("x").warning("7319"), "prints"),
}


@pytest.mark.parametrize("name", FINE)
def test_what_is_fine(name):
    assert problems(run(FINE[name]), NAMES) == []


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong(name):
    call, words = WRONG[name]
    assert words in " ".join(problems(run(call), NAMES))


def busy():
    end = time.process_time() + 30
    while time.process_time() < end:
        with contextlib.suppress(Exception):  # what the alarm is to get through
            sum(range(1000))


def test_a_call_that_takes_too_long_is_stopped(monkeypatch):
    monkeypatch.setattr(runner, "SECONDS", 0.2)
    assert "raises Slow" in " ".join(problems(run(busy), NAMES))
    assert run(lambda: 1).value == 1
