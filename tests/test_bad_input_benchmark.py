"""The table of bad input: every kind ends well for every estimator, and the table would tell."""

import pytest
from benchmark_tools import benchmark_module

from sklearn_dp import DPPCA
from sklearn_dp.audit import all_estimators
from sklearn_dp.exceptions import BudgetExceededError

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


def raising(error):
    def bad(_):
        raise error

    return bad


@pytest.mark.parametrize(
    ("bad", "answer", "word"),
    [
        (raising(ValueError("width must be 1")), "", "typed and named"),
        (raising(BudgetExceededError("width")), "", "typed and named"),
        (raising(ValueError("widths must be 1")), "", "typed, not named"),
        (raising(TypeError()), "", "typed, not named"),
        (raising(KeyError("width")), "", "raw"),
        (raising(AttributeError("width")), "why", "raw"),
        (raising(ValueError(f"width {benchmark.SECRET}")), "", "quotes data"),
        (lambda _: None, "", "accepted"),
        (lambda _: None, "as documented", "documented answer"),
    ],
)
def test_each_end_is_told(bad, answer, word):
    kind = benchmark.Kind("planted", bad, r"\bwidth\b", answer)
    assert benchmark.outcome(kind, None)[0] == word
    told = benchmark.bad_ends({("Estimator", "kind"): benchmark.outcome(kind, None)})
    assert (told == []) == (word in benchmark.GOOD)


@pytest.mark.skipif(not hasattr(benchmark.signal, "SIGALRM"), reason="the system has no alarm")
def test_what_takes_long_is_slow(monkeypatch):
    monkeypatch.setattr(benchmark, "SECONDS", 1)

    def bad(_):
        while True:
            pass

    assert benchmark.outcome(benchmark.Kind("planted", bad, "width"), None)[0] == "slow"


def test_what_does_not_fit_is_no_case():
    kind = benchmark.Kind("planted", raising(benchmark.Unfit()), "width")
    assert benchmark.outcome(kind, None) is None
    assert benchmark.run({"Estimator": None}, {"kind": kind}) == {}


def test_the_table_adds_up():
    ends = {("A", "x"): ("raw", ""), ("A", "y"): ("slow", ""), ("B", "x"): ("accepted", "")}
    lines = benchmark.table(ends)
    assert lines[-1].startswith("| all | 3 |") and len(lines) == 5
    assert len(benchmark.answers({("A", "fit: dates"): ("documented answer", "")})) == 3
