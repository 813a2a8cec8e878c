"""Data that a fit shows, and input that it refuses."""

import logging
import warnings
from dataclasses import replace

import numpy as np
from sklearn.base import BaseEstimator

from ..._base import BaseDPEstimator
from ...exceptions import UtilityWarning
from .._mutation import MUTANTS, Mutant, after_fit, mutant


@mutant("labels in the pickle", "check_pickle", BaseDPEstimator, "_not_released")
def _(original):
    return ()


@mutant("labels in the HTML display", "check_replay", BaseDPEstimator, "_get_fitted_attr_html")
def _(original):
    return lambda self, doc_link="": BaseEstimator._get_fitted_attr_html(self, doc_link)


@mutant("data in the pickle", "check_no_leaks", BaseDPEstimator, "_fit_session")
@after_fit
def _(self, X, session):
    self.first_ = X[:1].copy()


@mutant("data in the report", "check_no_leaks", BaseDPEstimator, "_fit_session")
@after_fit
def _(self, X, session):
    self.privacy_report_ = replace(self.privacy_report_, notes=(f"up to {X.max():.6g}",))


@mutant("data in a warning", "check_no_leaks", BaseDPEstimator, "_fit_session")
@after_fit
def _(self, X, session):
    warnings.warn(f"this row is far: {X[0].tolist()}", UtilityWarning, stacklevel=2)


@mutant("number of rows printed", "check_replay", BaseDPEstimator, "_fit_session")
@after_fit
def _(self, X, session):
    print(f"fitted {len(X)} rows")


@mutant("number of rows logged", "check_replay", BaseDPEstimator, "_fit_session")
@after_fit
def _(self, X, session):
    logging.getLogger("sklearn_dp").debug("fitted %d rows", len(X))


@mutant("the first row's sign shown", "check_replay", BaseDPEstimator, "_fit_session")
@after_fit
def _(self, X, session):
    self.positive_ = bool(len(X) and X[0, 0] > 0)


@mutant("the scale of the data shown", "check_replay", BaseDPEstimator, "_fit_session")
@after_fit
def _(self, X, session):
    self.scale_ = float(np.frexp(np.abs(X).max(initial=1.0))[1])


@mutant("the largest group shown", "check_replay", BaseDPEstimator, "_fit_session")
def _(original):
    def fit_session(self, X, units, session):
        result = original(self, X, units, session)
        self.largest_ = 1 if units.index is None else int(np.bincount(units.index).max(initial=0))
        return result

    return fit_session


def _forgetful(original):
    return lambda self: {name: value for name, value in original(self).items() if name != "_total"}


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


@mutant("parameters changed by a fit", "check_parameters_are_kept", BaseDPEstimator, "_fit_session")
@after_fit
def _(self, X, session):
    self.bounds = 1.0


@mutant("few rows refused", "check_small_data", BaseDPEstimator, "_fit_session")
def _(original):
    def fit_session(self, X, units, session):
        if len(X) < 3:
            raise ValueError("X has too few rows.")
        return original(self, X, units, session)

    return fit_session
