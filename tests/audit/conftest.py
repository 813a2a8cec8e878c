"""A small private estimator, right by inspection: what the audit tools are tested on."""

import numpy as np
import pytest
import toy_releases

from sklearn_dp._aggregate.shared.centering import private_radius
from sklearn_dp._base import BaseDPEstimator
from sklearn_dp._costs.plan import PlanEntry
from sklearn_dp._privacy import _grid as _aggregates
from sklearn_dp._privacy._grid import Domain, Grid
from sklearn_dp._queries._query import TableRows
from sklearn_dp._queries.places import NormCounts
from sklearn_dp._rows.table import Table
from sklearn_dp._sklearn_compat import with_callbacks
from sklearn_dp._status import Message, Status


class ToyMean(BaseDPEstimator):
    """Noisy sum of clipped rows over a noisy count, with an extra histogram of signs."""

    _SHARES = {"radius": 0.2, "count": 0.1, "sum": 0.4, "signs": 0.2}

    def __init__(
        self,
        *,
        epsilon=1.0,
        delta=1e-6,
        rho=None,
        bounds=None,
        ledger=None,
        n_jobs=None,
        random_state=None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.bounds = bounds
        self.ledger = ledger
        self.n_jobs = n_jobs
        self.random_state = random_state

    @with_callbacks
    def fit(self, X, y=None, *, groups=None):
        return self._fit_validated(X, groups)

    def _plan_entries(self, target, n_features):
        rho = target.to_rho()
        names = [name for name in self._SHARES if name != "radius" or self.bounds is None]
        return tuple(PlanEntry(name, "gaussian", rho * self._SHARES[name]) for name in names)

    def _fit(self, X, units, session, progress):
        domain = self._domain(X.shape[1])
        if domain is None:
            counts = TableRows(Table.in_memory(X, units)).ask(NormCounts())
            radius, _ = private_radius(session, "radius", counts)
            domain = Domain(np.zeros(X.shape[1]), 1.0 if radius is None else radius)
        grid = Grid.for_radius(domain.radius)
        rows = grid.quantize(domain.center_rows(X), domain.radius)
        size = toy_releases.count(session, "count", units)
        total = toy_releases.vector_sum(
            session, "sum", rows, grid.steps(domain.radius), units, unit=grid.unit
        )
        signs = np.where(rows[:, 0] > 0, 1, 0)
        counts = _aggregates.weighted_bincount(signs, units, 2)
        self.signs_ = toy_releases.noisy_counts(session, "signs", counts, units)
        self.mean_ = total / max(size, 1.0) + domain.center
        few = Message("few_units", "too few units for a good mean", severity="all")
        self.messages_ = Status([] if size > 5 else [few])
        self.labels_ = signs

    def predict(self, X):
        return np.repeat(self.mean_[None], len(self._validate_predict(X)), axis=0)


@pytest.fixture
def toy():
    return ToyMean()


@pytest.fixture
def make_toy():
    return ToyMean


@pytest.fixture
def after_fit(monkeypatch):
    """Let the toy do something at the end of its fits."""
    original = ToyMean._fit

    def plant(change):
        def fit(self, X, units, session, progress):
            original(self, X, units, session, progress)
            change(self, X, session)

        monkeypatch.setattr(ToyMean, "_fit", fit)

    return plant


@pytest.fixture
def points():
    return np.random.default_rng(0).uniform(-2, 2, size=(30, 3))
