"""A released second moment, and the exact projection onto axes found in it.

Cells are cut along few axes (:class:`Axes`). Rows are integers, and so is the basis, in steps of
2**-20: a projected row is then a function of that row and of the released basis, bit for bit.
"""

import math

import numpy as np
from scipy.special import ndtri

from ..._privacy._session import PrivacySession
from ..._queries.grids import Axes
from ..._queries.handles import GridRows
from ..._queries.second_moments import SecondMoment, symmetric

_FLUCTUATIONS = 2.5  # of the largest eigenvalue of noise, which it exceeds in less than 1%


def noise_edge(sd: float, d: int) -> float:
    """Return a limit that the largest eigenvalue of a symmetric matrix of noise seldom exceeds.

    With the standard deviation `sd` on the diagonal and sd / sqrt(2) off it, that eigenvalue is
    about sd sqrt(2 d), with fluctuations of the size sd / sqrt(2) d^(-1/6) (Tracy and Widom).

    >>> round(noise_edge(1.0, 2), 2)
    3.57
    """
    return sd * (math.sqrt(2 * d) + _FLUCTUATIONS / math.sqrt(2) * d ** (-1 / 6))


def plain_axes(n_features: int, limit: float) -> Axes:
    """The coordinate axes, with the spread of rows of mean squared length limit^2 / 1.5."""
    whole = np.full(n_features, float(limit))
    return Axes(None, whole / math.sqrt(1.5 * n_features), whole, float(limit))


def second_moment(
    session: PrivacySession, entry: str, rows: GridRows, limit: float, rho: float
) -> np.ndarray:
    """Noisy sum (d, d) of x x^T over rows clipped to a norm, in squared steps.

    The noise is isometric in the Frobenius norm: its standard deviation is limit^2 / sqrt(2 rho) on
    the diagonal, and 1 / sqrt(2) of that off it.
    """
    noisy = session.release(entry, rows.ask(SecondMoment(limit)), rho=rho)
    return symmetric(noisy, rows.n_features) / rows.unit**2


def normal_points(rng: np.random.Generator, n: int, spread: np.ndarray) -> np.ndarray:
    """Public points (n, q), no noise, of a normal law with a spread (q,) along each axis."""
    uniform = rng.random((n, len(spread)))
    return ndtri(np.clip(uniform, 1e-9, 1 - 1e-9)) * spread
