"""Search over parameters under one privacy guarantee."""

from ._candidate_plan import BestOf, Shares
from ._preflight import Preflight, preflight
from ._scorers import PrivateScorer
from ._search import DPGridSearch, DPRandomizedSearch

__all__ = [
    "BestOf",
    "DPGridSearch",
    "DPRandomizedSearch",
    "Preflight",
    "PrivateScorer",
    "Shares",
    "preflight",
]
