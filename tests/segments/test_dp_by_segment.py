"""One estimator for each segment, one charge, and which rows are in which segment."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from sklearn_dp import (
    DPBySegment,
    DPGaussianMixture,
    DPKMeans,
    DPKTupleKMeans,
    FederatedDPKMeans,
    FriendlyCovariance,
    FriendlyMean,
    PrivacyBudget,
    PrivacyLedger,
    SampleAndAggregate,
)
from sklearn_dp._privacy._randomness import AlgorithmicRandomness
from sklearn_dp._privacy._units import code_groups
from sklearn_dp._queries import blocks
from sklearn_dp.audit import replay_audit
from sklearn_dp.audit._observe import Neighbor
from sklearn_dp.exceptions import BudgetExceededError, UtilityWarning
from sklearn_dp.segments._rows import checked_values, segment_of_rows, units_in_one_segment

REGIONS = ["north", "south", "east"]


def table(n=6000, seed=0):
    """Ages and salaries of three regions, and rows of a region that is not listed."""
    rng = np.random.default_rng(seed)
    region = rng.choice([*REGIONS, "abroad"], size=n)
    age = rng.normal(45, 10, n) + 8 * (region == "south")
    return pd.DataFrame({"age": age, "salary": 1000 * age, "region": region})


BOX = {"bounds": ([0.0, 0.0], [100.0, 100_000.0])}


def test_what_estimators_say_shows_once_with_the_names_of_their_segments():
    """Notes, too; and of segments that have rows it is not said that they may have none."""
    rng, values = np.random.default_rng(0), [f"s{i}" for i in range(8)]
    X, by = rng.normal(size=(16000, 2)), rng.choice(values, size=16000)
    for estimator in (FriendlyMean(), DPKMeans(2), FriendlyMean(bounds=0.5)):
        model = DPBySegment(estimator, epsilon=4.0, values=values, random_state=0).fit(X, by=by)
        codes = {each.code for each in model.messages_}
        assert len(model.messages_) == len(codes) < 6
        shown = {each.code for one in model.estimators_.values() for each in one.messages_}
        assert shown <= codes and "s0" in str(model.messages_)
        assert "check that keys" not in str(model.messages_)


def test_means_of_regions():
    X = table()
    model = DPBySegment(FriendlyMean(**BOX), values=REGIONS, by="region", random_state=0).fit(X)
    assert model.status_ == "ok" and model.trustworthy_
    assert model.segment_status_.tolist() == ["ok"] * 3
    truth = X.groupby("region").mean().loc[REGIONS].to_numpy()
    means = np.array([model.estimators_[region].mean_ for region in REGIONS])
    errors = np.array([model.estimators_[region].mean_std_error_ for region in REGIONS])
    assert (np.abs(means - truth) < 5 * errors).all()
    assert np.abs(model.sizes_ - 1500).max() < 400 and model.n_features_in_ == 2
    assert list(model.feature_names_in_) == ["age", "salary"]
    frame = model.to_frame()
    assert frame.loc[("south", "mean_[age]"), "value"] == means[1, 0]
    assert set(frame["status"]) == {"ok"}
    rows = X[X.region != "abroad"]
    assert np.array_equal(model.predict(rows)[0], means[REGIONS.index(rows.region.iloc[0])])
    assert model.transform(rows).shape == (len(rows), 2)


def test_a_region_of_another_fit_knows_nothing_of_this_one():
    """Rows that are not listed, and rows of other regions, change no bit of a region's fit."""
    X, shared = table(1500), {"values": REGIONS, "by": "region", "borrow": False, "random_state": 0}
    one = DPBySegment(FriendlyMean(**BOX), **shared).fit(X)
    other = DPBySegment(FriendlyMean(**BOX), **shared).fit(X[X.region != "abroad"])
    for region in REGIONS:
        assert np.array_equal(one.estimators_[region].mean_, other.estimators_[region].mean_)


def test_all_segments_cost_what_one_costs():
    ledger = PrivacyLedger(PrivacyBudget(epsilon=1.0, delta=1e-5))
    many = [f"region {number}" for number in range(20)]
    DPBySegment(FriendlyMean(bounds=1.0), values=many, ledger=ledger).fit(
        np.zeros((40, 2)), by=many * 2
    )
    assert len(ledger.entries) == 1 and 0.99 < ledger.spent["epsilon"] <= 1.0
    with pytest.raises(BudgetExceededError):
        DPBySegment(values=many, ledger=ledger).fit(np.zeros((40, 2)), by=many * 2)
    model = DPBySegment(DPKMeans(3), values=["a", "b"])
    pooled, each = model.privacy_plan(4).entries
    assert pooled.rho == pytest.approx(0.05 * PrivacyBudget(1.0, 1e-6).to_rho(), rel=0.05)
    assert pooled.rho + each.rho <= PrivacyBudget(1.0, 1e-6).to_rho()


def near_and_far(n=90):
    """Three segments, one row far beyond every clip in each, and rows of no segment."""
    X = np.random.default_rng(3).normal(size=(n, 3))
    X[:, 0] = np.arange(n) % 4
    X[:6, 1:] = 40.0
    return X


def other_groups(X, groups):
    """One group less, and one more of three far rows, each of one segment."""
    index = code_groups(groups)
    there = index != 2
    left = np.delete(np.arange(index.max() + 1), 2)
    yield Neighbor("remove", X[there], groups[there], left)
    for key in (1.0, 7.0, 9.0):
        more = np.vstack([X, [[key, 90.0, -90.0]] * 3])
        ids = np.append(groups, [-1.0] * 3)
        yield Neighbor("far", more, ids, np.append(np.arange(index.max() + 1), -1))


of_each_segment = pytest.mark.parametrize(
    "estimator",
    [
        FriendlyMean(),
        FriendlyMean(bounds=30.0),
        DPKMeans(2, bounds=30.0),
        DPKMeans(2),
        FriendlyCovariance(bounds=30.0),
        DPGaussianMixture(2, bounds=30.0),
    ],
    ids=repr,
)


@pytest.mark.parametrize(
    "estimator, owner, kind",
    [
        (DPKTupleKMeans(2, bounds=4.0), blocks, "addressed_draws"),
        (DPKMeans(2, bounds=4.0), AlgorithmicRandomness, "rng"),
    ],
    ids=lambda case: case if isinstance(case, str) else type(case).__name__,
)
def test_segments_share_no_draws(estimator, owner, kind, monkeypatch):
    """Units are numbered anew in each: with common draws, one tells how rows of another shift."""
    asked, own = set(), getattr(owner, kind)

    def noted(session, *given):
        asked.add((session._part[:1], session._algorithm_seed))
        return own(session, *given)

    monkeypatch.setattr(owner, kind, noted)
    X = np.c_[np.arange(4000) % 2, np.random.default_rng(0).normal(size=(4000, 2))]
    DPBySegment(estimator, values=[0, 1], by=0, borrow=False, epsilon=50.0).fit(X)
    assert {part for part, _ in asked} == {("0",), ("1",)}
    assert len({seed for _, seed in asked}) == len(asked)


@pytest.mark.quick("FriendlyMean()", "DPKMeans(n_clusters=2)")
@of_each_segment
def test_a_group_in_several_segments_is_no_error(estimator):
    """One that comes or goes changes what one segment releases, by as much as a unit may."""
    X = near_and_far()
    groups = np.arange(len(X)) // 8  # rows of four keys in each, of which three are listed
    model = DPBySegment(estimator, values=[0, 1, 2, 7], by=0, epsilon=50.0, min_size=None)
    result = replay_audit(model, X, groups=groups, neighbors=other_groups(X, groups))
    assert result.violations == [] and result.n_pairs


def test_small_segments_are_suppressed():
    X = table(2000)
    X = X[(X.region != "east") | (np.arange(2000) < 100)]
    model = DPBySegment(
        FriendlyMean(**BOX),
        values=[*REGIONS, "west"],
        epsilon=5.0,
        by="region",
        min_size=250,
        random_state=0,
    )
    words = "2 of 4 segments .*; suppressed because they may have fewer than"
    with pytest.warns(UtilityWarning, match=words):
        model.fit(X)
    assert model.segment_status_.tolist() == ["ok", "ok", "suppressed", "suppressed"]
    assert model.estimators_["east"] is None and np.isnan(model.sizes_[2:]).all()
    assert "east" not in model.to_frame().index.get_level_values(0)
    with pytest.raises(ValueError, match="suppressed"):
        model.predict(X[X.region == "east"])
    hidden = DPBySegment(FriendlyMean(**BOX), values=["west"], by="region", min_size=250).fit(X)
    assert hidden.to_frame().empty


@pytest.mark.parametrize("method", ["k_tuples", "partition"])
def test_weights_that_an_estimator_refuses_cost_nothing(method):
    book = PrivacyLedger(PrivacyBudget(epsilon=9.0, delta=1e-3))
    inner = DPGaussianMixture(2, method=method, max_weight=2.0, bounds=5.0)
    rows = np.column_stack([np.arange(60) % 2, np.arange(60) / 60])
    with pytest.raises(ValueError, match="only method='coreset' takes weights"):
        DPBySegment(inner, values=(0.0, 1.0), by=0, ledger=book).fit(
            rows, sample_weight=np.ones(60)
        )
    assert book.entries == ()


def test_weights_and_empty_segments():
    X = table(3000)
    weights = np.where(X.age > 45, 3.0, 1.0)
    inner = FriendlyMean(max_weight=3.0, **BOX)
    model = DPBySegment(inner, values=[*REGIONS, "west"], by="region", random_state=0)
    model.fit(X, sample_weight=weights)
    south = X.region == "south"
    truth = np.average(X.age[south], weights=weights[south])
    fitted = model.estimators_["south"]
    assert abs(fitted.mean_[0] - truth) < 5 * fitted.mean_std_error_[0]
    assert model.segment_status_[3] == "noise" and "west" in str(model.messages_)
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.estimators_["south"].mean_, fitted.mean_)


@pytest.mark.parametrize(
    "options, error, words",
    [
        ({"estimator": LinearRegression()}, TypeError, "estimator must be"),
        ({"estimator": SampleAndAggregate(LinearRegression())}, TypeError, "estimator must be"),
        ({"estimator": FederatedDPKMeans()}, TypeError, "estimator must be"),
        ({"estimator": FriendlyMean(epsilon=2.0)}, ValueError, "estimator sets epsilon"),
        ({"estimator": FriendlyMean(rho=2.0)}, ValueError, "estimator sets rho"),
        ({"values": "north"}, TypeError, "values must"),
        ({"values": ["a", "a"]}, ValueError, "values must"),
        ({"borrow": 1}, TypeError, "borrow must"),
        ({"min_size": 0}, ValueError, "min_size must"),
        ({"estimator": DPGaussianMixture(2), "min_size": 5}, ValueError, "min_size: "),
    ],
)
def test_what_is_wrong_is_refused_before_the_charge(options, error, words):
    ledger = PrivacyLedger(PrivacyBudget(epsilon=1.0, delta=1e-6))
    options = {"values": ["a", "b"], **options}
    with pytest.raises(error, match=words):
        DPBySegment(ledger=ledger, **options).fit(np.zeros((4, 2)), by=list("abab"))
    assert not ledger.entries


@pytest.mark.parametrize("key", [None, "aaa", ["a"], [["a"], ["b"], ["c"]], 3, np.zeros((3, 1))])
def test_wrong_keys(key):
    if isinstance(key, list) and len(key) == 3:
        assert segment_of_rows(key, ["a"], 3).tolist() == [-1, -1, -1]
        return
    with pytest.raises(ValueError, match="^by must have one entry for each row"):
        segment_of_rows(key, ["a"], 3)


@pytest.mark.parametrize(
    "values, kind",
    [
        ("ab", TypeError),
        ({"a", "b"}, TypeError),
        ([], ValueError),
        (["a", "a"], ValueError),
        ([1, 1.0], ValueError),
        ([1, "1"], ValueError),
        ([None], TypeError),
        ([np.nan], TypeError),
        ([["a"]], TypeError),
        (range(10_001), ValueError),
    ],
)
def test_wrong_values(values, kind):
    with pytest.raises(kind, match="^values must"):
        checked_values(values)


@pytest.mark.parametrize(
    ("groups", "segment", "own"),
    [
        ("ppqp", [0, 0, 1, -1], [0, 0, 1, -1]),
        ("pqpp", [0, 0, 1, -1], [0, 0, -1, -1]),  # as many in both: the one that is listed first
        ("pqpp", [1, 0, 0, -1], [-1, 0, 0, -1]),
        ("ppp", [2, 1, 2], [2, -1, 2]),
        ("pppq", [-1, -1, -1, 0], [-1, -1, -1, 0]),
        ("pqpqpq", [0, 1, 1, 0, 1, 1], [-1, 1, 1, -1, 1, 1]),
        ("", [], []),
    ],
)
def test_a_group_is_in_the_segment_of_most_of_its_rows(groups, segment, own):
    """Which depends on its own rows alone, and not on their order."""
    segment = np.array(segment, dtype=np.int64)
    units, found = units_in_one_segment(list(groups), segment)
    assert found.tolist() == own and len(units) == len(groups)
    back = np.arange(len(groups))[::-1]
    assert units_in_one_segment(list(groups[::-1]), segment[back])[1].tolist() == own[::-1]
    for gone in set(groups):  # the others stay where they were
        rest = [i for i, group in enumerate(groups) if group != gone]
        few = units_in_one_segment([groups[i] for i in rest], segment[rest])[1]
        assert few.tolist() == [own[i] for i in rest]


@pytest.mark.parametrize("inner", [FriendlyCovariance, DPGaussianMixture])
@pytest.mark.parametrize("share", [0.12, 0.26])
def test_rows_beyond_bounds_are_told_of_segments(inner, share):
    """Those of means were told, of the others they were "ok", and limits of segments were lost."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(45, 12, 6000), rng.lognormal(10.8, 0.6, 6000)])
    bounds = ([0, 0], [120, np.quantile(X[:, 1], 1 - share)])
    by = rng.integers(2, size=len(X))
    alone = inner(bounds=bounds).set_params(random_state=0).fit(X)
    model = DPBySegment(inner(bounds=bounds), values=[0, 1], random_state=0).fit(X, by=by)
    for each in (alone, model):
        limit = isinstance(alone, DPGaussianMixture)  # which counts no rows: there it is "ok, but"
        assert share < 0.2 or limit or not each.trustworthy_
        if share > 0.2 or isinstance(alone, FriendlyMean | DPKMeans):
            assert "bound" in str(each.messages_) and "x1" in str(each.messages_)


@pytest.mark.parametrize("composition", ["zcdp", "gaussian"])
def test_segments_plan_for_the_ledger_that_pays_for_them(composition):
    """With Laplace noise, as without a ledger, a fit would cost 12 times as much rho."""
    ledger = PrivacyLedger(PrivacyBudget(epsilon=1.2, delta=1e-5), composition=composition)
    inner = DPKMeans(n_clusters=3, bounds=([0.0, 0.0], [100.0, 100_000.0]))
    shared = {"values": REGIONS, "by": "region", "borrow": False, "random_state": 0}
    model = DPBySegment(inner, ledger=ledger, **shared)
    alone = DPKMeans(**{**inner.get_params(), "ledger": ledger})
    assert model.privacy_plan(2).rho == alone.privacy_plan(2).rho < 0.03
    assert DPBySegment(inner, **shared).privacy_plan(2).rho > 0.3
    model.fit(table())
    (charge,) = ledger.entries
    assert model.privacy_report_.rho <= charge.rho < 0.03
