"""Seeded bugs: an audit that has never caught anything proves nothing.

A mutant breaks one thing in the kernel or in the base class, for as long as its context lasts. The
checks that it names must then fail for every estimator that reaches the broken code. Never plant
one outside a test.
"""

import sys
import warnings
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

import numpy as np
from sklearn.base import BaseEstimator

from .. import _base
from .._base import BaseDPEstimator
from .._privacy import _grid, _mechanisms, _session
from .._privacy._domain import Domain
from .._privacy._mechanisms import Units
from .._privacy._noise import NoiseSource
from .._privacy._session import PrivacySession
from ..exceptions import UtilityWarning
from ._checks import CHECKS, check_data, check_groups
from ._observe import accepts_groups, prepared, run_fit

__all__ = ["MUTANTS", "Mutant", "killer", "mutant"]

MUTANTS = []
"""All registered mutants."""


@dataclass(frozen=True)
class Mutant:
    """One bug.

    Attributes
    ----------
    name : str
    killed_by : tuple of str
        Names of checks, of which at least one must fail.
    changes : tuple of (owner, attribute, change)
        `owner` is a class or a module; ``change(original)`` is what takes the attribute's place. A
        function of a module is replaced wherever the package has imported it.
    """

    name: str
    killed_by: tuple
    changes: tuple

    @contextmanager
    def planted(self):
        """Break the code inside this context; yields a list that fills when it is reached."""
        reached = []
        with ExitStack() as stack:
            for owner, attribute, change in self.changes:
                broken = _noting(change(getattr(owner, attribute)), reached)
                for place, name in _bindings(owner, attribute):
                    stack.enter_context(_replaced(place, name, broken))
            yield reached


def mutant(name, killed_by, owner, attribute):
    """Register the decorated change as a mutant; see :class:`Mutant`."""

    def register(change):
        MUTANTS.append(Mutant(name, tuple(killed_by.split()), ((owner, attribute, change),)))
        return change

    return register


def killer(bug, estimator):
    """The check that kills a mutant.

    Parameters
    ----------
    bug : Mutant
    estimator : estimator of this package

    Returns
    -------
    check : str or None
        Name of the first check that fails; "not reached" if the estimator does not run the
        broken code; None if the mutant survives.
    """
    with bug.planted() as reached:
        _visit(estimator)
        if not reached:
            return "not reached"
        for check in CHECKS:
            if check.__name__ in bug.killed_by and _fails(check, estimator):
                return check.__name__
    return None


def _visit(estimator):
    """Run once what the checks run often: their sizes of data, groups, bounds, displays, errors."""
    bounded = prepared(estimator, bounds=1.0)
    for copy, X in ((prepared(estimator), check_data(400)), (bounded, check_data(20)),
                    (prepared(estimator), check_data(30, d=12)), (bounded, 1j * check_data(20))):
        outcome = run_fit(copy, X)
        if outcome.error is None:
            outcome.face(html=True)
    if accepts_groups(estimator):
        run_fit(prepared(estimator), check_data(20), check_groups(20))


def _fails(check, estimator):
    try:
        check(estimator)
    except Exception:  # a crash is a catch too
        return True
    return False


def _noting(function, reached):
    if not callable(function):
        reached.append(True)
        return function

    def noted(*args, **options):
        reached.append(True)
        return function(*args, **options)

    return noted


def _bindings(owner, attribute):
    """An attribute of a class, or all names in the package for a function."""
    if isinstance(owner, type):
        return [(owner, attribute)]
    original, package = getattr(owner, attribute), __package__.split(".")[0]
    return [(module, name) for key, module in list(sys.modules.items())
            if key.split(".")[0] == package
            for name, value in list(vars(module).items()) if value is original]


@contextmanager
def _replaced(owner, attribute, value):
    before = vars(owner)[attribute]
    setattr(owner, attribute, value)
    try:
        yield
    finally:
        setattr(owner, attribute, before)


def _after_fit(change):
    """Let `change(estimator, X, session)` spoil what a fit leaves."""

    def wrap(original):
        def fit(self, X, units, session):
            result = original(self, X, units, session)
            change(self, X, session)
            return result

        return fit

    return wrap


# -- noise -----------------------------------------------------------------------------------------


@mutant("noise halved", "check_noise_law", NoiseSource, "rounded_gaussian")
def _(original):
    return lambda self, sigma, size=None: original(self, np.asarray(sigma) / 2, size)


@mutant("noise forgotten", "check_noise_law", NoiseSource, "rounded_gaussian")
def _(original):
    return lambda self, sigma, size=None: 0 * original(self, sigma, size)


@mutant("noise of one sign", "check_noise_law", NoiseSource, "rounded_gaussian")
def _(original):
    return lambda self, sigma, size=None: np.abs(original(self, sigma, size))


@mutant("same noise twice", "check_noise_law", NoiseSource, "rounded_gaussian")
def _(original):
    return lambda self, sigma, size=None: original(NoiseSource(1), sigma, size)


@mutant("Laplace noise halved", "check_noise_law", NoiseSource, "rounded_laplace")
def _(original):
    return lambda self, scale, size=None: original(self, np.asarray(scale) / 2, size)


@mutant("selection too sharp", "check_noise_law", NoiseSource, "exponential_choice")
def _(original):
    return lambda self, gaps, rate: original(self, gaps, 2 * rate)


@mutant("noise seeded without a seed", "check_noise_is_fresh", _session, "_seed_of")
def _(original):
    return lambda random_state: 0 if random_state is None else original(random_state)


@mutant("noise from numpy's global generator", "check_noise_is_fresh", _session, "_seed_of")
def _(original):
    def seed_of(random_state):
        state = np.random.randint(2**31) if random_state is None else random_state  # noqa: NPY002
        return original(state)

    return seed_of


@mutant("noise seeded by n_jobs", "check_n_jobs_has_no_effect", BaseDPEstimator, "_open_session")
def _(original):
    def open_session(self, X, unit):
        before, self.random_state = self.random_state, self.random_state + (self.n_jobs or 1)
        try:
            return original(self, X, unit)
        finally:
            self.random_state = before

    return open_session


@mutant("seed kept quiet", "check_seeded_noise_is_told", PrivacySession, "report")
def _(original):
    return lambda self: replace(original(self), noise="system")


# -- scales and sensitivities ----------------------------------------------------------------------


@mutant("sigma too small by 1.25", "check_replay", _session, "_sigma")
def _(original):
    return lambda sensitivity, rho: original(sensitivity, rho) / 1.25


@mutant("sensitivity too small by 1.25", "check_replay", PrivacySession, "gaussian")
def _(original):
    def gaussian(self, entry, value, *, sensitivity, **options):
        return original(self, entry, value, sensitivity=np.asarray(sensitivity) / 1.25, **options)

    return gaussian


@mutant("sensitivity from the data", "check_replay", PrivacySession, "gaussian")
def _(original):
    def gaussian(self, entry, value, *, sensitivity, **options):
        local = max(1.0, float(np.abs(np.asarray(value, dtype=float)).max(initial=0.0)))
        return original(self, entry, value, sensitivity=local, **options)

    return gaussian


@mutant("cells: sensitivity too small by 1.25", "check_replay", PrivacySession, "sparse_histogram")
def _(original):
    def sparse_histogram(self, *args, sensitivity, **options):
        return original(self, *args, sensitivity=sensitivity / 1.25, **options)

    return sparse_histogram


@mutant("clip skipped", "check_replay", _grid, "clip_integer_rows")
def _(original):
    return lambda rows, limit, norms_squared=None: rows


@mutant("clip limit from the data", "check_replay", _mechanisms, "vector_sum")
def _(original):
    def vector_sum(session, entry, rows, limit, units, **options):
        largest = float(np.sqrt(np.square(rows).sum(axis=1).max(initial=1.0)))
        return original(session, entry, rows, min(limit, largest), units, **options)

    return vector_sum


@mutant("group weight ignored", "check_replay", Units, "__init__")
def _(original):
    def init(self, n_rows, groups=None):
        original(self, n_rows, groups)
        if groups is not None:
            self.weights = np.full(self.n_rows, self.scale)

    return init


@mutant("bounds from the data", "check_replay", BaseDPEstimator, "_fit_session")
def _(original):
    def fit_session(self, X, units, session):
        before, self.bounds = self.bounds, float(np.abs(X).max(initial=1.0))
        try:
            return original(self, X, units, session)
        finally:
            self.bounds = before

    return fit_session


# -- control flow on what is private ---------------------------------------------------------------


@mutant("value released without noise", "check_replay", PrivacySession, "gaussian")
def _(original):
    def gaussian(self, entry, value, *, unit=1.0, **options):
        original(self, entry, value, unit=unit, **options)
        return np.asarray(value, dtype=float) * np.asarray(unit)

    return gaussian


@mutant("raw count used", "check_replay", _mechanisms, "count")
def _(original):
    return lambda session, entry, units, rho=None: float(units.n_rows)


@mutant("raw histogram used", "check_replay", _mechanisms, "histogram")
def _(original):
    def histogram(session, entry, cells, n_cells, units, rho=None):
        return _mechanisms.weighted_bincount(cells, units, n_cells) * units.step

    return histogram


@mutant("empty release skipped", "check_replay", PrivacySession, "gaussian")
def _(original):
    def gaussian(self, entry, value, **options):
        if not np.any(value):
            return np.zeros(np.shape(value))
        return original(self, entry, value, **options)

    return gaussian


@mutant("cells published by their true count", "check_noise_law", _session, "_dense_cells")
def _(original):
    def dense_cells(noise, codes, counts, n_candidates, sigma, low):
        return codes, counts + noise.rounded_gaussian(sigma, codes.shape)  # sessions' own noise

    return dense_cells


@mutant("cells without noise", "check_replay", PrivacySession, "sparse_histogram")
def _(original):
    def sparse_histogram(self, entry, codes, counts, *, unit=1.0, **options):
        original(self, entry, codes, counts, unit=unit, **options)
        order = np.argsort(codes)
        return codes[order], counts[order] * float(unit)

    return sparse_histogram


@mutant("blocks by position", "check_replay", PrivacySession, "blocks")
def _(original):
    return lambda self, n_units, n_blocks: np.arange(n_units) % n_blocks


@mutant("friendly core without noise", "check_replay", PrivacySession, "unit_filter")
def _(original):
    def unit_filter(self, *args, sigma, **options):
        return original(self, *args, sigma=1e-3, **options)

    return unit_filter


@mutant("friendly core: sensitivity too small", "check_replay", PrivacySession, "unit_filter")
def _(original):
    def unit_filter(self, *args, sensitivity, **options):
        return original(self, *args, sensitivity=sensitivity / 1.25, **options)

    return unit_filter


@mutant("status from the true n", "check_replay", BaseDPEstimator, "_fit_session")
@_after_fit
def _(self, X, session):
    self.status_ = "ok" if len(X) % 2 else "an even number of rows"


@mutant("warning about the true n", "check_replay", BaseDPEstimator, "_fit_session")
@_after_fit
def _(self, X, session):
    warnings.warn(f"this is little: {len(X)} rows", UtilityWarning, stacklevel=2)


# -- money -----------------------------------------------------------------------------------------


def _release_twice(original):
    def gaussian(self, entry, value, **options):
        return (original(self, entry, value, **options)
                + original(self, entry, value, **options)) / 2

    return gaussian


MUTANTS.append(Mutant(
    "every share spent twice", ("check_replay",),
    ((PrivacySession, "_charge", lambda original: lambda self, name, rho, delta=0.0: None),
     (PrivacySession, "gaussian", _release_twice))))


@mutant("release left out of the report", "check_replay", PrivacySession, "_note")
def _(original):
    return lambda self, *args: None if self._log else original(self, *args)


@mutant("budget shares swapped", "check_replay", PrivacySession, "_cost")
def _(original):
    return lambda self, name, rho: max(map(self.remaining, self._accounts))


@mutant("ledger not charged", "check_cost_is_independent_of_data", PrivacySession,
        "_charge_ledger")
def _(original):
    return lambda self, ledger, label: None


@mutant("ledger charged twice", "check_cost_is_independent_of_data", PrivacySession,
        "_charge_ledger")
def _(original):
    return lambda self, ledger, label: (original(self, ledger, label),
                                        original(self, ledger, label))


@mutant("charge depends on n", "check_cost_is_independent_of_data", BaseDPEstimator,
        "_open_session")
def _(original):
    def open_session(self, X, unit):
        before, self.delta = self.delta, self.delta / (1 + len(X) // 100)
        try:
            return original(self, X, unit)
        finally:
            self.delta = before

    return open_session


@mutant("failed fit refunded", "check_ledger_is_charged_before_data", BaseDPEstimator,
        "_fit_validated")
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


MUTANTS.append(Mutant(
    "ledger charged after the fit", ("check_ledger_is_charged_before_data",),
    ((PrivacySession, "__init__", _charge_later),
     (BaseDPEstimator, "_fit_session",
      _after_fit(lambda self, X, session: session._charge_ledger(*session._unpaid))))))


# -- what is shown ---------------------------------------------------------------------------------


@mutant("labels in the pickle", "check_pickle", BaseDPEstimator, "_not_released")
def _(original):
    return ()


@mutant("labels in the HTML display", "check_replay", BaseDPEstimator, "_get_fitted_attr_html")
def _(original):
    return lambda self, doc_link="": BaseEstimator._get_fitted_attr_html(self, doc_link)


@mutant("data in the pickle", "check_no_leaks", BaseDPEstimator, "_fit_session")
@_after_fit
def _(self, X, session):
    self.first_ = X[:1].copy()


@mutant("data in the report", "check_no_leaks", BaseDPEstimator, "_fit_session")
@_after_fit
def _(self, X, session):
    self.privacy_report_ = replace(self.privacy_report_, notes=(f"up to {X.max():.6g}",))


@mutant("data in a warning", "check_no_leaks", BaseDPEstimator, "_fit_session")
@_after_fit
def _(self, X, session):
    warnings.warn(f"this row is far: {X[0].tolist()}", UtilityWarning, stacklevel=2)


@mutant("data in errors", "check_no_leaks", _base, "_without_data")
def _(original):
    return lambda message: message


MUTANTS.append(Mutant(
    "data in the repr", ("check_no_leaks",),
    ((BaseDPEstimator, "_fit_session",
      _after_fit(lambda self, X, session: setattr(self, "_first", float(X[0, 0])))),
     (BaseEstimator, "__repr__",
      lambda original: lambda self: f"{original(self)} {getattr(self, '_first', '')}"))))


# -- parameters and refusals -----------------------------------------------------------------------


@mutant("parameters changed by a fit", "check_parameters_are_kept", BaseDPEstimator,
        "_fit_session")
@_after_fit
def _(self, X, session):
    self.bounds = 1.0


@mutant("rows out of bounds refused", "check_rows_out_of_bounds_are_clipped", Domain,
        "center_rows")
def _(original):
    def center_rows(self, X):
        if np.abs(X - self.center).max(initial=0.0) > self.radius:
            raise ValueError("X exceeds bounds.")
        return original(self, X)

    return center_rows


@mutant("few rows refused", "check_small_data", BaseDPEstimator, "_fit_session")
def _(original):
    def fit_session(self, X, units, session):
        if len(X) < 3:
            raise ValueError("X has too few rows.")
        return original(self, X, units, session)

    return fit_session
