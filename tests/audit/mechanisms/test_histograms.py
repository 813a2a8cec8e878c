"""What the audit knows of histograms of many cells."""

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

from sklearn_dp._privacy._trace import Event
from sklearn_dp.audit._replay import Replay
from sklearn_dp.audit.mechanisms import law_of


def event(kind, counts, told=(), *, scale=2.0, sensitivity=1.0, **public):
    """Cells by their counts; `told` is what was published, by cell."""
    value = (np.array(list(counts), dtype=int), np.array(list(counts.values()), dtype=int))
    told = dict(told)
    output = (np.array(list(told), dtype=int), np.array(list(told.values()), dtype=int))
    public = {"low": 10, "delta": 1e-3, "n_candidates": 5, **public}
    cost = sensitivity**2 / scale**2 / 2
    return Event(kind, "a", value, sensitivity, scale, cost, public, output)


def replayed(kind, before, after, told=(), **options):
    known = event(kind, before, told, **options)
    player = Replay([known], np.arange(1))
    assert player.record(event(kind, after, told, **options)) is known.output
    return player


def test_a_lone_cell_that_was_told_voids_the_pair():
    assert replayed("stability", {3: 50, 8: 1}, {3: 50}, {3: 51}).voided == []
    assert replayed("stability", {3: 50, 8: 1}, {3: 50}, {3: 51, 8: 12}).voided == ["a"]
    assert replayed("stability", {3: 50}, {3: 50, 8: 1}, {3: 51}).voided == []


def test_a_lone_cell_holds_one_unit():
    assert replayed("stability", {3: 50}, {3: 50, 8: 1}).violations == []
    assert replayed("stability", {3: 50}, {3: 50, 8: 2}).violations != []
    # A unit may be in several, if that is told.
    for lone, cells in (({8: 1, 9: 1}, 2), ({8: 1, 9: 1}, 1), ({8: 2}, 2), ({8: 1, 9: 1, 4: 1}, 2)):
        player = replayed("stability", {3: 50}, {3: 50, **lone}, sensitivity=2**0.5, cells=cells)
        assert bool(player.violations) == (lone != {8: 1, 9: 1} or cells == 1)
    # Its noise is not what protects it: only the others' counts cost something.
    assert replayed("stability", {3: 50}, {3: 50, 8: 1}).loss == {"a": 0.0}
    assert replayed("stability", {3: 50}, {3: 51}).loss == {"a": 1 / 8}


@pytest.mark.parametrize(("low", "wrong"), [(8, 0), (7, 1)])
def test_a_threshold_hides_cells_of_a_single_unit(low, wrong):
    """Noise of scale 2: 1 + noise reaches 8 with P[Z > 3.25] = 0.0006, and 7 with 0.003."""
    each = event("stability", {3: 5}, low=low)
    assert len(list(law_of(each).claims(each))) == wrong


@pytest.mark.parametrize("kind", ["sparse", "stability"])
def test_the_scale_has_to_be_enough(kind):
    each = event(kind, {3: 5}, low=30)
    assert list(law_of(each).claims(each)) == []
    each.scale = 1.99
    assert "too little noise" in next(iter(law_of(each).claims(each)))


def test_empty_cells_of_a_sparse_histogram_have_noise_too():
    """Four empty candidates, one of which is told: binomial, and in the tail above the level."""
    each = event("sparse", {3: 12}, {3: 14, 4: 11})
    chance = ndtr(-4.75)
    low, high = law_of(each).numbers(each)
    number = binom.cdf([0, 1], 4, chance)
    tail = 1 - ndtr([-5.25, -5.75]) / chance
    assert np.allclose(low, [ndtr(0.75), number[0], tail[0]])
    assert np.allclose(high, [ndtr(1.25), number[1], tail[1]])
