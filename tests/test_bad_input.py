"""Bad input: a typed error that names the parameter and quotes no data."""

import re
from contextlib import contextmanager
from functools import cache, partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from estimators import all_estimators
from scipy.sparse import coo_array, csc_matrix, csr_array
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.utils import get_tags

from sklearn_dp._base import OpenBounds
from sklearn_dp.ensemble import SampleAndAggregate
from sklearn_dp.exceptions import BudgetExceededError, LedgerError
from sklearn_dp.federated import FederatedOptions
from sklearn_dp.ledger import PrivacyBudget, PrivacyLedger
from sklearn_dp.mean import FriendlyMean
from sklearn_dp.preprocessing import DPQuantiles

ESTIMATORS = dict(all_estimators())
SECRET = 7319.4825  # in all the data
X = np.full((12, 3), SECRET) + np.arange(36).reshape(12, 3)
HALF = len(X) // 2


def with_entry(value, dtype=None):
    spoiled = X.astype(dtype or X.dtype)
    spoiled[HALF, 1] = value
    return spoiled


def frame(**columns):
    return pd.DataFrame(X, columns=["a", "b", "c"]).assign(**columns)


class Stated:
    """An array by protocol, with a shape of its own."""

    def __init__(self, *shape):
        self.shape = shape

    def __len__(self):
        return len(X)

    def __array__(self, dtype=None, copy=None):
        return np.asarray(X, dtype=dtype)


class Unreadable(Stated):
    """One that fails, with data in its words."""

    def __init__(self, error, *shape):
        super().__init__(*shape)
        self.error = error

    def __array__(self, dtype=None, copy=None):
        raise self.error


class Shapeless(Stated):
    """One that fails when it is asked for its shape."""

    def __init__(self):
        pass

    @property
    def shape(self):
        raise KeyError(SECRET)


ANY = (TypeError, ValueError)
"""Where what scikit-learn looks at first decides."""

VALUES = {
    *("nan", "inf", "minus inf", "too large", "strings", "text", "object", "object text"),
    *("None inside", "NA inside", "a list inside", "complex inside", "nested"),
    *("polars texts", "a column of texts", "a column with NA"),
}
"""What is among the values of a column of categories: any."""

BAD_DATA = {
    "nan": (with_entry(np.nan), ValueError, "NaN"),
    "inf": (with_entry(np.inf), ValueError, "infinity"),
    "minus inf": (with_entry(-np.inf), ValueError, "infinity"),
    "too large": (with_entry(10**400, object), ValueError, "X"),
    "complex": (X + 1j, ValueError, "[Cc]omplex"),
    "strings": (X.astype(str), ValueError, "X must be numeric"),
    "text": (np.char.add(X.astype(str), "x"), ValueError, "X must be numeric"),
    "object": (with_entry(object(), object), TypeError, "argument must be"),
    "object text": (with_entry(f"{SECRET}m", object), ValueError, "X must be numeric"),
    "sparse": (
        csr_array(X),
        TypeError,
        "X is sparse.*SparseRandomProjection.*neither costs privacy",
    ),
    "sparse nan": (csr_array(with_entry(np.nan)), ANY, "NaN|sparse"),
    "sparse inf": (csr_array(with_entry(np.inf)), ANY, "infinity|sparse"),
    "sparse complex": (csr_array(X + 1j), ANY, "[Cc]omplex|sparse"),
    "sparse line": (coo_array(X[0]), ANY, "X"),
    "one dimension": (X[:, 0], ValueError, "2D"),
    "three dimensions": (X[None], ValueError, "dim 3"),
    "a number": (SECRET, ValueError, "2D"),
    "dict": ({SECRET: X}, (TypeError, ValueError), "X|2D|argument"),
    "columns in a dict": ({"a": X[:, 0]}, (TypeError, ValueError), "X|2D|argument"),
    "generator": ((row for row in X), (TypeError, ValueError), "X|2D|argument"),
    "set": (set(X[:, 0]), (TypeError, ValueError), "X|2D|argument"),
    "None": (None, ValueError, "2D"),
    "ragged": ([[SECRET], [SECRET, 1.0]], ValueError, "X must be|X has 1 features"),
    "ragged arrays": ([*X, X[0, :2]], ValueError, "X must be"),
    "nested": ([[[value] for value in row] for row in X], ValueError, "dim 3"),
    "None inside": (with_entry(None, object), ANY, "X"),
    "NA inside": (with_entry(pd.NA, object), ANY, "Input X contains NaN"),
    "a list inside": (with_entry([SECRET], object), ANY, "X must be"),
    "complex inside": (with_entry(SECRET + 1j, object), ANY, "X must be numeric"),
    "matrix of old": (csc_matrix(X), TypeError, "sparse"),
    "np.matrix": (np.asmatrix(X), TypeError, "X must be"),
    "dates": (X.astype("M8[s]"), ValueError, "X"),
    "fields": (np.array([tuple(row) for row in X], "f8,f8,f8"), ANY, "X must"),
    "bytes": (X.tobytes(), ANY, "X"),
    "a class": (np.ndarray, ANY, "X"),
    "a function": (frame, ANY, "X"),
    "columns that are not there": (Stated(12, 4), ValueError, "X"),
    "less than no columns": (Stated(12, -3), ValueError, "X"),
    "too many columns": (Stated(12, 10**30), ValueError, "X"),
    "an error of its own": (Unreadable(RuntimeError(SECRET), 12, 3), ValueError, "X could not be"),
    "an error when it is read": (Unreadable(OSError(SECRET), 12, 3), ValueError, "X could not be"),
    "an error for its shape": (Shapeless(), ValueError, "X could not be read"),
    "polars expression": (pl.col("a"), ANY, "X"),
    "iterator": (iter(X.tolist()), ANY, "X"),
    "frozenset": (frozenset(X[:, 0]), ANY, "X|2D"),
    "range": (range(3), ValueError, "2D"),
    "series": (pd.Series(X[:, 0]), ANY, "X|2D"),
    "polars texts": (pl.DataFrame(np.char.add(X.astype(str), "x")), ANY, "X must be numeric"),
    "a column of texts": (frame(a=f"{SECRET}m"), ANY, "X must be numeric"),
    "a column of dates": (frame(a=pd.Timestamp("2020-01-01")), ANY, "X"),
    "a column with NA": (frame().astype("Float64").mask(frame() > X.mean()), ANY, "X"),
    "zero features": (X[:, :0], ValueError, "0 feature"),
    "zero rows": (X[:0], ValueError, "0 sample"),
}

SPARSE = {"sparse", "matrix of old"}
"""Good data, for estimators that take them."""

BAD_PARAMETERS = {
    "epsilon zero": ({"epsilon": 0}, "epsilon"),
    "epsilon negative": ({"epsilon": -1.0}, "epsilon"),
    "epsilon nan": ({"epsilon": np.nan}, "epsilon"),
    "epsilon inf": ({"epsilon": np.inf}, "epsilon"),
    "epsilon text": ({"epsilon": "1"}, "epsilon"),
    "epsilon bool": ({"epsilon": True}, "epsilon"),
    "epsilon complex": ({"epsilon": 1 + 0j}, "epsilon"),
    "epsilon beyond conversions": ({"epsilon": 1e308}, "epsilon"),
    "epsilon too small": ({"epsilon": 1e-300}, "epsilon"),
    "rho beyond conversions": ({"rho": 1e308}, "rho"),
    "delta text": ({"delta": "tiny"}, "delta"),
    "delta None": ({"delta": None}, "delta"),
    "delta subnormal": ({"delta": 5e-324}, "delta"),
    "bounds dict": ({"bounds": {"low": 0, "high": 1}}, "bounds"),
    "bounds bool": ({"bounds": True}, "bounds"),
    "bounds dates": ({"bounds": (np.zeros(3, "M8[D]"), np.ones(3, "M8[D]"))}, "bounds"),
    "n_jobs text": ({"n_jobs": "all"}, "n_jobs"),
    "random_state float": ({"random_state": 1.0}, "random_state"),
    "options dict": ({"options": {"count_noise": "laplace"}}, "options"),
    "min_radius huge": ({"min_radius": 1e155}, "min_radius"),
    "client_bounds array": (
        {"options": FederatedOptions(client_bounds=np.array([0.5, 0.5]))},
        "options",
    ),
    "estimator text": ({"estimator": "auto"}, "estimator"),
    "rho zero": ({"rho": 0.0}, "rho"),
    "delta zero": ({"delta": 0.0}, "delta"),
    "delta one": ({"delta": 1.0}, "delta"),
    "delta nan": ({"delta": np.nan}, "delta"),
    "both": ({"epsilon": 2.0, "rho": 1.0}, "epsilon and rho"),
    "bounds zero": ({"bounds": 0.0}, "bounds"),
    "bounds nan": ({"bounds": np.nan}, "bounds"),
    "bounds huge": ({"bounds": 1e200}, "bounds"),
    "bounds reversed": ({"bounds": (1.0, -1.0)}, "bounds"),
    "bounds reversed in a column": ({"bounds": ([0.0, 1.0, 0.0], [1.0, 0.0, 1.0])}, "bounds"),
    "bounds beyond all": ({"bounds": ([np.inf, 0.0, 0.0], [np.inf, 1.0, 1.0])}, "bounds"),
    "bounds complex": ({"bounds": (np.array(0j), np.array(1j))}, "bounds"),
    "bounds box nan": ({"bounds": (0.0, [1.0, np.nan, 1.0])}, "bounds"),
    "bounds length": ({"bounds": (0.0, [1.0, 1.0])}, "bounds"),
    "bounds zero box": ({"bounds": (0.0, 0.0)}, "bounds"),
    "bounds tiny": ({"bounds": 1e-155}, "bounds"),
    "bounds huge integer": ({"bounds": 10**400}, "bounds"),
    "epsilon huge integer": ({"epsilon": 10**400}, "epsilon"),
    "n_clusters many": ({"n_clusters": 10**7}, "n_clusters"),
    "n_components many": ({"n_components": 10**7}, "n_components"),
    "n_tuples many": ({"n_tuples": 10**7}, "n_tuples"),
    "n_blocks many": ({"n_blocks": 10**7}, "n_blocks"),
    "n_lloyd many": ({"n_lloyd": 10**7}, "n_lloyd"),
    "diameter huge integer": ({"diameter": 10**400}, "diameter"),
    "bounds text": ({"bounds": "1"}, "bounds"),
    "n_jobs zero": ({"n_jobs": 0}, "n_jobs"),
    "n_jobs float": ({"n_jobs": 1.5}, "n_jobs"),
    "random_state text": ({"random_state": "1"}, "random_state"),
    "random_state negative": ({"random_state": -1}, "random_state"),
    "ledger number": ({"ledger": 3}, "ledger"),
    "n_clusters zero": ({"n_clusters": 0}, "n_clusters"),
    "n_clusters negative": ({"n_clusters": -2}, "n_clusters"),
    "n_clusters float": ({"n_clusters": 2.0}, "n_clusters"),
    "n_clusters bool": ({"n_clusters": True}, "n_clusters"),
    "n_tuples one": ({"n_tuples": 1}, "n_tuples"),
    "aggregator": ({"aggregator": "no such thing"}, "aggregator"),
    "fallback": ({"fallback": "none"}, "fallback"),
    "inner": ({"inner": 3}, "inner"),
    "options": ({"options": 3}, "options"),
    "diameter": ({"diameter": 0.0}, "diameter"),
    "diameter_range": ({"diameter_range": (2.0, 1.0)}, "diameter_range"),
    "locate": ({"locate": "here"}, "locate"),
    "refine": ({"refine": "no"}, "refine"),
    "refine array": ({"refine": np.array([True, False])}, "refine"),
}

BAD_GROUPS = {
    "short": X[1:, 0],
    "long": np.append(X[:, 0], SECRET),
    "matrix": X,
    "number": SECRET,
    "nan": with_entry(np.nan)[:, 1],
    "None": [None, *X[1:, 0]],
    "nan object": with_entry(np.nan, object)[:, 1],
    "lists": X[:, :1].tolist(),
    "inf": with_entry(np.inf)[:, 1],
    "NaT": X[:, 0].astype("M8[s]") + np.where(np.arange(len(X)) == HALF, np.timedelta64("NaT"), 0),
    "NA": with_entry(pd.NA, object)[:, 1],
    "frame": pd.DataFrame({"g": X[:, 0]}),
    "categories missing": pd.Categorical([None, *X[1:, 0]]),
    "polars missing": pl.Series([None, *X[1:, 0].tolist()]),
}


@pytest.fixture(params=ESTIMATORS)
def estimator(request):
    return ESTIMATORS[request.param]()


# What the base class does for all alike: one that only fits, one of categories, one with a target,
# one with clients, one with segments, one that reads its columns by name.
DOORS = (
    *("DPKMeans", "DPOneHotEncoder", "SampleAndAggregate", "FederatedDPKMeans", "DPBySegment"),
    "DPTopics",
)


@pytest.fixture(params=DOORS)
def any_door(request):
    return ESTIMATORS[request.param]()


def methods(estimator):
    """What a fitted estimator can do with data."""
    return [name for name in ("predict", "transform", "score") if hasattr(estimator, name)]


def refused(call, kind, match):
    """The error of a call, checked for its type, its words and what it must not hold."""
    with pytest.raises(kind, match=match) as caught:
        call()
    error = caught.value
    while error is not None:
        assert str(SECRET)[:6] not in f"{error!r} {error}"
        error = error.__cause__ or error.__context__


@cache
def fitted_model(cls):
    """One for all tests that only ask it."""
    return cls().fit(X)


@contextmanager
def case(name):
    """Says of which of the many cases of one test a failure is: a test each costs more than it."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"case: {name}")
        raise


def test_bad_data(estimator):
    fitted = fitted_model(type(estimator))
    for name, (data, kind, match) in BAD_DATA.items():
        model = clone(estimator)
        with case(name):
            tags = get_tags(fitted).input_tags
            known = (name in SPARSE and tags.sparse) or (name in VALUES and tags.categorical)
            if known:
                model.fit(data)
                continue
            refused(lambda model=model, data=data: model.fit(data), kind, match)
            if tags.categorical and name.startswith("ragged"):  # rows that are read one by one
                continue
            for method in methods(fitted):
                ask = partial(getattr(fitted, method), data)
                refused(ask, kind, match)


def test_no_setting_of_scikit_learn_turns_a_check_off(estimator):
    """Quantiles of NaN were 1.55e19: what a guarantee or a result relies on is ours to check."""
    tags, ones = get_tags(estimator).input_tags, np.ones(len(X))
    with config_context(assume_finite=True, skip_parameter_validation=True):
        fitted = fitted_model(type(estimator))
        for name in ("nan", "inf", "minus inf", "sparse nan", "a column with NA"):
            data, kind, match = BAD_DATA[name]
            if tags.categorical:
                continue
            for ask in (estimator.fit, *(getattr(fitted, method) for method in methods(fitted))):
                with case(f"{name}: {ask.__name__}"):
                    refused(partial(ask, data), kind, match)
        for bad in (np.nan, np.inf):
            if "max_weight" in estimator.get_params():
                model = clone(estimator).set_params(max_weight=1.0)
                refused(
                    partial(model.fit, X, sample_weight=ones * bad), ValueError, "sample_weight"
                )
            parts = [X, np.full_like(X, bad)]
            if hasattr(estimator, "fit_partitions"):
                refused(partial(estimator.fit_partitions, iter(parts)), ValueError, "X, part 1")
        refused(
            lambda: SampleAndAggregate(LinearRegression()).fit(X, [np.nan, *ones[1:]]),
            ValueError,
            "^y must be",
        )


def test_bad_parameters(estimator):
    """By name, by a fit and by a plan, and before the ledger is charged."""
    kinds, tried = (ValueError, TypeError), 0
    ledger = PrivacyLedger(PrivacyBudget(epsilon=10.0, delta=1e-3))
    no_delta = {"delta zero"} if isinstance(estimator, DPQuantiles) else set()  # is no mistake
    for name, (options, match) in BAD_PARAMETERS.items():
        if options.keys() <= estimator.get_params().keys() and name not in no_delta:
            model = type(estimator)(**{"ledger": ledger, **options})
            tried += 1
            with case(name):
                refused(partial(model.fit, X), kinds, match)
                if not {"ledger", "random_state"} & options.keys():
                    refused(partial(model.privacy_plan, 3), kinds, match)
    assert tried >= 20 and ledger.entries == ()


def test_boxes_of_points_have_finite_sides(estimator):
    if "bounds" in estimator.get_params() and not isinstance(estimator, OpenBounds | FriendlyMean):
        model = type(estimator)(bounds=(0.0, np.inf))
        refused(partial(model.fit, X), ValueError, "bounds: .*finite")


def test_bad_groups(any_door):
    for name, groups in BAD_GROUPS.items():
        with case(name):
            fit = partial(clone(any_door).fit, X, groups=groups)
            refused(fit, (TypeError, ValueError), "groups")


BAD_TARGETS = {
    "none": None,
    "nan": [np.nan, *X[1:, 0]],
    "huge integer": [10**400, *X[1:, 0].tolist()],
    "negative huge integer": [*X[1:, 0].tolist(), -(10**400)],
    "huge integers": np.array([10**400] * len(X), dtype=object),
    "text": [f"{SECRET}m", *X[1:, 0].tolist()],
    "complex": X[:, 0] * 1j,
    "short": X[1:, 0],
    "matrix": X,
}


@pytest.mark.parametrize("name", BAD_TARGETS)
def test_bad_targets(name):
    """A Python integer beyond the floats raises an OverflowError inside NumPy, with no name."""
    model = SampleAndAggregate(LinearRegression(), output=("coef_",))
    refused(lambda: model.fit(X, BAD_TARGETS[name]), ValueError, "^y must be")


def test_a_refused_fit_leaves_no_model(estimator):
    """Not half of one, and none whose columns are those of another table."""
    wide = np.column_stack([X, X])
    for model in (estimator, clone(estimator).fit(X)):
        refused(lambda model=model: model.fit(wide, groups=X[1:, 0]), ValueError, "groups")
        for method in methods(model):
            for table in (X, wide):
                refused(
                    lambda model=model, method=method, table=table: getattr(model, method)(table),
                    NotFittedError,
                    "not fitted",
                )


def test_an_exhausted_ledger_keeps_the_model(any_door):
    ledger = PrivacyLedger(PrivacyBudget(epsilon=1.5, delta=1e-3))
    model = any_door.set_params(ledger=ledger).fit(X)
    report = model.privacy_report_
    refused(lambda: model.fit(X), BudgetExceededError, "ledger")
    assert model.privacy_report_ is report


def test_no_error_tells_the_number_of_rows(any_door):
    rows = np.full((4567, 3), SECRET)
    tables = [rows[:, :0], rows[:, 0], rows[None], [*rows.tolist(), [1.0]], rows.astype(str)[:, 0]]
    for table in tables:
        with pytest.raises(ANY) as caught:
            any_door.fit(table)
        assert not re.search("456[78]", str(caught.value))


def test_wrong_number_of_features_after_the_fit(any_door):
    any_door.fit(X)
    for method in methods(any_door):
        refused(
            lambda method=method: getattr(any_door, method)(X[:, :2]),
            ValueError,
            "X has 2 features",
        )


def test_bad_questions_for_a_plan(any_door):
    for unit in ("person", None, 1):
        refused(partial(any_door.privacy_plan, 3, unit=unit), ValueError, "unit")
    for value, kind in ((0, ValueError), (2.0, TypeError), (-3, ValueError)):
        refused(partial(any_door.privacy_plan, value), kind, "n_features")


class Untouchable:
    """Data that nobody may look at; the shape is public."""

    shape = X.shape

    def __len__(self):
        return len(X)

    def __array__(self, dtype=None, copy=None):
        raise AssertionError(f"the data were read: {SECRET}")


def test_a_path_that_is_no_ledger(any_door, tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("not a ledger, but long enough to be taken for a file of some database")
    for path in (tmp_path / "missing", text, tmp_path):
        any_door.set_params(ledger=str(path))
        refused(lambda: any_door.fit(Untouchable()), LedgerError, "ledger")


def test_an_exhausted_ledger_leaves_the_data_alone(any_door):
    ledger = PrivacyLedger(PrivacyBudget(epsilon=1.5, delta=1e-3))
    any_door.set_params(ledger=ledger).fit(X)
    refused(lambda: any_door.fit(Untouchable()), BudgetExceededError, "ledger")
    assert len(ledger.entries) == 1


def test_a_ledger_of_another_unit(any_door):
    any_door.set_params(ledger=PrivacyLedger(PrivacyBudget(epsilon=9.0, delta=1e-3)))
    refused(lambda: any_door.fit(Untouchable(), groups=np.arange(12)), LedgerError, "unit")
