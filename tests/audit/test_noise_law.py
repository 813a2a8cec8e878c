"""The tests of the noise accept the kernel's, and find what is wrong with any other."""

import numpy as np
import pytest
from release_tools import RELEASES
from scipy.stats import kstest

from benchmarks.certify.drawn import scale_problems
from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.plan import PlanEntry, PrivacyPlan
from sklearn_dp._privacy._noise import NoiseSource
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp.audit import noise_audit
from sklearn_dp.audit._noise_law import noise_problems, standardized


def events_of(release, scale, fits):
    plan = PrivacyPlan(
        PrivacyBudget(rho=10.0, delta=0.5), (PlanEntry("a", "friendly core", 5.0, 0.2),)
    )
    traces = []
    for seed in range(fits):
        with trace(Trace()) as recorder:
            release(PrivacySession(plan, random_state=seed), "a", scale)
        traces.append(recorder.events)
    return traces


@pytest.mark.parametrize("scale", [0.3, 3.0, 1e6])
@pytest.mark.parametrize("name", RELEASES)
def test_correct_noise_becomes_standard_normal(name, scale):
    """False alarm 1e-7 for each of 33 tests of Kolmogorov and Smirnov, at fixed seeds; with 4000
    numbers they see a scale that is off by 7%."""
    traces = events_of(RELEASES[name], scale, 100)
    rng = np.random.default_rng(0)
    numbers = np.concatenate(
        [standardized(event, rng) for events in traces for event in events if event.kind != "seed"]
    )
    assert kstest(numbers, "norm").pvalue > 1e-7
    assert len(numbers) >= 100
    assert noise_problems(traces) == []


@pytest.mark.parametrize("name", ["gaussian", "laplace", "sparse", "stability", "filter"])
def test_noise_of_another_scale_is_found(name):
    for factor in (0.5, 2.0):
        traces = events_of(RELEASES[name], 30.0, 60)
        for events in traces:
            for event in events:
                event.scale = None if event.scale is None else event.scale * factor
        assert any("than claimed" in text for text in noise_problems(traces))


def test_choices_that_ignore_the_scores_are_found():
    traces = events_of(RELEASES["choice"], 1.0, 400)
    for events in traces:
        events[-1].output = 0
    assert noise_problems(traces)
    traces = events_of(RELEASES["bernoulli"], 1.0, 60)
    for events in traces:
        events[-1].output = np.arange(40) >= 20
    assert noise_problems(traces)


@pytest.mark.parametrize("scale", [3.0, 1e6])
def test_a_threshold_that_is_not_noisy_is_found(scale, monkeypatch):
    """Power: above 0.999. Without noise all answers are the first query above it."""
    zeros = lambda self, scale, size=None: np.zeros(size or (), dtype=np.int64)  # noqa: E731
    monkeypatch.setattr(NoiseSource, "rounded_laplace", zeros)
    assert noise_problems(events_of(RELEASES["threshold"], scale, 300))


@pytest.mark.parametrize("lag", [1, 2, 3])
def test_noise_that_comes_back_is_found(toy, points, lag, monkeypatch):
    original, used = NoiseSource.rounded_gaussian, []

    def repeated(self, sigma, size=None):
        used.append(NoiseSource(len(used) if len(used) < lag else len(used) % lag))
        return original(used[-1], sigma, size)

    monkeypatch.setattr(NoiseSource, "rounded_gaussian", repeated)
    assert any(f"repeats after {lag}" in text for text in noise_audit(toy, points, fits=20))


def two_sums(session, entry, scale):
    """Each of 12 numbers, with noise of `scale` steps."""
    session.gaussian(
        entry, np.zeros((2, 12), np.int64), sensitivity=np.tile(scale, (2, 1)), rho=0.5
    )


@pytest.mark.parametrize("missing", [True, False])
def test_coarse_numbers_do_not_hide_that_fine_ones_have_no_noise(missing):
    """The rounding of eight coarse numbers looks like noise; 16 fine ones beside them have none."""
    scale = np.array(8 * [300.0] + 4 * [0.138])
    (events,) = events_of(two_sums, scale, 1)
    for event in events:
        event.output = 0 * event.output if missing else event.output
    assert [text.partition(" (")[0] for text in scale_problems(events)] == (
        ["fine numbers of a: noise smaller than claimed"] if missing else []
    )
