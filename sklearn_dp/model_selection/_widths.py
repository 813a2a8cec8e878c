"""How many columns each step of a candidate may get: public facts, known before anything is fitted.

The plan of a private step depends on the number of its columns. Where an earlier step chooses that
number by its releases, as ``DPPCA("auto")`` and ``DPKMeans("auto")`` do, all numbers that it may
choose are followed from step to step.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from .._base import check_number_of_clusters
from .._steps import SingleRows
from ..preprocessing import DPOneHotEncoder
from ._candidates import Step

__all__ = ["widths", "widths_after"]


def widths(steps: Sequence[Step], n_features: int) -> Iterator[tuple[Any, Any]]:
    """Each step with the public numbers of columns that it may get: one, unless one is chosen.

    Width counts the columns that come in, so what the last step puts out is not asked for.
    """
    columns: tuple[int, ...] = (n_features,)
    for step in steps:
        yield step, columns
        if step is not steps[-1]:
            columns = widths_after(step, columns)


def widths_after(step: Step, widths: tuple[int, ...]) -> tuple[int, ...]:
    """Numbers of columns, increasing, that a step may make of any of `widths` columns: public.

    A step without fitting is asked with one row of zeros, which is no data. A private one that
    reduces to components or to distances from clusters tells their number by its parameters, or all
    numbers that it may choose from: which one it is, only its releases tell. Others keep the number
    of columns.

    >>> from sklearn_dp import DPKMeans
    >>> from sklearn_dp.model_selection._candidates import Step
    >>> widths_after(Step("clusters", DPKMeans((2, 5)), True), (7,))
    (2, 3, 4, 5)
    """
    if step.private:
        found = {each for width in widths for each in _widths_of_private(step.estimator, width)}
    else:
        found = {_width_of_answer(step, width) for width in widths}
    return tuple(sorted(found))


def _width_of_answer(step: Step, width: int) -> int:
    if isinstance(step.estimator, SingleRows):
        return step.estimator.columns_after(width)
    try:
        return int(np.asarray(step.estimator.transform(np.zeros((1, width)))).shape[1])
    except NotFittedError:
        kind = type(step.estimator).__name__
        raise ValueError(
            f"public_steps: step {step.name!r} ({kind}) is not fitted. Fit it on public rows "
            "first: the search uses it as it is."
        ) from None


def _widths_of_private(estimator: Any, width: int) -> Any:
    if hasattr(estimator, "n_components"):
        value = estimator.n_components
        if isinstance(value, int | np.integer):
            return (int(value),)
        if isinstance(value, tuple | list):
            return range(value[0], min(value[1], width) + 1)
        return (width,) if value is None else range(1, width + 1)
    if hasattr(estimator, "n_clusters"):
        asked = check_number_of_clusters(estimator.n_clusters, "n_clusters")
        if isinstance(asked, int):
            return (asked,)
        return range(asked.low, asked.high + 1)
    if isinstance(estimator, DPOneHotEncoder):
        raise ValueError(
            "DPOneHotEncoder: the number of categories is released by the fit, so it is not known "
            "in advance. Fit it separately, and pass its `schema_` to PublicEncoder."
        )
    return (width,)
