"""Mutants of claims and releases do what they say, and no more."""

import numpy as np
import pytest
from kernel_tools import open_session
from mutants import MUTANTS

from sklearn_dp._privacy._plan import PlanEntry
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp._privacy._units import Units
from sklearn_dp._privacy.mechanisms import gaussian

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")
BUGS = {bug.name: bug for bug in MUTANTS}


def released(name, value, **options):
    """The event of a Gaussian release under a mutant, and what came out."""
    with trace(Trace()) as recorder, BUGS[name].planted():
        session = open_session(PlanEntry("a", "gaussian", 0.5))
        output = session.gaussian("a", value, sensitivity=10.0, **options)
    return [event for event in recorder.events if event.entry == "a"], output


def test_scales_and_claims_are_too_small_by_a_quarter():
    correct = gaussian.sigma_of(10.0, 0.5)
    with BUGS["sigma too small by 1.25"].planted():
        assert gaussian.sigma_of(10.0, 0.5) == correct / 1.25
    (event,), _ = released("sensitivity too small by 1.25", np.array([3]))
    assert event.sensitivity == 8.0 and event.scale == pytest.approx(correct / 1.25)


def test_a_sensitivity_that_follows_the_data():
    (event,), _ = released("sensitivity from the data", np.array([-70, 3]))
    assert np.all(event.sensitivity == 70.0)


def test_what_is_paid_for_and_comes_out_exact():
    (event,), output = released("value released without noise", np.array([70, -3]), unit=0.5)
    assert output.tolist() == [35.0, -1.5] and event.cost == 0.5


def test_an_empty_release_is_left_out():
    events, output = released("empty release skipped", np.zeros(2, dtype=int))
    assert events == [] and output.tolist() == [0, 0]
    assert len(released("empty release skipped", np.array([0, 1]))[0]) == 1


def test_draws_of_another_number_of_units_and_weights_in_full():
    with BUGS["draws that hang on the number of units"].planted():
        five, six = (open_session().addressed_draws(n).take(0, 5) for n in (5, 6))
    assert not np.isin(five, six).any()
    with BUGS["group weight ignored"].planted():
        units = Units(3, ["a", "a", "b"])
    assert units.weights.tolist() == [units.scale] * 3
    assert Units(3, ["a", "a", "b"]).weights[0] == units.scale // 2


def test_a_histogram_that_is_exact_or_claims_too_little():
    def told(name):
        with trace(Trace()) as recorder, BUGS[name].planted():
            session = open_session(PlanEntry("a", "gaussian", 0.5))
            found = session.sparse_histogram(
                "a",
                np.array([4, 2]),
                np.array([50, 60]),
                n_candidates=8,
                threshold=20,
                sensitivity=1.0,
                rho=0.5,
            )
        return found, recorder.events[-1]

    (codes, counts), _ = told("cells without noise")
    assert codes.tolist() == [2, 4] and counts.tolist() == [60, 50]
    assert told("cells: sensitivity too small by 1.25")[1].sensitivity == 0.8


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_status_and_a_warning_from_the_true_number_of_rows(make_toy, n):
    X = np.ones((n, 3))
    with BUGS["status from the true n"].planted():
        assert (make_toy(random_state=0).fit(X).status_ == "ok") == bool(n % 2)
    with (
        BUGS["warning about the true n"].planted(),
        pytest.warns(match=f"this is little: {n} rows"),
    ):
        make_toy(random_state=0).fit(X)


def test_bounds_follow_the_largest_row(make_toy, points):
    model = make_toy(random_state=0, bounds=0.5, rho=1e6)
    exact = model.fit(100 + points).mean_
    with BUGS["bounds from the data"].planted():
        wide = model.fit(100 + points).mean_
    assert np.linalg.norm(exact) < 0.51 and np.linalg.norm(wide) > 50 and model.bounds == 0.5
