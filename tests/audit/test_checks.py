"""check_dp_estimator as a function; what its checks catch is tested with the mutants."""

import pytest

from sklearn_dp.audit import check_dp_estimator
from sklearn_dp.audit._checks import CHECKS


def test_checks_can_be_generated(toy):
    pairs = list(check_dp_estimator(toy, generate_only=True))
    assert [check for _, check in pairs] == list(CHECKS)
    assert all(check.__name__.startswith("check_") and check.__doc__ for check in CHECKS)
    assert all(estimator is not toy for estimator, _ in pairs)


def test_the_first_failure_is_raised(make_toy, after_fit):
    def spoil(self, X, session):
        self.mean_ = self.mean_ * float("nan")

    after_fit(spoil)
    with pytest.raises(AssertionError):
        check_dp_estimator(make_toy())
    messages = failures(make_toy())
    assert any("mean_ is not finite" in text for text in messages)


def failures(estimator):
    messages = []
    for instance, check in check_dp_estimator(estimator, generate_only=True):
        try:
            check(instance)
        except AssertionError as error:
            messages.append(str(error))
    return messages


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("bounds", 1.0, "changes parameters"),
        ("status_", "", "must be words"),
    ],
)
def test_what_breaks_the_contract_is_told(make_toy, after_fit, name, value, message):
    after_fit(lambda self, X, session: setattr(self, name, value))
    messages = failures(make_toy())
    assert any(message in text for text in messages), messages


def test_only_labels_may_be_kept_back(make_toy, monkeypatch):
    monkeypatch.setattr(make_toy, "_not_released", ("labels_", "mean_"))
    assert any("only labels_" in text for text in failures(make_toy()))
