"""The replay audit accepts a correct estimator, is tight, and sees what is wrong."""

import pytest

from sklearn_dp._status import Message, Status
from sklearn_dp.audit import neighboring_pairs, replay_audit


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


def test_a_fit_that_fails_is_a_violation(toy, points, after_fit):
    after_fit(lambda self, X, session: 1 / 0)
    assert "ZeroDivisionError" in replay_audit(toy, points).violations[0]


ODD = Status([Message("odd", "odd", severity="part")])


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("pickle", lambda self: setattr(self, "extra_", 1)),
        ("warnings", lambda self: setattr(self, "messages_", ODD)),
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
