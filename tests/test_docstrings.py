"""The examples in docstrings give what they say."""

import doctest
import importlib
import linecache
from pathlib import Path

import pytest

import sklearn_dp

pytestmark = pytest.mark.docs
ROOT = Path(sklearn_dp.__file__).parent
MODULES = sorted(
    ".".join(("sklearn_dp", *path.relative_to(ROOT).with_suffix("").parts))
    for path in ROOT.rglob("*.py")
    if path.name != "__main__.py" and ">>>" in path.read_text("utf-8")
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_a_module(name):
    # Otherwise each docstring has pdb look whether any file has changed that a traceback has shown.
    linecache.clearcache()
    assert doctest.testmod(importlib.import_module(name.removesuffix(".__init__"))).failed == 0
