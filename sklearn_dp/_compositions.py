"""Pipelines and other compositions, and the dry run that finds public mistakes before the charge.

Our pipelines, unions and tables of columns have the parameters and methods of scikit-learn's
classes, but:

* Before a fit all that is public is checked, and the ledger is charged for all private steps at
  once: see :mod:`sklearn_dp._privacy._ledger` for the proof.
* Steps are fitted in one thread: others would not know that they are paid for.
* Nothing but the steps looks at the rows: a table of columns decides by the steps alone whether its
  output is sparse. So compositions of scikit-learn's in one of ours become ours.

**The dry run.** What is public and wrong is found before the charge. The composition itself makes
the fit, without rows. A private step is fitted up to the point where it would open its session;
others are asked by type, and by a row of zeros, what they make of such columns. Where only a
release tells how many columns come out, as of `DPOneHotEncoder`, the steps behind are refused if
they are wrong for every number.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, field
from html import escape
from typing import Any, NoReturn, Self, cast

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import estimator_html_repr, get_tags
from sklearn.utils.metaestimators import available_if

from ._base import fits_inside
from ._columns import NUMBERS, check_numbers
from ._costs.accounting import zcdp_epsilon
from ._costs.budget import PrivacyBudget
from ._costs.numbers import is_integer, is_real, sum_up
from ._costs.plan import PrivacyPlan
from ._door import schema
from ._door_entries import is_vector, listed_rows, without_rows
from ._guarantee import (
    Guaranteed,
    PrivateStep,
    SingleRows,
    check_values,
    privacy_report,
    problem_of,
    steps_of,
)
from ._parameters import names_in
from ._partitions import engine_of, in_parts
from ._privacy._entries import dtype_of, kind_of
from ._privacy._ledger import PrepaidFit, open_ledger, paid_together
from ._rows.threads import in_this_thread
from ._silence import suppress_output
from ._sklearn_compat import BlindToRows, Stacked, Versioned, without_callbacks
from .exceptions import LedgerError

_MOST = 512  # columns that are tried where their number is a release
_TYPES = {"text": "U1", "date": "M8[s]", "complex": complex, "bytes": "S1"}


# -- the dry run -----------------------------------------------------------------------------------


class _Planned(Exception):
    """A step has come to its charge."""


@dataclass
class _Run:
    """State of a dry run: the plans that were made, and whether later steps get names."""

    names: bool
    plans: list[PrivacyPlan] = field(default_factory=list)

    def stop(self, plan: PrivacyPlan) -> NoReturn:
        """In the place of a session."""
        self.plans.append(plan)
        raise _Planned


_RUN: ContextVar[_Run] = ContextVar("sklearn_dp_dry_run")


class _Blank(np.ndarray):
    """A table without rows. `sparse`: it stands for a sparse one; `made`: it comes from a step;
    `sure`: the number of its columns is public."""

    sparse, made, sure = False, False, True

    @classmethod
    def of(cls, width: int, dtype: Any = np.float64, **said: bool) -> Self:
        blank = np.empty((0, width), dtype=dtype).view(cls)
        vars(blank).update(said)
        return blank

    def __array_finalize__(self, other: Any) -> None:
        vars(self).update(getattr(other, "__dict__", {}))

    def table(self, width: int) -> Any:
        """Return a table for a step."""
        if self.sparse:
            return csr_array((0, width), dtype=self.dtype)
        return np.empty((0, width), dtype=self.dtype)


def dry_run(composition: Any, method: str, X: Any, y: Any, params: dict[str, Any]) -> bool:
    """Raise the errors of a fit that do not depend on values; True if its steps protect groups."""
    every = list(_all_steps(composition))
    named = any(vars(step).get("_sklearn_output_config") for step in every)
    run = _Run(named or get_config()["transform_output"] != "default")
    token = _RUN.set(run)
    try:
        with suppress_output(), in_this_thread(), config_context(transform_output="default"):
            getattr(_with_stand_ins(composition), method)(_blank(X), y, **params)
    finally:
        _RUN.reset(token)
    if len({(plan.unit, plan.relation) for plan in run.plans}) > 1:
        raise ValueError(
            "groups must be given to all private steps or to none: they would protect different "
            "units, and there would be no guarantee of the whole."
        )
    return any(plan.unit == "group" for plan in run.plans)


def _all_steps(step: Any) -> Iterator[Any]:
    if hasattr(step, "__dict__"):
        yield step
    for _, inner in steps_of(step) or ():
        yield from _all_steps(inner)


def _blank(X: Any) -> Any:
    """A table of the same type without rows; one in parts as it is, which nobody reads."""
    if is_vector(X):
        return np.empty(0, dtype=_TYPES.get(kind_of(dtype_of(X)), object))
    if in_parts(X):
        return X
    given = schema(X)
    if given.labels is not None:
        return without_rows(X)
    return _Blank.of(given.n_features, _dtype(given.kinds, given.dtype), sparse=given.sparse)


def _dtype(kinds: Sequence[str], dtype: Any = np.float64) -> Any:
    """The type that stands for columns: that of numbers only if all of them are."""
    other = next((kind for kind in kinds if kind not in NUMBERS), "object")
    return dtype if {*kinds} == {"number"} else _TYPES.get(other, object)


class _Side(Stacked):
    """Mixin of a composition whose blocks stand side by side, without rows."""

    sparse_threshold = 1.0

    def _stacked(self, blocks: Sequence[Any]) -> Any:
        given = [schema(block) for block in blocks]
        sparse = any(getattr(block, "sparse", False) for block in blocks)
        return _Blank.of(
            sum(each.n_features for each in given),
            _dtype([kind for each in given for kind in each.kinds]),
            sparse=sparse and self.sparse_threshold > 0,
            made=True,
            sure=all(getattr(block, "sure", True) for block in blocks),
        )


class _Union(_Side, FeatureUnion):
    pass


class _Columns(_Side, BlindToRows, ColumnTransformer):
    pass


_PLANNED: dict[type, type] = {Pipeline: Pipeline, FeatureUnion: _Union, ColumnTransformer: _Columns}


def _with_stand_ins(step: Any) -> Any:
    """A composition of the same structure, whose steps are stand-ins."""
    kind = next((kind for kind in (type(step), *type(step).__bases__) if kind in _PLANNED), None)
    if step is None or isinstance(step, str):
        return step
    if kind is None or not (kind is type(step) or "_of_ours" in vars(type(step))):
        return _StandIn(step)
    params = step.get_params(deep=False)
    for name in {"steps", "transformer_list", "transformers"} & {*params}:
        params[name] = [(own, _with_stand_ins(part), *of) for own, part, *of in params[name]]
    changed = {"remainder": _with_stand_ins(params.get("remainder")), "memory": None}
    params |= {name: changed[name] for name in changed.keys() & params.keys()}
    return _PLANNED[kind](**params)


class _StandIn(BaseEstimator):
    """In the place of a step: it is planned, and nothing is fitted."""

    def __init__(self, step: Any) -> None:
        self.step = step

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        self._out: Any = None
        sure = getattr(X, "sure", True)
        width = _width(X)
        for each in (width,) if sure else range(1, _MOST + 1):
            try:
                self._out = self._planned(X, each, y, params)
                break
            except (TypeError, ValueError):
                if sure or each == _MOST:
                    raise
        if not sure:
            self._out.sure = False
        return self

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        return self.fit(X, y, **params)._out

    def fit_predict(self, X: Any, y: Any = None, **params: Any) -> Any:
        return self.fit(X, y, **params)

    @available_if(lambda self: hasattr(self.step, "transform"))
    def transform(self, X: Any) -> Any:
        return self._out

    def get_metadata_routing(self) -> Any:
        return self.step.get_metadata_routing()

    def __sklearn_tags__(self) -> Any:
        return get_tags(self.step)

    def _planned(self, X: Any, width: int, y: Any, params: dict[str, Any]) -> Any:
        """Plan the step for so many columns, and tell what comes out of it."""
        table = X.table(width) if isinstance(X, _Blank) else X
        if isinstance(self.step, PrivateStep):
            twin = without_callbacks(clone(self.step))
            self._check_names(X, twin)
            try:
                with fits_inside(twin, _RUN.get().stop):
                    twin.fit(table, y, **params)
            except _Planned:
                pass
            kept = isinstance(twin, OneToOneFeatureMixin) and issparse(table)
            return _blank_of(_columns_of(twin, width), width, sparse=kept)
        if getattr(self.step, "_learns_nothing", False):
            return self._of_public(clone(self.step), table, width)
        if hasattr(self.step, "fit"):  # its tags are all that is known
            tags = get_tags(self.step)
            reads_texts = tags.input_tags.string or tags.input_tags.categorical
            if not (tags.no_validation or reads_texts or not tags.input_tags.two_d_array):
                check_numbers(schema(table), sparse=tags.input_tags.sparse)
        return _blank_of(None, width)

    def _of_public(self, twin: Any, table: Any, width: int) -> Any:
        if isinstance(twin, SingleRows):
            blank = twin.fit(table)._blank
            return _blank_of(blank.shape[1], width, sparse=issparse(blank))
        if hasattr(twin, "_check_given"):
            twin._check_given(table)
            if isinstance(twin, OneToOneFeatureMixin):
                return _blank_of(width, width)
            table = np.zeros((1, width))
        return _blank_of(len(twin.fit(table).get_feature_names_out()), width)

    def _check_names(self, X: Any, twin: Any) -> None:
        """Refuse names for columns that have none, as those that an earlier step has made."""
        if not getattr(X, "made", False):
            return
        for parameter in getattr(self.step, "_by_column", ()):
            names = names_in(getattr(self.step, parameter, None))
            if names and _RUN.get().names:
                twin._names_of_search = names
            elif names:
                raise ValueError(
                    f"{parameter} must not name columns here: those of this step come from one "
                    "before it, and have no names. Give arrays in their order."
                )


def _width(X: Any) -> int:
    """Number of columns, by type alone."""
    if isinstance(X, np.ndarray):
        return 1 if X.ndim == 1 else int(schema(X).n_features)
    engine = engine_of(X)
    return int(schema(X).n_features if engine is None else engine.n_features)


def _blank_of(made: int | None, width: int, *, sparse: bool = False) -> _Blank:
    columns = width if made is None else made
    return _Blank.of(columns, sparse=sparse, made=True, sure=made is not None)


def _columns_of(step: Any, width: int) -> int | None:
    """How many columns a private step makes; None if only a release tells."""
    for name in ("n_components", "n_clusters"):
        if hasattr(step, name):
            value = getattr(step, name)
            return int(value) if is_integer(value) else width if value is None else None
    return width if isinstance(step, OneToOneFeatureMixin) else None


# -- compositions ----------------------------------------------------------------------------------


def private_steps(estimator: BaseEstimator, *, fitted: bool = False) -> Iterator[Guaranteed]:
    """Private steps of all that a composition is made of, or of all that it has fitted."""
    if isinstance(estimator, Guaranteed):
        yield estimator
    for _, step in steps_of(estimator, fitted=fitted) or ():
        yield from private_steps(step, fitted=fitted)


def parts_of(steps: Iterable[Guaranteed], width: int, grouped: bool) -> list[PrepaidFit]:
    """The costs of the steps of one fit that have a ledger and a budget in rho: (rho, delta)-zCDP,
    whatever their number of columns. Others are charged one by one."""
    parts = []
    for step in steps:
        book, unit = open_ledger(step.ledger), step._unit(grouped)
        if book is None or not (is_real(step.rho) and is_real(step.delta)):
            continue
        try:  # if the plan of the fit turns out to be another one, it pays by itself
            plan = step.privacy_plan(width, unit=unit)
            gaussian = plan.gaussian and not plan.delta_failure
        except (TypeError, ValueError):  # of this number of columns, or in the fit too
            gaussian = False
        cost = float(cast(float, step.rho)), float(step.delta), gaussian
        parts.append(PrepaidFit(book, type(step).__name__, *cost, unit, step._relation(unit)))
    return parts


def _together(steps: list[Guaranteed]) -> PrivacyBudget | None:
    """The budget of several steps whose own are in rho: it is (rho, delta)-zCDP."""
    if len(steps) < 2 or not all(is_real(step.rho) and is_real(step.delta) for step in steps):
        return None
    rho, delta = (sum_up([getattr(step, cost) for step in steps]) for cost in ("rho", "delta"))
    return PrivacyBudget(rho=rho, delta=delta) if 0 < delta < 0.5 and rho > 0 else None


def owned(estimator: Any) -> Any:
    """A composition that is ours, with all compositions inside it; its steps are shared."""
    steps = steps_of(estimator)
    if steps is None or type(estimator) not in {*COMPOSED, *COMPOSED.values()}:
        return estimator
    changed = {name: copied for name, step in steps if (copied := owned(step)) is not step}
    if type(estimator) in COMPOSED:
        estimator = copy(estimator)  # with all that scikit-learn keeps in it, as `set_output` does
        estimator.__class__ = COMPOSED[type(estimator)]
    return estimator.set_params(**changed)


class ChargedTogether(Versioned):
    """Mixin of compositions of scikit-learn: one charge for all private steps of a fit."""

    @contextmanager
    def _paid(self, method: str, X: Any, y: Any, params: dict[str, Any]) -> Iterator[None]:
        """Check and charge all private steps, then let the block fit them."""
        check_values(self)
        steps = list(private_steps(owned(self)))
        for step in steps:  # what is wrong with them in any case is said before the charge
            step._check_shared()
        width = 1 if is_vector(X) else schema(X).n_features
        parts = parts_of(steps, width, dry_run(self, method, X, y, params))
        # A pipeline starts no tasks, and its steps may use threads of their own.
        with (
            nullcontext() if isinstance(self, Pipeline) else in_this_thread(),
            paid_together(parts, _together(steps)),
        ):
            yield

    def fit(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Charge all private steps at once, and fit; see scikit-learn's class."""
        with self._paid("fit", X, y, params):
            return super().fit(listed_rows(X), y, **params)  # type: ignore[misc]

    @available_if(lambda self: hasattr(super(), "fit_transform"))
    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Charge all private steps at once, fit and transform; see scikit-learn's class."""
        with self._paid("fit_transform", X, y, params):
            return super().fit_transform(listed_rows(X), y, **params)  # type: ignore[misc]

    @available_if(lambda self: hasattr(super(), "fit_predict"))
    def fit_predict(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Charge all private steps at once, fit and predict; see scikit-learn's class."""
        with self._paid("fit_predict", X, y, params):
            return super().fit_predict(listed_rows(X), y, **params)  # type: ignore[misc]

    def _in_words(self) -> str:
        """The guarantee of what has been fitted, or else the cost of a fit, if it is known."""
        fitted = list(private_steps(self, fitted=True))
        if fitted and all(step._provenance is not None for step in fitted):
            try:
                return privacy_report(self).headline
            except (LedgerError, ValueError) as error:  # of parts that do not add up
                why = str(error).removeprefix("there is no guarantee of the whole: ")
                return f"no guarantee: {why}"
        problem, steps = problem_of(self, fitted=False), list(private_steps(self))
        whole = None if problem else _together(steps)
        if whole is None or len({step._relation("row") for step in steps}) > 1:
            return problem and f"no guarantee: {problem}"
        epsilon, delta = zcdp_epsilon(cast(float, whole.rho), whole.delta), 2 * whole.delta
        words = f"a fit would cost ({epsilon:.6g}, {delta:.3g})-DP, all steps together"
        if any(getattr(step, "random_state", None) is not None for step in steps):
            words += "; random_state is set: no guarantee against anyone who knows it"
        return words

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text, words = super().__repr__(N_CHAR_MAX), self._in_words()  # type: ignore[call-arg]
        return f"{text}\n# {words}" if words else text

    def _html_repr(self) -> str:
        words = self._in_words()
        color = ' style="color:#b00020"' if words.startswith("no") else ""
        page, end, rest = estimator_html_repr(self).rpartition("</body>")
        return f"{page}<p{color}>{escape(words)}</p>{end}{rest}" if words else f"{page}{end}{rest}"


class PrivatePipeline(ChargedTogether, Pipeline):
    """A pipeline whose private steps are charged together."""

    _of_ours = True


class PrivateFeatureUnion(ChargedTogether, FeatureUnion):
    """A union whose private parts are charged together."""

    _of_ours = True


class PrivateColumnTransformer(ChargedTogether, BlindToRows, ColumnTransformer):
    """A transformer of columns whose private parts are charged together; sparse if a step is."""

    _of_ours = True


COMPOSED: dict[type, type] = {
    Pipeline: PrivatePipeline,
    FeatureUnion: PrivateFeatureUnion,
    ColumnTransformer: PrivateColumnTransformer,
}
"""The composition of ours for one of scikit-learn."""
