"""Codes and statuses of means and standard deviations, by released values."""

from dataclasses import replace

import numpy as np

from sklearn_dp._aggregate.columns.answer import (
    beyond_bounds,
    codes_of_means,
    codes_of_scales,
    status_of,
)
from sklearn_dp._aggregate.columns.moments import Moments
from sklearn_dp._aggregate.columns.vectors import Ends
from sklearn_dp._aggregate.shared.centering import Weights

NAMES = ["age", "pay", "days"]


def moments(**columns):
    """Three columns that are known well, in a box; some of it changed."""
    one, no = np.ones(3), np.zeros(3, dtype=bool)
    found = Moments(
        size=1000.0,
        size_sd=10.0,
        weights=Weights(),
        low=np.zeros(3),
        high=100 * one,
        public=~no,
        known=~no,
        told=~no,
        single=no,
        mean=50 * one,
        noise=0.1 * one,
        error=0.2 * one,
        bias=0 * one,
        spread=10 * one,
        spread_error=0.5 * one,
        variance=100 * one,
        variance_noise=8 * one,
        least=9 * one,
        reach=50 * one,
        fourth=3 * one,
        radius=1.0,
        beyond=0 * one,
        beyond_sd=0.001,
        ends=Ends.public(np.zeros(3), 100 * one),
    )
    return replace(found, **{name: np.array(values) for name, values in columns.items()})


def budget(times):
    return f"epsilon = {times:.2g}"


budget.units = "rows"


def told(found, codes):
    return str(status_of(found, codes, NAMES, budget))


def test_errors_are_compared_with_the_spread_that_is_seen():
    """Never with a box: of a hidden spread it is not known whether an error is large."""
    found = moments(error=[1.5, 0.2, 6.0], least=[2.0, 0.0, 9.0], spread_error=[0.5, 10.0, 0.5])
    means, scales = codes_of_means(found), codes_of_scales(found)
    assert means.tolist() == ["unknown", "unknown", "noise"]
    assert codes_of_means(moments(error=[4.0] * 3, least=[7.0, 9.0, 0.0])).tolist() == [
        "unknown",
        "ok",
        "unknown",
    ]
    assert scales.tolist() == ["ok", "scale", "noise"]
    assert told(found, means).startswith(
        "mostly noise: the standard error is about 60% of the spread of these columns: days; use"
    )
    lost = "the standard deviations of these columns are mostly noise: pay; use about"
    assert lost in told(found, scales)
    hidden = np.array(["ok", "unknown", "ok"])
    assert told(found, hidden).startswith(
        "the spread of these columns is mostly noise, and their errors"
    )


def test_columns_of_one_value_and_of_none():
    found = moments(single=[True, False, False], spread_error=[10.0, 0.5, 0.5])
    codes = codes_of_scales(found)
    assert codes.tolist() == ["constant", "ok", "ok"]
    assert told(found, codes) == "only a single value is visible in these columns: age"
    nothing = moments(known=[False] * 3, error=[np.inf] * 3)
    assert set(codes_of_means(nothing)) == {"noise"}
    assert told(nothing, codes_of_means(nothing)).startswith("no spread found in these columns")


def test_rows_beyond_bounds_are_told_from_two_percent_on():
    found = moments(beyond=[0.25, 0.03, 0.019])
    codes = codes_of_means(found)
    assert codes.tolist() == ["bound", "bound", "ok"]
    assert told(found, codes) == (
        "many rows are beyond the bounds and are clipped to them: age (at least 25%), "
        "pay (at least 3%); use wider bounds"
    )
    assert beyond_bounds(replace(found, beyond_sd=0.02)).tolist() == [0.25, 0, 0]
