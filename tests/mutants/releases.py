"""Scales and sensitivities that are too small, and control flow on what is unreleased.

They change what an estimator asks of its session, as a mistake in the estimator would: the claim
goes wrong, and the statistic stays as it is. A replay has to find a pair of neighbors that moves
it by more than is claimed, so an estimator whose claims are loose by a quarter would let "too small
by 1.25" live.

The factor 1.25 is close to one on purpose. Mutants that are wrong by a factor of ten would be
killed by a weak audit too. With 1.25 a pair of neighbors has to move the statistic by more than
four fifths of the original claim.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from sklearn_dp._aggregate.kmeans import fit_context
from sklearn_dp._base import BaseDPEstimator
from sklearn_dp._privacy import _session
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._units import Units, exact_of
from sklearn_dp._privacy.mechanisms import filters, stability
from sklearn_dp._privacy.mechanisms.stability import UnitDraws
from sklearn_dp._status import Message, Status
from sklearn_dp.exceptions import UtilityWarning

from .changes import after_fit
from .planting import mutant


# A factor of the formula, as in published code: 1.25 where the tail bound has it, and not
# elsewhere.
@mutant("sigma too small by 1.25", "check_replay", _session, "sigma_of")
def _(original: Callable[..., Any]) -> Any:
    return lambda sensitivity, rho: original(sensitivity, rho) / 1.25


# A proof that forgot a case.
@mutant("sensitivity too small by 1.25", "check_replay", PrivacySession, "gaussian")
def _(original: Callable[..., Any]) -> Any:
    def gaussian(self: Any, entry: str, value: Any, *, sensitivity: Any, **options: Any) -> Any:
        return original(self, entry, value, sensitivity=np.asarray(sensitivity) / 1.25, **options)

    return gaussian


# Local sensitivity: the noise itself then tells how large the data are.
@mutant("sensitivity from the data", "check_replay", PrivacySession, "gaussian")
def _(original: Callable[..., Any]) -> Any:
    def gaussian(self: Any, entry: str, value: Any, *, sensitivity: Any, **options: Any) -> Any:
        local = max(1.0, float(np.abs(np.asarray(value, dtype=float)).max(initial=0.0)))
        return original(self, entry, value, sensitivity=local, **options)

    return gaussian


# The same for histograms, whose comparison is another one.
@mutant("cells: sensitivity too small by 1.25", "check_replay", _session, "sparse")
def _(original: Callable[..., Any]) -> Any:
    def sparse(*args: Any, sensitivity: Any, **options: Any) -> Any:
        return original(*args, sensitivity=sensitivity / 1.25, **options)

    return sparse


# Every row of a large group counts fully: its unit moves sums by more than one unit may.
@mutant("group weight ignored", "check_replay", Units, "__init__")
def _(original: Callable[..., Any]) -> Any:
    def init(self: Any, n_rows: int, groups: Any = None) -> None:
        original(self, n_rows, groups)
        if groups is not None:
            self.weights = np.full(self.n_rows, self.scale)

    return init


# The classic: scale to the largest row, and claim bounds of one.
@mutant("bounds from the data", "check_replay", BaseDPEstimator, "_fit_session")
def _(original: Callable[..., Any]) -> Any:
    def fit_session(self: Any, X: Any, units: Any, session: Any, **options: Any) -> Any:
        before, self.bounds = self.bounds, float(np.abs(X).max(initial=1.0))
        try:
            return original(self, X, units, session, **options)
        finally:
            self.bounds = before

    return fit_session


# The release is paid for, recorded and reported, and its exact value used.
@mutant("value released without noise", "check_replay", PrivacySession, "gaussian")
def _(original: Callable[..., Any]) -> Any:
    def gaussian(self: Any, entry: str, value: Any, *, unit: float = 1.0, **options: Any) -> Any:
        original(self, entry, value, unit=unit, **options)
        return np.asarray(value, dtype=float) * np.asarray(unit)

    return gaussian


# Control flow on the exact statistic: that nothing was released tells that it was zero.
@mutant("empty release skipped", "check_replay", PrivacySession, "gaussian")
def _(original: Callable[..., Any]) -> Any:
    def gaussian(self: Any, entry: str, value: Any, **options: Any) -> Any:
        if not np.any(value):
            return np.zeros(np.shape(value))
        return original(self, entry, value, **options)

    return gaussian


# The noisy histogram is drawn, and the exact one goes on.
@mutant("cells without noise", "check_replay", fit_context, "release_cells")
def _(original: Callable[..., Any]) -> Any:
    def release_cells(session: Any, entry: str, sealed: Any, **options: Any) -> Any:
        original(session, entry, sealed, **options)
        cells, counts = exact_of(sealed)
        return cells, counts * float(sealed.claim.unit)

    return release_cells


# A unit that is removed moves all others into other blocks.
@mutant("draws that hang on the number of units", "check_replay", stability, "addressed_draws")
def _(original: Callable[..., Any]) -> Any:
    return lambda self, n_units, tag="units": UnitDraws(self._algorithm_seed, f"{tag} {n_units}")


# Who survives is then a fact about the data, whatever the average does later.
@mutant("friendly core without noise", "check_replay", filters, "friendly_core_filter")
def _(original: Callable[..., Any]) -> Any:
    def friendly_core_filter(self: Any, *args: Any, sigma: Any, **options: Any) -> Any:
        return original(self, *args, sigma=1e-3, **options)

    return friendly_core_filter


# A score moves by one; with less claimed, the noise is for another theorem.
@mutant("friendly core: sensitivity too small", "check_replay", filters, "friendly_core_filter")
def _(original: Callable[..., Any]) -> Any:
    def friendly_core_filter(self: Any, *args: Any, sensitivity: Any, **options: Any) -> Any:
        return original(self, *args, sensitivity=sensitivity / 1.25, **options)

    return friendly_core_filter


# A helpful status that is decided by the exact n.
@mutant("status from the true n", "check_replay", BaseDPEstimator, "_fit_session")
@after_fit
def _(self: Any, X: Any, session: Any) -> None:
    self.messages_ = Status([Message("even", "an even number of rows")][len(X) % 2 :])


# The same in a warning of the right kind.
@mutant("warning about the true n", "check_replay", BaseDPEstimator, "_fit_session")
@after_fit
def _(self: Any, X: Any, session: Any) -> None:
    warnings.warn(f"this is little: {len(X)} rows", UtilityWarning, stacklevel=2)
