"""Words about answers that the noise hides."""

import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_dp import (
    DPPCA,
    DPBySegment,
    DPKMeans,
    DPQuantiles,
    DPStandardScaler,
    FriendlyMean,
    privatize,
)
from sklearn_dp._compositions import private_steps, steps_of

STATED = re.compile(
    r"(?:about|at least) ([\d.]+) times .*?(epsilon|rho) = ([\d.]+)( in privatize)?"
)


def asked_for(found):
    """The first remedy among the statuses of what was fitted: times less noise, and the budget."""
    words = next(match for status in found if (match := STATED.search(status)))
    return float(words[1]), words[2], float(words[3]), bool(words[4])


def pipeline(**budget):
    steps = [("scale", StandardScaler()), ("means", KMeans(6))]
    return privatize(Pipeline(steps), bounds={"scale": (-3, 3), "means": 4.0}, **budget)


def table_of_columns(**budget):
    inside = ColumnTransformer([("left", StandardScaler(), [0, 1]), ("right", PCA(1), [2])])
    return privatize(
        Pipeline([("columns", inside), ("means", KMeans(6))]),
        bounds={"columns__left": (-3, 3), "columns__right": 3.0, "means": 4.0},
        **budget,
    )


@pytest.mark.parametrize("budget", [{"epsilon": 0.3}, {"epsilon": 1.0}, {"rho": 0.001}])
@pytest.mark.parametrize(
    "made",
    [
        lambda **budget: DPKMeans(6, bounds=4.0, **budget),
        lambda **budget: DPQuantiles([0.2, 0.8], bounds=(-4, 4), **budget),
        pipeline,
        table_of_columns,
        lambda **budget: privatize(KMeans(6), bounds=4.0, **budget),
        lambda **budget: DPBySegment(DPKMeans(6, bounds=4.0), values=["a", "b"], **budget),
    ],
)
def test_a_remedy_is_a_budget_of_the_whole_at_which_noise_is_so_much_smaller(made, budget):
    """Noise falls with the root of rho: of a step, a segment or the whole, which grow together."""
    rng = np.random.default_rng(0)
    n = 100
    X, model = rng.normal(size=(n, 3)).clip(-3, 3), made(delta=1e-6, **budget)
    model.set_params(**seeds(model))
    if isinstance(model, DPBySegment):
        models = model.fit(X, by=np.array(["a", "b"])[np.arange(n) % 2]).estimators_.values()
    else:
        model.fit(X)
        models = fitted_steps(model)
    times, name, value, of_all = asked_for([str(each.messages_) for each in models])
    several = isinstance(model, Pipeline)
    assert of_all == several and name == ("epsilon" if several else next(iter(budget)))
    more = made(delta=1e-6, **{name: value})
    rho, larger = (sum(each._target().to_rho() for each in whole(m)) for m in (model, more))
    assert larger / rho == pytest.approx(times**2, rel=0.2)  # two digits of both


def fitted_steps(model):
    inner = steps_of(model, fitted=True)
    return [model] if inner is None else [each for _, step in inner for each in fitted_steps(step)]


def whole(model):
    return [model] if isinstance(model, DPBySegment) else list(private_steps(model))


def seeds(model):
    if isinstance(model, DPBySegment):
        return {"random_state": 0}
    return {name: 0 for name in model.get_params() if name.endswith("random_state")}


@pytest.mark.parametrize(
    ("model", "n"),
    [
        (FriendlyMean(epsilon=0.1, bounds=(-100, 100)), 1000),
        (DPStandardScaler(epsilon=0.03, bounds=40.0), 4000),
        (DPQuantiles([0.01, 0.99], epsilon=0.1, bounds=(-4, 4)), 1000),
        (DPKMeans(20, epsilon=0.3, bounds=4.0), 1000),
        (DPPCA(epsilon=0.1, bounds=40.0), 2000),
    ],
)
def test_numbers_of_rows_are_those_of_all(model, n):
    """As released, and only where the noise of their number leaves it known."""
    rng, found = np.random.default_rng(0), []
    X = rng.normal(size=(n, 3)).clip(-3, 3) / 3 + np.array([-1, 0, 1])[rng.integers(3, size=(n, 1))]
    for seed in range(4):
        status = str(clone(model).set_params(random_state=seed).fit(X).messages_)
        match = re.search(r"about ([\d.]+) times as many rows \(([\d,]+) in all\)", status)
        if match is not None:
            found.append(float(match[2].replace(",", "")) / float(match[1]) / n)
    assert all(0.7 < ratio < 1.4 for ratio in found)
    assert found or isinstance(model, DPStandardScaler | DPPCA | FriendlyMean)


@pytest.mark.parametrize("model", [DPKMeans(20, bounds=4.0), FriendlyMean(bounds=(-100, 100))])
def test_groups_are_asked_for_where_they_are_protected(model):
    """More rows of the same groups would not help."""
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(500, 3)).clip(-3, 3), np.arange(500) // 5
    message = clone(model).set_params(epsilon=0.3, random_state=0).fit(X, groups=groups).messages_
    assert re.search(r"use (about|at least) [\d.,]+ (times as many )?groups", str(message))


@pytest.mark.parametrize("kind", [FriendlyMean, DPStandardScaler])
def test_rows_that_are_asked_for_do_not_follow_the_noise_of_their_number(kind):
    """Of one row: a noisy number near zero, or below, is not what an error was divided by."""
    rng, asked = np.random.default_rng(0), []
    for seed in range(8):
        model = kind(bounds=(0, 1), epsilon=1.0, random_state=seed).fit(rng.random((1, 3)))
        found = [each.action for each in model.messages_ if each.code == "few_rows"]
        asked += [int(re.fullmatch(r"use about (\d+) rows", action)[1]) for action in found]
    assert asked and 200 < min(asked) <= max(asked) < 1000
    enough = kind(bounds=(0, 1), epsilon=1.0, random_state=0).fit(rng.random((max(asked), 3)))
    assert enough.status_ == "ok"
