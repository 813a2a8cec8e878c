"""Privacy ledgers: the budget that all fits on one data set share.

From Python, see :class:`PrivacyLedger`; from the command line::

    python -m sklearn_dp.ledger create FILE --epsilon 1 --delta 1e-5
    python -m sklearn_dp.ledger show FILE [--json]
    python -m sklearn_dp.ledger convert FILE --relation "add or remove"

Estimators take the file's path as their `ledger` parameter.
"""

import argparse
import json
import math
import sys

from ._privacy._budget import PrivacyBudget
from ._privacy._ledger import PrivacyLedger
from ._privacy._ledger_store import FileBook
from ._privacy._ledger_terms import COMPOSITIONS, LedgerCharge
from ._privacy._neighbours import RELATIONS, UNITS, in_words

__all__ = ["LedgerCharge", "PrivacyBudget", "PrivacyLedger", "main"]

_NUMBERS = ("epsilon", "delta", "rho", "delta_failure")
_HEADINGS = ("time", "label", *_NUMBERS, "gaussian", "relation")


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
    """
    arguments = _parser().parse_args(argv)
    try:
        print(arguments.run(arguments))
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _parser():
    parser = argparse.ArgumentParser(
        prog="python -m sklearn_dp.ledger", description="Make and read privacy ledgers."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    create = commands.add_parser("create", help="make a ledger file")
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
        help="what neighbouring data sets do with a unit",
    )

    show = commands.add_parser("show", help="print total, charges and what is left")
    show.set_defaults(run=_show)
    show.add_argument("file")
    show.add_argument("--json", action="store_true", help="for programs")

    convert = commands.add_parser(
        "convert", help="write down the relation of a ledger file of format 1, which knew none"
    )
    convert.set_defaults(run=_convert)
    convert.add_argument("file")
    convert.add_argument(
        "--relation",
        choices=RELATIONS,
        required=True,
        help="what the neighbours of all its fits do with a unit",
    )
    return parser


def _create(arguments):
    budget = PrivacyBudget(epsilon=arguments.epsilon, delta=arguments.delta, rho=arguments.rho)
    PrivacyLedger(
        budget,
        arguments.file,
        unit=arguments.unit,
        composition=arguments.composition,
        relation=arguments.relation,
    )
    return f"{arguments.file}: {budget}"


def _convert(arguments):
    FileBook(arguments.file).convert(arguments.relation)
    return f"{arguments.file}: neighbours {arguments.relation}"


def _show(arguments):
    ledger = PrivacyLedger(path=arguments.file)
    return json.dumps(_as_json(ledger), indent=2) if arguments.json else _as_text(ledger)


def _as_json(ledger):
    state = ledger.state()
    charges = [{name: _finite(getattr(c, name)) for name in _HEADINGS} for c in state.charges]
    budget = state.terms.budget
    return {
        "path": ledger.path,
        "total": {name: getattr(budget, name) for name in ("epsilon", "delta", "rho")},
        "unit": state.terms.unit,
        "composition": state.terms.composition,
        "relation": state.terms.relation,
        "spent": state.spent,
        "remaining": state.remaining,
        "charges": charges,
    }


def _finite(value):
    """JSON has no infinity: a missing bound is null."""
    return None if value == math.inf else value


def _as_text(ledger):
    state = ledger.state()
    terms = state.terms
    lines = [
        f"Privacy ledger {ledger.path}",
        f"  total      {terms.budget}; each {terms.unit} protected, "
        f"{terms.composition} composition",
        f"  neighbours {in_words(terms.relation, terms.unit)}",
        f"  spent      {_amounts(state.spent)}",
        f"  remaining  {_amounts(state.remaining)}",
        "",
    ]
    rows = [[_cell(getattr(charge, name)) for name in _HEADINGS] for charge in state.charges]
    return "\n".join(lines + (_table([_HEADINGS, *rows]) if rows else ["No charges."]))


def _amounts(costs):
    return ", ".join(f"{name} {cost:.6g}" for name, cost in costs.items())


def _cell(value):
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else value


def _table(rows):
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


if __name__ == "__main__":
    sys.exit(main())
