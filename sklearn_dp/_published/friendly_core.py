"""The mean as published in the FriendlyCore paper [1]_: ``FriendlyMean(refine=False)``.

The size is released, and without a diameter, one of a public grid for which nearly no pair of
points is farther apart (FC_Avg_UnknownDiam); then the noisy average of a friendly core, with noise
for twice the diameter (FC_Avg). The default, `_aggregate/friendly/mean.py`, has about a third of
its error in many dimensions (``doc/benchmarks/mean.md``).

References
----------
.. [1] E. Tsfadia, E. Cohen, H. Kaplan, Y. Mansour and U. Stemmer, "FriendlyCore: practical
   differentially private aggregation", ICML 2022, FC_Avg, with exact quantiles.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri

from .._aggregate.friendly.later_days import answer
from .._aggregate.friendly.mean_facts import FriendlyMeanResult, PointFacts, PublicFacts
from .._aggregate.friendly.refine import RADII, Points, Refined, find_radius, radius_grid
from .._costs.numbers import sum_down
from .._costs.plan import Mechanism, PlanEntry
from .._privacy._session import PrivacySession
from .._privacy._units import Sealed
from .._queries.averages import Average
from .._queries.point_pairs import PointPairs, Share, average_of_core


def fit_published_mean(
    session: PrivacySession,
    points: Points,
    *,
    diameter: float | None = None,
    radii: np.ndarray | None = None,
    names: Sequence[object] = (),
) -> FriendlyMeanResult:
    """Private mean of points, each of one unit; the plan holds :func:`fc_average_entries`.

    The search for the diameter accepts a radius where the noisy number of far pairs, over n, is
    less than sqrt(4 log(20) / rho of a step): what noise alone exceeds in one of twenty searches.
    """
    radii, columns = radius_grid(*RADII) if radii is None else radii, points.columns
    pairs = points.rows.ask(PointPairs(np.empty(0) if diameter else radii))
    if diameter is None:
        diameter = find_radius(
            session,
            "diameter",
            pairs.far,
            radii,
            slack=lambda share: math.sqrt(4 * math.log(20) / share),
            rho=session.remaining("diameter"),
        )
    d = points.n_features
    if diameter is None:
        return FriendlyMeanResult.missing(columns, PointFacts(math.nan, math.inf))
    paid = session.plan["core size"]
    size_sd = 1 / math.sqrt(2 * session.remaining("core size"))
    average = fc_average(session, pairs.compared, diameter)
    if average is None:
        nothing = PointFacts(math.nan, math.inf, diameter, "zcdp")
        return FriendlyMeanResult.missing(columns, nothing)
    # The released size is a lower bound: by so much, and its noise, it is off. Points that are
    # within a diameter of a friend have, by Jung, a mean square of at most half a diameter's.
    size_sd = math.hypot(size_sd, 1.5 - size_sd * float(ndtri(paid.delta)))
    spread = diameter / math.sqrt(2 * d)
    error = np.full(d, math.hypot(average.sd, spread / math.sqrt(average.size)))
    end = Refined(
        mean=average.mean,
        clip=diameter,
        std_error=error,
        spread=np.full(d, spread),
        size=average.size,
        least=average.size,
        hidden=0.0,
        bias=np.zeros(d),
        variance=np.full(d, spread**2),
        variance_noise=0.0,
    )
    facts = PublicFacts(end.size, d, diameter, 0.0, 0.0, None, names=names)
    return answer(session, end, PointFacts(end.size, size_sd, diameter, "zcdp"), columns, facts)


def fc_average_entries(rho: float, delta: float) -> tuple[PlanEntry, ...]:
    """Plan entries of :func:`fc_average`: a hundredth of rho for the size, 9% each for the filter
    and the size of the core; half of delta each for these."""
    half = math.nextafter(delta / 2, 0.0)
    shares = 0.01 * rho, 0.09 * rho, 0.09 * rho
    last = sum_down([rho, *(-share for share in shares)])
    return (
        PlanEntry("size", Mechanism.GAUSSIAN, shares[0], sensitivity="1 unit"),
        PlanEntry(
            "core",
            Mechanism.FRIENDLY_CORE,
            shares[1],
            half,
            sensitivity="1/2 friend for each of the others",
        ),
        PlanEntry("core size", Mechanism.FRIENDLY_AVERAGE, shares[2], half, sensitivity="1 unit"),
        PlanEntry(
            "core mean", Mechanism.FRIENDLY_AVERAGE, last, sensitivity="2 radii over the core size"
        ),
    )


def fc_average(session: PrivacySession, compared: Sealed, radius: float) -> Average | None:
    """Mean of points of unknown location, of which nearly all are within the released `radius` of
    each other: (rho, delta)-zCDP for neighbors that add or remove a point. With weights, the filter
    is one of whole points, and the average is weighted."""
    core, size = session.plan["core"], session.plan["core size"]
    return average_of_core(
        session,
        compared,
        radius,
        number=Share("size"),
        core=Share("core", core.rho, core.delta),
        size=Share("core size", None, size.delta),
        mean=Share("core mean"),
        weighted=True,
    )
