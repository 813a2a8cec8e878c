"""Rules of runs and the laws of their winners, for several tests."""

import numpy as np

from sklearn_dp._privacy._selection_rules import CappedGeometric, Fixed, NegativeBinomial, Thin

__all__ = ["GEOMETRIC", "RULES", "generating"]

GEOMETRIC = NegativeBinomial(10, 1 / 81)
RULES = [
    Thin(3, 0.9), Thin(5, 0.4), Fixed(4), GEOMETRIC, NegativeBinomial(10, 0.05, 2),
    NegativeBinomial(6, 0.2, 3), CappedGeometric(6, 0.1, 20),
]  # fmt: skip


def generating(rule, u):
    """Antiderivative of `rate`: the probability that the winner is among the lowest `u`."""
    if isinstance(rule, Thin):
        return (1 - rule.p + rule.p * u) ** rule.m + (1 - rule.p) ** rule.m * u
    if isinstance(rule, CappedGeometric):
        k = np.arange(1, rule.cap)
        p = rule.gamma * (1 - rule.gamma) ** (k - 1)
        powers = np.asarray(u)[..., None] ** k
        return powers @ p + (1 - rule.gamma) ** (rule.cap - 1) * u**rule.cap
    top = (1 - (1 - rule.gamma) * u) ** -rule.eta - 1
    return top / (rule.gamma**-rule.eta - 1)
