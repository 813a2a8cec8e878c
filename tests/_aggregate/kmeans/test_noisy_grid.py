"""K-means of one noisy histogram, for few rows on a line or in a plane."""

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from benchmarks.certify.recount import recount_problems
from sklearn_dp import DPKMeans, PrivacyBudget, PrivacyLedger
from sklearn_dp._aggregate.kmeans.noisy_grid import _divided
from sklearn_dp.audit import replay_audit
from sklearn_dp.audit._recount import check_claims
from sklearn_dp.audit._replay import record
from sklearn_dp.exceptions import BudgetExceededError

BOX = ([0.0, -1.0], [4.0, 1.0])


def blobs(n, seed=0):
    """Three clusters in the plane; the second has half of the rows."""
    rng = np.random.default_rng(seed)
    centers = np.array([[0.5, 0.0], [2.0, 0.5], [3.5, -0.5]])
    return centers[rng.choice(3, n, p=(0.25, 0.5, 0.25))] + 0.1 * rng.normal(size=(n, 2))


def fitted(X, **options):
    return DPKMeans(3, **{"bounds": BOX, "random_state": 0, **options}).fit(X)


def laws(model):
    return [(line["release"], line["mechanism"]) for line in model.privacy_report_.releases]


GRID = [("size", "laplace"), ("grid", "laplace")]


@pytest.mark.parametrize("features", [1, 2])
def test_no_failure_is_needed_on_a_line_and_in_a_plane(features):
    ledger = PrivacyLedger(PrivacyBudget(epsilon=2.0, delta=1e-5))
    box = tuple(each[:features] for each in BOX)
    model = fitted(blobs(2000)[:, :features], delta=0, bounds=box, ledger=ledger)
    report = model.privacy_report_
    assert (report.epsilon, report.delta) == (1.0, 0.0) and laws(model) == GRID
    assert (ledger.entries[0].epsilon, ledger.entries[0].delta) == (1.0, 0.0)
    order = np.argsort(model.cluster_centers_[:, 0])
    off = np.abs(model.cluster_centers_[order, 0] - [0.5, 2.0, 3.5])
    assert (off < 0.05).all() and model.status_ == "ok"
    assert (off < 5 * model.cluster_centers_std_error_[order, 0]).all()


@pytest.mark.parametrize(
    "change",
    [
        {"bounds": None},
        {"n_clusters": "auto"},
        {"n_clusters": (1, 4)},
        {"init": np.zeros((3, 2))},
        {"metric": "cosine", "bounds": None},
        {"rho": 0.1},
    ],
)
def test_delta_0_is_refused_where_no_grid_serves(change):
    with pytest.raises(ValueError, match="delta must be greater than 0"):
        DPKMeans(**{"n_clusters": 3, "delta": 0, "bounds": BOX, **change}).fit(blobs(50))
    with pytest.raises(ValueError, match="delta must be greater than 0"):
        DPKMeans(3, delta=0, bounds=4.0).fit(np.zeros((50, 3)))
    with pytest.raises(ValueError, match="delta must be greater than 0"):
        DPKMeans(3, delta=0, bounds=BOX).partial_fit(blobs(50), n_days=2)


def test_the_released_number_of_rows_decides_between_the_paths():
    few, many = fitted(blobs(700)), fitted(blobs(3000))
    assert laws(few) == GRID and few.n_iter_ == 0
    assert laws(many)[0] == GRID[0] and {law for _, law in laws(many)[1:]} == {"gaussian"}
    assert few.privacy_plan(2) == many.privacy_plan(2) and many.privacy_report_.epsilon == 1.0
    # A ledger that adds up rho has no use for a release that is dear in rho.
    for composition, tries in (("basic", True), ("zcdp", False), ("gaussian", False)):
        budget = PrivacyBudget(epsilon=2.0, delta=1e-5)
        model = DPKMeans(3, bounds=BOX, ledger=PrivacyLedger(budget, composition=composition))
        assert ("grid" in model.privacy_plan(2)) is tries
    assert "grid" not in DPKMeans(3, rho=0.1, bounds=BOX).privacy_plan(2)
    with pytest.raises(BudgetExceededError):
        fitted(blobs(50), ledger=PrivacyLedger(PrivacyBudget(epsilon=0.9, delta=1e-5)))


@pytest.mark.parametrize("groups", [None, np.arange(60) // 3])
@pytest.mark.parametrize(
    "options", [{"delta": 0}, {"delta": 0, "epsilon": 40.0}, {}, {"epsilon": 60.0}]
)
def test_replays_of_rows_and_groups(options, groups):
    model = DPKMeans(3, **{"bounds": BOX, **options})
    assert not replay_audit(model, blobs(60), groups=groups, strangers=groups is None).violations


@pytest.mark.parametrize("options", [{"delta": 0}, {}, {"epsilon": 30.0}])
def test_the_epsilons_of_the_parts_add_up(options):
    """By independent code, from what was released: to the epsilon of the report and no less."""
    made = record(DPKMeans(3, **{"bounds": BOX, **options}), blobs(80))
    report = made.outcome.estimator.privacy_report_
    assert not recount_problems(made.events, made.plan, report)
    assert not check_claims(made.events, made.plan, report)
    less = replace(report, epsilon=0.99 * report.epsilon)
    assert "worth epsilon" in str(recount_problems(made.events, made.plan, less))


def test_few_rows_are_better_served_than_by_many_releases():
    """100 rows of each cluster, epsilon 0.3: the sum of squares is three times as large or more
    with Gaussian noise of the same guarantee."""
    rho = PrivacyBudget(epsilon=0.3, delta=1e-6).to_rho()
    costs = np.zeros(2)
    for seed in range(10):
        X = blobs(300, seed)
        for i, options in enumerate(({"epsilon": 0.3}, {"rho": rho})):
            costs[i] -= fitted(X, random_state=seed, **options).score(X)
    assert 3 * costs[0] < costs[1]


def test_as_much_budget_as_a_status_asks_for_is_enough():
    """Finer cells have more noise between them: a budget in proportion to it is too small."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-8, 8, 8)[rng.integers(8, size=300)] + 0.5 * rng.normal(size=300)
    for seed in range(3):
        options = {"delta": 0, "bounds": 10.0, "random_state": seed}
        first = DPKMeans(8, epsilon=0.3, **options).fit(X[:, None])
        asked = re.search(r"epsilon = ([\d.]+) or", str(first.messages_))
        assert not first.trustworthy_ and float(asked[1]) < 10
        assert DPKMeans(8, epsilon=float(asked[1]), **options).fit(X[:, None]).trustworthy_


def test_without_noise_sizes_and_errors_are_those_of_the_rows():
    X, weight = blobs(4000), np.tile([0.5, 1.0], 2000)
    for options, total in (({}, 4000.0), ({"max_weight": 2.0}, 3000.0)):
        model = DPKMeans(3, delta=0, epsilon=1e5, bounds=BOX, random_state=0, **options)
        model.fit(X, sample_weight=weight if options else None)
        near = model.predict(X)
        sizes = np.bincount(near, weight if options else None)
        assert model.size_ == pytest.approx(total, rel=1e-3)
        assert model.cluster_weights_ == pytest.approx(sizes, rel=1e-2)
    assert model.status_ == "ok" and model.explained_ > 0.9


def test_sparse_rows_and_rows_beyond_the_bounds():
    X = np.concatenate([blobs(600), np.full((200, 2), 50.0)])
    dense, sparse = (fitted(rows, delta=0) for rows in (X, csr_array(X)))
    assert np.array_equal(dense.cluster_centers_, sparse.cluster_centers_)
    (message,) = [each for each in dense.messages_ if each.code == "rows_beyond_bounds"]
    assert "of the rows are beyond the bounds" in message.text
    assert dense.inertia_ == sparse.inertia_


def test_weights_are_divided_without_a_loss():
    """They sum to the total, none is negative, and exact counts are what they come to."""
    rng = np.random.default_rng(0)
    counts = rng.poisson(rng.choice([0.0, 5.0], 64)).astype(float)
    for halvings in range(7):
        assert _divided(counts, counts.sum(), halvings) == pytest.approx(counts)
        noisy = counts + rng.laplace(size=64)
        weights = _divided(noisy, 50.0, halvings)
        assert weights.sum() == pytest.approx(50.0) and weights.min() >= 0.0
        assert _divided(noisy, 0.0, halvings).tolist() == [0.0] * 64
