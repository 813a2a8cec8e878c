"""The search for a small ball: replay audits of every method."""

import numpy as np
import pytest

from sklearn_dp import DPOneCluster, DPOneClusterKMeans
from sklearn_dp._aggregate.one_cluster import search as _one_cluster
from sklearn_dp._queries import samples


@pytest.mark.parametrize("estimator", [DPOneCluster, DPOneClusterKMeans])
def test_no_two_samples_share_their_coins(monkeypatch, estimator):
    """What a choice on a sample gains holds only if its coins are used for nothing else."""
    tags, original = [], samples.addressed_draws

    def addressed_draws(session, n_units, tag="units"):
        tags.append(tag)
        return original(session, n_units, tag)

    monkeypatch.setattr(samples, "addressed_draws", addressed_draws)
    monkeypatch.setattr(_one_cluster, "rate_of_boxes", lambda *others: 0.5)
    X = 0.1 * np.random.default_rng(0).normal(size=(300, 2))
    estimator(n_points=100, sample_size=20, epsilon=100.0, random_state=0).fit(X)
    assert len(set(tags)) == len(tags) >= 2
