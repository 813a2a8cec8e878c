"""The privacy budget that all fits on one data set share: its public face.

See `_ledger_terms` for the rules and their proofs, `_ledger_store` for where charges are kept.
"""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from html import escape
from typing import Any

from ..exceptions import LedgerError
from ._budget import PrivacyBudget
from ._dp_accounting import events_of
from ._html import bar, cell, framed, lines_of, table, times, unbroken
from ._ledger_store import FileBook, MemoryBook
from ._ledger_terms import LedgerCharge, LedgerState, LedgerTerms
from ._log import log_charge
from ._words import best_guess, secret_in_words, what_can_be_told

__all__ = ["PrivacyLedger", "open_ledger"]


class PrivacyLedger:
    """The privacy budget that all fits on one data set share.

    A fit charges its ledger for its whole plan before it reads any data, and is refused when the
    ledger does not hold enough. A charge is never refunded, whatever becomes of the fit.

    Parameters
    ----------
    budget : PrivacyBudget, optional
        The total, in (epsilon, delta) or (rho, delta). Left out to open an existing file.
    path : str or path, optional
        A ledger file; with `budget`, the file is made and must not exist. Without `path`, the
        ledger lives in the memory of this process.
    unit : {"row", "group"}, default="row"
        What is protected; fits that protect another unit are refused.
    composition : {"basic", "zcdp", "gaussian"}, optional
        How charges add up; see Notes. By default "basic" for a total in epsilon and "zcdp" for one
        in rho.
    relation : str, default="add or remove"
        What neighbouring data sets do with a unit: "add or remove"; "replace", where their number
        is public; "add or remove the rows of" or "replace the rows of", where the units are clients
        that take part whatever they hold. Fits with another guarantee are refused.

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

    A file is shared by processes and threads and survives clone, copies, pickling and crashes:
    give `ledger` its path. A ledger in memory is shared by identity (clones and copies are the
    ledger itself) and refuses to be pickled. A ledger guards against mistakes, not against a person
    who deletes or copies the file.

    Examples
    --------
    >>> from sklearn_dp.ledger import LedgerCharge, PrivacyBudget, PrivacyLedger
    >>> ledger = PrivacyLedger(PrivacyBudget(epsilon=1.0, delta=1e-5))
    >>> ledger.charge(LedgerCharge(epsilon=0.75, delta=1e-6))
    >>> ledger.remaining["epsilon"]
    0.25
    """

    def __init__(
        self,
        budget: PrivacyBudget | None = None,
        path: str | os.PathLike[str] | None = None,
        *,
        unit: str = "row",
        composition: str | None = None,
        relation: str = "add or remove",
    ) -> None:
        self._book: MemoryBook | FileBook
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
            Terms, charges, spent and remaining.
        """
        return self._book.read()

    @property
    def budget(self) -> PrivacyBudget:
        """The total."""
        return self.state().terms.budget

    @property
    def entries(self) -> tuple[LedgerCharge, ...]:
        """All charges, oldest first."""
        return self.state().charges

    @property
    def spent(self) -> dict[str, float]:
        """Sum of each cost that the ledger counts, rounded up."""
        return self.state().spent

    @property
    def remaining(self) -> dict[str, float]:
        """What is left of each cost that the ledger counts, rounded down."""
        return self.state().remaining

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
            The ledger does not hold enough; nothing was spent.
        LedgerError
            The charge is of another unit, relation or kind than the ledger's, or the file cannot be
            used.
        """
        if not isinstance(charge, LedgerCharge):
            raise TypeError(f"charge must be a LedgerCharge, got {type(charge).__name__}")
        label = charge.label if label is None else label
        time = datetime.now(UTC).isoformat(timespec="seconds")
        self._book.append(replace(charge, label=label, time=time))
        log_charge(self.path, replace(charge, label=label))

    def to_dp_accounting(self) -> tuple[Any, float]:
        """All charges as one event of Google's library dp-accounting, which has to be installed.

        Nothing is charged, and the ledger stays as it is.

        Returns
        -------
        event : dp_accounting.ComposedDpEvent
            A ``GaussianDpEvent`` for each fit of Gaussian releases, a ``ZCDpEvent`` for each other
            one. Accountants of the library add their own events to it.
        delta_failure : float
            The probability, over all charges, of failures that no event of the library stands for.
            Take it from the delta that an accountant is asked for.

        Raises
        ------
        ImportError
            dp-accounting is not installed (``pip install sklearn-dp[accounting]``).

        Notes
        -----
        An accountant never says less than holds. ``ZCDpEvent`` is known to ``RdpAccountant``, and
        not to ``PLDAccountant``. Give it the neighbouring relation of the ledger (``relation``);
        a record of the library is a unit of the ledger. Like every sum of charges, what it says
        holds for budgets that were fixed before the first result was seen. Where they were chosen
        on the way, the guarantee is the total of the ledger.

        Examples
        --------
        >>> import dp_accounting
        >>> from sklearn_dp.ledger import LedgerCharge, PrivacyBudget, PrivacyLedger
        >>> ledger = PrivacyLedger(PrivacyBudget(epsilon=3.0, delta=1e-5))
        >>> ledger.charge(LedgerCharge(epsilon=1.0, delta=1e-7))
        >>> event, delta_failure = ledger.to_dp_accounting()
        >>> accountant = dp_accounting.rdp.RdpAccountant().compose(event)
        >>> f"{accountant.get_epsilon(1e-5 - delta_failure):.1f}"
        '4.5'
        """
        return events_of(self.entries)

    def __repr__(self) -> str:
        where = "in memory" if self.path is None else f"path={self.path!r}"
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

    def __sklearn_clone__(self) -> PrivacyLedger:
        return self

    def __copy__(self) -> PrivacyLedger:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> PrivacyLedger:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if self.path is None:
            raise LedgerError(
                "a ledger in memory cannot be pickled or sent to another process, as its copy "
                "would forget the charges; give `ledger` the path of a ledger file instead"
            )
        return PrivacyLedger, (None, self.path)


def open_ledger(ledger: str | os.PathLike[str] | PrivacyLedger | None) -> PrivacyLedger | None:
    """The ledger that an estimator's `ledger` parameter means.

    A `LedgerError` if the path is none: none is ever made here, since a mistyped path would be a
    fresh budget.
    """
    if ledger is None or isinstance(ledger, PrivacyLedger):
        return ledger
    if isinstance(ledger, (str, os.PathLike)):
        return PrivacyLedger(path=ledger)
    raise TypeError(f"ledger must be None, a path or a PrivacyLedger, got {type(ledger).__name__}")


def _page(state: LedgerState, where: str) -> str:
    """A ledger, whose file is `where`: what all its fits may show, and which of them spent what.

    The sentence is about the total and not about what has been spent: budgets may be chosen after
    seeing results, and for what was spent up to a moment that was chosen so, there is no theorem.
    """
    terms = state.terms
    # The cost that runs out first decides; a cap of zero can hold nothing.
    used = [
        spent / cap if cap else 0.0
        for spent, cap in zip(state.spent.values(), terms.caps, strict=True)
    ]
    which = int(used[1] > used[0])
    groups: dict[str, list[Any]] = {}
    for charge in state.charges:
        groups.setdefault(charge.label or "without a label", []).append(charge)
    shares = {
        label: sum(terms.costs(charge)[which] for charge in charges) / (terms.caps[which] or 1.0)
        for label, charges in groups.items()
    }
    heads = ("time", "epsilon", "delta", "rho")
    lines = [
        (
            label + times(len(charges), "fits"),
            shares[label],
            table(heads, [[cell(getattr(each, name)) for name in heads] for each in charges]),
        )
        for label, charges in groups.items()
    ]
    spent = ", ".join(
        f"{name} = {cell(cost)} of {cell(cap)}"
        for (name, cost), cap in zip(state.spent.items(), terms.caps, strict=True)
    )
    return framed(
        f"<p><b>{unbroken(_of_all_fits(state))}</b><br>Spent so far: {escape(spent)}.</p>"
        f"{bar(shares)}{lines_of(lines, 1 - used[which])}"
        f"<details><summary>the terms</summary>{escape(str(terms.budget))}; each "
        f"{escape(terms.unit)}, {escape(terms.relation)}; {escape(terms.composition)} "
        f"composition; {escape(where)}</details>"
        '<p class="sk-dp-note">Fits with a random_state are no part of this: their noise can be '
        "worked out.</p>"
    )


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
    told = what_can_be_told(secret_in_words(terms.relation, terms.unit), guess, alone)
    return f"From all that the fits of this ledger ever release together, {told}"
