"""Bounds of the rows: public ones, or a radius about the origin that is paid for.

Every sensitivity rests on a bound of the rows. It is public, or it is released: a histogram of the
norms on a public grid of all scales gives the radius that nearly all rows are within, and the rows
beyond it are clipped. It is never read off the rows for free.
"""

from ..._privacy._domain import Domain
from ..._privacy._mechanisms import private_radius
from ..._privacy._session import PrivacySession
from ..._privacy._units import Units
from .sparse_rows import Table

__all__ = ["NO_BOUND", "ball_of", "known_or_paid"]

NO_BOUND = "no bound found: the unit ball is used"


def known_or_paid(
    session: PrivacySession, entry: str, X: Table, units: Units, domain: Domain | None
) -> tuple[Domain, str]:
    """The public domain, or a ball whose radius is released.

    Parameters
    ----------
    session : PrivacySession
    entry : str
        Pays for the histogram of norms, where there is no domain.
    X : ndarray or SparseRows of shape (n, d), finite
    units : Units
    domain : Domain or None

    Returns
    -------
    domain : Domain
    status : str
    """
    if domain is not None:
        return domain, "ok"
    return ball_of(private_radius(session, entry, X, units), X.shape[1])


def ball_of(radius: float | None, n_features: int) -> tuple[Domain, str]:
    """The ball of a released radius about the origin, and a status; the unit ball for None."""
    status = "ok" if radius is not None else NO_BOUND
    return Domain.from_bounds(1.0 if radius is None else radius, n_features), status
