"""A session: an estimator is made, fitted, asked and changed, all of it at random."""

import copy
import inspect
import pickle

import numpy as np
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, clone
from sklearn.cluster import KMeans
from sklearn.covariance import EmpiricalCovariance
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture

from .arguments import (
    JUNK,
    Groups,
    Table,
    any_groups,
    any_table,
    good_table,
    junk,
    junk_or,
    options,
    seeds,
    widths,
)
from .runner import problems, run, wrong_numbers

CALLS = 16
"""Calls of a session, after the constructor."""

_FITS = ("fit", "fit_predict", "fit_transform", "fit_blocks", "fit_partitions", "fit_clients")
_FOREIGN = (
    "clone",
    "pickle",
    "deepcopy",
    "repr",
    "html",
    "tags",
    "set_callbacks",
    "get_feature_names_out",
)
"""What scikit-learn or Python does: errors there name what they like."""

_OF_MODELS = (
    "predict",
    "predict_proba",
    "transform",
    "score_samples",
    "decision_function",
    "mahalanobis",
)
_WORDS = (
    "X",
    "parts",
    "y",
    "groups",
    "features",
    "estimator",
    "piece",
    "pieces",
    "client",
    "transform",
)


def public_methods(cls):
    """Names of all that a user may call on an instance."""
    return sorted(
        name for name in dir(cls) if not name.startswith("_") and callable(getattr(cls, name, None))
    )


# -- what can be done besides ----------------------------------------------------------------------


def _pickled(estimator):
    return pickle.loads(pickle.dumps(estimator))


def _shown(estimator):
    return repr(estimator), str(estimator), estimator._repr_mimebundle_()


def _html(estimator):
    report = getattr(estimator, "privacy_report_", None)
    return estimator._repr_html_() + (report._repr_html_() if report is not None else "")


def _tags(estimator):
    return estimator.__sklearn_tags__(), dir(estimator)


def _report(estimator):
    report = getattr(estimator, "privacy_report_", None)
    return None if report is None else (repr(report), report.to_frame(), report.warnings)


def _attributes(estimator):
    return {
        name: getattr(estimator, name, None) for name in dir(estimator) if not name.startswith("__")
    }


EXTRA = {
    "clone": clone,
    "pickle": _pickled,
    "deepcopy": copy.deepcopy,
    "repr": _shown,
    "html": _html,
    "tags": _tags,
    "report": _report,
    "attributes": _attributes,
}


# -- arguments by name -----------------------------------------------------------------------------


_KINDS = ("bound", "center", "moment", "weights", "average", "lloyd")
_BY_NAME = {
    "deep": junk_or(True, False),
    "simultaneous": junk_or(True, False),
    "n_features": junk_or(1, 2, 3, 20),
    "timeout": junk_or(None, 5.0),
    "day": junk_or(None, None, 1, 2, "2026-03-01"),
    "half_life": junk_or(None, None, 10.0),
    "n_days": junk_or(1, 1, 3),
    "level": junk_or(0.95, 0.5, 0.999),
    "labels": junk_or(None, None, [0, 0], [0, 1, 1]),
    "attribute": junk_or(None, "cluster_centers_", "inertia_", "labels_", "no_such_thing"),
    "unit": junk_or("row", "group"),
    "n_samples": junk_or(1, 2, 5),
    "epsilon": junk_or(None, None, 1.0, 100.0),
    "rho": junk_or(None, None, 0.5),
    "delta": junk_or(1e-6, 1e-2),
    "max_distance": junk_or(None, 1.0, 1e-3, 1e6),
    "random_state": junk_or(0, 1),
    "ledger": junk_or(None, None),
    # Anything else is stored unseen by scikit-learn, which then chokes on it in every transform.
    "transform": st.sampled_from([None, "default", "pandas", "polars", "junk"]),
    "input_features": junk_or(None, ["a", "b", "c"], np.array(["a", "b", "c"], dtype=object)),
    "callbacks": junk,
    "estimator": junk_or(KMeans(2), KMeans, PCA(0.5), GaussianMixture(), EmpiricalCovariance()),
    "comp_cov": st.one_of(junk, widths.map(np.eye), widths.map(np.eye)),
    "sample_weight": st.one_of(junk, st.just(None), st.just(0.5), widths.map(np.ones)),
    "norm": junk_or("frobenius", "spectral"),
    "scaling": junk_or(True, False),
    "squared": junk_or(True, False),
}


def _y(seed, n, kind):
    rng = np.random.default_rng(seed)
    return {
        "numbers": rng.random(n),
        "labels": rng.integers(0, 2, n),
        "texts": np.array(["a", "b"])[rng.integers(0, 2, n)],
        "column": rng.random((n, 1)),
        "short": rng.random(max(n - 1, 0)),
        "matrix": rng.random((n, 2)),
        "huge": [10**400] * n,
        "nan": np.full(n, np.nan),
        "None inside": [None] * n,
        "secret texts": ["person 7319"] * n,
    }[kind]


_TARGETS = st.sampled_from(
    [
        "numbers",
        "labels",
        "texts",
        "column",
        "short",
        "matrix",
        "huge",
        "nan",
        "None inside",
        "secret texts",
    ]
)


class Session:
    """One estimator and what is done with it.

    Parameters
    ----------
    cls : class
    data : the interactive strategy of hypothesis
    tally : Tally
    """

    def __init__(self, cls, data, tally):
        self.cls, self.data, self.tally = cls, data, tally
        self.options = {"random_state": 0, **data.draw(options(cls), label="options")}
        if self.options["random_state"] is None:  # a failure must come again
            self.options["random_state"] = 0
        self.estimator = cls(**self.options)
        self.width = data.draw(widths, label="features")
        self.methods = [*public_methods(cls), *EXTRA]
        self.table = None

    def play(self, calls=CALLS):
        """Fit, and then call methods at random."""
        modes = st.sampled_from(["warn", "warn", "raise", "ignore"])
        mode = self.data.draw(modes, label="errstate")
        with np.errstate(all=mode):
            self.step("fit")
            for _ in range(calls - 1):
                self.step(self.data.draw(st.sampled_from(self.methods), label="method"))

    def step(self, name):
        """One call, and everything that is asked of it."""
        if name in EXTRA:
            function, arguments = EXTRA[name], {"estimator": self.estimator}
        else:
            if not hasattr(self.estimator, name):
                return
            function = getattr(self.estimator, name)
            arguments = self.arguments(name, function)
        outcome = run(function, **arguments)
        self.tally.add(name, outcome)
        found = problems(outcome, self.names(name, function), allowed=self.allowed(name))
        if outcome.error is None:
            found += self.wrong_results(name, outcome.value, arguments)
        assert not found, f"{self.cls.__name__}.{name}: {'; '.join(found)}"

    def names(self, name, function):
        """What an error may name: arguments, parameters, or the words of the package."""
        return {*_WORDS, *inspect.signature(self.cls).parameters, *_parameters(function)}

    def allowed(self, name):
        """Errors that docstrings name, or that are scikit-learn's or Python's own."""
        if name in _FOREIGN or name.endswith("_request"):
            return (TypeError, ValueError, RuntimeError, AttributeError, pickle.PicklingError)
        if name in ("set_params", "get_params"):
            return (ValueError, TypeError, AttributeError)
        return (RuntimeError,) if name == "fit_clients" else ()

    # -- arguments --------------------------------------------------------------------------------

    def arguments(self, name, function):
        """Keyword arguments for a method, from the names in its signature."""
        if name == "set_params":
            return self.data.draw(options(self.cls, most_junk=1), label="parameters")
        if name.endswith("_request"):
            return {
                key: self.data.draw(junk_or(True, None), label=key) for key in _parameters(function)
            }
        found = {}
        for key in _parameters(function):
            if key != "y" or self.data.draw(st.booleans()):
                found[key] = self.argument(name, key)
        return found

    def argument(self, method, key):
        """One argument; of tables, the one that was drawn last is remembered."""
        draw = self.data.draw
        if key == "X":
            self.table = draw(any_table(self.width), label=f"{method}(X)")
            return self.table.make()
        if key == "groups":
            groups = draw(any_groups, label="groups")
            return groups.make(self.table.n) if isinstance(groups, Groups) else None
        if key == "by":
            keys = np.array(["a", "b", "c"])[np.arange(self.table.n) % 3]
            return draw(junk_or(None, None, keys, keys.tolist()), label="by")
        if key == "texts":
            texts = ["late parcel", ["a", "word"], None, "", 3, "x0\0\ud800"]
            texts = [texts[i % 6] for i in range(self.table.n)]
            return draw(junk_or(None, None, texts, tuple(texts), texts[1:]), label="texts")
        if key == "y":
            return _y(draw(seeds), self.table.n, draw(_TARGETS, label="y"))
        if key == "X_server":
            table = draw(st.one_of(st.none(), st.none(), any_table(self.width)), label="X_server")
            return None if table is None else table.make()
        if key == "clients":
            return draw(junk_or(*"abcdef").map(self._clients), label="clients")
        if key in ("pieces", "parts"):
            pieces = draw(st.lists(any_table(self.width), max_size=3), label=key)
            return draw(junk_or([table.make() for table in pieces]))
        if key not in _BY_NAME:
            raise AssertionError(f"{self.cls.__name__}.{method}({key}=...): no strategy for it")
        return draw(_BY_NAME[key], label=key)

    def _clients(self, which):
        """Clients of several kinds, by a letter."""
        rows = Table("array", "clusters", 0, 5, self.width).make()
        kinds = {
            "a": [rows] * 3,
            "b": [lambda: rows, rows],
            "c": {"first": rows},
            "d": [rows, "no rows"],
            "e": [rows[:, :1], rows],
            "f": [_Broken(), rows],
        }
        return kinds.get(which, which) if isinstance(which, str) else which

    # -- results ----------------------------------------------------------------------------------

    def wrong_results(self, name, value, arguments):
        """What a call that went well should not have returned."""
        if name in _FITS:
            return self._wrong_fit(value, name)
        if name == "clone":
            same = value.get_params(deep=False).keys() == self.options.keys() or not self.options
            return [] if same or isinstance(value, BaseEstimator) else ["a clone of another kind"]
        if name in _OF_MODELS and self.table.plain:
            found = [f"{name} of finite rows is not finite"] if wrong_numbers(value) else []
            if len(value) != self.table.n:
                found.append(f"{name} of {self.table.n} rows has {len(value)}")
            return found
        return []

    def _wrong_fit(self, value, name):
        model = self.estimator
        found = (
            []
            if name not in ("fit", "fit_blocks", "fit_clients") or value is model
            else [f"{name} does not return the estimator"]
        )
        for key, array in vars(model).items():
            if not key.endswith("_") or not isinstance(array, np.ndarray):
                continue
            if key.endswith("_std_error_"):  # infinite where nothing was found
                array = np.where(np.isposinf(array), 0.0, array)
            if key.startswith("sizes_"):  # nan where the estimator of segments releases none
                array = np.where(np.isnan(array), 0.0, array)
            if wrong_numbers(array):
                found.append(f"{key} is not finite")
        if model.status_ not in ("ok", "caution", "unusable"):
            found.append("no status_")
        return found


class _Broken:
    """A client whose update tells what it holds."""

    def update(self, kind, message):
        raise RuntimeError("person 7319 is ill")


def _parameters(function):
    """Names of the arguments of a method."""
    return [
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        and not name.startswith("_")
    ]


__all__ = ["CALLS", "EXTRA", "JUNK", "Session", "good_table", "public_methods"]
