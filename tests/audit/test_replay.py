"""The replay audit accepts a correct estimator, is tight, and sees what is wrong."""

import numpy as np
import pytest

from sklearn_dp.audit import neighboring_pairs, replay_audit
from sklearn_dp.audit._replay import record


@pytest.fixture(params=[{}, {"bounds": 1.5}, {"bounds": (-1, [1, 2, 3])}, {"rho": 0.3}], ids=str)
def correct(request, make_toy):
    return make_toy(**request.param)


def test_a_correct_estimator_passes_and_its_claims_are_tight(correct, points):
    result = replay_audit(correct, points, recordings=2)
    assert result.passed and result.n_pairs == 24 and result.n_voided == 0
    assert all(0.99 < ratio <= 1 + 1e-12 for ratio in result.ratios.values())
    assert 0.9 * sum(result.loss.values()) < result.worst_loss <= result.rho


@pytest.mark.parametrize("n", [0, 1, 2])
def test_small_data_sets_have_neighbors_too(toy, points, n):
    assert replay_audit(toy, points[:n]).passed


def test_groups_are_units(toy, points):
    groups = np.arange(len(points)) // 3
    result = replay_audit(toy, points, groups=groups, html=True)
    assert result.passed and max(result.ratios.values()) > 0.99
    # The same neighbors, but audited as if each row were a unit: more than one unit moves.
    pairs = [
        type(pair)(pair.kind, pair.X, None, np.full(len(pair.X), -1))
        for pair in neighboring_pairs(points, 0, kinds=["remove"], groups=groups)
    ]
    assert not replay_audit(toy, points, pairs).passed


def test_neighbors_can_be_given(toy, points):
    pairs = list(neighboring_pairs(points, 0, kinds=["far", "remove"]))
    assert replay_audit(toy, points, pairs, recordings=3).n_pairs == 6


def test_a_ledger_of_the_user_is_not_charged(make_toy, points):
    assert replay_audit(make_toy(ledger="/no/such/file"), points).passed


def test_a_fit_that_fails_is_a_violation(toy, points, after_fit):
    after_fit(lambda self, X, session: 1 / 0)
    assert "ZeroDivisionError" in replay_audit(toy, points).violations[0]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("pickle", lambda self: setattr(self, "extra_", 1)),
        ("warnings", lambda self: setattr(self, "status_", "odd")),
        ("error", lambda self: self.no_such_attribute),
        ("repr", lambda self: setattr(self, "delta", 0.5)),
    ],
)
def test_what_only_a_neighbor_shows_is_a_violation(toy, points, after_fit, name, change):
    pairs = list(neighboring_pairs(points, 0, kinds=["random"]))
    assert replay_audit(toy, points, pairs).passed
    after_fit(lambda self, X, session: change(self) if len(X) == 31 else None)
    violations = replay_audit(toy, points, pairs).violations
    assert any(f"{name} differs" in text for text in violations)


def test_a_release_that_is_not_always_made_is_a_violation(
    toy, make_toy, points, after_fit, monkeypatch
):
    monkeypatch.setitem(make_toy._SHARES, "extra", 1e-3)
    after_fit(
        lambda self, X, session: (
            session.gaussian("extra", 0, sensitivity=1.0) if len(X) >= 30 else None
        )
    )
    found = replay_audit(toy, points).violations
    assert any("extra: not released" in text for text in found)
    found = replay_audit(toy, points[:29]).violations
    assert any("extra: a release that the neighbor does not make" in text for text in found)


def test_it_may_stop_at_the_first_violation(toy, points, after_fit):
    """Which is the same one, and without violations all pairs are compared."""
    assert replay_audit(toy, points, recordings=2, stop_at_first=True).n_pairs == 24
    after_fit(lambda self, X, session: setattr(self, "extra_", len(X)))
    found, first = (
        replay_audit(toy, points, recordings=2, stop_at_first=stop) for stop in (False, True)
    )
    assert (found.n_pairs, first.n_pairs) == (24, 1)
    assert first.violations == found.violations[: len(first.violations)] != []


def test_recordings_tell_what_is_wrong_with_one_fit(toy, points):
    good = record(toy, points)
    assert good.problems == [] and good.outcome.error is None and len(good.events) == 5
