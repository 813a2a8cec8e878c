"""One release of each kind of noise and selection, by a session, under a plan entry."""

import numpy as np

from sklearn_dp._privacy._session import sparse_histogram
from sklearn_dp._privacy.mechanisms.filters import friendly_core_filter, unit_bernoulli
from sklearn_dp._privacy.mechanisms.pure import (
    above_threshold,
    exponential,
    laplace,
    report_leader_if_stable,
)
from sklearn_dp._privacy.mechanisms.stability import random_order, stability_histogram, unit_draws

COUNTS = np.arange(40), np.arange(40) % 9
# Where a sensitivity may be anything, it is `scale`; costs are at most 0.5.
RELEASES = {
    "gaussian": lambda s, a, scale: s.gaussian(a, np.arange(100), sensitivity=scale, rho=0.5),
    "sparse": lambda s, a, scale: sparse_histogram(
        s, a, *COUNTS, n_candidates=60, threshold=2 * scale, sensitivity=scale, rho=0.5
    ),
    "stability": lambda s, a, scale: stability_histogram(
        s, a, COUNTS[0], COUNTS[1] + 1, rho=0.5, delta=0.1
    ),
    "laplace": lambda s, a, scale: laplace(s, a, np.arange(100), sensitivity=scale, epsilon=0.5),
    "choice": lambda s, a, scale: exponential(s, a, [0, 1, 3], sensitivity=2.0, epsilon=1.0),
    "threshold": lambda s, a, scale: above_threshold(
        s, a, [0, int(2 * scale), int(5 * scale)], 4 * scale, sensitivity=scale, epsilon=1.0
    ),
    "filter": lambda s, a, scale: friendly_core_filter(
        s, a, np.arange(40), sigma=9.0, threshold=18.3, bad=1, sensitivity=1.0, rho=0.5, delta=0.1
    ),
    "bernoulli": lambda s, a, scale: unit_bernoulli(
        s, a, np.arange(40), 40, sensitivity=1.0, rho=0.5, delta=0.1
    ),
    "lead": lambda s, a, scale: report_leader_if_stable(
        s, a, [0, 30, 7], sensitivity=1, epsilon=1.0, delta=1e-5
    ),
    "draws": lambda s, a, scale: unit_draws(s, 20),
    "order": lambda s, a, scale: random_order(s, np.zeros((7, 2))),
}
