"""Keys whose values divide the units: what is admitted, what it adds up to, ways around it."""

import itertools
import pickle
import random
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from kernel_tools import make_plan
from ledger_tools import BUDGET, QUARTER, Fit, admitted, cloudpickle, fill
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.pipeline import FeatureUnion, make_pipeline

from sklearn_dp import DPKMeans, privacy_report, privatize
from sklearn_dp._costs.accounting import gaussian_epsilon, mu_from_rho
from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.ledger_terms import LedgerCharge, LedgerState, LedgerTerms
from sklearn_dp._costs.numbers import RELATIONS, dearest
from sklearn_dp._costs.plan import PlanEntry
from sklearn_dp._privacy._ledger import PrepaidFit, PrivacyLedger, paid_together
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp.exceptions import BudgetExceededError, LedgerError
from sklearn_dp.model_selection import preflight

REGIONS = ["north", "south", "east"]


@pytest.fixture
def region(ledger):
    return ledger.disjoint("region", values=REGIONS)


# ------------------------------------------------------------------------------ what is admitted


def test_the_dearest_value_is_found_exactly():
    """Two sums that differ by less than any float shows."""
    lines = [("k", "a", 1.0, 0.0), ("k", "a", 2.0**-60, 0.0), ("k", "b", 1.0, 0.0)]
    for order in itertools.permutations(lines):
        assert sorted(dearest(order)[0]) == [2.0**-60, 1.0]


# ---------------------------------------------------------------- totals of random books


def random_book(rng, n_keys):
    """A ledger in memory, its charges (values by key, charge) and the values of its keys."""
    kind = rng.choice(["gaussian", "failing", "mixed"])
    composition = "gaussian" if kind == "gaussian" else rng.choice(["basic", "zcdp"])
    ledger = PrivacyLedger(PrivacyBudget(1e6, 0.5), composition=composition)
    keys = {f"key {i}": [f"value {j}" for j in range(rng.integers(1, 5))] for i in range(n_keys)}
    opened = {name: ledger.disjoint(name, values) for name, values in keys.items()}
    made = []
    for _ in range(rng.integers(1, 16)):
        gaussian = kind == "gaussian" or (kind == "mixed" and rng.random() < 0.5)
        failure = 0.0 if kind == "gaussian" else float(rng.choice([0.0, 1e-8, 3e-8]))
        charge = LedgerCharge(
            float(rng.exponential(0.5)), float(rng.choice([0.0, 1e-7])),
            rho=float(rng.exponential(0.05)), delta_failure=failure, gaussian=gaussian,
        )  # fmt: skip
        where = {}
        if rng.random() < 0.75:
            name = rng.choice(list(keys))
            where = {str(name): str(rng.choice(keys[name]))}
        key, value = next(iter(where.items()), ("", ""))
        (opened[key][value] if where else ledger).charge(charge)
        made.append((where, charge))
    return ledger, made, keys, kind


def combinations(made, keys, fixed=None):
    """The charges of a unit, for each combination of values; none of a key's is one, too."""
    choices = [
        [fixed[k]] if fixed and k in fixed else [*values, None] for k, values in keys.items()
    ]
    for values in itertools.product(*choices):
        unit = dict(zip(keys, values, strict=True))
        yield [charge for where, charge in made if where.items() <= unit.items()]


DELTA = 1e-5
ORDERS = [1.05, 1.3, 2, 4, 7, 12, 20, 40, 80, 160]


def event_of(accounting, charge):
    if charge.rho and charge.gaussian:
        return accounting.GaussianDpEvent(1 / (2 * charge.rho) ** 0.5)
    return accounting.ZCDpEvent(charge.rho)


def epsilon_of(accounting, event, failure):
    accountant = accounting.rdp.RdpAccountant(orders=ORDERS).compose(event)
    return accountant.get_epsilon(DELTA - failure)


def truth(accounting, paid):
    """By dp-accounting, of charges that are composed here."""
    event = accounting.ComposedDpEvent([event_of(accounting, charge) for charge in paid])
    return epsilon_of(accounting, event, sum(charge.delta_failure for charge in paid))


def check_costs(state, made, keys, fixed=None):
    """Spent and remaining against all combinations, in fractions."""
    for name, cap in zip(state.terms.columns, state.terms.caps, strict=True):
        most = max(
            sum((Fraction(getattr(charge, name)) for charge in paid), Fraction(0))
            for paid in combinations(made, keys, fixed)
        )
        assert most <= Fraction(state.spent[name]) <= most * (1 + Fraction(1, 2**51))
        assert Fraction(state.remaining[name]) <= Fraction(cap) - most
        assert state.remaining[name] >= float(Fraction(cap) - most) * (1 - 1e-15)


def check_book(seed, n_keys):
    """The whole ledger, and that of each value: never below the truth; how far above."""
    accounting = pytest.importorskip("dp_accounting", reason="the `test` extra installs it")
    rng = np.random.default_rng([seed, n_keys])
    ledger, made, keys, kind = random_book(rng, n_keys)
    paid = list(combinations(made, keys))
    true = max(truth(accounting, each) for each in paid)
    told = epsilon_of(accounting, *ledger.to_dp_accounting())
    assert told >= true * (1 - 1e-12)
    check_costs(ledger.state(), made, keys)
    values = []
    for key in keys:
        for value, face in ((value, ledger.disjoint(key)[value]) for value in keys[key]):
            own = max(truth(accounting, each) for each in combinations(made, keys, {key: value}))
            values.append(epsilon_of(accounting, *face.to_dp_accounting()))
            assert values[-1] >= own * (1 - 1e-12)
            assert n_keys == 2 or values[-1] <= own * (1 + 1e-9)
            check_costs(face.state(), made, keys, {key: value})
    # Several curves may cross, those of one key only where failures differ.
    excess = told / true - 1 if true else 0.0
    if n_keys == 1:
        # What no value pays is paid by units of none, too.
        none = truth(accounting, next(iter(combinations(made, keys, dict.fromkeys(keys)))))
        excess = max(*values, none) / true - 1 if true else 0.0
        assert -1e-12 <= excess <= 1e-9
    if kind == "gaussian" and ledger.spent["rho"]:
        total = gaussian_epsilon(mu_from_rho(ledger.spent["rho"]), DELTA)
        exact = max(
            accounting.get_epsilon_gaussian(1 / (2 * rho) ** 0.5, DELTA)
            for each in paid
            if (rho := sum(charge.rho for charge in each))
        )
        assert exact * (1 - 1e-10) <= total <= exact * (1 + 1e-9)
        assert told <= true * (1 + 1e-9)
    return excess


@pytest.mark.parametrize("n_keys", [1, 2])
@pytest.mark.parametrize("books", [25, pytest.param(200, marks=pytest.mark.slow)])
def test_totals_of_random_books_are_those_of_all_combinations(books, n_keys):
    for seed in range(books):
        check_book(seed, n_keys)


@pytest.mark.parametrize("n_keys", [1, 2])
def test_a_charge_is_admitted_if_every_combination_can_pay_it(n_keys):
    """Charges of quarters until nothing fits, each decision by brute force."""
    for seed in range(40):
        rng = random.Random(seed)
        ledger = PrivacyLedger(PrivacyBudget(2.0, 0.5))
        keys = {f"key {i}": list("abc") for i in range(n_keys)}
        faces = {("", ""): ledger}
        for key, values in keys.items():
            opened = ledger.disjoint(key, values)
            faces |= {(key, value): opened[value] for value in opened}
        made = []
        for _ in range(40):
            (key, value), face = rng.choice(list(faces.items()))
            where = {key: value} if key else {}
            charge = LedgerCharge(0.25 * rng.randint(1, 4), 1 / 32 * rng.randint(0, 4))
            fits = all(
                sum(each.epsilon for each in (*paid, charge)) <= 2
                and sum(each.delta for each in (*paid, charge)) <= 0.5
                for paid in combinations(made, keys, where)
            )
            assert admitted(face, charge) == fits
            made += [(where, charge)] if fits else []


def test_the_guarantee_holds_for_whoever_chooses_by_all_that_was_released():
    """The proof, by enumeration: laws of whole transcripts on all pairs of neighbors.

    A fit answers whether its value has a unit, truly with odds of exp(epsilon) to 1. What it is
    asked next, of whom, and for how much, is an arbitrary function of all answers and refusals.
    """
    terms = LedgerTerms.of(PrivacyBudget(1.0, 0.0))
    names = [("", ""), ("k", "a"), ("k", "b")]

    def ratios(seed, rows, other, history=(), spent=(), logs=(0.0, 0.0)):
        """log P, log Q of each transcript on two data sets: where there are units."""
        if len(history) == 7:
            yield logs[0] - logs[1]
            return
        rng = random.Random(repr((seed, history)))
        (key, value), epsilon = rng.choice(names), rng.choice([0.25, 0.5, 0.75])
        charge = LedgerCharge(epsilon, 0.0, key=key, value=value)
        try:
            terms.admit(charge, spent)
        except BudgetExceededError:
            yield from ratios(seed, rows, other, (*history, "refused"), spent, logs)
            return
        for answer in (True, False):
            after = []
            for units, log in zip((rows, other), logs, strict=True):
                there = (value in units) if key else bool(units)
                odds = epsilon if answer == there else 0.0
                after.append(log + odds - np.log1p(np.exp(epsilon)))
            line = (*spent, terms.line(charge))
            yield from ratios(seed, rows, other, (*history, answer), line, tuple(after))

    worst = 0.0
    for seed in range(20):
        for rows, other in (((), "a"), ("b", "ab"), ("a", "ab"), ((), "c")):
            worst = max(worst, *map(abs, ratios(seed, rows, other)))
    assert 0.99 < worst <= 1.0 + 1e-9


# ------------------------------------------------------------------------------ names


@pytest.mark.parametrize(
    "name", ["", " ", "a\nb", "a\0", "\ud800", "a\u200b", "a\u202eb", "a\u00a0b", "\x1b[0m"]
)
def test_names_that_do_not_print_are_refused(ledger, name):
    for key, values in ((name, ["a"]), ("region", ["a", name])):
        with pytest.raises(ValueError, match="printable"):
            ledger.disjoint(key, values)
    assert ledger.state().keys == {}


# ------------------------------------------------------------------------------ attacks


def test_a_value_that_nobody_listed(ledger, region):
    """It may be one that was found in the data."""
    for value in ("west", "North", "", "e\u0301", None, 3, np.array(REGIONS), slice(0, 2)):
        with pytest.raises(KeyError, match="were listed once: north, south, east.*is private"):
            region[value]
    with pytest.raises(KeyError) as caught:
        region["the village of the one patient"]
    assert "village" not in str(caught.value)
    assert not hasattr(region, "get")  # whose None would be an estimator without a ledger
    assert list(region) == REGIONS and len(region) == 3
    assert repr(region) == "<DisjointLedgers 'region': 3 values>"
    assert "region: 3 non-overlapping groups" in ledger._repr_html_()
    forged = type(region)(ledger, "region", ("west",))["west"]
    with pytest.raises(LedgerError, match="region = 'west' is not listed"):
        forged.charge(QUARTER)
    assert ledger.entries == ()


@pytest.mark.parametrize("relation", RELATIONS)
def test_neighbors_that_may_move_a_unit_are_refused(tmp_path, relation):
    """Replacing a northerner by a southerner removes a unit from the north: no fit covers that."""
    for path in (None, tmp_path / "ledger"):
        ledger = PrivacyLedger(BUDGET, path, unit="group", relation=relation)
        if relation == "add or remove":
            assert len(ledger.disjoint("region", REGIONS)) == 3
            continue
        with pytest.raises(LedgerError, match="relation='add or remove'"):
            ledger.disjoint("region", REGIONS)
        assert ledger.state().keys == {}


def test_no_charge_moves_to_other_payers(ledger, region):
    """Where a charge is made decides, and not what it says of itself."""
    region["north"].charge(LedgerCharge(0.5, 0.0, key="region", value="south"))
    ledger.charge(LedgerCharge(0.25, 0.0, key="region", value="south"))
    assert [each.payers for each in ledger.entries] == [("region", "north"), ("", "")]
    for key, value in (("region", ""), ("", "north"), (1, 2)):
        with pytest.raises((TypeError, ValueError), match="key|value"):
            LedgerCharge(0.1, 0.0, key=key, value=value)


def test_pickles_name_the_file_the_key_and_the_value(path):
    region = PrivacyLedger(path=path).disjoint("region", REGIONS)
    for twin in (
        pickle.loads(pickle.dumps(region["north"])),
        cloudpickle.loads(cloudpickle.dumps(region))["north"],
        pickle.loads(pickle.dumps(Fit(region["north"]))).ledger,
    ):
        assert twin.payers == ("region", "north") and twin.path == path
        twin.charge(QUARTER)
    assert fill(region["north"]) == 1 and fill(region["south"]) == 4


def test_a_payment_for_one_value_is_not_taken_by_another():
    ledger = PrivacyLedger(PrivacyBudget(9.0, 1e-4))
    region = ledger.disjoint("region", REGIONS)
    plan = make_plan(PlanEntry("sum", "gaussian", 0.01), rho=0.01)
    part = partial(PrepaidFit, label="A", rho=0.01, delta=1e-6, gaussian=True, unit="row",
                   relation="add or remove")  # fmt: skip
    with paid_together([part(region["north"]), part(ledger.disjoint("region")["north"])]):
        assert [each.payers for each in ledger.entries] == [("region", "north")]
        for other, charges in ((region["south"], 2), (ledger, 3), (region["north"], 3)):
            PrivacySession(plan, ledger=other, label="A")
            assert len(ledger.entries) == charges


def test_steps_of_one_fit_are_not_charged_to_two_values():
    """The same rows under two values, where one call sees both; elsewhere it is the user's word."""
    ledger = PrivacyLedger(PrivacyBudget(9.0, 1e-4))
    region = ledger.disjoint("region", REGIONS)
    rows = np.random.default_rng(0).normal(size=(500, 3))
    for made, step in (
        (make_pipeline(PCA(2), KMeans(2)), "kmeans"),
        (FeatureUnion([("a", PCA(2)), ("b", PCA(1))]), "b"),
    ):
        twin = privatize(made, epsilon=1.0, ledger=region["north"])
        twin.set_params(**{f"{step}__ledger": region["south"]})
        for use in (twin.fit, lambda rows, twin=twin: preflight(twin, rows)):
            with pytest.raises(LedgerError, match="charged to two values of 'region'"):
                use(rows)
    assert ledger.entries == ()


def test_fits_reports_and_preflight_know_the_payers(tmp_path):
    ledger = PrivacyLedger(PrivacyBudget(1.0, 1e-5), tmp_path / "ledger")
    region = ledger.disjoint("region", REGIONS)
    rows = np.random.default_rng(0).normal(size=(400, 2))
    for name in REGIONS:
        model = DPKMeans(2, epsilon=1.0, bounds=5.0, ledger=region[name]).fit(rows)
        assert model.privacy_report_.payers == privacy_report(model).payers == f"region = {name!r}"
        assert (
            f"of your 1, delta = 1e-06 of your 1e-05, paid by the units of region = '{name}' "
            in (model.privacy_report_.spent)
        )
        with pytest.raises(BudgetExceededError):
            preflight(model, rows)
    assert 0.99 < ledger.spent["epsilon"] <= 1.0 and len(ledger.entries) == 3
    assert DPKMeans(2, bounds=5.0).fit(rows).privacy_report_.payers == ""


# ------------------------------------------------------------------------------ shown


def test_a_state_of_a_value_counts_what_its_units_pay():
    terms = LedgerTerms.of(BUDGET)
    charges = tuple(
        LedgerCharge(0.125, 0.0, key=key, value=value)
        for key, value in (("", ""), ("k", "a"), ("k", "b"), ("l", "a"))
    )
    keys = {"k": ("a", "b"), "l": ("a",)}
    state = LedgerState(terms, charges, keys, payers=("k", "a"))
    assert [each.payers for each in state.counted] == [("", ""), ("k", "a"), ("l", "a")]
    assert state.spent["epsilon"] == 0.375 == LedgerState(terms, charges, keys).spent["epsilon"]
    assert [(value, spent["epsilon"]) for value, spent, _ in state.values_of("l")] == [("a", 0.375)]
    assert [(value, left["epsilon"]) for value, _, left in state.values_of("k")] == [
        ("a", 0.625),
        ("b", 0.625),
    ]
    assert dict(state.by_label()) == {"without a label": (list(state.counted), 0.375)}
