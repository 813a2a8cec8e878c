"""Options of the aggregators of k-tuples: values, defaults, and whose they are."""

import pytest

from sklearn_dp import DPKTupleKMeans
from sklearn_dp._aggregate.tuples import AGGREGATORS, TupleStage
from sklearn_dp.cluster import FarBallsOptions, FriendlyCoreOptions
from sklearn_dp.cluster._dp_k_tuple_kmeans import aggregator_settings

KIND = {
    "friendly_core": FriendlyCoreOptions,
    "k_averages": FarBallsOptions,
    "noisy_centers": FarBallsOptions,
}
BAD = [
    (FriendlyCoreOptions(0.21), ValueError, "gamma"),
    (FriendlyCoreOptions(0.0), ValueError, "gamma"),
    (FriendlyCoreOptions([0.1]), TypeError, "gamma"),
    (FarBallsOptions(6.0), ValueError, "separation"),
    (FarBallsOptions(1e7), ValueError, "separation"),
    (FarBallsOptions("7"), TypeError, "separation"),
]


def test_every_aggregator_has_options_that_the_stage_reads():
    assert KIND.keys() == {*AGGREGATORS}
    for aggregator, kind in KIND.items():
        plain = TupleStage(1.0, 1e-6, 3, 2, aggregator)
        # None and the defaults are the same stage.
        assert TupleStage(1.0, 1e-6, 3, 2, aggregator, **aggregator_settings(aggregator, None)) == (
            TupleStage(1.0, 1e-6, 3, 2, aggregator, **aggregator_settings(aggregator, kind()))
        )
        assert plain.gamma == FriendlyCoreOptions().gamma
        assert plain.separation is FarBallsOptions().separation


@pytest.mark.parametrize("options, error, word", BAD, ids=str)
def test_bad_values_are_refused_by_name_before_anything_is_planned(options, error, word):
    for aggregator in (name for name, kind in KIND.items() if isinstance(options, kind)):
        model = DPKTupleKMeans(3, aggregator=aggregator, options=options, epsilon=8.0)
        with pytest.raises(error, match=word):
            model.privacy_plan(2)
