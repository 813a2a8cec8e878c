"""Distinguishers find differences of every kind, and learn from what they may learn from only."""

import numpy as np
import pytest

from sklearn_dp.audit._distinguishers import Table, scores, separation

N = 800
OTHER = np.arange(N) % 2 == 1
LEARN = np.arange(N) < N // 2


def gaussian(seed=0, size=(N,)):
    return np.random.default_rng(seed).normal(size=size)


def table_of(**columns):
    rows = [({}, {}) for _ in range(N)]
    for name, column in columns.items():
        for row, value in zip(rows, column, strict=True):
            row[isinstance(value, str)][name] = value
    return Table(rows)


def best_on_the_rest(table):
    found = scores(table, OTHER, LEARN)
    held = {name: separation(numbers[~LEARN], OTHER[~LEARN]) for name, numbers in found.items()}
    return max(held, key=held.get), held


CASES = {
    "a shift": ({"a": gaussian() - 2.0 * OTHER}, "a"),
    "a spread": ({"a": gaussian() * np.where(OTHER, 5.0, 1.0)}, "distance of a from its median"),
    "a direction": (
        {
            "a": gaussian(0) + 10 * gaussian(1) + 1.5 * OTHER,
            "b": 10 * gaussian(1) - 1.5 * OTHER + gaussian(2),
        },
        "learned",
    ),
    "a product": (
        {"a": gaussian(0), "b": gaussian(0) * np.where(OTHER, 1, -1) + gaussian(1) / 2},
        "learned",
    ),
    "a word": ({"w": np.where(OTHER & (gaussian() > -1), "ok", "poor").tolist()}, "words: w"),
    "a missing number": ({"a": np.where(OTHER, np.nan, gaussian())}, "learned"),
    "two words": (
        {
            "v": np.where(gaussian(3) > 0, "a", "b").tolist(),
            "w": np.where((gaussian(3) > 0) ^ OTHER, "a", "b").tolist(),
        },
        "words: all",
    ),
}


@pytest.mark.parametrize("what", CASES)
def test_a_difference_is_found(what):
    columns, expected = CASES[what]
    name, held = best_on_the_rest(table_of(**columns))
    assert held[name] > 0.85
    assert expected in name or max(v for k, v in held.items() if expected in k) > 0.85


def test_nothing_is_found_where_nothing_differs():
    """All of 30 distinguishers within five standard deviations of one half."""
    words = np.where(gaussian(7) > 0, "a", "b").tolist()
    _, held = best_on_the_rest(table_of(a=gaussian(5), b=gaussian(6), w=words))
    assert len(held) > 7 and max(held.values()) < 0.5 + 5 / np.sqrt(6 * N / 2)
    assert scores(table_of(a=np.zeros(N)), OTHER, LEARN) == {}


def test_only_what_may_be_learned_from_is_learned_from():
    """Other labels of the other fits change no number."""
    table = table_of(a=gaussian(0), b=gaussian(1), w=np.where(gaussian(2) > 0, "a", "b").tolist())
    again = np.where(LEARN, OTHER, ~OTHER)
    before, after = (scores(table, labels, LEARN) for labels in (OTHER, again))
    assert before.keys() == after.keys()
    for name in before:
        np.testing.assert_array_equal(before[name], after[name])
