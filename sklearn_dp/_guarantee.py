"""The guarantee in words, and the steps of pipelines that it is about.

Releases carry the report of all that they come from, and the ledger. A fit adds its report to that
of what it goes on from. A part of a fit (the best estimator of a search, the estimator of a
segment) has the report of the whole, and its ledger. Parameters may hide estimators and ledgers, at
any depth.

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

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import replace
from functools import cache, partial
from textwrap import shorten
from typing import Any, Literal, Self, cast
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
from sklearn.utils.validation import check_is_fitted

from ._columns import check_numbers
from ._costs.budget import PrivacyBudget
from ._costs.numbers import check_one_value, is_integer, warn
from ._costs.plan import PrivacyPlan
from ._costs.report import PrivacyReport, total_of, without_guarantee, worst_of
from ._door import check_vector, column, numbers, schema, see_columns
from ._privacy._ledger import DisjointLedgers, PrivacyLedger, identity, open_ledger
from ._rows.single_rows import finite, products, row_guard, saturated
from ._silence import attempt, own_streams, suppress_output
from ._sklearn_compat import Versioned, fits_around
from ._status import Status
from .exceptions import LedgerError, UtilityWarning

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


# -- steps -----------------------------------------------------------------------------------------


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


# -- the report of a fit ---------------------------------------------------------------------------


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


class Guaranteed(PrivateStep):
    """Base class of what is fitted within a session: the status and the report of its releases."""

    ledger: Any
    rho: float | None
    delta: float
    privacy_plan: Callable[..., PrivacyPlan]
    _check_shared: Callable[[], PrivacyBudget]
    _provenance: PrivacyReport | None = None
    messages_: Status
    _place: tuple[int, ...] = ()  # among the parts of what it came out of, which share no days

    @property
    def privacy_report_(self) -> PrivacyReport:
        """The guarantee of all that this object shows, and every release behind it."""
        if self._provenance is None:
            raise AttributeError(
                f"{type(self).__name__} has no attribute 'privacy_report_' before a fit"
            )
        return self._provenance

    @property
    def status_(self) -> Literal["ok", "caution", "unusable"]:
        """The worth of the answer in one word; see `messages_`."""
        check_is_fitted(self)
        return self.messages_.word

    @property
    def trustworthy_(self) -> bool:
        """True if the answer can be used, within what `messages_` says."""
        check_is_fitted(self)
        return self.messages_.trustworthy

    def _warn(self) -> None:
        """Warn unless the answer is trustworthy."""
        if not self.messages_.trustworthy:
            words = Status(each for each in self.messages_ if each.severity != "note")
            warn(f"{type(self).__name__}: {words}", UtilityWarning)

    # scikit-learn's check looks for any attribute with a trailing underscore, and validation has
    # set `n_features_in_` by the time a fit can fail.
    def __sklearn_is_fitted__(self) -> bool:
        """True if a fit has come to its end: names and numbers of features are set before."""
        return self._provenance is not None

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        """Names of parameters, which are looked up once, not for each clone and display."""
        return super()._get_param_names()  # type: ignore[misc]

    def _unit(self, grouped: bool) -> str:
        """The unit of a fit, with groups or without."""
        return "group" if grouped else "row"

    def _relation(self, unit: str) -> str:
        """Return how neighbors of a fit differ in a unit: one of `RELATIONS`."""
        return "add or remove"

    def _get_fitted_attr_html(self, doc_link: str = "") -> Any:
        """Leave out the report: in a pipeline, those of steps say nothing of the whole."""
        attributes = super()._get_fitted_attr_html(doc_link)  # type: ignore[misc]
        attributes.pop("privacy_report_", None)
        return attributes

    def _released_parts(self) -> Iterable[tuple[tuple[int, ...], "Guaranteed"]]:
        """Released parts of a fit that may be used alone, each with its place among those apart."""
        return ()

    def _add_report(self, made: PrivacyReport) -> None:
        """Add the report of a fit that has come to its end to that of the days before it."""
        for problem in problems_around():
            made = without_guarantee(made, problem)
        before = self._provenance
        self._provenance = made if before is None else worst_of(before, made)
        self._hand_on()

    def _hand_on(self) -> None:
        """Give released parts the report of the whole, its ledger, and a place."""
        for place, part in self._released_parts():
            part._provenance, part.ledger = self._provenance, self.ledger
            part._place = self._place + place
            part._hand_on()

    def _payer(self, ledger: Any = None) -> Any:
        """The ledger of a release from new rows: the one that is given, or that of this object."""
        ledger = self.ledger if ledger is None else ledger
        if ledger is None and self._provenance is not None and self._provenance.paid_by:
            raise ValueError(
                "ledger must be given, because the fit before was charged to one. Pass that ledger "
                "or another one, or ledger=False for rows that no ledger keeps account of."
            )
        return ledger


def check_no_ledger(estimator: Any, name: str) -> None:
    """Refuse an estimator for blocks that could charge a ledger: that would depend on all rows."""
    ledger = next(ledgers_inside(estimator), None)
    if ledger is not None:
        raise ValueError(
            f"{name} must not have a ledger (its parameter {ledger[0]}): it is fitted to every "
            "block of rows. Only the estimator around it is charged: pass the ledger there."
        )


def check_values(estimator: Any) -> None:
    """Refuse ledgers of two values of a key, wherever in an estimator they hide."""
    ledgers = (
        book for _, book in ledgers_inside(estimator) if not isinstance(book, DisjointLedgers)
    )
    books = [book for each in ledgers if (book := open_ledger(each)) is not None]
    check_one_value([(identity(book), book.payers) for book in books])


def ledgers_inside(estimator: Any) -> Iterator[tuple[str, Any]]:
    """Pairs (name, ledger) of all ledgers in the parameters of an estimator, at any depth."""
    for name, value in values_inside(estimator):
        path = name.endswith("ledger") and isinstance(value, str | os.PathLike)
        if path or isinstance(value, PrivacyLedger | DisjointLedgers):
            yield name, value


def values_inside(
    value: Any, name: str = "", around: frozenset[int] = frozenset()
) -> Iterator[tuple[str, Any]]:
    """Pairs (name, value) of all parameters of an estimator, and of values inside them."""
    if id(value) not in around:
        for key, each in _contents(value, name):
            yield key, each
            yield from values_inside(each, key, around | {id(value)})


def _contents(value: Any, name: str) -> Iterable[tuple[str, Any]]:
    """Return the contents of an estimator, a container or an object of options."""
    if isinstance(value, type | str | bytes):
        return ()
    if isinstance(value, Mapping):
        return ((str(key), each) for key, each in value.items())
    if isinstance(value, list | tuple | set | frozenset):
        return ((name, each) for each in value)
    if isinstance(value, np.ndarray):
        return ((name, each) for each in (value.flat if value.dtype == object else ()))
    if isinstance(value, partial):
        return (("func", value.func), (name, value.args), (name, value.keywords))
    if hasattr(value, "__self__"):  # a method
        return ((name, value.__self__),)
    if hasattr(value, "get_params"):
        return value.get_params(deep=False).items()
    return ((key, getattr(value, key)) for key in getattr(value, "__dataclass_fields__", ()))


# -- pipeline report -------------------------------------------------------------------------------


def privacy_report(estimator: BaseEstimator) -> PrivacyReport:
    """The guarantee of a fitted pipeline as a whole, and every release of its steps.

    Parameters
    ----------
    estimator : estimator
        Fitted: a ``Pipeline``, ``FeatureUnion`` or ``ColumnTransformer`` with private steps, such
        as :func:`privatize` makes, or a private estimator or search.

    Returns
    -------
    report : PrivacyReport
        The report of one fit. The name of each release is preceded by that of its step. Where there
        is no guarantee, its headline says so and why, and its epsilon is infinite.

    Raises
    ------
    ValueError
        If no step is private, or if steps protect different units or from different neighbors.
    TypeError
        If it is not an estimator.
    LedgerError
        If steps were charged to two values of a key.
    NotFittedError
        If a private step has not been fitted.

    Notes
    -----
    If budgets are in rho, as when `privatize` divides an epsilon, costs add up in zCDP, and the
    total is the requested epsilon. Otherwise epsilons and deltas add up. Every step must be known:
    private, a search of this package, :class:`PublicScaler` or :class:`PublicEncoder`. Any other
    step may have learned from the rows, or mixed them, and then nothing is guaranteed of the whole.
    This includes scikit-learn's steps without a state, such as ``Normalizer``, which read all rows
    at once; :func:`privatize` makes a pipeline that gives them single rows. It includes ensembles,
    which choose the rows of what they fit. A ``ColumnTransformer`` that `privatize` has not made
    needs ``sparse_threshold=0``, unless each block is always dense, since the density of all rows
    decides otherwise, and a ``FeatureUnion`` must have no "passthrough". Where all steps were
    charged to the units of one value (:meth:`PrivacyLedger.disjoint`), `payers` names them.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.cluster import KMeans
    >>> from sklearn.decomposition import PCA
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn_dp import privacy_report, privatize
    >>> X = np.random.default_rng(0).normal(size=(2000, 4))
    >>> pipeline = privatize(make_pipeline(PCA(2), KMeans(1)), epsilon=1.0).fit(X)
    >>> privacy_report(pipeline).headline.split(" when ")[0]
    '(1, 1e-06)-DP'
    """
    if not hasattr(estimator, "fit"):
        raise TypeError("estimator must be one fitted estimator; a ledger adds up several fits.")
    reports = list(_reports(estimator, ""))
    inside = (each for _, each in values_inside(estimator))
    if not reports and not any(isinstance(each, Guaranteed) for each in inside):
        raise ValueError("estimator: no step of it is private.")
    problem, whole = problem_of(estimator, fitted=True), total_of(reports) if reports else _NOTHING
    whole = without_guarantee(whole, problem) if problem else whole
    return replace(whole, subject=_subject(estimator))


def _subject(estimator: Any) -> dict[str, str]:
    """Return estimators, parameters of those of this package, and their status, for a report."""
    lines = {"Estimator": _guarantee_in_words(estimator)}
    for name, step in _steps(estimator, ""):
        is_private = isinstance(step, Guaranteed) or vars(type(step)).get("_learns_nothing")
        # Of others, nobody knows what their parameters show.
        words = _parameters(step) if is_private else "not shown: the step is not of this package"
        lines[f"Step {name!r}: {type(step).__name__}" if name else "Parameters"] = words
        if hasattr(step, "messages_"):
            words = "; ".join([step.status_, *map(str, step.messages_)])
            lines[f"Status of {name!r}" if name else "Status"] = words
    for _, ledger in ledgers_inside(estimator):
        if not isinstance(ledger, DisjointLedgers):
            path = getattr(ledger, "path", ledger)
            lines[f"Ledger {os.path.abspath(path) if path else 'in memory'}"] = _left(ledger)
    return lines


def _left(ledger: Any) -> str:
    """Say how much a ledger has left, if it is still there."""
    try:
        book = cast(PrivacyLedger, open_ledger(ledger))
        words = ", ".join(f"{cost} {left:.4g}" for cost, left in book.remaining.items())
    except LedgerError:
        return "could not be read when the page was written"
    return f"left when the page was written: {words}"


def _steps(estimator: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Names and estimators of a composition, or of a single one."""
    inner = steps_of(estimator, fitted=True)
    if inner is None:
        yield name, estimator
    for label, step in inner or ():
        if step is not None and not isinstance(step, str):
            yield from _steps(step, f"{name}__{label}" if name else label)


def _guarantee_in_words(estimator: Any) -> str:
    kind = type(estimator)
    return f"{kind.__name__} ({kind.__module__.partition('.')[0]})"


def _parameters(step: Any) -> str:
    """Names and values, which are public; long ones are cut. The ledger has a line of its own."""
    with np.printoptions(threshold=20, edgeitems=3):
        pairs = [
            f"{name}={shorten(repr(value), _LONGEST, placeholder=' ... (cut)')}"
            for name, value in step.get_params(deep=False).items()
            if name not in ("ledger", "random_state")
        ]
    return ", ".join(pairs)


_LONGEST = 2000  # characters of a value
_NOTHING = PrivacyReport(
    epsilon=0.0, delta=0.0, rho=0.0, spent_rho=0.0, accounting="", unit="row", noise="system",
    releases=(),
)  # fmt: skip


def _reports(estimator: Any, name: str) -> Iterator[tuple[str, PrivacyReport]]:
    """Names and reports of all private steps of a composition, and of searches in it."""
    if isinstance(estimator, Guaranteed):
        check_is_fitted(estimator)
        yield name, estimator.privacy_report_
    elif isinstance(estimator, FrozenEstimator):
        yield from _reports(estimator.estimator, name)
    for label, step in steps_of(estimator, fitted=True) or ():
        yield from _reports(step, f"{name}__{label}" if name else label)
