"""The numbers that are read off fitted estimators, and put on a fresh one. Their shapes must be
public: an estimator is fitted once to dummy rows (:func:`probe`), and a fit with an output of
another shape is a failed fit."""

import math
from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator, clone

from .._door import check_target, column
from .._privacy._entries import floats, places_among
from .._privacy._integers import exact_integers
from .._silence.global_generators import own_streams
from .._silence.suppress_output import attempt_silently, suppress_output
from .._sklearn_compat import without_callbacks
from .._status import Message, Status, extent, in_short, names_at

_PROBE_ROWS = 128
_MOST_COLUMNS = 2**19  # half a gigabyte of dummy rows
_TOLD = 1.96  # standard errors within which a coefficient may be zero
_GOLDEN_ANGLE = 2.399963  # radians
_USUAL = (
    ("coef_", "intercept_"),
    ("center_", "scale_"),
    ("center_",),
    ("mean_", "scale_"),
    ("location_", "covariance_"),
)
"""The default output of an estimator is the first of these that it has."""


class WithTarget(BaseEstimator):
    """An estimator that takes the target from the last column, for a classifier as places."""

    def __init__(self, estimator, classes=None):
        self.estimator = estimator
        self.classes = classes

    def fit(self, rows):
        if self.classes is not None:  # rows with another label are left out
            rows = rows[rows[:, -1] >= 0]
        y = rows[:, -1]
        if self.classes is not None:
            y = labels_of(self.classes)[exact_integers(y)]
        self.fitted_ = clone(self.estimator).fit(rows[:, :-1], y)
        return self


def labels_of(classes):
    """The public labels of a classifier as an array: of one type if all are texts or numbers."""
    labels = column(classes, "classes")
    kinds = {str if isinstance(each, str) else type(each) for each in labels.tolist()}
    same_kind = labels.dtype == object and (len(kinds) == 1 or kinds <= {int, float})
    return np.array(labels.tolist()) if same_kind else labels


def target_column(y, n, labels=None):
    """A target of `n` rows as numbers, or one error for all that may be wrong with it.

    With public `labels` of a classifier the numbers are their places; other labels are -1, since
    an error would reveal that they are there."""
    if y is None:
        raise ValueError("y must be given: the estimator needs a target.")
    check_target(y)
    given = column(y, "y")
    if labels is None:
        numbers, wrong = floats(given)
    else:
        # A column may be a list of lists, of one label each.
        entries = [
            each[0] if type(each) is list and len(each) == 1 else each for each in given.tolist()
        ]
        numbers, wrong = places_among(entries, labels.tolist()).astype(float), set()
    if wrong or len(numbers) != n or not np.isfinite(numbers).all():
        raise ValueError(
            "y must be a vector of finite numbers (of labels, for a classifier), "
            "one for each row of X."
        )
    return numbers


@dataclass(frozen=True)
class Output:
    """Which attributes of a fitted estimator are wanted, and their public shapes.

    >>> from types import SimpleNamespace
    >>> output = Output(("coef_", "intercept_"), ((2,), ()), ())
    >>> output.read(SimpleNamespace(coef_=[1, 2], intercept_=3.0))
    array([1., 2., 3.])
    >>> fresh = SimpleNamespace()
    >>> output.write(fresh, np.array([4.0, 5.0, 6.0]))
    >>> fresh
    namespace(coef_=array([4., 5.]), intercept_=6.0)
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]  # one for each name; () for a number
    signs: tuple[str, ...]  # names whose rows have arbitrary signs

    @property
    def size(self):
        """Length of the flat vector."""
        return sum(math.prod(shape) for shape in self.shapes)

    def read(self, fitted):
        """Flat vector of one fitted estimator; fails on any other shape."""
        fitted = getattr(fitted, "fitted_", fitted)
        values = [np.asarray(getattr(fitted, name), dtype=np.float64) for name in self.names]
        if tuple(value.shape for value in values) != self.shapes:
            raise ValueError("another shape")
        named = zip(self.names, values, strict=True)
        parts = [_fix_signs(value) if name in self.signs else value for name, value in named]
        return np.concatenate([part.ravel() for part in parts])

    def hidden(self, vector, error, *, bounded):
        """Return the status of released outputs, which are compared with their own errors."""
        if bounded and (np.abs(vector) < _TOLD * error).all():
            text = "mostly noise: no output can be told from zero"
            action = "use closer output_bounds, more rows or a larger epsilon"
            return Status([Message("mostly_noise", text, (), action, "all")])
        sizes = [math.prod(shape) for shape in self.shapes]
        of_coef = np.repeat([name == "coef_" for name in self.names], sizes)
        noisy = np.abs(vector[of_coef]) < _TOLD * error[of_coef]
        number = int(np.count_nonzero(noisy))
        if 2 * number <= noisy.size:
            return Status()
        shape = self.shapes[self.names.index("coef_")]
        places = [f"coef_[{', '.join(map(str, place))}]" for place in np.ndindex(*shape)]
        text = (
            f"mostly noise: {number} of the {noisy.size} coefficients cannot be "
            f"told from zero ({in_short(names_at(places, noisy))}), so predictions may be far off"
        )
        action = "use more rows, fewer columns or a larger epsilon"
        return Status([Message("mostly_noise", text, (), action, extent(number, noisy.size))])

    def write(self, fitted, vector):
        """Set the attributes of a fresh estimator."""
        ends = np.cumsum([math.prod(shape) for shape in self.shapes])
        parts = np.split(vector, ends[:-1])
        for name, shape, part in zip(self.names, self.shapes, parts, strict=True):
            setattr(fitted, name, float(part[0]) if shape == () else part.reshape(shape))


def _fix_signs(rows):
    """Each row with the sign that makes its product with a fixed direction positive: only rows that
    are nearly orthogonal to it flip between blocks."""
    direction = np.cos(np.arange(rows.shape[-1]) * _GOLDEN_ANGLE)  # public, far from any axis
    return rows * np.where(rows @ direction < 0, -1.0, 1.0)[..., None]


def probe(trainable, n_columns, names, signs, n_classes=None):
    """The output of an estimator, in public shapes: from a fit to dummy rows, with a target in the
    last column. Without `names` it is the first of `_USUAL` that a fit has."""
    if n_columns > _MOST_COLUMNS:
        raise ValueError(
            f"n_features, the columns of X, must be at most {_MOST_COLUMNS:,}: the estimator is "
            f"first fitted to {_PROBE_ROWS} dummy rows to find the shape of its output."
        )
    rows = np.sin(1.7 * np.arange(1, _PROBE_ROWS * n_columns + 1) ** 1.3)
    rows = rows.reshape(_PROBE_ROWS, n_columns)
    if n_classes is not None:
        rows[:, -1] = np.arange(_PROBE_ROWS) % n_classes

    def values_of_a_fit():
        fitted = without_callbacks(clone(trainable)).fit(rows)
        return _numbers(getattr(fitted, "fitted_", fitted))

    with suppress_output(), own_streams() as start_stream:
        start_stream(0)
        values = attempt_silently(values_of_a_fit)[0]
    if values is None:
        raise ValueError("estimator: it could not be fitted to dummy data. Check its parameters.")
    wanted = _USUAL if names is None else (tuple(names),)
    match = next((each for each in wanted if values.keys() >= {*each}), None)
    if match is None:
        asked = "none of the usual attributes" if names is None else f"not {', '.join(names)}"
        raise ValueError(
            f"output: fitted to dummy data, the estimator has {asked} as numbers, but has "
            f"{', '.join(sorted({*values} - {'n_features_in_'})) or 'none at all'}."
            + " Clusters have no order: use DPKTupleKMeans."
            * ("cluster_centers_" in values)
        )
    return Output(match, tuple(values[name].shape for name in match), tuple(signs))


def _numbers(fitted):
    """Attributes of a fitted estimator that are arrays of finite numbers, by name."""
    numbers = {}
    for name in dir(fitted):
        if name.endswith("_") and name[0] != "_":
            # Some are properties, which may ask for what is not there. None is a NaN to numpy.
            value = attempt_silently(lambda name=name: np.asarray(getattr(fitted, name), float))[0]
            if value is not None and np.isfinite(value).all():
                numbers[name] = value
    return numbers


def clip_features(domain, n_features, block):
    """Rows of a block, clipped to public bounds; a target in the last column stays."""
    if domain is None:
        return block
    return np.column_stack([domain.clip_points(block[:, :n_features]), block[:, n_features:]])
