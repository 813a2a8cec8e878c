"""Groups that are spread over the parts of a table, where a point stands for a group.

The mean of the rows of a group takes all of them together: by a shuffle of the engine.
"""

import numpy as np
import pytest
import test_partitions_of_balls as balls
from sklearn.base import clone
from test_partitions import ACROSS, MEANS, WIDE, cuts, fitted, in_memory, mean, released, violations

from sklearn_dp._aggregate.friendly import mean as friendly
from sklearn_dp._aggregate.friendly import mean_facts, points
from sklearn_dp._rows.table import LocalEngine

few_boxes = balls.few_pairs
N = len(WIDE)
MODELS = {
    **{f"mean: {name}": (mean(name), WIDE) for name in MEANS},
    **{f"ball: {name}": case for name, case in balls.MODELS.items()},
}
SHORT = ("mean: epsilon", "mean: zcdp", "ball: boxes", "ball: balls", "ball: screen")


@pytest.fixture
def few_pairs(monkeypatch, few_boxes):
    """A part of the points is compared, and counted in boxes."""
    for module in (mean_facts, points, friendly):
        monkeypatch.setattr(module, "most_pairs", lambda d: 60)


def sampled(name):
    model, X = MODELS[name]
    return (clone(model).set_params(sample_size=60) if hasattr(model, "sample_size") else model), X


@pytest.mark.quick("mean: zcdp", "ball: screen")
@pytest.mark.parametrize("name", SHORT)
def test_groups_of_many_parts_in_any_order(name):
    model, X = MODELS[name]
    order = np.random.default_rng(1).permutation(N)
    known = released(in_memory(model, X[order], groups=ACROSS[order]))
    for places in (cuts(1), cuts(50)):
        places = [order[place] for place in places]
        assert released(fitted(model, X, places, ACROSS, engine=LocalEngine)[0]) == known


# --- audits ---------------------------------------------------------------------------------------


def neighbors(X, seed):
    """A group of several parts less, one more, and one without which a part is empty."""
    rng, n = np.random.default_rng(seed), len(X)
    groups, places = rng.integers(0, n // 2, n), cuts(5 + seed % 3, n)
    gone = groups == rng.choice(groups)
    less = [place[~gone[place]] for place in places]
    yield X, X, places, less, (groups, groups)
    far = np.where(gone[:, None], X * rng.choice([1.0, 1e3, -1e3]), X)
    yield far, far, less, places, (groups, groups)
    # All rows of the second part are of a group that has rows in the first one, too.
    groups = np.where(np.arange(n) >= n - 9, groups[0], groups)
    places = np.split(np.arange(n), [n - 9])
    kept = places[0][groups[places[0]] != groups[0]]
    yield X, X, places, [kept, places[1][:0]], (groups, groups)


def found_in(name, seeds=(0,), engine=LocalEngine):
    model, X = sampled(name)
    pairs = (pair for seed in seeds for pair in neighbors(X, seed))
    return (violations(model, *pair, engine=engine) for pair in pairs)


@pytest.mark.quick("mean: zcdp", "ball: boxes", "ball: screen")
@pytest.mark.parametrize("name", SHORT)
def test_replay_audit_of_groups_across_parts(name, few_pairs):
    assert list(found_in(name)) == [[], [], []]
