"""Estimators of blocks have no ledger: no block is charged."""

import warnings

import numpy as np
import pytest
from grid_tools import parts_in_memory
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import BaggingRegressor, StackingRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_dp import (
    DPPCA,
    DPBySegment,
    DPGaussianMixture,
    DPKMeans,
    DPStandardScaler,
    FriendlyMean,
    PrivacyBudget,
    PrivacyLedger,
)
from sklearn_dp.ensemble import SampleAndAggregate
from sklearn_dp.ensemble import _sample_and_aggregate as module
from sklearn_dp.ensemble._output import Output
from sklearn_dp.exceptions import UtilityWarning
from sklearn_dp.ledger import LedgerCharge
from sklearn_dp.mixture import KTupleOptions
from sklearn_dp.model_selection import DPGridSearch

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")


def linear_data(n=6000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, X @ [1.0, -2.0] + 0.5 + 0.3 * rng.normal(size=n)


class Charging(RegressorMixin, BaseEstimator):
    """Charges a ledger that no parameter names."""

    def fit(self, X, y):
        SHARED["ledger"].charge(LedgerCharge(epsilon=0.01, delta=0.0))
        self.coef_ = np.zeros(X.shape[1])
        return self


SHARED = {}


def scaled(rows):
    return DPStandardScaler(epsilon=0.1, ledger=SHARED["ledger"]).fit_transform(rows)


def regression(ledger):
    return make_pipeline(DPPCA(1, ledger=ledger), Ridge())


@pytest.mark.parametrize(
    "inner",
    [
        lambda ledger: DPPCA(1, ledger=ledger),
        regression,
        lambda ledger: SampleAndAggregate(regression(ledger), output=("coef_",)),
        lambda ledger: DPBySegment(FriendlyMean(), ledger=ledger),
        lambda ledger: DPGridSearch(DPKMeans(), {"n_clusters": [2]}, ledger=ledger),
        lambda ledger: GridSearchCV(regression(ledger), {"ridge__alpha": [1.0]}),
        lambda ledger: GridSearchCV(regression(None), {"dppca__ledger": [ledger]}),
        lambda ledger: BaggingRegressor(regression(ledger)),
        lambda ledger: StackingRegressor([("a", regression(ledger))]),
        lambda ledger: make_pipeline(FunctionTransformer(scaled), Ridge()),
        lambda ledger: Charging(),
    ],
    ids=range(11),
)
@pytest.mark.parametrize("kept", ["memory", "file"])
def test_blocks_have_no_ledger_to_tell_how_many_there_are(inner, kept, tmp_path):
    """The number of charges was that of blocks with rows, and an empty ledger changed others."""
    X, y = linear_data(200)
    path = None if kept == "memory" else tmp_path / "ledger.db"
    SHARED["ledger"] = book = PrivacyLedger(PrivacyBudget(epsilon=99.0, delta=1e-3), path=path)
    model = SampleAndAggregate(inner(path or book), output=("coef_",), output_bounds=5.0)
    with pytest.raises(ValueError, match="^estimator must not have a ledger|^estimator: it could"):
        model.set_params(ledger=(own := PrivacyLedger(book.budget))).fit(X, y)
    assert book.entries == own.entries == ()
    if isinstance(model.estimator, DPPCA | DPBySegment | DPGridSearch):
        options = KTupleOptions(inner=model.estimator)
        mixture = DPGaussianMixture(2, method="k_tuples", options=options, ledger=own)
        with pytest.raises(ValueError, match="^inner must not have a ledger"):
            mixture.fit(X)
        assert own.entries == ()


def test_a_block_that_charges_after_all_fails_alone_and_spends_nothing(monkeypatch):
    """What a probe on dummy rows does not do: a charge that depends on the rows."""
    X, y = linear_data(400)
    SHARED["ledger"] = book = PrivacyLedger(PrivacyBudget(epsilon=99.0, delta=1e-3))

    class Sometimes(Charging):
        def fit(self, X, y):
            self.coef_ = np.ones(X.shape[1])
            return super().fit(X, y) if np.any(X > 2.5) else self

    monkeypatch.setattr(module, "probe", lambda *given: Output(("coef_",), ((2,),), ()))
    seen, original = [], module.fit_blocks

    def inner_fits(*given):
        (part,) = parts_in_memory(results := original(*given))
        seen.append(part.source.read()[:].copy())
        return results

    monkeypatch.setattr(module, "fit_blocks", inner_fits)
    options = {"output": ("coef_",), "output_bounds": 5.0, "n_blocks": 40, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UtilityWarning)
        SampleAndAggregate(Sometimes(), **options).fit(X, y)
    (outputs,) = seen
    failed = np.isnan(outputs).all(axis=1)
    assert 0 < failed.sum() < 40 and np.all(outputs[~failed] == 1.0)
    assert book.entries == ()
