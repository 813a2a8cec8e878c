"""What a search may be given; with junk in every place in `tests/fuzz/test_searches.py`."""

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.model_selection import ParameterGrid

from sklearn_dp import DPPCA, DPKMeans
from sklearn_dp.model_selection import DPGridSearch, DPRandomizedSearch
from sklearn_dp.model_selection._candidates import check_final, listed, same, set_values


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


def test_the_last_step_is_a_private_instance():
    check_final(DPKMeans())
    for bad in (DPKMeans, KMeans(), None, [], {}, DPGridSearch(DPKMeans(), {})):
        with pytest.raises(TypeError, match="^estimator must be"):
            check_final(bad)


def test_values_are_set_in_the_name_of_the_grid():
    assert set_values(DPPCA(), {"n_components": 2}, "grid").n_components == 2
    with pytest.raises(ValueError, match="^grid: Invalid parameter 'no_such'"):
        set_values(DPPCA(), {"no_such": 2}, "grid")


def test_values_that_cannot_be_compared_are_different():
    assert same(1, 1.0) and same([1, 2], [1, 2]) and same(np.ones(2), np.ones(2))
    assert same(pd.NA, pd.NA)  # one object
    assert not same(pd.NA, 1) and not same(np.ones(2), np.ones(3)) and not same(None, 1)


@pytest.mark.parametrize("state", [np.random.default_rng(3), np.random.RandomState(3), 3, None])
def test_candidates_are_drawn_from_any_kind_of_state(state):
    search = DPRandomizedSearch(
        DPKMeans(bounds=1.0), {"n_clusters": range(2, 50)}, n_iter=3, candidates_state=state
    )
    assert len({each["n_clusters"] for each in search._candidates()}) == 3


def test_a_step_that_is_not_there_is_not_public():
    search = DPGridSearch(DPKMeans(bounds=1.0), {"n_clusters": [2, 3]}, public_steps=["scale"])
    with pytest.raises(ValueError, match="public_steps: no step is named 'scale'"):
        search.privacy_plan(2)
