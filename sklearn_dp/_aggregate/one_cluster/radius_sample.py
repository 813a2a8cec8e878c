"""A radius chosen on a random sample of the points: what that saves, in time and in privacy.

Comparing all pairs takes n^2 distances, so beyond some ten thousand points the radius is chosen on
a sample. A unit that is in the sample with probability `rate` only is protected better [1]_; what
is not needed is spent on less noise. The sample is not released, and its coins are used for
nothing else. The points of the sample, and nothing else of the rows, are collected at the place of
the fit, which is trusted.

References
----------
.. [1] B. Balle, G. Barthe and M. Gaboardi, "Privacy amplification by subsampling: tight analyses
   via couplings and divergences", NeurIPS 2018.
"""

import math

import numpy as np

from ..._privacy._accounting import bounded_range_zcdp_rho, pure_dp_epsilon, pure_zcdp_rho
from ..._privacy._budget import PrivacyBudget
from ..._privacy._plan import PrivacyPlan
from ..._privacy._session import PrivacySession
from ..shared.grid_table import ROWS
from ..shared.samples import ByPart, Coins
from ..shared.table import Part
from .boxes import chosen_rows
from .radius import good_radius_entries

_MOST_EPSILON = 100.0  # more would only overflow


def coins_at(session: PrivacySession, tag: str, sizes: ByPart, rate: float) -> Coins:
    """Which points are in a random sample: each by its own coin, for this tag alone.

    Other tags have other coins. `sizes` are the numbers of rows of the parts; `rate`, public or
    released, is in (0, 1].
    """
    draws = session.addressed_draws(sum(sizes.values.values()), tag)
    below = max(1, min(int(rate * 2.0**64), 2**64 - 1))  # of 2**64 draws
    return Coins(draws, np.uint64(below - 1), sizes.starts())


def collected(part: Part, among: str, coins: Coins | None) -> tuple[Part, tuple[ByPart, ...]]:
    """A pass: points of a part (m, d), integers, for those who compare pairs of them.

    `among` names which of its points. The coins are of a sample; None where a release has shown
    that there are not too many.
    """
    rows, chosen = part[ROWS], chosen_rows(part, among, coins)
    points = [np.empty((0, rows.n_features))]
    points += [x if chosen is None else x[chosen[place]] for place, x in rows.chunks()]
    return part, (ByPart({part.source.number: np.concatenate(points)}),)


def on_a_sample(epsilon: float, rate: float) -> float:
    """What a pure mechanism may spend on a sample, if the whole is to be epsilon-DP; rounded down.

    The inverse of log(1 + rate (exp(e) - 1)), which is the epsilon of an e-DP mechanism on a
    sample that holds each unit with this probability [1]_: let P be its law with the unit that
    differs, and Q without. On the sample it is rate P + (1 - rate) Q against Q, and
    P <= exp(e) Q, so that the ratio is at most 1 + rate (exp(e) - 1); the other way round it is
    at most 1 / (1 - rate (1 - exp(-e))), which is less.

    >>> [round(on_a_sample(1.0, rate), 2) for rate in (1.0, 0.5, 0.01)]
    [1.0, 1.49, 5.15]
    """
    return math.log1p(math.expm1(epsilon) / rate) * (1 - 1e-9)


def amplified(session: PrivacySession, entry: str, rate: float, method: str) -> PrivacySession:
    """The session that a selector on a sample of a rate spends from, for the same entry.

    Neighbors share the coins of the points they have in common, so their samples are neighbors,
    or equal; whatever holds for each outcome of the coins holds for the mixture. The coins are
    used nowhere else, so a pure selector also has the epsilon of `on_a_sample`: where that allows
    more for the same price, the selector is one step of it. (Bounded range is not inherited, so
    the step costs what a pure one does.)

    Only pure selectors, of :data:`.radius.RADIUS_METHODS`, gain; where nothing is gained it is
    `session` itself.
    """
    cost = {"exponential": bounded_range_zcdp_rho, "above_threshold": pure_zcdp_rho}.get(method)
    outer = min(pure_dp_epsilon(session.remaining(entry)), _MOST_EPSILON)
    inner = on_a_sample(outer, rate)
    if cost is None or cost(inner) <= session.remaining(entry):
        return session
    rho = cost(inner) * (1 + 1e-9)
    plan = PrivacyPlan(
        PrivacyBudget(rho=rho, delta=session.plan.target.delta),
        good_radius_entries(method, rho, 0.0, entry),
    )
    return session.nested(entry, plan, epsilon=outer, delta=0.0)
