"""Parameters, options and public points that are refused."""

import numpy as np
import pytest

from sklearn_dp import FederatedDPKMeans
from sklearn_dp.federated import FederatedOptions

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"privacy_unit": "person"}, "privacy_unit"),
        ({"relation": "near"}, "relation"),
        ({"method": "new"}, "method"),
        ({"options": {}}, "options must be a FederatedOptions"),
        ({"options": FederatedOptions(count_noise="none")}, "count_noise"),
        ({"options": FederatedOptions(client_bounds={"weights": 2.0})}, "client_bounds"),
        ({"options": FederatedOptions(client_bounds={"weights": 5e-324})}, "client_bounds"),
        ({"options": FederatedOptions(client_bounds=[0.5])}, "client_bounds must be a dict"),
        ({"n_lloyd": -1}, "n_lloyd"),
        ({"n_lloyd": "many"}, "n_lloyd"),
        ({"n_lloyd": 0, "method": "sphere_packing"}, "n_lloyd"),
        ({"max_rows_per_client": 0}, "max_rows_per_client"),
        ({"method": "lloyd"}, "X_server"),
        ({"privacy_unit": "client"}, "groups"),
    ],
)
def test_bad_parameters(options, match):
    with pytest.raises((ValueError, TypeError), match=match):
        FederatedDPKMeans(2, **options).fit(np.zeros((9, 2)))


@pytest.mark.parametrize(
    ("server", "match"),
    [
        (np.zeros((9, 2)), "distinct"),
        (np.zeros((9, 3)), "columns"),
        (np.full((9, 2), np.nan), "NaN"),
        (np.zeros(4), "2D"),
        (np.full((9, 2), 1e200), "X_server: numbers"),
    ],
)
def test_bad_server_data(server, match):
    with pytest.raises(ValueError, match=match):
        FederatedDPKMeans(2).fit(np.zeros((9, 2)), X_server=server)
