"""From a partition to components: what is done with an empty one, and with rows out of bounds."""

import numpy as np
import pytest

from sklearn_dp.mixture import DPGaussianMixture, KTupleOptions

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.UtilityWarning"),
]


@pytest.mark.parametrize(
    "options",
    [
        {"method": "coreset"},
        {"method": "k_tuples", "options": KTupleOptions(20)},
        {"method": "partition"},
        {"method": "partition", "covariance_type": "spherical"},
    ],
)
def test_rows_outside_bounds_are_clipped_on_every_way(options):
    """Halves make rows anew: a cluster outside must not be found where it is."""
    rng = np.random.default_rng(0)
    X = 0.1 * rng.normal(size=(4000, 2)) + np.repeat([[-0.5, -0.5], [3.0, 3.0]], 2000, axis=0)
    fixed = {"bounds": (-1.0, 1.0), "rho": 50.0, "delta": 1e-3, "random_state": 0}
    model = DPGaussianMixture(2, **fixed, **options).fit(X)
    assert model.path_ == options["method"]
    means = model.means_[np.argsort(model.means_[:, 0])]
    assert np.allclose(means, [[-0.5, -0.5], [1.0, 1.0]], atol=0.05)
