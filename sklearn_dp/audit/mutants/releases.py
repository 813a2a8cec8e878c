"""Scales and sensitivities that are too small, and control flow on what is private."""

import warnings

import numpy as np

from ..._base import BaseDPEstimator
from ..._privacy._session import PrivacySession
from ..._privacy._units import Units
from ..._privacy.laws import gaussian
from ...exceptions import UtilityWarning
from .._mutation import after_fit, mutant


@mutant("sigma too small by 1.25", "check_replay", gaussian, "sigma_of")
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


@mutant("value released without noise", "check_replay", PrivacySession, "gaussian")
def _(original):
    def gaussian(self, entry, value, *, unit=1.0, **options):
        original(self, entry, value, unit=unit, **options)
        return np.asarray(value, dtype=float) * np.asarray(unit)

    return gaussian


@mutant("empty release skipped", "check_replay", PrivacySession, "gaussian")
def _(original):
    def gaussian(self, entry, value, **options):
        if not np.any(value):
            return np.zeros(np.shape(value))
        return original(self, entry, value, **options)

    return gaussian


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
@after_fit
def _(self, X, session):
    self.status_ = "ok" if len(X) % 2 else "an even number of rows"


@mutant("warning about the true n", "check_replay", BaseDPEstimator, "_fit_session")
@after_fit
def _(self, X, session):
    warnings.warn(f"this is little: {len(X)} rows", UtilityWarning, stacklevel=2)
