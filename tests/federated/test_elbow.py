"""The number of clusters from noisy weights."""

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
