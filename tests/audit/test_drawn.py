"""Drawn cases meet triggers; the chances that are stated hold."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sklearn_dp import DPPCA, DPKMeans
from sklearn_dp.audit._drawn import (
    LARGE,
    MOST_COLUMNS,
    MOST_ROWS,
    PERIOD,
    SMALL,
    Case,
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


def test_cases_have_all_kinds_of_everything(toy):
    cases = list(drawn_cases(200))
    assert len({case.storage() for case in cases}) == 5
    assert len({type(case.parameters(toy)["bounds"]) for case in cases}) == 3
    kinds = Counter(None if case.groups() is None else case.groups().dtype.kind for case in cases)
    assert set(kinds) == {None, "i", "U", "O"} and min(kinds.values()) >= 8


def test_a_case_can_be_repeated(toy):
    one, same = (next(iter(drawn_cases(1, 5))) for _ in range(2))
    assert one == same and (one.rows() == same.rows()).all()
    assert repr(one.parameters(toy)) == repr(same.parameters(toy))


def test_a_correct_estimator_is_not_blamed(toy):
    assert drawn_audit(toy).passed


@pytest.mark.parametrize(("low", "high"), [(1000, 5000), (2**16, 10**9)])
def test_a_trigger_on_many_rows_is_met(toy, after_fit, low, high):
    """The first passed all public checks, whose data sets had 0 to 400 rows, or 8,000."""

    def told(self, X, session):
        if low < len(X) < high:
            self.status_ = f"too few units for a good mean: {len(X)}"

    after_fit(told)
    cases = [case for case in drawn_cases() if case.n >= SMALL]
    assert any("pickle differs" in text for text in drawn_audit(toy, cases).violations)


def test_it_can_stop_at_the_first_case_that_shows_a_violation(toy, after_fit):
    seen = set()

    def told(self, X, session):
        seen.add(len(X))
        self.extra_ = len(X)

    after_fit(told)
    first, *_, largest = drawn_cases()
    (violation, *_) = drawn_audit(toy, stop_at_first=True).violations
    assert violation.startswith(repr(first)) and max(seen) <= first.n + 1 < largest.n


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


def test_noise_that_is_missing_once_is_met(toy, make_toy, monkeypatch):
    original = make_toy._fit

    def fit(self, X, units, session, progress):
        if len(X) == 7:
            draw = session._noise.rounded_gaussian
            session._noise.rounded_gaussian = lambda sigma, size=None: 0 * draw(sigma, size)
        original(self, X, units, session, progress)

    monkeypatch.setattr(make_toy, "_fit", fit)
    assert any("noise smaller than claimed" in text for text in drawn_audit(toy).violations)


@pytest.mark.parametrize(
    "estimator", [pytest.param(DPKMeans(), marks=pytest.mark.slow), DPPCA()], ids=str
)
@given(
    case=st.builds(
        Case, st.integers(0, SMALL - 1), st.integers(1, MOST_COLUMNS), st.integers(0, 2**31 - 1)
    )
)
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_hypothesis_draws(estimator, case):
    """Searched and shrunk by hypothesis; a trigger on one n of 49 is met with 1 - (46/49)^25 = 0.79
    in a run, if its draws were uniform. `check_drawn_data` meets it for certain."""
    assert drawn_audit(estimator, [case]).violations == []
