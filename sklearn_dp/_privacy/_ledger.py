"""The privacy budget that all fits on one data set share: its public face.

See `ledger_terms` for the rules and their proofs, `_ledger_store` for where charges are kept.

*Fits that are paid for together*, before the first of them: the steps of a pipeline. Each has a
part of the payment, (rho, delta), which is fixed before any row is read. A fit may take a part of
its own label that covers its cost, in all that a ledger counts, and each part is taken once. So all
fits together are (sum of rho, sum of delta)-zCDP, whatever the later ones do with what the earlier
ones have released: see the proof for zCDP in :mod:`.._costs.ledger_terms`, where
budgets may even be chosen on the way. That sum is what the ledger is charged. A fit that no part
covers is charged by itself.

Such a fit may come between two of them, and its budget may follow from what the first one has
released. Costs in (rho, delta) add up in any order. Those in (epsilon, delta) do too: the fits that
are paid for together are one interactive mechanism, and every privacy filter for (epsilon, delta)
holds for interactive mechanisms that are asked by turns, with budgets that follow from the answers
(S. Haney, M. Shoemate, G. Tian, S. Vadhan, A. Vyrros, V. Xu and W. Zhang, "Concurrent composition
for interactive differential privacy with adaptive privacy-loss parameters", CCS 2023,
arXiv:2309.05901).

Nothing is given back, also where a fit fails or is never reached: that may be because of the rows.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from html import escape
from threading import Lock
from typing import Any, cast

from .._costs import accounting
from .._costs.budget import PrivacyBudget
from .._costs.ledger_terms import LedgerCharge, LedgerState, LedgerTerms, events_of, log_charge
from .._costs.numbers import EVERYONE, Payers, agreed_values, payers_in_words, sum_up
from .._costs.pages import (
    bar,
    best_guess,
    cell,
    framed,
    lines_of,
    page_of_ledger,
    secret_in_words,
    table,
    times,
    unbroken,
    what_can_be_told,
)
from ..exceptions import LedgerError
from ._ledger_store import FileBook, LostBook, MemoryBook
from ._noise import process_mark

_CLOSED: ContextVar[bool] = ContextVar("sklearn_dp_no_charges", default=False)


class PrivacyLedger:
    """The privacy budget that all fits on one data set share.

    A fit charges its ledger for its whole plan before it reads any data, and is refused if the
    remaining budget is too small. A charge is never refunded, whatever happens to the fit.

    Parameters
    ----------
    budget : PrivacyBudget, optional
        The total, in (epsilon, delta) or (rho, delta). Left out to open an existing file.
    path : str or path, optional
        A ledger file. With `budget`, the file is created and must not exist. Without `path`, the
        ledger is kept in the memory of this process.
    unit : {"row", "group"}, default="row"
        What is protected; fits that protect another unit are refused.
    composition : {"basic", "zcdp", "gaussian"}, optional
        How charges add up; see Notes. By default "basic" for a total in epsilon and "zcdp" for one
        in rho.
    relation : str, default="add or remove"
        How neighboring data sets differ by a unit: "add or remove"; "replace", if the number of
        units is public; "add or remove the rows of" or "replace the rows of", if the units are
        clients that take part with or without rows. Fits with another guarantee are refused.

    Raises
    ------
    LedgerError
        The path does not exist (and no budget is given), exists (and a budget is given) or is not
        a ledger.

    See Also
    --------
    sklearn_dp.ledger : The same from the command line.

    Notes
    -----
    Everything released by all the fits together is (epsilon, delta)-DP, or (rho, delta)-zCDP, for
    the ledger's total, even if each fit and its budget are chosen after seeing earlier results.
    Use one ledger for each data set: budgets of data sets that share people add up as well.

    With "basic", epsilon and delta add up: N fits of (epsilon / N, delta / N) always fit. With
    "zcdp", rho and the failure probabilities add up. "gaussian" is for many fits whose releases are
    all Gaussian: it admits about N fits of (epsilon / sqrt(N), delta / N), though never a single
    fit of the whole budget. The rule cannot change later: taking the better of two rules after
    seeing results would break the guarantee.

    Fits on disjoint sets of units, such as one for each region, do not add up: see
    :meth:`numbers`.

    A file is shared by processes and threads and survives clone, copies, pickling and crashes:
    give `ledger` its path. A ledger in memory is shared by identity (clones and copies are the
    ledger itself). A pickle does not hold it, and says so when it is used. A ledger guards against
    mistakes, not against a person who deletes or copies the file.

    A file is an append-only list of entries, each with a hash that covers all entries before it. A
    file whose entries were changed is refused. Publish the last hash (the *head*, which ``python -m
    sklearn_dp.ledger show`` prints) with your results: then others can verify that the file is
    still the one that they rest on; see :doc:`/study`.

    Examples
    --------
    >>> from sklearn_dp import PrivacyBudget, PrivacyLedger
    >>> from sklearn_dp.ledger import LedgerCharge
    >>> ledger = PrivacyLedger(PrivacyBudget(epsilon=1.0, delta=1e-5))
    >>> ledger.charge(LedgerCharge(epsilon=0.75, delta=1e-6))
    >>> ledger.remaining["epsilon"]
    0.25
    """

    _payers: Payers = EVERYONE  # or the units of one value of a key

    def __init__(
        self,
        budget: PrivacyBudget | None = None,
        path: str | os.PathLike[str] | None = None,
        *,
        unit: str = "row",
        composition: str | None = None,
        relation: str = "add or remove",
    ) -> None:
        self._book: MemoryBook | FileBook | LostBook
        if budget is None and path is None:
            raise TypeError("PrivacyLedger needs a budget, or the path of an existing ledger")
        if path is None:
            self._book = MemoryBook(LedgerTerms.of(budget, unit, composition, relation))
            return
        self._book = FileBook(path)
        if budget is not None:
            self._book.create(LedgerTerms.of(budget, unit, composition, relation))
        self._book.read()  # a wrong path is an error here and now

    @property
    def path(self) -> str | None:
        """The absolute path of the file, or None for a ledger in memory."""
        return None if self._book.path is None else str(self._book.path)

    def state(self) -> LedgerState:
        """Read everything at one moment.

        Returns
        -------
        state : LedgerState
            Terms, charges, keys, spent and remaining.
        """
        return replace(self._book.read(), payers=self._payers)

    @property
    def budget(self) -> PrivacyBudget:
        """The total."""
        return self.state().terms.budget

    @property
    def entries(self) -> tuple[LedgerCharge, ...]:
        """All charges, oldest first; of one value, those that some of its units pay."""
        return self.state().counted

    @property
    def spent(self) -> dict[str, float]:
        """Sum of each cost that the ledger counts, of the units that paid most, rounded up."""
        return self.state().spent

    @property
    def remaining(self) -> dict[str, float]:
        """What is left to all units of each cost that the ledger counts, rounded down."""
        return self.state().remaining

    @property
    def payers(self) -> tuple[str, str]:
        """Key and value of the units that pay what is charged here; both empty for all units."""
        return self._payers

    def disjoint(self, key: str, values: Iterable[str] | None = None) -> DisjointLedgers:
        """Give a ledger to each value of a key: for fits on disjoint sets of units.

        By naming `values` you state that each unit lies in at most one of them. A charge to one of
        these ledgers is then paid by the units of its value only, so fits on all regions together
        cost what the most expensive of them costs (parallel composition).

        Parameters
        ----------
        key : str
            What divides the units, such as ``"region"``.
        values : iterable of str, optional
            All values of the key. They are stored with the ledger and cannot be changed. Left out
            (or given once more) for a key that the ledger has.

        Returns
        -------
        ledgers : DisjointLedgers
            ``ledgers["north"]`` is what an estimator takes as `ledger`.

        Raises
        ------
        LedgerError
            The key is not in the ledger and no values are given, or it has other values; or the
            relation of the ledger is not "add or remove".

        Notes
        -----
        Guarantee: that of the ledger, for each unit, under three conditions, which no code can
        check.

        * **The values are public**, and listed before any row is looked at. Which regions have rows
          is private: fit and charge a region without rows as any other.
        * **Each unit lies in at most one value of a key**, whatever other units there are. With
          groups the unit is a person: one who has moved and has rows in two regions is no unit of
          either.
        * **A fit that is charged to a value reads the rows of its units only.**

        What one value has released may decide what is asked of another, and at what cost. What a
        unit pays is the sum of what was charged to all units and to its own values [1]_, [2]_; a
        charge is refused if it would take the units of any combination of listed values over the
        total. The proof is in :doc:`/privacy_model`.

        Neighbors that replace a unit may move it from one value to another. The fit on either then
        has one unit less or more, which its guarantee does not cover. So ledgers of other relations
        than "add or remove" have no keys.

        References
        ----------
        .. [1] McSherry, "Privacy integrated queries", SIGMOD 2009, Theorem 4.
        .. [2] Feldman and Zrnic, "Individual privacy accounting via a Renyi filter", NeurIPS 2021.

        Examples
        --------
        >>> from sklearn_dp import PrivacyBudget, PrivacyLedger
        >>> from sklearn_dp.ledger import LedgerCharge
        >>> ledger = PrivacyLedger(PrivacyBudget(epsilon=1.0, delta=1e-5))
        >>> region = ledger.disjoint("region", values=["north", "south"])
        >>> region["north"].charge(LedgerCharge(epsilon=0.75, delta=1e-6))
        >>> region["south"].charge(LedgerCharge(epsilon=0.5, delta=1e-6))
        >>> ledger.spent["epsilon"], region["south"].remaining["epsilon"]
        (0.75, 0.5)
        """
        if self._payers != EVERYONE:
            raise LedgerError(
                f"ledger is already that of {payers_in_words(self._payers)}. To divide units by "
                "two keys, list the pairs as values of one key of the whole ledger."
            )
        state = self._book.read()
        name, agreed = agreed_values(state.keys, key, values, state.terms.relation)
        if name not in state.keys:  # it may be there by the time of the entry
            state = self._book.append(lambda now: now.listing(name, agreed))
        return DisjointLedgers(self, name, state.keys[name])

    def charge(self, charge: LedgerCharge, label: str | None = None) -> None:
        """Charge one fit; when this returns, the charge is recorded for good.

        Parameters
        ----------
        charge : LedgerCharge
            What the fit costs.
        label : str, optional
            Replaces the charge's own label.

        Raises
        ------
        BudgetExceededError
            The remaining budget is too small; nothing was spent.
        LedgerError
            The charge is of another unit, relation or kind than the ledger's, or the file cannot be
            used.
        """
        _check_may_charge()
        if not isinstance(charge, LedgerCharge):
            raise TypeError(f"charge must be a LedgerCharge, got {type(charge).__name__}")
        key, value = self._payers
        time = datetime.now(UTC).isoformat(timespec="seconds")
        label = charge.label if label is None else label
        made = replace(charge, label=label, time=time, key=key, value=value)
        self._book.append(lambda state: state.charging(made))
        log_charge(self.path, made)

    def _begin(self, stream: str, number: int, day: str) -> None:
        """Note that a day of a stream begins: its rows are read next, and no second time."""
        self._book.append(lambda state: state.beginning(stream, number, day))

    def to_dp_accounting(self) -> tuple[Any, float]:
        """Return all charges as one event of Google's dp-accounting, which must be installed.

        Nothing is charged, and the ledger does not change.

        Returns
        -------
        event : dp_accounting.ComposedDpEvent
            A ``GaussianDpEvent`` for each fit of Gaussian releases, a ``ZCDpEvent`` for each other
            one. Accountants of the library add their own events to it. Of charges to the values of
            a key, those of the value that paid most; where no value paid most in all respects, an
            event that covers each of them.
        delta_failure : float
            The probability, over all charges, of failures that no event of the library represents.
            Subtract it from the delta that you ask an accountant for.

        Raises
        ------
        ImportError
            dp-accounting is not installed (``pip install sklearn-dp[accounting]``).

        Notes
        -----
        An accountant never reports too small a cost. ``ZCDpEvent`` is known to ``RdpAccountant``,
        and not to ``PLDAccountant``. Give it the neighboring relation of the ledger
        (``relation``); a record of the library is a unit of the ledger. The library has no event
        for disjoint sets of units: for the least that an accountant can say, take the largest of
        what it says for the ledgers of the values. Like every sum of charges, what it says holds
        for budgets that were fixed before the first result was seen. Where they were chosen on the
        way, the guarantee is the total of the ledger.

        Examples
        --------
        >>> import dp_accounting
        >>> from sklearn_dp import PrivacyBudget, PrivacyLedger
        >>> from sklearn_dp.ledger import LedgerCharge
        >>> ledger = PrivacyLedger(PrivacyBudget(epsilon=3.0, delta=1e-5))
        >>> ledger.charge(LedgerCharge(epsilon=1.0, delta=1e-7))
        >>> event, delta_failure = ledger.to_dp_accounting()
        >>> accountant = dp_accounting.rdp.RdpAccountant().compose(event)
        >>> f"{accountant.get_epsilon(1e-5 - delta_failure):.1f}"
        '4.5'
        """
        return events_of(self.state())

    def __repr__(self) -> str:
        where = "in memory" if self.path is None else f"path={self.path!r}"
        where += f", {payers_in_words(self._payers)}" if self._payers != EVERYONE else ""
        try:
            state = self.state()
        except LedgerError:  # its file has gone: a display is no place to say so
            return f"<PrivacyLedger {where}>"
        spent = ", ".join(
            f"{name} {cost:.4g} of {cap:.4g}"
            for (name, cost), cap in zip(state.spent.items(), state.terms.caps, strict=True)
        )
        return f"<PrivacyLedger {where}: {spent} spent>"

    def _repr_html_(self) -> str:
        try:
            state = self.state()
        except LedgerError:  # its file has gone: a display is no place to say so
            return escape(repr(self))
        return _page(state, "in memory" if self.path is None else f"file {self.path}")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a page for a privacy officer, and a JSON file with the same content.

        Parameters
        ----------
        path : str or path
            Of the page, such as ``"ledger.html"``; the JSON file is then ``"ledger.json"``. Files
            of these names are replaced; the ledger itself does not change.
        """
        state = self.state()
        where = "in memory" if self.path is None else f"file {self.path}"
        page_of_ledger(state, where, _of_all_fits(state)).save(path)

    def __sklearn_clone__(self) -> PrivacyLedger:
        return self

    def __copy__(self) -> PrivacyLedger:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> PrivacyLedger:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _saved, (self.path, self._book.identity, self._payers)


class DisjointLedgers:
    """The ledgers of the values of a key: what :meth:`PrivacyLedger.disjoint` gives.

    Parameters
    ----------
    ledger : PrivacyLedger
        The whole ledger.
    key : str
        What divides the units.
    values : tuple of str
        All values of the key; to iterate is to iterate over them.

    Notes
    -----
    ``ledgers[value]`` is a :class:`PrivacyLedger` whose charges are paid by the units of that value
    only. It is copied and pickled as the whole ledger is, which is what its `path` opens.

    There is no ``get``: its answer to an unknown value, None, is a fit without a ledger.

    Examples
    --------
    >>> from sklearn_dp import PrivacyBudget, PrivacyLedger
    >>> ledger = PrivacyLedger(PrivacyBudget(epsilon=1.0, delta=1e-5))
    >>> region = ledger.disjoint("region", values=["north", "south"])
    >>> list(region), region["south"].remaining["epsilon"]
    (['north', 'south'], 1.0)
    """

    def __init__(self, ledger: PrivacyLedger, key: str, values: tuple[str, ...]) -> None:
        self.ledger = ledger
        self.key = key
        self.values = values

    def __getitem__(self, value: str) -> PrivacyLedger:
        if not isinstance(value, str) or (value := str.__str__(value)) not in self.values:
            raise KeyError(
                f"key {self.key!r} has no such value. Its values are public and were listed once: "
                f"{', '.join(self.values[:20])}{', ...' * (len(self.values) > 20)}. Which values "
                "occur in the rows is private: fit the listed ones, and leave out all other rows."
            )
        return _of_book(self.ledger._book, (self.key, value))

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"<DisjointLedgers {self.key!r}: {len(self)} values>"


def _of_book(book: MemoryBook | FileBook | LostBook, payers: Payers = EVERYONE) -> PrivacyLedger:
    ledger = object.__new__(PrivacyLedger)
    ledger._book, ledger._payers = book, payers
    return ledger


def _saved(path: str | None, identity: str, payers: Payers) -> PrivacyLedger:
    """The state for a pickle: a file is looked for when used, and has to be the same ledger."""
    return _of_book(LostBook(identity) if path is None else FileBook(path, identity), payers)


@contextmanager
def no_charges() -> Iterator[None]:
    """Refuse all charges of this thread in this block, for code of users on blocks or single rows.
    How often that is called is private, and so is which of its calls a ledger can still pay for."""
    token = _CLOSED.set(True)
    try:
        yield
    finally:
        _CLOSED.reset(token)


def _check_may_charge() -> None:
    if _CLOSED.get():
        raise LedgerError(
            "ledger must not be charged by a fit on a part of the rows of another fit."
        )


def open_ledger(
    ledger: str | os.PathLike[str] | PrivacyLedger | bool | None,
) -> PrivacyLedger | None:
    """The ledger of an estimator's `ledger` parameter, None for None and False. A `LedgerError` if
    there is no ledger at the path: none is ever made here, since a mistyped path would be a fresh
    budget."""
    if ledger is None or ledger is False:
        return None
    _check_may_charge()
    if isinstance(ledger, PrivacyLedger):
        return ledger
    if isinstance(ledger, (str, os.PathLike)):
        return PrivacyLedger(path=ledger)
    raise TypeError(f"ledger must be None, a path or a PrivacyLedger, got {type(ledger).__name__}")


# -- in notebooks -----------------------------------------------------------------------------


def _page(state: LedgerState, where: str) -> str:
    """What all fits of a ledger, whose file is `where`, may show, and which of them spent what. The
    sentence is about the total: for what was spent up to a moment that was chosen after seeing
    results, there is no theorem."""
    terms = state.terms
    heads = ("time", "epsilon", "delta", "rho", *(("key", "value") if state.keys else ()))
    groups = state.by_label()
    lines = [
        (
            label + times(len(charges), "fits"),
            share,
            table(heads, [[cell(getattr(each, name)) for name in heads] for each in charges]),
        )
        for label, (charges, share) in groups.items()
    ]
    shares = {label: share for label, (_, share) in groups.items()}
    spent = ", ".join(
        f"{name} = {cell(cost)} of {cell(cap)}"
        for (name, cost), cap in zip(state.spent.items(), terms.caps, strict=True)
    )
    return framed(
        f"<p><b>{unbroken(_of_all_fits(state))}</b><br>Spent so far: {escape(spent)}.</p>"
        f"{bar(shares)}{lines_of(lines, 1 - state.used()[1])}{_keys(state)}"
        f"<details><summary>the terms</summary>{escape(str(terms.budget))}; each "
        f"{escape(terms.unit)}, {escape(terms.relation)}; {escape(terms.composition)} "
        f"composition; {escape(where)}</details>"
        '<p class="sk-dp-note">This does not cover fits with a random_state: anyone who knows it '
        "can reproduce their noise.</p>"
    )


def _keys(state: LedgerState) -> str:
    """A table for each key, with what the units of each value have spent and have left."""
    columns = state.terms.columns
    heads = ("value", *(f"{name} {what}" for what in ("spent", "left") for name in columns))
    pages = []
    for key, values in state.keys.items():
        rows = (
            [value, *map(cell, (*spent.values(), *remaining.values()))]
            for value, spent, remaining in state.values_of(key)
        )
        pages.append(
            f"<details><summary>{escape(key)}: {len(values)} non-overlapping groups"
            f"</summary>{table(heads, rows)}</details>"
        )
    return "".join(pages)


def _of_all_fits(state: LedgerState) -> str:
    """The guarantee of a ledger as a sentence."""
    terms, (first, second) = state.terms, state.terms.caps
    if terms.composition == "basic":
        guess = alone = best_guess(first, second)
    else:
        gaussian = terms.composition == "gaussian"
        known = terms.budget.epsilon if terms.budget.epsilon is not None else float("inf")
        guess = best_guess(known, terms.budget.delta, first, gaussian)
        alone = best_guess(known, terms.budget.delta)
    leaks = what_can_be_told(secret_in_words(terms.relation, terms.unit), guess, alone)
    return f"From everything that the fits of this ledger release, now and later, {leaks}"


_Account = tuple[Any, Payers, str, str]
"""A ledger, its payers, a unit and a relation: parts that agree in these are charged together."""


@dataclass(frozen=True)
class PrepaidFit:
    """The most that one fit may cost: (rho, delta)-zCDP, and (rho, 0)-zCDP if it is Gaussian."""

    ledger: PrivacyLedger
    label: str
    rho: float
    delta: float
    gaussian: bool
    unit: str
    relation: str

    @property
    def failure(self) -> float:
        """The part of delta for failures: nothing where all is Gaussian and never fails."""
        return 0.0 if self.gaussian else self.delta

    @property
    def account(self) -> _Account:
        """Where the part is charged."""
        return _account(self.ledger, self.unit, self.relation)

    def covers(self, account: _Account, charge: LedgerCharge) -> bool:
        """True for a fit of the same estimator whose charge is no more, in any composition. That of
        another estimator may be small too, but then the one that was paid for would pay once
        more."""
        return (
            account == self.account
            and charge.label == self.label
            and charge.rho is not None
            and charge.rho <= self.rho
            and charge.delta_failure <= self.failure
            and charge.gaussian >= self.gaussian
        )


class _Untaken:
    """Parts that have been paid for: of one process, as both sides of a fork would take them."""

    def __init__(self, budget: PrivacyBudget | None) -> None:
        self.parts, self.budget = cast("list[PrepaidFit]", []), budget
        self._process, self._lock = process_mark(), Lock()

    def take(self, ledger: PrivacyLedger, charge: LedgerCharge) -> bool:
        """Take the smallest part that covers a fit, if there is one."""
        if self._process != process_mark() or not self.parts:
            return False
        account = _account(ledger, charge.unit, charge.relation)
        with self._lock:
            fitting = [part for part in self.parts if part.covers(account, charge)]
            if fitting:
                self.parts.remove(min(fitting, key=lambda part: part.rho))
        return bool(fitting)


_UNTAKEN: ContextVar[_Untaken | None] = ContextVar("sklearn_dp_prepaid", default=None)


def charges_together(
    parts: Iterable[PrepaidFit],
) -> list[tuple[PrivacyLedger, LedgerCharge, list[PrepaidFit]]]:
    """One charge for all parts of an account, where there are several: and what it is for."""
    accounts: dict[_Account, list[PrepaidFit]] = {}
    for part in parts:
        accounts.setdefault(part.account, []).append(part)
    return [
        (several[0].ledger, _charge(several), several)
        for several in accounts.values()
        if len(several) > 1 and 2 * sum_up([part.delta for part in several]) < 1
    ]


def _charge(parts: list[PrepaidFit]) -> LedgerCharge:
    """The joint charge of parts, (rho, delta)-zCDP together, which is (epsilon, 2 delta)-DP."""
    rho, delta = (sum_up([getattr(part, cost) for part in parts]) for cost in ("rho", "delta"))
    return LedgerCharge(
        epsilon=accounting.zcdp_epsilon(rho, delta),
        delta=2 * delta,
        rho=rho,
        delta_failure=sum_up([part.failure for part in parts]),
        gaussian=all(part.gaussian for part in parts),
        unit=parts[0].unit,
        relation=parts[0].relation,
        label=" + ".join(part.label for part in parts),
    )


@contextmanager
def paid_together(
    parts: Iterable[PrepaidFit], budget: PrivacyBudget | None = None
) -> Iterator[None]:
    """Charge the parts now; fits of this thread, in this block, may take them. Inside another such
    block nothing is charged: its parts are for all fits in it. `budget`, in rho, is for words
    alone."""
    if _UNTAKEN.get() is not None:
        yield
        return
    untaken = _Untaken(budget)
    for ledger, charge, several in charges_together(parts):
        ledger.charge(charge)
        untaken.parts += several
    token = _UNTAKEN.set(untaken)
    try:
        yield
    finally:
        _UNTAKEN.reset(token)


def shared_budget() -> PrivacyBudget | None:
    """Return the joint budget of the fits of this block, where that is known."""
    untaken = _UNTAKEN.get()
    return None if untaken is None else untaken.budget


def is_paid(ledger: PrivacyLedger, charge: LedgerCharge) -> bool:
    """True if a fit has been paid for; its part is then taken."""
    untaken = _UNTAKEN.get()
    return untaken is not None and untaken.take(ledger, charge)


def _account(ledger: PrivacyLedger, unit: str, relation: str) -> _Account:
    return identity(ledger), ledger.payers, unit, relation


def identity(ledger: PrivacyLedger) -> Any:
    """What all values of a ledger's keys share: its book in memory, or the file behind its path,
    which may have several names."""
    if ledger.path is None:
        return id(ledger._book)
    stat = os.stat(ledger.path)
    return stat.st_dev, stat.st_ino
