"""Groups that are spread over the parts of a table, where a point stands for a group.

The mean of the rows of a group takes all of them together: by a shuffle of the engine.
"""

import dataclasses

import numpy as np
import pytest
import test_partitions_of_balls as balls
from sklearn.base import clone
from test_partitions import (
    ACROSS,
    MEANS,
    WEIGHTS,
    WIDE,
    WITHIN,
    Elsewhere,
    LeftOut,
    audit,
    cuts,
    fitted,
    in_memory,
    mean,
    released,
    violations,
)

import sklearn_dp._queries.group_points as group_points
from sklearn_dp import DPOneCluster, FriendlyMean
from sklearn_dp._aggregate.friendly import mean as friendly
from sklearn_dp._aggregate.friendly import mean_facts, points
from sklearn_dp._queries.samples import ByPart
from sklearn_dp._rows import table_units
from sklearn_dp._rows.table import LocalEngine
from sklearn_dp._rows.table_units import GroupSizes
from sklearn_dp.exceptions import PartError

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


@pytest.mark.quick("across-mean*", "across-ball: means", "across-ball: copies", "across-ball: s*")
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("groups", [ACROSS, WITHIN], ids=["across", "within"])
def test_groups_of_parts_have_the_bits_of_one_array(name, groups, few_pairs):
    model, X = sampled(name)
    found = in_memory(model, X, groups=groups)
    other, _ = fitted(model, X, cuts(7), groups)
    assert released(other) == released(found)
    assert np.array_equal(getattr(other, "labels_", 0), getattr(found, "labels_", 0))


@pytest.mark.quick("mean: zcdp", "ball: screen")
@pytest.mark.parametrize("name", SHORT)
def test_groups_of_many_parts_in_any_order(name):
    model, X = MODELS[name]
    order = np.random.default_rng(1).permutation(N)
    known = released(in_memory(model, X[order], groups=ACROSS[order]))
    for places in (cuts(1), cuts(50)):
        places = [order[place] for place in places]
        assert released(fitted(model, X, places, ACROSS, engine=LocalEngine)[0]) == known


@pytest.mark.parametrize("name", MEANS)
def test_groups_of_weighted_narrow_rows(name, few_pairs):
    X = WIDE.astype(np.float32)
    known = released(in_memory(mean(name), X, groups=ACROSS, sample_weight=WEIGHTS))
    assert released(fitted(mean(name), X, cuts(7), ACROSS, WEIGHTS)[0]) == known


def test_no_row_of_a_group_that_weighs_anything():
    nothing = np.where(ACROSS % 2, WEIGHTS, 0.0)  # of every other group
    known = released(in_memory(mean("box"), WIDE, groups=ACROSS, sample_weight=nothing))
    assert released(fitted(mean("box"), WIDE, cuts(7), ACROSS, nothing)[0]) == known


@pytest.mark.parametrize("kind", [FriendlyMean, DPOneCluster])
def test_groups_of_a_list_of_parts(kind):
    """As a user gives them: some parts are empty, ids are texts."""
    groups = np.array([f"user {i}" for i in ACROSS])
    model = kind(epsilon=20.0, random_state=0, bounds=4.0)
    places = [place.tolist() for place in (*cuts(7), np.arange(0))]
    cut = [WIDE[place] for place in places], [groups[place] for place in places]
    found, known = in_memory(model, cut[0], groups=cut[1]), in_memory(model, WIDE, groups=groups)
    assert released(found) == released(known)
    assert found.privacy_report_.releases == known.privacy_report_.releases


@pytest.mark.quick("mean: zcdp", "ball: screen")
@pytest.mark.parametrize("name", SHORT)
def test_no_row_and_no_group_travels_to_the_place_of_the_fit(name, few_pairs):
    """But their ids and sizes, once, and a sample of the points."""
    model, X = sampled(name)
    groups = np.arange(N) % 130
    _, engine = fitted(model, X, np.split(np.arange(N), [101, 204]), groups)
    sizes, collected, ids = {101, 103, 127, 130, 43, 44}, 0, 0
    assert engine.exchanged == [] and len(engine.sent) == 3 * engine.passes
    for value in (value for sums in engine.sent for value in sums):
        if isinstance(value, GroupSizes):
            ids += len(value.found)
        elif isinstance(value, ByPart):
            (held,) = value.values.values()
            sample = held[0] if isinstance(held, tuple) else held
            collected += 0 if isinstance(sample, int) else len(sample)
        else:
            assert not sizes & set(np.shape(value))
    assert ids == 101 + 103 + 127 and collected < 90 * getattr(model, "n_clusters", 1)


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


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_replay_audit_of_many_groups_across_parts(name, few_pairs):
    """500 pairs of each that prove something."""
    model, X = sampled(name)
    audit(model, (neighbors(X[: 160 + seed], seed) for seed in range(170)))


def planted(monkeypatch, bug):
    """A bug where groups are coded, where their rows come together, or where points are drawn."""
    if bug == "groups by part":
        own = table_units._opened

        def opened(source, grouped, largest):
            part, sums = own(source, grouped, largest)
            keys, index = part["groups"]
            return part.having(groups=([(source.number, key) for key in keys], index)), sums

        monkeypatch.setattr(table_units, "_opened", opened)
    elif bug == "groups by rows":  # some of them go to two parts
        own_split = group_points._by_group

        def by_rows(part, ends, facts):
            held = own_split(part, ends, facts)
            ends = len(held.rows) * np.arange(len(ends)) // (len(ends) - 1)
            return dataclasses.replace(held, ends=ends)

        monkeypatch.setattr(group_points, "_by_group", by_rows)
    elif bug == "draws by part":
        run = points._sampled

        def sampled_by_part(part, firsts, draws, bound):
            return run(part, dict.fromkeys(firsts, 0), draws, bound)

        monkeypatch.setattr(points, "_sampled", sampled_by_part)
    else:
        brought = {
            "a part is brought twice": lambda self, held: [*held, held[1]],
            "a part is not brought": lambda self, held: held[1:],
        }[bug]
        monkeypatch.setattr(Elsewhere, "brought", brought)


BUGS = {
    "groups by part": LocalEngine,
    "groups by rows": LocalEngine,
    "draws by part": LocalEngine,
    "a part is brought twice": Elsewhere,
    "a part is not brought": Elsewhere,
}


@pytest.mark.parametrize("bug", BUGS)
def test_bugs_of_groups_have_other_bits(bug, few_pairs, monkeypatch):
    model, X = sampled("mean: zcdp")
    known = released(in_memory(model, X, groups=ACROSS))
    planted(monkeypatch, bug)
    assert not same_bits(model, X, known, BUGS[bug])


def same_bits(model, X, known, engine):
    try:
        return released(fitted(model, X, cuts(7), ACROSS, engine=engine)[0]) == known
    except (IndexError, ValueError, PartError):  # a group is in a part that knows nothing of it
        return False


@pytest.mark.parametrize(
    ("bug", "name"), [("groups by part", "mean: cells"), ("draws by part", "mean: zcdp")]
)
def test_bugs_of_groups_are_caught_by_an_audit(bug, name, few_pairs, monkeypatch):
    """A group counts once in each of its parts; a point is drawn by its place in a part."""
    planted(monkeypatch, bug)
    assert any(found_in(name, range(3)))


class CountedTwice(Elsewhere):
    """A task of a part that is retried counts again, but for what refuses a part twice."""

    def added(self, number, total, sums):
        total = super().added(number, total, sums)
        once = any(isinstance(value, ByPart | GroupSizes) for value in sums)
        again = number == self.n_parts - 1 and not once
        return super().added(number, total, sums) if again else total


@pytest.mark.quick("mean: cells")
@pytest.mark.parametrize("name", ["mean: cells", "ball: boxes"])
def test_points_of_a_part_that_count_twice_are_caught(name, few_pairs):
    assert any(found_in(name, range(3), CountedTwice))


@pytest.mark.parametrize("name", ["mean: cells", "ball: screen"])
def test_points_of_a_part_that_is_left_out_are_missed(name, few_pairs):
    model, X = sampled(name)
    known = released(in_memory(model, X, groups=ACROSS))
    assert released(fitted(model, X, cuts(7), ACROSS, engine=LeftOut)[0]) != known
