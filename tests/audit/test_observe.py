"""Audits fit as the strictest user would."""

import logging
import warnings

import numpy as np
import pytest

from sklearn_dp.audit._observe import run_fit
from sklearn_dp.exceptions import SeededNoiseWarning, UtilityWarning


def warn_as(category):
    return lambda self, X, session: warnings.warn("something", category, stacklevel=2)


@pytest.mark.parametrize("category", [UserWarning, RuntimeWarning, FutureWarning])
def test_warnings_of_others_are_errors(toy, points, after_fit, category):
    after_fit(warn_as(category))
    assert isinstance(run_fit(toy, points).error, category)
    relaxed = run_fit(toy, points, strict=False)
    assert relaxed.error is None and (category, "something") in relaxed.warnings


def test_our_own_warnings_are_noted(make_toy, points, after_fit):
    after_fit(warn_as(UtilityWarning))
    outcome = run_fit(make_toy(random_state=0), points)
    assert outcome.error is None
    assert {kind for kind, _ in outcome.warnings} == {UtilityWarning, SeededNoiseWarning}


@pytest.mark.parametrize("operation", [np.square, np.exp, lambda X: 1e-300 * X / 1e250])
def test_numpy_raises_what_nobody_guards(toy, points, monkeypatch, operation):
    """A fit that goes past the guard of the base class."""
    monkeypatch.setattr(type(toy), "fit", lambda self, X, y=None: operation(X * 1e200) and self)
    assert isinstance(run_fit(toy, points).error, FloatingPointError)


def test_the_log_of_an_audited_fit_is_for_the_audit_alone(make_toy, points, caplog):
    """It listens to every level, which handlers of the program have not asked for."""
    root = logging.getLogger()
    before = root.level, list(root.handlers)
    outcome = run_fit(make_toy(random_state=0), points)
    assert "released count" in outcome.printed and caplog.messages == []
    assert (root.level, root.handlers) == before
