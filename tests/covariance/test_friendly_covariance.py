"""FriendlyCovariance, and the whitened moments under it."""

import pickle
import warnings

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from sklearn_dp._aggregate.moments import covariance_core as _covariance_core
from sklearn_dp._aggregate.moments import estimates, moment_releases, rounds
from sklearn_dp._aggregate.moments.ellipsoid import (
    FORMS,
    WEIGHT_STEPS,
    Ellipsoid,
    component_weights,
    normal_quantile,
)
from sklearn_dp._aggregate.moments.moment_releases import exact_moments
from sklearn_dp._aggregate.shared.rows import Rows
from sklearn_dp._privacy._domain import Domain
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp._privacy._units import Units
from sklearn_dp.audit import replay_audit
from sklearn_dp.covariance import FriendlyCovariance, _friendly_covariance
from sklearn_dp.exceptions import UtilityWarning

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


def error(covariance, estimate):
    """|S^-1/2 Shat S^-1/2 - I|_F."""
    inverse = np.linalg.inv(np.linalg.cholesky(covariance))
    return np.linalg.norm(inverse @ estimate @ inverse.T - np.eye(len(covariance)))


@pytest.mark.parametrize("condition", [1.0, 1e2, 1e6])
@pytest.mark.parametrize("scale, shift", [(1e-3, 0.0), (1e6, 0.0), (1.0, 1000.0)])
def test_any_scale_place_and_condition_without_bounds(condition, scale, shift):
    """The issue's target is 0.126 in the mean; 0.105 is the error without privacy."""
    X, truth = normal(10000, 10, condition, scale, shift)
    model = FriendlyCovariance(rho=0.5, random_state=0).fit(X)
    plain = error(truth, np.cov(X.T))
    assert model.status_ == "ok"
    assert error(truth, model.covariance_) < 1.15 * plain
    shift = model.location_ - X.mean(axis=0)
    assert shift @ np.linalg.solve(truth, shift) < 0.03**2 * 10


def test_no_bias_from_the_tails():
    """Rows far out in the widest direction are not cut before they are whitened."""
    ratios = []
    for seed in range(6):
        X, truth = normal(10000, 2, 1e6, seed=seed)
        model = FriendlyCovariance(rho=0.5, random_state=seed).fit(X)
        ratios.append(error(truth, model.covariance_) / error(truth, np.cov(X.T)))
    assert np.median(ratios) < 1.3


def test_many_rows_of_a_needle():
    """Little noise whitens strongly: what clipping took must not be added back twice."""
    X, truth = normal(50000, 2, 1e6)
    model = FriendlyCovariance(rho=0.5, random_state=0).fit(X)
    assert model.status_ == "ok" and error(truth, model.covariance_) < 0.05
    assert len(model.privacy_report_.releases) < 30


def test_methods_of_scikit_learns_covariances():
    X, truth = normal(5000, 3, 10.0, shift=3.0)
    model = FriendlyCovariance(epsilon=2.0, random_state=0).fit(X)
    law = multivariate_normal(model.location_, model.covariance_)
    assert model.score(X) == pytest.approx(law.logpdf(X).mean())
    assert np.allclose(model.get_precision() @ model.covariance_, np.eye(3), atol=1e-9)
    assert 2.8 < model.mahalanobis(X).mean() < 3.2
    assert np.array_equal(model.covariance_, model.covariance_.T)
    assert model.size_ == pytest.approx(5000, rel=0.05)
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.mahalanobis(X), model.mahalanobis(X))


def test_centered_data_and_the_classical_route():
    X, truth = normal(20000, 4, 4.0)
    for options in (
        {"assume_centered": True},
        {"method": "gram", "bounds": 5.0},
        {"bounds": 100.0},
        {"assume_centered": True, "bounds": (-4.0, 9.0)},
    ):
        model = FriendlyCovariance(epsilon=2.0, random_state=0, **options).fit(X)
        assert error(truth, model.covariance_) < 0.15, options
        assert np.linalg.norm(model.location_) < 0.1
        centered = options.get("assume_centered", False)
        assert (model.location_ == 0).all() == centered


def test_groups_share_a_weight():
    """A group of half of the rows weighs as much as any other group."""
    X, truth = normal(8000, 2, 3.0)
    X[:4000] *= 5
    groups = np.maximum(np.arange(8000), 3999)
    model = FriendlyCovariance(epsilon=4.0, random_state=0).fit(X, groups=groups)
    assert error(truth, model.covariance_) < 0.3
    assert model.privacy_report_.unit == "group"


@pytest.mark.parametrize(
    "X",
    [
        np.zeros((500, 3)),
        np.ones((1, 2)),
        np.outer(np.arange(2000.0), [1.0, 2.0, -1.0]),
        np.random.default_rng(0).standard_t(1.0, size=(3000, 3)),
        np.full((50, 2), 1e300) * np.array([1, -1]),
    ],
    ids=["zero", "one", "line", "cauchy", "huge"],
)
def test_an_answer_for_everything(X):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = FriendlyCovariance(epsilon=1.0, random_state=0).fit(X)
    assert np.isfinite(model.covariance_).all() and np.isfinite(model.location_).all()
    assert np.linalg.eigvalsh(model.covariance_).min() > 0


def test_a_few_rows_are_told_to_be_too_few():
    with pytest.warns(UtilityWarning, match="few|bound"):
        FriendlyCovariance(epsilon=0.5, random_state=0).fit(normal(200, 10, 1.0)[0])


@pytest.mark.parametrize(
    "options, error, match",
    [
        ({"method": "gram"}, ValueError, "bounds"),
        ({"method": "best"}, ValueError, "method"),
        ({"assume_centered": 1}, TypeError, "assume_centered"),
        ({"bounds": -1}, ValueError, "bounds"),
    ],
)
def test_bad_parameters(options, error, match):
    with pytest.raises(error, match=match):
        FriendlyCovariance(**options).fit(np.zeros((5, 2)))


# -- exact statistics ---------------------------------------------------------------------------


def random_components(rng, d, k):
    parts = []
    for _ in range(k):
        axes, scales, _ = np.linalg.svd(rng.normal(size=(d, d)) * 10.0 ** rng.uniform(4, 6))
        center = np.rint(rng.normal(size=d) * 1e6)
        parts.append(Ellipsoid(center, axes, scales, float(d), rng.uniform(1, 50)))
    return parts


def rows_of(X):
    return Rows.quantise(X, Domain.from_bounds(3.0, X.shape[1]))


def test_weights_are_responsibilities_and_sum_to_at_most_one():
    rng = np.random.default_rng(0)
    parts = random_components(rng, 3, 4)
    X = np.vstack([rng.normal(size=(2000, 3)), 1e9 * rng.normal(size=(50, 3)), np.zeros((1, 3))])
    rows = rows_of(X)
    weights = component_weights(rows, parts)
    total = weights.astype(np.int64).sum(axis=1)
    assert total.max() <= WEIGHT_STEPS and total.min() > 0.99 * WEIGHT_STEPS
    ((_, x),) = rows.chunks(4)
    density = np.stack(
        [p.weight * multivariate_normal(p.center, p.factor @ p.factor.T).pdf(x) for p in parts],
        axis=1,
    )[:2000]
    seen = density.sum(axis=1) > 0
    expected = density[seen] / density[seen].sum(axis=1, keepdims=True)
    assert np.abs(weights[:2000][seen] / WEIGHT_STEPS - expected).max() < 0.01
    hard = component_weights(rows, parts, soft=False)
    assert set(np.unique(hard)) == {0, WEIGHT_STEPS} and (hard.sum(axis=1) == WEIGHT_STEPS).all()
    assert (hard.argmax(axis=1)[:2000][seen] == expected.argmax(axis=1)).mean() > 0.999


@pytest.mark.parametrize("form", FORMS)
def test_a_row_is_worth_the_same_whatever_stands_beside_it(form):
    """Exact: the moments of a data set are the sum of the moments of its rows, bit for bit."""
    rng = np.random.default_rng(1)
    parts, X = random_components(rng, 3, 3), rng.normal(size=(60, 3))

    def moments(X):
        rows = rows_of(X)
        weights = component_weights(rows, parts)
        return exact_moments(rows, Units(len(X)), parts, weights, 2.0, form)

    whole, single = moments(X), [moments(X[i : i + 1]) for i in range(60)]
    for i in range(3):
        assert np.array_equal(whole[i], np.sum([one[i] for one in single], axis=0))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("groups", [None, np.repeat(np.arange(200), 2)])
def test_sensitivities_hold_and_are_tight(form, groups):
    """Over single units, soft and hard: never above the claim, and up to it."""
    rng = np.random.default_rng(2)
    parts = random_components(rng, 3, 3)
    X = 10.0 ** rng.uniform(-3, 3, size=(400, 1)) * rng.normal(size=(400, 3))
    worst = np.zeros(3)
    for soft in (True, False):
        for unit in range(200):
            pick = slice(2 * unit, 2 * unit + (1 if groups is None else 2))
            rows = rows_of(X[pick])
            units = Units(rows.n_rows, None if groups is None else groups[pick])
            weights = component_weights(rows, parts, soft=soft)
            counts, sums, moments = exact_moments(rows, units, parts, weights, 2.0, form)
            claim = moment_releases._moment_sensitivity(3, form, 2.0**30)
            worst = np.maximum(
                worst,
                [
                    counts.sum() / WEIGHT_STEPS,
                    np.linalg.norm(sums) / 2.0**15,
                    np.sqrt(np.sum(np.square(moments / claim))),
                ],
            )
    assert worst.max() <= 1 and worst.min() > 0.95


def test_the_errors_are_those_of_theory():
    """separated_gaussians:C7: the error over the oracle formula, in the median of 9 fits, lies in
    [0.7, 1.25].
    """
    for d, n, rho in ((2, 5000, 0.02), (5, 10000, 0.02), (5, 60000, 0.02)):
        ratios = []
        for seed in range(9):
            X, truth = normal(n, d, 20.0, seed=seed)
            model = FriendlyCovariance(rho=rho, random_state=seed).fit(X)
            square = normal_quantile(0.9, d)
            oracle = d * (d + 1) * (1 / n + square**2 / (4 * 0.6 * rho * n**2))
            ratios.append(error(truth, model.covariance_) / oracle**0.5)
        assert 0.7 < np.median(ratios) < 1.25


# -- audits and mutants -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [{}, {"assume_centered": True}, {"bounds": 5.0}, {"method": "gram", "bounds": (-2.0, 4.0)}],
)
@pytest.mark.parametrize("groups", [None, np.arange(90) // 2])
def test_replay_audit(options, groups):
    X = normal(90, 3, 100.0, shift=1.0)[0]
    result = replay_audit(FriendlyCovariance(epsilon=20.0, **options), X, groups=groups, repeats=6)
    assert result.passed and result.n_pairs >= 72, result
    assert result.ratios["component moments"] > 0.9


CORE = {"method": "friendly_core", "n_blocks": 60, "epsilon": 300.0}


@pytest.mark.parametrize("groups", [None, np.arange(1800) // 2])
@pytest.mark.parametrize("centered", [False, True])
def test_replay_audit_of_the_friendly_core(centered, groups):
    X = normal(1800, 2, 100.0, shift=0.0 if centered else 1.0)[0]
    estimator = FriendlyCovariance(assume_centered=centered, **CORE)
    result = replay_audit(estimator, X, groups=groups, repeats=3)
    assert result.passed and result.n_pairs >= 36, result
    assert result.ratios["covariance core"] == 1.0
    assert 0 < result.ratios["core covariance"] <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": 20.0},
        {"epsilon": 20.0, "assume_centered": True},
        {"epsilon": 20.0, "method": "gram", "bounds": (-2.0, 4.0)},
        CORE,
    ],
    ids=["whiten", "centered", "gram", "core"],
)
def test_five_hundred_neighbours(options):
    X = normal(1800, 2, 100.0)[0] if options is CORE else normal(90, 3, 100.0, shift=1.0)[0]
    pairs = 0
    for seed in range(100):
        result = replay_audit(FriendlyCovariance(**options), X, repeats=12, random_state=seed)
        assert result.passed, result
        pairs += result.n_pairs
        if pairs >= 500:
            return
    pytest.fail("no five hundred pairs")


class _Unclipped:
    """A grid that forgets to clip."""

    def __init__(self, unit):
        pass

    @staticmethod
    def quantise(X, radius):
        return np.trunc(X)


def _clipped_before_whitening(original):
    """The clip at the wrong norm: whitened rows may then have any length."""

    def moments(rows, units, parts, weights, radius, form):
        white = [Ellipsoid(p.center, p.axes, p.scales / 3, p.square, p.weight) for p in parts]
        counts, sums, moments = original(rows, units, white, weights, 3 * radius, form)
        return counts, 3 * sums, 9 * moments

    return moments


def _not_isometric(original):
    return lambda d, form, square: original(d, form, square) * 0.7


def _order_of_rows(original):
    def weights(rows, parts, **options):
        out = original(rows, parts, **options)
        out[0] *= 2
        return out

    return weights


def _repair_reads_data(original):
    def moments(rows, units, parts, *rest):
        estimates.NARROWEST = 1e6 * rows.n_rows
        return original(rows, units, parts, *rest)

    return moments


MUTATIONS = {
    "clip forgotten": (moment_releases, "Grid", lambda original: _Unclipped),
    "clip at the wrong norm": (rounds, "exact_moments", _clipped_before_whitening),
    "noise too small": (moment_releases, "_moment_sensitivity", _not_isometric),
    "a row of weight two": (_friendly_covariance, "component_weights", _order_of_rows),
    "repair that reads the data": (rounds, "exact_moments", _repair_reads_data),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_mutants_are_killed(name, monkeypatch):
    module, attribute, change = MUTATIONS[name]
    monkeypatch.setattr(estimates, "NARROWEST", estimates.NARROWEST)
    monkeypatch.setattr(module, attribute, change(getattr(module, attribute)))
    X = normal(90, 3, 100.0, shift=1.0)[0]
    assert replay_audit(FriendlyCovariance(epsilon=20.0), X, repeats=2).violations


CORE_MUTATIONS = {
    "half the noise": ("least_eta", lambda original: lambda *given: original(*given) / 2),
    "size of the core without noise": (
        "core_size",
        lambda original: lambda session, entry, size, **shares: float(size),
    ),
    "neighbours as if a block came or went": (
        "core_fixed_size",
        lambda original: (
            lambda session, entry, counts, t, *, rho, delta: original(
                session, entry, 2 * counts, t, rho=rho, delta=delta
            )
        ),
    ),
    "blocks that depend on the number of rows": (
        "block_matrices",
        lambda original: (
            lambda rows, units, blocks, t, **options: original(
                rows,
                units,
                (blocks + (np.arange(len(blocks)) < rows.n_rows % 50)) % t,
                t,
                **options,
            )
        ),
    ),
}


@pytest.mark.parametrize("name", CORE_MUTATIONS)
def test_mutants_of_the_core_are_killed(name, monkeypatch):
    attribute, change = CORE_MUTATIONS[name]
    monkeypatch.setattr(_covariance_core, attribute, change(getattr(_covariance_core, attribute)))
    X = normal(1800, 2, 100.0, shift=1.0)[0]
    result = replay_audit(FriendlyCovariance(**CORE), X, repeats=2)
    assert result.violations


def test_a_stop_on_true_values_is_killed(monkeypatch):
    original = FriendlyCovariance._fit

    def fit(self, X, units, session, progress):
        numbers = {"least_rounds": 1 + len(X) % 2, "most_rounds": 1 + len(X) % 2}
        monkeypatch.setattr(
            rounds.refine, "__kwdefaults__", {**rounds.refine.__kwdefaults__, **numbers}
        )
        original(self, X, units, session, progress)

    monkeypatch.setattr(FriendlyCovariance, "_fit", fit)
    X = normal(90, 3, 100.0)[0]
    assert replay_audit(FriendlyCovariance(epsilon=20.0), X).violations


def test_noise_is_symmetric_and_the_plan_is_kept():
    X = normal(3000, 4, 5.0)[0]
    recorder = Trace()
    with trace(recorder):
        model = FriendlyCovariance(epsilon=1.0, random_state=0).fit(X)
    paid = sum(event.cost for event in recorder.events)
    assert paid <= model.privacy_plan(4).rho and paid > 0.97 * model.privacy_plan(4).rho
    moments = [event for event in recorder.events if event.entry == "component moments"]
    assert all(event.output.shape == (1, 10) for event in moments) and len(moments) >= 2
