"""The numbers that are read off fitted estimators, and put on a fresh one."""

import math
from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator, clone

from .._aggregate.shared.silence import attempt_silently, silent

__all__ = ["Output", "WithTarget", "probe"]

_PROBE_ROWS = 128


class WithTarget(BaseEstimator):
    """An estimator that takes the target from the last column of its rows."""

    def __init__(self, estimator, classes=None):
        self.estimator = estimator
        self.classes = classes

    def fit(self, rows):
        y = rows[:, -1]
        if self.classes is not None:
            y = np.asarray(self.classes)[y.astype(np.int64)]
        self.fitted_ = clone(self.estimator).fit(rows[:, :-1], y)
        return self


@dataclass(frozen=True)
class Output:
    """Which attributes of a fitted estimator are wanted, and their public shapes."""

    names: tuple
    shapes: tuple
    signs: tuple

    @property
    def size(self):
        return sum(math.prod(shape) for shape in self.shapes)

    def read(self, fitted):
        """Flat vector of one fitted estimator; fails on any other shape."""
        fitted = getattr(fitted, "fitted_", fitted)
        values = [np.asarray(getattr(fitted, name), dtype=np.float64) for name in self.names]
        if tuple(value.shape for value in values) != self.shapes:
            raise ValueError("another shape")
        return np.concatenate(
            [
                (_fix_signs(value) if name in self.signs else value).ravel()
                for name, value in zip(self.names, values, strict=True)
            ]
        )

    def write(self, fitted, vector):
        """Set the attributes of a fresh estimator."""
        ends = np.cumsum([math.prod(shape) for shape in self.shapes])
        for name, shape, part in zip(
            self.names, self.shapes, np.split(vector, ends[:-1]), strict=True
        ):
            setattr(fitted, name, float(part[0]) if shape == () else part.reshape(shape))


def _fix_signs(rows):
    """Each row with the sign that makes its product with a fixed direction positive."""
    direction = np.cos(np.arange(rows.shape[-1]) * 2.399963)  # public, far from any axis
    return rows * np.where(rows @ direction < 0, -1.0, 1.0)[..., None]


def probe(trainable, n_columns, names, signs, n_classes=None):
    """The output of an estimator, from a fit to rows that have nothing to do with the data.

    Parameters
    ----------
    trainable : estimator
    n_columns : int
        Of its rows; a target is the last of them.
    names, signs : sequence of str
    n_classes : int, optional
        Of a classifier, whose targets are 0, 1 and so on.

    Returns
    -------
    output : Output
        Its shapes are public.
    """
    rows = np.sin(1.7 * np.arange(1, _PROBE_ROWS * n_columns + 1) ** 1.3)
    rows = rows.reshape(_PROBE_ROWS, n_columns)
    if n_classes is not None:
        rows[:, -1] = np.arange(_PROBE_ROWS) % n_classes

    def values_of_a_fit():
        fitted = clone(trainable).fit(rows)
        fitted = getattr(fitted, "fitted_", fitted)
        return [np.asarray(getattr(fitted, name), dtype=float) for name in names]

    with silent():
        values = attempt_silently(values_of_a_fit)[0]
    # None is a NaN to numpy.
    if values is None or not all(np.isfinite(value).all() for value in values):
        raise ValueError(
            "output or estimator: no fit to dummy data has these attributes as numbers."
        )
    return Output(tuple(names), tuple(value.shape for value in values), tuple(signs))
