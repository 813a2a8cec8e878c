"""Whose mistake is an exception: of the code under test, of the audit, or of a mutant?

A check that runs broken code can end in three ways besides passing:

* it complains (`AssertionError`), or the broken code crashes. Both are findings;
* the audit's own code crashes. That says nothing about the estimator: a typing error in a check
  would otherwise "kill" every mutant, and a release that the audit cannot compare would look like a
  fit that fails;
* the mutant's own code crashes, because the code that it was written for has changed: a parameter
  has another name, an attribute is gone. Such a mutant is found by everybody, and proves nothing
  any more.

The traceback tells them apart. Frames of libraries are passed over: numpy raises for whoever calls
it.
"""

import dis
import sys
import traceback
from typing import Any

__all__ = ["Explosion", "is_of_audit", "is_of_mutant"]

_PACKAGE = __package__.split(".")[0]
_LIBRARIES = {"numpy", "scipy", "sklearn", "joblib", "threadpoolctl", "dp_accounting"}
# What stands for broken code, and is no part of the audit.
_PLANTED = (f"{__package__}.mutants", f"{__package__}._mutation")


class Explosion(Exception):
    """Raised by the audit inside a fit on purpose; not an error that an estimator would handle."""


def is_of_audit(error: BaseException, *, inside_fit: bool = False) -> bool:
    """Whether the audit itself raised an exception by mistake.

    Assertions and an `Explosion` are no mistakes. It did if the innermost frame that is not a
    library's is one of the audit. `inside_fit`: only what the audit does after a fit has begun
    counts, such as its comparison of a release. The call of the fit itself may be at the end of the
    traceback of an estimator written in C.
    """
    if isinstance(error, AssertionError | Explosion):
        return False
    modules = [_module(frame) for frame, _ in traceback.walk_tb(error.__traceback__)]
    if inside_fit:
        while modules and _is_audit(modules[0]):
            modules.pop(0)
    last = next((name for name in reversed(modules) if not _is_library(name)), "")
    return _is_audit(last)


def is_of_mutant(error: BaseException) -> bool:
    """Whether a mutant that raised an exception did so by mistake.

    The first frame of the traceback is the call of the mutant. It did if no code of the package was
    running, and no ``raise`` of the mutant either: a mutant may be there to refuse what should be
    accepted.
    """
    modules = [_module(frame) for frame, _ in traceback.walk_tb(error.__traceback__)]
    own, audit = f"{_PACKAGE}.", f"{__package__}."
    if any(f"{name}.".startswith(own) and not f"{name}.".startswith(audit) for name in modules):
        return False
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None or _is_library(_module(last.tb_frame)):
        return True
    code = last.tb_frame.f_code.co_code
    return code[last.tb_lasti] != dis.opmap["RAISE_VARARGS"]


def _module(frame: Any) -> str:
    return frame.f_globals.get("__name__", "")


def _is_library(name: str) -> bool:
    top = name.split(".")[0]
    return top != "__main__" and (top in _LIBRARIES or top in sys.stdlib_module_names)


def _is_audit(name: str) -> bool:
    return f"{name}.".startswith(f"{__package__}.") and not name.startswith(_PLANTED)
