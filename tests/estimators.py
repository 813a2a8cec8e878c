"""All estimators of the package, those too that were not exported by mistake."""

import importlib
import inspect
import pkgutil
from functools import cache

import sklearn_dp
from sklearn_dp._base import BaseDPEstimator


@cache
def all_estimators() -> tuple[tuple[str, type[BaseDPEstimator]], ...]:
    """Names and classes of all modules that derive from the base class and are no bases."""
    estimators: dict[str, type[BaseDPEstimator]] = {}
    modules = pkgutil.walk_packages(sklearn_dp.__path__, "sklearn_dp.")
    # Public ones first: a private module may need the package that it serves to be complete.
    for item in sorted(modules, key=lambda item: "._" in item.name):
        if item.name.endswith("__main__"):
            continue
        module = importlib.import_module(item.name)
        estimators |= {
            name: each
            for name, each in inspect.getmembers(module, inspect.isclass)
            if each.__module__ == module.__name__
            and issubclass(each, BaseDPEstimator)
            and not name.startswith(("_", "Base"))
        }
    return tuple(sorted(estimators.items()))
