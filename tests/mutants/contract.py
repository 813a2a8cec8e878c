"""Data that a fit shows, and input that it refuses.

They spoil what a fit leaves behind (`after_fit`): attributes, report, warnings, texts, pickles.

`check_no_leaks` kills those that copy values of rows, `check_replay` those that show a function of
rows, however coarse: of two neighbors with equal releases, all that is shown has to be equal.
"""

import logging
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from sklearn_dp._base import BaseDPEstimator
from sklearn_dp.exceptions import UtilityWarning

from .changes import after_fit
from .planting import MUTANTS, Mutant, mutant


# labels_ tell of every training row which cluster it is in: in memory for ported code, no release.
@mutant("labels in the pickle", "check_pickle", BaseDPEstimator, "_not_released")
def _(original: Callable[..., Any]) -> Any:
    return ()


# Notebooks show the display by themselves, and are shared with their outputs.
@mutant("labels in the HTML display", "check_replay", BaseDPEstimator, "_get_fitted_attr_html")
def _(original: Callable[..., Any]) -> Any:
    return lambda self, doc_link="": BaseEstimator._get_fitted_attr_html(self, doc_link)


def _keep_a_row(self: Any, X: Any) -> None:
    self.first_ = X[:1].copy()


def _report_a_value(self: Any, X: Any) -> None:
    self._provenance = replace(self.privacy_report_, notes=(f"up to {X.max():.6g}",))


def _warn_of_a_row(self: Any, X: Any) -> None:
    text = f"this row is far: {X[0].tolist()}"
    warnings.warn(text, UtilityWarning, stacklevel=2)


def _log_the_size(self: Any, X: Any) -> None:
    logging.getLogger("sklearn_dp").debug("fitted %d rows", len(X))


def _show_a_sign(self: Any, X: Any) -> None:
    self.positive_ = bool(len(X) and X[0, 0] > 0)


def _show_the_scale(self: Any, X: Any) -> None:
    self.scale_ = float(np.frexp(np.abs(X).max(initial=1.0))[1])


for _name, _check, _spoil in (
    # A row that was kept "for later": the bytes are in every copy of the model.
    ("data in the pickle", "check_no_leaks", _keep_a_row),
    # A note that helps, with the largest value of the data in it.
    ("data in the report", "check_no_leaks", _report_a_value),
    # Warnings go to logs, which others read.
    ("data in a warning", "check_no_leaks", _warn_of_a_row),
    # n is no release: whether somebody is in the data would show in it.
    ("number of rows printed", "check_replay", lambda self, X: print(f"fitted {len(X)} rows")),
    # At a level that nobody has turned on, until somebody does.
    ("number of rows logged", "check_replay", _log_the_size),
    # One bit of one row: no search for values can find it, a replay does.
    ("the first row's sign shown", "check_replay", _show_a_sign),
    # Only the exponent: a neighbor that is far out changes it.
    ("the scale of the data shown", "check_replay", _show_the_scale),
    # A clone of the fitted object would go on with what the fit has seen.
    (
        "parameters changed by a fit",
        "check_parameters_are_kept",
        lambda self, X: setattr(self, "bounds", 1.0),
    ),
):
    mutant(_name, _check, BaseDPEstimator, "_fit_session")(
        after_fit(lambda self, X, session, spoil=_spoil: spoil(self, X))
    )


# Sizes of groups are as private as rows.
@mutant("the largest group shown", "check_replay", BaseDPEstimator, "_fit_session")
def _(original: Callable[..., Any]) -> Any:
    def fit_session(self: Any, X: Any, units: Any, session: Any, **options: Any) -> Any:
        result = original(self, X, units, session, **options)
        self.largest_ = 1 if units.index is None else int(np.bincount(units.index).max(initial=0))
        return result

    return fit_session


def _forgetful(original: Callable[..., Any]) -> Any:
    return lambda self: {name: value for name, value in original(self).items() if name != "_total"}


# A pickle may be clean and the object not: who has the object has the sum.
MUTANTS.append(
    Mutant(
        "a sum in memory that pickles leave out",
        ("check_replay",),
        (
            (
                BaseDPEstimator,
                "_fit_session",
                after_fit(
                    lambda self, X, session: setattr(self, "_total", float(np.tanh(X).sum()))
                ),
            ),
            (BaseDPEstimator, "__getstate__", _forgetful),
        ),
    )
)


# The repr of an estimator is printed in errors, logs and notebooks.
MUTANTS.append(
    Mutant(
        "data in the repr",
        ("check_no_leaks",),
        (
            (
                BaseDPEstimator,
                "_fit_session",
                after_fit(lambda self, X, session: setattr(self, "_first", float(X[0, 0]))),
            ),
            (
                BaseEstimator,
                "__repr__",
                lambda original: lambda self: f"{original(self)} {getattr(self, '_first', '')}",
            ),
        ),
    )
)


# An error that depends on n tells n, and one row decides it.
@mutant("few rows refused", "check_small_data", BaseDPEstimator, "_fit_session")
def _(original: Callable[..., Any]) -> Any:
    def fit_session(self: Any, X: Any, units: Any, session: Any, **options: Any) -> Any:
        if len(X) < 3:
            raise ValueError("X has too few rows.")
        return original(self, X, units, session, **options)

    return fit_session


# A prediction is post-processing: what it leaves behind would be in the next pickle.
@mutant(
    "predictions leave something", "check_prediction_is_free", BaseDPEstimator, "_validate_predict"
)
def _(original: Callable[..., Any]) -> Any:
    def validate_predict(self: Any, X: Any) -> Any:
        X = original(self, X)
        self.n_asked_ = len(X)
        return X

    return validate_predict


# The state is public, but what it makes of an overflow is a fact about a row.
@mutant(
    "numpy's error state shown",
    "check_numpy_error_state_has_no_effect",
    BaseDPEstimator,
    "_fit_validated",
)
def _(original: Callable[..., Any]) -> Any:
    def fit_validated(self: Any, X: Any, *rest: Any, **options: Any) -> Any:
        treatment = np.geterr()["over"]
        result = original(self, X, *rest, **options)
        self.treatment_ = treatment
        return result

    return fit_validated
