"""The table of bad input: every kind ends well for every estimator, and the table would tell."""

import pytest
from benchmark_tools import benchmark_module

from sklearn_dp import DPPCA
from sklearn_dp.audit import all_estimators

ESTIMATORS = dict(all_estimators())
FEWEST = 85  # kinds for each estimator


benchmark = benchmark_module("bad_input")
KINDS = benchmark.kinds()
QUICK = {k: kind for k, kind in KINDS.items() if kind.group in ("parameters of all", "sizes")}


def test_all_kinds_end_well_for_one_estimator():
    ends = benchmark.run({"DPPCA": DPPCA}, KINDS)
    assert benchmark.bad_ends(ends) == [] and len(ends) >= 2 * FEWEST


def test_parameters_end_well_for_all_estimators():
    assert benchmark.bad_ends(benchmark.run(ESTIMATORS, QUICK)) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ESTIMATORS)
def test_all_kinds_end_well(name):
    ends = benchmark.run({name: ESTIMATORS[name]}, KINDS)
    assert benchmark.bad_ends(ends) == [] and len(ends) >= FEWEST


# -- planted ---------------------------------------------------------------------------------------
