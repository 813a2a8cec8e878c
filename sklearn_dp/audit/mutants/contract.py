"""Charges that do not fit the cost, data that are shown, and input that is refused."""

import logging
import warnings
from dataclasses import replace

import numpy as np
from sklearn.base import BaseEstimator

from ... import _base
from ..._base import BaseDPEstimator
from ..._privacy._session import PrivacySession
from ...exceptions import UtilityWarning
from .._mutation import MUTANTS, Mutant, after_fit, mutant


def _release_twice(original):
    def gaussian(self, entry, value, **options):
        return (
            original(self, entry, value, **options) + original(self, entry, value, **options)
        ) / 2

    return gaussian


MUTANTS.append(
    Mutant(
        "every share spent twice",
        ("check_replay",),
        (
            (PrivacySession, "_charge", lambda original: lambda self, name, rho, delta=0.0: None),
            (PrivacySession, "gaussian", _release_twice),
        ),
    )
)


@mutant("release left out of the report", "check_replay", PrivacySession, "_note")
def _(original):
    return lambda self, *args: None if self._log else original(self, *args)


@mutant("budget shares swapped", "check_replay", PrivacySession, "_cost")
def _(original):
    return lambda self, name, rho: max(self.remaining(entry.name) for entry in self.plan.entries)


@mutant("ledger not charged", "check_cost_is_independent_of_data", PrivacySession, "_charge_ledger")
def _(original):
    return lambda self, ledger, label: None


@mutant(
    "ledger charged twice", "check_cost_is_independent_of_data", PrivacySession, "_charge_ledger"
)
def _(original):
    return lambda self, ledger, label: (
        original(self, ledger, label),
        original(self, ledger, label),
    )


@mutant(
    "charge depends on n", "check_cost_is_independent_of_data", BaseDPEstimator, "_open_session"
)
def _(original):
    def open_session(self, X, unit):
        before, self.delta = self.delta, self.delta / (1 + len(X) // 100)
        try:
            return original(self, X, unit)
        finally:
            self.delta = before

    return open_session


@mutant(
    "failed fit refunded", "check_ledger_is_charged_before_data", BaseDPEstimator, "_fit_validated"
)
def _(original):
    def fit_validated(self, X, groups):
        try:
            return original(self, X, groups)
        except Exception:
            self.ledger._book._charges.pop()
            raise

    return fit_validated


def _charge_later(original):
    def init(self, plan, *, ledger=None, label="", **options):
        original(self, plan, label=label, **options)
        self._unpaid = ledger, label

    return init


MUTANTS.append(
    Mutant(
        "ledger charged after the fit",
        ("check_ledger_is_charged_before_data",),
        (
            (PrivacySession, "__init__", _charge_later),
            (
                BaseDPEstimator,
                "_fit_session",
                after_fit(lambda self, X, session: session._charge_ledger(*session._unpaid)),
            ),
        ),
    )
)


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


@mutant("data in errors", "check_no_leaks", _base, "_without_data")
def _(original):
    return lambda message: message


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
