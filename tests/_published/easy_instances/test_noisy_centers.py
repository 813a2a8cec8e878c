"""Noisy centers after the test for far balls: the separation, laws, order (A10, B5, B6, B7)."""

import math

import numpy as np
import pytest
from k_tuple_tools import rich_session
from scipy import stats

from sklearn_dp._costs import accounting
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp._privacy.mechanisms.pure import open_step
from sklearn_dp._queries.separated_balls import noisy_centers

E28 = math.exp(-28)


def test_the_scale_is_private_and_the_printed_one_is_not():
    """easy_instances:A10: density ratio of a released scale for M and M' = M (D + 2) / (D - 2)."""
    k, epsilon, delta, x = 2, 1.0, 1e-6, np.linspace(-60, 60, 20_001)
    for separation in (7.0, 50.0):
        step = math.log((separation + 2) / (separation - 2))
        width = 4 * k / epsilon * step
        ratio = (np.abs(x - step) - np.abs(x)) / width
        assert np.abs(ratio).max() <= epsilon / (4 * k) * (1 + 1e-12)
    # The printed one adds Laplace noise to 1 + gamma and multiplies by M: scale and place move.
    factor = 4 / (7.0 - 2)
    shift, width = 4 * k / epsilon * math.log(4 * k / delta) + 1, 4 * k / epsilon
    value = np.linspace(1 - 40 * factor * width, 1 + 60 * factor * width, 20_001)

    def log_density(y, reach):
        place, scale = reach * (1 + factor * shift), reach * factor * width
        return -np.abs(y - place) / scale - math.log(2 * scale)

    loss = log_density(value, 1.0) - log_density(value, 9 / 5)
    assert np.abs(loss).max() > 10 * epsilon / (4 * k)


def released(seed, centers, separation, epsilon, delta):
    session = rich_session(seed)
    step = open_step(session, "tuples", epsilon=1.0, delta=1e-6)
    with trace(Trace()) as recording:
        session._trace = recording
        noisy = noisy_centers(session, step, centers, separation, 2**24, epsilon, delta)
    events = {event.kind: event for event in recording.events}
    return noisy, events


def test_laws_of_the_noisy_centers():
    """easy_instances:B5: Laplace logarithms, standard normal centers in units of the scale; KS,
    alarm 1e-6.

    With 600 numbers a scale that is off by 15% is found.
    """
    k, epsilon, delta, separation = 2, 0.5, 0.1, 50.0
    centers = np.array([[0.0, 0.0, 0.0], [2.0**20, 0.0, 0.0]])
    c, logs, normals = 4 / (separation - 2), [], []
    width = 2 * k / epsilon * math.log1p(c)  # 4 k / eps of the whole, of which epsilon is half
    offset = width * math.log(k / delta)
    low = (2 + c) / separation * 2.0**20
    sigma = accounting.gaussian_sigma(epsilon / 2, delta / 2, math.sqrt(k))
    below = 0
    for seed in range(300):
        noisy, events = released(seed, centers, separation, epsilon, delta)
        scale = (2 + c) / separation * np.exp(events["inner_laplace"].output / 2**20 + offset)
        logs.append(np.log(scale / low) - offset)
        below += np.count_nonzero(scale < low)
        ordered = centers[events["order"].output]
        spread = np.minimum(scale, 2.0**25)
        normals.append((noisy - ordered) / spread[:, None] / sigma)
    assert stats.kstest(np.ravel(logs) / width, stats.laplace.cdf).pvalue > 1e-6
    assert stats.kstest(np.ravel(normals), stats.norm.cdf).pvalue > 1e-6
    assert stats.binomtest(below, 600, delta / (2 * k)).pvalue > 1e-6
    both = np.array(logs)
    assert abs(np.corrcoef(np.sign(both.T))[0, 1]) < 0.29  # five standard errors


def test_the_order_of_the_noisy_centers_tells_nothing():
    """easy_instances:B6: uniform over 4 places, 400 runs, chi-square at 1e-6."""
    centers = 2.0**20 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
    places = np.zeros(4)
    for seed in range(400):
        noisy, _ = released(seed, centers, 5000.0, 1.0, 1e-6)
        places[np.linalg.norm(noisy - centers[0], axis=1).argmin()] += 1
    assert stats.chisquare(places).pvalue > 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(("d", "k", "reach", "samples"), [(1, 2, 512, 141), (4, 8, 4096, 593)])
def test_end_to_end_success_of_the_papers_tests(d, k, reach, samples):
    """easy_instances:B7: at least 34 of 40 runs separate 20 000 fresh samples; each run succeeds
    with > .95.
    """
    from sklearn_dp.cluster import aggregate_k_tuples

    good = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        axes = np.eye(d)[: max(k // 2, 1)]
        centers = reach * np.concatenate([axes, -axes])
        tuples = centers + rng.normal(size=(2550, k, d)) / math.sqrt(samples)
        found = aggregate_k_tuples(
            tuples,
            bounds=2.0 * reach,
            epsilon=1.0,
            delta=E28,
            aggregator="noisy_centers",
            random_state=seed,
        ).centers
        if found is None:
            continue
        fresh = np.repeat(centers, 20_000 // k, axis=0)
        fresh = fresh + rng.normal(size=fresh.shape)
        nearest = np.linalg.norm(fresh[:, None] - found, axis=2).argmin(axis=1).reshape(k, -1)
        good += bool((nearest == nearest[:, :1]).all()) and len(set(nearest[:, 0])) == k
    assert good >= 34
