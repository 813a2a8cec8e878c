"""The proofs of proofs/ are about the code of the package; where Coq is installed, they hold.

What is planted there is refused: `python proofs/planted.py` tries all of it.
"""

import importlib.util
import re
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "proofs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CHECK, PLANTED = script("check"), script("planted")


def test_statements_are_about_this_code():
    assert CHECK.without_coq(ROOT) == []


@pytest.mark.parametrize("edit", [e for e in PLANTED.EDITS if not e.coq], ids=lambda e: e.name)
def test_other_code_and_other_numbers_are_refused(edit, tmp_path):
    edit.plant(ROOT, tmp_path)
    assert len(CHECK.without_coq(tmp_path)) == edit.complaints


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("coqc") is None, reason="Coq is not installed")
@pytest.mark.parametrize("edit", [e for e in PLANTED.EDITS if e.coq], ids=lambda e: e.name)
def test_false_statements_are_refused(edit, tmp_path):
    assert edit.refusal(ROOT, tmp_path)


def test_the_page_names_every_statement():
    page = (ROOT / "doc" / "proofs" / "machine_checked.md").read_text(encoding="utf-8")
    stated = (ROOT / "proofs" / "Statements.v").read_text(encoding="utf-8")
    names = re.findall(r"^Definition (\w+) : Prop :=", stated, re.M)
    assert len(names) >= 15 and [name for name in names if f"`{name}`" not in page] == []
