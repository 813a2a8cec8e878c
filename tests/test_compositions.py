"""Pipelines whose private steps are charged together, and which leave the rows to their steps."""

import pickle
from collections import deque, namedtuple
from functools import partial

import joblib
import numpy as np
import pandas
import pytest
from scipy.sparse import csr_matrix, issparse, vstack
from scipy.special import expit
from sklearn import config_context
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import VotingRegressor
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, OneHotEncoder, StandardScaler
from sklearn.random_projection import SparseRandomProjection

from sklearn_dp import (
    DPPCA,
    DPBySegment,
    DPKMeans,
    FriendlyMean,
    PrivacyBudget,
    PrivacyLedger,
    SampleAndAggregate,
    privacy_report,
    privatize,
)
from sklearn_dp._compositions import PrivateColumnTransformer, PrivatePipeline, private_steps
from sklearn_dp._guarantee import follows_from_rows
from sklearn_dp._privacy._ledger import PrepaidFit, paid_together
from sklearn_dp.exceptions import BudgetExceededError, LedgerError, PrivacyWarning
from sklearn_dp.model_selection import DPGridSearch, preflight

X = np.random.default_rng(0).normal(size=(3000, 4))
THREE = make_pipeline(StandardScaler(), PCA(2), KMeans(2))


def book(epsilon=1.0, delta=1e-6, **options):
    return PrivacyLedger(PrivacyBudget(epsilon=epsilon, delta=delta), **options)


class Untouchable:
    """Data that nobody may look at; the shape is public."""

    shape = X.shape

    def __len__(self):
        return len(X)

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("a row was read")


@pytest.mark.parametrize("method", ["fit", "fit_predict", "fit_transform"])
def test_a_ledger_of_the_same_budget_holds_one_fit(method):
    ledger = book()
    twin = privatize(THREE, epsilon=1.0, ledger=ledger)
    getattr(twin, method)(X)
    (charge,) = ledger.entries
    assert charge.label == "DPStandardScaler + DPPCA + DPKMeans"
    report = privacy_report(twin)
    assert charge.epsilon == pytest.approx(report.epsilon) == pytest.approx(1.0)
    assert (charge.epsilon <= 1.0, charge.delta <= 1e-6) == (True, True)
    with pytest.raises(BudgetExceededError):
        getattr(twin, method)(X)
    assert ledger.entries == (charge,)


def test_nothing_is_read_before_the_charge_or_where_it_is_refused():
    ledger = book(0.5)
    twin = privatize(THREE, epsilon=1.0, ledger=ledger)
    with pytest.raises(BudgetExceededError):
        twin.fit(Untouchable())
    assert ledger.entries == ()
    ledger = book()
    with pytest.raises(ValueError, match="X could not be read"):
        privatize(THREE, epsilon=1.0, ledger=ledger).fit(Untouchable())
    assert len(ledger.entries) == 1


@pytest.mark.parametrize(
    ("budget", "change", "match"),
    [({"rho": 1.01e-8}, {}, "rho is too small"), ({"epsilon": 7e-4}, {}, "rho is too small"),
     ({"rho": 1e-3}, {"kmeans__rho": 1e-12}, "rho is too small"),
     ({"rho": 1e-3}, {"kmeans__rho": -1.0}, "rho"), ({"rho": 1e-3}, {"pca__delta": 2.0}, "delta"),
     ({"rho": 1e-3}, {"kmeans__n_jobs": 0}, "n_jobs"),
     ({"rho": 1e-3}, {"kmeans__max_weight": -1.0}, "max_weight")],
)  # fmt: skip
def test_what_is_wrong_with_a_step_in_any_case_is_said_before_the_charge(budget, change, match):
    ledger = book(9.0, 1e-4)
    with pytest.raises(ValueError, match=match):
        privatize(THREE, **budget, ledger=ledger).set_params(**change).fit(X)
    assert ledger.entries == ()


def test_steps_that_are_fitted_alone_or_have_another_budget_pay_for_themselves():
    ledger = book(9.0, 1e-5)
    twin = privatize(THREE, epsilon=1.0, ledger=ledger).fit(X)
    twin[0].fit(X)
    assert [charge.label for charge in ledger.entries][1:] == ["DPStandardScaler"]
    twin[:2].fit(X)
    assert ledger.entries[-1].label == "DPStandardScaler + DPPCA"
    twin.set_params(kmeans__rho=None, kmeans__epsilon=0.5).fit(X)
    assert [charge.label for charge in ledger.entries][3:] == [
        "DPStandardScaler + DPPCA",
        "DPKMeans",
    ]
    clone(privatize(THREE, rho=0.1, ledger=ledger)).fit(X)
    assert len(ledger.entries) == 6


def test_no_gaussian_part_pays_for_failures():
    ledger = book(40.0, 1e-4, composition="zcdp")
    labels = ["FriendlyMean", "DPPCA"]
    parts = [PrepaidFit(ledger, each, 1.0, 1e-6, True, "row", "add or remove") for each in labels]
    mean = FriendlyMean(epsilon=0.5, delta=1e-6, ledger=ledger)
    assert mean.privacy_plan(4).gaussian and mean.privacy_plan(4).delta_failure > 0
    with paid_together(parts):
        mean.fit(X)
        DPPCA(2, rho=0.5, epsilon=None, ledger=ledger).fit(X)
    assert [charge.label for charge in ledger.entries] == ["FriendlyMean + DPPCA", "FriendlyMean"]
    assert ledger.entries[1].delta_failure > ledger.entries[0].delta_failure == 0.0


def test_groups_are_the_unit_of_all_steps_that_get_them():
    groups = np.arange(3000) // 3
    ledger = book(unit="group")
    twin = privatize(make_pipeline(PCA(2), KMeans(2)), epsilon=1.0, ledger=ledger)
    twin.fit(X, pca__groups=groups, kmeans__groups=groups)
    assert [charge.unit for charge in ledger.entries] == ["group"]


def test_unions_and_columns_inside_are_paid_for_by_the_whole():
    union = make_union(PCA(1), make_pipeline(StandardScaler(), PCA(2)))
    columns = ColumnTransformer([("all", PCA(1), [0, 1])], remainder=PCA(1))
    for theirs, steps in ((make_pipeline(union, columns, KMeans(2)), 6), (columns, 2), (union, 3)):
        ledger = book(40.0, composition="zcdp")
        twin = privatize(theirs, epsilon=40.0, ledger=ledger)
        twin.fit_transform(X)
        (charge,) = ledger.entries
        assert charge.label.count("+") == steps - 1 and len(privacy_report(twin).releases) > steps
    twin = privatize(columns, epsilon=1.0, ledger=book(2.0)).fit(X)
    twin.set_params(all__rho=0.001, remainder__rho=0.001)
    assert "# (1, 1e-06)-DP when" in repr(twin)  # of the fit that was made, not of another one
    assert "# a fit would cost (0." in repr(clone(twin))


@pytest.mark.parametrize("name", ["groups", "owner"])
def test_groups_that_are_routed_by_any_name_are_those_of_the_joint_charge(name):
    with config_context(enable_metadata_routing=True):
        for theirs in (THREE, make_union(PCA(1), StandardScaler())):
            twin = privatize(theirs, ledger=book(unit="group"))
            for step in private_steps(twin):
                step.set_fit_request(groups=name)
            twin.fit(X, **{name: np.arange(len(X)) // 2})
            assert privacy_report(twin).unit == "group"


# -- threads and processes of others ---------------------------------------------------------------

COLUMNS = ColumnTransformer([("a", StandardScaler(), [0, 1])], remainder=PCA(1))


# Processes are started for one composition, the largest: a ledger is a file for all of them.
@pytest.mark.quick("*-threading-*", "nested-loky-2")
@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("backend", ["threading", "loky"])
@pytest.mark.parametrize(
    "theirs",
    [
        make_union(StandardScaler(), PCA(1)),
        COLUMNS,
        make_pipeline(make_union(StandardScaler(), PCA(1)), KMeans(2)),
        make_union(COLUMNS, make_pipeline(make_union(PCA(1), PCA(2)))),
    ],
    ids=["union", "columns", "pipeline", "nested"],
)
def test_no_backend_makes_a_fit_pay_twice(theirs, backend, n_jobs, tmp_path):
    """Tasks of joblib did not know that they were paid for, and the budget of one fit ran dry."""
    ledger = book(path=tmp_path / "ledger.db")
    twin = privatize(theirs, epsilon=0.9, ledger=str(tmp_path / "ledger.db"))
    holders = [name for name in twin.get_params() if name.rpartition("__")[2] == "n_jobs"]
    twin.set_params(**{name: n_jobs for name in holders if type(twin) is not PrivatePipeline})
    with joblib.parallel_config(backend, n_jobs=2):
        twin.fit(X[:500])
    (charge,) = ledger.entries
    assert charge.epsilon == pytest.approx(0.9)


# -- two values of a key ---------------------------------------------------------------------------

FEW = {"n_clusters": [2, 3]}
HIDDEN = {
    "search": lambda ledger: DPGridSearch(DPKMeans(bounds=5.0), FEW, ledger=ledger),
    "search of scikit-learn": lambda ledger: GridSearchCV(DPKMeans(ledger=ledger), FEW, cv=2),
    "grid": lambda ledger: GridSearchCV(DPKMeans(), {"ledger": [ledger]}, cv=2),
    "estimator in a grid": lambda ledger: GridSearchCV(
        make_pipeline(DPKMeans()), {"dpkmeans": [DPKMeans(2, ledger=ledger)]}, cv=2
    ),
    "pipeline": lambda ledger: make_pipeline(DPPCA(2), HIDDEN["search"](ledger)),
    "union": lambda ledger: make_pipeline(make_union(PCA(1), DPPCA(1, ledger=ledger)), DPKMeans()),
    "columns": lambda ledger: ColumnTransformer([("a", DPPCA(1, ledger=ledger), [0, 1])]),
    "remainder": lambda ledger: ColumnTransformer([], remainder=DPPCA(1, ledger=ledger)),
    "segment": lambda ledger: DPBySegment(DPKMeans(2), ledger=ledger),
    "ensemble": lambda ledger: SampleAndAggregate(ledger=ledger),
    "ensemble of scikit-learn": lambda ledger: VotingRegressor(
        [("a", make_pipeline(DPPCA(1, ledger=ledger), Ridge()))]
    ),
    "function": lambda ledger: make_pipeline(
        FunctionTransformer(partial(lambda rows, model: rows, model=DPPCA(1, ledger=ledger)))
    ),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_two_values_of_a_key_are_refused_wherever_they_hide(name):
    ledger = book(10.0, 1e-3)
    region = ledger.disjoint("region", ["n", "s"])
    for theirs in (
        make_pipeline(StandardScaler(), KMeans(2)),
        make_union(PCA(1), StandardScaler()),
    ):
        twin = privatize(theirs, epsilon=1.0, ledger=region["n"])
        (last, _), *_ = reversed(getattr(twin, "steps", None) or twin.transformer_list)
        twin.set_params(**{last: HIDDEN[name](region["s"])})
        for use in (lambda twin=twin: twin.fit(X), lambda twin=twin: preflight(twin, X)):
            with pytest.raises(LedgerError, match="charged to two values of 'region'"):
                use()
    assert ledger.entries == ()


# -- what the rows decide --------------------------------------------------------------------------


def rows_of_density(extra=0):
    """Of density .3 exactly; a row of zeros more, and it is less."""
    dense = np.zeros((4000, 4))
    dense.ravel()[np.random.default_rng(0).permutation(16_000)[:4800]] = 1.0
    return vstack([csr_matrix(dense), csr_matrix((extra, 4))]).tocsr()


def mixed(**options):
    return ColumnTransformer([("a", PCA(1), [0, 1])], remainder="passthrough", **options)


def inside(twin, name):
    """The table of columns in a composition, as it was fitted."""
    return {
        "alone": lambda: twin,
        "union": lambda: twin[0].transformer_list[0][1],
        "columns": lambda: twin.transformers_[0][1],
        "deep": lambda: twin.transformers_[0][1][0],
    }[name]()


@pytest.mark.quick("deep-*", "columns-0.3-*", "union-0.3-made")
@pytest.mark.parametrize("after", [False, True], ids=["made", "set_params"])
@pytest.mark.parametrize("threshold", [0.0, 0.3])
@pytest.mark.parametrize("name", ["alone", "union", "columns", "deep"])
def test_no_row_decides_whether_a_table_is_sparse(name, threshold, after):
    """One row of zeros more changed an attribute, the pickle, and whether the next step failed."""
    table = mixed(sparse_threshold=0.3 if after else threshold)
    theirs, key = {
        "alone": (table, "sparse_threshold"),
        "union": (make_pipeline(make_union(table), KMeans(2)), "featureunion"),
        "columns": (ColumnTransformer([("in", table, [0, 1, 2, 3])]), "in"),
        "deep": (ColumnTransformer([("in", make_pipeline(table), [0, 1, 2, 3])]), "in"),
    }[name]
    twin = privatize(theirs, epsilon=4.0)
    if after:  # with scikit-learn's own
        new = mixed(sparse_threshold=threshold)
        of_union, deep = make_union(new), make_pipeline(new)
        new = {"alone": threshold, "union": of_union, "columns": new, "deep": deep}[name]
        for step in (of_union, deep):
            step.set_params(columntransformer__a=DPPCA(1))
        twin.set_params(**{key: new})
        if name == "columns":
            twin.set_params(in__a=DPPCA(1))
    shown = []
    for rows in (rows_of_density(), rows_of_density(1), csr_matrix(np.ones((4000, 4)))):
        found = inside(clone(twin).fit(rows), name)
        assert type(found) is PrivateColumnTransformer
        for public in (rows_of_density()[:2], rows_of_density()[:2].toarray()):
            assert issparse(found.transform(public)) == found.sparse_output_
        assert issparse(clone(found).fit_transform(rows)) == found.sparse_output_
        shown.append(found.sparse_output_)
    assert shown == [threshold > 0] * 3
    found = inside(clone(twin).fit(rows.toarray()), name)
    assert not found.sparse_output_ and not issparse(found.transform(rows.toarray()))


@pytest.mark.parametrize("kept", ["a", "remainder"])
def test_what_chooses_columns_sees_no_row(kept):
    seen = []

    def choose(rows):
        seen.append(rows.shape)
        return [0, 1]

    table = ColumnTransformer([("a", PCA(1), choose)], remainder=StandardScaler())
    twin = privatize(make_pipeline(table) if kept == "remainder" else table).fit(X)
    assert {*seen} == {(0, 4)}
    assert (twin[0] if kept == "remainder" else twin).transform(X).shape[1] == 3


Row = namedtuple("Row", "a b c")  # noqa: PYI024
LISTED = [[1.0, 2.0, "n"], [3, 4.5, "s"]] * 200


@pytest.mark.parametrize(
    "listed",
    [list, tuple, deque, lambda rows: [Row(*row) for row in rows], lambda rows: [*map(tuple, rows)],
     lambda rows: [pandas.Series(row) for row in rows]],
    ids=["list", "tuple", "deque", "namedtuples", "tuples", "series"],
)  # fmt: skip
def test_lists_of_rows_are_read_entry_by_entry(listed):
    """A table of columns raised "list indices must be integers or slices, not tuple"."""
    columns = ColumnTransformer([("a", StandardScaler(), [0, -2]), ("b", OneHotEncoder(), [2])])
    twin = privatize(make_pipeline(columns, KMeans(2)), epsilon=50.0)
    for more in ([], [[True, "7", 1]]):
        found = clone(twin).fit(listed(LISTED + more))
        assert [*found[0].named_transformers_["b"].categories_[0]] == ["n", "s"]
        assert found.predict(LISTED[:2]).shape == (2,) and found[-1].n_features_in_ == 5
    ledger = book(50.0, 1e-4)
    twin = privatize(make_pipeline(columns, KMeans(2)), ledger=ledger)
    with pytest.raises(ValueError, match="X must be a table: its rows differ in length"):
        twin.fit([*LISTED, [1.0]])
    assert len(ledger.entries) == 1  # which rows there are is no public mistake


@pytest.mark.parametrize("known", [np.log1p, np.sign, np.clip, np.round, expit, None])
def test_functions_of_single_numbers_are_known(known):
    assert follows_from_rows(FunctionTransformer(known))
    assert not follows_from_rows(FunctionTransformer(known, kw_args={"out": X})) or known is None


class OwnHasher(HashingVectorizer):
    pass


@pytest.mark.parametrize(
    "step",
    [
        *map(FunctionTransformer, (np.cumsum, np.add.reduce, np.frompyfunc(float, 1, 1), float)),
        FunctionTransformer(np.exp, kw_args={"where": X > 0}),
        SparseRandomProjection(),
        HashingVectorizer(tokenizer=str.split),
        HashingVectorizer(input="filename"),
        OwnHasher(),
    ],
    ids=range(9),
)
def test_others_are_not(step):
    assert not follows_from_rows(step)
    with pytest.raises(ValueError, match="no private counterpart for"):
        privatize(make_pipeline(step, KMeans(2)))


# -- what is printed -------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["made", "fitted", "cloned", "pickled", "chosen"])
def test_a_step_that_is_allowed_takes_the_guarantee_away(form):
    theirs = make_pipeline(StandardScaler(), MinMaxScaler(), KMeans(2))
    with pytest.warns(PrivacyWarning):
        twin = privatize(theirs, epsilon=1.0, allow=["minmaxscaler"])
    twin = {
        "made": lambda: twin,
        "fitted": lambda: twin.fit(X),
        "cloned": lambda: clone(twin),
        "pickled": lambda: pickle.loads(pickle.dumps(twin)),
        "chosen": lambda: (
            GridSearchCV(twin, {"kmeans__n_clusters": [2]}, cv=2).fit(X).best_estimator_
        ),
    }[form]()
    learned = "learned" if form in ("fitted", "chosen") else "would learn"
    words = f"MinMaxScaler {learned} from private rows; privatize(...) replaces"
    for text in (repr(twin), twin._repr_html_()):
        assert "no guarantee: " in text and words in text and "-DP" not in text
    assert "cost (1, 1e-06)-DP" in privatize(make_pipeline(PCA(2), KMeans(2)))._repr_html_()
