"""From a table of persons to segments with a profile."""

import re

import numpy as np
import pandas as pd
import pytest

from benchmarks.certify.checks import EVERY_CHECK
from sklearn_dp import DPProfile, PrivacyBudget, PrivacyLedger, profile
from sklearn_dp.audit import replay_audit
from sklearn_dp.audit._checks import N_FEATURES
from sklearn_dp.exceptions import BudgetExceededError, UtilityWarning
from sklearn_dp.segments import _dp_profile
from sklearn_dp.segments._profile_answer import Balance

SCHEMA = {
    "age": (15, 100),
    "income": (0, 500_000),
    "work": ["school", "full", "retired"],
    "sex": ["female", "male"],
}


def persons(n=6000, seed=0):
    """Three kinds of persons; some incomes and kinds of work are missing."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(3, n, p=[0.2, 0.5, 0.3])
    income = rng.lognormal(np.array([8.5, 10.8, 9.9])[kind], 0.4)
    work = np.array(["school", "full", "retired"], dtype=object)[kind]
    return pd.DataFrame(
        {
            "sex": rng.choice(np.array(["female", "male"], dtype=object), n),
            "age": rng.normal(np.array([20, 42, 72])[kind], 4).round(),
            "name": [f"person {i}" for i in range(n)],
            "income": np.where(rng.random(n) < 0.05, np.nan, income.round()),
            "work": np.where(rng.random(n) < 0.1, None, work),
        }
    )


@pytest.fixture(scope="module")
def found():
    return profile(persons(), SCHEMA, 3, random_state=0)


@pytest.fixture
def numbers():
    """Rows of three columns, of which audits make neighbors, and an estimator for them."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    return X, DPProfile([(-4, 5), (-4, 5), [0, 1]], 2, epsilon=50.0, random_state=0)


def test_segments_are_described_in_natural_units(found):
    """All figures are within five standard errors (false alarms below 1e-4 by 40 normal figures;
    the stated errors are upper ones, and the seed is fixed)."""
    rows, table = persons(), found.table
    labels = found.predict(rows)
    assert set(labels) == {1, 2, 3} and found.trustworthy_
    for segment in (1, 2, 3):
        inside = rows[labels == segment]
        values, errors = (table[segment, what] for what in ("value", "std_error"))
        true = {
            ("size", "rows"): len(inside),
            ("age", "mean"): inside["age"].mean(),
            ("income", "mean"): inside["income"].mean(),
            ("income", "missing"): inside["income"].isna().mean(),
            ("work", "unlisted"): inside["work"].isna().mean(),
            **{("work", name): (inside["work"] == name).mean() for name in SCHEMA["work"]},
            **{("sex", name): (inside["sex"] == name).mean() for name in SCHEMA["sex"]},
        }
        for place, value in true.items():
            assert abs(values[place] - value) < 5 * errors[place], (segment, place)
        assert values[("work",)].sum() == pytest.approx(1.0)
        assert errors["age", "mean"] < 2 and errors["income", "mean"] < 15_000
    # One kind of person for each segment, by age.
    assert sorted(round(age, -1) for age in table.loc[("age", "mean")].xs("value", level=1)) == [
        *(20, 40, 70)
    ]


def test_the_fits_cost_what_was_asked_for_and_are_charged_once():
    ledger = PrivacyLedger(PrivacyBudget(epsilon=1.5, delta=1e-5))
    model = DPProfile(SCHEMA, 3, epsilon=1.0, ledger=ledger)
    plan = model.privacy_plan()
    assert [entry.name for entry in plan.entries] == ["scales", "shares", "clusters", "segments"]
    assert plan.gaussian and plan.epsilon <= 1.0 * (1 + 1e-9) and plan.epsilon > 0.999
    report = model.fit(persons()).privacy_report_
    (charge,) = ledger.entries
    assert charge.label == "DPProfile"
    assert report.epsilon == plan.epsilon == charge.epsilon and charge.rho == plan.rho
    assert 0.5 * plan.rho < report.spent_rho <= plan.rho
    assert model.estimator_.privacy_report_ is report and model.estimator_.ledger is ledger
    with pytest.raises(BudgetExceededError):
        model.fit(persons())
    assert len(ledger.entries) == 1
    assert DPProfile(SCHEMA, rho=0.1).privacy_plan(4, unit="group").unit == "group"


def test_public_mistakes_are_found_before_the_charge():
    ledger = PrivacyLedger(PrivacyBudget(epsilon=1.5, delta=1e-5))
    rows = persons(50)
    wrong = [
        ({"schema": {**SCHEMA, "height": (0, 2)}}, rows, "no column 'height'"),
        ({"n_segments": 0}, rows, "n_segments"),
        ({"weights": {"height": 2.0}}, rows, "weights"),
        ({"schema": {"age": (20, 10)}}, rows, "schema"),
        ({"n_jobs": 0}, rows, "n_jobs"),
        ({}, rows.assign(age=pd.Timestamp("2020-01-01")), "dates"),
        ({}, rows["age"], "2D"),
    ]
    for options, X, words in wrong:
        with pytest.raises((ValueError, TypeError), match=words):
            DPProfile(**{"schema": SCHEMA, "ledger": ledger, **options}).fit(X)
    with pytest.raises(ValueError, match="n_features"):
        DPProfile(SCHEMA).privacy_plan(3)
    assert not ledger.entries


# -- what the status says --------------------------------------------------------------------------


def status(table, schema=SCHEMA, n_segments=3, **options):
    with pytest.warns() as caught:
        found = profile(table, schema, n_segments, random_state=0, **options)
    told = [each for each in caught if each.category is UtilityWarning]
    assert bool(told) is not found.trustworthy_
    return str(found.messages_)


def test_a_schema_that_does_not_fit_is_told():
    rows = persons()
    spelled = {**SCHEMA, "work": ["School", " full", "Retired"]}
    assert "no row had a known value of work; check spelling" in status(rows, spelled)
    in_months = status(rows.assign(age=12 * rows["age"]))
    assert "age is at its bound in every row; check the unit" in in_months
    narrow = status(rows, {**SCHEMA, "income": (0, 30_000)})
    true = 100 * (rows["income"] > 30_000).mean()
    (share,) = re.findall(r"(\d+)% of the values of income are outside of its range", narrow)
    assert abs(int(share) - true) < 3


@pytest.mark.parametrize("n", [1, 2])
def test_any_number_of_rows_gets_an_answer(n):
    rows = persons(10)[:n]
    with pytest.warns(UtilityWarning):
        found = profile(rows, SCHEMA, 3)
    assert found.table.shape[1] == 6 and found.means_.shape[0] == 3
    assert "95% margin" in found._page()


# -- what is shown ---------------------------------------------------------------------------------


def test_the_page_has_the_table_the_status_and_the_guarantee(found, tmp_path):
    found.save(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for words in ("<!doctype html>", "3 segments", "Segment 3", "age: mean", "Status: ok"):
        assert words in page
    assert "1e-06)-DP" in page and "random_state" in page and "<script" not in page
    shown = re.findall(r"<td[^>]*>([^<]*)</td>", page)
    # Shares of values that are not known are left out where there are none.
    assert 3 * (1 + 1 + 2 + 4 + 2) <= len(shown) < 3 * len(found.table)
    assert all(re.fullmatch(r"-?[\d,.]+ ± [\d,.]+%?", text) for text in shown)


# -- privacy ---------------------------------------------------------------------------------------


ANY_WIDTH = {"check_replay", "check_drawn_data", "check_noise_law"}
UNCHECKED = {"check_small_data", "check_noise_is_fresh"}
LONG = {"check_replay_of_hard_groups", "check_refit", "check_no_leaks"}
"""What needs any number of columns, and what needs parts of the base class. The fits are
those of estimators that pass all of them."""


@pytest.mark.parametrize(
    "check",
    [
        pytest.param(check, marks=[pytest.mark.slow] if check.__name__ in LONG else [])
        for check in EVERY_CHECK
        if check.__name__ not in ANY_WIDTH | UNCHECKED
    ],
    ids=lambda check: check.__name__,
)
def test_the_checks_of_private_estimators(check):
    check(DPProfile([(-4.0, 5.0)] * N_FEATURES, 2, epsilon=20.0))


@pytest.mark.slow
def test_a_replay_notices_scales_that_are_not_released(numbers, monkeypatch):
    """Balanced by the rows themselves: neighbors then have other rows in all places."""
    X, model = numbers
    assert replay_audit(model, X).passed
    of_releases, fitted, seen = Balance.of, DPProfile._fitted, []

    def of_rows(columns, scales, asked):
        scales.var_ = seen[-1].var(axis=0)
        return of_releases(columns, scales, asked)

    def seeing(session, stages, name, rows, units):
        seen.append(rows)
        return fitted(session, stages, name, rows, units)

    monkeypatch.setattr(DPProfile, "_fitted", staticmethod(seeing))
    monkeypatch.setattr(_dp_profile.Balance, "of", of_rows)
    assert not replay_audit(model, X).passed


@pytest.mark.slow
def test_a_replay_notices_a_group_in_two_segments(numbers, monkeypatch):
    X, model = numbers
    groups = np.arange(60) // 4
    assert replay_audit(model, X, groups=groups).passed
    monkeypatch.setattr(
        _dp_profile, "units_in_one_segment", lambda groups, labels: (groups, labels)
    )
    assert not replay_audit(model, X, groups=groups).passed
