"""Private lists of categories."""

import warnings

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom
from sklearn.preprocessing import OneHotEncoder

from sklearn_dp import DPOneHotEncoder, PrivacyBudget, PrivacyLedger

pandas = pytest.importorskip("pandas")


def persons(n=5000, seed=0):
    rng = np.random.default_rng(seed)
    work = rng.choice(["full", "part", "none"], n, p=[0.6, 0.3, 0.1]).astype(object)
    work[:3] = ["astronaut", "pope", "diver"]
    return pandas.DataFrame({"work": work, "region": rng.integers(1, 5, n)})


def test_frequent_categories_are_found_and_rare_ones_are_not():
    table = persons()
    model = DPOneHotEncoder(epsilon=1.0, random_state=0).fit(table)
    assert [each.tolist() for each in model.categories_] == [["full", "none", "part"], [1, 2, 3, 4]]
    assert model.status_ == "ok" and model.trustworthy_
    exact = table["work"].value_counts()[["full", "none", "part"]]
    np.testing.assert_allclose(model.counts_[0], exact, atol=5 * model.count_std_error_)
    assert model.size_ == pytest.approx(5000, abs=5 * model.size_std_error_)
    assert model.hidden_share_[0] == pytest.approx(3 / 5000, abs=5 * 0.01)
    assert (model.hidden_share_std_error_ < 0.01).all()
    assert "hidden_share_[work]" in repr(model.summary())
    assert not {"astronaut", "pope"} & set(repr(vars(model)).split("'"))


def test_rows_are_encoded_as_scikit_learn_encodes_them():
    table = persons()
    model = DPOneHotEncoder(random_state=0).fit(table)
    theirs = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=60).fit(table)
    np.testing.assert_array_equal(
        model.transform(table)[:, [0, 1, 2, 3]], theirs.transform(table).toarray()[:, [0, 1, 2, 3]]
    )
    assert model.get_feature_names_out()[:4].tolist() == theirs.get_feature_names_out()[:4].tolist()
    assert model.inverse_transform(model.transform(table))[[0, 5]].tolist() == [
        ["infrequent_sklearn", table["region"][0]],
        table.loc[5].tolist(),
    ]
    ignoring = DPOneHotEncoder(handle_unknown="ignore", random_state=0).fit(table)
    assert ignoring.transform(table)[0, :3].tolist() == [0, 0, 0]
    assert ignoring.inverse_transform(ignoring.transform(table[:1])).tolist()[0][0] is None
    assert ignoring.transform(table).shape[1] == 7 == model.transform(table).shape[1] - 2


def test_of_a_group_one_row_counts_whatever_its_size():
    """One group of 4,000 rows is one unit; of a group of two kinds each is drawn half of the time.

    False alarms: the number of draws is binomial, here within bounds that fail once in 1e6.
    """
    kinds = np.array(["many"] * 4000 + ["a", "b"] * 2000, dtype=object)[:, None]
    groups = np.append(np.zeros(4000), 1 + np.arange(4000) // 2)
    model = DPOneHotEncoder(epsilon=1000.0, random_state=0).fit(kinds, groups=groups)
    assert model.categories_[0].tolist() == ["a", "b"] and model.size_ == 2001
    low, high = binom.ppf([5e-7, 1 - 5e-7], 2000, 0.5)
    assert model.counts_[0].sum() == 2000 and low <= model.counts_[0][0] <= high


def test_a_category_of_one_unit_is_seen_with_probability_delta():
    """1,000 lone categories in each of 40 fits, at a delta of .02: half of it is for the failures.

    The number that are seen is binomial with a chance of at most .01; the bound fails once in 1e6.
    Twice the chance would be seen: 800 of 40,000 against at most 497.
    """
    X = np.array([f"person {i}" for i in range(1000)], dtype=object)[:, None]
    seen = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(40):
            model = DPOneHotEncoder(epsilon=1.0, delta=0.02, random_state=seed).fit(X)
            seen += len(model.categories_[0])
    assert 0 < seen <= binom.ppf(1 - 1e-6, 40_000, 0.01)


def test_the_threshold_is_what_it_says_it_is():
    """A category of as many rows is found half of the time (false alarms: one in 1e6)."""

    def found(n, seed):
        model = DPOneHotEncoder(epsilon=0.5, random_state=seed).fit(np.zeros((n, 1)))
        return model.counts_[0], model

    _, model = found(10, 0)
    low, chance = model.threshold_, ndtr(0.5 / model.count_std_error_)
    shown = [found(low, seed)[0] for seed in range(200)]
    assert min(np.concatenate(shown)) >= low
    least, most = binom.ppf([5e-7, 1 - 5e-7], 200, chance)
    assert least <= sum(map(len, shown)) <= most
    often = round(low + 2 * model.count_std_error_)
    assert sum(len(found(often, seed)[0]) for seed in range(60)) > 50


def test_parts_are_refused_before_the_charge():
    ledger = PrivacyLedger(PrivacyBudget(epsilon=1.0, delta=1e-5))
    dask = pytest.importorskip("dask.dataframe")
    parts = dask.from_pandas(persons(50), npartitions=2)
    with pytest.raises(TypeError, match="X must be in memory for DPOneHotEncoder"):
        DPOneHotEncoder(ledger=ledger).fit(parts)
    assert not ledger.entries and not hasattr(DPOneHotEncoder(), "fit_partitions")
