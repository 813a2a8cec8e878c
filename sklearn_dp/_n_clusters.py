"""The number of clusters that a user gives, or the numbers that one is to be chosen from."""

from typing import Any

from ._aggregate.kmeans.fit_context import CRITERIA, MOST_CHOICES, Candidates
from ._costs.numbers import check_choice, is_integer
from ._parameters import MOST_CLUSTERS, check_integer, check_pair


def check_number_of_clusters(
    value: Any, name: str, criterion: Any = "auto", *, high: int = MOST_CLUSTERS
) -> int | Candidates:
    """A number of clusters, or the range that one is to be chosen from; an error names it.

    Given is an integer up to `high`, "auto", or a pair of the least and the largest number.

    >>> check_number_of_clusters("auto", "n_clusters")
    Candidates(low=1, high=30, criterion='auto')
    >>> check_number_of_clusters((3, 2), "n_clusters")
    Traceback (most recent call last):
      ...
    ValueError: n_clusters must be an integer, 'auto' or a pair 1 <= low <= high <= 200.
    """
    check_choice("criterion", criterion, CRITERIA)
    if is_integer(value):
        return check_integer(value, name, low=1, high=high)
    words = f"{name} must be an integer, 'auto' or a pair 1 <= low <= high <= {MOST_CHOICES}."
    if isinstance(value, str):
        if value != "auto":
            raise ValueError(words)
        return Candidates(criterion=criterion)
    least, most = check_pair(value, MOST_CHOICES, words)
    return least if least == most else Candidates(least, most, criterion)
