"""Drawn cases meet triggers; the chances that are stated hold."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_dp.audit._drawn import (
    LARGE,
    MOST_COLUMNS,
    MOST_ROWS,
    PERIOD,
    SMALL,
    drawn_audit,
    drawn_cases,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.PrivacyWarning")


@given(st.integers(0, 2**31))
@settings(max_examples=30)
def test_each_n_and_each_d_is_met(seed):
    cases = list(drawn_cases(SMALL, seed))
    assert sorted(case.n for case in cases) == list(range(SMALL))
    assert min(Counter(case.d for case in cases[: 2 * MOST_COLUMNS]).values()) == 2
    *larger, largest = list(drawn_cases(PERIOD, seed))[SMALL:]
    for case, low, high in zip(
        sorted(larger, key=lambda case: case.n), LARGE, LARGE[1:], strict=False
    ):
        assert low - 1 < case.n < high + 1
    assert len(larger) == 4 and 2**16 < largest.n < MOST_ROWS and largest.d <= 3


def test_a_case_can_be_repeated(toy):
    one, same = (next(iter(drawn_cases(1, 5))) for _ in range(2))
    assert one == same and (one.rows() == same.rows()).all()
    assert repr(one.parameters(toy)) == repr(same.parameters(toy))


def test_a_correct_estimator_is_not_blamed(toy):
    assert drawn_audit(toy).passed


@pytest.mark.parametrize("n", [0, 17, 48])
def test_a_trigger_on_n_is_met(toy, after_fit, n):
    """By those of the default cases that have it, on one side of a pair at least."""
    cases = [case for case in drawn_cases() if abs(case.n - n) <= 1]
    after_fit(lambda self, X, session: setattr(self, "extra_", 1) if len(X) == n else None)
    assert any("memory differs" in text for text in drawn_audit(toy, cases).violations)


@pytest.mark.parametrize("d", [1, 13, 24])
def test_a_trigger_on_d_is_met(toy, after_fit, d):
    cases = [case for case in drawn_cases() if case.d == d]
    after_fit(lambda self, X, session: setattr(self, "extra_", len(X) if X.shape[1] == d else 0))
    assert any("memory differs" in text for text in drawn_audit(toy, cases).violations)
