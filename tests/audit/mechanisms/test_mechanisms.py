"""What the audit knows of each law: the same laws as the kernel, and nothing passes unknown."""

import ast
import importlib
import inspect
import pkgutil

import numpy as np
import pytest
from scipy.stats import kstest

import sklearn_dp._privacy.mechanisms
import sklearn_dp.audit.mechanisms
from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.plan import PlanEntry, PrivacyPlan
from sklearn_dp._privacy._pure_releases import above_threshold, report_leader_if_stable
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._trace import Event, Trace, trace
from sklearn_dp._privacy._unit_draws import random_order, unit_draws
from sklearn_dp.audit import _distinguishers as distinguishers
from sklearn_dp.audit import _epsilon_bounds as epsilon_bounds
from sklearn_dp.audit import _recount
from sklearn_dp.audit._noise_law import _standardized, noise_problems
from sklearn_dp.audit._recount import check_claims, paid
from sklearn_dp.audit._replay import Replay
from sklearn_dp.audit.mechanisms import KINDS, UnknownLawError, law_of

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")
STRANGE = Event("strange", "a", 1, 1.0, 1.0, 0.1, {}, 1)


def public_modules(package):
    return {
        item.name
        for item in pkgutil.iter_modules(package.__path__)
        if not item.name.startswith("_")
    }


def test_kernel_and_audit_name_the_same_laws():
    assert public_modules(sklearn_dp._privacy.mechanisms) == public_modules(
        sklearn_dp.audit.mechanisms
    )


def texts_of(module):
    """All the strings in the source of a module."""
    return {
        node.value
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


@pytest.mark.parametrize("name", sorted(public_modules(sklearn_dp.audit.mechanisms)))
def test_the_audit_of_a_law_knows_the_kinds_that_the_kernel_makes(name):
    """A module of the audit that is not registered passed all tests, but for those of a fit."""
    kernel = importlib.import_module(f"sklearn_dp._privacy.mechanisms.{name}")
    laws = importlib.import_module(f"sklearn_dp.audit.mechanisms.{name}").LAWS
    assert laws and laws.items() <= KINDS.items()
    borrowed = {"gaussian"} if name == "shares" else set()  # the sum of all shares
    assert (texts_of(kernel) & KINDS.keys()) - laws.keys() == borrowed
    # A client's share of noise is drawn where clients are; see `NoiseShares`.
    assert laws.keys() - texts_of(kernel) <= {"share"}


# These end the comparison of likelihoods: decisions that are no release, or without a density here.
NOT_COMPARED = {"bernoulli", "filter", "fit", "lead", "proportional", "step"}


def test_what_costs_something_is_recounted_and_compared():
    """A kind that these tables do not have is taken at its word, or ends the comparison."""
    paid_for = {kind for kind, law in KINDS.items() if law.rho is not None}
    assert paid_for - _recount._COSTS.keys() == _recount.TOLD
    assert not _recount.TOLD & _recount._COSTS.keys()
    assert paid_for - distinguishers._RATIOS.keys() == NOT_COMPARED


def kernel_imports(module):
    """What a module takes from the kernel, at its top or inside functions."""
    return [
        node.module
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.ImportFrom) and "_privacy" in f"{node.module}"
        for _ in node.names
    ] + [
        name.name
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
        if "_privacy" in name.name
    ]


INDEPENDENT = [
    *(
        importlib.import_module(f"sklearn_dp.audit.mechanisms.{item.name}")
        for item in pkgutil.iter_modules(sklearn_dp.audit.mechanisms.__path__)
    ),
    sklearn_dp.audit.mechanisms,
    _recount,
    epsilon_bounds,
]


@pytest.mark.parametrize("module", INDEPENDENT, ids=lambda module: module.__name__)
def test_what_the_audit_knows_does_not_come_from_the_kernel(module):
    """Laws, conversions and totals: an error in a shared function would cancel."""
    assert kernel_imports(module) == []


@pytest.mark.parametrize(
    "look",
    [
        law_of,
        lambda event: check_claims([event], None, None),
        lambda event: paid([event]),
        lambda event: noise_problems([[event]]),
        Replay([STRANGE], np.arange(1)).record,
        Replay([], np.arange(1)).record,
    ],
    ids=["law_of", "claims", "paid", "noise", "replay", "replay of too many"],
)
def test_a_law_unknown_to_the_audit_is_an_error(look):
    """Claims and tests of the noise passed such an event in silence."""
    with pytest.raises(UnknownLawError, match="'strange'"):
        look(STRANGE)


def numbers_of(release, fits=300):
    plan = PrivacyPlan(
        PrivacyBudget(rho=20.0, delta=0.5), (PlanEntry("a", "friendly core", 10.0, 0.2),)
    )
    rng, found = np.random.default_rng(1), []
    for seed in range(fits):
        with trace(Trace()) as recorder:
            release(PrivacySession(plan, random_state=seed))
        found += [_standardized(event, rng) for event in recorder.events if event.kind != "seed"]
    return np.concatenate(found)


RELEASES = {
    "above threshold, coarse": lambda s: above_threshold(
        s, "a", [0, 2, 5, 3], 4, sensitivity=1, epsilon=1.0
    ),
    "above threshold, fine": lambda s: above_threshold(
        s, "a", [0, 2000, 5000, 3000], 4000, sensitivity=1000, epsilon=1.0
    ),
    "lead": lambda s: report_leader_if_stable(
        s, "a", [0, 30, 7], sensitivity=1, epsilon=1.0, delta=1e-5
    ),
    "draws": lambda s: unit_draws(s, 20),
    "order": lambda s: random_order(s, np.zeros((7, 2))),
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

    monkeypatch.setattr(
        NoiseSource,
        "rounded_laplace",
        lambda self, scale, size=None: np.zeros(size or (), dtype=np.int64),
    )
    assert kstest(numbers_of(RELEASES[name]), "norm").pvalue < 1e-9
