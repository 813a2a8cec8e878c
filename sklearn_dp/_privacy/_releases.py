"""The releases of a session: a method for each law, of a few lines.

A method here does three things, and nothing else:

1. It asks the law of its name (in :mod:`sklearn_dp._privacy.mechanisms`) for a ``Release``: the
   statistic as integers, the noise scale, the cost. The law checks every premise of its proof on
   the way.
2. It hands the release to ``_release``, which pays for it from the plan entry `entry`, and draws
   its noise only if that succeeds.
3. It turns the output from grid steps into lengths.

What comes sealed (:mod:`._sealed`) brings the claim that was proved of it. Other callers state a
sensitivity and prove it in a comment at that line. Statistics are integers, in steps of length
`unit`: what floating-point sums of neighbors differ by is not known exactly, and an integer sum is
the same whatever the order of the rows.

Laws that few estimators need have their release elsewhere (:mod:`._pure_releases`, and beside the
law in most modules of `mechanisms`): a session knows nothing of them, and pays for them all the
same.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ._plan import PrivacyPlan
from ._sealed import Sealed, opened
from .mechanisms import gaussian
from .mechanisms._release import lengths


class Releases:
    """The releases of a :class:`~sklearn_dp._privacy._session.PrivacySession`."""

    # What the session has: it derives from this class.
    _cost: Callable[..., float]
    _release: Callable[..., Any]
    _trace: Any
    plan: PrivacyPlan
    _rate = 1.0  # below one: answers are of a sample, and paid for as such

    # -- sealed answers

    def _opened(self, sealed: Sealed) -> Any:
        return opened(sealed, self.plan, self._rate)

    def release(self, entry: str, sealed: Sealed, *, rho: float | None = None) -> np.ndarray:
        """Release an answer with Gaussian noise, in lengths; see :meth:`gaussian`."""
        exact, claim = self._opened(sealed), sealed.claim
        return self.gaussian(entry, exact, sensitivity=claim.l2, unit=claim.unit, rho=rho)

    # -- exact statistics, of which the caller states what neighbors differ by

    def gaussian(
        self, entry: str, value: Any, *, sensitivity: Any, unit: Any = 1.0, rho: float | None = None
    ) -> np.ndarray:
        """Release integers with rounded Gaussian noise: rho-zCDP, and exactly sqrt(2 rho)-GDP.

        `value` is the exact statistic, in grid steps of length `unit`; Python integers (dtype
        object) may have any size. `sensitivity` is s with the proved claim ``sum_i ((v_i - v'_i) /
        s_i)^2 <= 1`` for neighbors. `rho` is the zCDP cost; all that the entry has left by default.
        """
        release = gaussian.release(value, sensitivity, self._cost(entry, rho), unit)
        return lengths(self._release(entry, release), unit)
