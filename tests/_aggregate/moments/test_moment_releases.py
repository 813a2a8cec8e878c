"""Counts, sums and second moments of whitened rows: exact, and as sensitive as is claimed."""

import numpy as np
import pytest

from sklearn_dp._aggregate.moments import moment_releases
from sklearn_dp._aggregate.moments.ellipsoid import FORMS, WEIGHT_STEPS, Ellipsoid
from sklearn_dp._aggregate.moments.moment_releases import exact_moments
from sklearn_dp._bounds import domain_of
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp._privacy._units import Units
from sklearn_dp._queries.labels import LABELS
from sklearn_dp._rows.rows import Rows
from sklearn_dp._rows.table import ROWS, Part
from sklearn_dp.covariance import FriendlyCovariance

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.UtilityWarning"),
]


def normal(n, d, condition, scale=1.0, shift=0.0, seed=0):
    """Rows of a rotated normal law, and its covariance."""
    rng = np.random.default_rng(seed)
    rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
    scales = scale * np.sqrt(np.geomspace(1, 1 / condition, d))
    X = (rng.normal(size=(n, d)) * scales) @ rotation.T + shift * scale
    return X, (rotation * scales**2) @ rotation.T


def random_components(rng, d, k):
    parts = []
    for _ in range(k):
        axes, scales, _ = np.linalg.svd(rng.normal(size=(d, d)) * 10.0 ** rng.uniform(4, 6))
        center = np.rint(rng.normal(size=d) * 1e6)
        parts.append(Ellipsoid(center, axes, scales, float(d), rng.uniform(1, 50)))
    return parts


def part_of(X, units=None):
    rows = Rows.quantize(X, domain_of(3.0, X.shape[1]))
    return Part(None, units or Units(len(X)), {ROWS: rows})


@pytest.mark.parametrize("form", FORMS)
def test_a_row_is_worth_the_same_whatever_stands_beside_it(form):
    """Exact: the moments of a data set are the sum of the moments of its rows, bit for bit."""
    rng = np.random.default_rng(1)
    parts, X = random_components(rng, 3, 3), rng.normal(size=(60, 3))

    def moments(X):
        return exact_moments(part_of(X), parts, (2.0, 2.0), form)[1]

    whole, single = moments(X), [moments(X[i : i + 1]) for i in range(60)]
    for i in range(3):
        assert np.array_equal(whole[i], np.sum([one[i] for one in single], axis=0))


@pytest.mark.quick("None-full", "groups1-diag")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("groups", [None, np.repeat(np.arange(200), 2)])
def test_sensitivities_hold_and_are_tight(form, groups):
    """Over single units, soft and hard: never above the claim, and up to it."""
    rng = np.random.default_rng(2)
    parts = random_components(rng, 3, 3)
    X = 10.0 ** rng.uniform(-3, 3, size=(400, 1)) * rng.normal(size=(400, 3))
    worst, labels = np.zeros(4), rng.integers(3, size=400)
    for soft in (True, False):
        for unit in range(200):
            pick = slice(2 * unit, 2 * unit + (1 if groups is None else 2))
            units = Units(len(X[pick]), None if groups is None else groups[pick])
            part = part_of(X[pick], units).having(**{LABELS: labels[pick]})
            left, found = exact_moments(part, parts, (1.0, 2.0), form, not soft, True)
            assert LABELS in part.state and LABELS not in left.state
            counts, sums, moments, fourths = found
            claim = moment_releases._moment_sensitivity(3, form, 2.0**30)
            worst = np.maximum(
                worst,
                [
                    counts.sum() / WEIGHT_STEPS,
                    np.linalg.norm(sums) / 2.0**15,
                    np.sqrt(np.sum(np.square(moments / claim))),
                    np.linalg.norm(fourths) / 2.0**30,
                ],
            )
    assert worst.max() <= 1 and worst.min() > 0.95


def test_fourth_powers_without_a_clip_are_found(monkeypatch):
    """The columns of a covariance have ends that are nearer than this clip, so that no audit of one
    can tell."""
    original = moment_releases._fourth_powers
    monkeypatch.setattr(
        moment_releases,
        "_fourth_powers",
        lambda x, ellipsoid, radius, weight: 81 * original(x, ellipsoid, 3 * radius, weight),
    )
    with pytest.raises(AssertionError):
        test_sensitivities_hold_and_are_tight(form="full", groups=None)


def test_noise_is_symmetric_and_the_plan_is_kept():
    X = normal(3000, 4, 5.0)[0]
    recorder = Trace()
    with trace(recorder):
        model = FriendlyCovariance(epsilon=1.0, random_state=0).fit(X)
    paid = sum(event.cost for event in recorder.events)
    assert paid <= model.privacy_plan(4).rho and paid > 0.97 * model.privacy_plan(4).rho
    moments = [event for event in recorder.events if event.entry == "component moments"]
    assert all(event.output.shape == (1, 10) for event in moments) and len(moments) >= 2


def test_weights_of_rows_multiply_those_of_components():
    """By hand: a row of weight 1/4 adds a quarter of what a whole one does."""
    rows = Rows.of(np.array([[2.0, 0.0], [2.0, 0.0]]), 8.0)
    parts = [Ellipsoid.ball(np.zeros(2), 2.0)]
    found = []
    for part in (0.25, 1.0):
        units, _ = Units.weighted(np.array([part, part]), 1.0)
        found.append(exact_moments(Part(None, units, {ROWS: rows}), parts, (2.0, 2.0), "diag")[1])
    quarter, whole = found
    assert whole[0].tolist() == [2 * WEIGHT_STEPS] and quarter[0].tolist() == [WEIGHT_STEPS // 2]
    for i in (1, 2):
        assert whole[i].any() and (4 * quarter[i] == whole[i]).all()
