"""All estimators of the package, those too that were not exported by mistake."""

import importlib
import inspect
import pkgutil

from .._base import BaseDPEstimator


def all_estimators() -> list[tuple[str, type[BaseDPEstimator]]]:
    """Find all estimators of sklearn_dp.

    Returns
    -------
    estimators : list of (str, class)
        Ordered by name: each class that derives from the base class and is not itself a base.
    """
    package = importlib.import_module(__package__.split(".")[0])
    estimators: dict[str, type[BaseDPEstimator]] = {}
    modules = pkgutil.walk_packages(package.__path__, package.__name__ + ".")
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
    return sorted(estimators.items())
