"""Which rows of a client count: each on its own account, whatever they are held in."""

import warnings

import numpy as np
import pandas as pd
import pytest
from federated_states import ROW_STATES, D, data

from sklearn_dp._bounds import domain_of
from sklearn_dp._published.feddp_kmeans.theory import _Moved, private_average
from sklearn_dp.federated import client_update
from sklearn_dp.federated._clients import AnswerError, usable_rows

X = data(3, 8)


class Breaking:
    """An entry whose conversion dies of anything."""

    def __float__(self):
        raise RuntimeError("secret")


ODD = {
    "missing": pd.NA,
    "none": None,
    "text": "secret",
    "too large": 10**400,
    "complex": 1j,
    "numpy's complex": np.complex128(1),
    "an array": np.ones(2),
    "breaks": Breaking(),
    "a dict": {},
}
HOLDERS = {
    "list": list,
    "tuple": tuple,
    "arrays in a list": lambda rows: [*map(np.asarray, rows[:2]), *rows[2:]],
    "objects": lambda rows: pd.DataFrame(rows, dtype=object).to_numpy(),
    "frame": lambda rows: pd.DataFrame(rows),
    "missing in a frame": lambda rows: pd.DataFrame(rows).convert_dtypes(),
}


@pytest.mark.parametrize("held", HOLDERS.values(), ids=HOLDERS)
@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_a_row_that_is_no_row_of_numbers_takes_no_other_with_it(odd, held, request):
    rows = X.tolist()
    rows.insert(3, [odd, *X[0, 1:].tolist()])
    if isinstance(odd, complex) and "frame" in request.node.name:
        rows[0][0] = str(rows[0][0])  # a column of objects: one of complex numbers is public
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            rows = held(rows)
        except OverflowError:
            pytest.skip("a data frame of this pandas does not hold such an integer")
        assert np.array_equal(usable_rows(rows, D), X)
        answer = client_update("moment", ROW_STATES[0].message, rows)
    plain = client_update("moment", ROW_STATES[0].message, X)
    assert all(np.array_equal(answer[name], value) for name, value in plain.items())


@pytest.mark.parametrize(
    "row", [X[0, 1:].tolist(), 3.0, [X[0].tolist()], [np.array(1 + 2j), *X[0, 1:].tolist()]]
)
def test_a_wrong_row_of_a_list_counts_for_nothing_whatever_is_beside_it(row):
    """Alone, with another wrong row, and with right ones."""
    for others in ([], [[1.0]], X.tolist()):
        found = usable_rows([*others, row], D)
        assert np.array_equal(found, X if len(others) == len(X) else np.empty((0, D)))


@pytest.mark.parametrize(
    "rows",
    [X[:, 1:], X[0], X[None], None, 3.0, X[:, 1:].astype(object), X + 0j],
    ids=["array", "one row", "three axes", "none", "number", "objects", "complex"],
)
def test_types_and_shapes_of_arrays_are_public(rows):
    with pytest.raises(AnswerError, match="a client's rows must be"):
        usable_rows(rows, D)


def test_the_algorithms_of_the_theory_read_rows_in_the_same_way():
    rows = [*X.tolist(), ["secret"] * D, [10**400] * D]
    options = {"epsilon": 50.0, "random_state": 0}
    with pytest.warns(match="random_state"):
        plain = private_average(X, 8.0, **options)
        assert np.array_equal(private_average(rows, 8.0, **options), plain)

    class Nothing:
        def apply(self, near):
            return near

    moved = [_Moved(held, domain_of(8.0, D), Nothing())() for held in (X, rows)]
    assert np.array_equal(*moved) and len(moved[0]) == len(X)
