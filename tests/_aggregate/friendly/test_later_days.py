"""Means of days in public bounds: sums of all days, about the newest mean."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from day_tools import problems, recorded, rows_of

from sklearn_dp import FriendlyMean
from sklearn_dp._aggregate.friendly import later_days
from sklearn_dp.audit import neighboring_pairs

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)


def stream(make, bounds, days, seed, **options):
    rng, model = np.random.default_rng(seed), FriendlyMean(bounds=bounds, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(days):
            model.partial_fit(make(rng), **options)
    return model


@pytest.mark.slow
@pytest.mark.parametrize("bounds, options", [(12.0, {}), ((-5.0, 5.0), {"n_days": 4})])
def test_days_of_few_rows_add_up(bounds, options):
    """Ninety days of 222 rows: one day shows neither the mean nor the radius of the rows."""
    models = [
        stream(lambda r: r.normal(0.7, size=(222, 4)), bounds, 90, s, **options) for s in (0, 1)
    ]
    errors = np.array([model.mean_ - 0.7 for model in models])
    said = np.array([model.mean_std_error_ for model in models])
    # Of all columns together; in six pairs of streams .11 +- .05 and .02 +- .01.
    assert np.linalg.norm(errors, axis=1).max() < (0.25 if options else 0.045)
    assert (np.abs(errors) < 5 * said).all()
    assert options or all(model.trustworthy_ for model in models)


@pytest.mark.slow
def test_errors_of_skewed_days_hold_the_mean():
    """Days averaged by their own noisy precisions missed it by three errors, with "ok"."""
    models = [stream(lambda r: r.exponential(size=(50, 4)), (0.0, 30.0), 30, s) for s in range(6)]
    z = [(model.mean_ - 1.0) / model.mean_std_error_ for model in models]
    assert np.sqrt(np.mean(np.square(z))) < 2.0  # 24 numbers: 1e-6 or so, if errors are true
    assert not any(model.trustworthy_ for model in models)


@pytest.mark.parametrize("bounds", [2.0, (-1.0, 1.0)])
@pytest.mark.parametrize("options", [{}, {"n_days": 2}, {"half_life": 2.0}])
def test_a_unit_moves_one_day(bounds, options):
    estimator, days = (
        FriendlyMean(epsilon=8.0, bounds=bounds),
        [rows_of(day, 40) for day in range(3)],
    )
    recording = recorded(estimator, days, **options)
    for day in range(3):
        for pair in neighboring_pairs(days[day], day, kinds=["far", "remove", "zero"]):
            assert problems(estimator, days, recording, day, pair, **options) == []


def test_a_later_day_that_is_not_clipped_is_seen(monkeypatch):
    original = later_days.released_sums

    def too_short(session, entry, rows, candidate, spending):
        monkeypatch.setattr("sklearn_dp._queries.ball_moments.clip_integer_rows", lambda x, *_: x)
        candidate = replace(candidate, clip=candidate.clip / 4)
        return original(session, entry, rows, candidate, spending)

    estimator, days = FriendlyMean(epsilon=8.0, bounds=2.0), [rows_of(day, 40) for day in range(2)]
    monkeypatch.setattr(later_days, "released_sums", too_short)
    recording = recorded(estimator, days)
    pairs = neighboring_pairs(days[1], 1, kinds=["far", "remove"])
    assert any(problems(estimator, days, recording, 1, pair) for pair in pairs)
