"""The best test there is of a fit whose releases are all seen: their likelihood ratio.

The guarantee of a fit covers everything that it releases on the way, so somebody who sees all the
releases may not learn more than is claimed either. Such a test has far more power than one that
sees the final answer only, in which much of the noise has been averaged out. The statistics
behind the releases are known for both data sets: the fit is replayed on the other one with its
outputs forced, and their likelihoods under the claimed noise are compared.

The comparison ends at the first decision that is no release (a filter of a friendly core, what
happens inside a step that is charged as a whole): the guarantee does not hold for one who sees
these. Randomness that is not noise, such as the block of a row, is taken as known: no claim of this
package rests on its being secret.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtr
from sklearn.base import clone

from ..._privacy._trace import Event, Trace
from .._observe import Outcome, run_fit
from .._player import Replay
from ..mechanisms import law_of

__all__ = ["log_likelihood_ratio"]

_COINS = ("seed", "draws")
_COARSE = 100.0  # scales, in steps, below which the rounding of the noise makes a difference
_CERTAIN = 1e3
"""What a fit is worth that the other data set cannot have: it makes other releases."""


def log_likelihood_ratio(
    estimator: Any, X: Any, other: Any, other_units: np.ndarray
) -> tuple[Outcome, float]:
    """Fit, and compare the likelihood of all releases on another data set with that on `X`.

    The estimator is fitted in place. `other_units` has for each row of `other` its index in `X`, or
    -1. The score is log p(releases; other) - log p(releases; X).
    """
    recorder = Trace()
    outcome = run_fit(estimator, X, recorder=recorder)
    witness = _Witness(recorder.events, other_units)
    again = run_fit(clone(estimator), other, recorder=witness)
    if witness.open and ((outcome.error is None) != (again.error is None) or witness.finish()):
        return outcome, _CERTAIN
    return outcome, witness.score


class _Witness(Replay):
    """A replay that adds up log-likelihood ratios, up to the first decision that is no release."""

    def __init__(self, recorded: list[Event], units: np.ndarray) -> None:
        super().__init__(recorded, units)
        self.score, self.open = 0.0, True

    def _played(self, event: Event) -> Any:
        if self.open:
            known = self.recorded[self._next] if self._next < len(self.recorded) else None
            if known is None or (known.kind, known.entry) != (event.kind, event.entry):
                self.score, self.open = _CERTAIN, False
            elif known.kind in _RATIOS:
                # Bounded either way: an outcome that is impossible on one side decides by itself.
                ratio = np.nan_to_num(float(_RATIOS[known.kind](known, event)), nan=_CERTAIN)
                self.score += float(np.clip(ratio, -_CERTAIN, _CERTAIN))
            elif known.kind not in _COINS:
                self.open = False
        return super()._played(event)

    def account(self, event: Event, distance: float, cost: float) -> None:
        """Whether a claim is kept is not asked here."""

    def blame(self, event: Event, text: str) -> None:
        """Nor whether the two fits are treated alike: that would show in what they release."""


# -- log p(recorded output; other statistic) - log p(recorded output; recorded statistic) ----------


def _noises(known: Event, event: Event) -> list[Any] | None:
    """The noise that either statistic would need for the recorded output.

    Python integers first, as counts may exceed what a double holds exactly. None where the shapes
    differ, which the recorded output then betrays.
    """
    if np.shape(known.value) != np.shape(event.value):
        return None
    return [
        np.asarray(np.asarray(known.output, dtype=object) - each.value, dtype=np.float64)
        for each in (known, event)
    ]


def _gaussian(known: Event, event: Event) -> float:
    """Log-likelihood of rounded Gaussian noise under the other statistic, minus the recorded one's.

    Exact where it is coarse, by the density where it is fine.
    """
    noises = _noises(known, event)
    if noises is None:
        return _CERTAIN
    scale, logs = np.asarray(event.scale, dtype=np.float64), []
    for noise in noises:
        low, high = ((np.abs(noise) + side) / scale for side in (-0.5, 0.5))
        mass = np.log(np.maximum(ndtr(-low) - ndtr(-high), 1e-300))
        logs.append(np.where(scale < _COARSE, mass, -np.square(noise / scale) / 2))
    return float(np.sum(logs[1] - logs[0]))  # a constant of the density cancels


def _laplace(known: Event, event: Event) -> float:
    """The density is proportional to exp(-|noise| / scale)."""
    noises = _noises(known, event)
    if noises is None:
        return _CERTAIN
    return float(np.sum((np.abs(noises[0]) - np.abs(noises[1])) / event.scale))


def _chosen(known: Event, event: Event) -> float:
    """Chances of the index that came out."""
    if np.shape(known.value) != np.shape(event.value):
        return _CERTAIN
    logs = []
    for each in (known, replace(event, output=known.output)):
        low, high = law_of(each).numbers(each)
        logs.append(float(np.log(np.maximum(high - low, 1e-300)).sum()))
    return logs[1] - logs[0]


def _published(known: Event, event: Event) -> float:
    """Cells of a histogram: noisy counts where published, else that they are below a level.

    Cells of equal counts have equal likelihoods, so only those that differ are visited.
    """
    before, after = (
        dict(zip(*map(np.ndarray.tolist, each.value), strict=True)) for each in (known, event)
    )
    seen = dict(zip(*map(np.ndarray.tolist, known.output), strict=True))
    moved = [
        cell for cell in before.keys() | after.keys() if before.get(cell, 0) != after.get(cell, 0)
    ]
    return sum(
        _log_chance(after.get(cell, 0), seen.get(cell), event)
        - _log_chance(before.get(cell, 0), seen.get(cell), known)
        for cell in moved
    )


def _log_chance(count: int, value: int | None, event: Event) -> float:
    """Log-likelihood of one cell of an exact count, up to a constant where it was published.

    `value` is None if it was not.
    """
    if value is None:
        return float(log_ndtr((event.public["low"] - 0.5 - count) / event.scale))
    return -(((value - count) / event.scale) ** 2) / 2


_RATIOS = {
    "gaussian": _gaussian,
    "laplace": _laplace,
    "choice": _chosen,
    "sparse": _published,
    "stability": _published,
}
