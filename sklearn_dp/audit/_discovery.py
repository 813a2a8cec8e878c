"""Find the public estimators of the package."""

import importlib
import inspect
import pkgutil

from .._base import BaseDPEstimator

__all__ = ["all_estimators"]


def all_estimators() -> list[tuple[str, type[BaseDPEstimator]]]:
    """Find all public estimators of sklearn_dp.

    Returns
    -------
    estimators : list of (str, class)
        Ordered by name.

    Notes
    -----
    Public is what derives from the base class, is defined in the package and is not itself called
    a base. The modules are walked, so an estimator that somebody forgot to export is found too.
    """
    root = importlib.import_module(__package__.split(".")[0])
    found: dict[str, type[BaseDPEstimator]] = {}
    for item in pkgutil.walk_packages(root.__path__, root.__name__ + "."):
        if not item.name.endswith("__main__"):
            found |= _estimators_of(importlib.import_module(item.name))
    return sorted(found.items())


def _estimators_of(module):
    return {
        name: item
        for name, item in inspect.getmembers(module, inspect.isclass)
        if item.__module__ == module.__name__
        and issubclass(item, BaseDPEstimator)
        and not name.startswith(("_", "Base"))
    }
