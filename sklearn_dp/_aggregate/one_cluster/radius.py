"""GoodRadius: a radius r at which some ball holds nearly t points, at most four times too large.

The score of a radius is the mean L(r) of the t largest neighbour counts, each cut at t [1]_. With
L(r_j) >= t - loss, a ball of radius r_j about some point holds t - loss points; with
L(r_before) < t, no ball of half that radius holds t.

References
----------
.. [1] K. Nissim, U. Stemmer and S. Vadhan, "Locating a small cluster privately", PODS 2016,
   algorithm 1; the selectors other than RecConcave replace it in practice.
"""

import math
from dataclasses import dataclass

import numpy as np

from ..._privacy._accounting import pure_dp_epsilon
from ..._privacy._plan import Mechanism, PlanEntry
from .pair_counts import LinearRadii, LogRadii, neighbour_counts, radius_scores
from .rec_concave import rec_concave, rec_concave_steps

__all__ = [
    "RADIUS_METHODS",
    "Radius",
    "exponential_epsilon",
    "good_radius",
    "good_radius_entries",
    "quality",
    "radii_of",
    "window_scores",
]

RADIUS_METHODS = ("exponential", "binary_search", "above_threshold", "rec_concave")
GRIDS = {"log": LogRadii, "linear": LinearRadii}
_LEAST = {"log": 2.0**-15, "linear": 2.0**-11}  # of the public radius
_SAFE = 1 - 1e-12
BETA = 0.05  # of the utility statements; never in a noise scale


@dataclass(frozen=True)
class Radius:
    """A released radius.

    Attributes
    ----------
    square : float
        Its square, an integer number of squared steps.
    loss : float
        Points that may be missing in its ball with 95 % confidence.
    """

    square: float
    loss: float


def radii_of(grid, ball, least=None):
    """The public grid for points in a ball of radius `ball`, in steps."""
    return GRIDS[grid](_LEAST[grid] * ball if least is None else least, 2 * ball)


def exponential_epsilon(rho):
    """epsilon of an exponential mechanism that costs at most `rho`."""
    return math.sqrt(8 * rho) * _SAFE


def good_radius_entries(method, rho, delta, name="radius"):
    """Plan entries of :func:`good_radius`."""
    mechanism = {
        "exponential": Mechanism.EXPONENTIAL,
        "binary_search": Mechanism.GAUSSIAN,
        "above_threshold": Mechanism.ABOVE_THRESHOLD,
        "rec_concave": Mechanism.REC_CONCAVE,
    }[method]
    single = method in ("exponential", "above_threshold")
    return (
        PlanEntry(
            name,
            mechanism,
            rho,
            delta if method == "rec_concave" else 0.0,
            uses=1 if single else None,
            sensitivity="2 of the mean of t counts",
        ),
    )


def good_radius(session, entry, rows, t, radii, method):
    """Choose a radius of a public grid.

    Parameters
    ----------
    session : PrivacySession
    entry : str
        Spends all that it has.
    rows : ndarray of shape (n, d), integer-valued, n private
    t : int
        Public or released.
    radii : LogRadii or LinearRadii
    method : {"exponential", "binary_search", "above_threshold", "rec_concave"}

    Returns
    -------
    radius : Radius or None
        None only with "rec_concave", when no radius stands out.
    """
    scores = radius_scores(neighbour_counts(rows, radii), t)
    index, loss = _SELECT[method](session, entry, scores, t, radii)
    return None if index is None else Radius(float(radii.squares[index]), loss / t)


def window_scores(values, target, slack, before):
    """min(target - values[before], values - target + slack): high where `target` is crossed."""
    earlier = np.where(before < 0, 0, values[np.maximum(before, 0)])
    return np.minimum(target - earlier, values - target + slack)


def quality(scores, t, slack, radii):
    """t Q_j = min(t^2 - t L(before j), t L(j) - t^2 + slack): as sensitive as t L."""
    return window_scores(scores, t * t, slack, radii.before)


def _sensitivity(t):
    return 2 * t - 1  # of t L; the proof is at `radius_scores`


def _slack(t, points):
    """A public number of points as a slack of t L; half of t at most, to be of any use."""
    return min(math.ceil(t * points), t * t // 2)


def _by_exponential(session, entry, scores, t, radii):
    epsilon = exponential_epsilon(session.remaining(entry))
    loss = 8 / epsilon * math.log(len(scores) / BETA)
    index = session.exponential(
        entry,
        quality(scores, t, _slack(t, loss), radii),
        sensitivity=_sensitivity(t),
        epsilon=epsilon,
    )
    return index, loss * t


def _by_binary_search(session, entry, scores, t, radii):
    steps = max(1, (len(scores) - 1).bit_length())
    rho = session.remaining(entry) / steps * _SAFE
    margin = _sensitivity(t) / math.sqrt(2 * rho) * math.sqrt(2 * math.log(steps / BETA))
    level = t * t - _slack(t, margin / t)
    low, high = 0, len(scores) - 1
    while low < high:
        middle = (low + high) // 2
        noisy = session.gaussian(entry, scores[middle], sensitivity=_sensitivity(t), rho=rho)
        low, high = (low, middle) if noisy >= level else (middle + 1, high)
    return high, 2 * margin


def _by_above_threshold(session, entry, scores, t, radii):
    epsilon = pure_dp_epsilon(session.remaining(entry))
    margin = 16 / epsilon * math.log(2 * len(scores) / BETA)
    index = session.above_threshold(
        entry, scores, t * t - _slack(t, margin), sensitivity=_sensitivity(t), epsilon=epsilon
    )
    return (len(scores) - 1 if index is None else index), 2 * margin * t


def _by_rec_concave(session, entry, scores, t, radii):
    plan, (choices, leads) = session.plan[entry], rec_concave_steps(len(scores))
    rho = session.remaining(entry)
    share = rho / 2 if leads else rho
    epsilon = exponential_epsilon(share / choices)
    lead = pure_dp_epsilon(share / max(leads, 1))
    delta = plan.delta / max(leads, 1) * _SAFE
    loss = (
        4
        * _sensitivity(t)
        * max(
            16 / epsilon * math.log(16 / BETA),
            16 / 3 / lead * (math.log(1 / (4 * BETA * delta)) + 1) if leads else 0.0,
        )
    )
    slack = _slack(t, loss / t)
    # Some radius has a score of half the slack: the first with t L >= t^2 - slack / 2.
    index = rec_concave(
        session,
        entry,
        quality(scores, t, slack, radii),
        slack // 2,
        sensitivity=_sensitivity(t),
        epsilon=epsilon,
        lead_epsilon=lead,
        lead_delta=delta,
    )
    return index, loss


_SELECT = {
    "exponential": _by_exponential,
    "binary_search": _by_binary_search,
    "above_threshold": _by_above_threshold,
    "rec_concave": _by_rec_concave,
}
