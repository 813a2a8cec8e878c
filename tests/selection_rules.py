"""Rules of runs and the laws of their winners, for several tests."""

import numpy as np

from sklearn_dp._privacy._selection import Geometric, Thin

__all__ = ["GEOMETRIC", "RULES", "generating"]

GEOMETRIC = Geometric(10, 1 / 81)
RULES = [Thin(3, 0.9), Thin(5, 0.4), Thin(4, 1.0), GEOMETRIC, Geometric(6, 0.1, 20)]


def generating(rule, u):
    """Antiderivative of `rate`: the probability that the winner is among the lowest `u`."""
    if isinstance(rule, Thin):
        return (1 - rule.p + rule.p * u) ** rule.m + (1 - rule.p) ** rule.m * u
    if np.isfinite(rule.cap):
        k = np.arange(1, rule.cap)
        p = rule.gamma * (1 - rule.gamma) ** (k - 1)
        powers = np.asarray(u)[..., None] ** k
        return powers @ p + (1 - rule.gamma) ** (rule.cap - 1) * u**rule.cap
    return rule.gamma * u / (1 - (1 - rule.gamma) * u)
