"""Accounts: exact sums, caps, and what is left as it was when a charge is refused."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_tools import make_plan

from sklearn_dp._costs.plan import Accounts, Mechanism, PlanEntry, PlanError

GAUSSIAN = Mechanism.GAUSSIAN


def accounts(**options):
    return Accounts(
        make_plan(
            PlanEntry("a", GAUSSIAN, 0.5, 1e-7, uses=None, max_rho=1.0),
            PlanEntry("b", GAUSSIAN, 0.5),
            **options,
        )
    )


@given(st.lists(st.floats(1e-9, 0.2), max_size=20))
def test_what_is_spent_and_left_adds_up_exactly(costs):
    book, exact = accounts(), Fraction(0)
    for cost in costs:
        if exact + Fraction(cost) > 1:
            with pytest.raises(PlanError, match="overspend"):
                book.pay("a", cost, 0.0, GAUSSIAN)
            continue
        book.pay("a", cost, 0.0, GAUSSIAN)
        exact += Fraction(cost)
    assert Fraction(book.spent) >= exact and Fraction(book.remaining()) <= 1 - exact
    assert float(exact) <= book.spent <= float(exact) * (1 + 2.0**-52)


@pytest.mark.parametrize(
    "rho, delta",
    [
        (-0.1, 0.0),
        (-0.1, 1e-8),
        (0.1, -1e-9),
        (0.0, 0.0),
        (float("nan"), 0.0),
        (0.1, float("nan")),
        (float("inf"), 0.0),
        (0.1, float("inf")),
    ],
)
def test_a_cost_that_is_no_cost_is_refused_and_leaves_no_trace(rho, delta):
    """A negative delta beside a rho passed: it gave the other releases more than the plan has."""
    book = accounts()
    book.pay("a", 0.25, 1e-8, GAUSSIAN)
    with pytest.raises(PlanError, match="positive"):
        book.pay("a", rho, delta, GAUSSIAN)
    assert book.spent == 0.25 and book._of["a"].uses == book._total.uses == 1
    book.pay("a", 0.25, 8e-8, GAUSSIAN)
    with pytest.raises(PlanError, match="delta"):
        book.pay("a", 0.25, 2e-8, GAUSSIAN)


def test_branches_spend_on_their_own_and_the_dearest_counts():
    book = accounts()
    one, other = book.branch(), book.branch()
    one.pay("a", 0.25, 5e-8, GAUSSIAN)
    other.pay("b", 0.125, 0.0, GAUSSIAN)
    assert (book.spent, one.spent, other.spent) == (0.0, 0.25, 0.125)
    for branch in (one, other):
        book.raise_to(branch)
    assert book.spent == 0.25 and book.remaining("a") == 0.75 and book.remaining("b") == 0.375
    assert one.spent == 0.25


def test_what_is_waived_is_there_for_others_up_to_their_caps():
    book = accounts()
    book.pay("b", 0.125, 0.0, GAUSSIAN)
    part = book.branch()
    book.waive("b")
    assert book.remaining("b") == 0 and book.remaining("a") == book.remaining() == 0.875
    with pytest.raises(PlanError, match="b"):
        book.pay("b", 1e-9, 0.0, GAUSSIAN)
    book.pay("a", 0.875, 0.0, GAUSSIAN)
    with pytest.raises(PlanError, match="overspend"):
        book.pay("a", 1e-9, 0.0, GAUSSIAN)
    assert part.remaining("b") == 0.375
    with pytest.raises(PlanError, match="no plan entry"):
        book.waive("c")
