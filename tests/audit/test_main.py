"""The command line of certificates."""

import json
import sys
import types

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from benchmarks.certify import CASES
from benchmarks.certify.__main__ import main


class Leaky(BaseEstimator):
    def __init__(self, epsilon=1.0, noise=0.0):
        self.epsilon = epsilon
        self.noise = noise

    def fit(self, X, y=None):
        self.size_ = len(X) + self.noise * float(np.random.default_rng().normal())
        return self


@pytest.fixture
def leaky(monkeypatch):
    module = types.ModuleType("leaky_module")
    module.Leaky = Leaky
    monkeypatch.setitem(sys.modules, "leaky_module", module)
    return "leaky_module:Leaky"


def test_an_estimator_of_this_package(capsys):
    assert main(["FriendlyMean", "--fits", "40", "--epsilon", "2", "--set", "diameter=0.5"]) == 0
    text = capsys.readouterr().out
    assert "Certificate of FriendlyMean: 40 fits" in text and "(2, 1e-06)-DP" in text


def test_json_is_one_object_for_each(capsys, monkeypatch):
    for name in [name for name in CASES if name not in ("DPKMeans", "DPPCA")]:
        monkeypatch.delitem(CASES, name)
    assert main(["all", "--fits", "24", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["estimator"] for line in lines] == ["DPKMeans", "DPPCA"]
    assert lines[0]["claim"]["epsilon"] == pytest.approx(CASES["DPKMeans"].epsilon)


def test_a_false_claim_of_any_class_fails(leaky, capsys):
    assert main([leaky, "--fits", "400"]) == 1
    assert "THE CLAIM IS FALSE" in capsys.readouterr().out
    assert main([leaky, "--fits", "40", "--set", "noise=1e9", "--epsilon", "3"]) == 0


@pytest.mark.slow
def test_a_planted_deficit_that_is_found_is_a_success():
    arguments = ["FriendlyMean", "--fits"]
    assert main([*arguments, "200", "--deficit", "16"]) == 0
    assert main([*arguments, "40", "--deficit", "1.01"]) == 1


@pytest.mark.parametrize("name", ["Nothing", "no.such.module:Thing", "sklearn_dp:Thing"])
def test_what_is_no_estimator_is_told(name):
    with pytest.raises(SystemExit, match=name):
        main([name])
