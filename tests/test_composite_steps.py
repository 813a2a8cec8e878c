"""Mechanisms that one charge pays for as a whole: what they hand out adds up to what was charged.

A replay compares the draws of a step with what each of them claims, and the charge with the plan.
That the claims add up to the charge is a theorem of whoever opens the step, and is checked here:
costs are taken from a recording, and added up by the theorem, written down once more.
"""

import ast
import math
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from block_tools import tuples_in_memory
from scipy.stats import poisson
from search_tools import spending

import sklearn_dp
from benchmarks.certify.claims import epsilon_of_gaussian, epsilon_of_zcdp
from sklearn_dp import DPKMeans, DPOneCluster, SampleAndAggregate
from sklearn_dp._aggregate import tuples
from sklearn_dp._aggregate.tuples import TupleStage
from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.plan import PlanEntry, PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp._privacy.mechanisms.pure import open_step
from sklearn_dp._queries import separated_balls
from sklearn_dp._queries import separated_balls as noisy_centers
from sklearn_dp._queries.tuples import box_means
from sklearn_dp.audit._laws import law_of
from sklearn_dp.ensemble._sample_and_aggregate import COPY_RATE
from sklearn_dp.model_selection import DPGridSearch

pytestmark = pytest.mark.filterwarnings("ignore")
CLOSE = 1 + 1e-9

# Who opens a step, or a session inside one; each has a test below.
OPENED = {
    "_aggregate/tuples.py": {"run"},
    "_queries/separated_balls.py": {"far_centers"},
    "_privacy/mechanisms/pure.py": {"open_step", "nested", "on_a_sample"},  # for others
    "ensemble/_sample_and_aggregate.py": {"_step"},
    "model_selection/_runs.py": {"run"},
}


def test_whoever_opens_a_step_is_tried_here():
    found = {}
    package = Path(sklearn_dp.__file__).parent
    for path in package.rglob("*.py"):
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef) and any(
                isinstance(node, ast.Call)
                and ast.unparse(node.func).split(".")[-1] in ("open_step", "pay_step", "nested")
                for node in ast.walk(function)
            ):
                found.setdefault(path.relative_to(package).as_posix(), set()).add(function.name)
    assert found == OPENED


def recorded(make):
    """The events of a fit, from the first step on."""
    with trace(Trace()) as recorder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        make()
    kinds = [event.kind for event in recorder.events]
    assert kinds.count("step") == 1
    return recorder.events, kinds.index("step")


def cost_of(events, kinds):
    """The sum of the epsilons that draws of a step claim."""
    return sum(event.cost for event in events if event.kind in kinds)


# -- far balls -------------------------------------------------------------------------------------

DRAWS = ("inner_choice", "inner_laplace", "inner_gaussian")


def tuples_of(t, k=2):
    """Tuples that far balls partition."""
    rng = np.random.default_rng(0)
    centers = np.array([[0.5, 0.0], [-0.5, 0.0], [0.0, 0.6]])[:k]
    return centers + 1e-3 * rng.normal(size=(t, k, 2))


@pytest.mark.parametrize("sampling", ["disjoint", "with_replacement"])
@pytest.mark.parametrize("aggregator", ["noisy_centers", "k_averages"])
def test_a_test_for_far_balls_and_its_answer(monkeypatch, aggregator, sampling):
    """Half for the status, by sampling without replacement, and half for the answer."""
    monkeypatch.setattr(tuples, "_RESOLUTION", 0.01)
    one = TupleStage(20.0, 0.1, 2, 2, aggregator, "auto", sampling, separation=7.0)
    one = replace(one, n_tuples=tuples.least_tuples(*one.inner))
    plan = PrivacyPlan(PrivacyBudget(rho=20.2, delta=0.1), one.entries())

    def make():
        rows = tuples_in_memory(tuples_of(one.size))
        return one.run(PrivacySession(plan, random_state=0), rows, np.zeros(2), 1.0)

    assert make() is not None
    events, first = recorded(make)
    step, inside = events[first], events[first + 1 :]
    sample, tuples_cost, proposal = inside[0], inside[1], inside[2]
    assert [event.kind for event in inside[:4]] == [
        "sample",
        "inner_laplace",
        "inner_laplace",
        "condition",
    ]
    rate = len(sample.output) / sample.public["n"]
    status = tuples_cost.cost + math.log1p(rate * math.expm1(proposal.cost))
    answer = cost_of(inside[4:], DRAWS)
    deltas = sum(event.public["delta"] for event in inside if event.kind == "inner_gaussian")
    # What the step has to be worth for one tuple: by itself, or by the number of copies.
    epsilon, delta = step.public["epsilon"], step.public["delta"]
    if sampling == "with_replacement":
        epsilon, delta = one.inner
        assert of_copies(epsilon, delta, tuples.COPY_RATE) <= (
            step.public["epsilon"] * CLOSE,
            step.public["delta"] * CLOSE,
        )
    assert status <= epsilon / 2 * CLOSE and answer <= epsilon / 2 * CLOSE
    assert status + answer > 0.999 * epsilon
    # Half of delta is for balls that are none; of the rest, a scale that fails has half.
    assert deltas <= delta / (4 if aggregator == "noisy_centers" else 2) * CLOSE


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_what_theorem_w_adds_up(epsilon):
    """Each failure of the test counts in both laws, in one of them times exp(epsilon)."""
    failure, of_answer, delta = separated_balls.answer_budget(epsilon, 1e-6)
    assert delta + (1 + math.exp(epsilon)) * failure <= 1e-6
    assert of_answer <= epsilon / 2


def step_of(epsilon=1.0, delta=0.1):
    plan = PrivacyPlan(
        PrivacyBudget(rho=100.0, delta=0.5), (PlanEntry("a", "approximate DP", 99.0, 0.4),)
    )
    session = PrivacySession(plan, random_state=0)
    return session, open_step(session, "a", epsilon=epsilon, delta=delta)


@pytest.mark.parametrize(("n_sets", "p"), [(1, 1), (1, 6), (3, 2)])
def test_box_means_spend_what_they_may(n_sets, p):
    """Each of the changes is in one of the sets, so the boxes of one set count."""
    sets = list(np.rint(100 * np.random.default_rng(0).normal(size=(n_sets, 500, p))))

    def make():
        box_means(step_of()[1], sets, 10, 1000, changes=2, epsilon=0.7, delta=1e-3, beta=0.05)

    events, first = recorded(make)
    boxes = cost_of(events[first:], ("inner_choice",)) / n_sets
    sums, sizes = (cost_of(events[first:], (kind,)) for kind in DRAWS[:0:-1])
    assert 0.7 / CLOSE <= boxes + sums + sizes <= 0.7 * CLOSE
    assert sum(event.kind == "inner_choice" for event in events) == 2 * p * n_sets
    assert [e.public["delta"] for e in events if e.kind == "inner_gaussian"] == [1e-3]


def test_the_scale_of_noisy_centers_is_an_upper_bound_but_for_its_delta():
    """P[noise <= -offset] = exp(-(offset - 1/2) / b) / 2 for each of k, in steps of a logarithm."""
    session, step = step_of()
    centers, epsilon, delta = np.array([[0.0, 0.0], [2.0**20, 0.0], [0.0, 2.0**21]]), 0.7, 1e-3
    reach = np.sqrt(separated_balls.gaps(centers))
    with trace(Trace()) as recorder:
        session, step = step_of()
        found = noisy_centers._noisy_scale(step, reach, 50.0, epsilon, delta)
    (event,) = (event for event in recorder.events if event.kind == "inner_laplace")
    # Where the noise is at most -offset, the scale is below what it has to be.
    least = (2 + 4 / 48) / 50 * reach
    offset = np.log(found / least) * 2**20 - (event.output - event.value)
    chance = np.exp(-(offset - 0.5) / event.scale) / 2
    assert event.cost <= epsilon and 0.9 * delta < chance.sum() <= delta


# -- copies ----------------------------------------------------------------------------------------


def of_copies(epsilon, delta, rate):
    """What (epsilon, delta) for one block is worth for a unit with a Poisson number of copies."""
    copies = np.arange(400)
    chance = poisson.pmf(copies, rate)
    odds = np.exp(np.minimum(copies * epsilon, 700.0))
    mean = math.exp(rate * math.expm1(epsilon))
    assert chance @ odds == pytest.approx(mean, rel=1e-6)
    return math.log(mean), delta * float(chance @ (odds - 1)) / math.expm1(epsilon)


def nested_cost(events, delta):
    """Epsilon of all that is released inside, at what failures leave of a delta."""
    inside = [e for e in events if "nested" in e.public and law_of(e).rho is not None]
    rho = sum(law_of(event).rho(event) for event in inside)
    left = delta - sum(event.public.get("delta", 0.0) for event in inside)
    gaussian = {event.kind for event in inside} <= {"gaussian"}
    return (epsilon_of_gaussian if gaussian else epsilon_of_zcdp)(rho, left)


def check_copies(events, first, delta, rate):
    """What is released inside is worth the step, for a unit of any number of copies."""
    step = events[first].public
    epsilon, failure = of_copies(nested_cost(events, delta), delta, rate)
    assert 0.5 * step["epsilon"] < epsilon <= step["epsilon"] * CLOSE
    assert 0.5 * step["delta"] < failure <= step["delta"] * CLOSE


ROWS = np.repeat([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]], 40, axis=0)
ROWS = ROWS + 0.1 * np.random.default_rng(0).normal(size=ROWS.shape)
BLOCKS = {"n_blocks": 8, "sampling": "with_replacement", "epsilon": 2.0, "delta": 1e-3}


@pytest.mark.parametrize("bounds", [None, 4.0])
@pytest.mark.parametrize("aggregator", ["one_cluster", "friendly_core", "mean"])
def test_an_aggregation_of_blocks_with_copies(aggregator, bounds):
    model = SampleAndAggregate(
        aggregator=aggregator, output_bounds=bounds, random_state=0, **BLOCKS
    )
    events, first = recorded(lambda: model.fit(ROWS))
    check_copies(events, first, model._block_target(model._target()).delta, COPY_RATE)


def test_a_friendly_core_of_tuples_with_copies():
    one = TupleStage(5.0, 0.3, 2, 2, "friendly_core", "auto", "with_replacement")
    plan = PrivacyPlan(PrivacyBudget(rho=5.1, delta=0.3), one.entries())
    session = partial(PrivacySession, plan, random_state=0)
    events, first = recorded(
        lambda: one.run(session(), tuples_in_memory(tuples_of(one.size)), np.zeros(2), 1.0)
    )
    check_copies(events, first, one.inner[1], tuples.COPY_RATE)


# -- samples ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["exponential", "above_threshold"])
def test_a_radius_on_a_sample(method):
    """A pure mechanism on a sample that holds each unit with a probability of `rate`."""
    model = DPOneCluster(
        n_points=40, sample_size=12, epsilon=1.0, radius_method=method, random_state=0
    )
    events, first = recorded(lambda: model.fit(ROWS))
    size = next(e.output for e in events if e.entry == "count")
    rate = 12 / size
    inside = [event for event in events[first + 1 :] if "nested" in event.public]
    epsilon = math.log1p(rate * math.expm1(sum(event.cost for event in inside)))
    assert rate < 0.2 and {event.kind for event in inside} == {"choice"}
    step = events[first].public
    assert step["epsilon"] / CLOSE**9 <= epsilon <= step["epsilon"] * CLOSE and step["delta"] == 0
    assert law_of(events[first]).rho(events[first]) <= model.privacy_plan(2)["radius"].rho * CLOSE


# -- searches --------------------------------------------------------------------------------------


@pytest.mark.parametrize("final", ["winner", "refit"])
def test_the_best_of_some_runs(final):
    """Each run releases what its plan has, and all of them make the one of the price."""
    model = DPGridSearch(
        DPKMeans(bounds=5.0),
        {"n_clusters": [2, 3]},
        epsilon=4.0,
        selection="best",
        final=final,
        random_state=0,
    )
    with pytest.MonkeyPatch.context() as patch:
        plans = spending(patch)
        events, first = recorded(lambda: model.fit(ROWS))
    rho = sum(law_of(e).rho(e) for e in events if "nested" in e.public and e.kind != "fit")
    assert rho <= sum(plan.rho for _, plan in plans) * CLOSE
    drawn = next(event.output for event in events if event.kind == "runs")
    assert len(plans) == len(drawn) + (final == "refit")
    step = events[first].public
    assert step["epsilon"] <= 4.0 and step["delta"] <= model.delta
