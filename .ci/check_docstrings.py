"""Check the docstrings of all public names with numpydoc; `make lint` and pre-commit run this.

Rules that are left out: a public name need not have an extended summary (ES01) or links to others
(SA01), examples are asked of estimators only (EX01), and a result may have a name (RT02).
"""

import importlib
import inspect
import pkgutil
import sys
import warnings

from numpydoc.validate import validate
from sklearn.base import BaseEstimator

PACKAGE = "sklearn_dp"
LEFT_OUT = {"ES01", "RT02", "SA01"}
# Raw data and constants: they have a comment at their definition, and no docstring.


def public_modules():
    """Modules without an underscore anywhere in their name that say what they export."""
    package = importlib.import_module(PACKAGE)
    for info in pkgutil.walk_packages(package.__path__, f"{PACKAGE}."):
        private = any(part.startswith("_") for part in info.name.split("."))
        if not private:
            module = importlib.import_module(info.name)
            if hasattr(module, "__all__"):
                yield module


def public_names():
    """Full names of everything exported, with the public methods that a class itself defines."""
    for module in public_modules():
        for name in module.__all__:
            value, full = getattr(module, name), f"{module.__name__}.{name}"
            if not isinstance(value, dict | list | tuple):
                yield full
            if inspect.isclass(value):
                yield from (f"{full}.{method}" for method in own_methods(value))


def own_methods(cls):
    for name, value in vars(cls).items():
        documented = inspect.isfunction(value) or isinstance(value, property | classmethod)
        if documented and not name.startswith("_"):
            yield name


def problems(name):
    """What numpydoc finds wrong with one docstring, as (code, sentence)."""
    left_out = LEFT_OUT if is_estimator(name) else LEFT_OUT | {"EX01"}
    return [(code, text) for code, text in validate(name)["errors"] if code not in left_out]


def is_estimator(name):
    module, _, attribute = name.rpartition(".")
    value = getattr(sys.modules.get(module), attribute, None)
    return inspect.isclass(value) and issubclass(value, BaseEstimator)


def main():
    warnings.simplefilter("ignore")
    found = [(name, *problem) for name in sorted(public_names()) for problem in problems(name)]
    for name, code, text in found:
        print(f"{name}: {code} {text}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
