"""Choices of an index: exponential mechanism, above threshold, a clear lead."""

import numpy as np

from ..._privacy import _accounting as accounting
from ._law import Law, same_shape, too_little
from .filters import kept
from .laplace import laplace_cdf

__all__ = ["LAWS"]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(400)
_EXACT_SUM = 1000.0  # scales up to which the noise of a level is summed integer by integer
_REACH = 45.0  # in scales: exp(-45) is nothing


def _is_threshold(event):
    """Sparse vector technique; else the exponential mechanism."""
    return "threshold" in event.public


def _rho(event):
    convert = (
        accounting.pure_zcdp_rho if _is_threshold(event) else accounting.bounded_range_zcdp_rho
    )
    return convert(event.cost)


def _claims(event):
    """Above threshold: scale >= 2 sensitivity / epsilon. Exponential: its rate is the inverse."""
    scale = np.asarray(event.scale)
    enough = scale * event.cost / 2 if _is_threshold(event) else event.cost / (2 * scale)
    return too_little(event, enough)


def _claims_lead(event):
    """scale >= 2 sensitivity / epsilon, and a threshold that hides another winner."""
    yield from too_little(event, np.asarray(event.scale) * event.cost / 2)
    low = event.public["threshold"] - 2 * event.sensitivity
    if float(laplace_cdf(-(low - 0.5) / event.scale)) > event.public["delta"] * (1 + 1e-9):
        yield f"{event.entry}: its threshold shows a lead that neighbours do not share"


def _replay(player, known, event):
    if same_shape(player, known, event):
        largest = float(np.abs(np.asarray(event.value) - known.value).max(initial=0))
        player.account(event, largest / event.sensitivity, event.cost * largest / event.sensitivity)
    return known.output


def _replay_inner(player, known, event):
    if same_shape(player, known, event):
        largest = float(np.abs(event.value - known.value).max(initial=0))
        player.account(event, largest / event.sensitivity, 0.0)
    return known.output


def _replay_lead(player, known, event):
    """The best candidate, told by its lead; another best one may not be told."""
    if not same_shape(player, known, event):
        return known.output
    before, after = (np.sort(e.value)[::-1].astype(np.float64) for e in (known, event))
    moved = float(np.abs(np.asarray(event.value) - known.value).max())
    if known.value.argmax() == event.value.argmax():
        moved = max(moved, abs(after[0] - after[1] - before[0] + before[1]) / 2)
    elif known.output >= 0:
        player.voided.append(event.entry)
    player.account(event, moved / event.sensitivity, event.cost * moved / event.sensitivity)
    return known.output


def _numbers(event):
    """Where the index falls among the chances of all of them."""
    chances = _passing(event) if _is_threshold(event) else _exponential(event)
    above = np.concatenate([[0.0], np.cumsum(chances)]) / np.sum(chances)
    place = event.output + _is_threshold(event)  # "none" is -1 there, and comes first
    return above[place], above[place + 1]


def _exponential(event):
    scores = np.asarray(event.value, dtype=np.float64)
    return np.exp((scores - scores.max()) * event.scale)


def _passing(event):
    """Chances of none, and of each query to be the first above the noisy threshold."""
    noise, weights = _levels(event.scale)
    level = event.public["threshold"] + noise
    queries = np.asarray(event.value, dtype=np.float64)[:, None]
    # v + round(L) >= level, for an integer v and round(L) of twice the scale of the level's noise.
    passes = 1 - laplace_cdf((np.ceil(level) - 0.5 - queries) / (2 * event.scale))
    still = np.cumprod(np.concatenate([np.ones((1, len(level))), 1 - passes]), axis=0)
    each = still[:-1] * passes
    return np.concatenate([[still[-1] @ weights], each @ weights])


def _levels(scale):
    """Values of rounded Laplace noise with their weights; quadrature where there are too many."""
    if scale <= _EXACT_SUM:
        noise = np.arange(-np.ceil(_REACH * scale), np.ceil(_REACH * scale) + 1)
        return noise, laplace_cdf((noise + 0.5) / scale) - laplace_cdf((noise - 0.5) / scale)
    # Substituting t^2 puts many nodes where the density is large, and none beyond its reach.
    half = _REACH * np.square((_NODES + 1) / 2)
    weights = _WEIGHTS * _REACH * (_NODES + 1) / 2 * np.exp(-half) / 2
    return (np.rint(np.concatenate([-half, half]) * scale), np.concatenate([weights, weights]))


def _numbers_lead(event):
    """Told, and then it is the best candidate, if its lead and noise reach the threshold."""
    best, second = np.sort(event.value)[:-3:-1]
    chance = 1 - laplace_cdf((event.public["threshold"] - (best - second) - 0.5) / event.scale)
    told = event.output >= 0
    possible = float(not told or event.output == event.value.argmax())
    low, high = kept(np.array([chance]), np.array([told]))
    return low * possible, high * possible


LAWS = {
    "choice": Law(_replay, _numbers, _claims, rho=_rho),
    "lead": Law(
        _replay_lead,
        _numbers_lead,
        _claims_lead,
        rho=lambda event: accounting.pure_zcdp_rho(event.cost),
        folded=True,
    ),
    "inner_choice": Law(_replay_inner, _numbers, _claims),
}
