"""Options of the ways to isolate components: values, defaults, and whose they are."""

import pytest

from sklearn_dp.mixture import DPGaussianMixture, KTupleOptions, PartitionOptions
from sklearn_dp.mixture._dp_gaussian_mixture import options_of

BAD = [
    (KTupleOptions(n_tuples=1), ValueError, "n_tuples"),
    (KTupleOptions(n_tuples="many"), ValueError, "n_tuples"),
    (KTupleOptions(n_tuples=10.0), TypeError, "n_tuples"),
    (KTupleOptions(aggregator="x"), ValueError, "aggregator"),
    (KTupleOptions(inner=3), TypeError, "inner"),
    (PartitionOptions(balls="x"), ValueError, "balls"),
    (PartitionOptions(separation=1.0), ValueError, "separation"),
    (PartitionOptions(separation="x"), TypeError, "separation"),
    (PartitionOptions(min_weight=0.0), ValueError, "min_weight"),
    (PartitionOptions(min_weight=1.0), ValueError, "min_weight"),
]
METHOD = {KTupleOptions: "k_tuples", PartitionOptions: "partition"}


@pytest.mark.parametrize("options, error, word", BAD, ids=str)
def test_bad_values_are_refused_by_name_before_anything_is_planned(options, error, word):
    with pytest.raises(error, match=word):
        options_of(METHOD[type(options)], options)
    model = DPGaussianMixture(3, method=METHOD[type(options)], options=options)
    with pytest.raises(error, match=word):
        model.privacy_plan(2)
