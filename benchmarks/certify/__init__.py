"""Attacks on estimators as black boxes, and replays of drawn data: for releases and for auditors.

`python -m benchmarks.certify ESTIMATOR`, in a checkout, makes a certificate: a lower bound of
epsilon from thousands of fits. `checks` lists the checks of `sklearn_dp.audit` and those that only
this package needs: replays of drawn data (`drawn`), costs once more (`recount`), and what all
estimators inherit (`inherited`). All of it uses the recorder and the replay of `sklearn_dp.audit`,
and nothing of the package uses it.
"""

from .certificate import CASES, ERROR, Certificate, Finding, Pair, certify

__all__ = ["CASES", "ERROR", "Certificate", "Finding", "Pair", "certify"]
