"""Searches: one charge, one guarantee, nothing of the losers, and scikit-learn's manners."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from sklearn_dp import DPPCA, DPGaussianMixture, DPKMeans, DPKTupleKMeans, SampleAndAggregate
from sklearn_dp.audit import replay_audit
from sklearn_dp.exceptions import BudgetExceededError, LedgerError, SeededNoiseWarning
from sklearn_dp.ledger import PrivacyBudget, PrivacyLedger
from sklearn_dp.model_selection import (
    BestOf,
    DPGridSearch,
    DPRandomizedSearch,
    PrivateScorer,
    Shares,
    _runs,
    _scorers,
)

GRID = {"n_clusters": [2, 3, 4]}
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.UtilityWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning"),
]


def corners(n, sd=0.1, d=2):
    """Three clusters at corners of a triangle in the first two of d features."""
    rng = np.random.default_rng(0)
    X = np.zeros((n, d))
    X[:, :2] = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])[np.arange(n) % 3]
    return X + sd * rng.standard_normal((n, d))


def search(**options):
    given = {"epsilon": 2.0, "random_state": 0, **options}
    return DPGridSearch(DPKMeans(bounds=2.0), GRID, **given)


@pytest.mark.parametrize("selection", ["all", "best", BestOf(constant_time=True)], ids=str)
@pytest.mark.parametrize("final", ["refit", "winner"])
def test_the_right_number_of_clusters_is_chosen(selection, final):
    found = search(selection=selection, final=final).fit(corners(3000))
    assert found.best_params_ == {"n_clusters": 3}
    assert found.best_estimator_.n_clusters == 3
    assert found.best_score_ == pytest.approx(0.85, abs=0.1)
    centers = found.best_estimator_.cluster_centers_
    assert np.abs(centers[:, None] - [[0, 0], [1, 0], [0, 1]]).sum(axis=2).min(axis=0).max() < 0.1
    assert set(found.predict(corners(30))) == {0, 1, 2}


# ----------------------------------------------------------------------- one charge, one plan


@pytest.mark.parametrize("selection", ["all", "best"])
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_search_is_one_charge(selection, n_jobs):
    ledger = PrivacyLedger(PrivacyBudget(epsilon=3.0, delta=1e-5))
    found = search(selection=selection, n_jobs=n_jobs, ledger=ledger).fit(corners(300))
    (charge,) = ledger.entries
    assert charge.label == "DPGridSearch"
    assert charge.epsilon == found.privacy_report_.epsilon <= 2.0
    assert found.privacy_report_.spent_rho <= found.privacy_report_.rho


class Untouchable(np.ndarray):
    """Rows that may not be read."""

    def __array__(self, *args, **kwargs):
        raise AssertionError("the rows were read")

    __array_function__ = __array_ufunc__ = __getitem__ = __array__


@pytest.mark.parametrize("selection", ["all", "best"])
def test_a_ledger_that_holds_too_little_refuses_before_rows_are_read(selection):
    ledger = PrivacyLedger(PrivacyBudget(epsilon=1.0, delta=1e-5))
    X = np.zeros((20, 2)).view(Untouchable)
    with pytest.raises(BudgetExceededError):
        search(selection=selection, ledger=ledger).fit(X)
    assert ledger.entries == ()


def spending(monkeypatch):
    """Plans of all fits that a search makes, with what they are for."""
    fits = []
    original = _runs.Runner._inner

    def recorded(self, entry, plan, tag):
        fits.append((tag, plan))
        return original(self, entry, plan, tag)

    monkeypatch.setattr(_runs.Runner, "_inner", recorded)
    return fits


def pipeline():
    return make_pipeline(DPPCA(bounds=3.0), DPKMeans(3, bounds=3.0))


@pytest.mark.parametrize("final", ["refit", "winner"])
def test_what_all_fits_may_spend_is_within_the_plan(monkeypatch, final):
    """Prefix, every candidate and the last fit are paid for: rho adds up to at most the whole."""
    fits = spending(monkeypatch)
    grid = {"dppca__n_components": [1, 2, 3]}
    found = DPGridSearch(
        pipeline(), grid, epsilon=2.0, scoring="cost", selection="all", final=final, random_state=0
    ).fit(corners(300, d=4))
    tags = [tag for tag, _ in fits]
    wanted = ["first steps", *(f"candidate {i}" for i in range(3))]
    assert tags == wanted + (["last fit"] if final == "refit" else [])
    total = sum(plan.rho for _, plan in fits)
    whole = found.privacy_plan(4).rho
    assert 0.999 * whole < total <= whole * (1 + 1e-12)
    # and what each fit may spend is what its steps and its score have been given
    for _, plan in fits:
        assert sum(entry.rho for entry in plan.entries) <= plan.rho


def test_a_prefix_is_fitted_once_and_cut_to_size():
    grid = {"dppca__n_components": [1, 2, 3]}
    found = DPGridSearch(
        pipeline(), grid, epsilon=20.0, scoring="cost", selection="all", random_state=0
    ).fit(corners(600, d=4))
    components = [each.steps[0][1].components_ for each in found.estimators_]
    assert [len(each) for each in components] == [1, 2, 3]
    np.testing.assert_array_equal(components[0], components[2][:1])
    explained = [each.steps[0][1].explained_ for each in found.estimators_]
    assert explained == sorted(explained)
    assert found.best_params_["dppca__n_components"] >= 2
    assert found.transform(corners(5, d=4)).shape == (5, 3)


def test_a_prefix_that_varies_is_fitted_for_each_candidate(monkeypatch):
    fits = spending(monkeypatch)
    grid = {"dppca__bounds": [2.0, 3.0], "dppca__n_components": [2]}
    DPGridSearch(
        pipeline(), grid, epsilon=20.0, scoring="cost", max_distance=3.0, random_state=0
    ).fit(corners(300, d=4))
    assert [tag for tag, _ in fits] == ["candidate 0", "candidate 1", "last fit"]
    assert [entry.name for entry in fits[0][1].entries] == ["dppca", "dpkmeans", "score"]


def test_one_candidate_is_a_plain_fit(monkeypatch):
    fits = spending(monkeypatch)
    found = DPGridSearch(
        DPKMeans(bounds=2.0), {"n_clusters": [3]}, epsilon=1.0, random_state=0
    ).fit(corners(600))
    assert [tag for tag, _ in fits] == ["last fit"]
    assert np.isnan(found.best_score_)
    assert found.privacy_plan(2).rho == pytest.approx(
        DPKMeans(3, bounds=2.0, epsilon=1.0).privacy_plan(2).rho
    )


def test_candidates_that_are_not_gaussian_are_composed_as_zcdp():
    found = DPGridSearch(
        DPKTupleKMeans(bounds=2.0, n_tuples=20), GRID, epsilon=60.0, random_state=0
    )
    plan = found.privacy_plan(2)
    assert not plan.gaussian
    assert 0 < plan.delta_failure <= 0.5e-6
    assert plan.epsilon <= 60.0
    assert found.fit(corners(900)).best_params_["n_clusters"] in (2, 3, 4)


# ------------------------------------------------------------------------------- what is kept


def test_a_search_for_the_best_keeps_nothing_of_the_losers():
    found = search(selection="best", final="winner").fit(corners(900))
    scores = found.cv_results_["mean_test_score"]
    assert np.isfinite(scores[found.best_index_])
    assert np.isnan(np.delete(scores, found.best_index_)).all()
    assert sorted(found.cv_results_["rank_test_score"]) == [1, 2, 2]
    assert not hasattr(found, "estimators_")
    assert not any("time" in name for name in found.cv_results_)
    assert len(found.privacy_report_.releases) == 1
    assert found.best_estimator_.privacy_report_ is found.privacy_report_
    assert found.best_estimator_.random_state is None
    assert not hasattr(found.best_estimator_, "labels_")


def test_the_number_of_runs_does_not_show(monkeypatch):
    """Two searches with the same winning run and other numbers of losing ones: the same pickle."""
    from sklearn_dp._privacy._selection import Thin

    def outcome(drawn):
        monkeypatch.setattr(Thin, "draw", lambda self, source: np.array(drawn))
        found = search(selection="best", final="winner").fit(corners(900))
        return found.best_index_, pickle.dumps(found), repr(found.privacy_report_)

    # Run 0 is the only run of the right number of clusters: it wins.
    first, second = outcome([1, 0]), outcome([1, 0, 2])
    assert first[0] == 1
    assert first == second


def test_with_all_every_score_is_released():
    found = search(selection="all").fit(corners(900))
    assert np.isfinite(found.cv_results_["mean_test_score"]).all()
    assert sorted(found.cv_results_["rank_test_score"]) == [1, 2, 3]
    assert [each.n_clusters for each in found.estimators_] == [2, 3, 4]
    assert list(found.cv_results_["param_n_clusters"]) == [2, 3, 4]


def test_auto_releases_few_and_hides_many():
    few = search().privacy_plan(2)
    many = DPGridSearch(DPKMeans(bounds=2.0), {"n_clusters": range(2, 11)}).privacy_plan(2)
    assert few.gaussian
    assert many.one_step
    ledger = PrivacyLedger(PrivacyBudget(epsilon=3.0, delta=1e-5), composition="gaussian")
    assert (
        DPGridSearch(DPKMeans(bounds=2.0), {"n_clusters": range(2, 11)}, ledger=ledger)
        .privacy_plan(2)
        .gaussian
    )


def test_searches_with_a_seed_repeat_on_any_number_of_threads():
    one = search(selection="best").fit(corners(300))
    two = search(selection="best", n_jobs=2).fit(corners(300))
    np.testing.assert_array_equal(
        one.best_estimator_.cluster_centers_, two.best_estimator_.cluster_centers_
    )
    with pytest.warns(SeededNoiseWarning):
        search().fit(corners(300))


def test_fits_of_one_search_have_noise_of_their_own():
    """The same candidate twice: other centers, with a seed too."""
    grid = [{"n_clusters": [3]}, {"n_clusters": [3]}]
    found = DPGridSearch(DPKMeans(bounds=2.0), grid, epsilon=2.0, random_state=0).fit(corners(300))
    first, second = (each.cluster_centers_ for each in found.estimators_)
    assert np.abs(first - second).max() > 1e-6


# ---------------------------------------------------------------------------------- audits


SMALL = {"n_clusters": [2, 3]}


@pytest.mark.parametrize(
    ("selection", "groups"),
    [
        ("all", True),
        ("best", False),
        pytest.param("all", False, marks=pytest.mark.slow),
        pytest.param("best", True, marks=pytest.mark.slow),
    ],
)
def test_replay(selection, groups):
    """Releases, costs and everything shown, over neighbours: 0 violations."""
    X = corners(60)
    given = np.arange(60) // 3 if groups else None
    estimator = DPGridSearch(DPKMeans(bounds=2.0), SMALL, epsilon=20.0, selection=selection)
    result = replay_audit(estimator, X, groups=given)
    assert result.violations == []
    assert result.n_pairs >= 10


@pytest.mark.slow
def test_replay_of_a_pipeline():
    grid = {"dppca__n_components": [1, 2]}
    estimator = DPGridSearch(pipeline(), grid, epsilon=20.0, scoring="cost")
    assert replay_audit(estimator, corners(40, d=3)).violations == []


def uncentered(monkeypatch):
    """Scores between low and high, with the sensitivity of centered ones."""
    original = _scorers.noisy_score

    def shifted(session, entry, scorer, fitted, X, y, units):
        wide = _scorers.Scorer(
            scorer.name, 2 * scorer.low - scorer.high, scorer.high, scorer.values
        )
        half = _Halved(session)
        return original(half, entry, wide, fitted, X, y, units)

    monkeypatch.setattr(_runs, "noisy_score", shifted)


class _Halved:
    """A session that is told half of a sensitivity."""

    def __init__(self, session):
        self._session = session

    def gaussian(self, entry, value, *, sensitivity, unit):
        return self._session.gaussian(entry, value, sensitivity=sensitivity / 2, unit=unit)


def rows_that_hang_on_others(monkeypatch):
    """A row's score depends on the mean of all rows."""
    original = _scorers._silhouette

    def moved(limits):
        scorer = original(limits)
        return _scorers.Scorer(
            scorer.name,
            scorer.low,
            scorer.high,
            lambda fitted, X, y: scorer.values(fitted, X - X.mean(axis=0), y),
        )

    monkeypatch.setitem(_scorers._BUILT_IN, "silhouette", moved)


def exact_score(monkeypatch):
    """The score is compared without its noise."""
    original = _runs.Runner._scored

    def scored(self, number, session):
        _, fitted = original(self, number, session)
        values = self._plan.scorer.values(fitted, self._X, self._y)
        return float(values.sum()), fitted

    monkeypatch.setattr(_runs.Runner, "_scored", scored)


def losers_kept(monkeypatch):
    """Scores of runs that lost are stored."""
    original = _runs.Runner._best

    def best(self):
        outcome = original(self)
        outcome.scores[:] = len(self._X)
        return outcome

    monkeypatch.setattr(_runs.Runner, "_best", best)


@pytest.mark.parametrize(
    ("broken", "selection"),
    [
        (uncentered, "all"),
        pytest.param(rows_that_hang_on_others, "all", marks=pytest.mark.slow),
        pytest.param(exact_score, "all", marks=pytest.mark.slow),
        (exact_score, "best"),
        pytest.param(losers_kept, "best", marks=pytest.mark.slow),
    ],
)
def test_broken_searches_are_caught(monkeypatch, broken, selection):
    broken(monkeypatch)
    estimator = DPGridSearch(DPKMeans(bounds=2.0), SMALL, epsilon=20.0, selection=selection)
    assert replay_audit(estimator, corners(60)).violations


@pytest.mark.parametrize("forgotten", ["first steps", "last fit", "candidates"])
def test_fits_that_are_not_paid_are_caught(monkeypatch, forgotten):
    """A fit outside the charge spends what the plan does not hold."""
    original = _runs.Runner._inner

    def free(self, entry, plan, tag):
        if entry == forgotten:
            return self._session.inside(plan, tag)
        return original(self, entry, plan, tag)

    monkeypatch.setattr(_runs.Runner, "_inner", free)
    fits = []
    inside = _runs.Runner.run

    def run(self):
        outcome = inside(self)
        fits.append(self._session.spent)
        return outcome

    monkeypatch.setattr(_runs.Runner, "run", run)
    grid = {"dppca__n_components": [1, 2]}
    found = DPGridSearch(
        pipeline(), grid, epsilon=2.0, scoring="cost", selection="all", random_state=0
    ).fit(corners(90, d=3))
    assert fits[0] < 0.9 * found.privacy_plan(3).rho


# ------------------------------------------------------------------------------- bad input


BAD = {
    "empty grid": (lambda: search().set_params(param_grid={"n_clusters": []}), "Parameter grid"),
    "unknown parameter": (
        lambda: search().set_params(param_grid={"no_such": [1, 2]}),
        "Invalid parameter",
    ),
    "bad value": (lambda: search().set_params(param_grid={"n_clusters": [2, 0]}), "n_clusters"),
    "own epsilon": (
        lambda: DPGridSearch(DPKMeans(epsilon=1.0), GRID),
        "estimator sets epsilon",
    ),
    "own ledger": (
        lambda: DPGridSearch(
            DPKMeans(ledger=PrivacyLedger(PrivacyBudget(epsilon=1, delta=1e-6))), GRID
        ),
        "estimator sets ledger",
    ),
    "budget in the grid": (
        lambda: DPGridSearch(DPKMeans(), {"epsilon": [1.0, 2.0]}),
        "param_grid sets epsilon",
    ),
    "not private": (lambda: DPGridSearch(KMeans(), GRID), "estimator must be"),
    "a step that learns": (
        lambda: DPGridSearch(
            make_pipeline(StandardScaler(), DPKMeans()), {"dpkmeans__n_clusters": [2, 3]}
        ),
        "learns from private rows",
    ),
    "no such public step": (
        lambda: DPGridSearch(
            make_pipeline(Normalizer(), DPKMeans()),
            {"dpkmeans__n_clusters": [2, 3]},
            public_steps=["scaler"],
        ),
        "public_steps",
    ),
    "memory": (
        lambda: DPGridSearch(
            make_pipeline(Normalizer(), DPKMeans(), memory="cache"),
            {"dpkmeans__n_clusters": [2, 3]},
        ),
        "memory",
    ),
    "cost chooses k": (lambda: search(scoring="cost"), "cannot choose n_clusters"),
    "cost without a cap": (
        lambda: DPGridSearch(
            make_pipeline(DPPCA(), DPKMeans()),
            {"dppca__n_components": [1, 2]},
            scoring="cost",
        ),
        "bounds or max_distance",
    ),
    "unknown scoring": (lambda: search(scoring="accuraci"), "scoring must be"),
    "rho and best": (
        lambda: search(epsilon=None, rho=0.5, selection="best"),
        "give epsilon",
    ),
    "best of what is not gaussian": (
        lambda: DPGridSearch(DPKTupleKMeans(bounds=2.0), GRID, selection="best"),
        "releases are all Gaussian",
    ),
    "unknown selection": (lambda: search(selection="some"), "selection must be"),
    "unknown final": (lambda: search(final="none"), "final must be"),
    "shares": (lambda: search(shares={"search": 0.3}), "shares must be"),
    "step shares": (lambda: search(shares=Shares(steps={"a": 1.0})), "budget_shares"),
    "coverage": (lambda: search(selection=BestOf(coverage=0.2)), "coverage"),
    "tiny budget": (lambda: search(epsilon=1e-6), "too small"),
    "epsilon and rho": (lambda: search(rho=0.5), "epsilon and rho"),
    "n_iter": (
        lambda: DPRandomizedSearch(DPKMeans(), GRID, n_iter=0),
        "n_iter",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_searches_are_refused_before_the_charge(name):
    make, words = BAD[name]
    estimator = make()
    ledger = PrivacyLedger(PrivacyBudget(epsilon=50.0, delta=1e-3))
    estimator.set_params(ledger=ledger)
    with pytest.raises((TypeError, ValueError), match=words):
        estimator.fit(corners(30))
    assert ledger.entries == ()


def test_best_does_not_fit_a_gaussian_ledger():
    ledger = PrivacyLedger(PrivacyBudget(epsilon=3.0, delta=1e-5), composition="gaussian")
    with pytest.raises((ValueError, LedgerError), match="selection='all'"):
        search(selection="best", ledger=ledger).fit(corners(30))


@pytest.mark.parametrize("bad", ["shares", "score"])
def test_shares_are_checked(bad):
    with pytest.raises(ValueError, match="between 0 and 1"):
        Shares(**{"search" if bad == "shares" else "score": 1.5})


def test_y_is_checked():
    with pytest.raises(ValueError, match="y must be"):
        search().fit(corners(30), np.zeros(29))


# -------------------------------------------------------------------------------- manners


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("selection", ["all", pytest.param("best", marks=pytest.mark.slow)])
def test_scikit_learns_checks(selection):
    estimator = DPGridSearch(
        DPKMeans(), {"n_clusters": [2, 3]}, epsilon=100.0, selection=selection, random_state=0
    )
    results = check_estimator(estimator, on_fail=None, on_skip=None)
    failed = [each["check_name"] for each in results if each["status"] == "failed"]
    assert failed == []


def test_steps_without_fitting_and_public_steps():
    X = corners(600) + 2.0
    scaler = StandardScaler().fit(corners(100) + 2.0)
    pipe = make_pipeline(scaler, FunctionTransformer(), DPKMeans(bounds=6.0))
    found = DPGridSearch(
        pipe,
        {"dpkmeans__n_clusters": [2, 3]},
        public_steps=["standardscaler"],
        epsilon=5.0,
        random_state=0,
    ).fit(X)
    assert found.best_params_ == {"dpkmeans__n_clusters": 3}
    np.testing.assert_array_equal(found.best_estimator_.steps[0][1].mean_, scaler.mean_)
    assert found.predict(X[:5]).shape == (5,)


def test_mixtures_are_chosen_by_density():
    X = corners(3000, sd=0.2)
    found = DPGridSearch(
        DPGaussianMixture(bounds=3.0), {"n_components": [1, 3]}, epsilon=5.0, random_state=0
    ).fit(X)
    assert found.best_params_ == {"n_components": 3}
    mean = found.best_estimator_.score(X) + np.log(np.pi * 9.0)
    assert found.best_score_ == pytest.approx(mean, abs=0.1)
    assert found.score_samples(X[:3]).shape == (3,)
    assert found.predict_proba(X[:3]).shape == (3, 3)


def test_a_score_of_ones_own():
    def near(fitted, x, y):
        if x[0] > 100:
            raise ValueError(f"row {x}")
        return float(np.abs(fitted.cluster_centers_ - x).max(axis=1).min() < 0.3)

    scorer = PrivateScorer(near, low=0.0, high=1.0)
    X = np.vstack([corners(300), [[1e6, 0.0]]])
    found = search(scoring=scorer, epsilon=20.0).fit(X)
    assert found.best_params_["n_clusters"] >= 3
    assert found.best_score_ == pytest.approx(1.0, abs=0.1)


def test_accuracy_needs_y():
    X = corners(600)
    y = (X[:, 0] > 0.5).astype(int)
    found = DPGridSearch(
        SampleAndAggregate(
            LogisticRegression(), output=("coef_", "intercept_"), classes=[0, 1], n_blocks=20
        ),
        {"n_blocks": [20, 30]},
        scoring="accuracy",
        epsilon=100.0,
        random_state=0,
    )
    assert found.fit(X, y).best_score_ > 0.8
    with pytest.raises(ValueError, match="y must be given"):
        found.fit(X)


def test_random_candidates_are_public_and_repeat():
    options = {"n_iter": 3, "candidates_state": 1, "random_state": 0, "epsilon": 5.0}
    grid = {"n_clusters": range(2, 9)}
    one = DPRandomizedSearch(DPKMeans(bounds=2.0), grid, **options).fit(corners(600))
    two = clone(one).fit(corners(600))
    assert one.cv_results_["params"] == two.cv_results_["params"]
    assert one.n_candidates_ == 3


def test_feature_names_pass_to_the_answer():
    pd = pytest.importorskip("pandas", reason="feature names come with pandas")
    X = pd.DataFrame(corners(300), columns=["a", "b"])
    found = search().fit(X)
    assert list(found.best_estimator_.feature_names_in_) == ["a", "b"]
    assert found.predict(X).shape == (300,)
