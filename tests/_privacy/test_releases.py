"""What a session can release: each method asks its law, pays, and gives lengths."""

import inspect

import numpy as np
import pytest
from kernel_tools import open_session, sealed_names

from sklearn_dp._costs.plan import PlanEntry, PlanError
from sklearn_dp._privacy._session import PrivacySession, release_cells
from sklearn_dp._privacy._units import Claim, Sealed, SealedCells, SealedNames, UnitFacts
from sklearn_dp._privacy.mechanisms.filters import friendly_core_filter, unit_bernoulli
from sklearn_dp._privacy.mechanisms.pure import choose, first_above, leader, release_laplace
from sklearn_dp._privacy.mechanisms.shares import release_shared
from sklearn_dp._privacy.mechanisms.stability import release_names, stability_threshold

CELLS = np.array([2, 7]), np.array([10**9, 10**9])
SEALED = Sealed(np.array([10**9]), Claim(1.0, l1=1.0), UnitFacts(), "Something")
SEALED_CELLS = SealedCells(CELLS, Claim(1.0), UnitFacts(), "Many", 9, 1)
SEALED_NAMES = SealedNames(CELLS, Claim(1.0), UnitFacts(), "Unlisted")
SEALED_SCORES = Sealed(np.array([0, 10**9]), Claim(1.0), UnitFacts(), "Scores")
CALLS = {
    "release": lambda s: s.release("a", SEALED, rho=0.1),
    "release_laplace": lambda s: release_laplace(s, "a", SEALED, epsilon=0.1),
    "release_shared": lambda s: release_shared(s, "a", SEALED, n_honest=2, given=None, rho=0.1),
    "release_cells": lambda s: release_cells(s, "a", SEALED_CELLS, threshold=10**6, rho=0.1)[1][:2],
    "release_names": lambda s: release_names(s, "a", SEALED_NAMES, rho=0.1, delta=1e-3)[1],
    "choose": lambda s: choose(s, "a", SEALED_SCORES, epsilon=0.1),
    "first_above": lambda s: first_above(s, "a", SEALED_SCORES, 10**6, epsilon=0.1),
    "leader": lambda s: leader(s, "a", SEALED_SCORES, epsilon=0.1, delta=1e-3),
    "gaussian": lambda s: s.gaussian("a", [10**9], sensitivity=1.0, rho=0.1),
    "proportional_noise_psd": None,  # its matrices are those of a test of their own
    "friendly_core_filter": lambda s: friendly_core_filter(
        s, "a", [10**9], sigma=9.0, threshold=10**6, bad=1, sensitivity=1.0, rho=0.1, delta=1e-3
    ),
    "unit_bernoulli": lambda s: unit_bernoulli(
        s, "a", [9], 9, sensitivity=1.0, rho=0.1, delta=1e-3
    ),
}
ELSEWHERE = {
    "release_cells",
    "release_names",
    "choose",
    "first_above",
    "leader",
    "release_laplace",
    "friendly_core_filter",
    "proportional_noise_psd",
    "release_shared",
    "unit_bernoulli",
}
ABOUT = {
    "release",
    "release_laplace",
    "release_shared",
    "release_cells",
    "release_names",
    "gaussian",
}


def test_every_release_is_here():
    methods = inspect.getmembers(PrivacySession, inspect.isfunction)
    public = {
        name
        for name, each in methods
        if {"sealed", "value"} & inspect.signature(each).parameters.keys()
    }
    assert {name for name in public if name[0] != "_"} == CALLS.keys() - ELSEWHERE


@pytest.mark.parametrize("name", [name for name, call in CALLS.items() if call is not None])
def test_a_release_is_paid_for_and_noted_and_an_exhausted_plan_refuses_it(name):
    """Values are so far from any threshold that noise of a few thousand steps changes nothing."""
    entry = PlanEntry("a", "friendly core", 0.5, delta=0.01)
    session = open_session(entry, delta=0.1)
    output = CALLS[name](session)
    if name in ABOUT:
        assert np.allclose(output, 10**9, rtol=1e-4)
    else:
        assert np.asarray(output).item() == 1  # the index of the far one, or True
    assert 0 < session.spent <= 0.5 and len(session.report().releases) == 1
    with pytest.raises(PlanError, match="more often"):
        CALLS[name](session)
    assert len(session.report().releases) == 1


def test_the_threshold_of_a_stability_histogram_is_where_values_begin():
    session = open_session(PlanEntry("a", "stability histogram", 0.5, 1e-9))
    codes, counts = np.arange(2000), np.full(2000, 7)
    _, values = release_names(session, "a", sealed_names(codes, counts), rho=0.5, delta=1e-9)
    assert len(values) and values.min() >= stability_threshold(1.0, 1e-9)
