"""Conversions between epsilon, mu and rho, and the entry of a study in the public registry.

Four currencies: ``mu``-GDP, the exact guarantee of Gaussian noise [1]_; ``(rho, delta)``-zCDP [2]_;
pure ``epsilon``-DP and ``(epsilon, delta)``-DP. Every result is rounded to the safe side: costs up,
splits down.

What several releases cost together, a :class:`~sklearn_dp.PrivacyLedger` adds up: fits of this
package by itself, and others that it is told of (:meth:`~sklearn_dp.PrivacyLedger.charge`).
:meth:`~sklearn_dp.PrivacyLedger.to_dp_accounting` hands all of them to Google's accountants.

References
----------
.. [1] Dong, J., Roth, A. and Su, W. (2022). Gaussian differential privacy. JRSS-B 84.
.. [2] Bun, M. and Steinke, T. (2016). Concentrated differential privacy. TCC.
"""

from .._privacy._accounting import (
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
from ._deployment_entry import deployment_entry

__all__ = [
    "deployment_entry",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "gaussian_rho",
    "gaussian_sigma",
    "mu_from_rho",
    "pure_dp_epsilon",
    "pure_zcdp_rho",
    "rho_from_mu",
    "zcdp_epsilon",
    "zcdp_rho",
]
