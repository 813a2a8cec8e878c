"""The noise laws as the audit knows them, independently of the kernel.

One module for each law of :mod:`sklearn_dp._privacy.mechanisms`, of the same name: how neighbors
are compared, what is claimed, and what the noise looks like if the claim is true. They are written
from the theorems, and import nothing of the kernel: an audit that asked the code under test for a
scale, a density or a cost would agree with whatever it says
(`tests/audit/mechanisms/test_mechanisms.py` demands it, and compares the two sides).

A kind of event that no module knows is an error of the audit: to pass it in silence would be to
vouch for it. Start reading at :mod:`~sklearn_dp.audit.mechanisms._law`, then `gaussian`.
"""

from typing import Any

from . import (
    _no_noise,
    filters,
    fits,
    gaussian,
    histograms,
    laplace,
    proportional,
    selection,
    shares,
    stability,
)
from ._law import Law, UnknownLawError

__all__ = ["KINDS", "Law", "UnknownLawError", "law_of"]

_MODULES = (
    fits,
    gaussian,
    laplace,
    selection,
    histograms,
    stability,
    filters,
    proportional,
    shares,
    _no_noise,
)

KINDS = {kind: law for module in _MODULES for kind, law in module.LAWS.items()}
"""All the kinds of events that the audit knows."""


def law_of(event: Any) -> Law:
    """The law of a recorded event: how to compare it, what it claims, what its noise has to be.
    Never a default: a release that nobody compares or tests would pass every audit."""
    try:
        return KINDS[event.kind]
    except KeyError:
        raise UnknownLawError(
            f"{event.entry or 'an event'} is of the kind {event.kind!r}, which the audit does not "
            "know: add it to a module of sklearn_dp.audit.mechanisms."
        ) from None


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name[:2] == "__")})
