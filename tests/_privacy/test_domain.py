"""Public bounds: balls and boxes, points moved into them, and what is refused."""

import numpy as np
import pytest

from sklearn_dp._parameters import domain_of
from sklearn_dp._privacy._grid import Domain


@pytest.mark.parametrize(
    "bounds, error",
    [
        (0, ValueError),
        (-1.0, ValueError),
        (np.inf, ValueError),
        (np.nan, ValueError),
        (True, TypeError),
        ("wide", TypeError),
        ((1, 2, 3), TypeError),
        ((1, 0), ValueError),
        ((0, np.nan), ValueError),
        ((0, np.inf), ValueError),
        (([0, 0, 0], 1), ValueError),
        ((0, "x"), ValueError),
        ({0: 1}, TypeError),
        ((-1e308, 1e308), ValueError),
        (0.99e-140, ValueError),
        (5e-324, ValueError),
        (1.01e140, ValueError),
        (10**400, ValueError),
        (-(10**400), ValueError),
        ((0, 0), ValueError),
        ((-0.0, 0.0), ValueError),
        ((0, 1e-155), ValueError),
        ((0, 5e-324), ValueError),
        ((-1e-170, 1e-170), ValueError),
        ((0, 10**400), ValueError),
        ((0, 1e141), ValueError),
        ((1j, 2), ValueError),
        ((None, 1), ValueError),
        ((0, {}), ValueError),
        ((0, [[1, 1]] * 2), ValueError),
    ],
)
def test_bad_bounds_are_refused_by_name(bounds, error):
    with pytest.raises(error, match="bounds"), np.errstate(over="ignore"):
        domain_of(bounds, 2)


@pytest.mark.parametrize(
    "bounds",
    [
        [(0, 100), (0, 120)],  # as (lows, highs), the first column is from 0 to 0
        ((0, 9), (5, 9)),
        np.array([[0, 1], [0, 1]]),
        [(0, 100), (0, 120), (-1, 1)],
        [(0, 100)],
    ],
    ids=str,
)
def test_a_pair_for_each_column_is_refused(bounds):
    with pytest.raises(ValueError, match=r"pair .* for each column; .* \(lows, highs\)"):
        domain_of(bounds, len(bounds))


@pytest.mark.parametrize(
    "ends", [(0.0, 0.0), (5.0, 5.0), (1.0, -1.0), (-1e300, 1e300), (np.inf, np.inf), (0.0, 5e-324)]
)
def test_a_box_that_a_fit_has_computed_is_never_refused(ends):
    """The budget is spent by then: it was an error about `bounds`, after the charge."""
    low, high = np.full((2, 3), ends[0]), np.full(3, ends[1])
    box = Domain.within(low[0], high)
    assert 1e-140 <= box.radius <= 1e140 and np.isfinite(box.center).all()
    assert (box.low <= box.high).all() and np.abs([box.low, box.high]).max() <= 1e140
    X = np.array([[0.0, 1e308, -1e308], [5e-324, 1.0, -1.0]])
    assert np.linalg.norm(box.center_rows(X), axis=1).max() <= 2 * box.radius
    ball = Domain.about_origin(abs(ends[1]), 3)
    assert 1e-140 <= ball.radius <= 1e140 and ball.low is None


def test_a_computed_box_is_that_of_a_user_with_these_bounds():
    low, high = np.array([-1.0, 2.0]), np.array([4.0, 2.0])
    found, given = Domain.within(low, high), domain_of((low, high), 2)
    assert found.radius == given.radius and (found.center == given.center).all()
    assert Domain.about_origin(3.0, 2).radius == domain_of(3.0, 2).radius
