"""What the audit knows of each law: the same laws as the kernel, and nothing passes unknown."""

import pkgutil

import numpy as np
import pytest
from scipy.stats import kstest

import sklearn_dp._privacy.laws
import sklearn_dp.audit.laws
from sklearn_dp._privacy._budget import PrivacyBudget
from sklearn_dp._privacy._plan import PlanEntry, PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._trace import Event, Trace, trace
from sklearn_dp.audit._claims import check_claims, paid
from sklearn_dp.audit._noise_law import _standardized, noise_problems
from sklearn_dp.audit._player import Replay
from sklearn_dp.audit.laws import KINDS, UnknownLawError, law_of

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")
STRANGE = Event("strange", "a", 1, 1.0, 1.0, 0.1, {}, 1)


def public_modules(package):
    return {item.name for item in pkgutil.iter_modules(package.__path__)
            if not item.name.startswith("_")}


def test_kernel_and_audit_name_the_same_laws():
    assert public_modules(sklearn_dp._privacy.laws) == public_modules(sklearn_dp.audit.laws)


@pytest.mark.parametrize("look", [
    law_of,
    lambda event: check_claims([event], None, None),
    lambda event: paid([event]),
    lambda event: noise_problems([[event]]),
    Replay([STRANGE], np.arange(1)).record,
    Replay([], np.arange(1)).record,
], ids=["law_of", "claims", "paid", "noise", "replay", "replay of too many"])
def test_a_law_unknown_to_the_audit_is_an_error(look):
    """Claims and tests of the noise passed such an event in silence."""
    with pytest.raises(UnknownLawError, match="'strange'"):
        look(STRANGE)


def test_every_kind_has_all_rules():
    for kind, law in KINDS.items():
        assert all(map(callable, (law.replay, law.numbers, law.claims, law.delta))), kind


def numbers_of(release, fits=300):
    plan = PrivacyPlan(PrivacyBudget(rho=20.0, delta=0.5),
                       (PlanEntry("a", "friendly core", 10.0, 0.2),))
    rng, found = np.random.default_rng(1), []
    for seed in range(fits):
        with trace(Trace()) as recorder:
            release(PrivacySession(plan, random_state=seed))
        found += [_standardized(event, rng) for event in recorder.events if event.kind != "seed"]
    return np.concatenate(found)


RELEASES = {
    "above threshold, coarse": lambda s: s.above_threshold(
        "a", [0, 2, 5, 3], 4, sensitivity=1, epsilon=1.0),
    "above threshold, fine": lambda s: s.above_threshold(
        "a", [0, 2000, 5000, 3000], 4000, sensitivity=1000, epsilon=1.0),
    "lead": lambda s: s.lead("a", [0, 30, 7], sensitivity=1, epsilon=1.0, delta=1e-5),
    "draws": lambda s: s.unit_draws(20),
    "order": lambda s: s.random_order(np.zeros((7, 2))),
}


@pytest.mark.parametrize("name", RELEASES)
def test_correct_randomness_becomes_standard_normal(name):
    """False alarm 1e-7 for each test, at fixed seeds. With 300 numbers a test sees distribution
    functions that are 0.17 apart, with 6000 (draws) 0.04."""
    assert kstest(numbers_of(RELEASES[name]), "norm").pvalue > 1e-7


@pytest.mark.parametrize("name", ["above threshold, coarse", "above threshold, fine"])
def test_a_threshold_that_is_not_noisy_is_found(name, monkeypatch):
    """Power: above 0.999. Without noise nearly all answers are the first query above it."""
    from sklearn_dp._privacy._noise import NoiseSource

    monkeypatch.setattr(NoiseSource, "rounded_laplace",
                        lambda self, scale, size=None: np.zeros(size or (), dtype=np.int64))
    assert kstest(numbers_of(RELEASES[name]), "norm").pvalue < 1e-9


def test_a_threshold_of_a_lead_that_is_too_low_is_found():
    good = Event("lead", "a", np.array([9, 0]), 1, 2.0, 1.0, {"threshold": 25, "delta": 1e-5}, 0)
    low = Event("lead", "a", np.array([9, 0]), 1, 2.0, 1.0, {"threshold": 12, "delta": 1e-5}, 0)
    assert list(law_of(good).claims(good)) == []
    assert "do not share" in next(iter(law_of(low).claims(low)))
