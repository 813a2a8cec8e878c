"""One release of each kind of noise and selection, by a session, under a plan entry."""

import numpy as np
from kernel_tools import sealed_names

from sklearn_dp._privacy import _session
from sklearn_dp._privacy.mechanisms import pure
from sklearn_dp._privacy.mechanisms.filters import friendly_core_filter, unit_bernoulli
from sklearn_dp._privacy.mechanisms.stability import random_order, release_names, unit_draws

COUNTS = np.arange(40), np.arange(40) % 9
# Where a sensitivity may be anything, it is `scale`; costs are at most 0.5.
RELEASES = {
    "gaussian": lambda s, a, scale: s.gaussian(a, np.arange(100), sensitivity=scale, rho=0.5),
    "sparse": lambda s, a, scale: s._release(
        a, _session.sparse(*COUNTS, 60, 2 * scale, scale, 0.5)
    ),
    "stability": lambda s, a, scale: release_names(
        s, a, sealed_names(COUNTS[0], COUNTS[1] + 1), rho=0.5, delta=0.1
    ),
    "laplace": lambda s, a, scale: s._release(a, pure.laplace_release(np.arange(100), scale, 0.5)),
    "choice": lambda s, a, scale: s._release(a, pure.exponential_release([0, 1, 3], 2.0, 1.0)),
    "threshold": lambda s, a, scale: s._release(
        a, pure.above_threshold_release([0, int(2 * scale), int(5 * scale)], 4 * scale, scale, 1.0)
    ),
    "filter": lambda s, a, scale: friendly_core_filter(
        s, a, np.arange(40), sigma=9.0, threshold=18.3, bad=1, sensitivity=1.0, rho=0.5, delta=0.1
    ),
    "bernoulli": lambda s, a, scale: unit_bernoulli(
        s, a, np.arange(40), 40, sensitivity=1.0, rho=0.5, delta=0.1
    ),
    "lead": lambda s, a, scale: s._release(a, pure.lead([0, 30, 7], 1, 1.0, 1e-5)),
    "draws": lambda s, a, scale: unit_draws(s, 20),
    "order": lambda s, a, scale: random_order(s, np.zeros((7, 2))),
}
