"""What the audit knows of each law: all that the kernel makes, from theorems of its own."""

import ast
import importlib
import inspect
import pkgutil

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

from benchmarks.certify import claims, distinguishers, recount
from sklearn_dp._privacy import _session, mechanisms
from sklearn_dp._privacy._trace import Event
from sklearn_dp._privacy.mechanisms import proportional as kernel
from sklearn_dp.audit import _epsilon_bounds, _laws, _recount
from sklearn_dp.audit._laws import KINDS, UnknownLawError, law_of
from sklearn_dp.audit._noise_law import noise_problems
from sklearn_dp.audit._recount import check_claims, paid
from sklearn_dp.audit._replay import Replay

STRANGE = Event("strange", "a", 1, 1.0, 1.0, 0.1, {}, 1)


def texts_of(module):
    """All the strings in the source of a module."""
    return {
        node.value
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def test_the_audit_knows_the_kinds_that_the_kernel_makes():
    """`asked_for` of `test_draws.py` and the replays meet each of them."""
    names = [item.name for item in pkgutil.iter_modules(mechanisms.__path__)]
    modules = [importlib.import_module(f"{mechanisms.__name__}.{name}") for name in names]
    made = {text for module in [_session, *modules] for text in texts_of(module)}
    paid_for = {kind for kind, law in KINDS.items() if law.rho is not None}
    assert paid_for <= made


# These end the comparison of likelihoods: decisions that are no release, or without a density here.
NOT_COMPARED = {"bernoulli", "filter", "fit", "lead", "proportional", "step"}


def test_what_costs_something_is_compared():
    paid_for = {kind for kind, law in KINDS.items() if law.rho is not None}
    assert paid_for - distinguishers._RATIOS.keys() == NOT_COMPARED


def kernel_imports(module):
    """What a module takes from the kernel, at its top or inside functions."""
    return [
        node.module
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.ImportFrom) and "_privacy" in f"{node.module}"
        for _ in node.names
    ] + [
        name.name
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
        if "_privacy" in name.name
    ]


INDEPENDENT = [_laws, _epsilon_bounds, _recount, claims, recount]


@pytest.mark.parametrize("module", INDEPENDENT, ids=lambda module: module.__name__)
def test_what_the_audit_knows_does_not_come_from_the_kernel(module):
    """Laws, conversions and totals: an error in a shared function would cancel."""
    assert kernel_imports(module) == []


@pytest.mark.parametrize(
    "look",
    [
        law_of,
        lambda event: check_claims([event], None, None),
        lambda event: paid([event]),
        lambda event: noise_problems([[event]]),
        Replay([STRANGE], np.arange(1)).record,
        Replay([], np.arange(1)).record,
    ],
    ids=["law_of", "claims", "paid", "noise", "replay", "replay of too many"],
)
def test_a_law_unknown_to_the_audit_is_an_error(look):
    """Claims and tests of the noise passed such an event in silence."""
    with pytest.raises(UnknownLawError, match="'strange'"):
        look(STRANGE)


# -- choices ---------------------------------------------------------------------------------------


def test_a_threshold_of_a_lead_that_is_too_low_is_found():
    good = Event("lead", "a", np.array([9, 0]), 1, 2.0, 1.0, {"threshold": 25, "delta": 1e-5}, 0)
    low = Event("lead", "a", np.array([9, 0]), 1, 2.0, 1.0, {"threshold": 12, "delta": 1e-5}, 0)
    assert list(law_of(good).claims(good)) == []
    assert "do not share" in next(iter(law_of(low).claims(low)))


def choice(value, output, scale=0.5, **public):
    """Scores of sensitivity one, and epsilon one."""
    return Event("choice", "a", np.array(value), 1, scale, 1.0, public, output)


@pytest.mark.parametrize(("scale", "wrong"), [(0.5, 0), (0.51, 1), (float("nan"), 1)])
def test_the_rate_of_a_choice_is_at_most_half_of_epsilon(scale, wrong):
    each = choice([1, 2], 0, scale)
    assert len(list(law_of(each).claims(each))) == wrong


@pytest.mark.parametrize(("scale", "wrong"), [(2.0, 0), (1.99, 1)])
def test_above_threshold_needs_twice_the_sensitivity(scale, wrong):
    each = choice([1, 2], 0, scale, threshold=1)
    assert len(list(law_of(each).claims(each))) == wrong


def test_the_largest_move_of_a_score_counts():
    player = Replay([choice([0, 0], 1)], np.arange(1))
    assert player.record(choice([1, -1], 0)) == 1
    assert player.ratios == {"a": 1.0} and player.loss == {"a": 1.0} and not player.violations
    player = Replay([choice([0, 0], 1)], np.arange(1))
    player.record(choice([0, 2], 0))
    assert player.violations != []


# -- randomness that is no noise -------------------------------------------------------------------


def replayed(known, present, units):
    player = Replay([known], np.array(units))
    return player, player.record(present)


def event(kind, output=None, value=None, **public):
    return Event(kind, "a", value, None, None, 0.0, public, output)


def test_common_units_keep_their_draws_and_the_added_one_has_its_own():
    known, present = event("draws", np.array([11, 22, 33])), event("draws", np.array([7, 8, 9, 10]))
    assert replayed(known, present, [0, -1, 1, 2])[1].tolist() == [11, 8, 22, 33]
    gone = event("draws", np.array([7, 8]))
    assert replayed(known, gone, [0, 2])[1].tolist() == [11, 33]
    nobody = event("draws", np.array([], dtype=int))
    assert replayed(nobody, event("draws", np.array([5])), [-1])[1].tolist() == [5]


@pytest.mark.parametrize("kind", ["seed", "sample", "runs", "fit", "step"])
def test_what_depends_on_no_data_is_the_same_for_both(kind):
    player, output = replayed(event(kind, 3), event(kind, 4), [0])
    assert output == 3 and player.violations == []


def test_points_go_where_their_partners_went():
    before = np.array([[0.0, 0], [10, 0], [0, 10]])
    after = before[[1, 2, 0]] + 0.1
    known = event("order", np.array([2, 0, 1]), before)
    _, output = replayed(known, event("order", np.array([0, 1, 2]), after), [0, 1, 2])
    # Points 2, 0, 1 of the recording are points 1, 2, 0 of the other one.
    assert output.tolist() == [1, 2, 0]


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("after", [True, False])
def test_a_condition_has_to_hold_on_both_sides(before, after):
    player, _ = replayed(event("condition", value=before), event("condition", value=after), [0])
    assert player.voided == ([] if before and after else ["a"])


def test_a_unit_of_several_copies_voids_the_pair():
    known = event("copies", value=np.array([1, 2]))
    assert replayed(known, event("copies", value=np.array([1, 2, 2])), [0, 1, -1])[0].voided
    assert replayed(known, event("copies", value=np.array([1])), [0])[0].voided
    assert not replayed(known, event("copies", value=np.array([1, 2, 1])), [0, 1, -1])[0].voided


def test_only_fits_and_steps_cost_something():
    laws = {kind: law_of(event(kind)) for kind in ("seed", "draws", "order", "condition", "runs")}
    assert all(law.rho is None for law in laws.values())
    for kind in ("fit", "step"):
        paid = Event(kind, "a", cost=0.25)
        assert law_of(paid).rho(paid) == 0.25


# -- shares ----------------------------------------------------------------------------------------


def share(output, public=None):
    return Event("share", "a", np.zeros(2, dtype=int), 1.0, 4.0, 0.5, public or {}, output)


def test_the_recorded_share_is_forced_on_the_client():
    player = Replay([share(np.array([3, -1]))], np.arange(1))
    assert player.record(share(np.array([8, 8]))).tolist() == [3, -1]
    assert player.violations == [] and player.ratios == {}  # it is no release
    assert player.take_shares("a").tolist() == [3, -1]


def test_a_share_costs_nothing_and_has_the_law_that_it_says():
    event = share(np.array([0, 4]))
    law = law_of(event)
    assert law.rho is None and list(law.claims(event)) == []
    low, high = law.numbers(event)
    assert np.allclose(low, ndtr([-1 / 8, 7 / 8])) and np.allclose(high, ndtr([1 / 8, 9 / 8]))


# -- filters ---------------------------------------------------------------------------------------


def scores(values, keep=None, **public):
    keep = np.ones(len(values), dtype=bool) if keep is None else np.array(keep)
    public = {"bad": 0, "most": 100, "fixed": False, "threshold": 5.0, **public}
    return Event("filter", "a", np.array(values), 1.0, 2.0, 0.5, public, keep)


def test_units_keep_their_fate_and_scores_have_to_be_close():
    known = scores([10, 20, 3], [True, True, False])
    player, keep = replayed(known, scores([11, 19]), [0, 2])
    assert keep.tolist() == [True, False] and player.ratios == {"a": 16.0}
    player, keep = replayed(known, scores([11, 19, 2]), [0, 1, 2])
    assert player.ratios == {"a": 1.0} and player.violations == []
    assert player.loss == {"a": pytest.approx(3 * (1 / 2) ** 2 / 2)}


def test_of_a_fixed_number_of_results_one_is_free_and_the_others_are_close():
    known = scores([10, 20, 3], fixed=True)
    for values, ratio in (([90, 20, 3], 0.0), ([90, 21, 3], 1.0), ([90, 22, 4], 2.0)):
        player, _ = replayed(known, scores(values, fixed=True), [0, 1, 2])
        assert player.ratios == {"a": ratio}


def test_a_bad_unit_that_survives_voids_the_pair():
    """Bad means a score of at most 0 in both data sets."""
    assert replayed(scores([0]), scores([0]), [0])[0].voided == ["a"]
    assert replayed(scores([0]), scores([1]), [0])[0].voided == []
    assert replayed(scores([0], [False]), scores([0]), [0])[0].voided == []
    assert replayed(scores([10, 0]), scores([10]), [0])[0].voided == ["a"]  # it is gone


def test_more_units_than_the_noise_is_for_void_the_pair():
    player, _ = replayed(scores([10, 10]), scores([10, 15], most=1), [0, 1])
    # The public facts differ as well here, which is told; the scores are not compared.
    assert player.voided == ["a"] and player.ratios == {}


def chances(values, keep):
    return Event("bernoulli", "a", np.array(values), 0.5, None, 1.0, {}, np.array(keep))


def test_chances_are_compared_in_l1_with_the_unit_that_comes():
    known = chances([0.9, 0.5], [True, False])
    player, keep = replayed(known, chances([0.8, 0.6, 0.3], [True] * 3), [0, 1, -1])
    assert player.ratios == {"a": pytest.approx(1.0)} and keep.tolist() == [True, False, True]
    player, _ = replayed(known, chances([0.9, 0.6], [True] * 2), [0, -1])
    assert player.ratios == {"a": pytest.approx(2.2)} and player.violations  # 0.6 came, 0.5 went
    assert replayed(known, chances([0.0, 0.5], [True] * 2), [0, 1])[0].voided == ["a"]


# -- histograms ------------------------------------------------------------------------------------


def cells(kind, counts, told=(), *, scale=2.0, sensitivity=1.0, **public):
    """Cells by their counts; `told` is what was published, by cell."""
    value = (np.array(list(counts), dtype=int), np.array(list(counts.values()), dtype=int))
    told = dict(told)
    output = (np.array(list(told), dtype=int), np.array(list(told.values()), dtype=int))
    public = {"low": 10, "delta": 1e-3, "n_candidates": 5, **public}
    cost = sensitivity**2 / scale**2 / 2
    return Event(kind, "a", value, sensitivity, scale, cost, public, output)


def compared(kind, before, after, told=(), **options):
    known = cells(kind, before, told, **options)
    player = Replay([known], np.arange(1))
    assert player.record(cells(kind, after, told, **options)) is known.output
    return player


def test_a_lone_cell_that_was_told_voids_the_pair():
    assert compared("stability", {3: 50, 8: 1}, {3: 50}, {3: 51}).voided == []
    assert compared("stability", {3: 50, 8: 1}, {3: 50}, {3: 51, 8: 12}).voided == ["a"]
    assert compared("stability", {3: 50}, {3: 50, 8: 1}, {3: 51}).voided == []


def test_a_lone_cell_holds_one_unit():
    assert compared("stability", {3: 50}, {3: 50, 8: 1}).violations == []
    assert compared("stability", {3: 50}, {3: 50, 8: 2}).violations != []
    # A unit may be in several, if that is told.
    for lone, cells in (({8: 1, 9: 1}, 2), ({8: 1, 9: 1}, 1), ({8: 2}, 2), ({8: 1, 9: 1, 4: 1}, 2)):
        player = compared("stability", {3: 50}, {3: 50, **lone}, sensitivity=2**0.5, cells=cells)
        assert bool(player.violations) == (lone != {8: 1, 9: 1} or cells == 1)
    # Its noise is not what protects it: only the others' counts cost something.
    assert compared("stability", {3: 50}, {3: 50, 8: 1}).loss == {"a": 0.0}
    assert compared("stability", {3: 50}, {3: 51}).loss == {"a": 1 / 8}


@pytest.mark.parametrize(("low", "wrong"), [(8, 0), (7, 1)])
def test_a_threshold_hides_cells_of_a_single_unit(low, wrong):
    """Noise of scale 2: 1 + noise reaches 8 with P[Z > 3.25] = 0.0006, and 7 with 0.003."""
    each = cells("stability", {3: 5}, low=low)
    assert len(list(law_of(each).claims(each))) == wrong


@pytest.mark.parametrize("kind", ["sparse", "stability"])
def test_the_scale_has_to_be_enough(kind):
    each = cells(kind, {3: 5}, low=30)
    assert list(law_of(each).claims(each)) == []
    each.scale = 1.99
    assert "too little noise" in next(iter(law_of(each).claims(each)))


def test_empty_cells_of_a_sparse_histogram_have_noise_too():
    """Four empty candidates, one of which is told: binomial, and in the tail above the level."""
    each = cells("sparse", {3: 12}, {3: 14, 4: 11})
    chance = ndtr(-4.75)
    low, high = law_of(each).numbers(each)
    number = binom.cdf([0, 1], 4, chance)
    tail = 1 - ndtr([-5.25, -5.75]) / chance
    assert np.allclose(low, [ndtr(0.75), number[0], tail[0]])
    assert np.allclose(high, [ndtr(1.25), number[1], tail[1]])


# -- noise in proportion ---------------------------------------------------------------------------


ORDERS = np.array([1.02, 1.5, 2.0, 5.0, 50.0])


@pytest.mark.parametrize("d", [1, 3, 40])
@pytest.mark.parametrize("distance", [0.001, 0.3])
@pytest.mark.parametrize("eta", [1e-3, 0.05])
def test_the_divergence_agrees_with_the_kernel(d, distance, eta):
    """But for what the kernel adds for rounding: less than 1e-11 d^2 at the order 1.02."""
    ours = _epsilon_bounds.largest_divergence(ORDERS, distance, eta, d)
    theirs = kernel.renyi(ORDERS, distance, eta, d)
    finite = np.isfinite(theirs)
    np.testing.assert_array_equal(np.isfinite(ours), finite)
    np.testing.assert_allclose(ours[finite], theirs[finite], rtol=1e-9, atol=1e-11 * d * d)
    assert np.all(ours[finite] <= theirs[finite])


@pytest.mark.parametrize("d", [1, 3, 40])
@pytest.mark.parametrize("distance", [0.001, 0.1])
@pytest.mark.parametrize("rho", [1e-2, 1.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-3])
def test_what_the_kernel_draws_is_not_blamed_and_less_is(d, distance, rho, delta):
    """The kernel's scales are in steps of 2^(1/16); 20% less than the step above is too little."""
    eta = kernel.least_eta(distance, d, rho, delta)
    if eta is None:  # no noise is enough
        assert not _epsilon_bounds.is_zcdp(distance, 0.9, d, rho, delta)
        return
    assert _epsilon_bounds.is_zcdp(distance, eta, d, rho, delta)
    assert eta < 7e-5 or not _epsilon_bounds.is_zcdp(distance, 0.8 * eta, d, rho, delta)


def test_a_claim_of_too_little_noise_is_told():
    eta = kernel.least_eta(0.01, 2, 0.5, 1e-6)

    def complaints(scale):
        event = Event("proportional", "a", None, 0.01, scale, 0.5, {"delta": 1e-6}, np.eye(2))
        return list(law_of(event).claims(event))

    assert complaints(eta) == []
    assert complaints(eta / 1.25) == ["a: too little noise for its distance and cost"]
