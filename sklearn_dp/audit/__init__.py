"""Audit private estimators: replay on neighbours, test noise, search for leaks, plant bugs."""

from . import mutants  # noqa: F401 - registers them
from ._certificate import Certificate, Finding, certify
from ._certificate.cases import Pair
from ._checks import check_dp_estimator
from ._discovery import all_estimators
from ._drawn import drawn_audit
from ._leaks import scan_for_leaks
from ._mutation import MUTANTS, Mutant, killer, mutant
from ._neighbours import Neighbour, neighbouring_pairs
from ._noise_law import noise_audit
from ._replay import ReplayResult, replay_audit

__all__ = [
    "MUTANTS",
    "Certificate",
    "Finding",
    "Mutant",
    "Neighbour",
    "Pair",
    "ReplayResult",
    "all_estimators",
    "certify",
    "check_dp_estimator",
    "drawn_audit",
    "killer",
    "mutant",
    "neighbouring_pairs",
    "noise_audit",
    "replay_audit",
    "scan_for_leaks",
]
