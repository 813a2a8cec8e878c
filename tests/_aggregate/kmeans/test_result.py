"""From iterations to the answer: units, errors, and one center for many clusters."""

import dataclasses
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from sklearn_dp._aggregate.kmeans.lloyd import LloydResult
from sklearn_dp._aggregate.kmeans.result import EngineResult, _centers_sd, _for_each, build_result
from sklearn_dp._aggregate.kmeans.tuning import TUNING
from sklearn_dp._aggregate.shared.centering import Size
from sklearn_dp._aggregate.shared.weights import Weights
from sklearn_dp._privacy._domain import Domain


def result(centers, **changes):
    k = len(centers)
    found = LloydResult(
        centers=np.array(centers, dtype=float),
        variance=np.full(k, 4.0),
        counts=np.full(k, 5000.0),
        counts_sd=np.full(k, 1.0),
        counted=np.array(centers, dtype=float),
        reach=np.full(k, 50.0),
        spread=np.zeros(k),
        spread_variance=np.full(k, np.inf),
        n_iterations=3,
        error=400.0,
    )
    return dataclasses.replace(found, **changes)


def context(n_clusters, origin=(0.0, 0.0), unit=0.5):
    return SimpleNamespace(
        n_clusters=n_clusters,
        tuning=TUNING,
        rows=SimpleNamespace(unit=unit, origin=np.array(origin)),
        size=Size(10_000.0, 1.0),
        radius=80.0,
        session=SimpleNamespace(plan=SimpleNamespace(epsilon=1.0)),
    )


def test_the_answer_is_in_lengths_and_in_the_domain():
    """Steps of 1/2 about an origin of (10, 0) steps, in a domain about (100, 100)."""
    domain = Domain.from_bounds((60.0, 140.0), 2)
    final = result([[0, 0], [2, 4], [1000, 0]])
    found = build_result(context(3, (10.0, 0.0)), final, domain, "ok", n_leaves=3)
    assert np.allclose(found.centers, [[105, 100], [106, 102], [140, 100]])
    assert (found.radius, found.error, found.n_iterations) == (40.0, 100.0, 3)
    assert found.quality is None and found.centers_sd is None and found.status == "ok"
    assert found.weights.tolist() == [5000.0] * 3


def test_what_is_known_to_be_missing_stays_in_the_status():
    domain = Domain(np.zeros(2), 40.0)
    found = build_result(context(1), result([[0, 0]]), domain, "no bound found", n_leaves=None)
    assert found.status.startswith("no bound found")


SIZE = Size(400.0, 1.0)


def test_errors_of_centers_have_noise_and_sampling():
    """Variance 4 of the noise; 100 rows of mean squared distance 10 in two features: 10 / 200."""
    final = result([[0, 0], [1, 1]], counts=np.array([100.0, 1.0]))
    assert np.allclose(_centers_sd(final, 4000.0, 0.0, SIZE, TUNING)[0], np.sqrt(4 + 10 / 200))
    # A count of next to nothing is taken for what is sure, here twice its noise.
    least = TUNING.certain_count_sd
    assert np.allclose(
        _centers_sd(final, 4000.0, 0.0, SIZE, TUNING)[1], np.sqrt(4 + 10 / (2 * least))
    )
    # Of weights whose squares come to half of their sum: half of the sampling.
    even = replace(SIZE, weights=Weights(square=0.5))
    assert np.allclose(_centers_sd(final, 4000.0, 0.0, even, TUNING)[0], np.sqrt(4 + 10 / 400))


def test_a_spread_that_the_noise_hides_is_as_large_as_the_noise():
    """A common one of 0 with an error of 4000 / 400, and one of a cluster that says 90 +- 5."""
    final = result([[0, 0]], counts=np.array([100.0]))
    assert np.allclose(_centers_sd(final, 0.0, 4000.0, SIZE, TUNING), np.sqrt(4 + 10 / 200))
    own = replace(final, spread=np.array([90.0]), spread_variance=np.array([25.0]))
    mean = (90 / 25 + 0 / 100) / (1 / 25 + 1 / 100)
    assert np.allclose(_centers_sd(own, 0.0, 4000.0, SIZE, TUNING), np.sqrt(4 + mean / 200))


def test_a_spread_that_is_known_exactly_counts_alone():
    final = result([[0, 0]], spread=np.array([90.0]), spread_variance=np.array([1e-12]))
    assert np.allclose(_centers_sd(final, 4000.0, 0.0, SIZE, TUNING), np.sqrt(4 + 90 / 10_000))


@pytest.mark.parametrize("k", [1, 3])
def test_one_center_stands_for_all_clusters(k):
    alone = EngineResult(
        np.array([[1.0, 2.0]]),
        np.array([70.0]),
        1.0,
        "ok",
        0,
        0.0,
        centers_sd=np.array([0.5]),
        weights_sd=np.array([3.0]),
        weights_since=np.array([0.0]),
    )
    found = _for_each(alone, k)
    assert found.centers.tolist() == [[1.0, 2.0]] * k
    assert found.weights.tolist() == [70.0] + [0.0] * (k - 1)
    assert found.centers_sd.tolist() == [0.5] * k
    assert found.weights_sd.tolist() == [3.0] + [0.0] * (k - 1)
