"""What is released has its guarantee with it: the report of all that it comes from, and the ledger.

Each kind of mistake has a case for each way in which an object leaves a fit: out of a search, a
segment, a pipeline, a stream, a copy or a pickle.
"""

import copy
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_dp import (
    DPPCA,
    DPBySegment,
    DPKMeans,
    DPStandardScaler,
    DPTopics,
    FriendlyMean,
    PrivacyBudget,
    PrivacyLedger,
    SampleAndAggregate,
    privacy_report,
    privatize,
)
from sklearn_dp._guarantee import ledgers_inside
from sklearn_dp.accounting import deployment_entry
from sklearn_dp.audit import record_releases
from sklearn_dp.exceptions import BudgetExceededError, LedgerError
from sklearn_dp.mixture import KTupleOptions
from sklearn_dp.model_selection import DPGridSearch, DPRandomizedSearch

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.ExactStatisticsWarning")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 2)) + 5 * RNG.integers(2, size=(400, 1))
BY = RNG.choice(["n", "s"], size=400)
FEW = {"n_clusters": [2, 3]}
MANY = {"n_clusters": [2, 3, 4, 5]}  # of which only the best is released


def book(epsilon=1.0, **options):
    return PrivacyLedger(PrivacyBudget(epsilon=epsilon, delta=1e-5), **options)


def kmeans(**options):
    return DPKMeans(**{"n_clusters": 2, "bounds": 15.0, **options})


def of_search(grid=FEW, place=None, search=DPGridSearch, **options):
    found = search(kmeans(), grid, **options).fit(X)
    return found.best_estimator_ if place is None else found.estimators_[place]


def of_pipeline(**options):
    pipeline = make_pipeline(DPStandardScaler(), kmeans())
    found = DPGridSearch(pipeline, {"dpkmeans__n_clusters": [2, 3]}, **options).fit(X)
    return found.best_estimator_[-1]


def segments(**options):
    return DPBySegment(kmeans(), values=["n", "s"], **options).fit(X, by=BY)


def topics(**options):
    rows = np.abs(np.random.default_rng(0).normal(size=(300, 4)))
    return DPTopics(3, **options).fit(rows)


# What comes out of a fit as a part of it, by how it left.
PARTS = {
    "search": of_search,
    "search of many": lambda **options: of_search(MANY, **options),
    "a candidate": lambda **options: of_search(place=0, **options),
    "random search": lambda **o: of_search(search=DPRandomizedSearch, n_iter=2, **o),
    "search of a pipeline": of_pipeline,
    "segment": lambda **options: segments(**options).estimators_["n"],
    "all segments": lambda **options: segments(**options).pooled_,
}
LEFT = {
    "": lambda model: model,
    "pickled": lambda model: pickle.loads(pickle.dumps(model)),
    "copied": copy.copy,
    "deep copy": copy.deepcopy,
}


def cost(report):
    return report.epsilon, report.delta, report.rho


# -- the report of a stream ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, left", [(name, [*LEFT][number % 4]) for number, name in enumerate(PARTS)]
)
def test_a_later_day_costs_no_less_than_what_came_before(name, left):
    """(1, 1e-6) became (0.47, 1e-6), and what had been released by the search was gone."""
    model = LEFT[left](PARTS[name]())
    before = model.privacy_report_
    assert before.epsilon == pytest.approx(1.0)
    model.partial_fit(X + 1).partial_fit(X + 2)
    after = model.privacy_report_
    assert cost(after) == cost(before) and model.days_.number == 3
    assert set(before.notes) < set(after.notes) and "new rows every day" in after.notes[-1]
    assert after.headline.startswith("(1, 1e-06)-DP")
    assert after.accounting == before.accounting and len(after.releases) > 0


@pytest.mark.parametrize("where", ["search", "segment", "all segments", "fit", "partial_fit"])
def test_payers_of_the_first_day_pay_for_all(where, tmp_path):
    region = book(path=tmp_path / "ledger.db").disjoint("region", ["n", "s"])
    if where in PARTS:
        model = PARTS[where](ledger=region["n"])
    else:
        model = getattr(kmeans(ledger=region["n"]), where)(X)
    before = model.privacy_report_
    for number, again in enumerate([model, pickle.loads(pickle.dumps(model))]):
        again.partial_fit(X + number, day=number)
        report = again.privacy_report_
        assert report.payers == "region = 'n'" and report.ledger == before.ledger != ()
        assert "paid by the units of region = 'n' only" in report.spent
    assert len(region.ledger.entries) == 1
    with pytest.raises(ValueError, match="^ledger must be that of region = 'n'"):
        again.set_params(ledger=region["s"]).partial_fit(X)


def day(model, seed=None, force=None):
    """One more day, whose noise has a seed or whose outputs are set."""
    model.set_params(random_state=seed)
    if force is None:
        return model.partial_fit(X + 1)
    with record_releases(force=force):
        return model.partial_fit(X + 1)


def exact(event):
    """The noise of a fit taken away."""
    return event.value if event.kind == "gaussian" else event.output


@pytest.mark.parametrize(
    "kind, start, bad",
    [
        ("seeded", "partial_fit", 0),
        ("seeded", "fit", 1),
        ("seeded", "search", 0),
        ("seeded", "segment", 2),
        ("forced", "partial_fit", 0),
        ("forced", "fit", 0),
        ("forced", "search", 1),
        ("forced", "segment", 0),
    ],
)
def test_no_day_forgets_a_seed_or_an_output_that_was_set(kind, start, bad):
    """A seeded first day was said to have the system's noise from the second day on."""
    how = {"seed": 3} if kind == "seeded" else {"force": exact}
    model = PARTS[start]() if start in PARTS else kmeans()
    if start == "fit":
        model.fit(X)
    for number in range(4):
        day(model, **(how if number == bad else {}))
        assert (model.privacy_report_.noise == kind) == (number >= bad)
        model = pickle.loads(pickle.dumps(model))
    words = "seed" if kind == "seeded" else "no guarantee: an audit set what this fit released"
    assert words in repr(model.privacy_report_) and words[:4] in model.privacy_report_._repr_html_()
    assert "no guarantee" in str(deployment_entry(model.privacy_report_))


@pytest.mark.parametrize("kind", ["seeded", "forced"])
def test_what_comes_out_of_a_fit_says_how_its_noise_was_made(kind):
    options = {"random_state": 0} if kind == "seeded" else {}
    with record_releases(force=exact if kind == "forced" else None):
        found = DPGridSearch(kmeans(), FEW, **options).fit(X)
        parts = [found, found.best_estimator_, *found.estimators_]
        parts += (model := segments(**options), model.pooled_, *model.estimators_.values())
        parts += (model := topics(**options), model.estimator_)
        step = DPStandardScaler(**options).fit(X)
    assert {part.privacy_report_.noise for part in parts} == {kind}
    assert {pickle.loads(pickle.dumps(part)).privacy_report_.noise for part in parts} == {kind}
    for pipeline in (privatize(make_pipeline(StandardScaler(), KMeans(2))).fit(X),):
        pipeline.steps[0] = ("standardscaler", step)
        assert privacy_report(pipeline).noise == kind
    assert step.fit(X).privacy_report_.noise == ("seeded" if options else "system")


def test_a_recording_forces_nothing():
    with record_releases():
        assert kmeans().fit(X).privacy_report_.noise == "system"


def test_nothing_is_written_over_a_report():
    report = (model := kmeans().fit(X)).privacy_report_
    with pytest.raises(AttributeError):
        model.privacy_report_ = report
    with pytest.raises(FrozenInstanceError):
        report.epsilon = 0.1
    for change in (
        lambda line: line.update(rho=0.0),
        lambda line: line.pop("rho"),
        lambda line: line.__setitem__("rho", 0.0),
        lambda line: line.clear(),
    ):
        with pytest.raises(TypeError, match="a report cannot be changed"):
            change(report.releases[0])
    assert pickle.loads(pickle.dumps(report)) == copy.deepcopy(report) == report
    assert not hasattr(clone(model), "privacy_report_")
    model.fit(X[:300])  # begins anew
    assert model.privacy_report_ is not report and model.privacy_report_.noise == "system"


# -- the ledger ------------------------------------------------------------------------------------

PAID = {
    **PARTS,
    "topics": lambda **options: topics(**options).estimator_,
    "merged topics": lambda **options: topics(**options).merge().estimator_,
}


def rows_for(model):
    return np.abs(np.random.default_rng(1).normal(size=(100, model.n_features_in_)))


@pytest.mark.parametrize("name", PAID)
def test_what_a_ledger_has_paid_for_spends_no_more_without_it(name):
    """private_score(X, epsilon=5.) of it spent 5 on an exhausted ledger, without a charge."""
    ledger = book()
    model = PAID[name](ledger=ledger)
    rows, (charge,) = rows_for(model), ledger.entries
    for again in (model, copy.copy(model), copy.deepcopy(model)):
        with pytest.raises(BudgetExceededError):
            again.private_score(rows, epsilon=5.0)
        with pytest.raises(BudgetExceededError):
            again.fit(rows)
    with pytest.raises(BudgetExceededError):
        clone(model).fit(rows)
    assert ledger.entries == (charge,)
    assert np.isfinite(model.private_score(rows, ledger=False))  # said in a word
    assert np.isfinite(model.private_score(rows, ledger=(other := book())))
    assert ledger.entries == (charge,) and len(other.entries) == 1
    with pytest.raises(ValueError, match="^ledger must be given"):
        model.set_params(ledger=None).private_score(rows)
    model.set_params(ledger=False).fit(rows)
    assert ledger.entries == (charge,) and model.privacy_report_.ledger == ()


@pytest.mark.parametrize("kept", ["memory", "file"])
@pytest.mark.parametrize("name", PAID)
def test_it_is_charged_where_it_was(name, kept, tmp_path):
    path = None if kept == "memory" else tmp_path / "ledger.db"
    ledger = book(9.0, path=path)
    model = PAID[name](ledger=ledger if path is None else str(path))
    model.private_score(rows_for(model), epsilon=2.0)
    assert [charge.epsilon for charge in ledger.entries[1:]] == [pytest.approx(2.0)]
    again = pickle.loads(pickle.dumps(model))
    if kept == "file":
        again.private_score(rows_for(model), epsilon=3.0)
        assert ledger.entries[-1].epsilon == pytest.approx(3.0)
        return
    for spend in (lambda: again.private_score(rows_for(model)), lambda: again.fit(rows_for(model))):
        with pytest.raises(LedgerError, match="^ledger was kept in the memory of the process"):
            spend()
    assert len(ledger.entries) == 2
    again.private_score(rows_for(model), ledger=ledger)
    assert len(ledger.entries) == 3


def means(**options):
    options |= {"output": ("mean_",), "output_bounds": 9.0, "n_blocks": 20}
    return SampleAndAggregate(FriendlyMean(bounds=5.0), **options)


@pytest.mark.parametrize(
    "outer, inner",
    [
        (lambda **o: means(**o).fit(X), lambda model: model.estimator_),
        (
            lambda **o: DPBySegment(means(), values=["n", "s"], **o).fit(X, by=BY),
            lambda model: model.estimators_["s"].estimator_,
        ),
        (
            lambda **o: DPGridSearch(means(), {}, **o).fit(X),
            lambda model: model.best_estimator_.estimator_,
        ),
        (
            lambda **o: DPGridSearch(DPTopics(), {"n_topics": [2]}, **o).fit(np.abs(X)),
            lambda model: model.best_estimator_.estimator_,
        ),
    ],
    ids=["blocks", "of a segment", "of a search", "topics of a search"],
)
def test_what_is_inside_of_what_came_out_is_charged_there_too(outer, inner):
    ledger = book()
    model = outer(ledger=ledger)
    found = inner(model)
    assert found.privacy_report_ is model.privacy_report_
    with pytest.raises(BudgetExceededError):
        found.set_params(epsilon=1.0, rho=None).fit(X)
    assert len(ledger.entries) == 1


def test_segments_go_on_by_days_with_names(tmp_path):
    """Each is a stream of its own, whose days are not fitted twice, in whatever copy, or pooled."""
    ledger = book(path=tmp_path / "ledger.db")
    models = segments(ledger=ledger)
    night = {value: pickle.dumps(model) for value, model in models.estimators_.items()}
    for model in models.estimators_.values():
        assert model.partial_fit(X, day="2026-03-02").days_.number == 2
    for model in (models.pooled_, *map(pickle.loads, night.values())):
        for day in ("2026-03-02", None):
            with pytest.raises(LedgerError, match="begun before"):
                model.partial_fit(X, day=day)
    assert len(ledger.entries) == 1 and len(ledger.state().days) == 2


def test_a_search_that_was_saved_asks_for_its_ledger(tmp_path):
    search = DPGridSearch(kmeans(), FEW, ledger=book(9.0)).fit(X)
    again = pickle.loads(pickle.dumps(search))
    assert again.privacy_report_ == search.privacy_report_
    for fit in (again.fit, again.best_estimator_.fit, again.estimators_[0].fit):
        with pytest.raises(LedgerError, match="^ledger was kept in the memory of the process"):
            fit(X)
    assert copy.deepcopy(search).fit(X).ledger is search.ledger
    assert len(search.ledger.entries) == 2


def test_a_report_does_not_need_the_ledger(tmp_path):
    """It may be on another machine, or was in the memory of another process."""
    path, lost = tmp_path / "study.db", "could not be read"
    PrivacyLedger(PrivacyBudget(epsilon=9.0, delta=1e-5), path=path)
    for ledger in (book(9.0), str(path), PrivacyLedger(path=path)):
        model = privatize(make_pipeline(StandardScaler(), KMeans(2)), ledger=ledger).fit(X)
        again = pickle.loads(pickle.dumps(model))
        if not isinstance(ledger, str) and ledger.path is None:
            assert "left when" in privacy_report(model).subject["Ledger in memory"]
            assert lost in privacy_report(again).subject["Ledger in memory"]
            assert privacy_report(again) == privacy_report(model)
            assert repr(again).endswith(privacy_report(model).headline)
    path.unlink()
    assert lost in privacy_report(again).subject[f"Ledger {path}"]
    assert privacy_report(again) == privacy_report(model)


def test_what_is_released_of_a_search_need_not_be_an_estimator():
    scored = SampleAndAggregate(DPGridSearch(kmeans(), FEW), output=("best_score_",))
    assert scored.set_params(output_bounds=1.0).fit(X).privacy_report_.problems == ()


# -- what hides in parameters ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "estimator",
    [
        lambda ledger: DPPCA(ledger=ledger),
        lambda ledger: make_pipeline(make_pipeline(DPPCA(ledger=ledger))),
        lambda ledger: GridSearchCV(DPPCA(), {"ledger": [None, ledger]}),
        lambda ledger: GridSearchCV(make_pipeline(DPPCA()), [{"dppca__ledger": [ledger]}]),
        lambda ledger: GridSearchCV(make_pipeline(DPPCA()), {"dppca": [DPPCA(ledger=ledger)]}),
        lambda ledger: SampleAndAggregate(DPBySegment(DPPCA(ledger=ledger))),
        lambda ledger: KTupleOptions(inner=DPKMeans(ledger=ledger)),
    ],
)
def test_ledgers_are_found_wherever_they_hide(estimator, tmp_path):
    ledger = book(path=tmp_path / "ledger.db")
    value = ledger.disjoint("region", ["n"])["n"]
    for each in (ledger, value, str(tmp_path / "ledger.db"), tmp_path / "ledger.db"):
        assert [found for _, found in ledgers_inside(estimator(each))] == [each]
    for none in (None, False):
        assert not list(ledgers_inside(estimator(none)))
