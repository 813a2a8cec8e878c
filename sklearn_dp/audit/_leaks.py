"""Search everything that an estimator shows for values of its training data.

1. Make the needles: every form in which a value of the data could appear (`needles`).
2. Collect the haystack: all that an estimator shows, also when it fails (`_shown`).
3. Report which needles are in it (`search`).

The opposite approach, to look for anything unexpected in the output, would have to know what is
expected. This one needs no knowledge of the estimator; it needs values that do not occur by chance.
"""

from __future__ import annotations

import pickle
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from .._silence.suppress_output import overheard
from ._observe import accepts_groups, prepared, run_fit

__all__ = ["Needles", "needles", "scan_for_leaks", "search"]

_DIGITS = (6, 7, 8, 10, 12, 15, 17)
_FEWEST_DIGITS = 6  # of a value, to be told from chance: 1.5 occurs in any text
_MOST_VALUES = 300


def scan_for_leaks(
    estimator: BaseEstimator, X: ArrayLike, *, groups: ArrayLike | None = None
) -> list[str]:
    """Fit a clone and search everything that it shows for values of `X`.

    It searches the pickle, the texts (repr, report, HTML displays), the warnings, and the errors of
    fits and predictions on corrupted data: NaN, infinite or complex values, strings, wrong shapes.

    Parameters
    ----------
    estimator : estimator of this package
        Clones are fitted.
    X : ndarray of shape (n_samples, n_features)
        Values with fewer than six significant digits could match by chance and are left out; random
        numbers work best.
    groups : array-like of shape (n_samples,), optional
        The unit of each row.

    Returns
    -------
    leaks : list of str
        The place, row, column and form of each value found; empty if there are none.

    Notes
    -----
    Forms searched: the eight bytes of a float64 and the bytes of the two adjacent float32, in both
    byte orders; decimals with 6 to 17 digits. Values derived from the data (a sum, a count) are
    found by :func:`replay_audit`, not here.
    """
    X = np.asarray(X, dtype=np.float64)
    sought = needles(X)
    return [
        f"{where}: {leak}"
        for where, text in _shown(estimator, X, groups)
        for leak in search(sought, text)
    ]


def search(sought: Needles, text: str | bytes) -> list[str]:
    """Which of the needles a text or some bytes hold, in words and in order, each once.

    Decimals are compared as whole numbers of the text, so that 123456 is not found in 91234567.
    Bytes are looked for anywhere.
    """
    data = text if isinstance(text, bytes) else text.encode()
    found = {sought.numbers[number] for number in set(_NUMBER.findall(data)) & set(sought.numbers)}
    return sorted(found | {what for needle, what in sought.binary.items() if needle in data})


_NUMBER = re.compile(rb"\d+(?:\.\d*)?(?:[eE][+-]?\d+)?")


@dataclass
class Needles:
    """What would betray a value, each with what it betrays: whole numbers in a text, and bytes."""

    # decimals without a sign: a text may show a minus as something else
    numbers: dict[bytes, str] = field(default_factory=dict)
    binary: dict[bytes, str] = field(default_factory=dict)


def needles(X: Any) -> Needles:
    """Everything that would betray a value of `X`.

    At most 300 values, spread evenly over the table: a leak of all rows is found by any of them,
    and the time is bounded. A leak of one row that is not among them is missed where the table has
    more values.
    """
    found = Needles()
    places = np.argwhere(np.isfinite(X))
    for i, j in places[np.linspace(0, len(places) - 1, min(len(places), _MOST_VALUES), dtype=int)]:
        value, what = abs(float(X[i, j])), f"row {i}, column {j}"
        if _n_digits(repr(value)) >= _FEWEST_DIGITS:
            for order in "<>":
                found.binary[np.array(X[i, j], dtype=order + "f8").tobytes()] = what
            found.numbers |= dict.fromkeys(_decimals(value), what)
    with np.errstate(over="ignore"):
        for matrix, name in ((X, "row"), (X.T, "column")):
            _add_float32(found.binary, matrix, name)
    return found


def _add_float32(binary: dict[bytes, str], matrix: np.ndarray, name: str) -> None:
    """Four bytes alone occur by chance: two neighbors of a row or of a column."""
    for i, j in np.ndindex(min(len(matrix), _MOST_VALUES), max(matrix.shape[1] - 1, 0)):
        pair = matrix[i, j : j + 2].astype(np.float32)
        if min(map(_n_digits, map(str, pair))) >= _FEWEST_DIGITS and pair[0] != pair[1]:
            for order in "<>":
                binary[pair.astype(order + "f4").tobytes()] = f"float32 bytes of {name} {i}"


def _decimals(value: Any) -> list[Any]:
    """Texts of a number that have enough digits to be told from chance.

    Formats "g", "f" and "e" with the numbers of digits that are usual, the shortest form that is
    exact, and the same as float32.
    """
    texts = {repr(value), *(f"{value:.{p}{kind}}" for p in _DIGITS for kind in "gfe")}
    with np.errstate(over="ignore"):
        texts.add(str(np.float32(value)))
    return [text.encode() for text in texts if _n_digits(text) >= _FEWEST_DIGITS]


def _n_digits(text: str) -> int:
    """Significant digits of a number in a text; none of inf and nan."""
    return len(re.sub(r"[^0-9]", "", text.split("e")[0]).strip("0"))


# -- everything that is shown ----------------------------------------------------------------------


def _shown(estimator: Any, X: Any, groups: Any) -> Iterator[tuple[str, Any]]:
    """Pairs (where, text or bytes).

    In order: a successful fit in its own words; its pickle as text (protocol 0); plan and releases;
    errors and warnings of fits, predictions and groups with spoiled data. Errors are the likeliest
    leak, as NumPy and scikit-learn quote the values that they cannot convert.
    """
    # Not as a strict user: what warnings say is to be read.
    outcome = run_fit(prepared(estimator), X, groups, strict=False)
    yield from outcome.face(html=True).items()
    if outcome.error is not None:
        return
    yield "pickle (protocol 0)", pickle.dumps(outcome.estimator, protocol=0)
    yield "plan", repr(outcome.estimator.privacy_plan(X.shape[1]))
    yield "releases", repr(outcome.estimator.privacy_report_.releases)
    for name, spoiled in spoiled_data(X):
        yield f"fit of {name}", _text_of(prepared(estimator).fit, spoiled)
        for method in ("predict", "transform", "score"):
            if hasattr(outcome.estimator, method):
                yield (f"{method} of {name}", _text_of(getattr(outcome.estimator, method), spoiled))
    if accepts_groups(estimator):
        for name, wrong in (("long", X.ravel()), ("matrix", X), ("short", X[1:, 0])):
            yield f"groups ({name})", _text_of(prepared(estimator).fit, X, groups=wrong)


def spoiled_data(X: Any) -> list[tuple[str, Any]]:
    """Data that has to be refused, with the values of `X` in it.

    Each has a value that is a needle, beside what has to be refused.
    """
    nan, infinite = X.copy(), X.copy()
    nan[-1, 0], infinite[-1, 0] = np.nan, np.inf
    mixed = X.astype(object)
    mixed[0, 0] = f"{X[0, 0]!r}?"
    with_dict = X.astype(object)
    with_dict[0, 0] = {X[0, 0]: 1}
    return [
        ("NaN", nan),
        ("infinity", infinite),
        ("complex numbers", X * 1j),
        ("strings", np.char.add(X.astype(str), "?")),
        ("mixed objects", mixed),
        ("dicts", with_dict),
        ("one dimension", X[0]),
        ("three dimensions", X[None]),
        ("a number", X[0, 0]),
        ("no features", X[:, :0]),
        ("ragged rows", [*X.tolist(), [1.0]]),
    ]


def _text_of(method: Callable[..., Any], *args: Any, **options: Any) -> str:
    """Warnings and error of a call that should fail, with what the error carries along.

    Errors carry other errors: `__cause__` and `__context__` are followed, since a traceback prints
    them.
    """
    texts = []
    with overheard(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            method(*args, **options)
        except Exception as raised:
            error: BaseException | None = raised
            while error is not None:
                texts.append(f"{error!r} {error}")
                error = error.__cause__ or error.__context__
    return " ".join([*texts, *(str(item.message) for item in caught)])
