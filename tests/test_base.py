"""What every private estimator goes through: charge, validation, fit, report."""

import inspect
import warnings
from itertools import product

import numpy as np
import pytest
from configurations import DEFAULT, ESTIMATORS
from configurations import TABLE as SETTINGS
from kernel_tools import open_session
from toy_releases import count

from sklearn_dp import DPBySegment, DPOneHotEncoder, DPTopics, PrivacyLedger, privatize
from sklearn_dp._base import BaseDPEstimator, fits_inside
from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.plan import PlanEntry
from sklearn_dp._status import Message, Status
from sklearn_dp.cluster import DPKMeans, aggregate_k_tuples, int_point
from sklearn_dp.model_selection import DPGridSearch, DPRandomizedSearch

X = np.arange(60.0).reshape(20, 3)


class Counter(BaseDPEstimator):
    """The noisy number of units."""

    def __init__(
        self,
        *,
        epsilon=100.0,
        delta=1e-6,
        rho=None,
        bounds=None,
        ledger=None,
        n_jobs=None,
        random_state=0,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.bounds = bounds
        self.ledger = ledger
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X, y=None, *, groups=None):
        return self._fit_validated(X, groups)

    def _plan_entries(self, target, n_features):
        return (PlanEntry("count", "gaussian", target.to_rho()),)

    def _fit(self, X, units, session, progress):
        self.n_ = float(count(session, "count", units))
        self.labels_ = np.arange(len(X))
        few = Message("few_rows", "too few rows", severity="all")
        self.messages_ = Status([] if self.n_ > 5 else [few])


def ledger(epsilon=1000.0):
    return PrivacyLedger(PrivacyBudget(epsilon=epsilon, delta=1e-3))


def test_groups_are_units():
    assert Counter().fit(X, groups=np.arange(20) // 2).n_ == pytest.approx(10, abs=3)
    assert Counter().privacy_plan(3, unit="group").unit == "group"


def test_a_fit_that_fails_leaves_nothing_of_the_one_before():
    model = Counter().fit(X)
    with pytest.raises(ValueError, match="X"):
        model.fit(np.full((20, 3), np.inf))
    assert not hasattr(model, "n_") and not hasattr(model, "privacy_report_")
    assert not model.__sklearn_is_fitted__()


def test_a_fit_inside_another_one_is_paid_by_it_and_the_next_is_not():
    plans = []

    def opened(plan):
        plans.append(plan)
        return open_session(PlanEntry("count", "gaussian", plan.rho), rho=plan.rho)

    book, other = ledger(), ledger()
    inner = Counter(ledger=book)
    with fits_inside(inner, opened):
        Counter(ledger=other).fit(X)  # on the way, and none of it
        assert plans == [] and len(other.entries) == 1
        inner.fit(X)
        assert len(plans) == 1 and book.entries == ()
        inner.fit(X)
    assert len(plans) == 1 and len(book.entries) == 1
    assert plans[0].rho == Counter().privacy_plan(3).rho


def test_a_block_that_fails_pays_for_nothing_later():
    inner = Counter()
    with pytest.raises(ZeroDivisionError), fits_inside(inner, lambda plan: 1 / 0):
        inner.fit(X)
    assert inner.fit(X).n_ > 5


# -- plans -----------------------------------------------------------------------------------------

ASKED = ((1, {}), (3, {"rho": 0.3, "epsilon": 1.0}), (20, {"epsilon": 0.1, "rho": None}))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_plan_has_all_of_the_budget_and_no_more(name):
    """In each setting, of few columns and of many: what no entry has would be lost."""
    tried = 0
    for (options, _), (d, budget) in product(SETTINGS.get(name, DEFAULT), ASKED):
        try:
            plan = ESTIMATORS[name](**{**options, **budget}).privacy_plan(d)
        except ValueError:  # bounds of another number of columns; too little for so many tuples
            continue
        target, tried = plan.target, tried + 1
        given = "epsilon" if target.rho is None else "rho"
        allowed = getattr(target, given)
        assert 0.98 * allowed < getattr(plan, given) <= allowed * (1 + 1e-9), (options, d, budget)
    assert tried >= 3


# -- types of what goes in and comes out -----------------------------------------------------------

TABLE = np.random.default_rng(0).normal(size=(300, 3)) + 5 * (np.arange(300) % 2)[:, None]


def fitted(name, dtype):
    options = {"n_clusters": 2} if name == "DPOneClusterKMeans" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ESTIMATORS[name](epsilon=50.0, random_state=0, **options).fit(TABLE.astype(dtype))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_fitted_arrays_have_the_type_of_the_rows(name):
    """What is released is rounded once, at the end: in both types it is the same number."""
    for dtype in (np.float32, np.float64):
        model = fitted(name, dtype)
        arrays = {
            key: value
            for key, value in vars(model).items()
            if key.endswith("_") and isinstance(value, np.ndarray) and value.dtype.kind == "f"
        }
        dtype = np.float64 if name == "DPOneHotEncoder" else dtype  # values of any type are read
        assert arrays and {value.dtype for value in arrays.values()} == {np.dtype(dtype)}
        assert all(np.isfinite(value).all() for value in arrays.values())


@pytest.mark.parametrize("name", ["DPGaussianMixture", "DPKMeans"])
def test_no_released_zero_is_negative(name):
    """Of a mixture, the triangle of precisions had zeros of both signs."""
    for dtype in (np.float32, np.float64):
        arrays = [each for each in vars(fitted(name, dtype)).values()]
        arrays = [
            each for each in arrays if getattr(each, "dtype", None) in (np.float32, np.float64)
        ]
        assert not any(((each == 0) & np.signbit(each)).any() for each in arrays)


# What SampleAndAggregate finds is an estimator of another library, with a `set_output` of its own.
TRANSFORMERS = [name for name, cls in ESTIMATORS.items() if hasattr(cls, "set_output")]


@pytest.mark.parametrize("container", ["pandas", "polars"])
@pytest.mark.parametrize("name", TRANSFORMERS)
def test_transformers_give_tables_with_names(name, container):
    model = fitted(name, np.float64)
    plain = model.transform(TABLE)
    shown = model.set_output(transform=container).transform(TABLE)
    assert type(shown).__module__.partition(".")[0] == container
    assert list(shown.columns) == list(model.get_feature_names_out())
    assert np.array_equal(shown.to_numpy(), plain)


# -- signatures --------------------------------------------------------------------------------

FIRST, LAST = ("epsilon", "delta", "rho", "bounds", "ledger"), ("n_jobs", "random_state")
WITH_BUDGET = [
    *ESTIMATORS.values(),
    *(DPGridSearch, DPRandomizedSearch),
    *(DPKMeans.from_sklearn, DPKMeans.private_score, aggregate_k_tuples, int_point, privatize),
]


def signature_problems(called):
    """Where a signature departs from the order and the defaults that all have.

    What is computed may be given by place; then come the budget, bounds and ledger, by keyword as
    all that follows; then options; at last what changes no answer.
    """
    parameters = inspect.signature(called).parameters.values()
    keywords = {each.name: each.default for each in parameters if each.kind == each.KEYWORD_ONLY}
    first = [name for name in FIRST if name in keywords]
    names = list(keywords)
    names = names[names.index("epsilon") :] if "epsilon" in names else names
    problems = [f"after epsilon: {names}"] * (names[: len(first)] != first)
    last = [name for name in LAST if name in keywords]
    rest = [name for name in names if name in last or name == "candidates_state"]
    problems += [f"at the end: {names}"] * (names[len(names) - len(rest) :] != rest)
    shown = {"epsilon": 1.0, "delta": 1e-6, "rho": None}
    given = {name: keywords.get(name, shown[name]) for name in shown}
    return problems + [f"defaults: {given}"] * (given != shown or "epsilon" not in keywords)


@pytest.mark.parametrize("called", WITH_BUDGET, ids=lambda called: called.__qualname__)
def test_signatures_have_one_order_and_show_their_defaults(called):
    assert signature_problems(called) == []
    if (
        called in ESTIMATORS.values()
    ):  # nothing of them stands before the budget but what is computed
        parameters = inspect.signature(called).parameters.values()
        places = [each.name for each in parameters if each.kind == each.POSITIONAL_OR_KEYWORD]
        names = [each.name for each in parameters]
        # Categories have no bounds, segments those of their estimator, and topics directions.
        boundless = called in (DPOneHotEncoder, DPBySegment, DPTopics)
        first = [name for name in FIRST if not (boundless and name == "bounds")]
        assert len(places) <= 1 and names[len(places) : len(places) + len(first)] == first
    words = inspect.getdoc(called)
    assert "epsilon : float, default=1.0" in words
    assert ("rho : " in words) == ("Give it in place of `epsilon`." in words)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_rho_takes_the_place_of_the_default_epsilon_and_of_no_other(name):
    estimator = ESTIMATORS[name]
    for options in ({"rho": 0.3}, {"rho": 0.3, "epsilon": None}, {"rho": 0.3, "epsilon": 1.0}):
        assert estimator(**options)._target() == PrivacyBudget(rho=0.3, delta=1e-6)
    assert estimator()._target() == PrivacyBudget(epsilon=1.0, delta=1e-6)
    for options in ({"rho": 0.3, "epsilon": 2.0}, {"epsilon": None}):
        with pytest.raises(ValueError, match="epsilon and rho"):
            estimator(**options)._target()
