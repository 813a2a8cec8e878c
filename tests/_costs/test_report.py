"""The table of a fit: what it says, and that markup in it is text."""

import pytest
from kernel_tools import make_plan, open_session

from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.plan import PlanEntry
from sklearn_dp._privacy._ledger import PrivacyLedger
from sklearn_dp._privacy._session import PrivacySession

GUESS = (
    "guess {}, but would be right at most {}% of the time, if both cases were equally likely "
    "beforehand (a coin toss is right 50% of the time). This limit follows from {}"
)
BY_LAW = "the exact distribution of the noise; epsilon and delta alone would allow 73.5%."


@pytest.mark.parametrize(
    ("options", "secret", "percent"),
    [
        ({}, "whether any one row was in the data", "54.8"),
        ({"unit": "group"}, "whether any one group of rows was in the data", "54.8"),
        ({"relation": "replace"}, "whether any one row was replaced by a different one", "54.8"),
        ({"relation": "replace", "unit": "group"},
         "whether any one group of rows was replaced by a different one", "54.8"),
        ({"relation": "add or remove the rows of", "unit": "group"},
         "whether the rows of any one client were in the data", "54.8"),
        ({"relation": "replace the rows of", "unit": "group"},
         "whether the rows of any one client were replaced by different ones", "54.8"),
        # There is no epsilon left, and (0, delta)-DP says more than rho does.
        ({"delta": 0.1}, "whether any one row was in the data", "55.1"),
    ],
)  # fmt: skip
def test_a_report_says_who_can_tell_what(options, secret, percent):
    entry = PlanEntry("sum", "gaussian", 0.02880)  # a shift of .24 standard deviations
    plan = make_plan(entry, rho=0.02880, **options)
    alone = options.get("delta") == 0.1
    words = GUESS.format(secret, percent, "epsilon and delta alone." if alone else BY_LAW)
    assert plan.report().told == (
        "From everything that a fit by this plan releases, someone who knows all other rows could "
        + words
    )
    session = PrivacySession(plan)
    session.gaussian("sum", 3, sensitivity=1.0)
    assert session.report().told == (
        "From everything that this fit releases, someone who knows all other rows can " + words
    )


def test_seeded_noise_is_the_first_thing_that_is_told():
    session = open_session()
    session.gaussian("sum", 3, sensitivity=1.0)
    assert session.report().told.startswith(
        "The noise of this fit does not protect against anyone who knows random_state. Against "
        "everyone else"
    )


def test_what_was_spent_is_what_the_ledger_was_charged():
    plan = make_plan(PlanEntry("sum", "gaussian", 0.02), rho=0.02)
    assert plan.report().spent == f"It would spend epsilon = {plan.epsilon:.4g}, delta = 1e-06."
    ledger = PrivacyLedger(PrivacyBudget(epsilon=3.0, delta=1e-5))
    session = PrivacySession(plan, ledger=ledger)
    session.gaussian("sum", 3, sensitivity=1.0)
    report = session.report()
    (charge,) = ledger.entries
    assert report.ledger == (("epsilon", charge.epsilon, 3.0), ("delta", charge.delta, 1e-5))
    assert report.spent == (
        f"It spent epsilon = {charge.epsilon:.4g} of your 3, delta = 1e-06 of your 1e-05."
    )
    # A fit inside a fit was not charged, and its report does not say so.
    assert session.inside(plan, "x").report().ledger == ()
    in_rho = PrivacyLedger(PrivacyBudget(rho=0.5, delta=1e-6))
    assert PrivacySession(plan, ledger=in_rho).report().ledger[0] == ("rho", 0.02, 0.5)
