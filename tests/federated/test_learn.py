"""What the server learns from releases."""

import numpy as np
import pytest
from federated_states import mixture
from sklearn.metrics import pairwise_distances_argmin_min

from sklearn_dp import FederatedDPKMeans
from sklearn_dp.federated._prior import server_lloyds

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)


# -- what the status says --------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.02, 0.2, 2.0])
def test_a_fit_is_not_worse_than_the_servers_own(epsilon):
    """Sixty clients, so little budget that it is next to nothing: the public points are as good.

    Five seeds: the median is at most 2%, each at most 6% above k-means of the public points.
    Rounds that take their releases for exact come to medians of 9.9, 7.6 and 1.4 times that.
    """
    ratios = []
    for seed in range(5):
        X, _, server, clients = mixture(seed)
        server = server[:32]
        model = FederatedDPKMeans(4, epsilon=epsilon, random_state=seed).fit(
            X, groups=clients, X_server=server
        )
        free = server_lloyds(server, 4, np.random.default_rng(seed))
        alone = np.square(pairwise_distances_argmin_min(X, free)[1]).sum()
        ratios.append(-model.score(X) / alone)
    assert np.median(ratios) <= 1.02 and max(ratios) <= 1.06, ratios
