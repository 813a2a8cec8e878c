"""Confidence intervals and a table of what a fit released: post-processing.

An estimator that releases `name_` also gives `name_std_error_`, from the noise scales and released
values. It covers the noise, and the sampling of rows where the estimator says so.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm
from sklearn.utils.validation import check_is_fitted

from ._costs.numbers import check_choice, check_number, extra, is_real
from ._costs.pages import framed, table
from ._costs.report import PrivacyReport
from ._status import Status

_COLUMNS = ("value", "std_error", "low", "high")
_SHOWN = 40  # lines that are printed


class Interval(NamedTuple):
    """Both ends of confidence intervals, arrays of the shape of the attribute.

    Attributes
    ----------
    low, high : ndarray
        Clipped to the range that the attribute can be in: a weight is never negative.
    """

    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True)
class Summary:
    """Released values with their standard errors and confidence intervals.

    Prints its first 40 lines; a notebook shows them as an HTML table.

    Attributes
    ----------
    title : str
        Name of the estimator.
    lines : tuple of tuple
        Name, value, standard error, and both ends of the interval.
    level : float
        Of the confidence intervals, in (0, 1).
    notes : tuple of str
        Status and guarantee of the fit.
    """

    title: str
    lines: tuple[tuple, ...]
    level: float
    notes: tuple[str, ...] = ()

    def to_frame(self) -> Any:
        """All lines as a pandas DataFrame (extra ``pandas``).

        Returns
        -------
        frame : DataFrame
            One row for each released number, with the columns value, std_error, low and high.
        """
        with extra("pandas"):
            import pandas as pd

        names = [line[0] for line in self.lines]
        return pd.DataFrame([line[1:] for line in self.lines], names, list(_COLUMNS))

    def _shown(self) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
        """Head and body of the table, and the notes below it, as text."""
        head = ("", "value", "std error", f"{100 * self.level:g}% low", "high")
        body = [(line[0], *(f"{value:.4g}" for value in line[1:])) for line in self.lines[:_SHOWN]]
        more = len(self.lines) - len(body)
        rest = (f"{more} more lines: see to_frame()",) if more > 0 else ()
        return [head, *body], (*rest, *self.notes)

    def __repr__(self) -> str:
        table, notes = self._shown()
        first, *widths = (max(map(len, column)) for column in zip(*table, strict=True))
        lines = [
            "  ".join([name.ljust(first), *map(str.rjust, numbers, widths)]).rstrip()
            for name, *numbers in table
        ]
        return "\n".join([self.title, *lines, *notes])

    def _repr_html_(self) -> str:
        (head, *body), notes = self._shown()
        return framed(
            f"<p>{escape(self.title)}</p>{table(head, body)}"
            + "".join(f'<p class="sk-dp-note">{escape(text)}</p>' for text in notes)
        )


class StandardErrors:
    """Mixin of estimators that release `name_` with a standard error `name_std_error_`. A subclass
    gives `_with_errors`: the attributes, the main result first, with the lowest and highest value
    of each. `_feature_axes`: how many of their last axes are features.
    """

    _with_errors: dict[str, tuple[float, float]] = {}
    _feature_axes: dict[str, int]
    _names_of_search: np.ndarray | None = None  # while a search, which has them, fits its rows
    messages_: Status
    rows_beyond_: float
    n_features_in_: int
    privacy_report_: PrivacyReport

    def confidence_interval(
        self, level: float = 0.95, attribute: str | None = None, *, simultaneous: bool = False
    ) -> Interval:
        """Return intervals that contain the truth with a given probability.

        Parameters
        ----------
        level : float, default=0.95
            In (0, 1).
        attribute : str, optional
            A fitted attribute that has a standard error; by default the first of them.
        simultaneous : bool, default=False
            Whether `level` is the probability that all numbers of the attribute lie in their
            intervals at once; otherwise it holds for each interval on its own.

        Returns
        -------
        interval : Interval
            ``low`` and ``high``, each of the shape of the attribute.

        Notes
        -----
        Normal intervals, from released values alone: they cost nothing. They are valid where
        `trustworthy_` is True, for clusters that were found. Simultaneous ones are wider by
        Bonferroni's inequality, which also holds for dependent errors.
        """
        check_is_fitted(self)
        if not self._with_errors:
            raise ValueError("attribute: no value that this fit released has a standard error.")
        attribute = next(iter(self._with_errors)) if attribute is None else attribute
        check_choice("attribute", attribute, tuple(self._with_errors))
        return self._interval(level, attribute, [attribute] if _is_true(simultaneous) else [])

    def _interval(self, level: float, attribute: str, at_once: Sequence[str]) -> Interval:
        """Intervals of an attribute, for all numbers of the attributes `at_once`."""
        # A level of 1 would be the whole line, and of 0 a point that is never right.
        if not is_real(level) or not 0 < check_number("level", level) < 1:
            raise ValueError("level must be greater than 0 and less than 1.")
        value, error = self._value_and_error(attribute)
        numbers = max(sum(np.size(getattr(self, name)) for name in at_once), 1)
        # Both tails: at 95%, the quantile is that of 97.5%. Infinite errors give the whole range.
        quantile = norm.isf((1 - float(level)) / 2 / numbers)
        half = np.full(error.shape, np.inf)
        np.multiply(quantile, error, where=np.isfinite(error), out=half)
        low, high = self._with_errors[attribute]
        return Interval(np.clip(value - half, low, high), np.clip(value + half, low, high))

    def summary(self, level: float = 0.95, *, simultaneous: bool = False) -> Summary:
        """Return a table of what was released: value, standard error, confidence interval.

        Parameters
        ----------
        level : float, default=0.95
            In (0, 1).
        simultaneous : bool, default=False
            Whether `level` is the probability that all numbers of the table lie in their intervals
            at once.

        Returns
        -------
        summary : Summary
            Prints as a table; ``to_frame()`` gives all lines as a DataFrame.
        """
        check_is_fitted(self)
        lines: list[tuple] = []
        at_once = list(self._with_errors) if _is_true(simultaneous) else []
        # Backward: the smaller attributes, such as a count, stand above the table of centers.
        for attribute in reversed(self._with_errors):
            columns = *self._value_and_error(attribute), *self._interval(level, attribute, at_once)
            lines += [
                (self._line_name(attribute, place), *(float(each[place]) for each in columns))
                for place in np.ndindex(columns[0].shape)
            ]
        guarantee = self.privacy_report_.headline.partition(";")[0]
        said = f"status: {self.messages_.word}", *map(str, self.messages_), guarantee
        return Summary(type(self).__name__, tuple(lines), float(level), (*self._beyond(), *said))

    def _beyond(self) -> tuple[str, ...]:
        """Say how many units lie beyond a released radius."""
        if not hasattr(self, "rows_beyond_"):
            return ()
        name = "bound_" if hasattr(self, "bound_") else "radius_"
        units, place = f"{self.privacy_report_.unit}s", f"{name} = {getattr(self, name):.4g}"
        if any(each.code == "outside_bound" for each in self.messages_):  # and how many
            return (f"{place}: {units} farther out are clipped to it",)
        most = f"{math.ceil(self.rows_beyond_)} {units} (with 95% confidence)"
        return (f"at most {most} lie beyond {place}; they are clipped to it",)

    def _value_and_error(self, attribute: str) -> tuple[np.ndarray, np.ndarray]:
        """A fitted attribute and its standard error, as arrays of one shape."""
        value, error = getattr(self, attribute), getattr(self, f"{attribute}std_error_")
        return np.asarray(value, dtype=np.float64), np.asarray(error, dtype=np.float64)

    @property
    def _column_names(self) -> list[Any]:
        """Names of the columns in messages; "x0", "x1", ... without names."""
        names = getattr(self, "feature_names_in_", self._names_of_search)
        return [f"x{i}" for i in range(self.n_features_in_)] if names is None else names.tolist()

    def _line_name(self, attribute: str, place: tuple) -> str:
        """Return the name of a number: the attribute with its indices, or the name of a feature."""
        names = getattr(self, "feature_names_in_", None)
        first = len(place) - getattr(self, "_feature_axes", {}).get(attribute, 0)
        if names is not None:
            place = (*place[:first], *(names[index] for index in place[first:]))
        return attribute + (f"[{', '.join(map(str, place))}]" if place else "")


def _is_true(simultaneous: object) -> bool:
    if not isinstance(simultaneous, bool | np.bool_):
        raise TypeError("simultaneous must be a bool.")
    return bool(simultaneous)
