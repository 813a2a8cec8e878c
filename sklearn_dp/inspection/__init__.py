"""Curves and pictures of the accuracy that a budget buys, its use, and the errors of an answer.

Nothing here is charged. The pictures follow scikit-learn's displays: `from_...` makes one and draws
it, `plot` draws it again, attributes with a trailing underscore are artists.
"""

from ._budget_display import BudgetDisplay, PrivacyUtilityDisplay
from ._cluster_display import ClusterDisplay, HierarchyDisplay, TopicDisplay
from ._curve import PrivacyUtilityCurve, utility_curve

__all__ = [
    "BudgetDisplay",
    "ClusterDisplay",
    "HierarchyDisplay",
    "PrivacyUtilityCurve",
    "PrivacyUtilityDisplay",
    "TopicDisplay",
    "utility_curve",
]
