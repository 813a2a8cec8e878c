"""Sessions of fits inside a fit: the candidates of a search, the steps of a pipeline."""

from collections.abc import Callable
from typing import Any, Self

from ._accounts import Accounts
from ._noise import NoiseSource
from ._plan import PrivacyPlan
from .laws import fits

__all__ = ["FitsInside"]


class FitsInside:
    """How a session opens another one for a whole fit inside its own."""

    # What the session has: it derives from this class.
    _branch: Callable[[], Any]
    _release: Callable[..., Any]
    _source: NoiseSource
    step: Callable[..., Any]

    def inner(self, entry: str, plan: PrivacyPlan, tag: str) -> Self:
        """Pay for a whole fit, whose releases follow a plan of their own: a session within it.

        The entry pays `plan.rho` and `plan.delta_failure`, at once and whatever is spent of them:
        what one release of that rho costs, see :mod:`sklearn_dp._privacy.laws.fits`. The tag is
        that of :meth:`inside`.
        """
        self._release(entry, fits.release(plan))
        return self.inside(plan, tag)

    def inside(self, plan: PrivacyPlan, tag: str) -> Self:
        """A session for a fit that has been paid for.

        The caller proves that what was paid covers it: `inner` has paid for the plan itself, a step
        may have paid for a random number of fits. Another tag for each fit: blocks and restarts,
        and with a seed the noise, are drawn from streams of that name, in whatever order fits run
        side by side.
        """
        other = self._within(plan)
        other._draw_apart(tag)
        if self._source.seeded:
            other._source = self._source.branch(tag)
        return other

    def nested(self, entry: str, plan: PrivacyPlan, *, epsilon: float, delta: float) -> Self:
        """Pay for a step as :meth:`step` does, whose draws follow a plan of their own.

        For a mechanism that runs another one inside and is more private than it, as samples are
        more private than what they are taken from. The entry is of the plan of this session. The
        session that is returned spends within `plan`, and nothing of this one; that all of it costs
        (epsilon, delta) here is proved by the caller.
        """
        self.step(entry, epsilon=epsilon, delta=delta)
        return self._within(plan)

    def _within(self, plan: PrivacyPlan) -> Any:
        """A session with a plan, a log and accounts of its own, on the noise of this one."""
        other = self._branch()
        other.plan, other._nested, other._log, other._parts = plan, True, [], set()
        other._of_ledger = ()  # what was charged was charged for all of the outer fit
        other._payers = ""
        other._accounts = Accounts(plan)
        return other
