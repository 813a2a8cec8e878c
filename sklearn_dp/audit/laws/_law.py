"""What the audit has to know about a kind of event on a recording."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

__all__ = ["CLOSE", "Law", "free", "no_claims", "no_numbers", "same_shape"]

CLOSE = 1 - 1e-12
"""Of a comparison in floating point; scales are rounded up, so none is needed the other way."""


@dataclass(frozen=True)
class Law:
    """One kind of event, known independently of the kernel.

    Attributes
    ----------
    replay : callable
        ``replay(player, known, event)`` compares the event of a neighbour with the recorded one
        and returns the output that is forced on the neighbour.
    numbers : callable
        ``numbers(event)`` gives two arrays, `low` and `high`. If the claim holds, uniform numbers
        between them are independent and uniform on [0, 1].
    claims : callable
        ``claims(event)`` yields what is wrong with the event alone, in words.
    rho : callable or None
        ``rho(event)`` is its zCDP cost. None: it costs nothing of its own.
    delta : callable
        ``delta(event)`` is its failure probability.
    folded : bool
        Whether `numbers` are of the upper half of the law only: the sign says nothing.
    in_rho : bool
        Whether the cost that a replay realizes is in the currency of `rho`.
    """

    replay: Callable
    numbers: Callable
    claims: Callable
    rho: Callable | None = None
    delta: Callable = lambda event: event.public.get("delta", 0.0)
    folded: bool = False
    in_rho: bool = False


def no_claims(event):
    """Nothing is claimed."""
    return ()


def no_numbers(event):
    """Nothing random that has a law to test."""
    return np.empty(0), np.empty(0)


def free(event):
    """No failure probability."""
    return 0.0


def same_shape(player, known, event, what="value"):
    """Whether two statistics have the same shape; if not, the player is told."""
    same = np.shape(getattr(known, what)) == np.shape(getattr(event, what))
    if not same:
        player.blame(event, "shape differs between neighbours")
    return same


def around(noise, scale, cdf):
    """Claimed distribution function below and above the rounding of ideal noise."""
    return cdf((noise - 0.5) / scale), cdf((noise + 0.5) / scale)


def too_little(event, enough):
    """The complaint where a noise scale does not reach what sensitivity and cost ask for."""
    if not np.all(enough >= np.asarray(event.sensitivity) * CLOSE):
        yield f"{event.entry}: too little noise for its sensitivity and cost"
