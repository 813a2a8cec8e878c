"""Histograms of cells that nobody could list in advance.

As in :mod:`.histograms`, but only occupied cells can be published, so a cell that only one of two
neighbors has must stay below `low`; all of these do but for the probability delta. Such a cell
holds one unit, and a unit is in a public number of `cells` at most, one if none is told.
"""

import math
from collections.abc import Iterator
from typing import Any

from scipy.special import ndtr

from ._law import Law
from .histograms import _claims, _counts, _published


def _claims_stability(event: Any) -> Iterator[str]:
    """And 1 + noise reaches the threshold with probability at most delta, in any cell of a unit.
    ``round(1 + scale Z) >= low`` for an integer `low` is ``scale Z >= low - 3/2``."""
    yield from _claims(event)
    tail = float(ndtr(-(event.public["low"] - 1.5) / event.scale))
    if tail * event.public.get("cells", 1) > event.public["delta"] * (1 + 1e-9):
        yield f"{event.entry}: its threshold shows cells of a single unit"


def _replay_stability(player: Any, known: Any, event: Any) -> Any:
    """A cell that only one data set has may not be seen, and holds one unit.

    If the recording published one that the neighbor does not have, it is one of the outcomes that
    delta pays for, and the pair shows nothing. The other cells are compared in l2; the lone one is
    compared with the claim alone, as its noise is not what protects it.
    """
    before, after = _counts(known), _counts(event)
    if set(known.output[0].tolist()) - after.keys():
        player.voided.append(event.entry)
    both = before.keys() & after.keys()
    square = float(sum((after[c] - before[c]) ** 2 for c in both))
    cells = event.public.get("cells", 1)
    lone = [[d[c] for c in d.keys() - both] for d in (before, after)]
    alone = max(max(sum(counts) / cells, max(counts, default=0)) for counts in lone)
    player.account(
        event, max(math.sqrt(square) / event.sensitivity, alone), square / event.scale**2 / 2
    )
    return known.output


LAWS = {
    "stability": Law(
        _replay_stability, _published, _claims_stability, rho=lambda event: event.cost, in_rho=True
    ),
}
