"""Every scikit-learn name that is private or that only some supported versions have."""

from collections.abc import Callable
from typing import TypeVar

from sklearn.utils.validation import _num_features as num_features

try:  # scikit-learn >= 1.9
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback import with_callbacks as _with_callbacks
except ImportError:  # pragma: no cover - older scikit-learn
    _with_callbacks = None

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""


__all__ = ["CallbackSupportMixin", "Progress", "num_features", "with_callbacks"]

_Method = TypeVar("_Method", bound=Callable)


def with_callbacks(method: _Method) -> _Method:
    """Tell scikit-learn's callbacks of a fit, where it has them; its type stays."""
    return method if _with_callbacks is None else _with_callbacks(method)


class Progress:
    """Tells scikit-learn's callbacks how far a fit is.

    Callbacks learn the names of the public steps and nothing of the data; what they answer is
    ignored, so they cannot steer the fit.
    """

    def __init__(self, estimator):
        start = getattr(estimator, "_init_callback_context", None)
        self._estimator = estimator
        self._context = start(max_subtasks=None) if start is not None else None
        self._tell(self._context, "call_on_fit_task_begin")

    def _tell(self, context, hook):
        if context is not None:
            getattr(context, hook)(estimator=self._estimator)

    def __call__(self, name):
        """A step of that name is done."""
        if self._context is not None:
            context = self._context.subcontext(task_name=name)
            self._tell(context, "call_on_fit_task_begin")
            self._tell(context, "call_on_fit_task_end")

    def finish(self):
        """The fit is done."""
        self._tell(self._context, "call_on_fit_task_end")
