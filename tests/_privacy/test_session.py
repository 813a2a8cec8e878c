"""Plans, charges, releases, and the tape."""

import copy
import os
import pickle
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from sklearn_dp._privacy._budget import PrivacyBudget
from sklearn_dp._privacy._ledger import PrivacyLedger
from sklearn_dp._privacy._noise import SIMULATION_TV, gaussian_tail
from sklearn_dp._privacy._parts import dearest
from sklearn_dp._privacy._session import (
    PlanEntry,
    PlanError,
    PrivacyPlan,
    PrivacySession,
    _dense_cells,
    _simulated_cells,
    simulation_delta,
    stability_threshold,
)
from sklearn_dp._privacy._tape import Tape, tape
from sklearn_dp.audit._player import Replay
from sklearn_dp.exceptions import BudgetExceededError, SeededNoiseWarning

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")


def make_plan(*entries, rho=1.0, delta=1e-6, **options):
    entries = entries or (PlanEntry("sum", "gaussian", 0.75), PlanEntry("count", "gaussian", 0.25))
    return PrivacyPlan(PrivacyBudget(rho=rho, delta=delta), entries, **options)


def open_session(*entries, random_state=0, **options):
    return PrivacySession(make_plan(*entries, **options), random_state=random_state)


# -- plans ----------------------------------------------------------------------------------------


def test_a_plan_must_fit_its_target():
    with pytest.raises(PlanError, match="more than its target"):
        make_plan(PlanEntry("a", "gaussian", 0.6), PlanEntry("b", "gaussian", 0.5))
    with pytest.raises(PlanError, match="same name"):
        make_plan(PlanEntry("a", "gaussian", 0.1), PlanEntry("a", "gaussian", 0.1))


def test_one_release_that_is_not_gaussian_makes_the_plan_zcdp():
    budget = PrivacyBudget(epsilon=1.0, delta=1e-6)
    exact, tight = budget.to_rho(gaussian=True), budget.to_rho(gaussian=False)
    assert tight < exact
    assert PrivacyPlan(budget, (PlanEntry("a", "gaussian", exact),)).gaussian
    with pytest.raises(PlanError):
        PrivacyPlan(budget, (PlanEntry("a", "laplace", exact),))
    plan = PrivacyPlan(budget, (PlanEntry("a", "laplace", tight),))
    assert not plan.gaussian and plan.epsilon == pytest.approx(1.0, rel=1e-9)


def test_the_plan_prints_what_will_be_released():
    plan = make_plan(notes=("a note",))
    for text in (repr(plan), plan._repr_html_()):
        assert "sum" in text and "count" in text and "add or remove one row" in text
        assert "a note" in text and "planned" in text
    assert list(plan.to_frame()["release"]) == ["sum", "count"]


# -- charges --------------------------------------------------------------------------------------


def test_releases_are_charged_exactly():
    session = open_session()
    session.gaussian("sum", [1, 2], sensitivity=1.0)
    assert session._spent_exact() == Fraction(0.75)
    assert session.remaining() == 0.25 and session.remaining("sum") == 0.0
    session.gaussian("count", 3, sensitivity=1.0, rho=0.125)
    assert session.spent == 0.875
    assert session.report().spent_rho == 0.875


@pytest.mark.parametrize("entry, rho, text", [
    ("other", 0.1, "no plan entry"),
    ("sum", 0.76, "overspend"),
    ("sum", 0.0, "positive"),
    ("sum", -0.1, "positive"),
    ("sum", float("nan"), "positive"),
])
def test_a_release_outside_the_plan_is_refused(entry, rho, text):
    session = open_session()
    with pytest.raises(PlanError, match=text):
        session.gaussian(entry, [1], sensitivity=1.0, rho=rho)
    assert session.spent == 0


def test_an_entry_pays_only_as_often_as_planned():
    session = open_session()
    session.gaussian("sum", [1], sensitivity=1.0, rho=0.1)
    with pytest.raises(PlanError, match="more often"):
        session.gaussian("sum", [1], sensitivity=1.0, rho=0.1)


def test_an_adaptive_entry_may_spend_what_others_left_but_never_more_than_the_plan():
    session = open_session(PlanEntry("start", "gaussian", 0.5),
                           PlanEntry("steps", "gaussian", 0.5, uses=None, max_rho=1.0))
    session.gaussian("start", [1], sensitivity=1.0, rho=0.2)
    session.gaussian("steps", [1], sensitivity=1.0, rho=0.7)
    with pytest.raises(PlanError, match="overspend"):
        session.gaussian("steps", [1], sensitivity=1.0, rho=0.11)
    session.gaussian("steps", [1], sensitivity=1.0, rho=session.remaining("steps"))
    assert session.spent <= 1.0 and session.remaining() < 1e-15


def test_the_ledger_is_charged_before_anything_else_and_refuses():
    ledger = PrivacyLedger(PrivacyBudget(rho=1.5, delta=1e-5))
    PrivacySession(make_plan(), ledger=ledger)
    assert len(ledger.entries) == 1  # charged although nothing was released yet
    with pytest.raises(BudgetExceededError):
        PrivacySession(make_plan(), ledger=ledger)
    assert len(ledger.entries) == 1


# -- noise ----------------------------------------------------------------------------------------


def test_golden_noise_scale():
    """sigma = sensitivity / sqrt(2 rho): hand-computed, and what the noise really has.

    The sample variance of 2e5 draws lies within 2.5 % of sigma^2 but for a chance below 1e-14
    (5 standard errors are 1.6 %); a sensitivity that is wrong by 1.25 changes it by 56 %.
    """
    session = open_session(PlanEntry("sum", "gaussian", 0.5))
    out = session.gaussian("sum", np.zeros(200_000, int), sensitivity=2.0**20, unit=2.0**-20)
    row = session.report().releases[0]
    assert row["sigma"] == pytest.approx(1.0, rel=1e-12) and row["sigma"] >= 1.0
    assert out.var() == pytest.approx(1.0, rel=0.025)


def test_each_coordinate_has_its_own_scale():
    session = open_session(PlanEntry("sum", "gaussian", 0.5))
    sensitivity = np.repeat([1e3, 1e6], 100_000)
    out = session.gaussian("sum", np.zeros(200_000, int), sensitivity=sensitivity)
    assert out[:100_000].std() == pytest.approx(1e3, rel=0.02)
    assert out[100_000:].std() == pytest.approx(1e6, rel=0.02)


def test_outputs_lie_on_the_grid_and_large_budgets_have_little_noise():
    session = open_session(PlanEntry("sum", "gaussian", 1e6), rho=1e6)
    out = session.gaussian("sum", [5, 7], sensitivity=1.0, unit=0.25)
    assert np.array_equal(out, [1.25, 1.75])


def test_seeded_sessions_repeat_and_warn_and_others_differ():
    def run(random_state):
        session = PrivacySession(make_plan(), random_state=random_state)
        return session.gaussian("sum", np.zeros(50, int), sensitivity=1e6), session

    with pytest.warns(SeededNoiseWarning):
        first, session = run(7)
    assert session.report().noise == "seeded"
    assert np.array_equal(first, run(7)[0])
    assert not np.array_equal(first, run(8)[0])
    assert np.array_equal(run(np.random.RandomState(3))[0], run(np.random.RandomState(3))[0])
    assert np.array_equal(run(np.random.default_rng(3))[0], run(np.random.default_rng(3))[0])
    np.random.seed(0)  # noqa: NPY002 - it must have no effect
    unseeded, session = run(None)
    np.random.seed(0)  # noqa: NPY002 - it must have no effect
    assert not np.array_equal(unseeded, run(None)[0])
    assert session.report().noise == "system"


@pytest.mark.parametrize("random_state, error", [(-1, ValueError), ("a", TypeError),
                                                 (True, TypeError), (1.5, TypeError)])
def test_bad_random_state(random_state, error):
    with pytest.raises(error, match="random_state"):
        open_session(random_state=random_state)


def test_algorithmic_randomness_is_no_noise():
    session = open_session()
    assert not np.array_equal(session._noise.bits(10), session.unit_draws(10))
    assert np.array_equal(session.unit_draws(10), session.unit_draws(20)[:10])
    assert session.rng("a").integers(2**60) == session.rng("a").integers(2**60)
    assert session.rng("a").integers(2**60) != session.rng("b").integers(2**60)


def test_blocks_are_uniform_and_stay_when_a_unit_is_added():
    """Chi-square over 7 blocks; false alarm 1e-6."""
    session = open_session()
    blocks = session.blocks(70_000, 7)
    counts = np.bincount(blocks, minlength=7)
    assert len(counts) == 7 and stats.chisquare(counts).pvalue > 1e-6
    assert np.array_equal(session.blocks(70_001, 7)[:-1], blocks)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fit_cannot_go_on_in_a_forked_child(monkeypatch):
    """Parent and child would spend the same budget, even if the child has the parent's number."""
    number = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: number)
    session = open_session(random_state=None)
    child = os.fork()
    if not child:
        try:
            session.gaussian("sum", [1], sensitivity=1.0)
        except RuntimeError as error:
            os._exit(7 if "forked" in str(error) else 8)
        os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    session.gaussian("sum", [1], sensitivity=1.0)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_session_cannot_be_copied(copied):
    with pytest.raises(TypeError, match="session"):
        copied(open_session())


# -- sparse histograms ----------------------------------------------------------------------------


def sparse_plan(delta=None):
    return PlanEntry("cells", "gaussian", 0.125,
                     delta=simulation_delta(1.0) if delta is None else delta)


def test_simulated_cells_follow_the_law_of_dense_noise():
    """2^12 cells, three occupied, sd 2, both ways 4,000 times.

    Compared: how many cells survive, their values, and how often each occupied cell does.
    Chi-square two-sample tests, false alarm 3e-7 each. Power: with the naive tail Q(low / sd)
    for the number of empty cells, 12 % too few survive, which 4,000 x 90 survivors show at 30
    standard errors.
    """
    from sklearn_dp._privacy._noise import NoiseSource

    codes, counts = np.array([3, 700, 4000]), np.array([2, 5, 9])
    sigma, low, runs = 2.0, 5, 4000
    samples = []
    for draw, seed in ((_dense_cells, 1), (_simulated_cells, 2)):
        noise = NoiseSource(seed)
        outputs = [draw(noise, codes, counts, 2**12, sigma, low) for _ in range(runs)]
        samples.append(outputs)
    for what in (lambda out: [len(out[0])], lambda out: out[1].tolist(),
                 lambda out: np.searchsorted(codes, out[0][np.isin(out[0], codes)]).tolist(),
                 lambda out: (out[0] // 256).tolist()):
        flat = [np.concatenate([what(out) for out in outputs]) for outputs in samples]
        values = np.unique(np.concatenate(flat))
        table = np.array([[np.sum(side == value) for value in values] for side in flat])
        table = table[:, table.sum(axis=0) >= 20]
        assert stats.chi2_contingency(table).pvalue > 3e-7
    for cells, values in samples[1]:
        assert (np.diff(cells) > 0).all() and (values >= low).all()


def test_simulated_cells_are_distinct_and_avoid_nothing_but_occupied_ones():
    from sklearn_dp._privacy._noise import NoiseSource

    cells, values = _simulated_cells(NoiseSource(0), np.arange(5), np.zeros(5, int), 40, 3.0, -30)
    assert np.array_equal(cells, np.arange(40)) and len(values) == 40


def test_a_huge_sparse_histogram_needs_its_delta_in_the_plan():
    arguments = dict(n_candidates=2**40, threshold=20.0, sensitivity=1.0)
    session = open_session(sparse_plan(delta=0.0))
    with pytest.raises(PlanError, match="delta"):
        session.sparse_histogram("cells", np.array([1]), np.array([50]), **arguments)
    session = open_session(sparse_plan())
    cells, values = session.sparse_histogram("cells", np.array([2**39]), np.array([500]),
                                             **arguments)
    assert 2**39 in cells and values[cells == 2**39][0] > 400
    assert simulation_delta(1.0) >= SIMULATION_TV * (1 + np.e) * (1 - 1e-12)


# -- other mechanisms -----------------------------------------------------------------------------


def test_stability_threshold_is_the_smallest_that_hides_a_single_unit():
    for sigma in (0.3, 1.0, 7.5, 1e4):
        for delta in (1e-3, 1e-9):
            low = stability_threshold(sigma, delta)
            assert gaussian_tail(sigma, low - 1) <= delta
            assert low == 2 or gaussian_tail(sigma, low - 3) > delta


def test_exponential_choice_prefers_high_scores_at_the_stated_rate():
    """Two candidates two apart, epsilon 1, sensitivity 1: odds e. 3,000 draws, 5 sd, < 1e-6."""
    plan = make_plan(PlanEntry("choice", "exponential", 400.0, uses=None), rho=400.0)
    session = PrivacySession(plan, random_state=0)
    picks = [session.exponential("choice", [0, 2], sensitivity=1, epsilon=1.0)
             for _ in range(3_000)]
    p = np.e / (1 + np.e)
    assert abs(np.mean(picks) - p) < 5 * np.sqrt(p * (1 - p) / 3_000)
    assert session.spent == pytest.approx(3_000 / 8)


def test_above_threshold_finds_the_first_clear_answer():
    session = open_session(PlanEntry("svt", "above threshold", 200.0), rho=200.0)
    assert session.above_threshold("svt", [0, 1, 90, 95], 50, sensitivity=1, epsilon=20.0) == 2
    session = open_session(PlanEntry("svt", "above threshold", 200.0), rho=200.0)
    assert session.above_threshold("svt", [0, 1], 50, sensitivity=1, epsilon=20.0) is None


# -- record and replay ----------------------------------------------------------------------------


def release(values, sensitivity=1.0, rho=0.5, units=None):
    session = open_session(PlanEntry("sum", "gaussian", 0.5))
    return session.gaussian("sum", values, sensitivity=sensitivity, rho=rho)


def replayed(function, first, second, units=(0,)):
    with tape(Tape()) as recording:
        before = function(first)
    with tape(Replay(recording.events, np.array(units))) as replay:
        after = function(second)
    replay.finish()
    return before, after, replay


def test_replay_forces_outputs_and_measures_the_distance():
    before, after, replay = replayed(release, [5, 5], [5, 6])
    assert np.array_equal(before, after) and not replay.violations
    assert replay.ratios == {"sum": 1.0}
    assert replay.loss["sum"] == pytest.approx(0.5)


@pytest.mark.parametrize("second, text", [([6, 6], "distance"), ([5], "shape")])
def test_replay_sees_a_sensitivity_that_is_too_small(second, text):
    _, _, replay = replayed(release, [5, 5], second)
    assert any(text in violation for violation in replay.violations)


def test_replay_sees_data_dependent_scales_and_calls():
    _, _, replay = replayed(lambda rho: release([5], rho=rho), 0.5, 0.25)
    assert any("cost differs" in text for text in replay.violations)

    def maybe(data):
        session = open_session(PlanEntry("sum", "gaussian", 0.5, uses=None))
        for value in data:
            session.gaussian("sum", value, sensitivity=1.0, rho=0.1)

    for first, second in (([1], [1, 1]), ([1, 1], [1])):
        assert replayed(maybe, first, second)[2].violations


def test_replay_couples_the_randomness_of_the_common_units():
    def draw(n):
        return open_session(random_state=None).blocks(n, 1000)

    before, after, _ = replayed(draw, 5, 6, units=[0, 1, -1, 2, 3, 4])
    assert np.array_equal(before, np.delete(after, 2))
    before, after, _ = replayed(draw, 5, 4, units=[0, 1, 3, 4])
    assert np.array_equal(np.delete(before, 2), after)


def test_nothing_is_recorded_outside_an_audit():
    session = open_session()
    session.gaussian("sum", [123456789], sensitivity=1e7)
    assert session._tape is None
    assert "123456789" not in repr(session.report())
    pickle.dumps(session.report())


def test_a_plan_with_two_paths_costs_what_the_dearer_one_costs():
    plan = make_plan(PlanEntry("count", "gaussian", 0.25),
                     PlanEntry("short", "gaussian", 0.5, paths=("a",)),
                     PlanEntry("long", "gaussian", 0.75, delta=1e-7, paths=("b",)))
    assert plan.rho == 1.0 and plan.delta_failure == 1e-7
    assert "path" in repr(plan) and "path" not in repr(make_plan())
    session = PrivacySession(plan, random_state=0)
    session.gaussian("count", 1, sensitivity=1.0)
    session.gaussian("short", 1, sensitivity=1.0)
    with pytest.raises(PlanError, match="overspend"):  # one path, not both
        session.gaussian("long", 1, sensitivity=1.0, rho=0.75)


# -- parts of the units ---------------------------------------------------------------------------


def parted_plan():
    return PrivacyPlan(PrivacyBudget(rho=1.0, delta=1e-6), (
        PlanEntry("all", "gaussian", 0.25), PlanEntry("some", "gaussian", 0.75, uses=2)))


def test_disjoint_parts_cost_what_the_dearest_costs():
    session = PrivacySession(parted_plan(), random_state=0)
    session.gaussian("all", 1, sensitivity=1)
    left, right = session.part("left"), session.part("right")
    left.gaussian("some", 1, sensitivity=1, rho=0.5)
    assert (left.spent, right.spent, session.spent) == (0.75, 0.25, 0.25)
    inside, outside = left.part("inside"), left.part("outside")
    inside.gaussian("some", 1, sensitivity=1, rho=0.125)
    outside.gaussian("some", 1, sensitivity=1)
    right.gaussian("some", 1, sensitivity=1, rho=0.25)
    with pytest.raises(PlanError, match="more often"):
        inside.gaussian("some", 1, sensitivity=1)
    assert session.report().spent_rho == 1.0
    session.join([inside, outside, right])
    assert session.spent == 1.0 and session.remaining() == 0
    with pytest.raises(PlanError):
        right.join([outside])
        right.gaussian("some", 1, sensitivity=1, rho=0.1)
    parts = [row.get("part", "") for row in session.report().releases]
    assert parts == ["", "left", "left/inside", "left/outside", "right"]
    assert "left/inside" in repr(session.report())


def test_dearest_chain():
    charges = [((), 1), (("a",), 2), (("a", "b"), 4), (("a", "c"), 3), (("d",), 5)]
    assert dearest(charges) == 7 and dearest([]) == 0
    assert dearest([(("ab",), 1), (("a",), 2)]) == 2  # labels, not letters


def test_a_replay_sees_a_unit_in_two_parts():
    def run(weights, recorder):
        with tape(recorder):
            session = PrivacySession(parted_plan(), random_state=0)
        for label, weight in weights.items():
            session.part(label).gaussian("some", weight, sensitivity=1, rho=0.5)
        return recorder.finish() if isinstance(recorder, Replay) else recorder.events

    events = run({"left": 3, "right": 5}, Tape())
    assert run({"left": 4, "right": 5}, Replay(events, np.arange(1))) == []
    found = run({"left": 4, "right": 6}, Replay(events, np.arange(1)))
    assert len(found) == 1 and "both parts" in found[0]
