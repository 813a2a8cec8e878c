"""Releases carry their guarantee: the report of all that they come from, and the ledger.

A fit adds its report to that of what it goes on from. A part of a fit (the best estimator of a
search, the estimator of a segment) has the report of the whole, and its ledger. Parameters may hide
estimators and ledgers, at any depth.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from textwrap import shorten
from typing import Any, Literal, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from ._costs.budget import PrivacyBudget
from ._costs.checks import warn
from ._costs.disjoint import check_one_value
from ._costs.plan import PrivacyPlan
from ._costs.report import PrivacyReport, total_of, without_guarantee, worst_of
from ._privacy._ledger import DisjointLedgers, PrivacyLedger, identity, open_ledger
from ._status import Status
from ._steps import PrivateStep, problem_of, problems_around, steps_of
from .exceptions import LedgerError, UtilityWarning


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
    lines = {"Estimator": _in_words(estimator)}
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


def _in_words(estimator: Any) -> str:
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
