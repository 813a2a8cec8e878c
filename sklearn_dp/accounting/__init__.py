"""Privacy accounting by hand: what several releases of one data set cost together.

A :class:`~sklearn_dp.PrivacyLedger` adds up the fits of this package by itself. This module is for
a curator who has other releases to add: noisy counts, models of another library, fits of a year
ago. Each release is an *event* that states what is known about it; functions of events compose
them, read epsilon off the whole, and say what it means for groups of units::

    >>> from sklearn_dp import accounting
    >>> study = [accounting.Gaussian(0.1), accounting.Laplace(0.5), accounting.ApproxDP(0.2, 1e-8)]
    >>> round(accounting.total_epsilon(study, delta=1e-6), 3)
    2.695

All events must speak of the same neighboring relation and the same unit, and be fixed before the
first result is seen. Where later budgets are chosen by earlier results, use a ledger, whose rules
hold for that.

Four currencies are converted: ``mu``-GDP, the exact guarantee of Gaussian noise [1]_;
``(rho, delta)``-zCDP [2]_; pure ``epsilon``-DP and ``(epsilon, delta)``-DP. Every result is rounded
to the safe side: costs up, splits down.

References
----------
.. [1] Dong, J., Roth, A. and Su, W. (2022). Gaussian differential privacy. JRSS-B 84.
.. [2] Bun, M. and Steinke, T. (2016). Concentrated differential privacy. TCC.
.. [3] Dwork, C. and Roth, A. (2014). The algorithmic foundations of differential privacy.
   Theorem 2.2 and section 3.5: groups, composition.
"""

from .._costs.accounting import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    gaussian_rho,
    gaussian_sigma,
    mu_from_rho,
    pure_dp_epsilon,
    pure_zcdp_rho,
    rho_from_mu,
    zcdp_epsilon,
    zcdp_rho,
)
from ._composition import (
    ZCDP,
    ApproxDP,
    Exponential,
    Gaussian,
    Laplace,
    PureDP,
    compose,
    deployment_entry,
    event_of_plan,
    group_privacy,
    total_epsilon,
    zcdp_cost,
)

__all__ = [
    "ApproxDP",
    "Exponential",
    "Gaussian",
    "Laplace",
    "PureDP",
    "ZCDP",
    "compose",
    "deployment_entry",
    "event_of_plan",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "gaussian_rho",
    "gaussian_sigma",
    "group_privacy",
    "mu_from_rho",
    "pure_dp_epsilon",
    "pure_zcdp_rho",
    "rho_from_mu",
    "total_epsilon",
    "zcdp_cost",
    "zcdp_epsilon",
    "zcdp_rho",
]
