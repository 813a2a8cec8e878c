"""What released values say beside their noise: shrinkage, and points where they say nothing."""

import numpy as np
from scipy.special import ndtri


def excess_of_each(excess: np.ndarray, weights: np.ndarray, own: float) -> np.ndarray:
    """How far clusters have moved beyond noise, each on its own or all together.

    `excess` (k,) is the squared displacement per feature, less what noise alone would show,
    `weights` are released counts. `own`, in [0, 1], is how much a cluster's own displacement says:
    squares of few features scatter so much that the mean over all clusters says more. What is
    returned, not negative, is the variance of a prior for the displacement of each.

    One cluster of two has moved. Its own excess counts in full; the other one gets the mean:

    >>> excess_of_each(np.array([4.0, -2.0]), np.ones(2), 0.0).tolist()
    [4.0, 1.0]
    """
    pooled = max(0.0, float(weights @ excess / max(weights.sum(), 1e-300)))
    return np.maximum(0.0, own * excess + (1 - own) * np.maximum(pooled, excess))


def normal_points(rng: np.random.Generator, n: int, spread: np.ndarray) -> np.ndarray:
    """Public points (n, q) of a normal law with a released spread (q,) along each axis.

    The generator is one of algorithms: these points are no noise, and hide nothing.
    """
    uniform = rng.random((n, len(spread)))
    return ndtri(np.clip(uniform, 1e-9, 1 - 1e-9)) * spread
