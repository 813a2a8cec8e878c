"""What a search may be given."""

import pytest
from sklearn.model_selection import ParameterGrid

from sklearn_dp import DPKMeans
from sklearn_dp.model_selection import DPRandomizedSearch
from sklearn_dp.model_selection._candidates import listed


@pytest.mark.parametrize(
    "space",
    [
        None,
        3,
        "ab",
        [3],
        [{"a": [1]}, None],
        iter([{"a": [1]}]),
        {1: [2]},
        [],
        {"a": 1},
    ],
    ids=lambda value: type(value).__name__,
)
def test_spaces_that_are_none_are_named(space):
    with pytest.raises((TypeError, ValueError), match="^own "):
        listed("own space", space, ParameterGrid)


def test_candidates_are_counted_before_they_are_listed():
    most = {"a": range(10**6), "b": range(10**6)}
    with pytest.raises(ValueError, match="between 1 and 10000 candidates"):
        listed("grid", most, ParameterGrid)
    with pytest.raises(ValueError, match="n_iter"):
        DPRandomizedSearch(DPKMeans(), {"n_clusters": [2]}, n_iter=10**9).privacy_plan(2)
