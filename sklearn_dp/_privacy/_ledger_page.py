"""A ledger in notebooks."""

from html import escape

from ._guarantee_text import best_guess, secret_in_words, what_can_be_told
from ._html import bar, cell, framed, lines_of, table, times, unbroken
from ._ledger_terms import LedgerState

__all__ = ["ledger_page"]


def ledger_page(state: LedgerState, where: str) -> str:
    """A ledger, whose file is `where`: what all its fits may show, and which of them spent what.

    The sentence is about the total and not about what has been spent: budgets may be chosen after
    seeing results, and for what was spent up to a moment that was chosen so, there is no theorem.
    """
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
    """What the units of each value have paid and have left, a table for each key."""
    columns = state.terms.columns
    heads = ("value", *(f"{name} {what}" for what in ("spent", "left") for name in columns))
    pages = []
    for key, values in state.keys.items():
        rows = (
            [value, *map(cell, (*spent.values(), *left.values()))]
            for value, spent, left in state.values_of(key)
        )
        pages.append(
            f"<details><summary>{escape(key)}: each {state.terms.unit} in at most one of "
            f"{len(values)} values</summary>{table(heads, rows)}</details>"
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
    told = what_can_be_told(secret_in_words(terms.relation, terms.unit), guess, alone)
    return f"From everything that the fits of this ledger release, now and later, {told}"
