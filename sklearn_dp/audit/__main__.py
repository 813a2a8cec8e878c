"""Audit estimators from the command line: ``sklearn-dp audit certify ESTIMATOR``.

Examples::

    sklearn-dp audit certify DPKMeans --fits 4000
    sklearn-dp audit certify all --jobs 2 --json
    sklearn-dp audit certify mymodule:MyEstimator --set n_clusters=3

The exit status is 0 if no claim was refuted, so the command can be part of a build. With
``--deficit 1.5`` the noise is made too small on purpose, and the exit status is 0 if this was
found; use it to check the power of the test.
"""

import argparse
import ast
import importlib
import json
import sys
from typing import Any

from . import all_estimators
from ._certify import CASES, certify

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run a command; returns 0 if every claim is kept, else 1; with ``--deficit``, 0 if it was
    found everywhere."""
    options = _parser().parse_args(arguments)
    names = sorted(CASES) if options.estimator == "all" else [options.estimator]
    certificates = []
    for name in names:
        certificate = certify(
            _estimator(name, options),
            fits=options.fits,
            seed=options.seed,
            jobs=options.jobs,
            error=options.error,
            deficit=options.deficit,
        )
        certificates.append(certificate)
        print(
            json.dumps(certificate.to_dict()) if options.json else f"{certificate!r}\n", flush=True
        )
    wanted = options.deficit is None
    return int(any(certificate.kept != wanted for certificate in certificates))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sklearn-dp audit",
        description=(__doc__ or "").replace("``", "").replace("::", ":"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser(
        "certify",
        help="compute a lower bound of epsilon from thousands of fits",
        description="Fit two neighboring data sets many times, train a test that tells them apart, "
        "and print the resulting lower bound of epsilon next to the claimed value.",
    )
    command.add_argument(
        "estimator",
        metavar="ESTIMATOR",
        help="name of an estimator of this package, 'all', or module:Class",
    )
    command.add_argument(
        "--fits", type=int, default=20000, help="number of fits (default: %(default)s)"
    )
    command.add_argument(
        "--epsilon", type=float, help="epsilon to test (default: the most revealing one)"
    )
    command.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        dest="params",
        help="set a parameter of the estimator to a Python literal",
    )
    command.add_argument(
        "--seed",
        type=int,
        default=0,
        help="seed of the data sets and the test (default: %(default)s)",
    )
    command.add_argument(
        "--jobs", type=int, default=1, help="number of processes (default: %(default)s)"
    )
    command.add_argument(
        "--error",
        type=float,
        default=1e-6,
        help="probability of refuting a true claim (default: %(default)s)",
    )
    command.add_argument(
        "--deficit",
        type=float,
        metavar="FACTOR",
        help="make the noise too small by this factor, to check that it is found",
    )
    command.add_argument(
        "--json", action="store_true", help="print one JSON object per certificate"
    )
    return parser


def _estimator(name: str, options: argparse.Namespace) -> Any:
    """An instance with the parameters of its case, and those that were asked for, which win.

    `name` is that of an estimator of this package, or module:Class.
    """
    known = dict(all_estimators())
    params = dict(_parameter(text) for text in options.params)
    if options.epsilon is not None:
        params["epsilon"] = options.epsilon
    if name not in CASES:
        return (known[name] if name in known else _import(name))(**params)
    case = CASES[name]
    budget = {} if "rho" in params else {"epsilon": case.epsilon}
    return known[name](**{**case.params, **budget, **params})


def _import(name: str) -> Any:
    """The estimator class of another module: ``module:Class``; anything else ends the program."""
    module, _, attribute = name.partition(":")
    if not attribute:
        raise SystemExit(
            f"{name!r} is not an estimator of this package; name others as module:Class."
        )
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise SystemExit(f"{name}: {error}") from None


def _parameter(text: str) -> tuple[str, Any]:
    """NAME=VALUE as a pair; a value that is no Python literal is a word.

    >>> _parameter("n_clusters=3"), _parameter("method=clip")
    (('n_clusters', 3), ('method', 'clip'))
    """
    name, equals, value = text.partition("=")
    if not equals:
        raise SystemExit(f"--set {text}: NAME=VALUE is wanted.")
    try:
        return name, ast.literal_eval(value)
    except (SyntaxError, ValueError):
        return name, value


if __name__ == "__main__":
    sys.exit(main())
