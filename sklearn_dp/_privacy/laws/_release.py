"""A release before its noise is drawn, and the premises that most proofs share.

A law builds a :class:`Release` from integers and checks; a session pays for it; only then it calls
`draw`. So a premise that does not hold ends the fit before anything is spent or drawn.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from .._plan import Mechanism, require
from .._rounding import bounded_integers, exact_integers, floats_up

__all__ = ["Release", "check_cost", "integer_scores", "positive_sensitivity"]

_FARTHEST_SCORE = 2**61


@dataclass(frozen=True)
class Release:
    """What is released, at what cost, by whose claim, with which noise.

    Attributes
    ----------
    kind : str
        Of the event that an audit sees; see :class:`~sklearn_dp._privacy._trace.Event`.
    mechanism : Mechanism
    value : object
        The exact statistic.
    sensitivity, scale : float or ndarray
        The proved claim about `value`, and the noise scale, in grid steps.
    rho, delta : float
        The cost.
    draw : callable
        ``draw(noise)`` gives the output.
    cost : float, optional
        What an audit sees as the cost: epsilon of pure mechanisms; `rho` by default.
    public : dict
        Everything else that must agree between neighbours.
    unit : float or ndarray
        Length of a grid step, for the report.
    told : tuple of two floats, optional
        Sensitivity and scale in the report, where these are not the fields above.
    units : ndarray of int, optional
        Numbers of the units that it decides about, for audits; all of them by default.
    """

    kind: str
    mechanism: Mechanism
    value: object
    sensitivity: object
    scale: object
    rho: float
    draw: Callable
    delta: float = 0.0
    cost: float | None = None
    public: dict = field(default_factory=dict)
    unit: object = 1.0
    told: tuple | None = None
    units: object = None


def check_cost(name, value):
    """A cost, if it is positive and finite.

    Parameters
    ----------
    name : str
        Of the cost, for the error.
    value : float

    Examples
    --------
    >>> check_cost("rho", 0.25)
    0.25
    """
    require(math.isfinite(value) and value > 0, f"a positive, finite {name}")
    return value


def positive_sensitivity(sensitivity):
    """Floats that are no smaller than the claim, whatever numbers it is made in.

    Examples
    --------
    >>> positive_sensitivity(3)
    3.0
    >>> positive_sensitivity(0.0)
    Traceback (most recent call last):
      ...
    sklearn_dp._privacy._plan.PlanError: a release needs a positive, finite sensitivity.
    """
    sensitivity = floats_up(sensitivity)
    good = (sensitivity > 0) & (sensitivity < math.inf)
    require(np.all(good), "a positive, finite sensitivity")
    return sensitivity


def integer_scores(scores):
    """Scores as a vector of int64.

    Clipping moves no two values apart, so the sensitivity is what it was; no difference of two
    scores, and no score with its noise, can then leave 63 bits.
    """
    scores = exact_integers(scores)
    require(scores.ndim == 1, "a vector of scores")
    return bounded_integers(np.clip(scores, -_FARTHEST_SCORE, _FARTHEST_SCORE), np.int64)
