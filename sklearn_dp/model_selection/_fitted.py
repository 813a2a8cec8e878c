"""A candidate that has been fitted: what scores ask of it, and what is left of it.

A score may call anything here, and its sensitivity is proved row by row. So every function of rows
has to give each row a result that depends on that row (and on what was released) alone, to the last
bit. Matrix products of a linear algebra library break that: they pick their kernels by the number
of rows, so one row more may change the last bits of all others. That is why densities and distances
are computed here, by functions that make each result in a fixed order
(:mod:`sklearn_dp._aggregate.shared.single_rows`), and not by the estimators' own methods.

Spaces: rows are given in the space of the search's input. Each step but the last maps them on;
`centers` are in the space of the last step, `input_centers` back in that of the input.
"""

from typing import Any, Self

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    Binarizer,
    MaxAbsScaler,
    MinMaxScaler,
    RobustScaler,
    StandardScaler,
)
from sklearn.utils import get_tags

from .._aggregate.shared.single_rows import finite
from .._base import BaseDPEstimator
from .._silence.global_generators import row_by_row
from .._steps import PublicStep, SingleRows, problem_of
from ..preprocessing import PublicScaler

__all__ = ["Fitted", "square_sums", "transformed"]

_ELEMENTWISE = (
    *(Binarizer, MaxAbsScaler, MinMaxScaler, PublicScaler, RobustScaler, StandardScaler),
)


def transformed(step: Any, X: Any) -> np.ndarray:
    """What a fitted step makes of rows, each a function of its row alone, bit for bit; finite.

    Private steps and scalers work number by number. Any other step, also inside a private one, gets
    one row at a time: the last bits of a matrix product hang on the rows beside a row, and a
    function of the user may look at all of them. What it draws from the global generators is a
    function of the row too. A row that it fails at counts as zeros.
    """
    inner = getattr(step, "estimator_", step)  # of another library, if it has one
    if len(X) and (isinstance(inner, BaseDPEstimator) or type(inner) in _ELEMENTWISE):
        return finite(step.transform(X))
    (first,) = row_by_row(step.transform, np.zeros((1, X.shape[1])))

    def of_row(row: np.ndarray) -> np.ndarray:
        try:
            return finite(np.asarray(step.transform(row), dtype=np.float64))
        except Exception:  # one row must not decide about the whole fit
            return np.zeros(first.shape)

    return np.concatenate([np.zeros((0, first.shape[1])), *row_by_row(of_row, X)])


def _marked(step: Any) -> Any:
    """A fitted step, so that a report of its pipeline knows what the search knew of it."""
    if not problem_of(step, fitted=True):
        return step
    return PublicStep(step) if get_tags(step).requires_fit else SingleRows(step)


def square_sums(rows: np.ndarray) -> np.ndarray:
    """Squared lengths of rows, the columns one after the other."""
    total = np.zeros(len(rows))
    for column in rows.T:
        total += np.square(column)
    return total


class Fitted:
    """The fitted steps of a candidate, as (name, estimator); the last one is the model.

    A thin view: it copies nothing, and what it computes is not kept. The only step has the name ""
    where the candidate is no pipeline.
    """

    def __init__(self, steps: list[tuple[str, Any]]) -> None:
        self.steps = steps

    @property
    def model(self) -> Any:
        """What the user searched with, fitted: an estimator or a Pipeline.

        The steps of a pipeline are handed over as they are, fitted. Those that are known by the
        word of the user alone are marked: they stay as they were, if the pipeline is fitted again.
        """
        if self.steps[0][0] == "":
            return self.steps[0][1]
        return Pipeline([(name, _marked(step)) for name, step in self.steps])

    @property
    def final(self) -> Any:
        """The last step."""
        return self.steps[-1][1]

    @property
    def centers(self) -> np.ndarray:
        """Released centers (k, q), in the space of the last step.

        Clusters, components of a mixture, or the one center of a mean. A TypeError if the model has
        none: which attributes a model has is a fact about its class.
        """
        for name in ("cluster_centers_", "means_", "center_"):
            if hasattr(self.final, name):
                return np.atleast_2d(np.asarray(getattr(self.final, name), dtype=np.float64))
        raise TypeError(f"{type(self.final).__name__} has no centers to score by.")

    @property
    def input_centers(self) -> np.ndarray:
        """Released centers, in the space of the rows that the search was given.

        Candidates may end in spaces of different dimensions. Their costs are comparable only where
        all distances are measured in one space, and that is this one.
        """
        return self._back(self.centers)

    def last(self, X: Any) -> Any:
        """Rows in the space of the last step.

        `finite` replaces NaN and infinities, which a step may make of extreme rows.
        """
        for _, step in self.steps[:-1]:
            X = transformed(step, X)
        return X

    def _back(self, points: Any) -> Any:
        """Points of the last step's space, in the space of the input.

        A step that has no `inverse_transform` raises AttributeError; which step that is, is public.
        """
        for _, step in reversed(self.steps[:-1]):
            points = finite(step.inverse_transform(points))
        return points

    def reconstructed(self, X: Any) -> Any:
        """Rows as far as the steps can give them back.

        What is lost is what a projection has dropped, or the distance to what a row was replaced
        by.
        """
        final = self.final
        return self._back(finite(final.inverse_transform(final.transform(self.last(X)))))

    def predict(self, X: Any) -> Any:
        """The last step's answer for rows."""
        return self.final.predict(self.last(X))

    def log_density(self, X: Any) -> np.ndarray:
        """Log-density of the model at each row, by its own `score_samples`, whose bits are those of
        the row alone. Of one step: after others, a density would be one of other units."""
        (only,) = self.steps
        return only[1].score_samples(X)

    def stripped(self) -> Self:
        """The same without what was not released.

        Labels of training rows are kept by an estimator for its owner. In a search they would
        survive in `best_estimator_`, and they are no release.
        """
        for _, step in self.steps:
            for name in getattr(step, "_not_released", ()):
                vars(step).pop(name, None)
        return self
