"""The command line: ``sklearn-dp COMMAND ...``, or ``python -m sklearn_dp COMMAND ...``."""

import sys
from importlib import import_module

__all__ = ["main"]

_COMMANDS = {
    "ledger": (".ledger", "create, show and verify privacy ledgers"),
    "profile": (".segments._command", "describe a CSV file by segments, and write the pages"),
}


def main(argv: list[str] | None = None) -> int:
    """Run one of the commands.

    Parameters
    ----------
    argv : list of str, optional
        `sys.argv[1:]` by default.

    Returns
    -------
    status : int
        That of the command; 2 if there is no such command.
    """
    name, *rest = (sys.argv[1:] if argv is None else argv) or ["--help"]
    if name in _COMMANDS:
        module = import_module(_COMMANDS[name][0], __package__)
        status: int = module.main(rest)
        return status
    lines = [f"  {command:8} {about}" for command, (_, about) in _COMMANDS.items()]
    asked = name in ("-h", "--help")
    print(
        "usage: sklearn-dp COMMAND ... (--help after a command says more)", *lines,
        sep="\n", file=sys.stdout if asked else sys.stderr,
    )  # fmt: skip
    return 0 if asked else 2


if __name__ == "__main__":
    sys.exit(main())
