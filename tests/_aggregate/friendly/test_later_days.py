"""Means of days in public bounds: sums of all days, about the newest mean."""

from dataclasses import replace

import pytest
from day_tools import problems, recorded, rows_of

from sklearn_dp import FriendlyMean
from sklearn_dp._aggregate.friendly import later_days
from sklearn_dp.audit import neighboring_pairs


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
