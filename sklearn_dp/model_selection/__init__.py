"""Search over parameters under one privacy guarantee."""

from ._preflight import Preflight, preflight
from ._scorers import PrivateScorer
from ._search import DPGridSearch, DPRandomizedSearch
from ._search_plan import BestOf, Shares

__all__ = [
    "BestOf",
    "DPGridSearch",
    "DPRandomizedSearch",
    "Preflight",
    "PrivateScorer",
    "Shares",
    "preflight",
]
