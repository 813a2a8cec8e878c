"""Locate, approach, refine: accuracy, purity, budgets, and replays of broken copies."""

import math
from dataclasses import replace

import numpy as np
import pytest
from grid_tools import parts_in_memory

from sklearn_dp._aggregate.columns.ends import Ends
from sklearn_dp._aggregate.friendly import mean as fm
from sklearn_dp._aggregate.friendly import refine as last_step
from sklearn_dp._aggregate.friendly.mean_facts import Candidate
from sklearn_dp._aggregate.friendly.points import Points
from sklearn_dp._bounds import domain_of
from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.plan import PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp._privacy._units import Units
from sklearn_dp._published.friendly_core import fit_published_mean
from sklearn_dp._queries.ball_moments import BallMoments
from sklearn_dp._queries.coordinates import Columns
from sklearn_dp._queries.group_points import points_of
from sklearn_dp._queries.table_rows import TableRows
from sklearn_dp._rows.table import ROWS
from sklearn_dp.audit._replay import Replay

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")

BUDGET = PrivacyBudget(rho=1.0, delta=1e-8)
LOOSE = PrivacyBudget(rho=8.0, delta=1e-4)


def fit(X, budget=BUDGET, seed=0, groups=None, domain=None, **options):
    names, ends = {"refine", "locate"}, None
    d = X.shape[1]
    if not options.keys() & {"refine", "diameter", "locate"}:
        if domain is None:
            ends = Ends.public(np.full(d, -np.inf), np.full(d, np.inf))
        elif domain.low is not None:
            ends = Ends.public(domain.low, domain.high)
    plan = PrivacyPlan(
        budget,
        fm.friendly_mean_entries(
            budget,
            bounded=domain is not None,
            diameter="diameter" not in options and (ends is None or domain is None),
            ends=ends,
            **{name: options[name] for name in names & options.keys()},
        ),
    )
    session = PrivacySession(plan, random_state=seed)
    rows = points_of(TableRows.in_memory(X, Units(len(X), groups)))
    points = Points(rows, Columns.of(None if ends is not None else domain, d, scaled=False))
    if options.pop("refine", True):
        result = fm.fit_friendly_mean(session, points, ends=ends, **options)
    else:
        result = fit_published_mean(session, points, **options)
    assert session.spent <= budget.to_rho(plan.gaussian, plan.delta_failure)
    return result


def diameter_of(n, d):
    return math.sqrt(2) * (math.sqrt(d) + math.sqrt(math.log(100 * n)))


# -- accuracy ---------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("locate", ["auto", "zcdp", "basic", "cells"])
@pytest.mark.parametrize("where", [0.0, 1e7])
def test_as_good_as_knowing_the_location(locate, where):
    """Within 1.1 of the expected error of a noisy sum about the true mean, in 6 runs on average.

    d = 200: each error is within 6% or so of its mean, the average of 6 within 2.5%.
    """
    n, d = 800, 200
    rng = np.random.default_rng(0)
    clip = diameter_of(n, d) / math.sqrt(2)
    oracle = math.sqrt(d / n + d * clip**2 / (2 * n**2))
    errors = []
    for seed in range(6):
        X = rng.normal(size=(n, d)) + where / math.sqrt(d)
        found = fit(X, seed=seed, diameter=diameter_of(n, d), locate=locate)
        assert not found.status and found.method == locate or locate == "auto"
        errors.append(np.linalg.norm(found.mean - where / math.sqrt(d)))
    assert np.mean(errors) < 1.1 * oracle


@pytest.mark.slow
def test_without_the_diameter():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 50)) + 1e9
    clip = diameter_of(2000, 50) / math.sqrt(2)
    oracle = math.sqrt(50 / 2000 + 50 * clip**2 / (2 * 2000**2))
    errors = [np.linalg.norm(fit(X, seed=seed).mean - 1e9) for seed in range(5)]
    assert np.mean(errors) < 1.35 * oracle  # one sample of X: +- 10%


@pytest.mark.parametrize("n", [0, 1, 2, 20])
@pytest.mark.parametrize("options", [{}, {"refine": False}, {"diameter": 3.0, "locate": "basic"}])
def test_too_few_points_have_a_public_answer(n, options):
    X = np.random.default_rng(n).normal(size=(n, 4)) + 100
    for seed in range(3):
        found = fit(X, PrivacyBudget(epsilon=0.5, delta=1e-6), seed, **options)
        text = "no place was found that most rows are close to; use more rows"
        assert str(found.status).startswith(text)
        assert np.array_equal(found.mean, np.zeros(4)) and found.radius == math.inf


# -- the choice -------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [BUDGET, PrivacyBudget(epsilon=1.0, delta=1e-6)])
@pytest.mark.parametrize(
    "options", [{}, {"diameter": False}, {"bounded": True}, {"refine": False}, {"locate": "zcdp"}]
)
def test_plans_use_their_budget_and_no_more(budget, options):
    plan = PrivacyPlan(budget, fm.friendly_mean_entries(budget, **options))
    allowed = budget.to_rho(plan.gaussian, plan.delta_failure)
    assert 0.999 * allowed < plan.rho <= allowed
    cells = options.get("locate") != "zcdp" and options.get("refine", True)
    assert plan.gaussian == bool(options.get("bounded") or (budget.rho is None and cells))


# -- replay -----------------------------------------------------------------------------------


OPTIONS = (
    {"locate": "zcdp"},
    {"locate": "basic"},
    {"locate": "cells"},
    {"refine": False},
    {"diameter": 3.0},
    {"domain": domain_of(100.0, 2)},
)


def pairs(rng, n=150):
    X = rng.normal(size=(n, 2)) * 0.3 + rng.choice([0.0, 40.0])
    same, i = np.arange(n), int(rng.integers(n))
    yield X, np.delete(X, i, axis=0), np.delete(same, i)
    yield X, np.append(X, X[:1], axis=0), np.append(same, -1)
    yield X, np.append(X, [[1e8, 0.0]], axis=0), np.append(same, -1)
    direction = rng.normal(size=2)
    for length in (1.0, 1.5, 2.4):  # about where rows are clipped, or no longer counted
        edge = X.mean(axis=0) + length * direction / np.linalg.norm(direction)
        yield X, np.append(X, [edge], axis=0), np.append(same, -1)


def violations(options, runs, stop=False):
    rng = np.random.default_rng(0)
    found, ratios = [], {}
    for seed in range(runs):
        for X, other, units in pairs(rng):
            with trace(Trace()) as recorder:
                one = fit(X, LOOSE, seed, **options)
            with trace(Replay(recorder.events, units)) as replay:
                two = fit(other, LOOSE, seed, **options)
            found += replay.finish()
            if not replay.violations and not np.array_equal(one.mean, two.mean):
                found.append("the results differ")
            for name, ratio in replay.ratios.items():
                ratios[name] = max(ratio, ratios.get(name, 0.0))
        if found and stop:
            break
    return found, ratios


@pytest.mark.quick("options1", "options2", "options3")
@pytest.mark.parametrize("options", OPTIONS)
def test_replay_finds_no_violation(options):
    found, ratios = violations(options, 4)
    assert not found
    assert ratios.get("mean", 1.0) > 0.8


def exact_mean(points):
    (part,) = parts_in_memory(points.rows)
    return part.source.read()[:].mean(axis=0)


def number_of(points):
    return sum(part.units.n_rows for part in parts_in_memory(points.rows))


def typical_distance(rows):
    (part,) = parts_in_memory(rows.table)
    return float(np.sqrt(part[ROWS].squares).mean()) * rows.unit


MUTANTS = {
    "half of the claim": (
        BallMoments,
        "claims",
        lambda run: lambda self, facts: tuple(replace(c, l2=c.l2 / 2) for c in run(self, facts)),
    ),
    "share by the exact size": (
        fm,
        "approach",
        lambda run: (
            lambda s, points, candidate, facts, rho: run(
                s, points, candidate, facts, rho * (1 - 1e-6 * number_of(points))
            )
        ),
    ),
    "private clip": (
        last_step,
        "clip_radius",
        lambda run: lambda s, rows, *others: last_step.Clip(typical_distance(rows), 1.0, 0.0, 0.0),
    ),
    "private center": (
        fm,
        "refine",
        lambda run: (
            lambda s, points, candidate, facts, **wanted: run(
                s, points, Candidate(exact_mean(points), candidate.ball, candidate.clip, 0.0), facts
            )
        ),
    ),
    "stop on true counts": (
        fm,
        "approach",
        lambda run: (
            lambda s, points, candidate, facts, rho: (
                candidate if number_of(points) % 2 else run(s, points, candidate, facts, rho)
            )
        ),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_replay_kills_broken_means(name, monkeypatch):
    owner, attribute, change = MUTANTS[name]
    monkeypatch.setattr(owner, attribute, change(getattr(owner, attribute)))
    assert violations({"diameter": 3.0, "locate": "cells"}, 12, stop=True)[0]
