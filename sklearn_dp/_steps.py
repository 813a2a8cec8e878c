"""Steps of compositions of scikit-learn: which are known, and how others are made harmless.

**The claim.** A fitted composition is certified if each of its steps is known to be one of these.
Then what each step gets for a row follows from that row, from parameters and from what the steps
before have released, so one row more is one row more in front of each private step; see
:mod:`._costs.report` for the sum of their costs.

* *Private*: what its fit shows is released, and it reads rows through the door.
* *Public*: its fit learns nothing of rows, and it gives every row, read through the door by itself,
  a finite result that follows from that row alone: `PublicScaler`, `PublicEncoder`, `SingleRows`.
* A *pipeline*, which hands on what it gets.
* A *union* without "passthrough", which puts blocks side by side whose types follow from the steps.
  What passes through may be a list of rows, of which it makes an array of one type.
* A *table of columns* whose format no row decides, without a block that may be sparse, or a
  function of the user that chooses columns.

Everything else is a stranger, scikit-learn's steps without a state among them: one row decides the
type of the array that they make of a list, and one finite row may make them, or the step behind,
warn or fail. `privatize` puts `SingleRows` around those, and makes the compositions ours.
"""

from collections.abc import Callable, Iterator
from copy import copy
from typing import Any, Self
from zlib import crc32

import numpy as np
from scipy.sparse import csr_array, issparse, vstack
from sklearn import config_context
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import Binarizer, FunctionTransformer, Normalizer, PolynomialFeatures
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from sklearn.utils import get_tags

from ._columns import check_numbers
from ._costs.checks import is_integer
from ._door import check_vector, column, numbers, schema, see_columns
from ._rows.single_rows import finite, products, row_guard, saturated
from ._silence.global_generators import own_streams
from ._silence.suppress_output import attempt, suppress_output
from ._sklearn_compat import Versioned, fits_around

_LEARNED = "learned from private rows"
_SEVERAL = "may look at several rows at once"
_BEFORE = "fitted before, on rows of which nothing is known"
_WAY_OUT = "privatize(...) replaces or refuses such steps"
_IN_A_WORKER = (
    "a worker of joblib made this fit, which does not know where its rows come from; "
    "set n_jobs=None, or use privatize(...)"
)
_ELEMENTWISE = (np.clip, np.nan_to_num, np.round)
_PROJECTIONS = (GaussianRandomProjection, SparseRandomProjection)
_CHECKED = {"assume_finite": True, "skip_parameter_validation": True}  # what a fit has checked
_KEPT = {"out", "where"}  # arguments of functions which keep results, or leave them out


class PrivateStep:
    """Base class of what is fitted within a session."""


class SingleRows(Versioned, TransformerMixin, BaseEstimator):
    """A step that gets each row by itself, read as numbers or as a text; its fit learns nothing. A
    row that it fails at becomes zeros, and infinite results become the largest number: no row shows
    but in its own result."""

    _learns_nothing = True

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the step to a public row; of `X` only names, types and number of columns count."""
        if (given := self._check_given(X)) is None:
            return self._learn(1)
        see_columns(self, X, given, reset=True)
        return self._learn(given.n_features, given.dtype, sparse=given.sparse)

    def columns_after(self, width: int) -> int:
        """How many columns it makes of so many: public."""
        return int(copy(self)._learn(width)._blank.shape[1])

    def _learn(self, width: int, dtype: Any = np.float64, *, sparse: bool = False) -> Self:
        example: Any = np.zeros((1, width), dtype=dtype)
        if not get_tags(self.estimator).input_tags.two_d_array:
            example = [{}] if type(self.estimator).__name__ == "FeatureHasher" else [""]
        elif sparse:
            example = csr_array(example)
        with suppress_output(), np.errstate(all="ignore"):
            self.estimator_ = self._made(example)
            self._blank = _as_numbers(self.estimator_.transform(example)) * 0
        return self

    def _made(self, example: Any) -> Any:
        return clone(self.estimator).fit(example, None)

    @row_guard
    def transform(self, X: Any) -> Any:
        """Transform each row by the step; all results are finite."""
        if "estimator_" not in vars(self):  # nothing is learned
            return copy(self).fit(X).transform(X)
        if isinstance(self.estimator_, _PROJECTIONS):  # in one order, which follows from the row
            X, matrix = self._numbers(X), self.estimator_.components_.T
            matrix = matrix.toarray() if issparse(matrix) else matrix
            return finite(X @ matrix if issparse(X) else products(X, matrix))
        rows = [self._blank[:0]]

        def result(row: Any) -> Any:
            made = _as_numbers(self.estimator_.transform(row))
            if issparse(made) != issparse(self._blank) or made.shape != self._blank.shape:
                raise ValueError("other columns than those of zeros")
            return made

        with suppress_output(), own_streams() as start_stream, config_context(**_CHECKED):
            for row in self._rows(X):
                start_stream(crc32(_bytes_of(row)))
                made, error = attempt(result, row)
                rows.append(self._blank if error is not None else made)
        return vstack(rows, format="csr") if issparse(self._blank) else np.concatenate(rows)

    def _rows(self, X: Any) -> Iterator[Any]:
        if self._check_given(X) is None:
            yield from ([entry] for entry in column(X, "X").tolist())
            return
        rows = self._numbers(X)
        yield from (rows[i : i + 1].copy() for i in range(rows.shape[0]))

    def _numbers(self, X: Any) -> Any:
        see_columns(self, X, given := self._check_given(X), reset=False)
        rows = numbers(X, given)
        return rows if given.sparse else saturated(rows)

    def _check_given(self, X: Any) -> Any:
        """The public columns of a table, or None of a vector of texts; an error by its type."""
        tags = get_tags(self.estimator).input_tags
        if not tags.two_d_array:
            check_vector(X, "X", ("text", "object"))
            return None
        check_numbers(given := schema(X), sparse=tags.sparse)
        return given

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """The names that the step gives."""
        if input_features is None:
            input_features = getattr(self, "feature_names_in_", None)
        return self.estimator_.get_feature_names_out(input_features)

    def __getattr__(self, name: str) -> Any:
        if name[0] == "_" or "estimator" not in vars(self) or name.startswith("estimator"):
            raise AttributeError(name)
        return getattr(vars(self).get("estimator_", self.estimator), name)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator).input_tags
        tags.input_tags.sparse, tags.input_tags.two_d_array = inner.sparse, inner.two_d_array
        tags.input_tags.string, tags.requires_fit = inner.string, False
        return tags


class PublicStep(SingleRows):
    """One that was fitted before, on public rows: by the word of the user of a search."""

    _learns_nothing = True

    def _made(self, example: Any) -> Any:
        return self.estimator

    def __sklearn_clone__(self) -> Any:
        return self


def _as_numbers(made: Any) -> Any:
    if not issparse(made):
        return finite(np.asarray(made, dtype=made.dtype if made.dtype.kind == "f" else float))
    made = csr_array(made)
    made.data = finite(made.data)
    return made


def _bytes_of(row: Any) -> bytes:
    """The bytes that the random stream of a row follows from."""
    if issparse(row):
        return row.data.tobytes() + row.indices.tobytes()
    return row.tobytes() if isinstance(row, np.ndarray) else b""


def steps_of(estimator: Any, *, fitted: bool = False) -> list[tuple[str, Any]] | None:
    """Names and steps of a composition, or None; `fitted`: copies, of a table of columns."""
    if isinstance(estimator, Pipeline):
        return list(estimator.steps)
    if isinstance(estimator, FeatureUnion):
        return list(estimator.transformer_list)
    if not isinstance(estimator, ColumnTransformer):
        return None
    if fitted and hasattr(estimator, "transformers_"):
        return [(name, step) for name, step, of in estimator.transformers_ if not _is_empty(of)]
    parts = [(name, step) for name, step, *_ in estimator.transformers]
    return [*parts, ("remainder", estimator.remainder)]


def _is_empty(columns: Any) -> bool:
    """True if a step of a table of columns gets none, and so has not been fitted."""
    if isinstance(columns, slice | str | int):
        return False
    columns = np.asarray(columns)
    return not (columns.any() if columns.dtype == bool else columns.size)


def problem_of(estimator: Any, *, fitted: bool) -> str:
    """Why a composition has no guarantee; nothing if each of its steps is known to have one."""
    text = _in_words(_strangers(estimator, "", fitted))
    return text if fitted else text.replace(_LEARNED, "would learn from private rows")


def problems_around() -> Iterator[str]:
    """Why the fit that is being made has no guarantee: what chose it, or gives it its rows."""
    for around, place in fits_around():
        if around is None:
            yield _IN_A_WORKER
        elif place is None:
            kind = type(around).__name__
            yield f"{kind} compared scores of private rows without noise; use DPGridSearch"
        elif steps_of(around) is None:
            kind = type(around).__name__
            yield f"{kind} chose the rows, perhaps some of them twice; fit the estimator by itself"
        elif problem := _in_words(_strangers_before(around, place)):
            yield problem


def _strangers_before(around: Any, place: int) -> Iterator[tuple[str, str]]:
    if _shows_rows(around):
        yield _SEVERAL, _label(type(around), "")
    for name, step in around.steps[:place] if isinstance(around, Pipeline) else ():
        yield from _strangers(step, name, fitted=True)


def _in_words(strangers: Iterator[tuple[str, str]]) -> str:
    kinds: dict[str, list[str]] = {}
    for reason, label in strangers:
        kinds.setdefault(reason, []).append(label)
    words = [f"{', '.join(dict.fromkeys(kinds[reason]))} {reason}" for reason in kinds]
    return "; ".join([*words, _WAY_OUT]) if words else ""


def _strangers(step: Any, name: str, fitted: bool) -> Iterator[tuple[str, str]]:
    """Why nothing is known of a step, and its name, for each such step; subclasses are unknown."""
    kind, inner = type(step), steps_of(step, fitted=fitted)
    if kind is SingleRows and not _is_stateless(step.estimator):
        yield from _strangers(step.estimator, name, fitted)
        return
    if isinstance(step, str | PrivateStep) or _passes(step) or vars(kind).get("_learns_nothing"):
        return
    if kind is FrozenEstimator:
        strangers = _strangers(step.estimator, name, fitted)
        yield from ((_BEFORE, label) for _, label in strangers)
    elif inner is not None:
        if not _hands_on(step, kind, inner):
            yield _SEVERAL, _label(kind, name)
        for own_name, each in inner:
            yield from _strangers(each, f"{name}__{own_name}" if name else own_name, fitted)
    else:
        yield (_SEVERAL if _is_stateless(step) else _LEARNED), _label(kind, name)


def _is_stateless(step: Any) -> bool:
    """True if a step learns nothing of rows: by its type, or as it says of itself."""
    says = isinstance(step, BaseEstimator) and not get_tags(step).requires_fit
    return says or follows_from_rows(step)


def _hands_on(step: Any, kind: type, inner: list[tuple[str, Any]]) -> bool:
    """True if a composition looks at no row, as in the claim above."""
    if kind is FeatureUnion and any(_passes(part) for _, part in inner):
        return False
    dense = kind is not ColumnTransformer or step.sparse_threshold == 0
    return not _shows_rows(step) and (dense or all(_is_dense(part) for _, part in inner))


def _shows_rows(step: Any) -> bool:
    """True if a composition may look at rows before its steps do."""
    kind = type(step)
    if kind is ColumnTransformer:
        chosen = [of for _, _, of in step.transformers if callable(of)]
        return not all(isinstance(of, make_column_selector) for of in chosen)
    return kind not in (Pipeline, FeatureUnion) and "_of_ours" not in vars(kind)


def _passes(step: Any) -> bool:
    """True if a step hands on what it gets; once fitted, "passthrough" has become a function."""
    if isinstance(step, FunctionTransformer):
        return type(step) is FunctionTransformer and step.func is None and not step.validate
    return step is None or (isinstance(step, str) and step != "drop")


def _is_dense(step: Any) -> bool:
    """True if a step makes dense blocks, whatever the rows are: a scaler keeps sparse ones."""
    inner = steps_of(step)
    if isinstance(step, str) or _passes(step):
        return isinstance(step, str) and step == "drop"
    if isinstance(step, PrivateStep):
        keeps = isinstance(step, OneToOneFeatureMixin)
        return not (keeps and getattr(step, "_takes_sparse", False))
    if inner is None:
        return vars(type(step)).get("_learns_nothing", False) and not isinstance(step, SingleRows)
    made = inner[-1:] if isinstance(step, Pipeline) else inner
    return all(_is_dense(each) for _, each in made)


def _label(kind: type, name: str) -> str:
    """The class of a step, and its name, unless that is the one that `make_pipeline` gives."""
    usual = name.rpartition("__")[2].startswith(kind.__name__.lower())
    return kind.__name__ if usual or not name else f"{kind.__name__} ({name!r})"


# -- steps of scikit-learn that may be given single rows -------------------------------------------


def follows_from_rows(step: Any) -> bool:
    """True if a step of scikit-learn is a function of a row and of parameters alone."""
    kind = type(step)
    if kind.__module__.startswith("sklearn.feature_extraction."):  # not loaded for others
        return kind.__name__ in _OF_TEXTS and _OF_TEXTS[kind.__name__](step)
    return kind in _KNOWN and _KNOWN[kind](step)


def _is_function_known(step: FunctionTransformer) -> bool:
    function, kept = step.func, {*(step.kw_args or ())} & _KEPT
    if isinstance(function, np.ufunc):
        return function.types[0] != "O->O" and not kept  # one that was made of a Python function
    return function is None or (not kept and any(function is each for each in _ELEMENTWISE))


def _hashes_texts(step: Any) -> bool:
    """By its own code alone, and no names of files."""
    code = step.preprocessor, step.tokenizer, step.analyzer
    return step.input == "content" and not any(map(callable, code))


_OF_TEXTS: dict[str, Callable[[Any], bool]] = {
    "HashingVectorizer": _hashes_texts,
    "FeatureHasher": lambda step: step.input_type == "dict",
}
# Of a projection, the number of components may follow from n.
_KNOWN: dict[type, Callable[[Any], bool]] = {
    FunctionTransformer: _is_function_known,
    **dict.fromkeys(_PROJECTIONS, lambda step: is_integer(step.n_components)),
    **dict.fromkeys((Binarizer, Normalizer, PolynomialFeatures), lambda step: True),
}
