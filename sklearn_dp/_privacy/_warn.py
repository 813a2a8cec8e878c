"""Warnings that point to the line of the user's code that led to them."""

import sys
import warnings

# Frames of these are between a user's line and a warning: this package, and what calls it for a
# user, as pipelines, searches, decorators and threads do.
_BETWEEN = {
    *("sklearn_dp", "sklearn", "numpy", "scipy", "pandas", "joblib", "threadpoolctl"),
    *("dask", "distributed", "pyspark", "ray"),
    *("contextlib", "functools", "threading", "concurrent", "copy", "pickle", "dataclasses"),
}


def warn(message: str | Warning, category: type[Warning] | None = None) -> None:
    """Warn at the innermost line that is not of a library on the way, whatever calls led here; at
    the outermost one if there is none, as in a thread of a pool."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _is_between(frame.f_globals.get("__name__")):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level + 1)


def _is_between(module: object) -> bool:
    """True if code of a module of such a name stands between."""
    return isinstance(module, str) and module.partition(".")[0] in _BETWEEN
