"""The law of a kind of event on a recording, as the audit knows it.

Three audits ask a law three different questions:

1. the replay: given the recorded event and that of a neighbor, is the distance of the two exact
   statistics within the claim, and which output is forced on the neighbor (`Law.replay`)?
2. the claims: do sensitivity, scale and cost of one event fit together (`Law.claims`), and what
   does it cost in zCDP (`Law.rho`, `Law.delta`)?
3. the tests of the noise: which numbers are uniform if the noise follows its claim (`Law.numbers`)?

The third is the randomized probability integral transform. Let F be the claimed distribution
function of the ideal noise, and k the integer that it was rounded to. Then a uniform number between
F(k - 1/2) and F(k + 1/2) is uniform on [0, 1], exactly, however coarse the rounding is. So one set
of exact tests serves all laws, for scales of half a step and of 2^40 steps alike.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

CLOSE = 1 - 1e-12
"""Of a comparison in floating point; scales are rounded up, so none is needed the other way."""


_ROOM = 2**62


class UnknownLawError(LookupError):
    """An event of a kind that the audit does not know."""


@dataclass(frozen=True)
class Law:
    """One kind of event, known independently of the kernel.

    Parameters
    ----------
    replay : callable
        ``replay(player, known, event)`` compares the event of a neighbor with the recorded one
        and returns the output that is forced on the neighbor.
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
        Whether the cost that a replay realizes is in the currency of `rho`. That of pure mechanisms
        is an epsilon, which is compared with the event's own and does not add up with the others.
    """

    replay: Callable[..., Any]
    numbers: Callable[..., Any]
    claims: Callable[..., Any]
    rho: Any = None
    delta: Callable[..., Any] = field(default_factory=lambda: stated_delta)
    folded: bool = False
    in_rho: bool = False


def no_claims(event: Any) -> tuple[()]:
    """Nothing is claimed."""
    return ()


def keep_recorded(player: Any, known: Any, event: Any) -> Any:
    """The output depends on nothing that may differ: the same for both neighbors."""
    return known.output


def no_numbers(event: Any) -> tuple[np.ndarray, np.ndarray]:
    """Nothing random that has a law to test."""
    return np.empty(0), np.empty(0)


def stated_delta(event: Any) -> float:
    """The failure probability that is among the public facts of an event."""
    return event.public.get("delta", 0.0)


def free(event: Any) -> float:
    """No failure probability."""
    return 0.0


def same_shape(player: Any, known: Any, event: Any, what: str = "value") -> bool:
    """True if two statistics have the same shape; if not, the player is told. Shapes are public:
    one that depends on the data tells how many rows there are."""
    same = np.shape(getattr(known, what)) == np.shape(getattr(event, what))
    if not same:
        player.blame(event, "shape differs between neighbors")
    return same


def around(noise: np.ndarray, scale: Any, cdf: Callable[..., Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return the claimed distribution function below and above the rounding of ideal noise, in
    integer steps."""
    return cdf((noise - 0.5) / scale), cdf((noise + 0.5) / scale)


def wraps(event: Any) -> Iterator[str]:
    """The complaint where a sum has no room in its integers: a cast of NaN, or one that wraps.
    Neighbors may agree about such a number: -2**63 of each chunk tells how many there are."""
    value = np.asarray(event.value)
    if value.dtype == np.int64 and np.any((value >= _ROOM) | (value <= -_ROOM)):
        yield f"{event.entry}: a statistic of 2**62 or more, which int64 may not hold"


def too_little(event: Any, enough: Any) -> Iterator[str]:
    """Complain where a noise scale does not reach what sensitivity and cost ask for; NaN is a
    complaint."""
    if not np.all(enough >= np.asarray(event.sensitivity) * CLOSE):
        yield f"{event.entry}: too little noise for its sensitivity and cost"
