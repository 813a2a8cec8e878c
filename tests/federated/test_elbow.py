"""The number of clusters from noisy weights."""

import numpy as np
import pytest
from federated_states import clusters

from sklearn_dp import FederatedDPKMeans
from sklearn_dp.federated import elbow

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)


def test_the_elbow_is_at_the_number_of_clusters():
    X, _, server = clusters(0, k=5)
    model = FederatedDPKMeans(9, epsilon=2.0, random_state=0).fit(X, X_server=server)
    k, costs = elbow(model, most=9)
    assert k == 5 and costs[0] == 1 and len(costs) == 9
    with pytest.raises(ValueError, match="X_server"):
        elbow(FederatedDPKMeans(3, random_state=0).fit(X))


@pytest.mark.parametrize(
    "seed, error",
    [(np.timedelta64(3, "s"), TypeError), (True, TypeError), (-1, ValueError), (2**63, ValueError)],
    ids=["time span", "bool", "negative", "huge"],
)
def test_a_bad_seed_is_named(seed, error):
    X, _, server = clusters(0, k=3)
    model = FederatedDPKMeans(4, epsilon=2.0, random_state=0).fit(X, X_server=server)
    with pytest.raises(error, match="random_state"):
        elbow(model, most=4, random_state=seed)
    assert elbow(model, most=4, random_state=np.random.RandomState(0))[0] >= 2
