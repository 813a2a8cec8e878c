"""Every release that a value of a parameter can lead to is proved, and replayed here."""

import importlib
import sys
from functools import cache
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from configurations import DEFAULT, ESTIMATORS, MADE, TABLE, configurations
from day_tools import problems, recorded
from fuzz.arguments import good_options
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from sklearn_dp import DPPCA, DPKMeans, DPKTupleKMeans, DPProfile
from sklearn_dp.audit import neighboring_pairs
from sklearn_dp.audit._recount import paid
from sklearn_dp.audit._replay import ReplayResult, record, replay_recording
from sklearn_dp.model_selection import BestOf, DPGridSearch, DPRandomizedSearch, Shares

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

SEARCHES = {each.__name__: each for each in (DPGridSearch, DPRandomizedSearch)}
SPACES = {"DPGridSearch": "param_grid", "DPRandomizedSearch": "param_distributions"}
GAUSSIAN = make_pipeline(DPPCA(2, bounds=9.0), DPKMeans()), {"dpkmeans__n_clusters": [2, 3]}
OTHER = make_pipeline(DPPCA(2), DPKTupleKMeans()), {"dpktuplekmeans__n_clusters": [2, 3]}
OF_SEARCHES = {
    "scoring": [None, "silhouette"],
    "epsilon": [None, 30.0],
    "rho": [None, 0.1],
    "selection": ["auto", "all", "best", BestOf(), BestOf(constant_time=True)],
    "final": ["auto", "refit", "winner"],
    "public_steps": [(), ("dppca",)],
    "max_distance": [None, 1.0],
    "shares": [None, Shares(0.5, 0.5)],
}
# Many features lead to principal axes, a single one to ranks; clients are groups.
FACTS = (
    {"n_features": 2, "unit": "row"},
    {"n_features": 20, "unit": "group"},
    {"n_features": 1, "unit": "row"},
)
KINDS = ("far", "duplicate", "random", "remove")
# As many rows as a fit needs for all of its releases, where 60 are too few, or too many: blocks.
ROWS = {
    "DPGaussianMixture": 200,
    "DPKMeans": 200,
    "DPKTupleKMeans": 1300,
    "FriendlyCovariance": 200,
    "SampleAndAggregate": 30,
}


class Release(NamedTuple):
    """A kind of release: numbers in the name of the plan entry are `#`."""

    entry: str
    law: str


@cache
def proof_pages():
    """The module that reads `doc/proofs/releases.toml`."""
    sys.path.append(str(Path(__file__).resolve().parents[1] / "doc" / "_ext"))
    return importlib.import_module("proof_pages")


def release(entry, law):
    return Release(proof_pages().general(entry), law)


def laws_of(model, n_features, **facts):
    """The law of each plan entry."""
    return {e.name: str(e.mechanism) for e in model.privacy_plan(n_features, **facts).entries}


def searched(name, model, space, **options):
    few = {"n_iter": 2} if name == "DPRandomizedSearch" else {}
    return {"estimator": model, SPACES[name]: space, **few, **options}


def settings(name):
    """One value of one parameter at a time, in each setting of an estimator."""
    if name in ESTIMATORS:
        other = MADE, ("more mutants",)
        bases = [options for options, uses in TABLE.get(name, DEFAULT) if uses not in other]
        values = good_options(ESTIMATORS[name])
    else:
        bases, values = [searched(name, *each) for each in (GAUSSIAN, OTHER)], OF_SEARCHES
    for base, (parameter, candidates) in product(bases, values.items()):
        for value in candidates:
            yield {**base, parameter: value}


def planned(name):
    """The releases of all plans, and a setting that plans each."""
    cls, found = {**ESTIMATORS, **SEARCHES}[name], {}
    for options, facts in product(settings(name), FACTS):
        rows = np.random.default_rng(0).random((40, facts["n_features"]))
        for more in ({}, {"X_server": rows}) if name == "FederatedDPKMeans" else ({},):
            try:
                laws = laws_of(cls(**options), **facts, **more)
            except (TypeError, ValueError):  # parameters that do not go together
                continue
            for entry, law in laws.items():
                found.setdefault(release(entry, law), (options, facts))
    return found


def models_of(name):
    """The models that together make every release."""
    if name in ESTIMATORS:
        return [setting.estimator for setting in configurations("releases", name)]
    ways = (
        (GAUSSIAN, {"epsilon": 1000.0, "selection": "all"}),
        (GAUSSIAN, {"epsilon": 20.0, "selection": "best"}),
        (OTHER, {"epsilon": 1000.0}),
    )
    return [SEARCHES[name](**searched(name, *each, **options)) for each, options in ways]


def tables(n):
    """Three clusters: narrow rows, the same in pairs, wide rows, one column; and which neighbors
    they meet."""
    rng = np.random.default_rng(7)
    places = 3 * rng.uniform(-1, 1, size=(3, 20))
    X = places[np.arange(n) % 3] + 0.05 * rng.uniform(-1, 1, size=(n, 20))
    narrow = X[:, :2]
    pairs = narrow, np.arange(n) // 2, KINDS[:2]
    return (narrow, None, KINDS), pairs, (X, None, KINDS), (X[:, :1], None, KINDS)


def replayed(name):
    """The releases of a few fits, which keep their claims before neighbors far and near."""
    found, total = set(), ReplayResult(name)
    for model in models_of(name):
        narrow, grouped, *others = tables(ROWS.get(name, 60))
        # A box of two columns, or centers to start from; steps of a search have two components.
        boxed = np.size(getattr(model, "bounds", None)) == 4 or getattr(model, "init", None)
        others = [] if boxed else others[: 2 if name in ESTIMATORS else 1]
        usual = laws_of(model, 2, unit="row")
        another = [each for each in others if laws_of(model, each[0].shape[1]) != usual]
        for X, groups, kinds in (narrow, grouped, *another):
            laws = laws_of(model, X.shape[1], unit="row" if groups is None else "group")
            original = record(model, X, groups=groups)
            pairs = neighboring_pairs(X, 0, kinds=kinds, groups=groups)
            total += replay_recording(original, pairs)
            found |= {release(event.entry, laws[event.entry]) for event in paid(original.events)}
        if hasattr(model, "partial_fit"):
            found |= replayed_later(model, narrow[0], usual)
    assert total.violations == [] and total.n_voided <= 0.1 * total.n_pairs
    return found


def replayed_later(model, X, first):
    """Releases that only a later day makes."""
    days = [X, X[::-1].copy()]
    recording = recorded(model, days)
    lines = recording[0].privacy_report_.releases
    new = {release(e["release"], e["mechanism"]) for e in lines if e["release"] not in first}
    for pair in neighboring_pairs(days[1], 0, kinds=KINDS) if new else ():
        assert problems(model, days, recording, 1, pair, {}) == []
    return new


NAMES = [*ESTIMATORS, *SEARCHES]
# Hundreds of fits; what they are made of is replayed below, and in rooms of their own.
LONG = (
    *("DPGaussianMixture", "DPKTupleKMeans", "DPOneClusterKMeans", "DPRandomizedSearch"),
    *("SampleAndAggregate", "DPOutlierScreen", "DPKMeans", "DPGridSearch", "DPOneCluster"),
    "FederatedDPKMeans",
)


def told(name):
    """The releases of an estimator that the proof pages tell."""
    places = [(each, place) for each in proof_pages().releases() for place in each["in"]]
    return [Release(entry, each["law"]) for each, (who, entry) in places if who == name]


@pytest.mark.quick(but=("SampleAndAggregate", "FederatedDPKMeans", "DPRandomizedSearch"))
@pytest.mark.parametrize("name", NAMES)
def test_every_release_of_a_plan_is_proved(name):
    known = told(name)
    assert len(known) == len(set(known)), "told twice in doc/proofs/releases.toml"
    missing = {each: setting for each, setting in planned(name).items() if each not in known}
    assert missing == {}, "no proof in doc/proofs/releases.toml"


def test_every_release_of_a_profile_is_proved():
    """Its plan needs a schema. The replays are those of tests/segments/test_dp_profile.py."""
    schemas = [(0, 1)], [["a", "b"]], [(0, 1), ["a", "b"]]
    laws = [laws_of(DPProfile(schema), len(schema)) for schema in schemas]
    found = {release(*each) for law in laws for each in law.items()}
    assert found == {*told("DPProfile")}


@pytest.mark.quick(but=LONG)
@pytest.mark.parametrize("name", NAMES)
def test_every_release_is_proved_and_replayed(name):
    with threadpool_limits(1):
        found = replayed(name)
    assert found <= {*told(name)}, "no proof in doc/proofs/releases.toml"
    assert found >= {*told(name)}, "no setting in tests/configurations.py makes it, or no plan"
