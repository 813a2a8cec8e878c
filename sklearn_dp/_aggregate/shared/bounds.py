"""Bounds of the rows: public ones, or a radius about the origin that is paid for.

Every sensitivity rests on a bound of the rows. It is public, or it is released: a histogram of the
norms on a public grid of all scales gives the radius that nearly all rows are within, and the rows
beyond it are clipped. It is never read off the rows for free.
"""

from typing import Any

import numpy as np

from ..._privacy._aggregates import NoisyNorms, norm_counts, private_radius, safe_norms
from ..._privacy._domain import Domain
from ..._privacy._session import PrivacySession
from .table import Part, Table

_EQUAL = 1e-5  # of a side: what rounding may exceed


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


def outside(domain: Domain, X: np.ndarray) -> np.ndarray:
    """Which rows are beyond public bounds, by more than rounding: of each row alone."""
    if domain.low is not None and domain.high is not None:
        off = _EQUAL * (domain.high - domain.low)
        return np.any((domain.low - off > X) | (domain.high + off < X), axis=1)
    far = domain.radius * (1 + _EQUAL)
    rows = np.asarray(X, dtype=np.float64)
    with np.errstate(over="ignore", under="ignore"):
        squares = np.einsum("ij,ij->i", rows, rows)
    found, unsure = squares > far**2, np.abs(squares / far**2 - 1) < _EQUAL
    # The last bits of a product may depend on other rows, and decide nothing.
    found[unsure] = safe_norms(rows[unsure]) > far
    return found
