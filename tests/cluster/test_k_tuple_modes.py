"""DPKTupleKMeans with every aggregator, sampling mode, inner clusterer and form of the data."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClusterMixin, clone

from sklearn_dp import DPKTupleKMeans
from sklearn_dp._aggregate import tuples as _tuple_stage
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp._rows import table as _pieces
from sklearn_dp.audit._replay import Replay
from sklearn_dp.cluster import FarBallsOptions
from sklearn_dp.exceptions import PartError

CORNERS = np.array([[-0.5, -0.5], [0.5, -0.5], [0.0, 0.6]])
ONE_COPY = np.uint64(int(0.75 * 2**64))  # between 0.607 and 0.910 of the range: one copy

MODES = {
    "core": dict(aggregator="friendly_core", n_tuples=30, rho=12.0),
    "core, copies": dict(
        aggregator="friendly_core", sampling="with_replacement", rho=6.0, n_tuples=60, delta=0.2
    ),
    "averages": dict(aggregator="k_averages", options=FarBallsOptions(7.0), rho=40.0, n_tuples=100),
    "centers": dict(aggregator="noisy_centers", options=FarBallsOptions(7.0), rho=40.0),
    "centers, copies": dict(
        aggregator="noisy_centers",
        sampling="with_replacement",
        options=FarBallsOptions(7.0),
        rho=40.0,
        delta=0.2,
    ),
}


class Sectors(ClusterMixin, BaseEstimator):
    """The means of the rows next to each of three public points: cheap, and good enough."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y=None):
        labels = np.linalg.norm(X[:, None] - CORNERS, axis=2).argmin(axis=1)
        self.cluster_centers_ = np.array([X[labels == i].mean(axis=0) for i in range(3)])
        return self


@pytest.fixture(autouse=True)
def coarse(monkeypatch):
    monkeypatch.setattr(_tuple_stage, "_RESOLUTION", 0.01)


def blobs(n, seed=0, scale=0.01):
    rng = np.random.default_rng(seed)
    return CORNERS[rng.integers(3, size=n)] + scale * rng.normal(size=(n, 2))


def model(**parameters):
    defaults = dict(n_clusters=3, bounds=1.0, inner=Sectors(), delta=0.01, random_state=0)
    return DPKTupleKMeans(**{**defaults, **parameters})


def rows_for(estimator):
    """Enough rows for the tuple path."""
    size = estimator._stage(estimator._target(), 2)[0].size
    return 34 * size * (2 if estimator.sampling == "with_replacement" else 1)


def error(found):
    return max(np.linalg.norm(found - corner, axis=1).min() for corner in CORNERS)


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_finds_the_centers(mode):
    estimator = model(**MODES[mode])
    if mode == "core, copies":
        estimator.set_params(rho=20.0)
    fitted = estimator.fit(blobs(rows_for(estimator)))
    assert fitted.aggregator_ == MODES[mode]["aggregator"]
    assert fitted.path_.startswith("tuples")
    if mode != "averages":  # whose boxes need a hundred thousand tuples
        assert error(fitted.cluster_centers_) < 0.05
    report = fitted.privacy_report_
    assert report.spent_rho <= report.rho * (1 + 1e-12)


class OneCopy(Replay):
    """An added unit has one copy; others are coupled as ever."""

    def _couple(self, recorded, fresh):
        coupled = super()._couple(recorded, fresh)
        return np.where(self.units < 0, ONE_COPY, coupled)


def audit(mode, n_pairs, seed=0):
    """Replay violations; pairs void by a failure event, or since several tuples change."""
    rng, violations, paths, voided = np.random.default_rng(seed), [], set(), 0
    base = model(**MODES[mode])
    size = rows_for(base)
    for i in range(n_pairs):
        X = blobs(int(rng.integers(size, size + 50)), seed=i)
        place = int(rng.integers(len(X) + 1))
        row = rng.choice([0.0, 1e6, -0.5]) + rng.normal(size=2)
        more, known = np.insert(X, place, row, axis=0), np.arange(len(X))
        units, back = np.insert(known, place, -1), np.delete(np.arange(len(X) + 1), place)
        first, second, mapping = (X, more, units) if i % 2 else (more, X, back)
        estimator = base.set_params(random_state=i)
        with trace(Trace()) as recording:
            fitted = clone(estimator).fit(first)
        draws = next(e.output for e in recording.events if e.kind == "draws")
        if base.sampling == "with_replacement" and i % 2 == 0 and draws[place] > 0.909 * 2.0**64:
            continue
        with trace(OneCopy(recording.events, mapping, keep_added=bool(i % 3))) as replay:
            other = clone(estimator).fit(second)
        paths.add(fitted.path_)
        if replay.voided:
            voided += 1
            continue
        violations += replay.finish()
        for each in (fitted, other):  # the second says that its outputs were forced
            each._provenance = replace(each.privacy_report_, noise="forced")
        if pickle.dumps(fitted) != pickle.dumps(other):
            violations.append("the pickles differ")
    return violations, paths, voided


# -- data in pieces, on disk, elsewhere -------------------------------------------------------


def test_pieces_give_what_a_fit_gives(monkeypatch):
    X, estimator = blobs(1500), model(**MODES["core"])
    whole = clone(estimator).fit(X).cluster_centers_
    for limit in (2**28, 1000):
        monkeypatch.setattr(_pieces, "_KEPT_BYTES", limit)
        for cuts in ([1], [10, 700, 701], []):
            pieces = (piece for piece in np.split(X, cuts))
            fitted = clone(estimator).fit_blocks(pieces)
            assert np.array_equal(fitted.cluster_centers_, whole)
            assert fitted.n_features_in_ == 2
        assert np.array_equal(clone(estimator).fit_blocks([X[:9], X[9:]]).cluster_centers_, whole)
        for pieces in (list, iter):
            with pytest.raises(PartError, match="^X, part 1: .*columns"):
                clone(estimator).fit_blocks(pieces([X, X[:, :1]]))
            with pytest.raises(PartError, match="^X, part 1: .*numeric") as caught:
                clone(estimator).fit_blocks(pieces([X, np.array([["secret", "1"]])]))
            assert "secret" not in str(caught.value)
    with pytest.raises(ValueError, match="pieces must not be empty"):
        clone(estimator).fit_blocks([])
    with pytest.raises(TypeError, match="pieces must be an iterable"):
        clone(estimator).fit_blocks(X)
