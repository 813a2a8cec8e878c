"""Choices of an index: exponential mechanism, above threshold, a clear lead.

What is claimed: every score (query) is an integer that moves by at most `sensitivity`, and

* *exponential mechanism*: index i has a probability proportional to exp(scale score_i), so `scale`
  is a rate, the inverse of a noise scale. Neighbors' log-ratios lie in a range of
  2 scale sensitivity = epsilon;
* *above threshold*: the answer is the first query that, with Laplace noise of twice `scale`,
  reaches the threshold with Laplace noise of `scale`, or -1; epsilon-DP for scale >= 2 sensitivity
  / epsilon (half of epsilon for the threshold, half for the one query that answers);
* *a clear lead*: the best candidate, if its lead over the second plus Laplace noise of `scale`
  reaches the threshold, or -1. Where neighbors agree on the best one, its lead moves by at most
  2 sensitivity; where they do not, the lead is at most that on both, and delta bounds that it is
  told.

Both of the first are events of the kind "choice": one with a threshold among its public facts is
the sparse vector technique (`_is_threshold`). Costs are an epsilon, not a rho.

The noise of a choice cannot be seen, only the index. So its test needs the chances of all indices
under the claim: one number for each choice, which is little; hundreds of fits make up for it.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from .._epsilon_bounds import rho_of_pure, rho_of_range
from ._law import Law, same_shape, too_little
from .filters import kept
from .laplace import laplace_cdf

# Of Laplace noise of a large scale, in _levels: 400 nodes leave the chances right to 1e-8.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(400)
_EXACT_SUM = 1000.0  # scales up to which the noise of a level is summed integer by integer
_REACH = 45.0  # in scales: exp(-45) is nothing


def _is_threshold(event: Any) -> bool:
    """Sparse vector technique; else the exponential mechanism."""
    return "threshold" in event.public


def _rho(event: Any) -> float:
    """Return the zCDP cost of the exponential mechanism by its bounded range, up to four times
    less."""
    return rho_of_pure(event.cost) if _is_threshold(event) else rho_of_range(event.cost)


def _claims(event: Any) -> Iterator[str]:
    """Above threshold: scale >= 2 sensitivity / epsilon. Exponential: its rate is the inverse."""
    scale = np.asarray(event.scale)
    enough = scale * event.cost / 2 if _is_threshold(event) else event.cost / (2 * scale)
    return too_little(event, enough)


def _claims_lead(event: Any) -> Iterator[str]:
    """scale >= 2 sensitivity / epsilon, and a threshold that hides another winner."""
    yield from too_little(event, np.asarray(event.scale) * event.cost / 2)
    low = event.public["threshold"] - 2 * event.sensitivity
    if float(laplace_cdf(-(low - 0.5) / event.scale)) > event.public["delta"] * (1 + 1e-9):
        yield f"{event.entry}: its threshold shows a lead that neighbors do not share"


def _largest_shift(known: Any, event: Any) -> float:
    """How far the score moves that moves most; scores are at most 2^61: no overflow."""
    return float(np.abs(np.asarray(event.value) - known.value).max(initial=0))


def _replay(player: Any, known: Any, event: Any) -> Any:
    """The realized epsilon is in proportion to the largest move: both claims are linear in it."""
    if same_shape(player, known, event):
        moved = _largest_shift(known, event) / event.sensitivity
        player.account(event, moved, event.cost * moved)
    return known.output


def _replay_inner(player: Any, known: Any, event: Any) -> Any:
    if same_shape(player, known, event):
        player.account(event, _largest_shift(known, event) / event.sensitivity, 0.0)
    return known.output


def _replay_lead(player: Any, known: Any, event: Any) -> Any:
    """The best candidate, told by its lead; another best one may not be told. With the same best
    candidate only the lead matters, so half of its move counts if that is more than the scores
    themselves moved: a claim about scores says this of the lead."""
    if not same_shape(player, known, event):
        return known.output
    before, after = (np.sort(e.value)[::-1].astype(np.float64) for e in (known, event))
    moved = _largest_shift(known, event)
    if known.value.argmax() == event.value.argmax():
        moved = max(moved, abs(after[0] - after[1] - before[0] + before[1]) / 2)
    elif known.output >= 0:
        player.voided.append(event.entry)
    player.account(event, moved / event.sensitivity, event.cost * moved / event.sensitivity)
    return known.output


def _numbers(event: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return where the index falls among the chances of all candidates: uniform under the claim."""
    if _is_threshold(event):
        chances = _passing(event)
    else:  # up to a common factor; the largest is 1, so none overflows
        scores = np.asarray(event.value, dtype=np.float64)
        chances = np.exp((scores - scores.max()) * event.scale)
    above = np.concatenate([[0.0], np.cumsum(chances)]) / np.sum(chances)
    place = event.output + _is_threshold(event)  # "none" is -1 there, and comes first
    return above[place], above[place + 1]


def _passing(event: Any) -> np.ndarray:
    """Chances of none, and of each query to be the first above the noisy threshold.

    Given the noise of the threshold, the queries pass independently. So for each value of that
    noise the chance to be first is the product of the chances that those before fail, times its
    own; these are averaged over the law of the noise.
    """
    noise, weights = _levels(event.scale)
    level = event.public["threshold"] + noise
    queries = np.asarray(event.value, dtype=np.float64)[:, None]
    # v + round(L) >= level, for an integer v and round(L) of twice the scale of the level's noise.
    passes = 1 - laplace_cdf((np.ceil(level) - 0.5 - queries) / (2 * event.scale))
    still = np.cumprod(np.concatenate([np.ones((1, len(level))), 1 - passes]), axis=0)
    each = still[:-1] * passes
    return np.concatenate([[still[-1] @ weights], each @ weights])


def _levels(scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Values of rounded Laplace noise with their weights; quadrature where there are too many.
    Scales are in steps, up to 2^50. The weights sum to one, but for what is below exp(-45)."""
    if scale <= _EXACT_SUM:
        noise = np.arange(-np.ceil(_REACH * scale), np.ceil(_REACH * scale) + 1)
        return noise, laplace_cdf((noise + 0.5) / scale) - laplace_cdf((noise - 0.5) / scale)
    # Substituting t^2 puts many nodes where the density is large, and none beyond its reach.
    half = _REACH * np.square((_NODES + 1) / 2)
    weights = _WEIGHTS * _REACH * (_NODES + 1) / 2 * np.exp(-half) / 2
    return (np.rint(np.concatenate([-half, half]) * scale), np.concatenate([weights, weights]))


def _numbers_lead(event: Any) -> tuple[np.ndarray, np.ndarray]:
    """Told, and then it is the best candidate, if its lead and noise reach the threshold. Another
    candidate than the best is impossible: both ends become 0, which no correct release has."""
    best, second = np.sort(event.value)[:-3:-1]
    chance = 1 - laplace_cdf((event.public["threshold"] - (best - second) - 0.5) / event.scale)
    positive = event.output >= 0
    possible = float(not positive or event.output == event.value.argmax())
    low, high = kept(np.array([chance]), np.array([positive]))
    return low * possible, high * possible


LAWS = {
    "choice": Law(_replay, _numbers, _claims, rho=_rho),
    "lead": Law(
        _replay_lead,
        _numbers_lead,
        _claims_lead,
        rho=lambda event: rho_of_pure(event.cost),
        folded=True,
    ),
    "inner_choice": Law(_replay_inner, _numbers, _claims),
}
