"""The site: its API page lists every public name, and the tools that build it do what they say."""

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import sklearn_dp

pytestmark = pytest.mark.docs
ROOT = Path(__file__).resolve().parents[1]
DOC = ROOT / "doc"
TABLE = re.compile(r"\.\. currentmodule:: (\S+)\n\.\. autosummary::\n.*\n\n((?: {3}[\w.]+\n)+)")
# What has no page: a command line, and second names.
WITHOUT_PAGE = {
    ("sklearn_dp.ledger", "main"),
    ("sklearn_dp.mean", "DPMean"),
    ("sklearn_dp.covariance", "DPCovariance"),
}


def listed(text):
    """(module, name) of each line of the tables of an API page."""
    found = [f"{module}.{name}" for module, names in TABLE.findall(text) for name in names.split()]
    return [tuple(name.rsplit(".", 1)) for name in found]


def public():
    """The public names, each in the module below the top that offers it, if there is one."""
    modules = [info.name for info in pkgutil.iter_modules(sklearn_dp.__path__, "sklearn_dp.")]
    found = set()
    for module in modules:
        if not module.removeprefix("sklearn_dp.").startswith("_"):
            names = getattr(importlib.import_module(module), "__all__", [])
            found |= {(module, name) for name in names}
    below = {name for _, name in found}
    return found | {("sklearn_dp", name) for name in sklearn_dp.__all__ if name not in below}


def test_every_public_name_has_a_page():
    names = listed((DOC / "api.md").read_text(encoding="utf-8"))
    assert len(names) == len(set(names)) >= 80
    assert set(names) == public() - WITHOUT_PAGE
