"""Everything that a fitted estimator shows, as numbers and as words.

What an estimator shows is what its pickle holds (in-memory conveniences such as ``labels_`` are not
in it), what its report and its texts say, how long these are, and what the fit warned of or raised.

Every attribute is flattened under a name of its own, so that a column of the table means the same
in all fits; an attribute that is missing in some of them is a column with holes, which says
something too. Lengths are there because a text or a list that grows with n tells n.
"""

import pickle
from typing import Any

import numpy as np

from .._observe import Outcome

__all__ = ["Table", "shown"]

_MOST_NUMBERS = 64  # of one attribute
_PARAMETERS_OF_RELEASES = ("sensitivity", "sigma", "rho", "delta")


def shown(outcome: Outcome) -> tuple[dict[str, float], dict[str, str]]:
    """Numbers and words that one fit shows.

    Where a fit fails, its error and its warnings are all that it shows.

    The attributes are those of the unpickled copy: whoever receives a model has that. A column is a
    number or a word; which, is decided by its type.
    """
    numbers: dict[str, float] = {}
    words = {
        "warnings": " / ".join(f"{kind.__name__}: {text}" for kind, text in outcome.warnings),
        "error": "" if outcome.error is None else repr(outcome.error),
        "printed": outcome.printed,
    }
    if outcome.error is not None:
        return numbers, words
    data = pickle.dumps(outcome.estimator, protocol=5)
    numbers["length of the pickle"] = float(len(data))
    report = getattr(outcome.estimator, "privacy_report_", None)
    if report is not None:
        _report(report, numbers, words)
    attributes = {
        name: value for name, value in vars(pickle.loads(data)).items() if name.endswith("_")
    }
    for name, value in attributes.items():
        _enter(name, value, numbers, words)
    _totals(attributes, numbers)
    return numbers, words


def _report(report: Any, numbers: dict[str, Any], words: dict[str, Any]) -> None:
    """Noise scales and sensitivities are public.

    Their columns are constant, and dropped, unless a fit chooses its releases by earlier ones, or
    its scales by the data.
    """
    numbers["length of the report"] = float(len(repr(report)))
    numbers["number of releases"] = float(len(report.releases))
    words["releases"] = " / ".join(row["release"] for row in report.releases)
    words["notes of the report"] = " / ".join(report.warnings)
    for i, row in enumerate(report.releases[:_MOST_NUMBERS]):
        for name in _PARAMETERS_OF_RELEASES:
            _enter(f"report: {name} of release {i}", row.get(name), numbers, words)


def _enter(name: str, value: Any, numbers: dict[str, Any], words: dict[str, Any]) -> None:
    """Enter an attribute under its name, and its parts under longer ones.

    Recursive: a dict or a list is entered part by part. What is neither text, number nor container
    counts by its class and by the length of its pickle.
    """
    if value is None or isinstance(value, (str, bytes)):
        words[name] = repr(value)
    elif isinstance(value, dict):
        words[f"keys of {name}"] = repr(sorted(map(str, value)))
        _enter_parts(name, value.items(), numbers, words)
    elif isinstance(value, (list, tuple)) and not _is_numeric(value):
        numbers[f"length of {name}"] = float(len(value))
        _enter_parts(name, enumerate(value), numbers, words)
    elif _is_numeric(value):
        _enter_array(name, np.asarray(value), numbers, words)
    else:
        words[name] = type(value).__name__
        numbers[f"length of the pickle of {name}"] = float(len(pickle.dumps(value, protocol=5)))


def _enter_parts(name: str, parts: Any, numbers: dict[str, Any], words: dict[str, Any]) -> None:
    """The first 64 parts under longer names: more columns than a learner can use."""
    for key, part in list(parts)[:_MOST_NUMBERS]:
        _enter(f"{name}[{key}]", part, numbers, words)


def _is_numeric(value: Any) -> bool:
    try:
        return np.asarray(value).dtype.kind in "bifu"
    except ValueError:  # a list of arrays of several shapes
        return False


def _enter_array(
    name: str, array: np.ndarray, numbers: dict[str, Any], words: dict[str, Any]
) -> None:
    """Entries of an array: by place, in order of size, their sum and their norm."""
    words[f"shape of {name}"] = f"{array.shape} {array.dtype}"
    flat = array.astype(np.float64).ravel()
    if array.ndim == 0:
        numbers[name] = float(flat[0])
        return
    # In order of size too: places may be arbitrary.
    for i, (number, ordered) in enumerate(
        zip(flat[:_MOST_NUMBERS], np.sort(flat)[::-1], strict=False)
    ):
        numbers[f"{name}[{i}]"] = number
        if len(flat) > 1:
            numbers[f"{name} sorted[{i}]"] = ordered
    if len(flat) > 1:
        with np.errstate(over="ignore", invalid="ignore"):
            numbers |= {f"sum of {name}": flat.sum(), f"norm of {name}": np.linalg.norm(flat)}


def _totals(attributes: Any, numbers: dict[str, Any]) -> None:
    """Points times their weights: nearer to a sum than the points are, and a sum has the noise.

    A center is a noisy sum over a noisy count. Where a row is added to n others it moves the center
    by 1/n, and the sum by a whole radius: multiplied out, the release behind it can be seen again.
    """
    arrays = {
        name: np.atleast_1d(np.asarray(value, dtype=np.float64))
        for name, value in attributes.items()
        if value is not None and _is_numeric(value)
    }
    for other, weights in arrays.items():
        if weights.ndim > 1 or not ("weight" in other or "size" in other):
            continue
        for name, points in arrays.items():
            if name == other or points.ndim > 2 or len(weights) not in (1, len(points)):
                continue
            with np.errstate(over="ignore", invalid="ignore"):
                total = weights @ points if len(weights) == len(points) else weights[0] * points
            for i, number in enumerate(np.ravel(total)[:_MOST_NUMBERS]):
                numbers[f"{name} times {other}[{i}]"] = float(number)


class Table:
    """What many fits show: columns of numbers, NaN where a fit has no such number, and of words."""

    def __init__(self, rows: list[tuple[dict[str, float], dict[str, str]]]) -> None:
        self.n_rows = len(rows)
        self.numbers = _columns([row[0] for row in rows], np.nan, np.float64)
        self.words = _columns([row[1] for row in rows], "(missing)", object)


def _columns(rows: Any, missing: Any, dtype: Any) -> dict[str, np.ndarray]:
    """One column for each name in any row; constant ones, which tell nothing, are left out."""
    columns = {}
    for i, row in enumerate(rows):
        for name, value in row.items():
            if name not in columns:
                columns[name] = np.full(len(rows), missing, dtype=dtype)
            columns[name][i] = value
    return {name: column for name, column in columns.items() if not _is_constant(column)}


def _is_constant(column: np.ndarray) -> bool:
    if column.dtype == object:
        return bool(np.all(column == column[0]))
    return bool(np.array_equal(column, np.full(len(column), column[0]), equal_nan=True))
