"""The logger ``sklearn_dp``: charges, releases and steps, as they happen.

A line holds nothing that the ledger, the plan or the report of the fit does not show anyway: names,
costs and scales, and never what was released or counted. Which lines there are, and in which order,
follows from parameters and releases. So fits inside a fit, of which not all need to be released
(the runs of a search), are silent, as their number is secret, and so are fits of other libraries
(:mod:`sklearn_dp._silence.suppress_output`).
"""

import logging
from typing import Any

from .disjoint import EVERYONE, payers_in_words
from .ledger_terms import LedgerCharge
from .plan import PrivacyPlan

LOGGER = logging.getLogger("sklearn_dp")
LOGGER.addHandler(logging.NullHandler())
_UNNAMED = "session"


def log_charge(place: str | None, charge: LedgerCharge) -> None:
    """A ledger was charged: that of path `place`, or for None one in memory."""
    LOGGER.info(
        "ledger %s: charged (%.6g, %.3g)-DP for %s%s",
        place or "in memory",
        charge.epsilon,
        charge.delta,
        charge.label or "a fit",
        "" if charge.payers == EVERYONE else f" on {payers_in_words(charge.payers)}",
    )


def log_plan(label: str, plan: PrivacyPlan) -> None:
    """A session was opened: what it may release, and for how much."""
    if LOGGER.isEnabledFor(logging.INFO):  # the epsilon of a plan takes some work
        LOGGER.info(
            "%s: (%.6g, %.3g)-DP for one %s; may release %s",
            label or _UNNAMED,
            plan.epsilon,
            plan.target.delta,
            plan.unit,
            ", ".join(entry.name for entry in plan.entries),
        )


def log_release(label: str, line: dict[str, Any]) -> None:
    """Something was released: a line of the report, without the number itself."""
    part = f" of part {line['part']}" if "part" in line else ""
    LOGGER.debug(
        "%s: released %s%s (%s, sigma %.4g, rho %.4g)",
        label or _UNNAMED,
        line["release"],
        part,
        line["mechanism"],
        line["sigma"],
        line["rho"],
    )
