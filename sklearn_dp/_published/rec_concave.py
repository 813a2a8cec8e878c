"""RecConcave: a good index for a quasi-concave score on a huge ordered set, recursively [1]_.

1. For j = 0, 1, ...: the largest level that all of some window of 2^j indices reaches.
2. The right window is as wide as can be while its level is still high: find its j by the same
   algorithm, on the logarithm of the number of indices.
3. Cut the indices into intervals 8 windows wide, and once more shifted by half; release the
   interval with the best score if it leads by far. One of the two cuts holds the whole window.
4. Choose among the ends of these intervals by the exponential mechanism.

The loss grows with log* of the number of indices, but with large constants. The published radius
search is built on it, and it has not been seen to win (``doc/benchmarks/one_cluster.md``,
``tests/_published/one_cluster/test_rec_concave.py::test_rec_concave_on_a_million_candidates``).

References
----------
.. [1] A. Beimel, K. Nissim and U. Stemmer, "Private learning and sanitization: pure vs. approximate
   differential privacy", RANDOM 2013.
"""

import math
from dataclasses import dataclass

from .._privacy._session import PrivacySession
from .._privacy._units import Sealed
from .._privacy.mechanisms.pure import choose, leader
from .._queries.balls import best_of_intervals, padded, some_of, window_widths

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
    """The costs of the steps of a search: the entry pays for all; it must allow as many uses."""

    session: PrivacySession
    entry: str
    epsilon: float  # of each exponential mechanism
    lead_epsilon: float  # of each release by lead
    lead_delta: float

    def index(self, scores: Sealed, promise: int, alpha: float = 0.5) -> int | None:
        """Index of a score of at least about (1 - alpha) promise, or None if no interval leads. The
        scores (m,) are hoped to be quasi-concave, and to reach the public `promise`."""
        (size,) = scores.shape
        if size <= _BASE:
            return self._best(scores)
        scores = padded(scores)
        high, low = promise, promise - int(alpha * promise)
        inner = window_widths(scores, low, high)
        k = self.index(inner, int(alpha * promise) // 2, alpha=0.25)
        if k is None:
            return None
        intervals = [self._heavy_interval(scores, 8 << k, shift) for shift in (0, 4 << k)]
        candidates = sorted(
            {i for interval in intervals if interval is not None for i in interval if 0 <= i < size}
        )
        return candidates[self._best(some_of(scores, candidates))] if candidates else None

    def _best(self, scores: Sealed) -> int:
        return choose(self.session, self.entry, scores, epsilon=self.epsilon)

    def _heavy_interval(self, scores: Sealed, width: int, shift: int) -> range | None:
        """The interval of a partition, from minus `shift` on, with the leading score, or None."""
        starts = range(-shift, scores.shape[0], width)
        if len(starts) == 1:  # a single interval tells nothing
            return range(starts[0], starts[0] + width)
        best = best_of_intervals(scores, starts)
        chosen = leader(
            self.session, self.entry, best, epsilon=self.lead_epsilon, delta=self.lead_delta
        )
        return None if chosen is None else range(starts[chosen], starts[chosen] + width)
