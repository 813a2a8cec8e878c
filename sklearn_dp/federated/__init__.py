"""Learn from clients that keep their data.

A fit consists of rounds: the server sends a message, the clients answer with vectors of integers,
noise is added to their sum, and the server learns from the result. Start reading with
``FederatedDPKMeans._fit`` and `server_update`; then, in the order of a round:

* `_state`: what is public about a fit, and what the server knows so far;
* `_server`: the messages, the bounds of a client's vectors, and the release of the sums;
* `_clients`: what a client does, what its answer must look like, and who carries the messages. What
  is asked, and how far one unit moves each sum, with the proof, is in
  `sklearn_dp._queries.client_rounds`;
* `_learn`, `_state`: what the releases say. Everything there is post-processing.

The paper's own rules are in `_published/feddp_kmeans`.
"""

from .._privacy.mechanisms.shares import NoiseShares
from ._clients import client_update, flower_client
from ._federated_dp_kmeans import FederatedDPKMeans, elbow
from ._parameters import FederatedOptions
from ._server import first_message, server_update

__all__ = [
    "FederatedDPKMeans",
    "FederatedOptions",
    "NoiseShares",
    "client_update",
    "elbow",
    "first_message",
    "flower_client",
    "server_update",
]
