"""Candidates for every parameter, made from signatures and docstrings."""

import copy
import datetime
import decimal
import fractions
import functools
import inspect
import re

import numpy as np
import pandas as pd
from configurations import ESTIMATORS
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_dp import PrivacyBudget
from sklearn_dp.cluster import FarBallsOptions, FriendlyCoreOptions
from sklearn_dp.federated import FederatedOptions
from sklearn_dp.mixture import KTupleOptions, PartitionOptions


class Rude(ClusterMixin, BaseEstimator):
    """An inner estimator that prints, warns, raises and leaves with its rows."""

    def __init__(self, how="raise"):
        self.how = how

    def fit(self, X, y=None):
        text = f"{X.ravel()[:3]}"
        if self.how == "print":
            print(text)
        elif self.how == "warn":
            import warnings

            warnings.warn(text, stacklevel=1)
        elif self.how == "exit":
            raise SystemExit(text)
        elif self.how == "raise":
            raise KeyError(text)
        elif self.how == "change":
            X[:] = 0
        return self


JUNK = {
    "None": None,
    "True": True,
    "False": False,
    "zero": 0,
    "one": 1,
    "two": 2,
    "minus one": -1,
    "a hundred": 100,
    "ten million": 10**7,
    "2**31": 2**31,
    "2**63": 2**63,
    "2**70": 2**70,
    "10**400": 10**400,
    "-2**63": -(2**63),
    "0.0": 0.0,
    "-0.0": -0.0,
    "half": 0.5,
    "1.0": 1.0,
    "1.5": 1.5,
    "-1.5": -1.5,
    "tiny": 1e-320,
    "1e-155": 1e-155,
    "1e-9": 1e-9,
    "1e9": 1e9,
    "1e155": 1e155,
    "1e308": 1e308,
    "nan": np.nan,
    "inf": np.inf,
    "-inf": -np.inf,
    "float32": np.float32(0.25),
    "float16 max": np.float16(65504),
    "int64": np.int64(3),
    "uint8": np.uint8(255),
    "np.bool": np.bool_(True),
    "array of one": np.array([2.0]),
    "0-d array": np.array(2.0),
    "array": np.array([1.0, 2.0]),
    "int array": np.arange(3),
    "empty array": np.array([]),
    "text array": np.array(["a", "b"]),
    "a matrix": np.eye(2),
    "fraction": fractions.Fraction(1, 3),
    "decimal": decimal.Decimal("0.5"),
    "complex": 1 + 1j,
    "empty text": "",
    "text": "junk",
    "auto": "auto",
    "number text": "1",
    "nul": "a\0b",
    "surrogate": "\ud800",
    "bytes": b"auto",
    "empty tuple": (),
    "pair": (0.0, 1.0),
    "reversed pair": (1.0, -1.0),
    "pair of nan": (np.nan, 1.0),
    "pair of None": (None, None),
    "pair of texts": ("a", "b"),
    "pair of zeros": (0, 0),
    "pair of huge ints": (-(10**400), 10**400),
    "pair 1e308": (-1e308, 1e308),
    "pair tiny": (0.0, 1e-310),
    "pair nested": ((0.0,), [[1.0]]),
    "triple": (1, 2, 3),
    "list": [0.0, 1.0],
    "empty list": [],
    "nested list": [[1], [2, 3]],
    "dict": {"a": 1},
    "empty dict": {},
    "set": {1, 2},
    "frozenset": frozenset({"auto"}),
    "range": range(2),
    "object": object(),
    "a class": dict,
    "KMeans class": KMeans,
    "a function": len,
    "a module": np,
    "NaT": np.datetime64("NaT"),
    "date": datetime.date(2020, 1, 1),
    "time span": np.timedelta64(3, "s"),
    "NA": pd.NA,
    "masked": np.ma.masked,
    "ellipsis": ...,
    "iterator": iter((0, 1)),
    "an error": ValueError("no"),
    "series": pd.Series([1.0, 2.0]),
    "random state": np.random.RandomState(0),
    "a budget": PrivacyBudget(epsilon=1.0, delta=0.0),  # noqa: NPY002
    "rude": Rude(),
    "rude text": Rude("print"),
}
"""Values of every kind, some of which are right for some parameters."""

_KMEANS = KMeans(2, n_init=1, max_iter=2)
_SPECIAL = {
    "epsilon": [None, 0.01, 1.0, 30.0, 1000.0],
    "rho": [None, 0.1, 3.0],
    "delta": [1e-6, 1e-2],
    "bounds": [None, 1.0, 8000.0, (-8000.0, 8000.0), (0, 1), (-1e100, 1e100), 1e-100],
    "eps": [0.1, 1.0, 1000.0],
    "min_samples": [0.5, 5, 100],
    "n_jobs": [None, 1],
    "max_weight": [None, 1.0, 3, 0.5],
    "random_state": [None, 0, np.random.default_rng(3)],
    "ledger": [None],
    "n_clusters": [1, 2, 3, "auto", (1, 4)],
    "n_topics": [1, 2, 3, "auto", (1, 4)],
    "vocabulary": [None, ["x0", "x1", "word"], ("a",)],
    "stop_words": [None, "english", ["word"]],
    "keywords_per_text": [1, 2, 5],
    "n_keywords": [1, 3, 10],
    "values": [None, ["a", "b"], (0, 1), [1.5]],
    "by": [None, 0, -1, "x"],
    "min_size": [None, 1, 50],
    "init": [None, np.eye(2), np.full((3, 2), 1e300), [[0.5], [-3]]],
    "n_components": [1, 2, 0.9, None, "auto", (1, 2)],
    "n_tuples": ["auto", 2, 4],
    "n_blocks": ["auto", 4, 12],
    "n_points": [0.5, 2, 8, 0.9],
    "sample_size": [4, 64, 2**15],
    "n_init": [1, 2],
    "min_radius": [None, 1.0, 1e-3],
    "min_weight": [None, 0.1, 0.9],
    "diameter": [None, 1.0, 1e-3, 1e6],
    "diameter_range": [(1e-9, 1e9), (1.0, 1.0), [0.1, 10.0]],
    "agreement": [0.5, 0.2, 0.9],
    "output_bounds": [None, 3.0, (-8000.0, 8000.0)],
    "classes": [None, [0, 1], ("a", "b", "c")],
    "output": [("center_",), ("coef_", "intercept_"), ("components_",), ["mean_"]],
    "fix_signs": [(), ("components_",)],
    "estimator": [
        None,
        _KMEANS,
        Ridge(),
        LogisticRegression(),
        PCA(1),
        StandardScaler(),
        Rude(),
        Rude("exit"),
        Rude("warn"),
        Rude("print"),
    ],
    "inner": [
        None,
        _KMEANS,
        make_pipeline(StandardScaler(), _KMEANS),
        GaussianMixture(2),
        Rude(),
        Rude("exit"),
        Rude("warn"),
        Rude("print"),
        Rude("change"),
    ],
    "quantiles": [(0.25, 0.5, 0.75), [0.5], np.array([0.01, 0.99])],
    "quantile_range": [(25.0, 75.0), [1, 99]],
    "n_lloyd": ["auto", 0, 1, 3],
    "max_rows_per_client": [None, 1, 5],
    "n_honest": [None, 1, 3, 10**7],
    "options": [
        None,
        FederatedOptions(),
        FederatedOptions("laplace"),
        FederatedOptions(client_bounds={}),
        FederatedOptions(client_bounds={"second moment": 0.2}),
        FederatedOptions(client_bounds={"no such thing": 0.5}),
        FriendlyCoreOptions(),
        FarBallsOptions(),
        FarBallsOptions(1.5),
        KTupleOptions(),
        PartitionOptions(),
    ],
}
"""Small and right for the parameter, unless a second one has something against it."""


@functools.cache
def choices(cls, name):
    """The words that docstrings allow for a parameter: those of the class, or of another one."""
    classes = [*cls.__mro__, *ESTIMATORS.values()]
    for base in classes:
        line = re.search(rf"^ *{name} : (\{{.*?\}})", base.__doc__ or "", re.M | re.S)
        if line:
            return re.findall(r'"([^"]+)"', line.group(1))
    return []


def good_options(cls):
    """Candidates for each parameter of a constructor; every parameter has some."""
    found = {}
    for name, parameter in inspect.signature(cls).parameters.items():
        found[name] = [*choices(cls, name), *_SPECIAL.get(name, [])]
        if isinstance(parameter.default, bool):
            found[name] += [True, False]
        assert found[name], f"no candidates for {cls.__name__}({name}=...): add some to _SPECIAL"
    return found


def fresh(value):
    """A copy of what remembers how often it was asked; a failure must come again."""
    keeps_count = (np.random.RandomState, np.random.Generator, type(iter(())))
    return copy.deepcopy(value) if isinstance(value, keeps_count) else value


def options(cls, *, most_good=4, most_junk=2):
    """A strategy for keyword arguments of a constructor."""
    good = good_options(cls)
    names = st.sampled_from(sorted(good))

    def build(chosen, spoiled):
        built = {
            name: values[number % len(values)]
            for name, number in chosen.items()
            for values in (good[name],)
        }
        built |= {name: JUNK[kind] for name, kind in spoiled.items()}
        return {name: fresh(value) for name, value in built.items()}

    return st.builds(
        build,
        st.dictionaries(names, st.integers(0, 11), max_size=most_good),
        st.one_of(st.just({}), st.just({}), st.dictionaries(names, junk_kinds, max_size=most_junk)),
    )


junk_kinds = st.sampled_from(sorted(JUNK))
