"""Run a fit for an audit, and collect everything that it shows to the world.

What a fit shows is its *face*: pickle, attributes in memory, answers of all methods to public rows,
repr, report, warnings, prints, log, error. Two fits with the same releases have to have the same
face, byte by byte, whatever their data are: this is what :mod:`~sklearn_dp.audit._replay` compares.
"""

import inspect
import io
import pickle
import re
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import get_tags

from .._privacy._trace import trace
from .._silence.suppress_output import overheard
from .._sklearn_compat import with_callbacks
from ..exceptions import PrivacyWarning, UtilityWarning
from ._crashes import is_of_audit

__all__ = [
    "Outcome",
    "accepts_groups",
    "n_features_of",
    "n_features_seen",
    "prepared",
    "probe",
    "run_fit",
    "target_of",
]


def prepared(estimator: Any, **params: Any) -> Any:
    """A clone to experiment on, not fitted: it charges no ledger, and its noise is reproducible.

    The parameters may replace ``ledger=None`` and ``random_state=0``.
    """
    copy = clone(estimator)
    return copy.set_params(**{"ledger": None, "random_state": 0, **params})


def accepts_groups(estimator: Any) -> bool:
    """Whether the estimator knows privacy units of several rows."""
    return "groups" in inspect.signature(estimator.fit).parameters


def n_features_of(X: Any) -> int:
    """Number of columns; also of an array without rows."""
    return int(np.shape(X)[1])


def n_features_seen(estimator: Any, X: Any) -> int:
    """Number of columns that a fit learns from: without the one that holds a key."""
    return n_features_of(X) - (getattr(estimator, "by", None) is not None)


def target_of(estimator: Any, X: Any) -> np.ndarray | None:
    """A target for an estimator that needs one, or None.

    That of a row is a function of this row alone, so that neighbors agree about all others: for a
    classifier, one of its first two `classes` (0 and 1 without any), by the sign of the first
    feature; otherwise that feature.
    """
    if not get_tags(estimator).target_tags.required:
        return None
    first = np.asarray(getattr(X, "rows", X))[:, 0]  # watched rows are not looked at by this
    if not is_classifier(estimator):
        return np.array(first)
    classes = getattr(estimator, "classes", None)
    return np.asarray([0, 1] if classes is None else classes)[:2][(first > 0).astype(int)]


@dataclass(frozen=True)
class Outcome:
    """A fit that was run, and what it showed."""

    estimator: Any  # fitted, unless there is an error
    warnings: tuple[tuple[type[Warning], str], ...]  # category and text
    error: Exception | None
    printed: str = ""  # what went to the standard streams and to the log

    def face(self, html: bool = False) -> dict[str, Any]:
        """Everything shown, by name: pickle, memory, answers, texts, warnings, prints, error.

        To render the HTML display too is slow.
        """
        error = (
            ""
            if self.error is None
            else (f"{self.error!r} {self.error.__cause__!r} {self.error.__context__!r}")
        )
        shown: dict[str, str | bytes] = {
            "error": error,
            "printed": self.printed,
            "warnings": "\n".join(f"{kind.__name__}: {text}" for kind, text in self.warnings),
        }
        if self.error is None:
            shown |= {
                "pickle": pickle.dumps(self.estimator, protocol=5),
                "memory": _memory(self.estimator),
                "repr": _texts(self.estimator),
                "report": repr(self.estimator.privacy_report_),
                **_answers(self.estimator),
            }
            if html:
                html_text = self.estimator._repr_html_()
                html_text += self.estimator.privacy_report_._repr_html_()
                shown["html"] = re.sub(r"sk-[a-z-]*id-\d+", "", html_text)  # running numbers
        return shown


def _texts(estimator: Any) -> str:
    """What `repr` and `str` make of it: once, unless its class has a `str` of its own."""
    text, classes = repr(estimator), type(estimator).__mro__[:-1]
    return f"{text} {estimator}" if any("__str__" in vars(each) for each in classes) else text


def _memory(estimator: Any) -> bytes:
    """All attributes but those that are documented as no release, whatever a pickle leaves out.

    ``__getstate__`` decides what a pickle holds, so an estimator could keep a sum of the data in
    memory and hide it from every comparison of pickles.
    """
    return b"".join(
        _bytes((name, value))
        for name, value in sorted(vars(estimator).items())
        if name != "labels_"
    )


def _bytes(value: Any) -> bytes:
    """The same bytes for equal values, however they came to be."""
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, protocol=5)
    pickler.fast = True  # no memo: whether two equal strings are one object makes no difference
    pickler.dump(value)
    return buffer.getvalue()


# Methods that a fitted estimator has for public rows, or that need nothing.
_METHODS = (
    "predict",
    "predict_proba",
    "transform",
    "inverse_transform",
    "score",
    "score_samples",
    "decision_function",
    "mahalanobis",
    "get_precision",
    "get_feature_names_out",
    "aic",
    "bic",
)


def probe(n_features: int) -> np.ndarray:
    """Public rows to ask a fitted estimator about: small, large, zero, of either sign."""
    rows = np.sin(np.arange(1.0, 7 * n_features + 1)).reshape(7, n_features)
    return rows * np.array([0.0, 1e-3, 1.0, 3.0, 30.0, 1e3, 1e6])[:, None]


def _answers(estimator: Any) -> dict[str, Any]:
    """What every public method says about public rows.

    A method that keeps something of the data somewhere (a module, a cache by identity) would show
    it here, where neither pickle nor attributes do.
    """
    rows = probe(estimator.n_features_in_)
    return {
        name: _answer(getattr(estimator, name), rows)
        for name in _METHODS
        if hasattr(estimator, name)
    }


@lru_cache(maxsize=256)
def _takes_rows(function: Callable[..., Any]) -> bool:
    """Whether a method, as its class has it, takes rows."""
    return "X" in inspect.signature(function).parameters


def _answer(method: Callable[..., Any], rows: np.ndarray) -> bytes:
    """What one method of the fitted estimator returns, raises and warns of, as bytes.

    `rows` are for methods that take rows.
    """
    given = (rows,) if _takes_rows(getattr(method, "__func__", method)) else ()
    with overheard(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            answer = _bytes(method(*given))
        except Exception as error:  # an answer too, that may not depend on the data
            answer = repr(error).encode()
    return answer + "".join(str(item.message) for item in caught).encode()


def run_fit(
    estimator: Any,
    X: Any,
    groups: Any = None,
    *,
    internal: bool = False,
    recorder: Any = None,
    strict: bool = True,
) -> Outcome:
    """Fit `estimator` in place and note what happens.

    `internal` leaves out scikit-learn's validation, which refuses an empty `X`: the guarantee
    covers the empty data set too. `strict` fits as the strictest user would: all warnings are
    errors but the package's own, which depend on releases only, and numpy raises whatever it can.
    What overflows on one of two neighbors then is an error on one of them.

    Where the recorder fails by mistake, its exception is raised: the estimator is not to blame for
    it.
    """
    error = None
    numeric = np.errstate(all="raise") if strict else nullcontext()
    with (
        overheard() as heard,
        warnings.catch_warnings(record=True) as caught,
        trace(recorder),
        numeric,
    ):
        warnings.simplefilter("error" if strict else "always")
        for kind in (PrivacyWarning, UtilityWarning):
            warnings.simplefilter("always", kind)
        try:
            if internal:
                _fit_internal(estimator, X, groups)
            else:
                options = {"groups": groups, "y": target_of(estimator, X)}
                estimator.fit(X, **{k: v for k, v in options.items() if v is not None})
        except Exception as raised:  # whatever a fit raises is a finding, for the caller to judge
            if is_of_audit(raised, inside_fit=True):
                raise
            error = raised
    shown = tuple((item.category, str(item.message)) for item in caught)
    return Outcome(estimator, shown, error, heard.getvalue())


@with_callbacks  # which tidies up what belongs to scikit-learn
def _fit_internal(estimator: Any, X: Any, groups: Any) -> None:
    """A fit without scikit-learn's validation, which refuses no rows at all.

    The guarantee covers the empty data set: it is a neighbor of every single unit.
    """
    session = estimator._open_session(X, "row" if groups is None else "group")
    estimator.n_features_in_ = n_features_of(X)
    estimator._fit_session(X, estimator._units(X, groups), session)
