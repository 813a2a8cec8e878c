"""Learning from clients that keep their data."""

from .._privacy.laws.shares import NoiseShares
from ._elbow import elbow
from ._federated_dp_kmeans import FederatedDPKMeans
from ._flower import flower_client
from ._protocol import client_update
from ._server import first_message, server_update

__all__ = ["FederatedDPKMeans", "NoiseShares", "client_update", "elbow", "first_message",
           "flower_client", "server_update"]
