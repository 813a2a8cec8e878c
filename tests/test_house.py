"""What `python tests/house.py` measures, where it has a limit."""

import importlib
import pkgutil

import pytest
from house import rings
from test_architecture import ROOT

import sklearn_dp

MOST_LINES = 700


def test_no_files_import_each_other():
    """Also not for types: a reader can take the files in an order that begins with what is used."""
    assert rings(ROOT) == set()


@pytest.mark.parametrize("folder", [ROOT, ROOT.parent / "tests"], ids=lambda path: path.name)
def test_no_file_is_long(folder):
    lines = {
        str(path.relative_to(folder)): len(path.read_text("utf-8").splitlines())
        for path in folder.rglob("*.py")
    }
    assert len(lines) > 100
    assert {name: n for name, n in lines.items() if n > MOST_LINES} == {}


def public_modules():
    yield "sklearn_dp"
    for found in pkgutil.walk_packages(sklearn_dp.__path__, "sklearn_dp."):
        if not any(part[0] == "_" for part in found.name.split(".")):
            yield found.name


@pytest.mark.parametrize("name", [*public_modules()])
def test_what_completion_shows_of_a_module_is_public(name):
    """What a module imports is a name in it, too, and no part of what it offers."""
    module = importlib.import_module(name)
    public = {*getattr(module, "__all__", ())}
    for one in public:
        getattr(module, one)
    inside = {found.name for found in pkgutil.iter_modules(getattr(module, "__path__", []))}
    shown = {one for one in dir(module) if one[0] != "_"}
    assert public <= shown <= public | inside, shown - public - inside
