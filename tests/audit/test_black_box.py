"""Black-box audits: what the answers of thousands of fits tell apart.

Nothing of the inside is used: a test by the answers whether a record was there has some rates of
true and of false alarms, and mu-GDP limits how far apart these may be. Rates are replaced by
confidence limits (Clopper-Pearson), so a claim that is true is blamed with a probability of at
most 1e-6. The thresholds are fixed beforehand. (Certificates, `sklearn_dp.audit.certify`, do the
same for every estimator and find their own tests; here are the building blocks.)
"""

import math

import numpy as np
import pytest
from scipy.special import ndtri

from sklearn_dp import FriendlyMean
from sklearn_dp._privacy._noise import NoiseSource
from sklearn_dp.audit._epsilon_bounds import Rates
from sklearn_dp.cluster import FarBallsOptions, aggregate_k_tuples
from sklearn_dp.mixture import DPGaussianMixture

FALSE_ALARM = 1e-6
RUNS = 2000  # with the record, and as many without it


def rates(with_record, without, level):
    """Lower limit of the rate of true alarms, upper limit of that of false ones."""
    return Rates(
        int(np.sum(with_record)), len(with_record), int(np.sum(without)), len(without)
    ).limits(level)


def mu_seen(with_record, without, level=FALSE_ALARM):
    """Lower limit of mu: of a mu-GDP mechanism ndtri(true) - ndtri(false) is at most mu."""
    low, high = rates(with_record, without, level)
    return float(ndtri(low) - ndtri(high)) if low > 0 and high < 1 else -math.inf


def epsilon_seen(with_record, without, delta, level=FALSE_ALARM):
    low, high = rates(with_record, without, level)
    return math.log(max(low - delta, 1e-300) / max(high, 1e-300))


FAR = np.array([[1.0]])


def less_noise(patch, factor):
    """As if every sensitivity were smaller by a factor than it is."""
    original = NoiseSource.rounded_gaussian

    def rounded_gaussian(self, sigma, size=None):
        return original(self, np.asarray(sigma) / factor, size)

    patch.setattr(NoiseSource, "rounded_gaussian", rounded_gaussian)


# -- k-tuples -------------------------------------------------------------------------------------

EPSILON, DELTA, TUPLES = 2.0, 0.01, 320


def answers_of_tuples(edge, seed):
    """easy_instances:B15: a tuple as far in as far balls allow, or as far out, among tuples at one
    place.
    """
    center = np.array([[0.5, 0.0], [-0.5, 0.0]])
    tuples = np.repeat(center[None], TUPLES, axis=0)
    tuples[0] = center * edge
    found = aggregate_k_tuples(
        tuples,
        bounds=2.0,
        epsilon=EPSILON,
        delta=DELTA,
        options=FarBallsOptions(7.0),
        aggregator="noisy_centers",
        random_state=seed,
    ).centers
    return found is not None and np.linalg.norm(found[0] - found[1]) > 1.0


def first_tuples(patch, factor):
    """The test proposes the first tuples, and everything has less noise."""
    from sklearn_dp._privacy import _composite_mechanism as _step

    patch.setattr(_step.CompositeMechanism, "sample", lambda self, n, m: np.arange(m))
    laplace = NoiseSource.rounded_laplace
    patch.setattr(
        NoiseSource,
        "rounded_laplace",
        lambda self, scale, size=None: laplace(self, np.asarray(scale) / factor, size),
    )
    less_noise(patch, factor)


def audit_tuples(runs=RUNS):
    reach = 2 / 7.0 * (1 - 1e-5)
    seen = [
        [answers_of_tuples(edge, seed) for seed in range(start, start + runs)]
        for edge, start in ((1 / (1 - reach), 0), (1 / (1 + reach), runs))
    ]
    return max(
        epsilon_seen(*pair, DELTA)
        for pair in (seen, seen[::-1], ([not x for x in seen[0]], [not x for x in seen[1]]))
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("broken", [False, True])
def test_noisy_centers_of_a_tuple_at_the_edge(broken, monkeypatch):
    """epsilon = 2. Power: the broken one answers in nine of ten runs, never wrongly; the limits of
    the rates then are 0.85 and 0.008, which is epsilon = 4.6."""
    if broken:
        first_tuples(monkeypatch, 1000.0)
    assert (audit_tuples() > EPSILON) == broken


# -- friendly averages ----------------------------------------------------------------------------


def answers_of_means(runs, start=0):
    """friendly_core:20: a row that the clip nearly cuts, beside 400 in two places, or these alone.

    Half of the rows are as far from their mean as rows come, and the clip radius is a bit farther
    than twice that. From 1.2 on the row is no friend of all the others.
    """
    rest, far = np.repeat([[-0.5], [0.5]], 200, axis=0), np.array([[1.15]])
    return [
        [
            FriendlyMean(epsilon=1.0, delta=DELTA, diameter=1.0, random_state=seed)
            .fit(rows)
            .mean_[0]
            > 1.1 / 400
            for seed in range(first, first + runs)
        ]
        for rows, first in ((np.concatenate([rest, far]), start), (rest, start + runs))
    ]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_an_outlier_of_a_friendly_mean_is_as_well_hidden_as_claimed():
    """False alarms: 1e-6. The mean shows most of the claim: mu is about 0.4 of 0.52."""
    plan = FriendlyMean(epsilon=1.0, delta=DELTA, diameter=1.0).privacy_plan(1)
    seen = answers_of_means(RUNS)
    assert mu_seen(*seen) <= math.sqrt(2 * plan.rho)
    assert max(epsilon_seen(*pair, DELTA) for pair in both_ways(*seen)) <= 1.0


def both_ways(with_record, without):
    """Each set of answers as that of the alarm, and the alarm as its opposite."""
    for yes, no in ((with_record, without), (without, with_record)):
        yield yes, no
        yield [not x for x in yes], [not x for x in no]


def answers_of_cores(runs, start=0):
    """friendly_core:20: an inner fit that answers otherwise when a marked record is in its block.

    Half of the tuples are at one place and half at another, so that their radius is what separates
    these two; the marked record turns one of the first into one of the second.
    """
    tuples = np.full((TUPLES, 1, 1), 0.1)
    tuples[TUPLES // 2 :] = -0.1
    marked = tuples.copy()
    marked[0] = -0.1
    low = -0.1 / TUPLES  # between the two averages
    return [
        [
            aggregate_k_tuples(
                rows,
                bounds=1.0,
                epsilon=4.0,
                delta=DELTA,
                aggregator="friendly_core",
                random_state=seed,
            ).centers[0, 0]
            < low
            for seed in range(first, first + runs)
        ]
        for rows, first in ((marked, start), (tuples, start + runs))
    ]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("broken", [False, True])
def test_an_inner_fit_that_looks_for_a_record(broken, monkeypatch):
    """epsilon = 4, most of it for the core, whose size has an audit of its own. Broken: the noise
    is 200 times too small, the answers part without an error, which is epsilon = 4.2 here."""
    if broken:
        less_noise(monkeypatch, 200.0)
    seen = answers_of_cores(RUNS // 2)
    assert (max(epsilon_seen(*pair, DELTA) for pair in both_ways(*seen)) > 4.0) == broken


# -- mixtures -------------------------------------------------------------------------------------


def answers_of_mixtures(runs, start=0):
    """One component of 60 rows near zero, with one row at the bound or without it: its mean."""
    near = 0.02 * ndtri((np.arange(60) + 0.5) / 60)[:, None]
    return [
        [
            DPGaussianMixture(
                1, covariance_type="spherical", epsilon=8.0, bounds=1.0, random_state=seed
            )
            .fit(rows)
            .means_[0, 0]
            > 3.5e-4
            for seed in range(first, first + runs)
        ]
        for rows, first in ((np.concatenate([near, FAR]), start), (near, start + runs))
    ]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_released_mean_tells_no_more_than_is_claimed():
    """separated_gaussians:A12: 4000 fits. False alarms: 1e-6 for mu, which is 1.53, and epsilon."""
    mu = math.sqrt(2 * DPGaussianMixture(1, epsilon=8.0).privacy_plan(1).rho)
    seen = answers_of_mixtures(RUNS)
    assert 0 < mu_seen(*seen) <= mu and epsilon_seen(*seen, 1e-6) <= 8.0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_mean_with_a_third_of_the_noise_is_caught(monkeypatch):
    """Power: above 0.999. mu is about 2.5 then, the rates are 0.9 and 0.1 with a standard error of
    0.013, and their limits 0.84 and 0.16, which is 2.0."""
    less_noise(monkeypatch, 3.0)
    mu = math.sqrt(2 * DPGaussianMixture(1, epsilon=8.0).privacy_plan(1).rho)
    assert mu_seen(*answers_of_mixtures(500)) > mu
