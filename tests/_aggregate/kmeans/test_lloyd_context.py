"""What an iteration of Lloyd's algorithm may do, from released sizes alone."""

from types import SimpleNamespace

import pytest

from sklearn_dp._aggregate.kmeans.lloyd_context import LloydContext
from sklearn_dp._aggregate.kmeans.tuning import TUNING
from sklearn_dp._aggregate.shared.centering import Size


def context(signal=1e5, n_clusters=3):
    nothing = SimpleNamespace()
    return LloydContext(
        session=nothing,
        rows=nothing,
        n_clusters=n_clusters,
        size=Size(signal, 1.0),
        radius=1.0,
        budget=1.0,
        inside=0.9,
    )


@pytest.mark.parametrize(("signal", "small"), [(1.0, True), (999.0, True), (1000.0, False)])
def test_small_data_get_other_numbers_of_iterations(signal, small):
    found = context(signal)
    prefix = "small_" if small else ""
    assert found.most_iterations == getattr(TUNING, f"{prefix}most_iterations")
    assert found.share == getattr(TUNING, f"{prefix}iteration_share")


def test_spread_is_asked_for_early_and_where_two_clusters_can_be_merged():
    last = TUNING.spread_iterations
    assert context().asks_for_spread(last, 3)
    assert not context().asks_for_spread(last + 1, 3)
    assert not context().asks_for_spread(1, 4)  # before centers are reduced to k
    assert not context(n_clusters=2).asks_for_spread(1, 2)
    assert not context(n_clusters=1).asks_for_spread(1, 1)
