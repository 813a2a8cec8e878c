"""The noise laws as the audit knows them, written from the theorems, independently of the kernel.

For each kind of event: is the distance of two exact statistics within the claim, and which output
is forced on the neighbor (`Law.replay`)? Do sensitivity, scale and cost fit together
(`Law.claims`)? Which numbers are uniform if the noise follows its claim (`Law.numbers`)?

The third is the randomized probability integral transform. Let F be the claimed distribution
function of the ideal noise, and k the integer that it was rounded to. Then a uniform number between
F(k - 1/2) and F(k + 1/2) is uniform on [0, 1], exactly, however coarse the rounding is.

Nothing is imported from the kernel: an audit that asked the code under test would agree with
whatever it says. A kind of event that is not in `KINDS` is an error.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from scipy.special import betaincc, ndtr

from ._epsilon_bounds import (
    gaussian_delta,
    is_zcdp,
    proportional_numbers,
    replay_proportional,
    rho_of_laplace,
    rho_of_pure,
    rho_of_range,
)

_CLOSE = 1 - 1e-12  # of a comparison of floats; scales are rounded up, so the other way needs none
_CLOSE_DELTA = 1e-6  # relative: two ways to compute a delta agree much better than this
_ROOM = 2**62
_NONE = np.empty(0)
Numbers = tuple[np.ndarray, np.ndarray]


class UnknownLawError(LookupError):
    """An event of a kind that the audit does not know."""


def _keep_recorded(player: Any, known: Any, event: Any) -> Any:
    """Return the recorded output: it depends on nothing that may differ."""
    return known.output


@dataclass(frozen=True)
class Law:
    """What the audit knows of one kind of event.

    * ``replay(player, known, event)`` compares the event of a neighbor with the recorded one and
      returns the output that is forced on the neighbor;
    * ``numbers(event)`` returns two arrays. If the claim holds, uniform numbers between them are
      independent and uniform on [0, 1];
    * ``claims(event)`` yields what is wrong with the event alone, in words;
    * ``rho(event)`` is the zCDP cost that the event states. None: it costs nothing of its own;
    * `folded`: `numbers` are of the upper half of the law only, as the sign says nothing;
    * `in_rho`: the cost that a replay realizes adds up in rho. That of a pure mechanism is an
      epsilon, which is compared with the event's own."""

    replay: Callable[[Any, Any, Any], Any] = _keep_recorded
    numbers: Callable[[Any], Numbers] = lambda event: (_NONE, _NONE)
    claims: Callable[[Any], Any] = lambda event: ()
    rho: Callable[[Any], float] | None = None
    folded: bool = False
    in_rho: bool = False


def law_of(event: Any) -> Law:
    """Return the law of a recorded event; there is no default, as it would pass every audit."""
    try:
        return KINDS[event.kind]
    except KeyError:
        raise UnknownLawError(
            f"{event.entry or 'an event'} is of the kind {event.kind!r}, which the audit does not "
            "know: add it to KINDS of sklearn_dp.audit._laws."
        ) from None


def _stated(event: Any) -> float:
    return float(event.cost)


def _same_shape(player: Any, known: Any, event: Any, what: str = "value") -> bool:
    """True if two statistics have the same shape, which is public; otherwise the player is told."""
    same = np.shape(getattr(known, what)) == np.shape(getattr(event, what))
    if not same:
        player.blame(event, "shape differs between neighbors")
    return same


def _around(noise: np.ndarray, scale: Any, cdf: Callable[..., Any]) -> Numbers:
    """Return the claimed distribution function below and above the rounding of ideal noise."""
    return cdf((noise - 0.5) / scale), cdf((noise + 0.5) / scale)


def _wraps(event: Any) -> Iterator[str]:
    """Complain of a sum that has no room in int64: a cast of NaN, or one that wraps. Neighbors may
    agree about it: -2**63 of each chunk tells how many there are."""
    value = np.asarray(event.value)
    if value.dtype == np.int64 and np.any((value >= _ROOM) | (value <= -_ROOM)):
        yield f"{event.entry}: a statistic of 2**62 or more, which int64 may not hold"


def _too_little(event: Any, enough: Any) -> Iterator[str]:
    """Complain of a scale that does not reach what sensitivity and cost ask for, or of NaN."""
    if not np.all(enough >= np.asarray(event.sensitivity) * _CLOSE):
        yield f"{event.entry}: too little noise for its sensitivity and cost"


# -- Gaussian noise --------------------------------------------------------------------------------
# The statistic is a vector of integers that moves by at most one in the norm
# ``sum_i ((v_i - v'_i) / sensitivity_i)^2``, and the noise is ``round(scale Z)``. Rounding after an
# integer is added is the same as rounding before, so the release is post-processing of the ideal
# Gaussian mechanism, and costs ``(sensitivity / scale)^2 / 2`` in rho. An inner draw of a step that
# is charged as a whole claims (epsilon, delta)-DP on its own, and realizes no cost.


def _squared_shift(known: Any, event: Any, scale: float | np.ndarray) -> float:
    """Squared l2 distance of two integer statistics of any size, in units of `scale`."""
    # Differences of Python integers: those of int64 could wrap around, those of floats be rounded.
    shift = np.asarray(event.value, dtype=object) - np.asarray(known.value, dtype=object)
    return float(np.sum(np.square(np.asarray(shift, dtype=np.float64) / scale)))


def _gaussian_numbers(event: Any) -> Numbers:
    # A sum may hold more shares of the noise than are needed.
    scale = np.asarray(event.scale) * np.sqrt(event.public.get("shares", 1.0))
    return _around(np.asarray(event.output - event.value, dtype=np.float64), scale, ndtr)


def _replay_gaussian(player: Any, known: Any, event: Any) -> Any:
    if _same_shape(player, known, event):
        inner = event.kind.startswith("inner")
        cost = 0.0 if inner else _squared_shift(known, event, event.scale) / 2
        distance = math.sqrt(_squared_shift(known, event, event.sensitivity))
        player.account(event, distance, cost)
    return known.output


def _enough_gaussian(event: Any) -> Iterator[str]:
    """``scale >= sensitivity / sqrt(2 rho)``: the cost of a shift, solved for the scale."""
    return _too_little(event, np.asarray(event.scale) * math.sqrt(2 * event.cost))


def _claims_gaussian(event: Any) -> Iterator[str]:
    yield from _enough_gaussian(event)
    yield from _wraps(event)


def _claims_inner_gaussian(event: Any) -> Iterator[str]:
    """(epsilon, delta)-DP of a shift by the sensitivity, by integration of the privacy loss."""
    mu = float(np.max(np.asarray(event.sensitivity) / np.asarray(event.scale)))
    if not gaussian_delta(mu, event.cost) <= event.public["delta"] * (1 + _CLOSE_DELTA):
        yield f"{event.entry}: too little noise for its sensitivity and cost"
    yield from _wraps(event)


# -- Laplace noise ---------------------------------------------------------------------------------
# The statistic is a vector of integers that moves by at most `sensitivity` in l1, and the noise is
# ``round(scale L)`` for L of the density exp(-abs(x)) / 2. The privacy loss is then at most
# ``sensitivity / scale``, so the release is pure DP with that epsilon, which is its `cost`.
# A step may ask for the noise of a vector in which one element is the unit's own (`own`): it is
# replaced by another one between neighbors, its theorem covers that element separately, and the
# sensitivity is a claim about all the others.


def _laplace_cdf(x: float | np.ndarray) -> np.ndarray:
    return np.where(x < 0, np.exp(np.minimum(x, 0)) / 2, 1 - np.exp(-np.maximum(x, 0)) / 2)


def _laplace_numbers(event: Any) -> Numbers:
    noise = np.asarray(event.output - event.value, dtype=np.float64)
    return _around(noise, event.scale, _laplace_cdf)


def _claims_laplace(event: Any) -> Iterator[str]:
    """``scale >= sensitivity / epsilon``."""
    yield from _too_little(event, np.asarray(event.scale) * event.cost)
    yield from _wraps(event)


def _replay_laplace(player: Any, known: Any, event: Any) -> Any:
    if _same_shape(player, known, event):
        shift = np.asarray(event.value, dtype=object) - np.asarray(known.value, dtype=object)
        moves = np.sort(np.abs(np.ravel(shift)).astype(np.float64))
        # The value of the replaced element itself is the one that moves most, or less is claimed.
        total = float((moves[:-1] if event.public.get("own") else moves).sum())
        cost = 0.0 if event.kind.startswith("inner") else total / event.scale
        player.account(event, total / event.sensitivity, cost)
    return known.output


# -- choices of an index ---------------------------------------------------------------------------
# Every score (query) is an integer that moves by at most `sensitivity`, and
#
# * exponential mechanism: index i has a probability proportional to exp(scale score_i), so `scale`
#   is a rate. Log-ratios of neighbors lie in a range of 2 scale sensitivity = epsilon;
# * above threshold (a "choice" with a threshold): the answer is the first query that, with Laplace
#   noise of twice `scale`, reaches the threshold with Laplace noise of `scale`, or -1; epsilon-DP
#   for scale >= 2 sensitivity / epsilon (half of epsilon for the threshold, half for the one query
#   that answers);
# * a clear lead: the best candidate, if its lead over the second plus Laplace noise of `scale`
#   reaches the threshold, or -1. Where neighbors agree on the best one, its lead moves by at most
#   2 sensitivity; where they do not, the lead is at most that on both, and delta bounds that it is
#   told.
#
# Costs are an epsilon. The noise of a choice cannot be seen, only the index: its test needs the
# chances of all indices under the claim, one number for each choice.

_FINE = 1000.0  # scales beyond this are scaled down to it: chances change by about one in 1000
_REACH = 45.0  # in scales: exp(-45) is nothing


def _is_threshold(event: Any) -> bool:
    return "threshold" in event.public


def _rho_choice(event: Any) -> float:
    """The exponential mechanism costs up to four times less, by its bounded range."""
    return rho_of_pure(event.cost) if _is_threshold(event) else rho_of_range(event.cost)


def _claims_choice(event: Any) -> Iterator[str]:
    """Above threshold: scale >= 2 sensitivity / epsilon. Exponential: its rate is the inverse."""
    scale = np.asarray(event.scale)
    enough = scale * event.cost / 2 if _is_threshold(event) else event.cost / (2 * scale)
    return _too_little(event, enough)


def _claims_lead(event: Any) -> Iterator[str]:
    """scale >= 2 sensitivity / epsilon, and a threshold that hides another winner."""
    yield from _too_little(event, np.asarray(event.scale) * event.cost / 2)
    low = event.public["threshold"] - 2 * event.sensitivity
    if float(_laplace_cdf(-(low - 0.5) / event.scale)) > event.public["delta"] * (1 + 1e-9):
        yield f"{event.entry}: its threshold shows a lead that neighbors do not share"


def _largest_shift(known: Any, event: Any) -> float:
    """How far the score moves that moves most; scores are at most 2^61: no overflow."""
    return float(np.abs(np.asarray(event.value) - known.value).max(initial=0))


def _replay_choice(player: Any, known: Any, event: Any) -> Any:
    """The realized epsilon is in proportion to the largest move: both claims are linear in it."""
    if _same_shape(player, known, event):
        moved = _largest_shift(known, event) / event.sensitivity
        player.account(event, moved, 0.0 if event.kind.startswith("inner") else event.cost * moved)
    return known.output


def _replay_lead(player: Any, known: Any, event: Any) -> Any:
    """The best candidate, told by its lead; another best one may not be told. With the same one
    only the lead matters, so half of its move counts if that is more than the scores moved."""
    if not _same_shape(player, known, event):
        return known.output
    before, after = (np.sort(e.value)[::-1].astype(np.float64) for e in (known, event))
    moved = _largest_shift(known, event)
    if known.value.argmax() == event.value.argmax():
        moved = max(moved, abs(after[0] - after[1] - before[0] + before[1]) / 2)
    elif known.output >= 0:
        player.voided.append(event.entry)
    player.account(event, moved / event.sensitivity, event.cost * moved / event.sensitivity)
    return known.output


def _choice_numbers(event: Any) -> Numbers:
    """Return where the index falls among the chances of all candidates: uniform under the claim."""
    if _is_threshold(event):
        chances = chances_above(event)
    else:  # up to a common factor; the largest is 1, so none overflows
        scores = np.asarray(event.value, dtype=np.float64)
        chances = np.exp((scores - scores.max()) * event.scale)
    above = np.concatenate([[0.0], np.cumsum(chances)]) / np.sum(chances)
    place = event.output + _is_threshold(event)  # "none" is -1 there, and comes first
    return above[place], above[place + 1]


def chances_above(event: Any) -> np.ndarray:
    """The chances of none, and of each query to be the first above the noisy threshold: products,
    given the noise of the threshold, over whose law these are averaged."""
    steps = max(event.scale / _FINE, 1.0)
    scale, level = event.scale / steps, event.public["threshold"] / steps
    queries = np.asarray(event.value, dtype=np.float64)[:, None] / steps
    noise = np.arange(-np.ceil(_REACH * scale), np.ceil(_REACH * scale) + 1)
    weights = _laplace_cdf((noise + 0.5) / scale) - _laplace_cdf((noise - 0.5) / scale)
    # v + round(L) >= level, for an integer v and round(L) of twice the scale of the level's noise.
    passes = 1 - _laplace_cdf((np.ceil(level + noise) - 0.5 - queries) / (2 * scale))
    still = np.cumprod(np.concatenate([np.ones((1, len(noise))), 1 - passes]), axis=0)
    each = still[:-1] * passes
    return np.concatenate([[still[-1] @ weights], each @ weights])


def _lead_numbers(event: Any) -> Numbers:
    """Told, and then the best candidate, if its lead and noise reach the threshold; else zeros."""
    best, second = np.sort(event.value)[:-3:-1]
    chance = 1 - _laplace_cdf((event.public["threshold"] - (best - second) - 0.5) / event.scale)
    positive = event.output >= 0
    possible = float(not positive or event.output == event.value.argmax())
    low, high = _decisions(np.array([chance]), np.array([positive]))
    return low * possible, high * possible


# -- histograms ------------------------------------------------------------------------------------
# The exact statistic is a pair of arrays (codes of occupied cells, their counts), over public
# candidates of which nearly all are empty ("sparse"). There is rounded Gaussian noise on every
# count, and published is every cell whose noisy count reaches the public level `low`. That is
# post-processing of a release of all the counts, so only their l2 distance matters. How many empty
# cells are published, and with which values, is tested as well.
#
# Of cells that nobody could list in advance ("stability") only occupied ones can be published, so a
# cell that only one of two neighbors has must stay below `low`; all of these do but for the
# probability delta. Such a cell holds one unit, and a unit is in a public number of `cells` at
# most, one if none is told.


def _counts(event: Any) -> dict[Any, int]:
    return dict(zip(*map(np.ndarray.tolist, event.value), strict=True))


def _replay_sparse(player: Any, known: Any, event: Any) -> Any:
    """l2 distance over all the cells: an empty one has the count 0."""
    before, after = _counts(known), _counts(event)
    cells = before.keys() | after.keys()
    square = float(sum((after.get(c, 0) - before.get(c, 0)) ** 2 for c in cells))
    player.account(event, math.sqrt(square) / event.sensitivity, square / event.scale**2 / 2)
    return known.output


def _claims_stability(event: Any) -> Iterator[str]:
    """And 1 + noise reaches the threshold with probability at most delta, in any cell of a unit.
    ``round(1 + scale Z) >= low`` for an integer `low` is ``scale Z >= low - 3/2``."""
    yield from _enough_gaussian(event)
    tail = float(ndtr(-(event.public["low"] - 1.5) / event.scale))
    if tail * event.public.get("cells", 1) > event.public["delta"] * (1 + 1e-9):
        yield f"{event.entry}: its threshold shows cells of a single unit"


def _replay_stability(player: Any, known: Any, event: Any) -> Any:
    """A cell that only one data set has may not be seen, and holds one unit.

    If the recording published it, it is one of the outcomes that delta pays for, and the pair shows
    nothing. Other cells are compared in l2; the lone one with the claim alone."""
    before, after = _counts(known), _counts(event)
    if set(known.output[0].tolist()) - after.keys():
        player.voided.append(event.entry)
    both = before.keys() & after.keys()
    square = float(sum((after[c] - before[c]) ** 2 for c in both))
    cells = event.public.get("cells", 1)
    lone = [[d[c] for c in d.keys() - both] for d in (before, after)]
    alone = max(max(sum(counts) / cells, max(counts, default=0)) for counts in lone)
    distance = max(math.sqrt(square) / event.sensitivity, alone)
    player.account(event, distance, square / event.scale**2 / 2)
    return known.output


def _published_numbers(event: Any) -> Numbers:
    """Occupied cells: the noisy count where it was published, else only that it is below `low`."""
    (codes, counts), (cells, values) = event.value, event.output
    place = np.searchsorted(cells, codes)
    released = np.isin(codes, cells)
    noise = np.where(
        released, values[np.minimum(place, max(len(cells) - 1, 0))] - counts if len(cells) else 0, 0
    ).astype(np.float64)
    low, high = _around(
        np.where(noise + counts < event.public["low"], -np.inf, noise), event.scale, ndtr
    )
    hidden = ndtr((event.public["low"] - counts - 0.5) / event.scale)
    return np.where(released, low, 0.0), np.where(released, high, hidden)


def _sparse_numbers(event: Any) -> Numbers:
    """Occupied cells one by one; of the empty ones, their number and values above the level."""
    low, high = _published_numbers(event)
    cells, values = event.output
    empty = ~np.isin(cells, event.value[0])
    chance = ndtr(-(event.public["low"] - 0.5) / event.scale)
    size, n_empty = event.public["n_candidates"] - len(event.value[0]), int(empty.sum())
    # Given that an empty cell is published, in the upper tail: 1 - P[noise > v] / P[published].
    tail = [1 - ndtr(-(values[empty] + side) / event.scale) / chance for side in (-0.5, 0.5)]
    number = [_binomial_cdf(k, size, chance) for k in (n_empty - 1, n_empty)]
    return (
        np.concatenate([low, number[:1], np.maximum(tail[0], 0.0)]),
        np.concatenate([high, number[1:], tail[1]]),
    )


def _binomial_cdf(k: int, n: int, p: float) -> float:
    """P[at most k of n]; n may be 2^50, so it is an incomplete beta function and no sum."""
    return betaincc(k + 1.0, float(n - k), p) if 0 <= k < n else float(k >= n)


# -- friendly-core filters -------------------------------------------------------------------------
# A filter of a friendly core decides about each unit: it stays if it has many friends. What is
# released is what later steps make of the core, never the decisions themselves; so the theorem is
# about the core as a whole, its caller proves it, and from one event nothing can be said about its
# scale. What can be audited:
#
# * the decisions: that they have the chances that the event states (`_decisions`);
# * the scores: that those of neighbors are as close as the theorem assumes, but for units that are
#   *bad* (they have so few friends that they survive with a probability below delta). Where a bad
#   unit did survive, the recording is an event of the failure probability and the pair is voided.
#
# For the Gaussian filter ("filter") a score is compared with scores: an added unit moves each of
# them a little (twice the number of friends minus the size: by one, up or down), so the distance is
# the largest move. For "bernoulli" the values are the chances themselves, compared in l1.


def _decisions(chance: np.ndarray, keep: np.ndarray) -> Numbers:
    """Independent decisions: the likely one in the middle of the normal law, from 1/2 with half of
    its chance as its length, the other in a tail. Less noise than claimed makes the sum of squares
    smaller. Only the upper half of the law is used (see `Law.folded`)."""
    likely = np.maximum(chance, 1 - chance)
    usual = keep == (chance >= 0.5)
    return (1 + np.where(usual, 0.0, likely)) / 2, (1 + np.where(usual, likely, 1.0)) / 2


def _filter_numbers(event: Any) -> Numbers:
    """A unit stays if ``score + round(scale Z) >= threshold``: for integers, Z above a level."""
    level = np.ceil(event.public["threshold"]) - event.value - 0.5
    return _decisions(ndtr(-level / event.scale), event.output)


def _realized(player: Any, event: Any, shift: Any) -> None:
    """The largest move against the claim; the cost of all of them as Gaussian shifts."""
    largest = float(np.abs(shift).max(initial=0.0))
    cost = float(np.sum(np.square(shift / event.scale)) / 2)
    player.account(event, largest / event.sensitivity, cost)


def _common(player: Any, known: Any, event: Any) -> tuple[np.ndarray, ...]:
    """Present elements: place in the recording, if common, the old decision; who is gone."""
    present = np.arange(len(player.units)) if event.units is None else event.units
    before = np.arange(len(known.value)) if known.units is None else known.units
    place = {int(number): i for i, number in enumerate(before)}
    places = np.array([place.get(int(number), -1) for number in player.units[present]], dtype=int)
    common, keep = places >= 0, np.zeros(len(places), dtype=bool)
    keep[common] = known.output[places[common]]
    gone = np.ones(len(known.value), dtype=bool)
    gone[places[common]] = False
    return places, common, keep, gone


def _replay_filter(player: Any, known: Any, event: Any) -> Any:
    """A friendly-core filter: see :mod:`sklearn_dp._queries.averages`.

    An element that may be bad has a score of at most `bad` in both data sets, and survives only
    within delta. All others must have close scores. An added unit stays if the player says so and
    it is not bad. The noise is enough for up to `most` units, a noisy count; more fall under its
    delta."""
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
    """A filter on a public number of block results, one of which is another: that whose score moves
    most. All the others have to be close; at most one kept result may turn bad."""
    if not _same_shape(player, known, event):
        return known.output
    bad = event.public["bad"]
    dropped = known.output & (event.value <= bad)
    if np.any(known.output & (known.value <= bad)) or np.count_nonzero(dropped) > 1:
        player.voided.append(event.entry)
    shift = np.abs((event.value - known.value).astype(np.float64))
    _realized(player, event, np.sort(shift)[:-1])
    return known.output & ~dropped


def _replay_bernoulli(player: Any, known: Any, event: Any) -> Any:
    """A smooth filter: close probabilities in l1, of added and removed units the whole chance."""
    places, common, keep, gone = _common(player, known, event)
    before = known.value[places[common]]
    keep[~common] = player.keep_added & (event.value[~common] > 0)
    if np.any(keep & (event.value <= 0)):
        player.voided.append(event.entry)
    alone = event.value[~common].sum() + np.sum(known.value[gone])
    total = float(np.abs(event.value[common] - before).sum() + alone)
    player.account(event, total / event.sensitivity, 0.0)
    return keep


# -- randomness that is no noise, and conditions ---------------------------------------------------
# These cost nothing. Where an algorithm draws at random which block a unit goes to, two fits are
# compared under a coupling: the units that both data sets have go where they went before, and only
# the added unit draws anew. That is a valid proof technique (the law of either fit is what it was),
# and without it neighbors would differ everywhere.
#
# * "seed": of scikit-learn's code inside a fit; it depends on no data, so both fits get the same.
# * "draws": 64 bits for each unit. "copies": how often each unit is in a bootstrap sample. "order":
#   a random order of points. "sample": of a public number of blocks.
# * "condition": what a theorem assumes of the data.
# * "share": noise that clients add. It depends on no data, so the recorded one may be forced. The
#   sum that arrives is "gaussian", and holds as many shares as it says.

_OTHERS = "units are not those of the data"


def _replay_draws(player: Any, known: Any, event: Any) -> np.ndarray:
    """Give the units that both data sets have the randomness they had."""
    added = player.units < 0
    if len(event.output) != len(added) or player.units.max(initial=-1) >= len(known.output):
        # Two persons were taken for one: there is nobody to give some of the draws to.
        player.blame(event, _OTHERS)
        return event.output
    if not len(known.output):
        return event.output
    return np.where(added, event.output, known.output[np.where(added, 0, player.units)])


def _replay_order(player: Any, known: Any, event: Any) -> np.ndarray:
    """The points go where their partners, by the smallest total distance, went: all but the changed
    point meet themselves. A bijection of the orders takes the uniform law to itself."""
    return linear_sum_assignment(cdist(known.value, event.value))[1][known.output]


def _replay_copies(player: Any, known: Any, event: Any) -> None:
    """A unit of several copies changes several blocks: the pair shows nothing."""
    if player.units.max(initial=-1) >= len(known.value):
        player.blame(event, _OTHERS)
        return
    gone = np.ones(len(known.value), dtype=bool)
    gone[player.units[player.units >= 0]] = False
    if np.any(event.value[player.units < 0] > 1) or np.any(known.value[gone] > 1):
        player.voided.append("copies")


def _replay_condition(player: Any, known: Any, event: Any) -> None:
    """Without it, on either side, the pair says nothing about what follows."""
    if not (known.value and event.value):
        player.voided.append(event.entry)


def _replay_share(player: Any, known: Any, event: Any) -> Any:
    return known.output if _same_shape(player, known, event, "output") else event.output


def _word_numbers(event: Any) -> Numbers:
    """64 uniform bits for each unit."""
    words = np.asarray(event.output, dtype=np.float64) * 2.0**-64
    return words, words


def _order_numbers(event: Any) -> Numbers:
    """The rank of each index among those not yet taken is uniform, and they are independent."""
    order = np.asarray(event.output)
    size = event.public.get("n", len(order))
    ranks = np.array(
        [index - np.count_nonzero(order[:place] < index) for place, index in enumerate(order)],
        dtype=np.float64,
    )
    choices = size - np.arange(len(order))
    return ranks / choices, (ranks + 1) / choices


def _claims_step(event: Any) -> Iterator[str]:
    """A step that promises (epsilon, delta)-DP costs as much as a pure one of that epsilon."""
    if event.cost < rho_of_pure(event.public["epsilon"]) * _CLOSE:
        yield f"{event.entry}: a cost below that of its epsilon"


def _claims_proportional(event: Any) -> Iterator[str]:
    given = event.sensitivity, event.scale, len(event.output), event.cost, event.public["delta"]
    if not is_zcdp(*given):
        yield f"{event.entry}: too little noise for its distance and cost"


KINDS = {
    "gaussian": Law(
        _replay_gaussian, _gaussian_numbers, _claims_gaussian, rho=_stated, in_rho=True
    ),
    "inner_gaussian": Law(_replay_gaussian, _gaussian_numbers, _claims_inner_gaussian),
    "share": Law(_replay_share, _gaussian_numbers),
    "laplace": Law(
        _replay_laplace,
        _laplace_numbers,
        _claims_laplace,
        rho=lambda event: rho_of_laplace(event.cost),
    ),
    "inner_laplace": Law(_replay_laplace, _laplace_numbers, _claims_laplace),
    "choice": Law(_replay_choice, _choice_numbers, _claims_choice, rho=_rho_choice),
    "inner_choice": Law(_replay_choice, _choice_numbers, _claims_choice),
    "lead": Law(
        _replay_lead,
        _lead_numbers,
        _claims_lead,
        rho=lambda event: rho_of_pure(event.cost),
        folded=True,
    ),
    "sparse": Law(_replay_sparse, _sparse_numbers, _enough_gaussian, rho=_stated, in_rho=True),
    "stability": Law(
        _replay_stability, _published_numbers, _claims_stability, rho=_stated, in_rho=True
    ),
    "filter": Law(_replay_filter, _filter_numbers, rho=_stated, folded=True, in_rho=True),
    "bernoulli": Law(
        _replay_bernoulli,
        lambda event: _decisions(event.value, event.output),
        rho=_stated,
        folded=True,
    ),
    "proportional": Law(
        replay_proportional, proportional_numbers, _claims_proportional, rho=_stated, in_rho=True
    ),
    # Paid at once for a fit inside, whose releases are marked "nested" and not added to the total.
    # Its accounts refuse more than its plan holds, and the recount adds up what it released.
    "fit": Law(rho=_stated),
    # A part of the algorithm that is charged as a whole, by a theorem; its inner events follow.
    "step": Law(claims=_claims_step, rho=_stated),
    "seed": Law(),
    "runs": Law(),
    "sample": Law(numbers=_order_numbers),
    "draws": Law(_replay_draws, _word_numbers),
    "order": Law(_replay_order, _order_numbers),
    "copies": Law(_replay_copies),
    "condition": Law(_replay_condition),
}
"""All the kinds of events that the audit knows."""
