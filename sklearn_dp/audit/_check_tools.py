"""Data, comparisons and traps that the checks share."""

import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri

from .._privacy._trace import Event
from ..exceptions import SeededNoiseWarning, UtilityWarning
from ._crashes import Explosion
from ._observe import Outcome

__all__ = [
    "Bomb",
    "N_FEATURES",
    "Watched",
    "assert_none",
    "check_data",
    "check_groups",
    "hard_groups",
    "released_state",
    "succeed",
]

_EXPECTED_WARNINGS = (SeededNoiseWarning, UtilityWarning)
N_FEATURES = 3


def check_data(n: int, seed: int = 0, d: int = N_FEATURES) -> np.ndarray:
    """Two groups of points (n, d), with values of many digits.

    Well separated, so that clusterings find something; of many digits, so that a leak can be told
    from chance.
    """
    rng = np.random.default_rng(seed)
    # Each place is repeated by itself: they are apart in every d, also where 6 divides it.
    places = np.stack([np.resize(place, d) for place in ([-3.0, 0.5, 0.1], [2.0, 2.0, -1.0])])
    return places[np.arange(n) % 2] + 0.3 * ndtri(rng.random((n, d)))


def check_groups(n: int) -> np.ndarray:
    """Groups of one to four rows, out of order."""
    return np.random.default_rng(1).permutation(np.arange(n) * 2 // 5)


def assert_none(problems: Sequence[str]) -> None:
    """Fail with the first three problems, if there are any."""
    assert not problems, "; ".join(problems[:3]) + (" ..." if len(problems) > 3 else "")


def succeed(outcome: Outcome, context: str = "") -> None:
    """No error, and no warning but those that the contract knows."""
    if outcome.error is not None:
        raise AssertionError(f"{context}a fit raises {outcome.error!r}") from outcome.error
    other = [text for kind, text in outcome.warnings if not issubclass(kind, _EXPECTED_WARNINGS)]
    assert not other, f"{context}a fit warns: {other[0]}"


def released_state(estimator: Any, *but: str) -> bytes:
    """What a pickle would hold, but for the parameters that may differ or have no pickle.

    And but for attributes whose names end in one of `but`.
    """
    state, left_out = estimator.__getstate__(), ("ledger", "n_jobs")
    return pickle.dumps(
        {name: state[name] for name in state if name not in left_out and not name.endswith(but)}
    )


def hard_groups(n: int) -> dict[str, Any]:
    """Groups with ids of which an array or a sort would make something else, by what they are.

    Of about three rows each, so that neither a merged nor a split unit goes unnoticed.
    """
    big = [*(2**53 + k for k in range(4)), 0.5, 1.5, -1, -2]
    sets = [frozenset(range(i, j)) for i in range(3) for j in range(i, 4)]
    mixed = [1, "1", b"1", (1,), ("1",), 2**53 + 1, float(2**53), -1]
    return {
        name: [kinds[k % len(kinds)] for k in check_groups(n)]
        for name, kinds in (("big numbers", big), ("sets", sets), ("mixed", mixed))
    }


class Watched:
    """An array-like whose shape is public, and that tells when its values are asked for.

    `rows` are the values, for the audit alone: no estimator knows this name.
    """

    def __init__(self, X: Any, touch: Callable[[], Any]) -> None:
        self.rows, self._touch = X, touch
        self.shape = X.shape

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        """Tell, and hand the values over."""
        self._touch()
        return np.asarray(self.rows, dtype=dtype)


class Bomb:
    """A trace that breaks the fit at its first release."""

    def record(self, event: Event) -> Any:
        """Let the seed event pass, which belongs to no plan entry; the first release explodes."""
        if event.entry:
            raise Explosion
        return event.output
