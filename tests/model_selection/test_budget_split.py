"""What each fit of a search may spend."""

import math

import numpy as np
import pytest

from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._privacy import _selection
from sklearn_dp._privacy._selection import selection_delta, selection_mu, selection_refit
from sklearn_dp.model_selection import BestOf, Shares, _search_plan

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.UtilityWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning"),
]


@pytest.mark.parametrize("bad", ["shares", "score"])
def test_shares_are_checked(bad):
    with pytest.raises(ValueError, match="between 0 and 1"):
        Shares(**{"search" if bad == "shares" else "score": 1.5})


@pytest.fixture
def coarse(monkeypatch):
    """A coarser grid of the bound: still above the truth, and thirty times as fast."""
    monkeypatch.setattr(_selection, "GRID", np.linspace(-9, 9, 601))
    for each in (selection_mu, selection_refit):
        each.cache_clear()
    yield
    for each in (selection_mu, selection_refit):
        each.cache_clear()


def delta_of(prefix_share, refit):
    """Delta at epsilon = 1 of all that `release_best` lets a search spend, by the theorem."""
    target = PrivacyBudget(epsilon=1.0, delta=1e-6)
    given = _search_plan.release_best(target, 10, prefix_share, BestOf(), refit)
    mu, *others = (math.sqrt(2 * rho) for rho in (given.run, given.prefix, given.refit))
    return selection_delta(math.hypot(mu, *others), mu, 1.0, given.rule)


@pytest.mark.parametrize("refit", [False, True])
@pytest.mark.parametrize("prefix_share", [0.0, 0.2])
def test_first_steps_runs_and_last_fit_are_within_the_theorem(coarse, prefix_share, refit):
    assert 0.99e-6 < delta_of(prefix_share, refit) <= 1e-6


@pytest.mark.parametrize("forgotten", ["first steps, runs", "first steps, last fit", "runs halved"])
def test_an_allowance_that_forgets_something_is_caught(coarse, monkeypatch, forgotten):
    if forgotten == "first steps, runs":
        replace(monkeypatch, "selection_mu", lambda e, d, rule, mu: selection_mu(e, d, rule))
        assert delta_of(0.2, refit=False) > 1e-6
        return
    halves = forgotten == "runs halved"

    def refit_of(e, d, rule, run, mu):
        return selection_refit(e, d, rule, run / 2 if halves else run, mu if halves else 0.0)

    replace(monkeypatch, "selection_refit", refit_of)
    if halves:
        replace(monkeypatch, "_HALF", 0.99)
    assert delta_of(0.0 if halves else 0.2, refit=True) > 1e-6


def replace(monkeypatch, name, value):
    monkeypatch.setattr(_search_plan, name, value)
