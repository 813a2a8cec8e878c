"""The command line of ledgers."""

import json
import math
import os
import re

import pytest
from ledger_tools import BUDGET, QUARTER, gaussian_fit

from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.ledger_terms import LedgerCharge
from sklearn_dp._privacy._ledger import PrivacyLedger
from sklearn_dp.ledger import main


@pytest.fixture
def path(tmp_path):
    """A ledger file of (1, 1e-5), in row units."""
    PrivacyLedger(BUDGET, tmp_path / "team.ledger")
    return str(tmp_path / "team.ledger")


def test_create_and_show(tmp_path, capsys):
    path = str(tmp_path / "a.ledger")
    assert main(["create", path, "--epsilon", "1", "--delta", "1e-5"]) == 0
    assert main(["show", path]) == 0
    assert "No charges." in capsys.readouterr().out
    PrivacyLedger(path=path).charge(QUARTER)
    PrivacyLedger(path=path).charge(gaussian_fit(0.5, 1e-6), label="DPKMeans")
    assert main(["show", path]) == 0
    output = capsys.readouterr().out
    assert re.search(r"total +PrivacyBudget\(epsilon=1.0, delta=1e-05\); each row", output)
    assert re.search(r"neighbors  add or remove one row", output)
    assert re.search(r"spent +epsilon 0.75, delta 2e-06", output)
    assert re.search(r"remaining +epsilon 0.25, delta 8e-06", output)
    assert re.search(r"DPKMeans +0.5 +1e-06 .* yes +add or remove\n", output)
    assert re.search(r"Quarter +0.25 +1e-06 .* no +add or remove\n", output)


def test_show_json(tmp_path, capsys):
    path = str(tmp_path / "a.ledger")
    options = ["--rho", "0.5", "--delta", "1e-6", "--unit", "group", "--relation", "replace"]
    assert main(["create", path, *options]) == 0
    charge = LedgerCharge(math.inf, 1e-6, rho=0.125, unit="group", relation="replace", label="Fit")
    PrivacyLedger(path=path).charge(charge)
    capsys.readouterr()
    assert main(["show", path, "--json"]) == 0
    state = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert state["path"] == path
    assert state["total"] == {"epsilon": None, "delta": 1e-6, "rho": 0.5}
    assert (state["unit"], state["composition"]) == ("group", "zcdp")
    assert state["relation"] == state["charges"][0]["relation"] == "replace"
    assert state["spent"] == {"rho": 0.125, "delta_failure": 0.0}
    assert state["remaining"] == {"rho": 0.375, "delta_failure": 1e-6}
    assert [charge["label"] for charge in state["charges"]] == ["Fit"]
    assert state["charges"][0]["epsilon"] is None


def test_json_has_what_each_value_of_a_key_has_spent_and_left():
    ledger = PrivacyLedger(PrivacyBudget(epsilon=1.0, delta=0.0))
    ledger.disjoint("region", ["north", "south"])["north"].charge(LedgerCharge(0.25, 0.0))
    north, south = ledger.state().content()["keys"]["region"].values()
    assert north["spent"]["epsilon"] == 0.25 and north["remaining"]["epsilon"] == 0.75
    assert south["spent"]["epsilon"] == 0.0 and south["remaining"]["epsilon"] == 1.0


@pytest.mark.parametrize(
    "options",
    [["--epsilon", "0", "--delta", "1e-6"], ["--epsilon", "nan", "--delta", "1e-6"],
     ["--epsilon", "1", "--delta", "1"], ["--rho", "-1", "--delta", "1e-6"],
     ["--epsilon", "1", "--delta", "0", "--composition", "gaussian"]],
)  # fmt: skip
def test_create_refuses_invalid_totals(tmp_path, options, capsys):
    path = tmp_path / "a.ledger"
    assert main(["create", str(path), *options]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("error: ")
    assert not path.exists()


@pytest.mark.parametrize(
    "arguments", [[], ["create", "x"], ["create", "x", "--epsilon", "1"], ["shwo", "x"],
                  ["create", "x", "--epsilon", "1", "--rho", "1", "--delta", "1e-6"]]
)  # fmt: skip
def test_usage_errors(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert "usage" in capsys.readouterr().err
    assert os.listdir(tmp_path) == []
