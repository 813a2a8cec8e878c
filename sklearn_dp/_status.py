"""The messages of a fit about its answer, and their summary in one word, by released values."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, get_args

import numpy as np

Severity = Literal["all", "part", "caution", "note"]  # from worst to best
# What each of them means is in doc/messages.md.
Code = Literal[
    "bad_segments", "clusters_changing", "coarse_values", "days_left_out", "empty_clusters",
    "failed_blocks", "failed_candidates", "far_rows_clipped", "few_blocks", "few_points",
    "few_rows", "gaps_in_components", "hidden_categories", "hidden_clusters", "hidden_spreads",
    "inertia_capped",
    "inertia_noisy",
    "long_tails", "means_at_bound", "missing_clusters", "mostly_noise", "narrow_columns",
    "no_agreement", "no_ball", "no_bound", "no_category", "no_clusters", "no_components",
    "no_direction", "no_location", "no_score", "no_spread", "no_structure", "noisy_centers",
    "noisy_columns", "noisy_components", "noisy_segments", "noisy_topics", "one_center",
    "one_column_rules", "one_scale", "other_types", "outside_bound", "quantiles_at_bound",
    "rows_at_bound", "rows_beyond_bounds", "rows_left_out", "single_value",
    "suppressed_segments", "unclear_choice", "unclear_clusters", "unclear_number",
    "unknown_values", "unnamed_topics", "weights_cut",
]  # fmt: skip
_SEVERITIES = get_args(Severity)


@dataclass(frozen=True)
class Message:
    """One fact about the answer of a fit, from released values.

    Attributes
    ----------
    code : str
        A short identifier that does not change with the wording, such as "outside_bound".
    text : str
        The fact in plain English.
    columns : tuple of str
        The columns concerned; empty if it concerns the answer as a whole.
    action : str
        What to do about it; empty if the releases suggest no remedy.
    severity : {"note", "caution", "part", "all"}
        "note" is for information, "caution" a limit within which the answer can be used, such as a
        few noisy figures that it names, "part" means that many of the numbers cannot be used,
        "all" that none can.
    """

    code: Code
    text: str
    columns: tuple[str, ...] = ()
    action: str = ""
    severity: Severity = "caution"

    def __str__(self) -> str:
        return "; ".join(filter(None, (self.text, self.action)))


class Status(tuple[Message, ...]):
    """The messages of a fit, the most serious first; where nothing can be used, only problems.

    >>> few = Message("few_rows", "too few rows", severity="all")
    >>> status = Status().add(Message("outside_bound", "7 rows lie outside", severity="note"))
    >>> status.word, status.add(few).word, str(status.add(few)), str(Status())
    ('ok', 'unusable', 'too few rows', 'ok')
    """

    def __new__(cls, messages: Iterable[Message] = ()) -> Self:
        ordered = sorted(dict.fromkeys(messages), key=lambda each: _SEVERITIES.index(each.severity))
        if ordered and ordered[0].severity == "all":
            ordered = [each for each in ordered if each.severity in ("all", "part")]
        return super().__new__(cls, ordered)

    def add(self, *messages: Message) -> Self:
        """Return this status with further messages."""
        return type(self)((*self, *messages))

    def add_columns(
        self,
        code: Code,
        words: str,
        names: Sequence[object],
        where: np.ndarray,
        action: str = "",
        severity: Severity = "caution",
    ) -> Self:
        """Return this status with a message about the columns (d,) that a mask marks, if any.

        Their names end the text. "part" becomes "all" if it marks all columns.

        >>> lost = "no_spread", "no spread found in", ["pay", "age"], np.array([True, False])
        >>> str(Status().add_columns(*lost, "use more rows", "part"))
        'no spread found in: pay; use more rows'
        """
        columns = names_at(names, where)
        if not columns:
            return self
        severity = extent(len(columns), len(where)) if severity == "part" else severity
        return self.add(Message(code, f"{words}: {in_short(columns)}", columns, action, severity))

    def of_part(self, name: object) -> list[Message]:
        """The messages as those of one part of a larger answer."""
        worst: dict[Severity, Severity] = {"all": "part"}
        return [
            replace(
                each, text=f"{name}: {each.text}", severity=worst.get(each.severity, each.severity)
            )
            for each in self
        ]

    @staticmethod
    def of_parts(parts: Iterable[tuple[object, "Status"]]) -> list[Message]:
        """The messages of several parts: one for all that say the same, or differ in numbers.

        >>> far = [Status([Message("rows_at_bound", f"{n} rows are at it")]) for n in (5, 7)]
        >>> Status.of_parts(zip(["north", "south"], far)).pop().text
        'north: 5 rows are at it; similarly in south'
        """
        parts_of: dict[Any, dict[object, Message]] = {}
        for name, status in parts:
            for each in status:
                key = each.code, each.severity, each.action
                parts_of.setdefault(key, {}).setdefault(name, each)
        messages = []
        for group in parts_of.values():
            (first, message), *others = group.items()
            names, columns = [first], message.columns
            if len({each.text for each in group.values()}) == 1:
                names, others = [*group], []
            if others:
                more = in_short([name for name, _ in others])
                columns = tuple(dict.fromkeys(x for each in group.values() for x in each.columns))
                message = replace(message, text=f"{message.text}; similarly in {more}")
            messages += Status([replace(message, columns=columns)]).of_part(in_short(names))
        return messages

    @property
    def trustworthy(self) -> bool:
        """True if the answer can be used, within what is said."""
        return not self or self[0].severity in ("caution", "note")

    @property
    def word(self) -> Literal["ok", "caution", "unusable"]:
        """The status in one word."""
        worst = self[0].severity if self else "note"
        return "unusable" if worst == "all" else "ok" if worst == "note" else "caution"

    def __str__(self) -> str:
        return "; ".join(map(str, self)) or "ok"


def extent(number: int, total: int) -> Severity:
    """How serious it is that so many parts of an answer cannot be used."""
    return "all" if number >= total else "part"


def in_short(names: Sequence[object], most: int = 5) -> str:
    """The first names of several, in a sentence.

    >>> in_short(["age", "hours"]), in_short(range(7))
    ('age, hours', '0, 1, 2, 3, 4 and 2 more')
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(str, names[:most])) + more


def names_at(names: Sequence[object], where: Any) -> tuple[str, ...]:
    """The names of columns where there is something, as strings.

    >>> names_at(["age", "hours", "pay"], [True, False, 2])
    ('age', 'pay')
    """
    return tuple(str(names[place]) for place in np.flatnonzero(where).tolist())
