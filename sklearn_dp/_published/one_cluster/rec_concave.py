"""RecConcave: a good index for a quasi-concave score on a huge ordered set, recursively [1]_.

1. For j = 0, 1, ...: the largest level that all of some window of 2^j indices reaches.
2. The right window is as wide as can be while its level is still high: find its j by the same
   algorithm, on the logarithm of the number of indices.
3. Cut the indices into intervals 8 windows wide, and once more shifted by half; release the
   interval with the best score if it leads by far. One of the two cuts holds the whole window.
4. Choose among the ends of these intervals by the exponential mechanism.

Each level takes the logarithm of the number of indices, so the loss grows with log* of it, but with
large constants, and it beats the exponential mechanism on sets that nobody has. It is here because
the published radius search is built on it.

It has not been seen to win. As ``DPOneCluster(radius_method="rec_concave")`` for 3000 of 10,000
rows in a small ball at epsilon = 1 it finds no radius at all, so the search starts from the whole
domain, as ``center_method="clip"`` does at once: balls of 1.06 and 1.01 of the planted radius in 2
and 10 features, the same as by default (``doc/benchmarks/one_cluster.md``). Where it does find
something it is never better than the exponential mechanism
(``tests/_aggregate/one_cluster/test_laws.py::test_rec_concave_on_a_million_candidates``).

References
----------
.. [1] A. Beimel, K. Nissim and U. Stemmer, "Private learning and sanitization: pure vs.
   approximate differential privacy", RANDOM 2013.
"""

import math
from dataclasses import dataclass

import numpy as np

from ..._privacy._session import PrivacySession

__all__ = ["RecConcave", "rec_concave_steps"]

_BASE = 32  # so few candidates are left to the exponential mechanism


def _levels(size: int) -> list[int]:
    """Number of indices on each level of the recursion, the base last.

    >>> _levels(20), _levels(2**14), _levels(2**40)
    ([20], [16384, 15], [1099511627776, 41, 7])
    """
    sizes = [size]
    while sizes[-1] > _BASE:
        sizes.append(math.ceil(math.log2(sizes[-1])) + 1)
    return sizes


def rec_concave_steps(size: int) -> tuple[int, int]:
    """How many exponential mechanisms, and how many releases by lead, `size` indices take.

    >>> rec_concave_steps(20), rec_concave_steps(2**14)
    ((1, 0), (2, 2))
    """
    levels = len(_levels(size)) - 1
    return 1 + levels, 2 * levels


@dataclass(frozen=True)
class RecConcave:
    """What the steps of a search cost: the entry pays for all; it must allow as many uses."""

    session: PrivacySession
    entry: str
    sensitivity: int  # of all scores, between neighbors
    epsilon: float  # of each exponential mechanism
    lead_epsilon: float  # of each release by lead
    lead_delta: float

    def index(self, scores: np.ndarray, promise: int, alpha: float = 0.5) -> int | None:
        """Index of a score of at least about (1 - alpha) promise, or None.

        None: no interval leads by far enough. The scores (m,) are private in any case, and
        quasi-concave for the answer to be good. `promise`, public, is what the largest of them is
        hoped to reach.
        """
        if len(scores) <= _BASE:
            return self._best(scores)
        scores, size = _padded(scores), len(scores)
        widths = _widest(scores)
        high, low = promise, promise - int(alpha * promise)
        # Minima and maxima of scores, plus constants: as sensitive as the scores.
        inner = np.minimum(widths[:-1] - low, high - widths[1:])
        k = self.index(inner, int(alpha * promise) // 2, alpha=0.25)
        if k is None:
            return None
        found = [self._heavy_interval(scores, 8 << k, shift) for shift in (0, 4 << k)]
        candidates = sorted(
            {i for interval in found if interval is not None for i in interval if 0 <= i < size}
        )
        return candidates[self._best(scores[candidates])] if candidates else None

    def _best(self, scores: np.ndarray) -> int:
        return self.session.exponential(
            self.entry, scores, sensitivity=self.sensitivity, epsilon=self.epsilon
        )

    def _heavy_interval(self, scores: np.ndarray, width: int, shift: int) -> range | None:
        """The interval of a partition that holds the best score by a clear lead, or None.

        The scores are padded; the first interval starts at minus `shift`.
        """
        starts = range(-shift, len(scores), width)
        best = np.array([scores[max(start, 0) : start + width].max() for start in starts])
        if len(best) == 1:  # a single interval tells nothing
            return range(starts[0], starts[0] + width)
        # A maximum of scores is as sensitive as they are.
        chosen = self.session.report_leader_if_stable(
            self.entry,
            best,
            sensitivity=self.sensitivity,
            epsilon=self.lead_epsilon,
            delta=self.lead_delta,
        )
        return None if chosen is None else range(starts[chosen], starts[chosen] + width)


def _padded(scores: np.ndarray) -> np.ndarray:
    """To a power of two, with what is never better than the last score.

    A constant, or the last score: the padding is as sensitive as the scores are.
    """
    size = 1 << (len(scores) - 1).bit_length()
    return np.append(scores, np.full(size - len(scores), min(0, int(scores[-1]))))


def _widest(scores: np.ndarray) -> np.ndarray:
    """For j = 0, 1, ...: the largest level that the ends of some window of 2**j indices reach.

    For a quasi-concave score that is the level of the whole window. One more entry, for windows
    that do not fit.
    """
    found = [
        int(np.minimum(scores[: len(scores) - width + 1], scores[width - 1 :]).max())
        for width in (1 << j for j in range(len(scores).bit_length()))
    ]
    return np.array([*found, min(0, found[-1])], dtype=np.int64)
