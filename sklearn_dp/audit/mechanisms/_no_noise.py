"""Events that are no noise: randomness of the algorithm, conditions, the head of a step.

They cost nothing, but a replay has to know them. Where an algorithm draws at random which block a
unit goes to, two fits are compared under a *coupling*: the units that both data sets have go where
they went before, and only the added unit draws anew. That is a valid proof technique (the law of
either fit is what it was), and without it neighbors would differ everywhere.

* "seed": of scikit-learn's code inside a fit; it depends on no data, so both fits get the same.
* "draws": 64 bits for each unit (`_couple`). "copies": how often each unit is in a bootstrap sample
  (`_copies`). "order": a random order of points (`_match`). "sample": of a public number of blocks.
* "condition": what a theorem assumes of the data (`_condition`).
* "step": a part of the algorithm that is charged as a whole; its inner events follow.
"""

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from ._law import Law, keep_recorded, no_claims, no_numbers

_OTHERS = "units are not those of the data"


def _couple(player: Any, known: Any, event: Any) -> np.ndarray:
    """Give the units that both data sets have the randomness they had."""
    added = player.units < 0
    if len(event.output) != len(added) or player.units.max(initial=-1) >= len(known.output):
        # Two persons were taken for one: there is nobody to give some of the draws to.
        player.blame(event, _OTHERS)
        return event.output
    if not len(known.output):
        return event.output
    return np.where(added, event.output, known.output[np.where(added, 0, player.units)])


def _match(player: Any, known: Any, event: Any) -> np.ndarray:
    """The points go where their partners went: a bijection of the orders. Partners are found by the
    smallest total distance, so all but the changed point meet themselves. A bijection of the orders
    takes the uniform law to itself, hence the coupling is valid."""
    return linear_sum_assignment(cdist(known.value, event.value))[1][known.output]


def _copies(player: Any, known: Any, event: Any) -> Any:
    """A unit of several copies changes several blocks: the pair shows nothing."""
    if player.units.max(initial=-1) >= len(known.value):
        player.blame(event, _OTHERS)
        return
    gone = np.ones(len(known.value), dtype=bool)
    gone[player.units[player.units >= 0]] = False
    if np.any(event.value[player.units < 0] > 1) or np.any(known.value[gone] > 1):
        player.voided.append("copies")


def _condition(player: Any, known: Any, event: Any) -> Any:
    """Without it, on either side, the pair says nothing about what follows."""
    if not (known.value and event.value):
        player.voided.append(event.entry)


def _word_numbers(event: Any) -> tuple[np.ndarray, np.ndarray]:
    """64 uniform bits for each unit."""
    words = np.asarray(event.output, dtype=np.float64) * 2.0**-64
    return words, words


def _order_numbers(event: Any) -> tuple[np.ndarray, np.ndarray]:
    """The rank of each index among those not yet taken is uniform, and they are independent. The
    piece of [0, 1] that belongs to each rank."""
    order = np.asarray(event.output)
    size = event.public.get("n", len(order))
    ranks = np.array(
        [index - np.count_nonzero(order[:place] < index) for place, index in enumerate(order)],
        dtype=np.float64,
    )
    choices = size - np.arange(len(order))
    return ranks / choices, (ranks + 1) / choices


# Only what follows from these is a release; what a step costs is a theorem that its caller proves.
LAWS = {
    "seed": Law(keep_recorded, no_numbers, no_claims),
    "draws": Law(_couple, _word_numbers, no_claims),
    "order": Law(_match, _order_numbers, no_claims),
    "sample": Law(keep_recorded, _order_numbers, no_claims),
    "copies": Law(_copies, no_numbers, no_claims),
    "condition": Law(_condition, no_numbers, no_claims),
    "runs": Law(keep_recorded, no_numbers, no_claims),
    "step": Law(keep_recorded, no_numbers, no_claims, rho=lambda event: event.cost),
}
