"""What samplers are really asked for: by every law, and in fits; and what choices tell.

A replay reads the scale that a release claims, and the tests of the noise read the numbers that it
releases. A choice releases one index: a wrong scale inside it shows in neither, unless hundreds of
fits are looked at.
"""

import math
import warnings

import numpy as np
import pytest
from configurations import ESTIMATORS
from kernel_tools import sealed
from release_tools import RELEASES
from scipy.stats import chi2

from benchmarks.certify.claims import Rates
from sklearn_dp import DPKMeans, SampleAndAggregate
from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.plan import PlanEntry, PrivacyPlan
from sklearn_dp._privacy._noise import NoiseSource
from sklearn_dp._privacy._selection import Thin
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._trace import Event, Trace, trace
from sklearn_dp._privacy.mechanisms import pure
from sklearn_dp._privacy.mechanisms.proportional import proportional_noise_psd
from sklearn_dp._privacy.mechanisms.pure import open_step
from sklearn_dp._privacy.mechanisms.shares import NoiseShares, release_shared
from sklearn_dp._privacy.mechanisms.stability import copies
from sklearn_dp.audit._laws import KINDS, chances_above, law_of
from sklearn_dp.cluster import FarBallsOptions, aggregate_k_tuples
from sklearn_dp.model_selection import DPGridSearch

# -- scales ----------------------------------------------------------------------------------------


def asked_for(event):
    """What each law has to ask of the samplers, from its theorem: name, scale and how many."""
    size = 0 if isinstance(event.value, tuple) else np.size(event.value)
    if event.kind in ("gaussian", "inner_gaussian", "filter"):
        return [("rounded_gaussian", event.scale, size)]
    if event.kind == "share":
        return [("rounded_gaussian", event.scale, np.size(event.output))]
    if event.kind in ("laplace", "inner_laplace"):
        return [("rounded_laplace", event.scale, size)]
    if event.kind == "lead":
        return [("rounded_laplace", event.scale, 1)]
    if event.kind == "choice" and "threshold" in event.public:
        # The threshold, and each query with twice the scale.
        return [("rounded_laplace", event.scale, 1), ("rounded_laplace", 2 * event.scale, size)]
    if event.kind in ("choice", "inner_choice"):
        return [("exponential_choice", event.scale, size)]
    if event.kind == "sparse":  # each cell, occupied or not
        return [("rounded_gaussian", event.scale, event.public["n_candidates"])]
    if event.kind == "stability":
        return [("rounded_gaussian", event.scale, len(event.value[0]))]
    if event.kind == "proportional":  # in steps of 2^-50, times eta afterward: exact integers
        return [("rounded_gaussian", 2.0**50, np.size(event.value[0]))]
    return []  # coins, orders, and what is no release


class Listening:
    """A trace that compares what the samplers were asked for since the last event."""

    def __init__(self, patch):
        self.calls, self.wrong, self.events = [], [], []
        self._trace = Trace()
        for name in ("rounded_gaussian", "rounded_laplace", "exponential_choice"):
            patch.setattr(NoiseSource, name, self._spied(name, getattr(NoiseSource, name)))

    def _spied(self, name, original):
        def drawn(source, first, second=None):
            if name == "exponential_choice":
                self.calls.append((name, second, np.size(first)))
            else:
                size = np.shape(first) if second is None else second
                self.calls.append((name, first, int(np.prod(size))))
            return original(source, first, second)

        return drawn

    def record(self, event):
        calls, self.calls = self.calls, []
        wanted = asked_for(event)
        same = len(calls) == len(wanted) and all(
            (one[0], one[2]) == (other[0], other[2]) and np.all(one[1] == np.asarray(other[1]))
            for one, other in zip(calls, wanted, strict=True)
        )
        if not same:
            self.wrong.append(f"{event.kind} of {event.entry!r}: {calls} for {wanted}")
        self.wrong += law_of(event).claims(event)
        self.events.append(event)
        return self._trace.record(event)

    def take_shares(self, entry):
        return self._trace.take_shares(entry)


def heard(make):
    """The events of what is made, and whatever the samplers were asked for otherwise."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with trace(Listening(patch)) as listening:
            make()
    return listening


def open_session():
    plan = PrivacyPlan(
        PrivacyBudget(rho=40.0, delta=0.5), (PlanEntry("a", "friendly core", 20.0, 0.2, uses=None),)
    )
    return PrivacySession(plan, random_state=0)


LAWS = {
    **{name: lambda s, made=release: made(s, "a", 3.0) for name, release in RELEASES.items()},
    "gaussian, by coordinate": lambda s: s.gaussian(
        "a", [5, 6], sensitivity=np.array([3.0, 70.0]), rho=0.5
    ),
    "shares that are told": lambda s: release_shared(
        s, "a", sealed([5, 6], 3.0), n_honest=4, rho=0.5
    ),
    "share": lambda s: NoiseShares(0, "client").draw("a", 1, 300.0, (4,)),
    "proportional": lambda s: proportional_noise_psd(
        s, "a", np.eye(2, dtype=int) << 40, 1, bits=40, distance=1e-3, eta=1.0, rho=5.0, delta=1e-2
    ),
    "a step": lambda s: draws_of(open_step(s, "a", epsilon=0.5, delta=1e-3)),
    "copies": lambda s: copies(s, np.ones(3)),
    "fit": lambda s: s.inner("a", s.plan, "fit"),
}


def draws_of(step):
    step.laplace([5, 6], sensitivity=3.0, epsilon=0.25)
    step.gaussian([5, 6], sensitivity=3.0, epsilon=0.25, delta=1e-4)
    step.choice([5, 6, 9], sensitivity=3, epsilon=0.25)
    step.runs(Thin(3, 0.5))
    step.sample(9, 4)
    step.assume(True)


@pytest.mark.parametrize("name", LAWS)
def test_a_law_asks_for_the_scale_that_it_claims(name):
    found = heard(lambda: LAWS[name](open_session()))
    assert found.wrong == [] and len(found.events) >= 2


def test_every_kind_is_tried():
    met = {
        event.kind
        for name in LAWS
        for event in heard(lambda n=name: LAWS[n](open_session())).events
    }
    assert met == set(KINDS)


ROWS = np.repeat([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]], 40, axis=0)
ROWS = ROWS + 0.1 * np.random.default_rng(0).normal(size=ROWS.shape)
COPIES = {"n_blocks": 8, "sampling": "with_replacement", "epsilon": 8.0, "delta": 1e-2}
TUPLES = np.repeat([[[0.5, 0.0], [-0.5, 0.0]]], 320, axis=0)
FITS = {
    **{name: lambda cls=cls: cls(random_state=0).fit(ROWS) for name, cls in ESTIMATORS.items()},
    "copies": lambda: SampleAndAggregate(random_state=0, **COPIES).fit(ROWS),
    "far balls": lambda: aggregate_k_tuples(
        TUPLES,
        bounds=2.0,
        epsilon=8.0,
        delta=0.01,
        options=FarBallsOptions(7.0),
        aggregator="noisy_centers",
        random_state=0,
    ),
    "the best of some runs": lambda: DPGridSearch(
        DPKMeans(bounds=5.0), {"n_clusters": [2, 3]}, epsilon=4.0, selection="best", random_state=0
    ).fit(ROWS),
}


@pytest.mark.parametrize("name", FITS)
def test_a_fit_asks_for_the_scales_that_it_claims(name):
    """Noise from anywhere but a release would be among the calls of the next one."""
    found = heard(FITS[name])
    assert found.wrong == [] and found.calls == [] and len(found.events) >= 2


# -- choices ---------------------------------------------------------------------------------------


def answers(release, draws, seed=0):
    """How often each index was drawn; none comes first."""
    noise = NoiseSource(seed)
    drawn = np.array([release.draw(noise) for _ in range(draws)])
    return np.bincount(drawn + 1, minlength=len(release.value) + 1)


def event_of(release):
    return Event("choice", "a", release.value, scale=release.scale, public=release.public)


def chances_of(release):
    """The claimed law of the index; none comes first."""
    if release.public:
        return chances_above(event_of(release))
    weights = np.exp(release.scale * (release.value - release.value.max()).astype(float))
    return np.append(0.0, weights / weights.sum())


CHOICES = {
    "above threshold": lambda: pure.above_threshold_release([-16] * 8, 0, 4, 1.0),
    "exponential": lambda: pure.exponential_release([0, 20, 30, 31], 4, 1.0),
}


@pytest.mark.parametrize("name", CHOICES)
def test_choices_have_the_law_that_they_claim(name):
    """Chi-square, false alarm 1e-6. Power above .999: the noise of queries halved, or a rate twice
    as sharp, moves the mean of the statistic by 250 and more, by twenty standard deviations."""
    release = CHOICES[name]()
    chances, seen = chances_of(release), answers(release, 1000)
    there = chances > 0
    expected = 1000 * chances[there] / chances.sum()
    assert seen[~there].sum() == 0
    assert chi2.sf(((seen[there] - expected) ** 2 / expected).sum(), there.sum() - 1) > 1e-6


def test_answers_above_a_threshold_tell_no_more_than_they_cost():
    """A pair for which queries with half of their noise give away 2.64 in the place of 2.

    False alarms: 1e-6, by Clopper-Pearson limits. Power: .99; the rates are .106 and .0076
    then, and their limits at least .096 and .0105, which is 2.2.
    """
    epsilon, draws, last = 2.0, 16_000, 5
    one = pure.above_threshold_release([-4] * 4 + [4], 0, 8, epsilon)
    other = pure.above_threshold_release([4] * 4 + [-4], 0, 8, epsilon)
    seen = [answers(release, draws, seed)[last] for seed, release in enumerate((one, other))]
    low, high = Rates(seen[0], draws, seen[1], draws).limits(1e-6)
    assert 1.0 < math.log(low / high) <= epsilon
