"""Topics of rows, and the words of their texts: how many units have which. What counts of a text is
a function of that text alone."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from .._privacy._entries import exact_integers
from .._privacy._grid import weighted_bincount
from .._privacy._units import Claim, Sealed, SealedNames, UnitFacts
from .._rows.nearest import UnitRows, nearest_point
from .._rows.table import ROWS, Part, Table
from ._query import CellQuery, Facts, Query, Step
from .samples import ByPart

LONGEST = 64
"""Characters of a word that counts, at most."""

_TOKEN = re.compile(r"\b\w\w+\b")
_TEXTS, _TOPIC = "texts", "topic"


def with_texts(table: Table, texts: list[Any]) -> Table:
    """A table in memory, whose parts have the texts of their rows from now on."""
    states, start = table.engine.states, 0  # type: ignore[attr-defined]
    for number, part in enumerate(states):
        stop = start + part.units.n_rows
        states[number] = part.having(**{_TEXTS: texts[start:stop]})
        start = stop
    return table


class Topical(Step):
    """Tell each row its topic: the released center that is nearest to its direction."""

    centers: np.ndarray

    def on(self, part: Part) -> Part:
        topic = nearest_point(UnitRows(part.source.read()), self.centers)
        return part.without(ROWS).having(**{_TOPIC: topic})


class TopicSizes(CellQuery):
    """Weights of the topics: a row is in one of them."""

    n_topics: int

    def on(self, part: Part) -> tuple[Part, tuple]:
        return part, (weighted_bincount(part[_TOPIC], part.units, self.n_topics),)


class TopicWords(Query):
    """The number of units that have a word in a topic; a unit is in at most `most` pairs. Where the
    words are `listed`, a count for each pair; else by names. A row without a text has the names of
    its columns, as far as it is positive there."""

    n_topics: int
    most: int
    listed: tuple | None
    left_out: tuple
    names: tuple

    def on(self, part: Part) -> tuple[Part, tuple]:
        known = None if self.listed is None else frozenset(self.listed)
        texts, left_out = part.state.get(_TEXTS), frozenset(self.left_out)
        if texts is None:
            texts = largest_columns(part.source.read(), self.names)
        words = [keywords_of(text, self.most, known, left_out) for text in texts]
        units: Any = part.units.index
        rows = (None if units is None else units.tolist(), part[_TOPIC].tolist(), words)
        return part, (ByPart({part.source.number: rows}),)

    def exact(self, sums: tuple) -> tuple:
        counted = counted_pairs(sums[0].in_order(), self.most)
        if self.listed is None:
            pairs = sorted((_code_of(*pair), number) for pair, number in counted.items())
            codes = np.array([code for code, _ in pairs], dtype="S")
            return ((codes, exact_integers([number for _, number in pairs])),)
        column = {word: number for number, word in enumerate(self.listed)}
        counts = np.zeros((self.n_topics, len(column)), dtype=np.int64)
        for (topic, word), number in counted.items():
            counts[topic, column[word]] = number
        return (counts.ravel(),)

    def claims(self, facts: Facts) -> tuple[Claim, ...]:
        """A unit adds one to at most `most` counts, whatever it weighs, and nothing to the others:
        which ones follows from its own rows."""
        return (Claim.of_entries(1.0, self.most),)

    def _seal(self, value: Any, claim: Claim, units: UnitFacts) -> Sealed:
        if self.listed is not None:
            return super()._seal(value, claim, units)
        return SealedNames(value, claim, units, type(self).__name__, self.most)


def counted_pairs(parts: Iterable[tuple], most: int) -> Counter[tuple[int, str]]:
    """The number of units that have a word in a topic; parts are (units, topics, words) of rows,
    with None for the units where each row is one. Of a unit, first the first keyword of each of its
    texts, then the second of each: pairs that differ, until there are `most` of them."""
    rows, counts = [], Counter[tuple[int, str]]()
    for units, topics, words in parts:
        if units is None:  # words of a text differ
            each = zip(topics, words, strict=True)
            counts.update((topic, word) for topic, listed in each for word in listed[:most])
        else:
            rows += list(zip(units, topics, words, strict=True))
    taken: dict[int, set[tuple[int, str]]] = {unit: set() for unit, *_ in rows}
    for place in range(most):
        for unit, topic, listed in rows:
            if place < len(listed) and len(taken[unit]) < most:
                taken[unit].add((topic, listed[place]))
    counts.update(pair for pairs in taken.values() for pair in pairs)
    return counts


def largest_columns(X: np.ndarray, names: Sequence[str]) -> Iterator[list[str]]:
    """The names of the columns in which a row is positive, the largest first, row by row.

    >>> list(largest_columns(np.array([[1.0, 0.0, 2.0], [-1.0, 0.0, 0.0]]), ["a", "b", "c"]))
    [['c', 'a'], []]
    """
    for row in X:
        order = np.argsort(-row, kind="stable")
        yield [names[column] for column in order[row[order] > 0].tolist()]


def keywords_of(text: Any, most: int, known: Any, left_out: frozenset[str]) -> list[str]:
    """The first `most` different words of a text, or of a list of words.

    `known`, if it is not None, holds all words that count; of others those `left_out`, and long
    ones, do not. What is neither a text nor a list has no words."""
    words: Any = ()
    if type(text) in (str, np.str_):
        words = _TOKEN.findall(text.lower())
    elif type(text) in (list, tuple) or (type(text) is np.ndarray and text.ndim == 1):
        words = [str(word) for word in text if type(word) in (str, np.str_)]
    keywords: dict[str, None] = {}
    for word in words:
        if word in known if known is not None else _counts(word, left_out):
            keywords[word] = None
            if len(keywords) == most:
                break
    return list(keywords)


def _counts(word: str, left_out: frozenset[str]) -> bool:
    return 0 < len(word) <= LONGEST and word not in left_out


def _code_of(topic: int, word: str) -> bytes:
    """A name for a pair, of the pair alone; NumPy drops zero bytes at the end, so there is none.

    >>> pair_of(_code_of(3, "café"))
    (3, 'café')
    """
    return f"{topic} {word}.".encode(errors="surrogatepass")


def pair_of(code: bytes) -> tuple[int, str]:
    """The topic and the word of a released name."""
    topic, word = code[:-1].decode(errors="surrogatepass").split(" ", 1)
    return int(topic), word
