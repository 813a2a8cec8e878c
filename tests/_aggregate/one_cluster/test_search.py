"""The search for a small ball: replay audits of every method, and mutants."""

from types import SimpleNamespace

import numpy as np
import pytest

from sklearn_dp import DPOneCluster, DPOneClusterKMeans, DPOutlierScreen
from sklearn_dp._aggregate.one_cluster import (
    balls as _balls,
)
from sklearn_dp._aggregate.one_cluster import (
    boxes as _boxes,
)
from sklearn_dp._aggregate.one_cluster import (
    center as _good_center,
)
from sklearn_dp._aggregate.one_cluster import (
    pair_counts as _pair_counts,
)
from sklearn_dp._aggregate.one_cluster import (
    radius as _good_radius,
)
from sklearn_dp._aggregate.one_cluster import (
    search as _one_cluster,
)
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy.mechanisms import histograms
from sklearn_dp.audit import Neighbor, replay_audit
from sklearn_dp.cluster import _dp_one_cluster, _dp_one_cluster_kmeans

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)


def hub(d=6, scale=1.0):
    """Points that are far from each other and near the origin: the worst case of the score."""
    return scale * np.vstack([np.eye(d), -np.eye(d)])


def data_sets():
    rng = np.random.default_rng(0)
    yield hub()
    yield np.vstack([np.tile([[0.3, 0.2, 0.1]], (25, 1)), rng.normal(size=(15, 3))])
    yield np.vstack([0.01 * rng.normal(size=(20, 2)), rng.normal(size=(10, 2))])
    yield rng.normal(size=(20, 12))
    yield np.zeros((1, 2))


SETTINGS = [
    {},
    {"epsilon": 100.0, "n_points": 3, "bounds": 2.0},
    {"epsilon": 1000.0, "n_points": 5, "sample_size": 8},
    *({"epsilon": 100.0, "radius_method": method} for method in _good_radius.RADIUS_METHODS[:3]),
    {"epsilon": 1e4, "radius_method": "rec_concave"},
    {"epsilon": 1e4, "radius_method": "rec_concave", "radius_grid": "linear", "bounds": 4.0},
    {"epsilon": 100.0, "radius_grid": "linear", "bounds": 4.0, "min_radius": 0.05},
    {"epsilon": 100.0, "center_method": "clip"},
    {"epsilon": 100.0, "center_method": "pca"},
    {"epsilon": 100.0, "n_init": 2},
    {"epsilon": 200.0, "center_method": "clip", "n_init": 3},
    {"epsilon": 1.0, "n_points": 5, "sample_size": 8},
    {"epsilon": 1.0, "n_points": 5, "sample_size": 8, "radius_method": "above_threshold"},
    {"epsilon": 1e4, "center_method": "paper", "delta": 0.01},
    {"epsilon": 100.0, "n_points": 0.5},  # boxes for few features, none for many
]


def audited(options, repeats=1, sets=2):
    """Strangers are tried once: what else is shown is the same for all data sets."""
    estimator, total = DPOneCluster(**options), None
    for seed, X in enumerate([*data_sets()][:sets]):
        result = replay_audit(
            estimator, X, random_state=seed, repeats=repeats, strangers=seed == 0 or sets > 2
        )
        if seed == 1:
            groups = np.arange(len(X)) // 2
            result += replay_audit(
                estimator, X, groups=groups, random_state=seed, strangers=sets > 2
            )
        total = result if total is None else total + result
    return total


# Ways that are put together of others in the list; a thousand pairs of each are in `make audit`.
TOGETHER = (
    {"epsilon": 1000.0, "n_points": 5, "sample_size": 8},
    {"epsilon": 1e4, "radius_method": "rec_concave", "radius_grid": "linear", "bounds": 4.0},
    {"epsilon": 200.0, "center_method": "clip", "n_init": 3},
    {"epsilon": 1.0, "n_points": 5, "sample_size": 8, "radius_method": "above_threshold"},
)


@pytest.mark.quick(
    "*clip*", "*binary_search*", "*'n_points': 0.5*", "*above_threshold*", "*pca*", "*sample_size*"
)
@pytest.mark.parametrize("options", [each for each in SETTINGS if each not in TOGETHER], ids=str)
def test_replay(options):
    total = audited(options)
    assert total.violations == []
    assert total.n_pairs - total.n_voided >= 30
    assert all(ratio <= 1 + 1e-12 for ratio in total.ratios.values())


@pytest.mark.slow
@pytest.mark.parametrize("options", SETTINGS, ids=str)
def test_replay_of_a_thousand_pairs(options):
    total = audited(options, repeats=19, sets=5)
    assert total.violations == [] and total.n_pairs - total.n_voided >= 1000


def without_cap(counts, t):
    top = min(t, len(counts))
    return np.sort(counts, axis=0)[len(counts) - top :].sum(axis=0, dtype=np.int64)


def of_the_true_size(original):
    def fit(session, rows, n_points, search, **options):
        n_points = int(max(1, n_points * rows.in_memory.n_rows)) if n_points < 1 else n_points
        return original(session, rows, n_points, search, **options)

    return fit


def aligned_with_the_points(original):
    return lambda points, shift, side: original(
        points, shift - points.min(axis=0, initial=0.0), side
    )


def the_best_shift(original):
    def exponential(self, entry, scores, **options):
        if entry.endswith("shift"):
            return int(np.argmax(scores))
        return original(self, entry, scores, **options)

    return exponential


def without_noise(session, entry, rows, center, radius, rho, **options):
    points = np.concatenate([x for _, x in rows.in_memory.chunks()] or [center[None]])
    return SimpleNamespace(mean=np.rint(points.mean(axis=0)))


class FreshCoins:
    """Which row is in the sample depends on how many there are."""

    def __init__(self, session, tag, sizes, rate):
        self.rate = rate

    def mask(self, part):
        n = part.units.n_rows
        return np.random.default_rng(n).random(n) < self.rate


def of_the_data(session, entry, rows):
    _, axes = np.linalg.eigh(sum(x.T @ x for _, x in rows.in_memory.chunks()))
    session.gaussian(entry, np.zeros(rows.n_features), sensitivity=1.0)
    return np.rint(axes[:, -4:].T * 2.0**20)


def of_all_rows(original):
    def principal(session, entry, rows):
        small = float(np.sqrt(rows.in_memory.squares.max(initial=1.0)))
        rows.limit, before = small, rows.limit
        try:
            return original(session, entry, rows)
        finally:
            rows.limit = before

    return principal


def the_best_start(task, found):
    return max(
        (
            (task.counts([center], np.array([25e12]))[0, 0], center, status)
            for center, _, status in found
        ),
        key=lambda x: x[0],
    )[1:]


def scaled_by_the_data(original):
    def squared(rows, lengths, mine, others):
        rows = np.trunc(rows * (2.0**23 / np.abs(rows).max(initial=1.0)))
        return original(rows, np.einsum("ij,ij->i", rows, rows), mine, others)

    return squared


def twice(original):
    return lambda *args: 2 * original(*args)


def of_all_points(original):
    def heaviest(session, entry, found, rho, delta, replace):
        if not len(found.cells):
            return None
        name = found.cells[found.counts.argmax()].ljust(found.cells.dtype.itemsize, b"\0")
        return np.frombuffer(name, dtype=">i8").astype(np.int64)

    return heaviest


HUB = {"epsilon": 100.0, "n_points": 3, "bounds": 2.0}


SPREAD = {"epsilon": 100.0, "n_points": 0.3, "bounds": 4.0}


MUTANTS = [
    ("score without the cap", _good_radius, "radius_scores", lambda o: without_cap, HUB, hub(6)),
    (
        "score of half the sensitivity",
        _good_radius,
        "_sensitivity",
        lambda o: lambda t: t,
        HUB,
        hub(6),
    ),
    (
        "distances of scaled points",
        _pair_counts,
        "_squared",
        scaled_by_the_data,
        {**HUB, "n_points": 8, "bounds": 50.0},
        np.random.default_rng(1).normal(size=(30, 2)),
    ),
    (
        "fraction of the true n",
        _one_cluster,
        "fit_one_cluster",
        of_the_true_size,
        SPREAD,
        np.random.default_rng(2).normal(size=(30, 2)),
    ),
    (
        "grid drawn after looking",
        _boxes,
        "boxes",
        aligned_with_the_points,
        SPREAD,
        np.random.default_rng(3).normal(size=(30, 2)),
    ),
    (
        "best shift taken for free",
        PrivacySession,
        "exponential",
        the_best_shift,
        SPREAD,
        np.random.default_rng(3).normal(size=(12, 2)),
    ),
    (
        "cell shown without the threshold",
        histograms,
        "stability_threshold",
        lambda o: lambda sigma, delta: 1,
        SPREAD,
        np.random.default_rng(4).normal(size=(30, 2)),
    ),
    (
        "fullest cell taken for free",
        _good_center,
        "heaviest",
        of_all_points,
        SPREAD,
        np.random.default_rng(4).normal(size=(6, 2)),
    ),
    (
        "sum of half the sensitivity",
        _balls,
        "_mean_sensitivity",
        lambda o: lambda radius, d, replace: o(radius / 2, d, replace),
        SPREAD,
        np.random.default_rng(5).normal(size=(30, 2)),
    ),
    (
        "mean without noise",
        _one_cluster,
        "ball_mean",
        lambda o: without_noise,
        SPREAD,
        np.random.default_rng(5).normal(size=(30, 2)),
    ),
    (
        "radius of half the sensitivity",
        _balls,
        "counts_within",
        twice,
        SPREAD,
        np.random.default_rng(6).normal(size=(30, 2)),
    ),
    (
        "axes of the data",
        _good_center,
        "_principal",
        lambda o: of_the_data,
        {**SPREAD, "center_method": "pca"},
        np.random.default_rng(8).normal(size=(30, 3)),
    ),
    (
        "second moment within the data's reach",
        _good_center,
        "_principal",
        of_all_rows,
        {**SPREAD, "center_method": "pca"},
        np.random.default_rng(8).normal(size=(30, 3)),
    ),
    (
        "best start taken for free",
        _one_cluster,
        "_best",
        lambda o: the_best_start,
        {**SPREAD, "n_init": 3},
        np.random.default_rng(11).normal(size=(8, 2)),
    ),
    (
        "sample by fresh coins",
        _one_cluster,
        "coins_at",
        lambda o: FreshCoins,
        {**SPREAD, "sample_size": 20, "n_points": 29},
        1e-3 * np.random.default_rng(7).normal(size=(30, 2)),
    ),
]


def is_killed(monkeypatch, estimator, owner, attribute, change, options, X):
    """Whether neighbors show the mutant in one of two recordings, which is clean without it."""
    pairs = (
        [
            Neighbor(
                "hub",
                np.vstack([X, np.zeros((1, X.shape[1]))]),
                None,
                np.append(np.arange(len(X)), -1),
            )
        ]
        if options is HUB
        else None
    )

    def found(seed):
        audit = replay_audit(
            estimator, X, pairs, random_state=seed, strangers=False, stop_at_first=True
        )
        return audit.violations

    broken = change(getattr(owner, attribute))
    for seed in range(2):
        with monkeypatch.context() as patch:
            patch.setattr(owner, attribute, broken)
            if attribute == "fit_one_cluster":
                for module in (_dp_one_cluster, _dp_one_cluster_kmeans):
                    patch.setattr(module, attribute, broken)
            killed = found(seed)
        if killed:
            assert found(seed) == []
            return True
    return False


each_mutant = pytest.mark.parametrize(
    "name, owner, attribute, change, options, X", MUTANTS, ids=[mutant[0] for mutant in MUTANTS]
)


@pytest.mark.quick(
    but=("best start*", "fullest cell*", "grid drawn*", "sample by*", "second moment*", "fraction*")
)
@each_mutant
def test_mutants_are_killed(monkeypatch, name, owner, attribute, change, options, X):
    assert is_killed(monkeypatch, DPOneCluster(**options), owner, attribute, change, options, X)


@pytest.mark.slow
@each_mutant
@pytest.mark.parametrize(
    "cls, extra",
    [(DPOneClusterKMeans, {"n_clusters": 2}), (DPOutlierScreen, {"center_method": "auto"})],
)
def test_mutants_of_relatives_are_killed(
    monkeypatch, cls, extra, name, owner, attribute, change, options, X
):
    estimator = cls(**{**extra, **options})
    assert is_killed(monkeypatch, estimator, owner, attribute, change, options, X)


@pytest.mark.parametrize("estimator", [DPOneCluster, DPOneClusterKMeans])
def test_no_two_samples_share_their_coins(monkeypatch, estimator):
    """What a choice on a sample gains holds only if its coins are used for nothing else."""
    tags, original = [], PrivacySession.addressed_draws

    def addressed_draws(self, n_units, tag="units"):
        tags.append(tag)
        return original(self, n_units, tag)

    monkeypatch.setattr(PrivacySession, "addressed_draws", addressed_draws)
    monkeypatch.setattr(_one_cluster, "rate_of_boxes", lambda *others: 0.5)
    X = 0.1 * np.random.default_rng(0).normal(size=(300, 2))
    estimator(n_points=100, sample_size=20, epsilon=100.0, random_state=0).fit(X)
    assert len(set(tags)) == len(tags) >= 2


@pytest.mark.parametrize("center", ["grid", "pca", "clip", "paper", "three starts"])
@pytest.mark.parametrize("radius", _good_radius.RADIUS_METHODS)
def test_every_plan_keeps_to_its_target(radius, center):
    for target in ({"epsilon": 0.1}, {"epsilon": 4.0}, {"rho": 0.3}):
        for bounds in (None, 1.0):
            route = {"center_method": center} if center != "three starts" else {"n_init": 3}
            estimator = DPOneCluster(radius_method=radius, bounds=bounds, **route, **target)
            plan = estimator.privacy_plan(30)
            for name, value in target.items():
                assert 0.99 * value <= getattr(plan, name) <= value * (1 + 1e-9)
            assert plan.delta_failure <= 1e-6
