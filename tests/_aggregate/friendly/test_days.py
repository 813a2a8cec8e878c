"""Released means of several days: independent noises fall, biases of clips do not."""

from dataclasses import replace

import numpy as np

from sklearn_dp._aggregate.friendly.days import combined
from sklearn_dp._aggregate.friendly.mean_facts import FriendlyMeanResult
from sklearn_dp._aggregate.shared.columns import Columns


def day(mean, error, bias=0.0, size=100.0, spread=1.0, codes="ok", status="ok", hidden=False):
    one = np.ones(2)
    columns = Columns(np.zeros(2), one, True)
    return FriendlyMeanResult(
        mean * one, 1.0, size, 3.0, 1.0, "", status, error * one, spread * one, one, columns,
        np.array([codes] * 2, dtype="<U8"), bias * one, hidden=hidden,
    )  # fmt: skip


def together(*days, keep=1.0):
    means = None
    for each in days:
        result, means = combined(each, means, keep, ["a", "b"])
    return result


def test_days_are_averaged_by_precision():
    result = together(day(0.0, 0.1), day(5.0, 0.2))
    assert np.allclose(result.mean, 1.0)
    assert np.allclose(result.std_error, 0.1 / np.sqrt(1.25))
    assert result.size == 200 and np.isclose(result.size_sd, 3 * np.sqrt(2))


def test_a_day_that_found_nothing_changes_nothing():
    nothing = day(0.0, np.inf, size=7.0, codes="noise", status="no location found")
    for days in ((day(2.0, 0.1), nothing), (nothing, day(2.0, 0.1))):
        result = together(*days)
        assert np.allclose(result.mean, 2.0) and np.allclose(result.std_error, 0.1)
        assert result.status == "ok" and result.codes.tolist() == ["ok", "ok"]
    result = together(nothing, nothing)
    assert np.isinf(result.std_error).all() and result.codes.tolist() == ["noise"] * 2
    assert result.status == (
        "noise hides the means in all days so far; days with more rows would help"
    )


def test_what_is_forgotten_counts_less():
    result = together(day(0.0, 0.1), day(1.0, 0.1), keep=0.25)
    assert np.allclose(result.mean, 0.8) and result.size == 125.0
    assert np.allclose(result.std_error, 0.1 * np.hypot(0.8, 0.2))


ONE_VALUE = "ok, but only a single value is visible in these columns: a, b"


def test_a_day_of_one_visible_value_counts_only_where_all_days_show_it():
    """It had no error, and fixed the mean of all later days: of rare values at 0, and "ok"."""
    one = day(0.0, np.inf, spread=0.0, codes="constant", status=ONE_VALUE)
    for days in ((one, day(2.0, 0.1)), (day(2.0, 0.1), one)):
        result = together(*days)
        assert np.allclose(result.mean, 2.0) and np.allclose(result.std_error, 0.1)
        assert result.status == "ok" and result.codes.tolist() == ["ok", "ok"]
    result = together(one, one)
    assert not result.mean.any() and result.status == ONE_VALUE
    assert np.isinf(result.std_error).all() and result.codes.tolist() == ["constant"] * 2
    for other in (1.0, 1e-300):
        result = together(one, replace(one, mean=np.full(2, other)))
        assert result.codes.tolist() == ["noise"] * 2 and np.isinf(result.std_error).all()
        assert result.status.startswith("noise hides the means in all days so far")
