"""Run a fit for an audit, and collect everything that it shows to the world."""

import inspect
import pickle
import re
import warnings
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
from sklearn.base import clone

from .._privacy._tape import tape
from .._sklearn_compat import with_callbacks
from ..exceptions import PrivacyWarning, UtilityWarning

__all__ = ["Outcome", "accepts_groups", "n_features_of", "prepared", "run_fit"]


def prepared(estimator, **params):
    """A clone to experiment on: it charges no ledger, and its noise is reproducible."""
    copy = clone(estimator)
    return copy.set_params(**{"ledger": None, "random_state": 0, **params})


def accepts_groups(estimator):
    """Whether the estimator knows privacy units of several rows."""
    return "groups" in inspect.signature(estimator.fit).parameters


def n_features_of(X):
    """Number of columns; also of an array without rows."""
    return int(np.shape(X)[1])


@dataclass(frozen=True)
class Outcome:
    """A fit that was run, and what it showed.

    Attributes
    ----------
    estimator : estimator
        Fitted, unless there is an error.
    warnings : tuple of (category, text)
    error : Exception or None
    """

    estimator: object
    warnings: tuple
    error: Exception | None

    def face(self, html=False):
        """Everything shown, by name: pickle, texts, warnings, error.

        Parameters
        ----------
        html : bool, default=False
            Also render the HTML display (slow).
        """
        error = "" if self.error is None else f"{self.error!r} {self.error.__context__!r}"
        shown = {"error": error, "warnings": "\n".join(
            f"{kind.__name__}: {text}" for kind, text in self.warnings)}
        if self.error is None:
            shown |= {"pickle": pickle.dumps(self.estimator, protocol=5),
                      "repr": f"{self.estimator!r} {self.estimator}",
                      "report": repr(self.estimator.privacy_report_)}
            if html:
                shown["html"] = _html(self.estimator)
        return shown


def _html(estimator):
    """HTML displays of an estimator and its report, without their running numbers."""
    text = estimator._repr_html_() + estimator.privacy_report_._repr_html_()
    return re.sub(r"sk-[a-z-]*id-\d+", "", text)


def run_fit(estimator, X, groups=None, *, internal=False, recorder=None, strict=True):
    """Fit `estimator` in place and note what happens.

    Parameters
    ----------
    estimator : estimator
    X : ndarray of shape (n_samples, n_features)
    groups : array-like of shape (n_samples,), optional
    internal : bool, default=False
        Leave out scikit-learn's validation, which refuses an empty `X`: the guarantee covers the
        empty data set too.
    recorder : Tape or Replay, optional
    strict : bool, default=True
        Fit as the strictest user would: all warnings are errors but the package's own, which
        depend on releases only, and numpy raises whatever it can. What overflows on one of two
        neighbours then is an error on one of them.

    Returns
    -------
    outcome : Outcome
    """
    error = None
    numeric = np.errstate(all="raise") if strict else nullcontext()
    with warnings.catch_warnings(record=True) as caught, tape(recorder), numeric:
        warnings.simplefilter("error" if strict else "always")
        for kind in (PrivacyWarning, UtilityWarning):
            warnings.simplefilter("always", kind)
        try:
            (_fit_internal if internal else _fit_public)(estimator, X, groups)
        except Exception as raised:  # whatever a fit raises is a finding, for the caller to judge
            error = raised
    shown = tuple((item.category, str(item.message)) for item in caught)
    return Outcome(estimator, shown, error)


def _fit_public(estimator, X, groups):
    estimator.fit(X, **({} if groups is None else {"groups": groups}))


@with_callbacks  # which tidies up what belongs to scikit-learn
def _fit_internal(estimator, X, groups):
    session = estimator._open_session(X, "row" if groups is None else "group")
    estimator.n_features_in_ = n_features_of(X)
    estimator._fit_session(X, estimator._units(X, groups), session)
