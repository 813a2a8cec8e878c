"""Every value of every parameter: which releases it plans, and a replay of each release.

python tests/option_audits.py [ESTIMATOR ...]

prints a table: the values, the plans they make, the (estimator, value, release) triples, and of how
many releases there is a proof, and a replay in the normal suite.
"""

import argparse
import importlib
import inspect
import sys
import warnings
from functools import cache
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from configurations import DEFAULT, ESTIMATORS, MADE, TABLE, configurations
from day_tools import problems, recorded
from fuzz.arguments import good_options
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from sklearn_dp import DPPCA, DPKMeans, DPKTupleKMeans
from sklearn_dp.audit import neighboring_pairs
from sklearn_dp.audit._recount import paid
from sklearn_dp.audit._replay import ReplayResult, record_for_replay, replay_recording
from sklearn_dp.model_selection import BestOf, DPGridSearch, DPRandomizedSearch, Shares

__all__ = ["NAMES", "Release", "Walk", "proof_pages", "proved", "replayed", "walk"]


class Release(NamedTuple):
    """A kind of release: numbers in the name of the plan entry are `#`."""

    estimator: str
    entry: str
    law: str

    def __str__(self):
        return f"{self.estimator}: {self.entry} ({self.law})"


@cache
def proof_pages():
    """The module that reads `doc/proofs/releases.toml`."""
    sys.path.append(str(Path(__file__).resolve().parents[1] / "doc" / "_ext"))
    return importlib.import_module("proof_pages")


def proved(name):
    """The releases of an estimator that the proof pages tell, each as often as it is told."""
    return [
        Release(who, entry, each["law"])
        for each in proof_pages().releases()
        for who, entry in each["in"]
        if who == name
    ]


# -- all settings ----------------------------------------------------------------------------------

SEARCHES = {each.__name__: each for each in (DPGridSearch, DPRandomizedSearch)}
NAMES = [*ESTIMATORS, *SEARCHES]

_GAUSSIAN = make_pipeline(DPPCA(2, bounds=9.0), DPKMeans()), {"dpkmeans__n_clusters": [2, 3]}
_OTHER = make_pipeline(DPPCA(2), DPKTupleKMeans()), {"dpktuplekmeans__n_clusters": [2, 3]}
_SEARCHED = [
    _GAUSSIAN,
    _OTHER,
    (DPKMeans(bounds=9.0), {"n_clusters": [2, 3]}),
    (DPKMeans(bounds=9.0), {"n_clusters": list(range(2, 11))}),
]
_OF_SEARCHES = {
    "scoring": [None, "silhouette"],
    "epsilon": [None, 30.0],
    "delta": [1e-6, 1e-2],
    "rho": [None, 0.1],
    "selection": ["auto", "all", "best", BestOf(), BestOf(constant_time=True)],
    "final": ["auto", "refit", "winner"],
    "public_steps": [(), ("dppca",)],
    "max_distance": [None, 1.0],
    "shares": [None, Shares(0.5, 0.5)],
    "n_iter": [1, 2, 9],
    "ledger": [None],
    "n_jobs": [None],
    "random_state": [None],
    "candidates_state": [0],
}
BOTH_UNITS = (
    {"n_features": 2, "unit": "row"},
    {"n_features": 20, "unit": "group"},
    {"n_features": 1, "unit": "row"},
)
"""Many features lead to principal axes, a single one to ranks; clients are groups. The slow test
has few and many with both units."""


def _settings(name):
    """The settings that one value at a time is changed of, and the values of each parameter."""
    if name in ESTIMATORS:
        return [
            options for options, uses in TABLE.get(name, DEFAULT) if uses != MADE
        ], good_options(ESTIMATORS[name])
    others = [*inspect.signature(SEARCHES[name]).parameters][2:]
    return [_searched(name, *each) for each in _SEARCHED], {
        each: _OF_SEARCHES[each] for each in others
    }


def _searched(name, model, space, **options):
    """Parameters of a search over a grid."""
    spaces = {"DPGridSearch": "param_grid", "DPRandomizedSearch": "param_distributions"}
    few = {"n_iter": 2} if name == "DPRandomizedSearch" and "n_iter" not in options else {}
    return {"estimator": model, spaces[name]: space, **few, **options}


def _facts(name, facts):
    """What a plan is a function of, beside parameters."""
    for fact in facts:
        yield fact
        if name == "FederatedDPKMeans":
            yield {**fact, "X_server": np.random.default_rng(0).random((40, fact["n_features"]))}


class Walk(NamedTuple):
    """What the plans of an estimator hold.

    `triples` are pairs of a value, as "parameter=value", and a release that some plan with that
    value holds; `settings` has for each release the first setting that plans it.
    """

    n_plans: int
    triples: set
    settings: dict


def _one_at_a_time(name):
    """Each value of each parameter in each setting: pairs of the changed values and the options."""
    bases, values = _settings(name)
    for base, (parameter, candidates) in product(bases, values.items()):
        for value in candidates:
            yield [f"{parameter}={value!r}"], {**base, parameter: value}


def _two_at_a_time(name):
    """Each pair of values of two parameters, in the first setting."""
    bases, values = _settings(name)
    single = [(parameter, value) for parameter in values for value in values[parameter]]
    for (one, first), (other, second) in product(single, single):
        if one < other:
            changed = [f"{one}={first!r}", f"{other}={second!r}"]
            yield changed, {**bases[0], one: first, other: second}


def walk(name, *, pairs=False, facts=BOTH_UNITS):
    """The plans of an estimator with each value of each parameter, as far as they go together."""
    cls, n_plans, triples, settings = {**ESTIMATORS, **SEARCHES}[name], 0, set(), {}
    for changed, options in (_two_at_a_time if pairs else _one_at_a_time)(name):
        for fact in _facts(name, facts):
            try:
                plan = cls(**options).privacy_plan(**fact)
            except (TypeError, ValueError):  # parameters that do not go together
                continue
            n_plans += 1
            for entry in plan.entries:
                release = Release(name, proof_pages().general(entry.name), str(entry.mechanism))
                triples.update((value, release) for value in changed)
                settings.setdefault(release, (options, fact))
    return Walk(n_plans, triples, settings)


# -- replays ---------------------------------------------------------------------------------------

KINDS = ("far", "duplicate", "random", "remove")
ROWS = {
    "DPGaussianMixture": 200,
    "DPKMeans": 200,
    "DPKTupleKMeans": 1300,
    "FriendlyCovariance": 200,
    "SampleAndAggregate": 30,
}
"""As many as a fit needs for all of its releases, where 60 are too few, or too many: blocks."""


def models_of(name):
    """The models that together make every release of an estimator."""
    if name in ESTIMATORS:
        return [setting.estimator for setting in configurations("releases", name)]
    ways = (
        (_GAUSSIAN, {"epsilon": 1000.0, "selection": "all"}),
        (_GAUSSIAN, {"epsilon": 20.0, "selection": "best"}),
        (_OTHER, {"epsilon": 1000.0}),
    )
    return [SEARCHES[name](**_searched(name, *each, **options)) for each, options in ways]


def _tables(n):
    """Three clusters: narrow rows, the same in pairs, wide rows, one column; and which neighbors
    they meet."""
    rng = np.random.default_rng(7)
    places = 3 * rng.uniform(-1, 1, size=(3, 20))
    X = places[np.arange(n) % 3] + 0.05 * rng.uniform(-1, 1, size=(n, 20))
    narrow = X[:, :2]
    tables = (narrow, None), (narrow, np.arange(n) // 2), (X, None), (X[:, :1], None)
    return [(*each, KINDS[:2] if each[1] is not None else KINDS) for each in tables]


def _laws(model, X, groups):
    """The law of each plan entry."""
    plan = model.privacy_plan(X.shape[1], unit="row" if groups is None else "group")
    return {entry.name: str(entry.mechanism) for entry in plan.entries}


def replayed(name):
    """Replays of an estimator in the settings that make all of its releases.

    Of narrow rows, of groups, and of wide rows and of one column where their plan is another one.
    Each fit meets a few neighbors, far and near.

    Returns
    -------
    result : ReplayResult
    ratios : dict of Release to float
        The largest distance of each release that was made, over its claim; NaN for a step that is
        paid as a whole, whose claim is a theorem.
    """
    total, ratios = ReplayResult(name), {}
    for model in models_of(name):
        narrow, grouped, *others = _tables(ROWS.get(name, 60))
        # A box of two columns, or centers to start from.
        boxed = np.size(getattr(model, "bounds", None)) == 4 or getattr(model, "init", None)
        others = others[: 2 if name in ESTIMATORS else 1]  # steps of a search have two components
        usual = _laws(model, *narrow[:2])
        another = [each for each in others if not boxed and _laws(model, *each[:2]) != usual]
        for X, groups, kinds in (narrow, grouped, *another):
            laws = _laws(model, X, groups)
            original = record_for_replay(model, X, groups, 0)
            pairs = neighboring_pairs(X, 0, kinds=kinds, groups=groups)
            result = replay_recording(original, pairs)
            total += result
            for entry in {event.entry for event in paid(original.events)}:
                release = Release(name, proof_pages().general(entry), laws[entry])
                ratio = result.ratios.get(entry, np.nan)
                ratios[release] = np.fmax(ratios.get(release, np.nan), ratio)
        if hasattr(model, "partial_fit"):
            _replay_later_day(name, model, narrow[0], ratios)
    return total, ratios


def _replay_later_day(name, model, X, ratios):
    """Releases that only a later day makes."""
    days, found = [X, X[::-1].copy()], {}
    recording = recorded(model, days)
    lines = recording[0].privacy_report_.releases
    first = _laws(model, X, None)
    new = {line["release"]: line["mechanism"] for line in lines if line["release"] not in first}
    for pair in neighboring_pairs(days[1], 0, kinds=KINDS) if new else ():
        assert problems(model, days, recording, 1, pair, found) == []
    for entry, law in new.items():
        release = Release(name, proof_pages().general(entry), law)
        ratios[release] = np.fmax(ratios.get(release, np.nan), found[entry])


# -- the table -------------------------------------------------------------------------------------


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="ESTIMATOR", default=NAMES)
    columns = ("values", "plans", "triples", "releases", "proved", "replayed")
    print(f"{'estimator':<22}" + "".join(f"{each:>10}" for each in columns))
    total = np.zeros(len(columns), dtype=int)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in parser.parse_args().names:
            found, (result, ratios) = walk(name), replayed(name)
            assert result.violations == []
            releases = {*found.settings, *ratios}
            row = [
                len({value for value, _ in found.triples}),
                found.n_plans,
                len(found.triples),
                len(releases),
                len(releases & {*proved(name)}),
                len(releases & ratios.keys()),
            ]
            total += row
            print(f"{name:<22}" + "".join(f"{each:>10,}" for each in row), flush=True)
    print(f"{'all':<22}" + "".join(f"{each:>10,}" for each in total))


if __name__ == "__main__":
    main()
