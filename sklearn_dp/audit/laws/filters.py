"""Friendly-core filters: which units stay, by a noisy score or by exact chances."""

import numpy as np
from scipy.special import ndtr

from ._law import Law, no_claims

__all__ = ["LAWS", "kept"]


def kept(chance, keep):
    """Independent decisions: the likely one in the middle of the normal law, the other in a tail.

    Less noise than claimed makes likely decisions likelier, and the sum of squares smaller. Only
    the upper half of the law is used (see `Law.folded`).
    """
    likely = np.maximum(chance, 1 - chance)
    usual = keep == (chance >= 0.5)
    return (1 + np.where(usual, 0.0, likely)) / 2, (1 + np.where(usual, likely, 1.0)) / 2


def _filter_numbers(event):
    level = np.ceil(event.public["threshold"]) - event.value - 0.5
    return kept(ndtr(-level / event.scale), event.output)


def _bernoulli_numbers(event):
    return kept(event.value, event.output)


def _realized(player, event, shift):
    largest = float(np.abs(shift).max(initial=0.0))
    player.account(
        event, largest / event.sensitivity, float(np.sum(np.square(shift / event.scale)) / 2)
    )


def _common(player, known):
    """Which present units are in the recording, what became of them there, and which are gone."""
    common = player.units >= 0
    keep = np.zeros(len(player.units), dtype=bool)
    keep[common] = known.output[player.units[common]]
    gone = np.ones(len(known.value), dtype=bool)
    gone[player.units[common]] = False
    return common, keep, gone


def _replay_filter(player, known, event):
    """A friendly-core filter: see :mod:`sklearn_dp._aggregate.friendly.core`.

    An element that may be bad has a score of at most `bad` in both data sets, and survives
    only within delta. All others must have close scores.
    """
    if event.public["fixed"]:
        return _replay_fixed(player, known, event)
    common, keep, gone = _common(player, known)
    before = known.value[player.units[common]]
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


def _replay_fixed(player, known, event):
    """A filter on a public number of block results: one of them is another, we know not which.

    It is the one whose score moves most, or moving it less would cost less.
    """
    if len(known.value) != len(event.value):
        player.blame(event, "shape differs between neighbours")
        return known.output
    bad = event.public["bad"]
    dropped = known.output & (event.value <= bad)
    if np.any(known.output & (known.value <= bad)) or np.count_nonzero(dropped) > 1:
        player.voided.append(event.entry)
    shift = np.abs((event.value - known.value).astype(np.float64))
    _realized(player, event, np.sort(shift)[:-1])
    return known.output & ~dropped


def _replay_bernoulli(player, known, event):
    """A smooth filter: probabilities of the common units, close in l1."""
    common, keep, gone = _common(player, known)
    before = known.value[player.units[common]]
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
        _replay_bernoulli, _bernoulli_numbers, no_claims, rho=lambda event: event.cost, folded=True
    ),
}
