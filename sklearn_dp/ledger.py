"""Privacy ledgers: the budget that all fits on one data set share.

From Python, see :class:`PrivacyLedger`; from the command line::

    sklearn-dp ledger create FILE --epsilon 1 --delta 1e-5
    sklearn-dp ledger show FILE [--json]
    sklearn-dp ledger verify FILE [--head HASH]

``python -m sklearn_dp.ledger`` is the same. Estimators accept the path of the file as their
`ledger` parameter.

`create` creates a file and never overwrites one. Nothing else creates ledgers, so a mistyped path
is an error rather than a fresh budget. `show` prints the total, all charges, the remaining budget
and the head, all read at one moment, as a table or as JSON. `verify` checks every entry, and that
the ledger still holds all that it held when a head was published. No command refunds a charge.
"""

import argparse
import json
import sys

from ._costs.budget import PrivacyBudget
from ._costs.ledger_terms import COMPOSITIONS, LedgerCharge
from ._costs.numbers import RELATIONS, UNITS, in_words
from ._privacy._ledger import DisjointLedgers, PrivacyLedger

__all__ = ["DisjointLedgers", "LedgerCharge", "PrivacyBudget", "PrivacyLedger", "main"]

# What a charge costs in each of the currencies; a ledger counts two of them, and shows all.
_NUMBERS = ("epsilon", "delta", "rho", "delta_failure")
_HEADINGS = ("time", "label", *_NUMBERS, "gaussian", "relation")
_PAYERS = ("key", "value")  # empty for a charge that all units pay


def main(argv: list[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : list of str, optional
        `sys.argv[1:]` by default.

    Returns
    -------
    status : int
        Exit status: 0, or 1 after an error, which is printed.

    Notes
    -----
    Wrong options end the program with status 2, as argparse does it. An error prints one line and
    no traceback: it is about a path, a budget or a file, and says what to do.
    """
    arguments = _parser().parse_args(argv)
    try:
        print(arguments.run(arguments))
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    """The commands and their options; each stores the function that returns the text to print."""
    parser = argparse.ArgumentParser(
        prog="sklearn-dp ledger", description="Create, show and verify privacy ledgers."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    # Of epsilon and rho exactly one; delta has no default, because no value of it suits all data.
    create = commands.add_parser("create", help="create a ledger file")
    create.set_defaults(run=_create)
    create.add_argument("file")
    total = create.add_mutually_exclusive_group(required=True)
    total.add_argument("--epsilon", type=float, help="total of an (epsilon, delta) ledger")
    total.add_argument("--rho", type=float, help="total of a (rho, delta)-zCDP ledger")
    create.add_argument("--delta", type=float, required=True, help="total delta of all fits")
    create.add_argument("--unit", choices=UNITS, default="row", help="what is protected")
    create.add_argument("--composition", choices=COMPOSITIONS, help="how charges add up")
    create.add_argument(
        "--relation",
        choices=RELATIONS,
        default=RELATIONS[0],
        help="how neighboring data sets differ by a unit",
    )

    show = commands.add_parser("show", help="print the total, the charges and the remaining budget")
    show.set_defaults(run=_show)
    show.add_argument("file")
    show.add_argument("--json", action="store_true", help="print JSON")

    verify = commands.add_parser("verify", help="check that no entry has been changed or removed")
    verify.set_defaults(run=_verify)
    verify.add_argument("file")
    verify.add_argument("--head", metavar="HASH", help="a head that was published earlier")
    return parser


def _create(arguments: argparse.Namespace) -> str:
    budget = PrivacyBudget(epsilon=arguments.epsilon, delta=arguments.delta, rho=arguments.rho)
    rules = {name: getattr(arguments, name) for name in ("unit", "composition", "relation")}
    PrivacyLedger(budget, arguments.file, **rules)
    return f"{arguments.file}: {budget}"


def _show(arguments: argparse.Namespace) -> str:
    ledger = PrivacyLedger(path=arguments.file)
    if not arguments.json:
        return _as_text(ledger)
    return json.dumps({"path": ledger.path, **ledger.state().content()}, indent=2)


def _verify(arguments: argparse.Namespace) -> str:
    """Check a file; any problem is an error."""
    state = PrivacyLedger(path=arguments.file).state()
    state.check()
    done = f"{arguments.file}: {len(state.charges)} charges, in {len(state.heads)} entries: intact"
    if arguments.head is None:
        return (
            f"{done}.\nhead {state.head}\nTo rule out that the whole file was replaced, compare "
            "with a head that was published: --head HASH."
        )
    if arguments.head not in state.heads:
        raise ValueError(
            f"{arguments.file} does not continue the ledger with the head {arguments.head}: "
            "entries of that time were changed or removed, or it is another ledger."
        )
    since = len(state.heads) - 1 - state.heads.index(arguments.head)
    return f"{done}. It holds all that the published head stands for, and {since} entries since."


def _as_text(ledger: PrivacyLedger) -> str:
    """Return a few lines of totals and a table of the charges, oldest first.

    Numbers are printed to the nearest of six digits; programs should read the JSON."""
    state = ledger.state()
    terms = state.terms
    lines = [
        f"Privacy ledger {ledger.path}",
        f"  total      {terms.budget}; each {terms.unit} protected, "
        f"{terms.composition} composition",
        f"  neighbors  {in_words(terms.relation, terms.unit)}",
        f"  spent      {_amounts(state.spent)}",
        f"  remaining  {_amounts(state.remaining)}",
        f"  head       {state.head}",
        "",
    ]
    for key, values in state.keys.items():
        paid = [
            (value, _amounts(spent), _amounts(remaining))
            for value, spent, remaining in state.values_of(key)
        ]
        lines += [f"Each {terms.unit} in at most one of {len(values)} values of {key!r}:"]
        lines += [*_table([(key, "spent", "remaining"), *paid]), ""]
    # All charges in all currencies, not only in the two that count: the record of the fits.
    names = (*_HEADINGS, *_PAYERS) if state.keys else _HEADINGS
    rows = [[_cell(getattr(charge, name)) for name in names] for charge in state.charges]
    return "\n".join(lines + (_table([names, *rows]) if rows else ["No charges."]))


def _amounts(costs: dict[str, float]) -> str:
    """
    >>> _amounts({"epsilon": 0.75, "delta": 1e-6})
    'epsilon 0.75, delta 1e-06'
    """
    return ", ".join(f"{name} {cost:.6g}" for name, cost in costs.items())


def _cell(value: object) -> str:
    """
    >>> _cell(True), _cell(0.123456), _cell("DPKMeans")
    ('yes', '0.1235', 'DPKMeans')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _table(rows: list) -> list[str]:
    """
    >>> _table([("label", "rho"), ("DPKMeans", "0.5")])
    ['label     rho', 'DPKMeans  0.5']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name[:2] == "__")})


if __name__ == "__main__":
    sys.exit(main())
