"""Data, comparisons and traps of the checks."""

import pickle
import warnings

import numpy as np
import pytest

from sklearn_dp._privacy._trace import Event
from sklearn_dp.audit._loss_checks import (
    Bomb,
    Watched,
    assert_none,
    check_data,
    check_groups,
    hard_groups,
    released_state,
    succeed,
)
from sklearn_dp.audit._neighbors import unit_numbers
from sklearn_dp.audit._observe import Explosion, prepared, run_fit


@pytest.mark.parametrize(("n", "d"), [(0, 3), (1, 3), (40, 3), (40, 1), (40, 8)])
def test_data_have_two_groups_and_can_be_had_again(n, d):
    X = check_data(n, 5, d)
    assert X.shape == (n, d) and np.array_equal(X, check_data(n, 5, d))
    assert n == 0 or not np.array_equal(X, check_data(n, 6, d))
    if n > 1:
        assert np.abs(X[::2].mean(axis=0) - X[1::2].mean(axis=0)).max() > 1


def test_the_two_groups_are_apart_in_every_dimension():
    """Also where the number of columns is that of all coordinates of both places, or twice that."""
    for d in range(1, 130):
        X = check_data(60, 1, d)
        near, far = X[::2].mean(axis=0), X[1::2].mean(axis=0)
        # The first coordinates are 5 apart, and the noise of a mean of 30 is 0.3 / sqrt(30) = 0.05.
        assert abs(near[0] - far[0]) > 4, d


@pytest.mark.parametrize("n", [0, 1, 2, 30])
def test_groups_have_several_rows_in_any_order(n):
    groups = check_groups(n)
    assert len(groups) == n and np.bincount(groups).max(initial=0) <= 3
    if n == 30:
        assert (np.diff(groups) < 0).any() and len(set(groups.tolist())) == 12


def test_hard_ids_are_all_different():
    for name, groups in hard_groups(20).items():
        assert len(set(groups)) == len(set(unit_numbers(groups).tolist())) >= 6, name


def test_the_first_problems_are_told():
    assert_none([])
    with pytest.raises(AssertionError, match="^a; b; c$"):
        assert_none(["a", "b", "c"])
    with pytest.raises(AssertionError, match=r"^a; b; c \.\.\.$"):
        assert_none(["a", "b", "c", "d"])


def test_errors_and_warnings_of_others_are_no_success(toy, after_fit, points):
    succeed(run_fit(prepared(toy), points))
    after_fit(lambda self, X, session: warnings.warn("far", UserWarning, stacklevel=1))
    with pytest.raises(AssertionError, match="here a fit warns: far"):
        succeed(run_fit(prepared(toy), points, strict=False), "here ")
    with pytest.raises(AssertionError, match="here a fit raises"):
        succeed(run_fit(prepared(toy), points * np.nan), "here ")


def test_the_released_state_ignores_the_ledger_and_the_jobs(make_toy, points):
    first, second = (
        released_state(prepared(make_toy(), n_jobs=jobs).fit(points)) for jobs in (None, 2)
    )
    assert first == second and "labels_" not in pickle.loads(first)
    assert "n_jobs" not in pickle.loads(first)
    assert released_state(prepared(make_toy(), random_state=1).fit(points)) != first


def test_who_asks_for_values_is_seen(points):
    asked = []
    watched = Watched(points, lambda: asked.append(True))
    assert watched.shape == points.shape and len(watched) == len(points) and not asked
    assert np.array_equal(np.asarray(watched), points) and asked == [True]


def test_the_first_release_explodes_and_the_seed_passes():
    assert Bomb().record(Event("seed", output=3)) == 3
    with pytest.raises(Explosion):
        Bomb().record(Event("gaussian", "a", output=3))
