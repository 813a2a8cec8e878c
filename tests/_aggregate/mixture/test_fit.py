"""From a partition to components: what is done with an empty one, and with rows out of bounds."""

import numpy as np
import pytest

from sklearn_dp._aggregate.mixture import (
    fit as _mixture,
)
from sklearn_dp._aggregate.mixture import (
    parts as _parts,
)
from sklearn_dp.mixture import DPGaussianMixture, KTupleOptions

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.UtilityWarning"),
]


def test_two_clusters_under_one_center_are_told_apart():
    """Far clusters make two near ones look like one to the k-means engine, now and then."""
    rng = np.random.default_rng(3)
    means = np.array([[0, 0], [0, 10], [300, 0], [0, 300], [300, 300]], dtype=float)
    X = means[rng.integers(5, size=5000)] + 0.7 * rng.normal(size=(5000, 2))

    def one_center(*args, **options):
        found = engine(*args, **options)
        order = np.argsort(np.linalg.norm(found.centers - [0, 5], axis=1))
        found.centers[order[0]] = [0, 5]
        found.centers[order[1]] = [150, 150]  # where there are no rows
        return found

    engine = _parts.fit_engine
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_parts, "fit_engine", one_center)
        model = DPGaussianMixture(5, epsilon=1.0, bounds=500.0, random_state=0).fit(X)
        apart = np.linalg.norm(means[:, None] - model.means_, axis=2).min(axis=1)
        assert apart.max() < 0.5
        # Balls must stay balls, and what all components share must be the same for all.
        ends, result = [], _mixture._result
        patch.setattr(
            _mixture, "_result", lambda found, *rest: (ends.append(found), result(found, *rest))[1]
        )
        for form in ("spherical", "tied"):
            DPGaussianMixture(5, covariance_type=form, bounds=500.0, random_state=0).fit(X)
        assert all(np.ptp(e.scales) == 0 for e in ends[0])
        shapes = [e.factor @ e.factor.T for e in ends[1]]
        assert all(np.allclose(shape, shapes[0]) for shape in shapes)
        patch.setattr(_mixture, "split_widest", lambda found, *_: found)
        model = DPGaussianMixture(5, epsilon=1.0, bounds=500.0, random_state=0).fit(X)
        assert np.linalg.norm(means[:, None] - model.means_, axis=2).min(axis=1).max() > 2


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
