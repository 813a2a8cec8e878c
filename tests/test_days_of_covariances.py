"""FriendlyCovariance day by day: accuracy, tails, drift, one unit of one day."""

import numpy as np
import pytest
from day_tools import STREAMS, pairs, problems, recorded, rows_of

from sklearn_dp import FriendlyCovariance
from sklearn_dp.audit import neighboring_pairs

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.UtilityWarning"),
]

SHAPE = np.array([[4.0, 0.0, 0.0], [3.0, 1.0, 0.0], [0.0, 0.1, 0.2]])


def table_of(law, n, seed=0):
    """Rows, their covariance and mean, and bounds."""
    rng = np.random.default_rng(seed)
    if law == "normal":
        return rng.normal(size=(n, 3)) @ SHAPE.T + 5, SHAPE @ SHAPE.T, np.full(3, 5.0), (-40, 50)
    X = rng.exponential(size=(n, 3))
    return X, np.eye(3), np.ones(3), (0.0, 30.0)


def off(model, truth):
    """By how much a covariance is off, in coordinates where the true one is the identity."""
    white = np.linalg.inv(np.linalg.cholesky(truth))
    return np.linalg.norm(white @ model.covariance_ @ white.T - np.eye(len(truth)))


@pytest.mark.parametrize("law", ["normal", "exponential"])
def test_covariances_of_days(law):
    """Days of which hardly one shows its covariance make one that is near that of all rows."""
    for seed in range(3):
        X, truth, mean, bounds = table_of(law, 12_000, seed)
        model = FriendlyCovariance(bounds=bounds, random_state=seed)
        errors = []
        for rows in np.array_split(X, 30):
            errors.append(off(model.partial_fit(rows), truth))
        alone = off(FriendlyCovariance(bounds=bounds, random_state=seed).fit(X[:400]), truth)
        # A day of exponential columns is as good alone, by their own moments.
        part, most = {"normal": (0.5, 0.2), "exponential": (1.5, 0.9)}[law]
        assert errors[-1] < part * alone and errors[-1] < most
        assert model.days_.number == 30 and abs(model.size_ - 12_000) < 5 * model.size_std_error_
        assert np.all(np.abs(model.location_ - mean) < 5 * model.location_std_error_)
        assert np.all(np.abs(model.covariance_ - truth) < 5 * model.covariance_std_error_)
        assert np.all(model.location_std_error_ < 0.2 * np.sqrt(np.diag(truth)))
        assert model.trustworthy_ or law == "exponential"


def test_a_fit_before_days_may_be_left_out():
    rng = np.random.default_rng(0)
    model = FriendlyCovariance(bounds=10.0, random_state=0).fit(rng.normal(size=(20, 2)))
    model.partial_fit(rng.normal(size=(3000, 2)))
    assert model.messages_[0].code == "days_left_out" and model.status_ == "caution"
    assert "left out" not in str(model.fit(rng.normal(size=(3000, 2))).messages_)


@pytest.mark.slow
def test_covariances_that_drift_are_followed():
    rng = np.random.default_rng(0)
    models = [FriendlyCovariance(bounds=60.0, random_state=0) for _ in range(2)]
    for day in range(40):
        rows = rng.normal(size=(1000, 2)) * [1 + 0.1 * day, 1.0] + [0.2 * day, 0.0]
        for model, half_life in zip(models, (None, 4.0), strict=True):
            model.partial_fit(rows, half_life=half_life)
    all_days, lately = models
    # About 4.3 lately.
    assert abs(np.sqrt(lately.covariance_[0, 0]) - 4.3) < 0.7
    assert abs(lately.location_[0] - 7.8) < 2.2 < abs(all_days.location_[0] - 7.8)
    assert abs(lately.covariance_[1, 1] - 1) < 0.15 and lately.size_ < 8000


@pytest.mark.quick("options0", "options3")
@pytest.mark.parametrize(
    "options", [{}, {"assume_centered": True}, {"max_weight": 2.0}, {"bounds": (0.0, [9.0] * 3)}]
)
def test_a_unit_moves_one_day_of_covariances(options):
    estimator = FriendlyCovariance(**{"epsilon": 8.0, "bounds": 1.0, **options})
    days = [rows_of(day, 40) for day in (0, 1, 2)]
    recording = recorded(estimator, days)
    for day in range(3):
        for pair in neighboring_pairs(days[day], day, kinds=["far", "remove", "zero"]):
            assert problems(estimator, days, recording, day, pair) == []


def long_tails(seed):
    """Days of rows whose tails stand out, so that fourth powers are released; and neighbors."""
    rng = np.random.default_rng(seed)
    days = [rng.lognormal(0, 0.8, size=(400, 3)) for _ in range(3)]
    for day, rows in enumerate(days):
        for pair in neighboring_pairs(rows, seed + day):
            yield days, day, pair


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(28))
def test_a_thousand_units_of_covariances(seed):
    options, tails = list(STREAMS.values())[seed % len(STREAMS)], seed % 2
    estimator = FriendlyCovariance(epsilon=[0.5, 40.0][tails], bounds=[1.0, 30.0][tails])
    recording, released = None, set()
    for days, day, pair in (long_tails if tails else pairs)(100 * seed):
        recording = recording or recorded(estimator, days, **options)
        assert problems(estimator, days, recording, day, pair, **options) == []
    for event in recording[2][-1]:
        released.add((event.entry, np.size(event.value)))
    assert not tails or ("component moments", 6 + 3) in released


def test_covariances_that_have_no_days_say_so():
    for options, words in (
        ({}, "without bounds"),
        ({"bounds": 1.0, "method": "gram"}, "with method='gram'"),
        ({"bounds": 1.0, "method": "friendly_core"}, "with method='friendly_core'"),
    ):
        with pytest.raises(AttributeError, match=f"has no partial_fit {words}"):
            FriendlyCovariance(**options).partial_fit  # noqa: B018
