"""Released means of several days: independent noises fall, biases of clips do not."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from sklearn_dp._aggregate.friendly.days import Means, combined
from sklearn_dp._aggregate.friendly.mean_facts import FriendlyMeanResult
from sklearn_dp._queries.coordinates import Columns


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


def test_a_bias_is_that_of_every_day():
    result = together(*(day(0.0, 0.1, bias=0.06) for _ in range(100)))
    assert np.allclose(result.std_error, np.hypot(0.06, 0.008))


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


def test_columns_lost_on_each_day_may_be_seen_in_all():
    faint = [day(0.0, 0.8, codes="noise", status="noise hides the rows")] * 4
    assert together(*faint[:2]).status.endswith("; more days would help")
    assert together(*faint).status == "ok"


@pytest.mark.parametrize("lost", [{"hidden": True}, {"spread": 0.0, "codes": "noise"}])
def test_a_day_that_cannot_say_how_far_off_it_is_changes_nothing(lost):
    hidden = day(9.0, 0.1, **lost)
    nothing = day(0.0, np.inf, codes="noise", status="no diameter found")
    result = together(hidden, nothing)
    assert np.isinf(result.std_error).all() and result.codes.tolist() == ["noise"] * 2
    assert result.status.startswith("noise hides the means in all days so far")
    assert np.allclose(together(hidden, day(2.0, 0.1)).mean, 2.0)


def test_what_is_forgotten_counts_less():
    result = together(day(0.0, 0.1), day(1.0, 0.1), keep=0.25)
    assert np.allclose(result.mean, 0.8) and result.size == 125.0
    assert np.allclose(result.std_error, 0.1 * np.hypot(0.8, 0.2))


def test_of_a_fit_before_all_error_may_be_bias():
    fitted = SimpleNamespace(
        mean_=np.ones(2), mean_std_error_=np.array([0.1, np.inf]), size_=50.0, size_std_error_=6.0,
        column_status_=np.array(["ok", "noise"]),
    )  # fmt: skip
    means = Means.of(fitted, 2.0)
    assert means.bias.tolist() == [0.1, 0.0] and means.precision[1] == 0
    assert (means.size, means.size_variance) == (25.0, 9.0)
    result, _ = combined(day(3.0, 0.1), means, 1.0, ["a", "b"])
    assert np.allclose(result.mean, [2.0, 3.0])
    assert np.allclose(result.std_error, [np.hypot(0.05, 0.05), 0.1])


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


def test_values_that_differ_are_not_forgotten():
    """Days of 40, 41 and 41 were "constant" again: only the last day was compared."""
    forty, other = (
        day(value, np.inf, spread=0.0, codes="constant", status=ONE_VALUE) for value in (40.0, 41.0)
    )
    nothing = day(17.0, np.inf, spread=0.0, codes="noise", status="no location found")
    hidden = day(17.0, 0.1, hidden=True)
    for days in ((forty, other, other), (forty, nothing, other, other), (hidden, forty, forty)):
        assert together(*days).codes.tolist() == ["noise"] * 2
    for days in ((forty, nothing, forty), (nothing, forty, forty)):  # a lost day shows no value
        result = together(*days)
        assert result.codes.tolist() == ["constant"] * 2 and result.mean.tolist() == [40.0] * 2
    _, means = combined(forty, None, 1.0, ["a", "b"])
    old = vars(means).copy()
    del old["single"]  # of a pickle from before
    object.__setattr__(means, "__dict__", old)
    assert combined(forty, means, 1.0, ["a", "b"])[0].codes.tolist() == ["constant"] * 2
    assert combined(other, means, 1.0, ["a", "b"])[0].codes.tolist() == ["noise"] * 2


def test_a_caveat_of_one_column_outlives_noise_in_another():
    codes, error = np.array(["constant", "noise"]), np.array([np.inf, 0.8])
    few = replace(day(0.0, 1.0), codes=codes, std_error=error, status="noise hides the rows")
    result = together(few, few, few, few)
    assert result.codes.tolist() == ["constant", "ok"]
    assert result.status == "ok, but only a single value is visible in these columns: a"
