"""In words: what the releases say about the use of the answer, and what would help.

A private fit always answers, so it has to say when the answer is of little use: most fits with too
few rows for their budget look like any other. Each sentence follows from released values alone (a
status that looked at the rows would be a leak), in an order from the plainest sign to the weakest.
How often these words are right is measured in `doc/benchmarks/status.md`.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

from ..shared.advice import Budget, advice
from .tuning import Tuning

_NOISE = 0.2  # noise of a center, in radii of the data, at which most data show their clusters
_NEARLY_ALL = 0.9  # a part above which nothing is known of the rest
_MORE, _FEWER = ("more rows", "a larger epsilon"), "fewer clusters"
_FEW_ROWS = "too few rows for this budget: the centers are mostly noise"
_NARROW = "mostly noise: the clusters are narrower than the noise of their centers"


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
    # times the units at which clusters of the same size would all stand out of the noise of counts
    even: float = math.nan
    loose: bool = False  # whether the rows fill next to nothing of the radius about them
    size: float | None = None  # noisy number of units, where it is known well


class _Trouble(NamedTuple):
    """What is wrong, and what else than less noise would help."""

    words: str
    other: tuple[str, ...] = (_FEWER,)
    figure: str = "about"  # what the releases know of how much less noise is enough: or "none"

    def with_remedy(self, signs: Signs, tuning: Tuning, budget: Budget) -> str:
        """The status."""
        times = _times_less_noise(signs, tuning)
        other = () if signs.n_clusters == 1 else self.other
        # Where noise is no larger than it may be, less of it is no remedy.
        times = math.inf if times <= 1 or self.figure == "none" else times
        size = signs.size if self.figure == "about" else None
        return self.words + advice(times, budget, size, "rows", *other)


def in_words(signs: Signs, status: str, tuning: Tuning, budget: Budget) -> str:
    """The status: what was missing before (`status`), what is now and what would help, or "ok"."""
    if status != "ok":
        return status
    found = _early_trouble(signs, tuning) if signs.loss is None else _trouble(signs, tuning)
    return "ok" if found is None else found.with_remedy(signs, tuning, budget)


def coreset_in_words(
    signs: Signs, status: str, n_clusters: int, tuning: Tuning, budget: Budget
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
    return _Trouble(found).with_remedy(signs, tuning, budget)


def _points_of_noise(signs: Signs, n_leaves: int, n_clusters: int, tuning: Tuning) -> bool:
    """Whether released points are where noise is: of very few rows, or of few in many features."""
    faint = signs.signal < tuning.faint_signal and signs.noise > tuning.points_noise
    lone = signs.signal < tuning.faint_signal and n_leaves < 2 * n_clusters
    return signs.signal < tuning.useless_signal or faint or lone


def _early_trouble(signs: Signs, tuning: Tuning) -> _Trouble | None:
    """Without a released quality: what the start and the iterations show."""
    if signs.signal < tuning.useless_signal:
        return _Trouble(_FEW_ROWS)
    if signs.n_leaves == 0:
        return _Trouble("no structure found: no dense region stands out from the noise")
    if signs.noise_share > tuning.useless_noise:
        return _Trouble(_NARROW)
    return None


def _trouble(signs: Signs, tuning: Tuning) -> _Trouble | None:
    """With a released quality: what is wrong, or None.

    Where clusters are known to explain next to nothing, the answer is about as good as one center,
    and any other may be no better: noise of the centers is then less of a loss than predicted.
    Where it is more, signs that are common in good answers count in faint data only. Where nothing
    is known, each sign counts.
    """
    assert signs.loss is not None
    if signs.one_center:
        found = "only one center was released: the noise would have hidden several"
        return _Trouble(found, figure="at least")
    shown = signs.explained > tuning.certain_count_sd * signs.explained_sd
    alike = not shown and signs.explained_sd < tuning.unexplained_sd
    if signs.loss > (tuning.useless_loss_alike if alike else tuning.useless_loss):
        found = f"mostly noise: {_part(signs.loss)} of the sum of squares is noise in the centers"
        return _Trouble(found, figure="about" if signs.loss < _NEARLY_ALL else "at least")
    if signs.missed is not None:
        # Nobody knows how small a cluster is that was not found.
        return _Trouble(signs.missed, (*_MORE, "more clusters"), "none")
    if alike:
        # About as good as one center, and nobody is in most of the clusters.
        empty = signs.light >= tuning.rowless
        return _empty("no clusters shown", signs) if empty else None
    return _trouble_of_clusters(signs, tuning, shown)


def _trouble_of_clusters(signs: Signs, tuning: Tuning, shown: bool) -> _Trouble | None:
    """The same where clusters may be `shown`: what is known does not say that there are none."""
    assert signs.loss is not None
    if signs.noise_share > tuning.useless_noise:
        return _Trouble(_NARROW)
    plain = signs.explained > tuning.sure_count_sd * signs.explained_sd
    if signs.signal < tuning.useless_signal and not plain:
        return _Trouble(_FEW_ROWS)
    faint = signs.signal < tuning.faint_signal
    if signs.light > 0 and (faint or not shown):
        return _empty("mostly noise", signs)
    if not shown and signs.loss > tuning.doubtful_loss:
        found = "no evidence of clusters: the centers explain no more than noise would"
        return _Trouble(found)
    partial = signs.explained - signs.explained_sd < tuning.partial
    if plain and signs.light > 0 and signs.uneven > tuning.uneven:
        # Some centers have no visible rows; wide clusters probably absorbed others.
        return _empty("clusters may be missing", signs, ", and a few are much wider than the rest")
    if plain and partial and signs.light >= tuning.rowless:
        return _empty("clusters may be missing", signs)
    if shown and faint and partial and signs.loss > tuning.doubtful_loss:
        found = (
            "some clusters may be missing: with so few rows, the centers explain only part of the "
            "spread"
        )
        return _Trouble(found)
    return None


def _empty(trouble: str, signs: Signs, more: str = "") -> _Trouble:
    """How many clusters may be empty. More rows help if these are too few for so many
    clusters, even of the same size."""
    k = signs.n_clusters
    found = f"{trouble}: {round(signs.light * k)} of {k} clusters may be empty{more}"
    other = ("tighter bounds", _FEWER) if signs.loose else (_FEWER,)
    if more and not signs.even > 1:  # small clusters may be within the wide ones
        other = (*_MORE, *other)
    return _Trouble(found, other)


def _part(part: float) -> str:
    """A part in words.

    >>> _part(0.301), _part(0.95)
    ('about 30%', 'nearly all')
    """
    return f"about {100 * part:.0f}%" if part < _NEARLY_ALL else "nearly all"


def _times_less_noise(signs: Signs, tuning: Tuning) -> float:
    """How many times less noise leaves none of the signs of too much.

    All of them fall with the number of units and with the budget: the noise of a number of units,
    that of a center in radii of the data, that of counts next to clusters of the same size, and, by
    the square, the parts of sums of squares and of spreads that are noise.
    """
    known = [tuning.useless_signal / max(signs.signal, 1e-300), signs.noise / _NOISE]
    parts = [part for part in (signs.loss, signs.noise_share) if part is not None]
    known += [_to_tenth(part) for part in parts if not math.isnan(part)]
    return max(*known, 0.0 if math.isnan(signs.even) else signs.even)


def _to_tenth(part: float) -> float:
    """How many times less noise makes it a tenth of a sum of squares that it is a part of.

    Times t, a part p becomes p / t^2, next to 1 - p that stays: a tenth of the new sum at t =
    sqrt(9 p / (1 - p)). Where nearly all is noise, nothing is known of the rest.
    """
    part = min(part, _NEARLY_ALL)
    return math.sqrt(9 * part / (1 - part))
