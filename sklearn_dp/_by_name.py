"""Parameters for columns that name them: values in the order of the names.

What comes here is a parameter, such as bounds, and never the table of a fit.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ._columns import places_of
from ._door import frame_of


def by_name(values: Any, names: Sequence[str] | None, name: str) -> Any:
    """Put values for columns, given in `name`, in the order of the columns' names.

    The columns of a data frame, or the entries of a Series, have texts for labels; or those of a
    pair, or of a dict of pairs, which becomes a pair. Other names, or none of `X` (`names` is
    None), are an error. Without labels, positions decide."""
    if isinstance(values, tuple | list) and len(values) == 2:
        return tuple(by_name(side, names, name) for side in values)
    frame = frame_of(values)
    labels, take = _labels(values) if frame is None else (frame.labels, frame.take)
    if names is None and names_in(values):
        raise ValueError(
            f"{name} names columns, and X has no names to tell which is which. Give X as a data "
            f"frame, or {name} as an array in the order of its columns."
        )
    if names is None:
        return values
    places = places_of(labels, names, name)
    if labels and isinstance(values, Mapping):
        places = list(range(len(labels))) if places is None else places
    return values if places is None else take(places)


def in_one_order(values: Any, name: str) -> Any:
    """Values in the order of the names of the first of a pair that has some, for plans."""
    names = names_in(values)
    return values if names is None else by_name(values, names, name)


def names_in(values: Any) -> list[str] | None:
    """The names of columns in what is given for columns, or in the first of a pair that has any."""
    for side in values if isinstance(values, tuple | list) and len(values) == 2 else (values,):
        frame = frame_of(side)
        labels = _labels(side)[0] if frame is None else frame.labels
        if labels and all(isinstance(label, str) for label in labels):
            return labels
    return None


def matrix_by_name(matrix: Any, names: Sequence[str] | None, name: str) -> Any:
    """A square matrix for the columns of `X`, with rows and columns in the order of their names."""
    if names is None:
        return matrix
    matrix = by_name(matrix, names, name)
    labels, take = _labels(matrix)
    places = places_of(labels, names, name)
    return matrix if places is None else take(places)


def _labels(values: Any) -> tuple[list[Any], Callable[[list[int]], Any]]:
    """Those of the entries of a Series or a dict of pairs, or of the rows of a data frame, and how
    to take some: of a dict, as a pair."""
    named = values.items() if isinstance(values, Mapping) else ()
    if named and all(
        isinstance(label, str) and isinstance(pair, tuple | list) and len(pair) == 2
        for label, pair in named
    ):
        pairs = [pair for _, pair in named]
        return list(values), lambda places: tuple(zip(*(pairs[i] for i in places), strict=True))
    if not hasattr(type(values), "iloc") or not hasattr(values, "index"):
        return [], list
    return list(values.index), lambda places: values.iloc[places]
