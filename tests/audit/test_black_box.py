"""Black-box audits: what the answers of thousands of fits tell apart.

Nothing of the inside is used: a test by the answers whether a record was there has some rates of
true and of false alarms, and mu-GDP limits how far apart these may be. Rates are replaced by
confidence limits (Clopper-Pearson), so a claim that is true is blamed with a probability of at
most 1e-6. The thresholds are fixed beforehand. (Certificates, `sklearn_dp.audit.certify`, do the
same for every estimator and find their own tests; here are the building blocks.)
"""

import math
from contextlib import nullcontext

import numpy as np
import pytest
from scipy.special import ndtri

from sklearn_dp import FriendlyMean
from sklearn_dp._privacy._composite_mechanism import CompositeMechanism
from sklearn_dp._privacy._noise import NoiseSource
from sklearn_dp._privacy._trace import altering
from sklearn_dp.audit._certify import less_noise
from sklearn_dp.audit._epsilon_bounds import Rates
from sklearn_dp.cluster import FarBallsOptions, aggregate_k_tuples
from sklearn_dp.mixture import DPGaussianMixture

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
FALSE_ALARM = 1e-6
DELTA, TUPLES = 0.01, 320


def answers(alarm, with_record, without, runs=2000):
    """The alarms of fits with the record, and of as many without it, each with its own seed."""
    return [
        [alarm(rows, seed) for seed in range(start, start + runs)]
        for rows, start in ((with_record, 0), (without, runs))
    ]


def limits(with_record, without):
    """Lower limit of the rate of true alarms, upper limit of that of false ones."""
    counts = int(np.sum(with_record)), len(with_record), int(np.sum(without)), len(without)
    return Rates(*counts).limits(FALSE_ALARM)


def mu_seen(with_record, without):
    """Lower limit of mu: of a mu-GDP mechanism ndtri(true) - ndtri(false) is at most mu."""
    low, high = limits(with_record, without)
    return float(ndtri(low) - ndtri(high)) if low > 0 and high < 1 else -math.inf


def epsilon_seen(with_record, without, delta=DELTA):
    """Lower limit of epsilon: each set of answers as the alarm, and the alarm as its opposite."""
    worst = -math.inf
    for yes, no in ((with_record, without), (without, with_record)):
        for each in ((yes, no), ([not x for x in yes], [not x for x in no])):
            low, high = limits(*each)
            worst = max(worst, math.log(max(low - delta, 1e-300) / max(high, 1e-300)))
    return worst


def noise_too_small(factor):
    return altering(NoiseSource, less_noise(factor)) if factor > 1 else nullcontext()


def far_tuples(tuples, seed):
    """easy_instances:B15: whether tuples with far balls have an answer."""
    found = aggregate_k_tuples(
        tuples,
        bounds=2.0,
        epsilon=2.0,
        delta=DELTA,
        options=FarBallsOptions(7.0),
        aggregator="noisy_centers",
        random_state=seed,
    ).centers
    return found is not None and np.linalg.norm(found[0] - found[1]) > 1.0


@pytest.mark.parametrize("broken", [False, True])
def test_noisy_centers_of_a_tuple_at_the_edge(broken, monkeypatch):
    """A tuple as far in as far balls allow, or as far out, among tuples at one place; epsilon = 2.

    Broken: the test proposes the first tuples, and everything has less noise. Power: it answers in
    nine of ten runs, never wrongly; the limits of the rates then are 0.85 and 0.008, which is
    epsilon = 4.6.
    """
    center, reach = np.array([[0.5, 0.0], [-0.5, 0.0]]), 2 / 7.0 * (1 - 1e-5)
    sides = [np.repeat(center[None], TUPLES, axis=0) for _ in range(2)]
    sides[0][0], sides[1][0] = center / (1 - reach), center / (1 + reach)
    if broken:
        monkeypatch.setattr(CompositeMechanism, "sample", lambda self, n, m: np.arange(m))
    with noise_too_small(1000.0 if broken else 1.0):
        assert (epsilon_seen(*answers(far_tuples, *sides)) > 2.0) == broken


def test_an_outlier_of_a_friendly_mean_is_as_well_hidden_as_claimed():
    """friendly_core:20: a row that the clip nearly cuts, with 400 in two places, or these alone.

    Half of the rows are as far from their mean as rows come, and the clip radius is a bit farther
    than twice that. From 1.2 on the row is no friend of all the others. The mean shows most of the
    claim: mu is about 0.4 of 0.52.
    """
    options = {"epsilon": 1.0, "delta": DELTA, "diameter": 1.0}
    rest = np.repeat([[-0.5], [0.5]], 200, axis=0)

    def alarm(rows, seed):
        return FriendlyMean(**options, random_state=seed).fit(rows).mean_[0] > 1.1 / 400

    seen = answers(alarm, np.concatenate([rest, [[1.15]]]), rest)
    assert mu_seen(*seen) <= math.sqrt(2 * FriendlyMean(**options).privacy_plan(1).rho)
    assert epsilon_seen(*seen) <= 1.0


def core_of_tuples(tuples, seed):
    options = {"aggregator": "friendly_core", "epsilon": 4.0, "delta": DELTA}
    found = aggregate_k_tuples(tuples, bounds=1.0, random_state=seed, **options)
    return found.centers[0, 0] < -0.1 / TUPLES  # between the two averages


@pytest.mark.parametrize("broken", [False, True])
def test_an_inner_fit_that_looks_for_a_record(broken):
    """friendly_core:20: an inner fit that answers otherwise when a marked record is in its block.

    Half of the tuples are at one place and half at another, so that their radius is what separates
    these two; the marked record turns one of the first into one of the second. epsilon = 4, most of
    it for the core, whose size has an audit of its own. Broken: the noise is 200 times too small,
    the answers part without an error, which is epsilon = 4.2 here.
    """
    tuples = np.full((TUPLES, 1, 1), 0.1)
    tuples[TUPLES // 2 :] = -0.1
    marked = tuples.copy()
    marked[0] = -0.1
    with noise_too_small(200.0 if broken else 1.0):
        seen = answers(core_of_tuples, marked, tuples, 1000)
    assert (epsilon_seen(*seen) > 4.0) == broken


@pytest.mark.parametrize("broken", [False, True])
def test_a_released_mean_tells_no_more_than_is_claimed(broken):
    """separated_gaussians:A12: one component of 60 rows near zero, with one row at the bound.

    False alarms: 1e-6 for mu, which is 1.53, and epsilon. Broken: a third of the noise. Power:
    above 0.999; mu is about 2.5 then, the limits of the rates are 0.84 and 0.16, which is 2.0.
    """
    near = 0.02 * ndtri((np.arange(60) + 0.5) / 60)[:, None]
    options = {"covariance_type": "spherical", "epsilon": 8.0, "bounds": 1.0}

    def alarm(rows, seed):
        model = DPGaussianMixture(1, **options, random_state=seed).fit(rows)
        return model.means_[0, 0] > 3.5e-4

    with noise_too_small(3.0 if broken else 1.0):
        seen = answers(alarm, np.append(near, [[1.0]], axis=0), near, 500 if broken else 2000)
    mu = math.sqrt(2 * DPGaussianMixture(1, epsilon=8.0).privacy_plan(1).rho)
    assert (mu_seen(*seen) > mu) == broken
    assert broken or (mu_seen(*seen) > 0 and epsilon_seen(*seen, 1e-6) <= 8.0)
