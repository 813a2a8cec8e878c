"""The fit of a composition up to its charge: all that is public and wrong is found before.

The composition itself makes the fit, without rows. A private step is fitted up to the point where
it would open its session; others are asked by type, and by a row of zeros, what they make of such
columns. Where only a release tells how many columns come out, as of `DPOneHotEncoder`, the steps
behind are refused if they are wrong for every number.
"""

from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NoReturn, Self

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if

from ._base import fits_inside
from ._by_name import names_in
from ._columns import NUMBERS, check_numbers
from ._costs.checks import is_integer
from ._costs.plan import PrivacyPlan
from ._door import schema
from ._door_entries import is_vector, without_rows
from ._partitions import engine_of, in_parts
from ._privacy._entries import dtype_of, kind_of
from ._rows.threads import in_this_thread
from ._silence.suppress_output import suppress_output
from ._sklearn_compat import BlindToRows, Stacked, without_callbacks
from ._steps import PrivateStep, SingleRows, steps_of

_MOST = 512  # columns that are tried where their number is a release
_TYPES = {"text": "U1", "date": "M8[s]", "complex": complex, "bytes": "S1"}


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
