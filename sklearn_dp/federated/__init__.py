"""Learning from clients that keep their data."""

from ._federated_dp_kmeans import FederatedDPKMeans
from ._protocol import client_update
from ._server import first_message, server_update

__all__ = ["FederatedDPKMeans", "client_update", "first_message", "server_update"]
