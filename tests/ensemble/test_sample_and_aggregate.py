"""SampleAndAggregate: what it recovers and survives; one row, one output; no block is charged."""

import math
import warnings

import numpy as np
import pytest
from grid_tools import parts_in_memory
from scipy import stats
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import BaggingRegressor, StackingRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from benchmarks.certify.certificate import Detector
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
from sklearn_dp._aggregate.tuples import amplified
from sklearn_dp._queries import blocks as _blocks
from sklearn_dp.audit import replay_audit
from sklearn_dp.ensemble import SampleAndAggregate
from sklearn_dp.ensemble import _sample_and_aggregate as module
from sklearn_dp.ensemble._aggregation import Output
from sklearn_dp.exceptions import UtilityWarning
from sklearn_dp.ledger import LedgerCharge
from sklearn_dp.mixture import KTupleOptions
from sklearn_dp.model_selection import DPGridSearch

LINEAR = {"output": ("coef_", "intercept_"), "output_bounds": 20.0, "random_state": 0}
AGGREGATORS = ("one_cluster", "friendly_core", "mean")


def linear_data(n=6000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, X @ [1.0, -2.0] + 0.5 + 0.3 * rng.normal(size=n)


# -- what it recovers -------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("aggregator", AGGREGATORS)
def test_coefficients_of_a_regression(aggregator):
    X, y = linear_data()
    model = SampleAndAggregate(
        Ridge(1e-3), aggregator=aggregator, n_blocks=150, epsilon=8.0, **LINEAR
    ).fit(X, y)
    assert model.status_ == "ok" and model.n_blocks_ == 150
    assert model.n_working_ == pytest.approx(150, abs=20)
    assert np.abs(model.estimator_.coef_ - [1, -2]).max() < 0.5
    assert abs(model.estimator_.intercept_ - 0.5) < 0.5
    np.testing.assert_allclose(model.predict(X), model.estimator_.predict(X), rtol=1e-12)
    assert model.score(X, y) > 0.85


@pytest.mark.parametrize("aggregator, most", [("one_cluster", 0.3), ("mean", 4.0)])
def test_blocks_drawn_with_replacement(aggregator, most):
    X, y = linear_data(30000)
    model = SampleAndAggregate(
        Ridge(1e-3),
        aggregator=aggregator,
        n_blocks=200,
        epsilon=8.0,
        sampling="with_replacement",
        **LINEAR,
    ).fit(X, y)
    assert model.status_ == "ok"
    assert np.abs(model.output_ - [1, -2, 0.5]).max() < most
    assert [entry.name for entry in model.privacy_plan(2).entries] == ["blocks"]
    assert model.privacy_report_.epsilon == 8.0
    assert model.privacy_report_.spent_rho <= model.privacy_report_.rho


# -- what it survives -------------------------------------------------------------------------


class Failing(RegressorMixin, BaseEstimator):
    """Works on the public dummy data only, whose target is bounded."""

    def fit(self, X, y):
        if np.abs(X).max() > 1:
            raise RuntimeError("no")
        self.coef_ = np.zeros(X.shape[1])
        return self

    def predict(self, X):
        return np.zeros(len(X))


class Wild(Failing):
    """NaN or huge outputs."""

    def fit(self, X, y):
        super().fit(np.zeros_like(X), y)
        if np.abs(X).max() > 1:
            self.coef_ = np.full(X.shape[1], np.nan if len(X) % 2 else 1e300)
        return self


@pytest.mark.parametrize("aggregator", AGGREGATORS)
@pytest.mark.parametrize("bounds", [2.0, (-1.0, 3.0), None])
def test_blocks_that_all_fail_are_no_error(aggregator, bounds):
    X, y = linear_data(500)
    model = SampleAndAggregate(
        Failing(),
        output=("coef_",),
        aggregator=aggregator,
        output_bounds=bounds,
        epsilon=20.0,
        n_blocks=40,
        random_state=0,
    )
    with pytest.warns(UtilityWarning, match="most blocks failed"):
        model.fit(3 + X, y)
    assert np.isfinite(model.output_).all()
    if bounds is not None:
        assert (np.abs(model.output_) <= 3).all()
    wild = SampleAndAggregate(
        Wild(),
        output=("coef_",),
        aggregator=aggregator,
        output_bounds=bounds,
        n_blocks=40,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UtilityWarning)
        assert np.isfinite(wild.fit(3 + X, y).output_).all()


# -- one row, one output ----------------------------------------------------------------------


def test_a_row_has_few_copies(monkeypatch):
    """About n / 9 draws in all, of which a row that comes along adds its own and moves none."""
    seen, original = [], _blocks.drawn_rows

    def drawn(draws, n_blocks, rate):
        rows, copies, blocks = original(draws, n_blocks, rate)
        seen.append([rows[blocks == block] for block in range(n_blocks)])
        return rows, copies, blocks

    monkeypatch.setattr(_blocks, "drawn_rows", drawn)
    X, _ = linear_data(9000)
    model = SampleAndAggregate(
        sampling="with_replacement", n_blocks=20, output_bounds=1.0, random_state=0
    )
    model.fit(X)
    model.fit(np.vstack([X, [[3.0, 3.0]]]))
    first, second = seen
    assert len(first) == len(second) == 20
    # Poisson of mean 1000: outside of these limits with probability 1e-6.
    assert 850 < sum(map(len, first)) < 1160
    for old, new in zip(first, second, strict=True):
        assert np.array_equal(old, new[new < len(X)])


@pytest.mark.parametrize(
    "target", [{"epsilon": 0.01}, {"epsilon": 1.0}, {"epsilon": 100.0}, {"rho": 1e-3}, {"rho": 2.0}]
)
def test_copies_cost_no_more_than_the_target(target):
    model = SampleAndAggregate(sampling="with_replacement", **target)
    goal = model._target()
    epsilon, delta = model._step_cost(goal)
    inner = model._block_target(goal)
    cost, failure = amplified(inner.epsilon, inner.delta, 1 / 9)
    assert cost <= epsilon * (1 + 1e-12) and failure <= delta * (1 + 1e-12)
    assert delta <= goal.delta and epsilon <= (goal.epsilon or math.inf)
    plan = model.privacy_plan(2)
    assert plan.rho <= (goal.rho or math.inf) and plan.delta_failure <= goal.delta


@pytest.mark.quick("0.5", "1.0")
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
def test_the_published_lemma_on_draws_with_replacement_is_implied(epsilon):
    """one_cluster:9: n / 9 draws cost at most 2/3 epsilon and 0.87 delta; less, in fact."""
    cost, failure = amplified(epsilon, 1e-6, module.COPY_RATE)
    assert cost <= 2 * epsilon / 3
    assert failure <= 4 / 9 * math.exp(2 * epsilon / 3) * 1e-6 <= 1e-6
    # The law of a Gaussian count that a unit moves by one for each of its copies, exactly.
    sigma = np.sqrt(2 * np.log(1.25e6)) / epsilon
    copies = np.arange(30)
    chance = stats.poisson.pmf(copies, module.COPY_RATE)
    x = np.linspace(-12 * sigma, 12 * sigma + 5, 200_001)
    with_unit = stats.norm.pdf(x[:, None], copies, sigma) @ chance
    without = stats.norm.pdf(x, 0, sigma)
    step = x[1] - x[0]
    for p, q in ((with_unit, without), (without, with_unit)):
        assert np.maximum(p - np.exp(cost) * q, 0).sum() * step <= failure


@pytest.mark.parametrize(
    ("options", "entry"),
    [({"agreement": 0.3}, "box"), ({"agreement": 0.6}, "center"), ({"aggregator": "mean"}, "mean")],
    ids=str,
)
def test_a_row_that_moves_its_block_from_one_place_to_another(options, entry):
    """Both places have other blocks: one count goes down and one up, by all that is claimed."""
    rows = np.repeat([[-1.0], [1.0]], (40, 6), axis=0)
    settings = {"n_blocks": 12, "epsilon": 50.0, "output_bounds": 1.0, **options}
    model = SampleAndAggregate(Detector(), output=("cluster_centers_",), **settings)
    audit = replay_audit(model, rows, strangers=False)
    assert audit.violations == [] and audit.ratios[entry] > 0.99


@pytest.mark.parametrize("aggregator", ["one_cluster", "mean"])
def test_what_noise_within_wide_bounds_hides_is_not_ok(aggregator):
    """A location may be zero, and so its error was compared with nothing but the bounds."""
    X = np.random.default_rng(0).normal(5.0, 1.0, size=(20_000, 2))
    model = SampleAndAggregate(StandardScaler(), aggregator=aggregator, random_state=0)
    assert not model.set_params(output_bounds=1e9).fit(X).trustworthy_
    found = model.set_params(output_bounds=10.0, aggregator="one_cluster", epsilon=8.0).fit(X)
    assert found.status_ == "ok" and np.allclose(found.estimator_.mean_, 5.0, atol=1.0)


def test_what_needs_a_fit_says_so_of_a_released_private_estimator():
    model = SampleAndAggregate(
        DPKMeans(2, bounds=9.0), output=("cluster_centers_",), output_bounds=9.0, n_blocks=8
    )
    model.fit(np.random.default_rng(0).normal(size=(400, 2)))
    for method in ("confidence_interval", "summary"):
        with pytest.raises(AttributeError, match=rf"DPKMeans\.{method} .* of a fit"):
            getattr(model.estimator_, method)()


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
