"""Sessions for disjoint sets of units; `_parts` tells why a unit pays for its own only."""

from collections.abc import Callable
from typing import Any, Self

from ._plan import PlanError

__all__ = ["PartsOfUnits"]


class PartsOfUnits:
    """How a session divides the units among sessions that look at some of them each."""

    # What the session has: it derives from this class.
    _accounts: Any
    _branch: Callable[[], Any]
    _part: tuple[str, ...]
    _parts: set[str]

    def part(self, label: str, *, renumbered: bool = False) -> Self:
        """A session for releases about some of the units, apart from those of other labels.

        The caller proves that parts with different labels, public or released, look at disjoint
        sets of units; see :mod:`sklearn_dp._privacy._parallel_composition`. It goes on from what
        this session has spent. Before this one spends more, it must :meth:`join` all its parts.

        `renumbered`: units have numbers of their part, which others have elsewhere, and so the part
        has draws of its own. With common ones a unit that is added would shift the draws of those
        after it against the draws of other parts, which their releases may tell.
        """
        if label in self._parts or "/" in label:
            raise PlanError("parts of the units need labels that differ, without a slash")
        self._parts.add(label)
        inner = self._branch()
        inner._part, inner._parts = (*self._part, label), set()
        inner._accounts = self._accounts.branch()
        if renumbered:
            inner._draw_apart(f"part/{label}")
        return inner

    def join(self, parts: Any) -> None:
        """Go on from the most that one of some parts has spent, for each entry and in all."""
        for part in parts:
            self._parts -= set(part._part[len(self._part) :][:1])
            self._accounts.raise_to(part._accounts)
