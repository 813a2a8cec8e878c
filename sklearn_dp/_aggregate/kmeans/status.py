"""In words: what the releases say about the use of the answer, and what would help.

A private fit always answers, so it has to say when the answer is of little use: most fits with too
few rows for their budget look like any other. Each sentence follows from released values alone (a
status that looked at the rows would be a leak), in an order from the plainest sign to the weakest.
How often these words are right is measured in `doc/benchmarks/status.md`.
"""

import math
from dataclasses import dataclass

from ..shared.advice import advice
from .tuning import Tuning

_NOISE = 0.2  # noise of a center, in radii of the data, at which most data show their clusters
_MISSED = 3.0  # times the rows or the epsilon that found most clusters of a test that were missed


@dataclass(frozen=True)
class Signs:
    """Released values that tell good answers from useless ones."""

    signal: float  # number of rows in noise units
    # length of the noise of a center that takes the whole budget, in radii of the data
    noise: float
    n_leaves: int | None  # cells that stood out of the noise; None where nobody looked for any
    one_center: bool  # whether one center was all that the noise allowed
    # part of a typical cluster's spread that was noise of its center when last released; nan when
    # it was not
    noise_share: float
    # part of the released sum of squares that noise of the centers is predicted to have added
    loss: float | None = None
    light: float = 0.0  # part of the clusters that hold no more rows than the noise of a count ...
    n_clusters: int = 1  # ... and the number of all
    # part of the sum of squares that is in wide clusters, beyond what the others have
    uneven: float = 0.0
    explained: float = math.nan  # released part of the sum of squares that the clusters explain ...
    explained_sd: float = math.nan  # ... and its error
    # what rows far from every center show in words; None where they show nothing
    missed: str | None = None


def in_words(signs: Signs, status: str, tuning: Tuning, epsilon: float) -> str:
    """The status: what was missing before (`status`), what is now and what would help, or "ok"."""
    if status != "ok":
        return status
    found = _early_trouble(signs, tuning) if signs.loss is None else _trouble(signs, tuning)
    return "ok" if found is None else found + _remedy(signs, tuning, epsilon)


def coreset_in_words(
    signs: Signs, status: str, n_clusters: int, tuning: Tuning, epsilon: float
) -> str:
    """The status of released points that are the answer themselves, without centers."""
    if status != "ok":
        return status
    n_leaves = signs.n_leaves or 0
    if n_leaves == 0:
        found = "one point for all rows: no dense region stands out from the noise"
    elif _points_of_noise(signs, n_leaves, n_clusters, tuning):
        found = "too few rows for this budget: the points are mostly noise"
    elif n_leaves < n_clusters:
        found = f"fewer points than n_clusters: {n_leaves}"
    else:
        return "ok"
    return found + _remedy(signs, tuning, epsilon)


def _points_of_noise(signs: Signs, n_leaves: int, n_clusters: int, tuning: Tuning) -> bool:
    """Whether released points are where noise is: of very few rows, or of few in many features."""
    faint = signs.signal < tuning.faint_signal and signs.noise > tuning.points_noise
    lone = signs.signal < tuning.faint_signal and n_leaves < 2 * n_clusters
    return signs.signal < tuning.useless_signal or faint or lone


def _early_trouble(signs: Signs, tuning: Tuning) -> str | None:
    """Without a released quality: what the start and the iterations show."""
    if signs.signal < tuning.useless_signal:
        return "too few rows for this budget: the centers are mostly noise"
    if signs.n_leaves == 0:
        return "no structure found: no dense region stands out from the noise"
    if signs.noise_share > tuning.useless_noise:
        return "mostly noise: the clusters are narrower than the noise of their centers"
    return None


def _trouble(signs: Signs, tuning: Tuning) -> str | None:
    """With a released quality: what is wrong, or None.

    Where clusters are known to explain next to nothing, the answer is about as good as one center,
    and any other may be no better: noise of the centers is then less of a loss than predicted.
    Where it is more, signs that are common in good answers count in faint data only. Where nothing
    is known, each sign counts.
    """
    assert signs.loss is not None
    if signs.one_center:
        return "one center for all: several would be lost in the noise"
    shown = signs.explained > tuning.certain_count_sd * signs.explained_sd
    alike = not shown and signs.explained_sd < tuning.unexplained_sd
    if signs.loss > (tuning.useless_loss_alike if alike else tuning.useless_loss):
        return f"mostly noise: {_part(signs.loss)} of the sum of squares is noise in the centers"
    if signs.missed is not None:
        return signs.missed
    if alike:
        # About as good as one center, and nobody is in most of the clusters.
        empty = signs.light >= tuning.rowless
        return f"no clusters shown: {_rowless(signs)}" if empty else None
    return _trouble_of_clusters(signs, tuning, shown)


def _trouble_of_clusters(signs: Signs, tuning: Tuning, shown: bool) -> str | None:
    """The same where clusters may be `shown`: what is known does not say that there are none."""
    assert signs.loss is not None
    if signs.noise_share > tuning.useless_noise:
        return "mostly noise: the clusters are narrower than the noise of their centers"
    plain = signs.explained > tuning.sure_count_sd * signs.explained_sd
    if signs.signal < tuning.useless_signal and not plain:
        return "too few rows for this budget: the centers are mostly noise"
    faint = signs.signal < tuning.faint_signal
    if signs.light > 0 and (faint or not shown):
        return f"mostly noise: {_rowless(signs)}"
    if not shown and signs.loss > tuning.doubtful_loss:
        return "no clusters shown: the centers explain no more of the spread than noise could"
    partial = signs.explained - signs.explained_sd < tuning.partial
    if plain and signs.light > 0 and signs.uneven > tuning.uneven:
        # Centers that nobody is with, where a few clusters cost what many do: these took in others.
        return f"clusters may be missing: {_rowless(signs)}, and others are far wider than most"
    if plain and partial and signs.light >= tuning.rowless:
        return f"clusters may be missing: {_rowless(signs)}"
    if shown and faint and partial and signs.loss > tuning.doubtful_loss:
        return (
            "some clusters may be missing: with so few rows, the centers explain only part of the "
            "spread"
        )
    return None


def _rowless(signs: Signs) -> str:
    """How many clusters have no rows that show."""
    k = signs.n_clusters
    return f"noise alone could explain the counts of {round(signs.light * k)} of {k} clusters"


def _part(part: float) -> str:
    """A part in words.

    >>> _part(0.301), _part(0.95)
    ('about 30 %', 'nearly all')
    """
    return f"about {100 * part:.0f} %" if part < 0.9 else "nearly all"


def _remedy(signs: Signs, tuning: Tuning, epsilon: float) -> str:
    """How many times the rows, or the epsilon, would help.

    The noise of a center falls with their product. Times t, a loss that is a part p of the sum of
    squares becomes p / t^2, next to 1 - p that stays: a tenth of the new sum at t = sqrt(9 p / (1 -
    p)). Without that figure, t brings the noise down to `_NOISE`, or to `_MISSED` times.
    """
    times = max(2.0 if signs.missed is None else _MISSED, signs.noise / _NOISE)
    if signs.loss is not None and signs.loss > tuning.useless_loss:
        loss = min(signs.loss, 0.9)
        times = math.sqrt(9 * loss / (1 - loss))
    return advice(times, epsilon)
