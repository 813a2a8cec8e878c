"""Words of texts, their counts, and what topics are called by noisy counts."""

from collections import Counter

import numpy as np
import pytest

from sklearn_dp._queries.words import counted_pairs, keywords_of
from sklearn_dp._status import Message, Status
from sklearn_dp.cluster._dp_topics import described, status_of


@pytest.mark.parametrize(
    "text, found",
    [
        ("The Parcel, the parcel: is LATE!", ["parcel", "late"]),
        ("a b " + "x" * 65 + " day", ["day"]),
        (["Two words", "day", 3, None, "Two words", ""], ["Two words", "day"]),
        (("b", "a", "c", "d"), ["b", "a", "c"]),
        (np.array(["b", "a"]), ["b", "a"]),
        (np.array("no row may make a fit fail"), []),
        (np.array(["day"]), ["day"]),
        (np.str_("day"), ["day"]),
        *((other, []) for other in (None, np.nan, 3.0, b"day", {"day": 1}, object())),
    ],
)
def test_words_are_those_of_the_text_alone(text, found):
    assert keywords_of(text, 3, None, frozenset(["the", "is"])) == found


def test_of_a_vocabulary_only_its_words_count():
    known = frozenset(["late", "the"])
    assert keywords_of("The parcel is late", 5, known, frozenset(["the"])) == ["the", "late"]
    assert keywords_of("The parcel is late", 1, known, frozenset()) == ["the"]


def test_a_unit_is_in_so_many_pairs_and_in_each_once():
    words = [["a", "b", "c"], ["a"], ["a", "d"], ["e"]]
    topics = [0, 0, 1, 1]
    assert counted_pairs([(None, topics, words)], 2) == Counter(
        {(0, "a"): 2, (0, "b"): 1, (1, "a"): 1, (1, "d"): 1, (1, "e"): 1}
    )
    # Of unit 0: the first words of all its texts come first, and (0, "a") counts once.
    groups = [([0, 0], topics[:2], words[:2]), ([0, 1], topics[2:], words[2:])]
    assert counted_pairs(groups, 2) == Counter({(0, "a"): 1, (1, "a"): 1, (1, "e"): 1})
    assert counted_pairs(groups, 1) == Counter({(0, "a"): 1, (1, "e"): 1})


def test_a_word_that_all_topics_use_is_no_keyword():
    counts = np.array([[500.0, 400.0, 10.0], [1000.0, 15.0, 20.0], [30.0, 0.0, -20.0]])
    sizes, errors = np.array([600.0, 1200.0, 25.0]), np.full(3, 20.0)
    noise = np.full(3, 10.0)
    first, second, third = described(counts, noise, sizes, errors, ["please", "tea", "x"], 5)
    assert first.keywords == ("tea",) and first.counts == (400.0,) and first.status == "ok"
    assert second.keywords == () and second.label == "topic 1" and second.status == "unnamed"
    assert third.status == "noise" and third.size == 25.0 and third.count_std_error == 10.0
    note = Message("outside_bound", "...", severity="note")
    assert status_of([first], Status()) == status_of([first], Status([note])) == ()
    few = Status([Message("few_rows", "few rows", severity="all")])
    assert str(status_of([first, second, third], few)) == (
        "1 of 3 topics (2): the size is mostly noise; use fewer topics or a larger epsilon; "
        "1 of 3 topics (1): no keyword stands out from the noise; clusters: few rows"
    )
