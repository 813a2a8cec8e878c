"""Bounds of the rows: public ones, or a radius about the origin that is paid for.

Every sensitivity rests on a bound of the rows. It is public, or it is released: a histogram of the
norms on a public grid of all scales gives the radius that nearly all rows are within, and the rows
beyond it are clipped. It is never read off the rows for free.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._privacy._domain import Domain
from ..._privacy._mechanisms import NoisyNorms, norm_counts, private_radius
from ..._privacy._session import PrivacySession
from .beyond import is_ok
from .remedies import listed
from .table import Part, Table

__all__ = ["NO_BOUND", "at_bounds", "ball_of", "known_or_paid", "near_bounds", "radius_about"]

_NEAR, _SMALL = 2.0, 0.02  # standard errors from a bound, if they are small parts of the side
_EQUAL = 1e-5  # of a side: what grids and whitening round by

NO_BOUND = "no bound found: the unit ball is used; public bounds, or more rows, would help"


def known_or_paid(
    session: PrivacySession, entry: str, table: Table, domain: Domain | None
) -> tuple[Domain, str, NoisyNorms | None]:
    """The public domain, or a ball whose radius is released, with a status.

    The entry pays for the histogram of norms, where there is no domain; the norms are what the
    radius was chosen by, None for a public domain.
    """
    if domain is not None:
        return domain, "ok", None
    radius, norms = radius_about(session, entry, table)
    return *ball_of(radius, table.n_features), norms


def radius_about(
    session: PrivacySession,
    entry: str,
    table: Table,
    center: Domain | None = None,
    within: Domain | None = None,
    **options: Any,
) -> tuple[float | None, NoisyNorms]:
    """A released radius that most rows are within, or None, and the norms; see `private_radius`.

    The radius is about the center of `center`, public or released, after a cut to its box if it has
    one. `within` are public bounds that the rows are moved into first.
    """
    (counts,) = table.sums(_norm_counts, center, within)
    return private_radius(session, entry, counts, table.units, **options)


def _norm_counts(part: Part, center: Domain | None, within: Domain | None) -> tuple[Part, tuple]:
    def prepared(rows: Any) -> Any:
        rows = rows if within is None else within.move_rows(rows)
        return rows if center is None else center.center_rows(rows)

    return part, (norm_counts(part.source.read(), part.units, prepared),)


def ball_of(radius: float | None, n_features: int) -> tuple[Domain, str]:
    """The ball of a released radius about the origin, and a status; the unit ball for None."""
    status = "ok" if radius is not None else NO_BOUND
    return Domain.from_bounds(1.0 if radius is None else radius, n_features), status


def at_bounds(
    status: str, domain: Domain | None, means: np.ndarray, errors: np.ndarray, names: Sequence
) -> str:
    """The status, or that means of shape (..., d) are within their errors of public bounds.

    Such a mean is a sign that the bounds are too narrow, and no answer. Zero is a bound that many
    columns have by nature.

    >>> box = Domain.from_bounds((0.0, [80.0, 400.0]), 2)
    >>> means, errors = np.array([[40.0, 400.0], [1.0, 90.0]]), np.ones((2, 2))
    >>> at_bounds("ok", box, means, errors, ["age", "pay"])  # doctest: +NORMALIZE_WHITESPACE
    'the means of these columns are at a bound, and rows may lie beyond it: pay (wider bounds would
    tell)'
    """
    near = near_bounds(domain, means, errors)
    if domain is None or not near.any():
        return status
    where, words = "", "the mean is at the bound, and rows may lie beyond it"
    if domain.low is not None:
        where = listed(names, np.flatnonzero(near.reshape(-1, near.shape[-1]).any(axis=0)))
        words = "the means of these columns are at a bound, and rows may lie beyond it: "
    words = f"{words}{where} (wider bounds would tell)"
    return words if is_ok(status) else f"{words}; {status}"


def near_bounds(domain: Domain | None, means: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Which of the coordinates (..., d) are within their errors of public bounds.

    Where all bounds are the radius of a ball, those of the means that are.
    """
    if domain is None or not np.isfinite(errors).all():
        return np.zeros(means.shape, dtype=bool)
    side = domain.radius if domain.low is None else domain.high - domain.low
    off = np.where(errors < _SMALL * side, _NEAR * errors, 0.0) + _EQUAL * side
    if domain.low is None or domain.high is None:
        near = np.linalg.norm(means, axis=-1) + np.linalg.norm(off, axis=-1) >= domain.radius
        return np.broadcast_to(near[..., None], means.shape)
    below, above = means - off <= domain.low, means + off >= domain.high
    return (below & (domain.low != 0) | above & (domain.high != 0)) & (side > 0)
