"""The number of columns that a table declares, their names and kinds: public; no row comes here."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from ._privacy._entries import Wrong

PROJECT = (
    "Project it to a few dozen features first with SparseRandomProjection(dense_output=True), or "
    "create only a few with HashingVectorizer(n_features=...): neither depends on the data, so "
    "neither costs privacy. A dense copy would have noise in every one of its features."
)
_OTHER_COLUMNS = (
    "Drop columns that are not features; pass the owner of each row as groups; encode categories "
    "with PublicEncoder, and turn dates into days since a fixed one."
)
NUMBERS = ("number", "object")
"""Kinds that columns of numbers may declare; an object may be one."""
TARGETS = ("number", "text", "bytes", "object")
_CATEGORIES = ("number", "text", "object")
WORDS = {
    "date": "dates or times",
    "interval": "intervals",
    "bytes": "bytes",
    "complex": "complex numbers",
    "other": "values of a type that is neither numbers nor texts",
}
_SPARSE = "{} is sparse, and this estimator needs dense rows. " + PROJECT


@dataclass(frozen=True)
class Schema:
    """Public facts of a table, from its type alone, and no value of it."""

    n_features: int
    labels: tuple[Any, ...] | None = None  # of the columns of a data frame, whatever they are
    kinds: tuple[str, ...] = ("object",)  # of each column, or one for all; see `kind_of`
    sparse: bool = False
    dtype: np.dtype = np.dtype(np.float64)  # or float32: of the rows once they are read

    def at(self, places: Sequence[int]) -> Self:
        """Return the schema of some of the columns of a data frame."""
        labels = None if self.labels is None else tuple(self.labels[i] for i in places)
        kinds = self.kinds if labels is None else tuple(self.kinds[i] for i in places)
        return replace(self, n_features=len(places), labels=labels, kinds=kinds)

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the columns, if they have texts for names."""
        labels = self.labels or (None,)
        return self.labels if all(isinstance(label, str) for label in labels) else None

    def other_than(self, kinds: Sequence[str]) -> list[tuple[str | None, str]]:
        """Label, to be shown, and kind of each column that holds something else."""
        shown = (None,) if self.labels is None else [f"{label}"[:40] for label in self.labels]
        each = zip(shown, self.kinds, strict=True)
        return [(label, kind) for label, kind in each if kind not in kinds]


def check_numbers(given: Schema, name: str = "X", *, sparse: bool = False) -> None:
    """Refuse a table that declares other columns than numbers; `sparse`: whether it may be so."""
    if given.sparse and not sparse:
        raise TypeError(_SPARSE.format(name))
    wrong = given.other_than(NUMBERS)
    if not wrong:
        return
    if given.labels is not None:
        raise ValueError(not_numeric([label for label, _ in wrong], name))
    kind = wrong[0][1]
    if kind == "complex":
        raise ValueError(f"Complex data not supported: {name} must be real.")
    dates = "dates are not numbers. Turn them into days since a fixed one"
    what = dates if kind == "date" else "it contains text or other objects"
    raise ValueError(f"{name} must be numeric: {what}.")


def check_categories(given: Schema, name: str = "X") -> None:
    """Refuse a table that declares columns of what is no category."""
    if given.sparse:
        raise TypeError(_SPARSE.format(name))
    for label, kind in given.other_than(_CATEGORIES):
        where = name if label is None else f"{name}: column {label!r}"
        words = f"{where} holds {WORDS[kind]}, which are neither numbers nor categories"
        if kind == "complex":
            words = f"Complex data not supported: {words}"
        days = "days since a fixed one, or into " if kind == "date" else ""
        raise ValueError(f"{words}: turn them into {days}text, as astype(str) does.")


def expected_table(name: str, series: bool = False) -> str:
    ways = f"{name}.reshape(-1, 1) if it has one feature, {name}.reshape(1, -1) if it is one row."
    if series:
        ways = f"{name}.to_frame() if it is a Series of one feature."
    words = f"Expected 2D array: {name} must have shape (n_samples, n_features)."
    return f"{words} Reshape your data: {ways}"


def wide_enough(n_features: Any, name: str) -> int:
    if n_features < 1:
        words = "Found array with 0 feature(s) (shape=(, 0)) while a minimum of 1 is required."
        raise Wrong(ValueError, f"{name}: {words}")
    return int(n_features)


def not_numeric(labels: list, name: str) -> str:
    """The columns of a data frame that are no numbers, by name: a schema is public."""
    others = f" (and {len(labels) - 1} more)" * (len(labels) > 1)
    return f"{name} must be numeric: column {labels[0]!r}{others} is not. {_OTHER_COLUMNS}"


def places_of(labels: list[Any], names: Sequence[str], name: str) -> list[int] | None:
    """Where each of the names is among the labels; None where that is its place, or no label."""
    named = bool(labels) and all(isinstance(label, str) for label in labels)
    if not named or labels == list(names):
        return None
    missing = [f": {each!r} is missing" for each in sorted({*names} - {*labels})]
    others = missing + [f": X has no {each!r}" for each in sorted({*labels} - {*names})]
    if others or len(labels) != len(names):
        which = others[0] if others else ""
        raise ValueError(f"{name} must have the columns of X, by their names{which}.")
    return [labels.index(each) for each in names]


def schema_of_columns(
    labels: list[Any], kinds: Sequence[str], sparse: bool, dtype: np.dtype, name: str
) -> Schema:
    """Return the schema of a data frame, by the labels and kinds of its columns."""
    if len(set(labels)) < len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise Wrong(ValueError, f"{name}: the names of columns must differ, but two are {twice!r}.")
    texts = {isinstance(label, str) for label in labels}
    if len(texts) > 1:
        raise Wrong(
            TypeError,
            f"{name}: Feature names are only supported if all input features have string names: "
            f"some are texts and some are not. Convert all of them, for example by "
            f"{name}.columns = {name}.columns.astype(str).",
        )
    return Schema(wide_enough(len(labels), name), tuple(labels), tuple(kinds), sparse, dtype)
