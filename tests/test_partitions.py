"""Fits of tables in parts: the bits of one array, what travels, and audits with a row anywhere."""

import copy
import pickle
import warnings

import numpy as np
from sklearn.base import clone

from sklearn_dp import DPCoreset, DPKMeans
from sklearn_dp._fit import _labels_of_part
from sklearn_dp._partitions._sources import open_units
from sklearn_dp._privacy._units import UnitFacts, unit_of
from sklearn_dp._rows.table import LocalEngine, PartSource, Table, add_sums
from sklearn_dp._sklearn_compat import Progress
from sklearn_dp.covariance import FriendlyCovariance
from sklearn_dp.decomposition import DPPCA
from sklearn_dp.ensemble._targets import with_targets
from sklearn_dp.mean import FriendlyMean
from sklearn_dp.mixture import DPGaussianMixture

N = 331
RNG = np.random.default_rng(0)
LABELS = np.arange(N) % 3
WIDE = 2 * np.eye(3, 5)[LABELS] + 0.1 * RNG.normal(size=(N, 5))
FLAT = WIDE[:, :2] + np.where(np.arange(N) % 40 == 0, 30.0, 0.0)[:, None]  # with a long tail
ACROSS = RNG.integers(0, 90, N)
WITHIN = np.arange(N) // 4
WEIGHTS = np.where(RNG.random(N) < 0.1, 0.0, RNG.uniform(0, 2, N))


class Piece(PartSource):
    """A part that goes wherever a pickle goes."""

    def __init__(self, number, X, groups, weights, y=None):
        self.number, self.X, self.groups, self.weights = number, X, groups, weights
        self.y = y

    def read(self):
        return self.X

    def read_groups(self):
        return self.groups

    def read_weights(self):
        return self.weights

    def read_targets(self):
        return self.y


class Elsewhere(LocalEngine):
    """Parts in another process, as far as they can tell: all that comes and goes is pickled."""

    def __init__(self, sources):
        super().__init__(sources)
        self.sums, self.sent, self.exchanged = [], [], []

    @property
    def passes(self):
        return len(self.sums)

    def reduce(self, function, *broadcast):
        self.sums.append(function)
        total = None
        for number in range(self.n_parts):
            state = pickle.loads(pickle.dumps(self.states[number]))
            self.states[number], sums = function(state, *pickle.loads(pickle.dumps(broadcast)))
            self.sent.append(sums)
            total = sums if total is None else self.added(number, total, sums)
        return total

    def exchange(self, split, use, n_tasks, *broadcast):
        """Results, which come to the place of the fit."""
        self.exchanged += self.tasks(split, use, n_tasks, *broadcast)
        return self.exchanged[-n_tasks:]

    def shuffle(self, split, join, n_parts, *broadcast):
        """New parts, which stay where they are; what travels from them is noted here, too."""
        other = copy.copy(self)
        other.states, other.n_parts = self.tasks(split, join, n_parts, *broadcast), n_parts
        return other

    def tasks(self, split, use, n_tasks, *broadcast):
        """Pieces go from part to task, each of which is anywhere."""
        held, results = [], []
        for number in range(self.n_parts):
            state = pickle.loads(pickle.dumps(self.states[number]))
            found = split(state, *pickle.loads(pickle.dumps(broadcast)))
            held.append([pickle.dumps(found[task]) for task in range(n_tasks)])
        for task in range(n_tasks):
            pieces = [pickle.loads(own[task]) for own in self.brought(held)]
            result = use(task, pieces, *pickle.loads(pickle.dumps(broadcast)))
            results.append(pickle.loads(pickle.dumps(result)))
        return results

    def brought(self, held):
        return held

    def added(self, number, total, sums):
        return add_sums(total, sums)


def fitted(estimator, X, places, groups=None, weights=None, engine=Elsewhere, y=None):
    """A fit of the rows in parts, each some places of `X`, and its engine."""
    model, d = clone(estimator), X.shape[1]

    def of(values, place):
        return None if values is None else values[place]

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        session = model._open_session(X, unit_of(groups))
        model.n_features_in_ = d
        held = engine(
            [
                Piece(number, X[place], of(groups, place), of(weights, place), of(y, place))
                for number, place in enumerate(places)
            ]
        )
        table = Table(held, d, X.dtype, UnitFacts())
        largest = None if weights is None else model.max_weight
        open_units(table, grouped=groups is not None, largest=largest)
        if y is not None:
            table.update(with_targets, model._public_labels())
            table.dtype = np.dtype(np.float64)
        model._fit(table, table.units, session, Progress(model))
        if (labels := model._labeled_by()) is not None:
            model.labels_ = table.rows(_labels_of_part, labels)
        model._add_report(session.report())
        model._tell_limit()
        model._tidy(table.dtype)
    return model, held


def in_memory(estimator, X, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(estimator).fit(X, **options)


def cuts(n_parts, n=N):
    """Uneven parts, some of them empty where there are many."""
    return np.split(
        np.arange(n), np.sort(np.random.default_rng(n_parts).integers(0, n, n_parts - 1))
    )


MODELS = {
    "k-means": (DPKMeans(3, epsilon=20.0, random_state=0), WIDE),
    "k-means in bounds": (DPKMeans(3, epsilon=20.0, bounds=5.0, random_state=0), WIDE),
    "k-means with far cells": (DPKMeans(4, epsilon=200.0, bounds=90.0, random_state=0), FLAT),
    "k-means of any number": (DPKMeans("auto", epsilon=20.0, bounds=5.0, random_state=0), WIDE),
    "k-means of directions": (DPKMeans(3, epsilon=20.0, metric="cosine", random_state=0), WIDE),
    "coreset": (DPCoreset(3, epsilon=20.0, random_state=0), WIDE),
    "components": (DPPCA(2, epsilon=20.0, random_state=0), WIDE),
    "components in a box": (DPPCA(2, epsilon=9.0, bounds=(-1.0, 3.0), random_state=0), WIDE),
    "covariance": (FriendlyCovariance(epsilon=20.0, random_state=0), WIDE),
    "gram": (FriendlyCovariance(method="gram", bounds=(-1.0, 3.0), random_state=0), WIDE),
    "mixture": (DPGaussianMixture(3, epsilon=50.0, random_state=0), WIDE),
}
SETTINGS = {  # of the same passes
    "covariance about 0": (
        FriendlyCovariance(assume_centered=True, epsilon=20.0, bounds=90.0, random_state=0),
        FLAT,
    ),
    "mixture of one": (DPGaussianMixture(1, epsilon=20.0, bounds=90.0, random_state=0), FLAT),
    "mixture of any number": (
        DPGaussianMixture((2, 4), epsilon=50.0, bounds=(-1.0, 3.0), random_state=0),
        WIDE,
    ),
    **{
        f"{form} mixture": (
            DPGaussianMixture(3, covariance_type=form, epsilon=50.0, bounds=2.0, random_state=0),
            WIDE,
        )
        for form in ("tied", "diag", "spherical")
    },
}


def test_labels_stay_in_the_order_of_the_rows():
    model, X = MODELS["k-means"]
    assert np.array_equal(fitted(model, X, cuts(7))[0].labels_, in_memory(model, X).labels_)


# --- means, whose points are compared within a sample ---------------------------------------------

MEANS = {
    "epsilon": {"epsilon": 20.0},
    "box": {"epsilon": 60.0, "bounds": (-1.0, [3.0, 4.0, 3.0, 2.0, 2.0])},
    "cells": {"epsilon": 30.0, "locate": "cells", "diameter": 4.0},
    "basic": {"rho": 40.0, "delta": 1e-3, "locate": "basic"},
}


def mean(name):
    return FriendlyMean(random_state=0, max_weight=1.5, **MEANS[name])
