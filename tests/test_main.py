"""The command line of the package."""

import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from ledger_tools import ROOT

from sklearn_dp.__main__ import main
from sklearn_dp.ledger import PrivacyLedger


def test_a_command_gets_the_rest_of_the_line(tmp_path, capsys):
    path = str(tmp_path / "a.ledger")
    assert main(["ledger", "create", path, "--epsilon", "1", "--delta", "1e-5"]) == 0
    assert main(["ledger", "verify", path, "--head", PrivacyLedger(path=path).state().head]) == 0
    assert "intact" in capsys.readouterr().out
    assert main(["ledger", "show", path + "x"]) == 1
    assert "does not exist" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["ledger", "profile"])
def test_every_command_is_listed_and_has_help(command, capsys):
    assert main(["--help"]) == 0 and f"  {command}" in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0 and f"usage: sklearn-dp {command}" in capsys.readouterr().out


def test_the_installed_command_and_the_module_are_this_one():
    root = Path(__file__).resolve().parents[1]
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    assert EntryPoint("", project["scripts"]["sklearn-dp"], "").load() is main
    command = [sys.executable, "-W", "error", "-m", "sklearn_dp", "ledger", "--help"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert (shown.returncode, shown.stderr) == (0, "") and "sklearn-dp ledger" in shown.stdout
