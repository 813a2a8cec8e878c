"""What is private in scikit-learn, or not in all its versions, does what it is used for."""

import copy
import pickle
import warnings
from typing import ClassVar

import joblib
import numpy as np
import pytest
from estimators import all_estimators
from sklearn.base import BaseEstimator, clone
from sklearn.cluster import KMeans
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, cross_validate
from sklearn.pipeline import make_pipeline, make_union

import sklearn_dp
from sklearn_dp import (
    DPKMeans,
    PublicEncoder,
    PublicScaler,
    SampleAndAggregate,
    _sklearn_compat,
    privatize,
)
from sklearn_dp._sklearn_compat import Progress, fits_around, with_callbacks
from sklearn_dp.model_selection import DPGridSearch


def test_a_fit_with_callbacks_is_the_same_fit(monkeypatch):
    def fit(self, X):
        """Words."""
        return X

    assert with_callbacks(fit).__doc__ == "Words."
    monkeypatch.setattr(_sklearn_compat, "_with_callbacks", None)  # before 1.9
    assert with_callbacks(fit) is fit


class Context:
    """As scikit-learn's: notes what is called."""

    def __init__(self, calls, name):
        self.calls, self.name = calls, name

    def subcontext(self, *, task_name):
        return Context(self.calls, task_name)

    def call_on_fit_task_begin(self, *, estimator):
        self.calls.append(("begin", self.name, estimator))

    def call_on_fit_task_end(self, *, estimator):
        self.calls.append(("end", self.name, estimator))
        return True  # callbacks may ask to stop: nobody listens


def test_callbacks_learn_the_names_of_steps_and_nothing_else():
    calls = []

    class Told:
        def _init_callback_context(self, *, max_subtasks):
            assert max_subtasks is None
            return Context(calls, "fit")

    told = Told()
    progress = Progress(told)
    progress("radius")
    progress.finish()
    steps = [("begin", "fit"), ("begin", "radius"), ("end", "radius"), ("end", "fit")]
    assert calls == [(*step, told) for step in steps]


class Heard:
    """A callback of scikit-learn that notes each call; copies of it share the notes."""

    calls: ClassVar = []

    def setup(self, estimator, context):
        self.calls.append(estimator)

    on_fit_task_begin = on_fit_task_end = teardown = lambda self, *values, **options: None


@pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.PrivacyWarning")
def test_callbacks_of_estimators_inside_a_fit_are_not_told_of_what_is_no_release():
    """How many runs a search makes is secret, and blocks are fitted without noise."""
    pytest.importorskip("sklearn.callback")
    X = np.random.default_rng(0).normal(size=(60, 2))
    inner = DPKMeans(2, bounds=3.0).set_callbacks(Heard())
    Heard.calls.clear()
    DPGridSearch(inner, {"n_clusters": [2, 3]}, epsilon=5.0, selection="best", random_state=0).fit(
        X
    )
    inner.set_params(epsilon=50.0)
    SampleAndAggregate(
        inner, output=("cluster_centers_",), n_blocks=4, epsilon=5.0, random_state=0
    ).fit(X)
    assert not Heard.calls
    inner.fit(X)
    assert Heard.calls == [inner]


# -- versions in pickles ---------------------------------------------------------------------------

SAVED = [
    *(cls() for _, cls in all_estimators()),
    PublicScaler(([0.0], [1.0])),
    PublicEncoder([]),
    DPGridSearch(DPKMeans(), {"n_clusters": [2]}),
    privatize(make_pipeline(KMeans(2)), epsilon=1.0),
]


@pytest.mark.parametrize("estimator", SAVED, ids=lambda each: type(each).__name__)
def test_a_pickle_has_the_version_and_a_copy_of_this_one_is_silent(estimator, tmp_path):
    assert estimator.__getstate__()["_sklearn_dp_version"] == sklearn_dp.__version__
    before = {*vars(estimator)}
    with warnings.catch_warnings():
        warnings.simplefilter("error", InconsistentVersionWarning)
        joblib.dump(estimator, tmp_path / "model")
        for twin in (
            *(pickle.loads(pickle.dumps(estimator, protocol)) for protocol in (2, 5)),
            joblib.load(tmp_path / "model"),
            copy.copy(estimator),
            copy.deepcopy(estimator),
            clone(estimator),
        ):
            assert type(twin) is type(estimator) and {*vars(twin)} <= before
            assert "_sklearn_dp_version" not in vars(twin)


@pytest.mark.parametrize("version", ["0.0.9", "9.9", None])
@pytest.mark.parametrize("estimator", SAVED, ids=lambda each: type(each).__name__)
def test_a_pickle_of_another_version_is_warned_of(estimator, version, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(_sklearn_compat, "__version__", version)
        saved = pickle.dumps(estimator)
    if version is None:  # nothing was kept
        monkeypatch.setattr(_sklearn_compat, "_VERSION", "another name")
    with pytest.warns(InconsistentVersionWarning) as caught:
        twin = pickle.loads(saved)
    names = {each.message.estimator_name for each in caught}
    assert type(estimator).__name__ in names and type(twin) is type(estimator)
    text = str(caught[-1].message)
    assert (version or "unknown") in text and f"{sklearn_dp.__version__} of sklearn_dp" in text


class Searched(BaseEstimator):
    """Keeps what was around its fits."""

    found: ClassVar = []

    def __init__(self, a=1):
        self.a = a

    def fit(self, X, y=None):
        self.found.append([(type(each).__name__, place) for each, place in fits_around()])
        return self

    def transform(self, X):
        return X

    def score(self, X, y=None):
        return 0.0


@pytest.mark.parametrize("kind", [GridSearchCV, RandomizedSearchCV])
def test_a_fit_knows_what_is_around_it(kind):
    Searched.found.clear()
    pipeline = make_pipeline("passthrough", make_union(Searched(), "drop"), "passthrough")
    pipeline.set_params(featureunion__searched=make_pipeline(Searched()))
    kind(pipeline, {"featureunion__searched__searched__a": [1]}, cv=2, scoring=lambda *_: 0.0).fit(
        np.zeros((8, 1))
    )
    around = [("Pipeline", 0), ("FeatureUnion", 0), ("Pipeline", 1), (kind.__name__, None)]
    assert Searched.found == [around] * 3
    cross_validate(Searched(), np.zeros((8, 1)), cv=2)
    Searched().fit(None)
    assert Searched.found[3:] == [[]] * 3
