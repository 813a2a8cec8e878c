"""Every scikit-learn name that is private or that only some supported versions have: callbacks came
with 1.9; `fits_around` and `BlindToRows` know how searches and compositions work."""

import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
from scipy.sparse import csr_matrix, issparse
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import _safe_indexing

from ._costs.ledger_terms import LOGGER
from ._costs.numbers import warn
from ._version import __version__

try:  # scikit-learn >= 1.9
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback import with_callbacks as _with_callbacks
except ImportError:  # pragma: no cover - older scikit-learn
    _with_callbacks = None

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""

        def set_callbacks(self) -> Any:
            """There are none."""


_Method = TypeVar("_Method", bound=Callable)
_Estimator = TypeVar("_Estimator", bound=BaseEstimator)


def with_callbacks(method: _Method) -> _Method:
    """Support the callbacks of scikit-learn, where it has them."""
    return method if _with_callbacks is None else _with_callbacks(method)


def of_rows(method: _Method, name: str, whose: str, returned: str) -> _Method:
    """A method ``(self, X)`` under a name, with its documentation: it calls that of another."""
    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"""Call `{name}` of the {whose}.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        {returned}
            Its output.
        """
    return method


def without_callbacks(estimator: _Estimator) -> _Estimator:
    """Drop the callbacks of an estimator and of those inside, for fits that are not released."""
    for each in (estimator, *estimator.get_params().values()):
        if isinstance(each, CallbackSupportMixin):
            each.set_callbacks()
    return estimator


_VERSION = "_sklearn_dp_version"


class Versioned:
    """Mixin: a pickle has the version that it was made with, as scikit-learn's estimators have."""

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), _VERSION: __version__}  # type: ignore[dict-item]

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickle; one of another version is warned of, as by scikit-learn."""
        state = dict(state)
        version = state.pop(_VERSION, "unknown")
        if version != __version__:
            warn(
                InconsistentVersionWarning(
                    estimator_name=type(self).__name__,
                    current_sklearn_version=f"{__version__} of sklearn_dp",
                    original_sklearn_version=version,
                )
            )
        super().__setstate__(state)  # type: ignore[misc]


_FITS = {"fit", "_fit", "partial_fit", "fit_transform", "fit_predict"}


def fits_around() -> Iterator[tuple[Any, int | None]]:
    """The searches, compositions and other estimators of scikit-learn that are making this fit,
    from the inside out, each with a place: of the step in a pipeline, 0 in others, None in a
    search. A step cannot know by its parameters that scores without noise have chosen them, or that
    others have learned from its rows. None comes last if a worker of joblib made the fit."""
    frame, frames, for_another = sys._getframe(1), set(), False
    while frame is not None:
        code = frame.f_code
        of: Any = frame.f_locals.get("self")
        if code.co_name in _FITS and id(of) not in frames and _makes_fits(of, frame.f_globals):
            last = len(of.steps) - 1 if isinstance(of, Pipeline) else 0
            place = frame.f_locals.get("step_idx", last)
            yield of, None if code.co_qualname == "BaseSearchCV.fit" else place
            frames.add(id(of))
            for_another = False
        # The estimators that these functions of a search or a cross-validation fit are its own.
        is_wrapper = code.co_qualname == "_FuncWrapper.__call__" and of.__name__ != "_fit_and_score"
        for_another |= is_wrapper and of.__module__.startswith("sklearn.")
        frame = frame.f_back  # type: ignore[assignment]
    if for_another:
        yield None, None


def _makes_fits(of: Any, names: dict[str, Any]) -> bool:
    """True if a method of an estimator, with its global names, may fit others."""
    module = names.get("__name__", "")
    theirs = module.startswith("sklearn.") and module != "sklearn.base"  # whose `fit_transform` is
    return isinstance(of, Pipeline | FeatureUnion | ColumnTransformer) or (
        theirs and isinstance(of, BaseEstimator)
    )


class BlindToRows:
    """Mixin of a `ColumnTransformer` which leaves the rows to its steps: scikit-learn's compares
    the exact density of the rows with `sparse_threshold`, so that one row may change the format of
    its output, and gives all rows to functions that choose columns; here they get names and
    types."""

    sparse_threshold: float
    sparse_output_: bool

    def _validate_column_callables(self, X: Any) -> None:
        super()._validate_column_callables(_safe_indexing(X, slice(0, 0)))  # type: ignore[misc]

    def _record_output_indices(self, Xs: Any) -> None:
        """Called once in a fit, between the decision and its first use."""
        super()._record_output_indices(Xs)  # type: ignore[misc]
        self.sparse_output_ = self.sparse_threshold > 0 and any(map(issparse, Xs))

    def _hstack(self, Xs: Any, **options: Any) -> Any:
        """Stack blocks sparsely if steps made sparse blocks in the fit."""
        if self.sparse_output_ and not any(map(issparse, Xs)):
            Xs = [csr_matrix(np.asarray(block)) for block in Xs]
        return super()._hstack(Xs, **options)  # type: ignore[misc]


class Stacked:
    """Mixin of a composition that puts blocks side by side in a way of its own, `_stacked`."""

    def _hstack(self, Xs: Any, **_: Any) -> Any:
        return self._stacked(Xs)  # type: ignore[attr-defined]


def kmeans_of(centers: np.ndarray, **fitted: object) -> KMeans:
    """A fitted KMeans with these centers and fitted attributes."""
    kmeans = KMeans(len(centers), n_init=1)
    for name, value in {"cluster_centers_": centers.copy(), **fitted}.items():
        setattr(kmeans, name, value)
    complete_kmeans(kmeans)
    return kmeans


def complete_kmeans(estimator: object) -> None:
    """Set what methods of a KMeans need besides centers."""
    if isinstance(estimator, KMeans):
        estimator._n_threads = 1


class Progress:
    """Tells the logger, and callbacks of scikit-learn if there are any, how far a fit is: names of
    public steps, and nothing of the data. What callbacks answer is ignored."""

    def __init__(self, estimator: Any) -> None:
        start = getattr(estimator, "_init_callback_context", None)
        self._estimator = estimator
        self._context = start(max_subtasks=None) if start is not None else None
        self._tell(self._context, "call_on_fit_task_begin")

    def _tell(self, context: Any, hook: str) -> None:
        """Call a hook of the callbacks, if there are any."""
        if context is not None:
            getattr(context, hook)(estimator=self._estimator)

    def __call__(self, name: str) -> None:
        """Announce that a step is done; one that fails is never announced."""
        LOGGER.debug("%s: step done: %s", type(self._estimator).__name__, name)
        if self._context is not None:
            context = self._context.subcontext(task_name=name)
            self._tell(context, "call_on_fit_task_begin")
            self._tell(context, "call_on_fit_task_end")

    def finish(self) -> None:
        """The fit is done; which way it went, and how, are post-processing of releases."""
        values = {name: getattr(self._estimator, f"{name}_", None) for name in ("path", "messages")}
        words = "".join(f"; {name}: {value}" for name, value in values.items() if value)
        LOGGER.info("%s: done%s", type(self._estimator).__name__, words)
        self._tell(self._context, "call_on_fit_task_end")
