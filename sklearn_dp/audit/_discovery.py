"""Find the public estimators of the package."""

import importlib
import inspect
import pkgutil
from functools import cache

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
    An estimator is public if it derives from the base class, is defined in the package and is not
    itself called a base. All modules are searched, so an estimator that was not exported by mistake
    is also found.
    """
    return list(_found())


@cache
def _found() -> tuple[tuple[str, type[BaseDPEstimator]], ...]:
    """The same, searched for once."""
    root = importlib.import_module(__package__.split(".")[0])
    found: dict[str, type[BaseDPEstimator]] = {}
    modules = pkgutil.walk_packages(root.__path__, root.__name__ + ".")
    # Public ones first: a private module may need the package that it serves to be complete.
    for item in sorted(modules, key=lambda item: "._" in item.name):
        if item.name.endswith("__main__"):
            continue
        module = importlib.import_module(item.name)
        found |= {
            name: each
            for name, each in inspect.getmembers(module, inspect.isclass)
            if each.__module__ == module.__name__
            and issubclass(each, BaseDPEstimator)
            and not name.startswith(("_", "Base"))
        }
    return tuple(sorted(found.items()))
