"""What is released has its guarantee with it: the report of all that it comes from, and the ledger.

* **The report** is a record that nothing changes (:mod:`._privacy._report`). `privacy_report_`
  cannot be set; a fit adds its own (:mod:`._privacy._provenance`), and only a new fit, whose result
  owes nothing to the old one, begins anew.
* **What comes out of a fit as a part of it** (the best estimator of a search, the estimator of a
  segment) has the report of the whole, and its ledger: whatever it spends later is charged there.
* **What hides in a parameter**, at any depth: estimators, and ledgers.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from ._privacy._budget import PrivacyBudget
from ._privacy._ledger import DisjointLedgers, PrivacyLedger
from ._privacy._plan import PrivacyPlan
from ._privacy._provenance import without_guarantee, worst_of
from ._privacy._report import PrivacyReport
from ._steps import PrivateStep, problems_around

__all__ = ["Guaranteed", "check_no_ledger", "ledgers_inside", "values_inside"]


class Guaranteed(PrivateStep):
    """Base class of what has been fitted within a session, and shows what it released."""

    ledger: Any
    rho: float | None
    delta: float
    privacy_plan: Callable[..., PrivacyPlan]
    _check_shared: Callable[[], PrivacyBudget]
    _provenance: PrivacyReport | None = None
    _place: tuple[int, ...] = ()  # among the parts of what it came out of, which share no days

    @property
    def privacy_report_(self) -> PrivacyReport:
        """The guarantee of all that this object shows, and every release behind it."""
        if self._provenance is None:
            raise AttributeError(
                f"{type(self).__name__} has no attribute 'privacy_report_' before a fit"
            )
        return self._provenance

    # scikit-learn's check looks for any attribute with a trailing underscore, and validation has
    # set `n_features_in_` by the time a fit can fail.
    def __sklearn_is_fitted__(self) -> bool:
        """Whether a fit has come to its end: names and numbers of features are set before."""
        return self._provenance is not None

    def _unit(self, grouped: bool) -> str:
        """The unit of a fit, which is told which rows are of one group or is not."""
        return "group" if grouped else "row"

    def _relation(self, unit: str) -> str:
        """What the neighbors of a fit do with a unit: one of `RELATIONS` of `_neighbors`."""
        return "add or remove"

    def _get_fitted_attr_html(self, doc_link: str = "") -> Any:
        """Without the report: the display of a pipeline shows those of its steps, of which none
        says anything of the whole."""
        attributes = super()._get_fitted_attr_html(doc_link)  # type: ignore[misc]
        attributes.pop("privacy_report_", None)
        return attributes

    def _released_parts(self) -> Iterable[tuple[tuple[int, ...], "Guaranteed"]]:
        """What a fit has released that may go its own way: it takes report and ledger along.

        Each with its place: none for what reads the rows of the whole.
        """
        return ()

    def _add_report(self, made: PrivacyReport) -> None:
        """The report of a fit that has come to its end, beside that of the days before it.

        It says for ever what stood before this step, or chose its parameters: also where the step
        is taken out of its pipeline, or others are put in front of it.
        """
        for problem in problems_around():
            made = without_guarantee(made, problem)
        before = self._provenance
        self._provenance = made if before is None else worst_of(before, made)
        self._hand_on()

    def _hand_on(self) -> None:
        """Give what was released as a part the report of the whole, its ledger, and a place."""
        for place, part in self._released_parts():
            part._provenance, part.ledger = self._provenance, self.ledger
            part._place = self._place + place
            part._hand_on()

    def _payer(self, ledger: Any = None) -> Any:
        """The ledger of a release from new rows: the one that is given, or that of this object.

        None where there has never been one. What a ledger has paid for does not spend without one,
        unless ``ledger=False`` says so.
        """
        ledger = self.ledger if ledger is None else ledger
        if ledger is None and self._provenance is not None and self._provenance.paid_by:
            raise ValueError(
                "ledger must be given, because the fit before was charged to one. Pass that ledger "
                "or another one, or ledger=False for rows that no ledger keeps account of."
            )
        return ledger


def check_no_ledger(estimator: Any, name: str) -> None:
    """Refuse an estimator for blocks of rows that could charge a ledger.

    How many blocks are fitted, and which of them a ledger still pays for, would depend on all rows.
    """
    found = next(ledgers_inside(estimator), None)
    if found is not None:
        raise ValueError(
            f"{name} must not have a ledger (its parameter {found[0]}): it is fitted to every "
            "block of rows. Only the estimator around it is charged: pass the ledger there."
        )


def ledgers_inside(estimator: Any) -> Iterator[tuple[str, Any]]:
    """Pairs (name, ledger) of all ledgers that the parameters of an estimator hold, at any depth:
    objects anywhere, and paths where a parameter, or a key of a grid, is called ledger."""
    for name, value in values_inside(estimator):
        path = name.endswith("ledger") and isinstance(value, str | os.PathLike)
        if path or isinstance(value, PrivacyLedger | DisjointLedgers):
            yield name, value


def values_inside(
    value: Any, name: str = "", around: frozenset[int] = frozenset()
) -> Iterator[tuple[str, Any]]:
    """Pairs (name, value) of all parameters of an estimator, and of what these hold in turn.

    `around` are the values that this one is in.
    """
    if id(value) not in around:
        for key, each in _contents(value, name):
            yield key, each
            yield from values_inside(each, key, around | {id(value)})


def _contents(value: Any, name: str) -> Iterable[tuple[str, Any]]:
    """What an estimator, a container (a grid of a search) or an object of options holds."""
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
