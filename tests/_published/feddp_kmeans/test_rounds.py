"""The paper's own rules for what is learned from releases."""

import numpy as np
import pytest
from federated_states import mixture

from sklearn_dp import FederatedDPKMeans

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)


@pytest.mark.parametrize("by_client", [False, True])
def test_with_much_budget_the_means_are_found_and_there_is_no_gain(by_client):
    """Other means are at least 5.9 away, and the noise is made for the whole domain."""
    X, means, server, clients = mixture(0)
    model = FederatedDPKMeans(4, method="paper", epsilon=4000.0, random_state=0)
    model.fit(X, groups=clients if by_client else None, X_server=server)
    distances = np.linalg.norm(model.cluster_centers_[:, None] - means, axis=2)
    assert sorted(distances.argmin(axis=1)) == [0, 1, 2, 3] and distances.min(axis=1).max() < 1
    assert model.gain_ is None
