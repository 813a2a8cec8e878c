"""Noise in proportion to a positive definite matrix."""

import numpy as np
from scipy.special import chdtr, ndtri

from ..._privacy.laws.proportional import OUTPUT_BITS, holds, renyi
from ._law import Law

__all__ = ["LAWS"]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(200)


def _claims(event):
    if not holds(
        event.sensitivity, event.scale, len(event.output), event.cost, event.public["delta"]
    ):
        yield f"{event.entry}: too little noise for its distance and cost"


def _replay(player, known, event):
    """Eigenvalues of one matrix with respect to the other; the cost at the order 2."""
    ratios = _relative_eigenvalues(known.value, event.value)
    if ratios.min() <= 0:
        player.account(event, np.inf, np.inf)
        return known.output
    far = float(max(ratios.max(), 1 / ratios.min())) - 1
    player.account(
        event,
        far / event.sensitivity,
        float(renyi(2.0, max(far, 1e-12), event.scale, len(ratios))) / 2,
    )
    return known.output


def _relative_eigenvalues(known, other):
    """Eigenvalues of two exact matrices, each a sum and a count, with respect to each other."""
    a, b = (np.asarray(total, dtype=np.float64) / max(1, count) for total, count in (known, other))
    scale = np.sqrt(np.maximum(np.diag(a), 1e-300))
    try:
        root = np.linalg.inv(np.linalg.cholesky(a / np.outer(scale, scale)))
    except np.linalg.LinAlgError:
        return np.zeros(len(a))
    return np.linalg.eigvalsh(root @ (b / np.outer(scale, scale)) @ root.T)


def _numbers(event):
    """Diagonal of ``R^-1 output R^-T = M M^T``: squared lengths of the independent rows of M.

    Row i of M is Gaussian with mean e_i and standard deviation eta, so its squared length is
    ``(1 + eta g)^2 + eta^2 chi^2_(d - 1)``, whose distribution function is one integral over g.
    """
    total, count = event.value
    matrix = np.asarray(total, dtype=np.float64) / (max(1, count) * 2.0 ** event.public["bits"])
    output = np.asarray(event.output, dtype=np.float64) * 2.0**-OUTPUT_BITS
    scale = np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    try:
        root = np.linalg.inv(np.linalg.cholesky(matrix / np.outer(scale, scale)))
    except np.linalg.LinAlgError:  # off the event that the guarantee is about
        return np.empty(0), np.empty(0)
    lengths = np.diag(root @ (output / np.outer(scale, scale)) @ root.T)
    below = np.array([_below(length, float(event.scale), len(lengths)) for length in lengths])
    return below, below


def _below(length, eta, d):
    """P[squared length of a row <= `length`]."""
    if length <= 0:
        return 0.0
    # The first entry is 1 + eta g: g runs over where its square leaves room for the others.
    ends = (np.array([-1.0, 1.0]) * np.sqrt(length) - 1) / eta
    low, high = np.clip(ends, ndtri(1e-300), -ndtri(1e-300))
    g = low + (high - low) * (_NODES + 1) / 2
    density = np.exp(-np.square(g) / 2) / np.sqrt(2 * np.pi)
    room = np.maximum(length - np.square(1 + eta * g), 0.0) / eta**2
    others = chdtr(d - 1, room) if d > 1 else 1.0
    return float(np.clip((high - low) / 2 * np.sum(_WEIGHTS * density * others), 0.0, 1.0))


LAWS = {"proportional": Law(_replay, _numbers, _claims, rho=lambda event: event.cost, in_rho=True)}
