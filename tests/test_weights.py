"""Weights of users: what is taken, and errors that quote nothing.

`test_sample_weight.py` fits every estimator with weights.
"""

from collections import deque
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest

from sklearn_dp._door import check_weights, largest_weight

TAKEN = [
    [1, 2.5],
    (True, "2.5"),
    deque([Decimal(1), Fraction(5, 2)]),
    np.array([1.0, 2.5], dtype=object),
    [np.array(1.0), np.float32(2.5)],
    pd.Series([1.0, 2.5], index=[7, 3]),
    pd.array([1.0, 2.5], dtype="Float64"),
    pd.Categorical([1.0, 2.5]),
    pl.Series([1.0, 2.5]),
]


@pytest.mark.parametrize("weights", TAKEN, ids=lambda each: type(each).__name__)
def test_weights_in_every_container(weights):
    assert largest_weight(weights, 4.0) == 4.0
    assert check_weights(weights, 2).tolist() == [1.0, 2.5]
    assert check_weights(0.5, 2).tolist() == [0.5, 0.5]


OF_NO_WEIGHTS = [
    np.ones(2, "M8[s]"), np.ones(2, "m8[s]"), np.ones(2, complex), np.array(["1", "2"]), "ab", {},
    np.ones((2, 1)), pd.Series(["1", "2"]), pl.Series(["1", "2"]), pd.cut(pd.Series([1, 2]), 2),
    {1}, pd.DataFrame({"w": [1, 2]}), (weight for weight in (1.0, 2.0)), True,
]  # fmt: skip


@pytest.mark.parametrize("weights", OF_NO_WEIGHTS, ids=lambda each: type(each).__name__)
def test_what_holds_no_weights_by_its_type_is_refused_before_the_charge(weights):
    with pytest.raises(ValueError, match="^sample_weight must be"):
        largest_weight(weights, 4.0)
    with pytest.raises(ValueError, match="^sample_weight must be"):
        check_weights(weights, 2)


WRONG = [10**400, Fraction(10**400), -1, float("nan"), [1.0, 10**400], [1, "x"], [1, None], [1, 1j],
         [1, np.datetime64(1, "s")], [1, [1]], [1.0], [1.0, -1e-300], [1.0, np.inf]]  # fmt: skip


@pytest.mark.parametrize("weights", WRONG, ids=str)
def test_weights_that_are_no_finite_numbers_are_refused_by_name(weights):
    with pytest.raises(ValueError, match="^sample_weight must be a number or an array") as caught:
        check_weights(weights, 2)
    assert caught.value.__context__ is None and caught.value.__cause__ is None
