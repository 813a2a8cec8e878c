"""The examples in docstrings give what they say."""

import doctest
import importlib
import linecache
import pkgutil

import pytest

import sklearn_dp

MODULES = sorted(
    info.name
    for info in pkgutil.walk_packages(sklearn_dp.__path__, "sklearn_dp.")
    if not info.name.endswith("__main__")
)


@pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")
@pytest.mark.parametrize("name", ["sklearn_dp", *MODULES])
def test_examples_of_a_module(name):
    # Otherwise each docstring has pdb look whether any file has changed that a traceback has shown.
    linecache.clearcache()
    assert doctest.testmod(importlib.import_module(name)).failed == 0
