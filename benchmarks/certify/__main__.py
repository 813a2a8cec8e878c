"""Certify estimators: a lower bound of epsilon from thousands of fits, next to the claim.

Fits two neighboring data sets many times, and trains a test that tells them apart. In the root of
the checkout::

    python -m benchmarks.certify DPKMeans --fits 4000
    python -m benchmarks.certify all --jobs 2 --json
    python -m benchmarks.certify mymodule:MyEstimator --set n_clusters=3

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

import sklearn_dp

from . import CASES, ERROR, certify


def main(arguments: list[str] | None = None) -> int:
    """Certify; 0 if every claim is kept, or with ``--deficit`` refuted, else 1."""
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
        text = json.dumps(certificate.to_dict()) if options.json else f"{certificate!r}\n"
        print(text, flush=True)
    wanted = options.deficit is None
    return int(any(certificate.kept != wanted for certificate in certificates))


_OPTIONS: dict[str, dict[str, Any]] = {
    "--fits": {"type": int, "default": 20000, "help": "number of fits (default: %(default)s)"},
    "--epsilon": {"type": float, "help": "epsilon to test (default: the most revealing one)"},
    "--set": {
        "action": "append",
        "default": [],
        "metavar": "NAME=VALUE",
        "help": "set a parameter of the estimator to a Python literal",
    },
    "--seed": {
        "type": int,
        "default": 0,
        "help": "seed of the data sets and the test (default: %(default)s)",
    },
    "--jobs": {"type": int, "default": 1, "help": "number of processes (default: %(default)s)"},
    "--error": {
        "type": float,
        "default": ERROR,
        "help": "probability of refuting a true claim (default: %(default)s)",
    },
    "--deficit": {
        "type": float,
        "metavar": "FACTOR",
        "help": "make the noise too small by this factor, to check that it is found",
    },
    "--json": {"action": "store_true", "help": "print one JSON object per certificate"},
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.certify",
        description=(__doc__ or "").replace("``", "").replace("::", ":"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    known = "name of an estimator of sklearn_dp, 'all', or module:Class"
    parser.add_argument("estimator", metavar="ESTIMATOR", help=known)
    for name, option in _OPTIONS.items():
        parser.add_argument(name, **option)
    return parser


def _estimator(name: str, options: argparse.Namespace) -> Any:
    """An instance with the parameters of its case, and those that were asked for, which win."""
    params = dict(map(_parameter, options.set))
    if options.epsilon is not None:
        params["epsilon"] = options.epsilon
    if name in CASES:
        case = CASES[name]
        budget = {} if "rho" in params else {"epsilon": case.epsilon}
        return getattr(sklearn_dp, name)(**{**case.params, **budget, **params})
    if name in sklearn_dp.__all__:
        return getattr(sklearn_dp, name)(**params)
    module, _, attribute = name.partition(":")
    if not attribute:
        raise SystemExit(
            f"{name!r} is not an estimator of sklearn_dp; name others as module:Class."
        )
    try:
        return getattr(importlib.import_module(module), attribute)(**params)
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
