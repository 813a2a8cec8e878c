"""Weights of rows: they count in proportion, and no weight makes a row count for more than one.

The guarantee is that of rows without weights, since a weight is a part of its row. It is audited as
such: `LastColumn` takes the last column for the weights, and the audits see rows.
"""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from weight_tools import LastColumn, by_sum, released, unclipped, undivided, unscaled

from sklearn_dp import DPKMeans
from sklearn_dp._privacy._units import Units
from sklearn_dp.audit import replay_audit

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)
SEEDED = {"max_weight": 1.0, "random_state": 0}
GENEROUS = {"epsilon": 1000.0, **SEEDED}


def table(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) * 0.3 + np.array([[0, 0], [4, 0], [0, 4]])[rng.integers(3, size=n)]
    return X, rng.uniform(size=n)


# -- what weights do -------------------------------------------------------------------------------


@pytest.mark.parametrize("bounds", [None, 9.0])
def test_weights_count_in_proportion(bounds):
    X, weights = table()
    weights[X[:, 0] > 2] *= 0.1
    model = DPKMeans(3, bounds=bounds, **GENEROUS).fit(X, sample_weight=weights)
    plain = KMeans(3, n_init=5, random_state=0).fit(X, sample_weight=weights)
    expected = np.bincount(plain.labels_, weights)
    order = np.argsort(-expected)
    np.testing.assert_allclose(model.cluster_weights_, expected[order], rtol=0.02)
    np.testing.assert_allclose(model.cluster_centers_, plain.cluster_centers_[order], atol=0.02)
    assert model.inertia_ == pytest.approx(plain.inertia_, rel=0.1)
    score = model.score(X, sample_weight=weights)
    assert score == pytest.approx(plain.score(X, sample_weight=weights), rel=0.01)
    assert model.labels_.shape == (len(X),)


def test_a_row_of_weight_zero_is_not_there_bit_for_bit():
    X, weights = table(600)
    weights[::3] = 0
    weights[1::3] *= 2.0**-21  # less than a step
    there = np.arange(len(X)) % 3 == 2
    X[~there] = 1e9  # nobody sees them
    for groups in (None, np.arange(len(X)) // 2):
        part = None if groups is None else groups[there]
        model, other = (DPKMeans(3, **SEEDED) for _ in range(2))
        model.fit(X, sample_weight=weights, groups=groups)
        other.fit(X[there], sample_weight=weights[there], groups=part)
        assert released(model) == released(other)
        assert model.labels_.shape == (len(X),)
        assert np.array_equal(model.labels_[there], other.labels_)


def test_larger_weights_count_as_the_largest():
    X, weights = table(1200)
    weights *= 5
    model = DPKMeans(3, **SEEDED).fit(X, sample_weight=weights)
    other = DPKMeans(3, **SEEDED).fit(X, sample_weight=np.minimum(weights, 1))
    assert model.status_.startswith("weights are cut off: at least")
    assert {**released(model), "status_": 0} == {**released(other), "status_": 0}


def test_a_larger_bound_is_another_unit_of_weight():
    """The same integers as of weights over the bound, and results in the unit of the weights."""
    X, weights = table(600)
    model = DPKMeans(3, max_weight=4.0, random_state=0).fit(X, sample_weight=4 * weights)
    other = DPKMeans(3, **SEEDED).fit(X, sample_weight=weights)
    assert np.array_equal(model.cluster_centers_, other.cluster_centers_)
    for name in (
        "cluster_weights_",
        "cluster_weights_std_error_",
        "inertia_",
        "inertia_std_error_",
    ):
        assert np.array_equal(getattr(model, name), 4 * np.asarray(getattr(other, name)))
    # Without weights it has no effect, but for a note in the plan.
    plain, other = (
        DPKMeans(3, random_state=0, **largest).fit(X) for largest in ({"max_weight": 4.0}, {})
    )
    assert plain.privacy_report_ != other.privacy_report_ and released(plain) == released(other)


def test_weights_of_one_are_no_weights_but_for_rounding():
    X, _ = table()
    model = DPKMeans(3, **GENEROUS).fit(X, sample_weight=np.ones(len(X)))
    other = DPKMeans(3, **GENEROUS).fit(X)
    np.testing.assert_allclose(model.cluster_centers_, other.cluster_centers_, atol=1e-3)
    number = DPKMeans(3, **GENEROUS).fit(X, sample_weight=1)
    assert released(number) == released(model)


@pytest.mark.parametrize(
    "weights",
    [
        np.full(49, 1.0),
        np.ones((50, 1)),
        np.full(50, np.nan),
        np.full(50, np.inf),
        np.full(50, -7319.25),
        np.full(50, 1j),
        ["7319.25x"] * 50,
        [[1.0], [7319.25, 2.0]],
        -1.0,
        np.nan,
        "7319",
        {7319: 1},
        object(),
    ],
    ids=lambda weights: str(type(weights).__name__),
)
def test_bad_weights_are_named_and_not_quoted(weights):
    X, _ = table(50)
    model = DPKMeans(2, random_state=0).fit(X)
    for call in (DPKMeans(2, max_weight=1.0).fit, model.score):
        with pytest.raises(ValueError, match="sample_weight must be") as told:
            call(X, sample_weight=weights)
        assert "7319" not in str(told.value) and told.value.__context__ is None


@pytest.mark.parametrize("largest", [0, -1.0, np.inf, np.nan, True, "1"])
def test_bad_bounds_of_weights_are_named(largest):
    with pytest.raises((TypeError, ValueError), match="max_weight"):
        DPKMeans(max_weight=largest).fit(table(50)[0])


# -- units -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_a_unit_never_weighs_more_than_one(seed):
    """Whatever the weights are: sums of integers, exactly."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 200))
    weights = rng.choice([0.0, 1e-9, 0.3, 1.0, 7.5, 1e300], size=n) * rng.uniform(0, 1, size=n)
    for groups in (None, rng.integers(0, 5, size=n)):
        for largest in (1.0, 1e-3, 7.3):
            units, there = Units.weighted(weights, largest, groups)
            assert units.n_rows == there.sum() == len(units.weights)
            assert units.weights.dtype == np.int64 and (units.weights >= 0).all()
            index = np.arange(units.n_rows) if groups is None else units.index
            assert np.bincount(index, units.weights, minlength=1).max() <= units.scale
            exact = np.minimum(weights, largest)[there] / largest
            if groups is None:
                steps = exact * units.scale - units.weights
                assert (steps > -1e-6).all() and (steps < 1).all()


# -- the guarantee ---------------------------------------------------------------------------------


class Weighed(LastColumn, DPKMeans):
    pass


WEIGHED = [
    {"n_clusters": 3, "max_weight": 1.0},
    {"n_clusters": 2, "epsilon": 1000.0, "bounds": 3.0, "max_weight": 1.0},
    {"n_clusters": 2, "epsilon": 30.0, "max_weight": 5.0},
    {"n_clusters": 2, "epsilon": 1000.0, "metric": "cosine", "max_weight": 2.0},
]
# Each with rows or with groups as units, and the first one with both; all in `make audit`.
UNITS = [
    pytest.param(
        options,
        grouped,
        id=f"{options}-{'groups' if grouped else 'rows'}",
        marks=pytest.mark.slow if (number, grouped) in {(1, True), (2, False)} else (),
    )
    for number, options in enumerate(WEIGHED)
    for grouped in (False, True)
]


@pytest.mark.quick("*-groups")
@pytest.mark.parametrize(("options", "grouped"), UNITS)
def test_replay_audit(options, grouped):
    X = np.random.default_rng(1).normal(size=(60, 3))
    groups = np.arange(60) // 3 if grouped else None
    result = replay_audit(Weighed(**options), X, groups=groups, repeats=2, strangers=not grouped)
    assert result.violations == [] and result.n_pairs > 20
    assert max(result.ratios.values()) > 0.5  # some pair moves a release by much of the claim


@pytest.mark.parametrize(
    ("bug", "grouped"),
    [(unclipped, False), (undivided, True), (by_sum, False), (unscaled, False)],
)
def test_the_audit_sees_weights_that_are_not_bounded(bug, grouped, monkeypatch):
    monkeypatch.setattr(Units, "weighted", staticmethod(bug))
    X = np.random.default_rng(1).normal(size=(60, 3))
    groups = np.arange(60) // 3 if grouped else None
    model = Weighed(n_clusters=2, epsilon=1000.0, bounds=3.0, max_weight=2.0)
    assert replay_audit(model, X, groups=groups, stop_at_first=True).violations


@pytest.mark.slow
@pytest.mark.parametrize("d", [3, 7])
def test_replay_audit_of_a_chosen_number_of_clusters(d):
    X = np.random.default_rng(1).normal(size=(60, d))
    model = Weighed(n_clusters="auto", epsilon=300.0, max_weight=3.0)
    assert replay_audit(model, X).violations == []
