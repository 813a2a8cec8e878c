"""Bounds of the rows: public ones, or a radius about the origin that is paid for."""

from ..._privacy._domain import Domain
from ..._privacy._mechanisms import private_radius

__all__ = ["NO_BOUND", "ball_of", "known_or_paid"]

NO_BOUND = "no bound found: the unit ball is used"


def known_or_paid(session, entry, X, units, domain):
    """The public domain, or a ball whose radius is released.

    Parameters
    ----------
    session : PrivacySession
    entry : str
        Pays for the histogram of norms, where there is no domain.
    X : ndarray of shape (n, d), finite
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


def ball_of(radius, n_features):
    """The ball of a released radius about the origin, and a status; the unit ball for None."""
    status = "ok" if radius is not None else NO_BOUND
    return Domain.from_bounds(1.0 if radius is None else radius, n_features), status
