"""Rows that come day by day: one guarantee, one charge, releases as the only memory."""

import os
import pickle
from datetime import date, datetime
from enum import Enum
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pytest
from day_tools import CENTERS, STREAMS, evening, problems, recorded, rows_of
from sklearn.base import clone

from sklearn_dp import (
    DPPCA,
    DPBySegment,
    DPGaussianMixture,
    DPKMeans,
    FriendlyCovariance,
    FriendlyMean,
    PrivacyBudget,
    PrivacyLedger,
)
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp.audit import neighboring_pairs
from sklearn_dp.audit._checks import Watched
from sklearn_dp.audit._laws import law_of
from sklearn_dp.audit._recount import paid, rho_of
from sklearn_dp.exceptions import BudgetExceededError, LedgerError
from sklearn_dp.model_selection import DPGridSearch


def kmeans(**options):
    return DPKMeans(4, **{"bounds": 1.0, "random_state": 0, **options})


def stream(model, n_days, **options):
    for day in range(n_days):
        model.partial_fit(rows_of(day), **options)
    return model


def test_days_add_up():
    model = stream(kmeans(random_state=3), 10)
    assert model.days_.number == 10 and repr(model.days_) == "Days(number=10)"
    assert abs(model.size_ - 3000) < 5 * model.size_std_error_
    assert 80 < model.size_std_error_ < 200  # ten days of some thirty each
    distance = np.linalg.norm(CENTERS[:, None] - model.cluster_centers_, axis=2)
    near = model.cluster_centers_[distance.argmin(axis=1)]
    errors = model.cluster_centers_std_error_[distance.argmin(axis=1)]
    assert (np.abs(near - CENTERS) < 5.5 * errors).all() and errors.max() < 0.02
    assert model.status_ == "ok" and model.explained_ > 0.9
    assert model.labels_.shape == (300,)  # of the last day, in memory only
    assert not hasattr(evening(model), "labels_")


def test_a_stream_is_charged_on_its_first_day():
    ledger = PrivacyLedger(PrivacyBudget(1.0, 1e-6))
    model = stream(kmeans(ledger=ledger), 3)
    (charge,) = ledger.entries
    assert charge.epsilon <= 1.0 and charge.label == "DPKMeans"
    assert model.privacy_report_.epsilon <= 1.0
    assert any("at most one day" in note for note in model.privacy_report_.notes)
    with pytest.raises(BudgetExceededError):
        kmeans(ledger=ledger).partial_fit(rows_of(0))


@pytest.mark.parametrize("first", ["fit", "partial_fit"])
def test_a_ledger_that_has_not_been_charged_is_refused(first):
    """Units of the south would come for nothing on the second day of the north."""
    region = PrivacyLedger(PrivacyBudget(1.0, 1e-6)).disjoint("region", values=["north", "south"])
    model = getattr(kmeans(ledger=region["north"]), first)(rows_of(0))
    for other in (region["south"], region.ledger):
        with pytest.raises(ValueError, match="^ledger must be that of region"):
            model.set_params(ledger=other).partial_fit(rows_of(1))
    with pytest.raises(ValueError, match="^ledger must be that of the first day"):
        model.set_params(ledger=None).partial_fit(rows_of(1))
    for same in (region["north"], False):
        model.set_params(ledger=same).partial_fit(rows_of(1))
    with pytest.raises(ValueError, match="^ledger must be None: the first day had no ledger"):
        getattr(kmeans(), first)(rows_of(0)).set_params(ledger=region.ledger).partial_fit(
            rows_of(1)
        )


@pytest.mark.parametrize("first", ["fit", "partial_fit"])
@pytest.mark.parametrize("kept", ["in memory", "in a file"])
def test_another_ledger_is_refused(first, kept, tmp_path):
    """Its units, which are others, would come for nothing."""
    paths = [None, None] if kept == "in memory" else [tmp_path / "a.db", tmp_path / "b.db"]
    one, other = (PrivacyLedger(PrivacyBudget(1.0, 1e-6), path=path) for path in paths)
    model = getattr(kmeans(ledger=one), first)(rows_of(0)).set_params(ledger=None)
    model = evening(model)
    with pytest.raises(ValueError, match="^ledger must be that of the first day"):
        model.set_params(ledger=other).partial_fit(rows_of(1))
    assert model.set_params(ledger=one).partial_fit(rows_of(1)).days_.number == 2
    if kept == "in a file":  # by whatever name: it has an identity
        paths[0].rename(tmp_path / "moved.db")
        (tmp_path / "link.db").symlink_to(tmp_path / "moved.db")
        for name in ("moved.db", "link.db"):
            model.set_params(ledger=tmp_path / name).partial_fit(rows_of(2))
    # A fit after days begins anew, with the ledger that it charges.
    model.set_params(ledger=other).fit(rows_of(0)).partial_fit(rows_of(1))
    assert len(other.entries) == 1


@pytest.mark.parametrize("as_given", [str, lambda path: PrivacyLedger(path=path)])
@pytest.mark.parametrize("first", ["fit", "partial_fit"])
@pytest.mark.parametrize("what", ["new", "new and charged", "older copy", "missing", "no ledger"])
def test_another_file_under_the_same_path_is_refused(what, first, as_given, tmp_path):
    """Its total would never be charged, and its units would come for nothing."""
    path, total = str(tmp_path / "ledger.db"), PrivacyBudget(3.0, 1e-5)
    PrivacyLedger(total, path=path)
    older = (tmp_path / "ledger.db").read_bytes()
    model = getattr(kmeans(ledger=as_given(path)), first)(rows_of(0))
    os.rename(path, path + ".2025")
    if what == "older copy":
        (tmp_path / "ledger.db").write_bytes(older)
    elif what == "no ledger":
        (tmp_path / "ledger.db").write_text("notes")
    elif what != "missing":
        PrivacyLedger(total, path=path)
        if what == "new and charged":
            kmeans(ledger=path).fit(rows_of(0))
    centers, entries = model.cluster_centers_, what == "new and charged"
    for later in (model, evening(model)):
        with pytest.raises(ValueError, match="^ledger "):
            later.partial_fit(rows_of(1))
        assert later.cluster_centers_.tobytes() == centers.tobytes()
    if what.startswith("new"):
        assert len(PrivacyLedger(path=path).entries) == entries
    os.replace(path + ".2025", path)
    assert evening(model).partial_fit(rows_of(1)).days_.number == 2


class Weekday(str, Enum):  # noqa: UP042 - StrEnum prints as its text
    TUESDAY = "2026-03-02"


@pytest.mark.parametrize(
    ("days", "again"),
    [((1, 2, 3), [2, 2.0, np.int8(2), np.float32(2), np.uint64(2), None]),
     ((0, True, 2), [1, True, 1.0, np.bool_(True)]), ((1, None, 3), [None]),
     (("2026-03-01", "2026-03-02", "2026-03-03"),
      ["2026-03-02", np.str_("2026-03-02"), Weekday.TUESDAY]),
     ((date(2026, 3, 1), date(2026, 3, 2), date(2026, 3, 3)),
      [date(2026, 3, 2)]),
     ((np.datetime64("2026-03-01T00"), pd.Timestamp("2026-03-02"), datetime(2026, 3, 3)),
      [datetime(2026, 3, 2), np.datetime64("2026-03-02T00"), pd.Timestamp("2026-03-02")])],
)  # fmt: skip
@pytest.mark.parametrize("kept", ["in memory", "in a file"])
def test_a_day_of_a_process_that_died_is_not_fitted_again(days, again, kept, tmp_path, monkeypatch):
    """What it had released by then may be in its log; the model of the day before does not know."""
    path = None if kept == "in memory" else tmp_path / "ledger.db"
    ledger = PrivacyLedger(PrivacyBudget(1.0, 1e-6), path=path)
    model = kmeans(ledger=ledger).partial_fit(rows_of(0), day=days[0])
    night = pickle.dumps(model.set_params(ledger=None))

    def loaded():
        return pickle.loads(night).set_params(ledger=ledger)

    class Killed(BaseException):
        pass

    def die(session):
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(PrivacySession, "report", die)
        loaded().partial_fit(rows_of(1), day=days[1])
    for day in again:
        with pytest.raises(LedgerError, match="begun before"):
            loaded().partial_fit(Watched(rows_of(1), lambda: pytest.fail("read")), day=day)
    later = loaded().partial_fit(rows_of(1), day=days[2])
    assert later.days_.number == 2 and len(ledger.entries) == 1
    assert len(ledger.state().days) == 2


@pytest.mark.parametrize(
    "day",
    [np.nan, np.inf, 2.5, 1j, [1], (1,), b"x", "a\0b", "", "a\nb", object(), pd.NaT,
     np.timedelta64(2), np.datetime64("NaT"), np.array([1]), pd.Period("2026-03"), Fraction(1, 2)],
)  # fmt: skip
def test_a_day_whose_name_is_none_is_refused_before_the_charge(day):
    ledger = PrivacyLedger(PrivacyBudget(1.0, 1e-6))
    with pytest.raises((TypeError, ValueError), match="^day must be"):
        kmeans(ledger=ledger).partial_fit(Watched(rows_of(0), lambda: None), day=day)
    assert ledger.entries == ()


@pytest.mark.parametrize(
    "estimator",
    [kmeans(), DPGaussianMixture(2, bounds=5.0), FriendlyMean(bounds=5.0), FriendlyMean(),
     FriendlyCovariance(bounds=5.0), DPPCA(bounds=5.0)],
    ids=lambda estimator: type(estimator).__name__,
)  # fmt: skip
@pytest.mark.parametrize("budget", [{"epsilon": 1e-3}, {"rho": 1e-7}, {"epsilon": 3e-2}])
def test_a_budget_too_small_for_the_days_is_refused_before_the_charge(estimator, budget):
    """And the smallest one that is not gives an answer."""
    ledger = PrivacyLedger(PrivacyBudget(3.0, 1e-4))
    model = clone(estimator).set_params(**{"random_state": None, "ledger": ledger, **budget})
    taken = 1
    for n_days in (10**4, 10**3, 100, 10, 5, 3, 2):
        try:
            model.partial_fit(Watched(rows_of(0), lambda: None), n_days=n_days)
        except ValueError as error:
            assert str(error).startswith("n_days is too large for this budget")
            assert ledger.entries == () and not hasattr(model, "days_")
        else:
            taken = n_days
            break
    assert taken < 10**4 and len(ledger.entries) == (taken > 1)


def test_no_day_is_fitted_twice():
    model = kmeans().partial_fit(rows_of(0), day="2026-03-01")
    centers = model.cluster_centers_
    with pytest.raises(ValueError, match="^day must be larger than the last day begun.*letter by"):
        model.partial_fit(rows_of(0), day="2026-03-01")
    with pytest.raises(ValueError, match="^X has 2 features, but DPKMeans is expecting 3"):
        model.partial_fit(np.zeros((5, 2)), day="2026-03-01b")
    assert model.cluster_centers_ is centers
    with pytest.raises(TypeError, match="^day must have the same type"):
        model.partial_fit(rows_of(1), day=2)
    model.partial_fit(rows_of(1), day="2026-03-02")
    assert repr(model.days_) == "Days(number=2, last='2026-03-02')"


def test_a_public_mistake_does_not_begin_a_day():
    """Neither here nor in the ledger: no row has been read, and the day may still be fitted."""
    ledger = PrivacyLedger(PrivacyBudget(9.0, 1e-5))
    names = ["a", "b", "c"]
    table = pd.DataFrame(rows_of(1), columns=names)
    for begin in (kmeans(ledger=ledger).fit, partial(kmeans(ledger=ledger).partial_fit, day=1)):
        model = begin(pd.DataFrame(rows_of(0), columns=names)).set_params(ledger=ledger)
        before = dict(vars(model))
        for broken in (np.zeros((5, 2)), rows_of(1).astype(str), table[["b", "a", "c"]], {}):
            with pytest.raises((TypeError, ValueError)):
                model.partial_fit(broken, day=2)
        for name, value in {"random_state": "x", "n_jobs": 0, "epsilon": 0.5}.items():
            kept = model.get_params()[name]
            with pytest.raises((TypeError, ValueError), match=f"^{name}"):
                model.set_params(**{name: value}).partial_fit(table, day=2)
            model.set_params(**{name: kept})
        assert vars(model) == before and not ledger.state().days
    assert model.partial_fit(table, day=2).days_.number == 2


@pytest.mark.parametrize("broken", [np.full((5, 3), np.nan), np.zeros((0, 3))])
def test_a_day_that_fails_counts_as_begun_and_leaves_the_day_before(broken):
    model = kmeans().partial_fit(rows_of(0), day=1)
    before = {name: value for name, value in vars(model).items() if name != "days_"}
    with pytest.raises(ValueError):
        model.partial_fit(broken, day=2)
    assert {name: value for name, value in vars(model).items() if name != "days_"} == before
    with pytest.raises(ValueError, match="^day must be"):  # its rows have been looked at
        model.partial_fit(rows_of(1), day=2)
    assert model.partial_fit(rows_of(1), day=3).days_.number == 2


@pytest.mark.parametrize(
    "change, options",
    [
        ({"epsilon": 2.0}, {}),
        ({"bounds": ([-1.0] * 3, [1.0] * 3)}, {}),
        ({"n_clusters": 5}, {}),
        ({"max_weight": 2.0}, {}),
        ({}, {"n_days": 2}),
        ({}, {"groups": np.arange(300)}),
    ],
)
def test_what_a_day_costs_and_means_does_not_change(change, options):
    model = kmeans().partial_fit(rows_of(0)).set_params(**change)
    (name,) = change or options
    with pytest.raises(ValueError, match=f"^{name} must not change"):
        model.partial_fit(rows_of(1), **options)
    model.set_params(**{**{name: getattr(kmeans(), name) for name in change}, "n_jobs": 2})
    assert model.partial_fit(rows_of(1)).days_.number == 2


@pytest.mark.parametrize("first", ["fit", "partial_fit"])
@pytest.mark.parametrize(
    "estimator",
    [
        kmeans(),
        FriendlyMean(),
        FriendlyCovariance(bounds=1.0),
        DPPCA(bounds=1.0),
        DPGaussianMixture(1, bounds=1.0),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_weights_come_on_every_day_or_on_none(estimator, first):
    """Sums without weights were multiplied by `max_weight`: 6000 rows had a size of 15,000."""
    for weights in ((None, np.ones(300)), (np.ones(300), None)):
        model = clone(estimator).set_params(max_weight=4.0, random_state=0)
        getattr(model, first)(rows_of(0), sample_weight=weights[0])
        with pytest.raises(ValueError, match="^sample_weight must be given on every day or on"):
            model.partial_fit(rows_of(1), sample_weight=weights[1])
        assert model.partial_fit(rows_of(1), sample_weight=weights[0]).days_.number == 2


def test_a_person_of_several_days():
    """Each day has a part of rho; a unit pays so many of them, and the first day all at once."""
    target = PrivacyBudget(1.0, 1e-6)
    ledger = PrivacyLedger(target)
    model = kmeans(ledger=ledger)
    for day in range(3):
        model.partial_fit(rows_of(day), n_days=7)
        report = model.privacy_report_
        (others,) = [line for line in report.releases if line["release"] == "other days of a unit"]
        day_rho = sum(line["rho"] for line in report.releases) - others["rho"]
        assert day_rho <= model.days_.cost[2] * (1 + 1e-9) <= target.to_rho() / 7 * (1 + 1e-9)
        assert others["rho"] == pytest.approx(6 * model.days_.cost[2], rel=1e-12)
        assert 0.999 < report.epsilon <= 1.0
    (charge,) = ledger.entries
    assert 0.999 < charge.epsilon <= 1.0
    assert charge.rho == pytest.approx(7 * model.days_.cost[2], rel=1e-12)
    assert charge.rho <= target.to_rho()


def test_seeded_days_have_noise_of_their_own():
    model = kmeans().partial_fit(rows_of(0)).partial_fit(rows_of(1))
    first = model.size_
    model.partial_fit(rows_of(1))
    assert model.size_ - first != first - kmeans().partial_fit(rows_of(0)).size_


def test_what_has_no_days_says_so():
    for other in (DPBySegment(FriendlyMean()), DPGridSearch(kmeans(), {"n_clusters": [2, 3]})):
        assert not hasattr(other, "partial_fit")
    with pytest.raises(AttributeError, match="^DPKMeans has no partial_fit without public bounds"):
        DPKMeans(4).partial_fit(rows_of(0))
    with pytest.raises(TypeError, match="X must be in memory for partial_fit"):
        kmeans().partial_fit([rows_of(0), rows_of(1)])
    for option, value in {"half_life": 0.0, "n_days": 0}.items():
        with pytest.raises(ValueError, match=f"^{option}"):
            kmeans().partial_fit(rows_of(0), **{option: value})


# -- one unit of one day -------------------------------------------------------------------------


# Each kind of state that goes from day to day: the estimator, the days, and the rows of each.
MOVED = {
    "clusters": (kmeans(epsilon=8.0), 3, 25),
    "means": (FriendlyMean(epsilon=4.0), 2, 40),
    "means in a ball": (FriendlyMean(epsilon=8.0, bounds=2.0), 3, 40),
    "means in a box": (FriendlyMean(epsilon=8.0, bounds=(-1.0, 1.0)), 3, 40),
    "covariances": (FriendlyCovariance(epsilon=8.0, bounds=1.0), 3, 40),
    "covariances about 0": (
        FriendlyCovariance(epsilon=8.0, bounds=1.0, assume_centered=True), 3, 40),
    "covariances in a box": (FriendlyCovariance(epsilon=8.0, bounds=(0.0, [9.0] * 3)), 3, 40),
    "components": (DPPCA(epsilon=8.0, bounds=1.0), 3, 40),
    "components in a box": (DPPCA(epsilon=8.0, bounds=(-1.0, [9.0, 1.0, 1.0])), 3, 40),
    "a component": (DPPCA(1, epsilon=0.5, bounds=1.0), 3, 40),
    "mixture": (DPGaussianMixture(4, epsilon=8.0, bounds=1.0), 7, 300),
    "tied mixture": (
        DPGaussianMixture(4, epsilon=40.0, bounds=1.0, covariance_type="tied"), 7, 25),
}  # fmt: skip
# Days of one unit for every state, and the other streams in turn; `make audit` has all of them.
IN_STREAMS = [
    pytest.param(*case, marks=() if number % 3 == 0 or number % 4 == 1 else pytest.mark.slow)
    for number, case in enumerate(product(MOVED, STREAMS))
]


@pytest.mark.parametrize(("state", "name"), IN_STREAMS)
def test_a_unit_moves_one_day_for_what_a_day_costs(state, name):
    """Replays: of neighbors of each day, whichever of its kinds the day is."""
    (estimator, n_days, n), options = MOVED[state], STREAMS[name]
    days = [rows_of(day, n) for day in range(n_days)]
    recording = recorded(estimator, days, **options)
    for day in range(n_days):
        kinds = ("far", "remove", "zero") if n_days < 7 else (("far", "remove")[day % 2],)
        for pair in neighboring_pairs(days[day], day, kinds=kinds, points=CENTERS):
            assert problems(estimator, days, recording, day, pair, **options) == []


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize(
    "estimator",
    [
        kmeans(),
        FriendlyMean(epsilon=8.0, bounds=1.0),
        FriendlyCovariance(epsilon=8.0, bounds=1.0),
        FriendlyCovariance(epsilon=8.0, bounds=1.0, assume_centered=True),
        DPPCA(epsilon=8.0, bounds=1.0),
        DPGaussianMixture(4, epsilon=8.0, bounds=1.0),
    ],
    ids=str,
)
def test_each_day_draws_the_noise_that_it_pays_for(estimator, name):
    model, _, days = recorded(estimator, [rows_of(day) for day in range(3)], **STREAMS[name])
    for events in days:
        own = [event for event in paid(events) if event.entry != "other days of a unit"]
        assert all(np.array_equal(each.draws[0].scale, each.scale) for each in own)
        assert not [wrong for each in own for wrong in law_of(each).claims(each)]
        cost = sum(map(rho_of, own))
        assert 0.5 * model.days_.cost[2] < cost <= (1 + 1e-9) * model.days_.cost[2]


# -- means ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("bounds", [None, 10.0])
def test_means_of_days(bounds):
    first, last = [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        model = FriendlyMean(bounds=bounds, random_state=seed)
        for day in range(8):
            model.partial_fit(rng.normal([3.0, -1.0], [1.0, 0.5], size=(800, 2)), day=day)
            if not day:
                first.append(model.mean_std_error_)
        last.append(model.mean_std_error_)
        assert (np.abs(model.mean_ - [3.0, -1.0]) < 5 * model.mean_std_error_).all()
        assert model.status_ == "ok" and np.abs(model.mean_ - [3.0, -1.0]).max() < 0.06
        assert abs(model.size_ - 6400) < 5 * model.size_std_error_
    # Later days allow for tails beyond what the first one has looked at. Without bounds each day
    # has ends of its own, and all of them together tell how many rows are beyond.
    assert (np.mean(last, axis=0) < np.mean(first, axis=0) / (1.0 if bounds else 1.3)).all()


@pytest.mark.parametrize("budget", [{"epsilon": 8.0}, {"epsilon": None, "rho": 2.0}])
@pytest.mark.parametrize("locate", ["auto", "basic", "cells"])
def test_failures_of_days_add_up(budget, locate):
    """A day has its own part of delta, and what the other days may fail with is not for it."""
    X = np.random.default_rng(0).normal(size=(3000, 2))
    model = FriendlyMean(locate=locate, diameter=8.0, random_state=0, **budget)
    for _ in range(2):
        model.partial_fit(X, n_days=3)
    report = model.privacy_report_
    assert sum(line["delta"] for line in report.releases) <= report.delta == 1e-6
    assert model.trustworthy_ and model.days_.number == 2
