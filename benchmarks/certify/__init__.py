"""Attacks on estimators as black boxes, and replays of drawn data: for releases and for auditors.

`python -m benchmarks.certify ESTIMATOR`, in a checkout, makes a certificate: a lower bound of
epsilon from thousands of fits. `drawn` replays fits with data and parameters drawn at random. Both
use the recorder and the replay of `sklearn_dp.audit`, and nothing of the package uses them.
"""

from .certificate import CASES, ERROR, Certificate, Finding, Pair, certify

__all__ = ["CASES", "ERROR", "Certificate", "Finding", "Pair", "certify"]
