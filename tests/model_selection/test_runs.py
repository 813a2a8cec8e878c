"""Runs of a search: fitted once, each with noise of its own, all of them paid for."""

import pickle
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from kernel_tools import open_session
from search_tools import GRID, corners, pipeline, search, spending

from benchmarks.certify.recount import recount_problems
from sklearn_dp._privacy._selection import Geometric, Thin
from sklearn_dp.audit._replay import record
from sklearn_dp.model_selection import BestOf, DPGridSearch, _runs


def test_a_prefix_is_fitted_once_and_cut_to_size():
    grid = {"dppca__n_components": [1, 2, 3]}
    found = DPGridSearch(
        pipeline(), grid, epsilon=20.0, scoring="cost", selection="all", random_state=0
    ).fit(corners(600, d=4))
    components = [each.steps[0][1].components_ for each in found.estimators_]
    assert [len(each) for each in components] == [1, 2, 3]
    np.testing.assert_array_equal(components[0], components[2][:1])
    explained = [each.steps[0][1].explained_ for each in found.estimators_]
    assert explained == sorted(explained)
    assert found.best_params_["dppca__n_components"] >= 2
    assert found.transform(corners(5, d=4)).shape == (5, 3)


def test_a_prefix_that_varies_is_fitted_for_each_candidate(monkeypatch):
    fits = spending(monkeypatch)
    grid = {"dppca__bounds": [2.0, 3.0], "dppca__n_components": [2]}
    DPGridSearch(
        pipeline(), grid, epsilon=20.0, scoring="cost", max_distance=3.0, random_state=0
    ).fit(corners(300, d=4))
    assert [tag for tag, _ in fits] == ["candidate 0", "candidate 1", "last fit"]
    assert [entry.name for entry in fits[0][1].entries] == ["dppca", "dpkmeans", "score"]


def shown(monkeypatch, drawn):
    """What a search of these runs shows, where run 0 is the only one of the right candidate."""
    monkeypatch.setattr(Thin, "draw", lambda self, source: np.array(drawn))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = search(selection="best", final="winner").fit(corners(900))
    assert found.best_index_ == 1
    return pickle.dumps(found), repr(found.privacy_report_), [str(each.message) for each in told]


def test_the_number_of_runs_does_not_show(monkeypatch):
    """Two searches with the same winning run and other numbers of losing ones look the same."""
    assert shown(monkeypatch, [1, 0]) == shown(monkeypatch, [1, 0, 2])


@pytest.mark.parametrize(("drawn", "winner"), [([1], 1), ([2, 1], 1)])
def test_padding_runs_are_no_candidates(monkeypatch, drawn, winner):
    """With `constant_time`, each candidate is run: here one that does not count scores best.

    The price is that of the runs that the rule draws. One more that may win costs (1, 1e-6) a delta
    of 7e-5 for three candidates, and of .7 for thirty.
    """
    scores, original = {0: 1e9, 1: 2.0, 2: 1.0}, _runs.Runner._scored
    made = []

    def scored(self, number, session):
        made.append(number)
        return scores[number], original(self, number, session)[1]

    monkeypatch.setattr(Thin, "draw", lambda self, source: np.array(drawn))
    monkeypatch.setattr(_runs.Runner, "_scored", scored)
    found = search(selection=BestOf(constant_time=True), final="winner").fit(corners(90))
    assert made == [0, 1, 2]  # whatever was drawn, and in this order
    assert found.best_index_ == winner
    assert found.best_estimator_.n_clusters == GRID["n_clusters"][winner]
    shown = np.flatnonzero(~np.isnan(found.cv_results_["mean_test_score"]))
    assert shown.tolist() == [winner]


@pytest.mark.parametrize("counted", [1, 300])
def test_surplus_runs_are_drawn_like_those_that_count(counted):
    """Runs of one candidate made the time of a search tell their number: a correlation of .94.

    Each of 8 is drawn about 50 times of 400, 5 deviations at most away; new ones in each search.
    """
    drawn = [int(j) for j in np.random.default_rng(1).integers(8, size=counted)]
    runner, found = object.__new__(_runs.Runner), []
    for seed in range(2):
        split = SimpleNamespace(rule=Geometric(8, 0.5, 400))
        runner.plan = SimpleNamespace(split=split)
        runner.session = open_session(random_state=seed)
        found.append(runner._surplus(drawn))
        assert len(found[-1]) == 400 - counted
        each = np.bincount(drawn + found[-1], minlength=8)
        assert len(each) == 8 and np.abs(each - 50).max() < 5 * np.sqrt(50 * 7 / 8)
    assert found[0] != found[1]


@pytest.mark.parametrize("drawn", [[1], [1, 0, 2]])
def test_as_many_tasks_whatever_the_number_of_runs(monkeypatch, drawn):
    """Threads and those who watch them would know it otherwise."""
    tasks, original = [], _runs.ask_all

    def ask_all(function, shares, **options):
        tasks.append(len(shares))
        return original(function, shares, **options)

    monkeypatch.setattr(_runs, "ask_all", ask_all)
    monkeypatch.setattr(Thin, "draw", lambda self, source: np.array(drawn))
    search(selection="best", final="winner", n_jobs=4).fit(corners(90))
    assert tasks == [4]


@pytest.mark.parametrize("forgotten", [None, "first steps", "last fit", "candidates"])
def test_fits_that_are_not_paid_are_caught(monkeypatch, forgotten):
    """A fit outside the charge spends what the plan does not hold: audits recount it."""
    original = _runs.Runner._inner

    def free(self, entry, plan, tag):
        if entry == forgotten:
            return self.session.inside(plan, tag)
        return original(self, entry, plan, tag)

    monkeypatch.setattr(_runs.Runner, "_inner", free)
    grid = {"dppca__n_components": [1, 2]}
    search = DPGridSearch(
        pipeline(), grid, epsilon=2.0, scoring="cost", selection="all", random_state=0
    )
    made = record(search, corners(90, d=3))
    found = recount_problems(made.events, made.plan, made.outcome.estimator.privacy_report_)
    if forgotten is None:
        assert found == []
    else:
        assert any("was paid for them" in text for text in found)
