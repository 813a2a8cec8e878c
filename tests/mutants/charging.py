"""Seeded bugs of the session and of the base class: charges that do not fit what is released."""

from dataclasses import replace

from sklearn_dp._base import BaseDPEstimator
from sklearn_dp._costs.ledger_terms import LedgerTerms
from sklearn_dp._privacy._session import PrivacySession

from .changes import after_fit
from .planting import MUTANTS, Mutant, mutant


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
    def open_session(self, X, unit, **public):
        before, self.delta = self.delta, self.delta / (1 + len(X) // 100)
        try:
            return original(self, X, unit, **public)
        finally:
            self.delta = before

    return open_session


@mutant(
    "failed fit refunded", "check_ledger_is_charged_before_data", BaseDPEstimator, "_fit_validated"
)
def _(original):
    def fit_validated(self, X, *rest, **options):
        try:
            return original(self, X, *rest, **options)
        except Exception:
            if self.ledger is not None:
                book = self.ledger._book
                book._state = replace(book._state, charges=book._state.charges[:-1])
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


@mutant("data in errors", "check_no_leaks", BaseDPEstimator, "_schema")
def _(original):
    def quoting(self, X):
        try:
            return original(self, X)
        except (TypeError, ValueError):
            raise ValueError(f"bad: {X}") from None

    return quoting


@mutant("an exhausted ledger allows more", "check_exhausted_ledger_refuses", LedgerTerms, "admit")
def _(original):
    return lambda self, charge, spent: None
