"""A release before its noise is drawn, and the premises that most proofs share: one that does not
hold ends the fit before anything is spent or drawn."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..._costs.plan import Mechanism, PlanError
from ..._costs.rounding import floats_up
from .._integers import bounded_integers, exact_integers
from .._noise import NoiseSource

_FARTHEST_SCORE = 2**61


def require(holds: object, premise: str) -> None:
    """Raise where the premise of a proof does not hold.

    `premise` completes "a release needs"; never with a number in it, which could be data.

    >>> require(1 < 2, "order among numbers")
    >>> require(1 > 2, "a miracle")
    Traceback (most recent call last):
      ...
    sklearn_dp._costs.plan.PlanError: a release needs a miracle.
    """
    if not holds:
        raise PlanError(f"a release needs {premise}.")


@dataclass(frozen=True)
class Release:
    """A release: its value, its cost, its claim and its noise."""

    kind: str  # of the event that an audit sees; see `Event` in `_trace`
    mechanism: Mechanism
    value: Any  # the exact statistic
    sensitivity: Any  # the proved claim about `value`, in grid steps
    scale: Any  # of the noise, in grid steps
    rho: float
    draw: Callable[[NoiseSource], Any]  # gives the output
    delta: float = 0.0
    cost: float | None = None  # what an audit sees: epsilon of pure mechanisms; `rho` by default
    public: dict[str, Any] = field(default_factory=dict)  # all else that neighbors must agree on
    unit: Any = 1.0  # length of a grid step, for the report
    # sensitivity and scale in the report, where these are not the fields above
    told: tuple[float, float] | None = None
    units: Any = None  # numbers of the units that it decides about, for audits; all by default


def check_cost(name: str, value: float) -> float:
    """A cost, if it is positive and finite; `name` is for the error.

    >>> check_cost("rho", 0.25)
    0.25
    """
    require(math.isfinite(value) and value > 0, f"a positive, finite {name}")
    return value


def positive_sensitivity(sensitivity: Any) -> Any:
    """Floats that are no smaller than the claim, whatever numbers it is made in."""
    sensitivity = floats_up(sensitivity)
    good = (sensitivity > 0) & (sensitivity < math.inf)
    require(np.all(good), "a positive, finite sensitivity")
    return sensitivity


def integer_scores(scores: Any) -> np.ndarray:
    """Scores as int64, clipped. That moves no two values apart, so the sensitivity is what it was;
    no difference of two scores, and no score with its noise, can then leave 63 bits."""
    scores = exact_integers(scores)
    require(scores.ndim == 1, "a vector of scores")
    return bounded_integers(np.clip(scores, -_FARTHEST_SCORE, _FARTHEST_SCORE), np.int64)


def lengths(output: np.ndarray, unit: Any) -> np.ndarray:
    """An output in grid steps, in lengths."""
    return np.asarray(output * np.asarray(unit, dtype=np.float64), dtype=np.float64)


def sorted_cells(codes: Any, counts: Any) -> tuple[np.ndarray, np.ndarray]:
    """Cells in the order of their codes, which are distinct: two counts of one code would be two
    numbers that the same unit moves."""
    require(codes.ndim == 1 and codes.shape == counts.shape, "a count for each code")
    order = np.argsort(codes, kind="stable")
    codes, counts = codes[order], counts[order]
    require(np.all(codes[1:] != codes[:-1]), "distinct codes")
    return codes, counts
