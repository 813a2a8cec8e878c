"""Friendly-core filters: which units stay, by a noisy score or by exact chances.

A filter of a friendly core decides about each unit: it stays if it has many friends. What is
released is what later steps make of the core, never the decisions themselves; so the theorem is
about the core as a whole, its caller proves it, and from one event nothing can be said about its
scale (`no_claims`). What can be audited:

* *the decisions*: that they have the chances that the event states (`kept`);
* *the scores*: that those of neighbors are as close as the theorem assumes, but for units that are
  *bad* (they have so few friends that they survive with a probability below delta). Where a bad
  unit did survive, the recording is an event of the failure probability and the pair is voided.

For the Gaussian filter ("filter") a score is compared with scores: an added unit moves each of them
a little (twice the number of friends minus the size: by one, up or down), so the distance is the
largest move. For that by exact chances ("bernoulli") the values are the chances themselves,
compared in l1.
"""

from typing import Any

import numpy as np
from scipy.special import ndtr

from ._law import Law, no_claims


def kept(chance: np.ndarray, keep: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Independent decisions: the likely one in the middle of the normal law, the other in a tail.

    Less noise than claimed makes likely decisions likelier, and the sum of squares smaller. Only
    the upper half of the law is used (see `Law.folded`). Low and high ends, above 1/2: the piece of
    the likely outcome begins at 1/2 and has its chance as its length (times 1/2), the other one has
    the rest.
    """
    likely = np.maximum(chance, 1 - chance)
    usual = keep == (chance >= 0.5)
    return (1 + np.where(usual, 0.0, likely)) / 2, (1 + np.where(usual, likely, 1.0)) / 2


def _filter_numbers(event: Any) -> tuple[np.ndarray, np.ndarray]:
    """A unit stays if ``score + round(scale Z) >= threshold``: for integers, Z above a level."""
    level = np.ceil(event.public["threshold"]) - event.value - 0.5
    return kept(ndtr(-level / event.scale), event.output)


def _realized(player: Any, event: Any, shift: Any) -> None:
    """The largest move against the claim; the cost of all of them as Gaussian shifts."""
    largest = float(np.abs(shift).max(initial=0.0))
    player.account(
        event, largest / event.sensitivity, float(np.sum(np.square(shift / event.scale)) / 2)
    )


def _places(player: Any, known: Any, event: Any) -> np.ndarray:
    """Where in the recording each present element is; -1 for one that is not there. Elements are
    all units, or those of a sample, which say their numbers."""
    present = np.arange(len(player.units)) if event.units is None else event.units
    before = np.arange(len(known.value)) if known.units is None else known.units
    place = {int(number): i for i, number in enumerate(before)}
    return np.array([place.get(int(number), -1) for number in player.units[present]], dtype=int)


def _common(
    player: Any, known: Any, event: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """For each present unit: its place in the recording, whether common, the recorded decision; and
    who is gone."""
    places = _places(player, known, event)
    common, keep = places >= 0, np.zeros(len(places), dtype=bool)
    keep[common] = known.output[places[common]]
    gone = np.ones(len(known.value), dtype=bool)
    gone[places[common]] = False
    return places, common, keep, gone


def _replay_filter(player: Any, known: Any, event: Any) -> Any:
    """A friendly-core filter: see :mod:`sklearn_dp._queries.averages`.

    An element that may be bad has a score of at most `bad` in both data sets, and survives
    only within delta. All others must have close scores. An added unit stays if the player says so
    and it is not bad: the theorem covers both, and the audit may try either. The noise is enough
    for up to `most` units, a noisy count with room to spare; more of them fall under its delta.
    """
    if event.public["fixed"]:
        return _replay_fixed(player, known, event)
    places, common, keep, gone = _common(player, known, event)
    before = known.value[places[common]]
    bad = np.array(event.value <= event.public["bad"])
    bad[common] &= before <= known.public["bad"]
    if np.any(keep & bad) or np.any(gone & known.output & (known.value <= known.public["bad"])):
        player.voided.append(event.entry)
    keep[~common] = player.keep_added & ~bad[~common]
    if np.count_nonzero(common) > event.public["most"]:
        player.voided.append(event.entry)
        return keep
    _realized(player, event, (event.value[common] - before).astype(np.float64))
    return keep


def _replay_fixed(player: Any, known: Any, event: Any) -> Any:
    """A filter on a public number of block results: one of them is another, we know not which. It
    is the one whose score moves most, or moving it less would cost less. So all the others have to
    be close, and the replaced one is free to be anything; at most one kept result may turn bad."""
    if len(known.value) != len(event.value):
        player.blame(event, "shape differs between neighbors")
        return known.output
    bad = event.public["bad"]
    dropped = known.output & (event.value <= bad)
    if np.any(known.output & (known.value <= bad)) or np.count_nonzero(dropped) > 1:
        player.voided.append(event.entry)
    shift = np.abs((event.value - known.value).astype(np.float64))
    _realized(player, event, np.sort(shift)[:-1])
    return known.output & ~dropped


def _replay_bernoulli(player: Any, known: Any, event: Any) -> Any:
    """A smooth filter: probabilities of the common units, close in l1. The added and the removed
    unit count with their whole chance: the theorem bounds the total."""
    places, common, keep, gone = _common(player, known, event)
    before = known.value[places[common]]
    keep[~common] = player.keep_added & (event.value[~common] > 0)
    if np.any(keep & (event.value <= 0)):
        player.voided.append(event.entry)
    total = float(
        np.abs(event.value[common] - before).sum()
        + event.value[~common].sum()
        + np.sum(known.value[gone])
    )
    player.account(event, total / event.sensitivity, 0.0)
    return keep


# What a filter costs is a theorem about the whole core, which its caller proves: from the event
# alone, nothing can be said about its scale.
LAWS = {
    "filter": Law(
        _replay_filter,
        _filter_numbers,
        no_claims,
        rho=lambda event: event.cost,
        folded=True,
        in_rho=True,
    ),
    "bernoulli": Law(
        _replay_bernoulli,
        lambda event: kept(event.value, event.output),  # the values are the chances
        no_claims,
        rho=lambda event: event.cost,
        folded=True,
    ),
}
