"""Checks of the privacy loss: each passes for the toy, and fails for one thing that is broken.

What they find in all estimators is tested with the mutants, in `test_mutants.py`.
"""

import dataclasses

import numpy as np
import pytest
from mutants import MUTANTS

from sklearn_dp import DPKMeans
from sklearn_dp._base import BaseDPEstimator
from sklearn_dp._privacy import _session
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._units import Units
from sklearn_dp.audit import _loss_checks, all_estimators, killer
from sklearn_dp.audit._noise_law import FINGERPRINT_BITS, fingerprint

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)


def test_missing_groups_have_to_be_refused_by_name(toy, monkeypatch):
    _loss_checks.check_missing_groups_are_refused(toy)
    monkeypatch.setattr(BaseDPEstimator, "_units", staticmethod(lambda X, groups: Units(len(X))))
    with pytest.raises(AssertionError, match="None among the groups is not refused"):
        _loss_checks.check_missing_groups_are_refused(toy)


def test_estimators_without_groups_need_not_refuse_them():
    class Plain:
        def fit(self, X):
            raise AssertionError("this is not to be called")

    _loss_checks.check_missing_groups_are_refused(Plain())
    _loss_checks.check_replay_of_hard_groups(Plain())


def test_noise_that_is_always_the_same_is_found(toy, monkeypatch):
    _loss_checks.check_noise_is_fresh(toy)
    original = _session.seed_of
    monkeypatch.setattr(_session, "seed_of", lambda state: original(0 if state is None else state))
    with pytest.raises(AssertionError, match="the same noise again"):
        _loss_checks.check_noise_is_fresh(toy)


def test_a_seed_that_the_report_keeps_quiet_is_found(toy, monkeypatch):
    _loss_checks.check_seeded_noise_is_told(toy)
    original = PrivacySession.report
    monkeypatch.setattr(
        PrivacySession, "report", lambda self: dataclasses.replace(original(self), noise="system")
    )
    with pytest.raises(AssertionError, match="the report's noise source"):
        _loss_checks.check_seeded_noise_is_told(toy)


def test_numpys_global_state_is_left_as_it_was(toy):
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    _loss_checks.check_noise_is_fresh(toy)
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


def test_a_telling_fit_has_enough_bits(toy):
    moderate, X = _loss_checks.telling_fit(toy)
    assert moderate.rho is None and X.shape == (3, 8) and moderate.epsilon == 1.0
    assert fingerprint(moderate, X)[1] >= FINGERPRINT_BITS


def test_methods_that_pay_are_found_and_their_bugs_too():
    """Where no fit runs the code of a method, a mutant of it is reached by the method."""
    found = {name: _loss_checks.paying_methods(cls) for name, cls in all_estimators()}
    assert found["DPKMeans"] == {"private_score": ["max_distance"]} and found["FriendlyMean"] == {}
    bugs = [bug for bug in MUTANTS if bug.killed_by == ("check_replay_of_methods",)]
    assert len(bugs) >= 2
    for bug in bugs:
        assert killer(bug, DPKMeans(2, bounds=4.0)) == "check_replay_of_methods"
