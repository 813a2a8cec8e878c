"""A profile of a CSV file from the command line: ``sklearn-dp profile DATA.csv ...``. No row is
refused: an error would tell that it is there."""

import argparse
import csv
import gzip
import math
import sys
import warnings
from array import array
from pathlib import Path
from typing import Any

from .._costs.numbers import extra
from .._guarantee import privacy_report
from ..exceptions import BudgetExceededError, UtilityWarning
from ..preprocessing import Schema
from ._dp_profile import profile

_NO_ROWS = "0 sample(s)"  # in the error that scikit-learn's checks ask for


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
        print(_profile(arguments))
    except (OSError, TypeError, ValueError, BudgetExceededError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sklearn-dp profile",
        description="Divide the rows of a CSV file into segments, and describe each of them. "
        "All that is printed or written may be published.",
    )
    parser.add_argument("data", metavar="DATA.csv", help="a table with a header")
    parser.add_argument(
        "--schema", required=True, metavar="FILE",
        help="public ranges and categories of the columns: JSON, Frictionless or CSVW",
    )  # fmt: skip
    parser.add_argument("--columns", nargs="+", metavar="NAME", help="only these columns of it")
    parser.add_argument("--segments", type=int, default=5, help="default: %(default)s")
    parser.add_argument("--epsilon", type=float, required=True, help="privacy budget")
    parser.add_argument("--delta", type=float, default=1e-6, help="default: %(default)s")
    parser.add_argument("--group", metavar="NAME", help="the column that names the person of a row")
    parser.add_argument("--ledger", metavar="FILE", help="an existing ledger, which is charged")
    parser.add_argument(
        "--delimiter", default=",", type=lambda text: text.replace("\\t", "\t"),
        help=r"between values, \t for tabs; default: %(default)s",
    )  # fmt: skip
    parser.add_argument(
        "--decimal", default=".", choices=".,", help="point of numbers; default: %(default)s"
    )
    parser.add_argument("--thousands", metavar="SIGN", help="sign between groups of three digits")
    parser.add_argument("--out", metavar="FILE.html", help="write the profile as a page")
    parser.add_argument("--officer", metavar="FILE.html", help="write the privacy officer's page")
    return parser


def _profile(arguments: argparse.Namespace) -> str:
    """Fit, write the pages, and return what to print."""
    schema = Schema.from_file(arguments.schema, columns=arguments.columns)
    table, groups = _read(arguments, schema)
    _open_pages(arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UtilityWarning)  # the same is printed
        try:
            model = profile(
                table,
                schema,
                arguments.segments,
                epsilon=arguments.epsilon,
                delta=arguments.delta,
                ledger=arguments.ledger,
                groups=groups,
            )
        except ValueError as error:
            if _NO_ROWS not in str(error):
                raise
            raise ValueError(
                f"{arguments.data} has no row below its header. The fit has been paid for all the "
                "same: whether there are rows is private, so it is looked at after the charge."
            ) from None
    if arguments.out:
        model.save(arguments.out)
    if arguments.officer:
        privacy_report(model).save(arguments.officer)
    lines = [f"status: {model.status_}", *(f"* {each}" for each in model.messages_)]
    return "\n".join([model._text(), "", *lines, model.privacy_report_.spent])


def _open_pages(arguments: argparse.Namespace) -> None:
    """Make the files that are written at the end, before the charge; none may replace another."""
    pages = [Path(path) for path in (arguments.out, arguments.officer) if path]
    facts = [Path(path).with_suffix(".json") for path in (arguments.officer,) if path]
    inputs = [Path(path) for path in (arguments.data, arguments.schema, arguments.ledger) if path]
    if len({path.resolve() for path in (*inputs, *pages, *facts)}) < len(inputs + pages + facts):
        raise ValueError(
            "out, officer and the JSON file of officer must not replace each other or an input."
        )
    for path in pages + facts:
        path.open("a", encoding="utf-8").close()


def _read(arguments: argparse.Namespace, schema: Schema) -> tuple[Any, Any]:
    """The columns of the schema as a data frame, and the groups, line by line to save memory."""
    with extra("pandas"):
        import pandas as pd
    signs = {".": "?"} | ({arguments.thousands: ""} if arguments.thousands else {})
    signs = str.maketrans(signs | {arguments.decimal: "."})
    texts: dict[str, str | None] = {"": None}  # an empty text is a missing value
    values: list[Any] = [array("d") if isinstance(kind, tuple) else [] for kind in schema.values()]
    groups: list[str] = []
    csv.field_size_limit(2**31 - 1)
    opened = gzip.open if arguments.data.endswith(".gz") else open
    with opened(arguments.data, "rt", newline="", encoding="utf-8-sig", errors="replace") as file:
        rows = csv.reader(file, delimiter=arguments.delimiter)
        head = next(rows, [])
        places = _places(head, [*schema], arguments)
        owner = _places(head, [arguments.group], arguments) if arguments.group else []
        for row in filter(None, rows):
            entries = (row[place] if place < len(row) else "" for place in places)
            for column, text in zip(values, entries, strict=False):
                number = isinstance(column, array)
                column.append(_number(text, signs) if number else texts.setdefault(text, text))
            groups += [row[place] if place < len(row) else "" for place in owner]
    named = dict(zip(schema, map(pd.Series, values), strict=True))
    return pd.DataFrame(named), groups if owner else None


def _places(head: list[str], names: list[Any], arguments: argparse.Namespace) -> list[int]:
    """Where the columns are; an error quotes no first line that may be a row of data."""
    data, delimiter = arguments.data, arguments.delimiter
    if twice := [name for name in names if head.count(name) > 1]:
        raise ValueError(f"{data} has more than one column {twice[0]!r}: rename one of them.")
    missing = [name for name in names if name not in head]
    if not missing:
        return [head.index(name) for name in names]
    written = {text.strip().casefold(): text for text in head}
    if all(name.strip().casefold() in written for name in names):
        match = written[missing[0].strip().casefold()]
        raise ValueError(f"{data} has no column {missing[0]!r} but {match!r}: write both alike.")
    for other in ";,\t|":
        line = [delimiter.join(head)]
        if set(names) <= set(next(csv.reader(line, delimiter=other), [])):
            raise ValueError(f"the values of {data} are separated by {other!r}: see --delimiter.")
    raise ValueError(
        f"{data} has no column {missing[0]!r}: its first line must name the columns, as text in "
        "UTF-8 (see --delimiter)."
    )


def _number(text: str, signs: dict[int, str]) -> float:
    """A number, or NaN for any other text."""
    try:
        return float(text.translate(signs))
    except ValueError:
        return math.nan
