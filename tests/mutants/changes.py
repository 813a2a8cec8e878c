"""Changes that several mutants share."""

from collections.abc import Callable
from typing import Any


def after_fit(change: Callable[..., Any]) -> Callable[..., Any]:
    """Return a change for a mutant that lets `change(estimator, X, session)` spoil what a
    fit leaves."""

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def fit(self: Any, X: Any, units: Any, session: Any, **options: Any) -> Any:
            # Options: what single estimators give besides, as a server's public rows.
            result = original(self, X, units, session, **options)
            change(self, X, session)
            return result

        return fit

    return wrap
