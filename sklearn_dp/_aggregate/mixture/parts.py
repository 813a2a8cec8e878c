"""What the ways to split a Gaussian mixture into its components have in common."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._privacy._units import Units

__all__ = ["METHODS", "Parts", "Settings", "half_of_rows", "integer_centers", "representatives"]

METHODS = ("coreset", "k_tuples", "partition")


@dataclass(frozen=True)
class Settings:
    """Public facts about a fit.

    Attributes
    ----------
    n_components : int
    form : str
        Of the covariances.
    method : str, one of `METHODS`
    options : KTupleOptions, PartitionOptions or None
        Of that method, from `sklearn_dp.mixture`; None for "coreset".
    bounded : bool
        Whether there are public bounds.
    n_jobs : int or None
    """

    n_components: int
    form: str = "full"
    method: str = "coreset"
    options: Any = None
    bounded: bool = False
    n_jobs: int | None = None

    @property
    def min_weight(self):
        """Least weight of a component of a partition."""
        given = self.options.min_weight
        return 1 / (2 * self.n_components) if given is None else float(given)


@dataclass(frozen=True)
class Parts:
    """A released partition, and the rows that the components are to be estimated on.

    Attributes
    ----------
    session : PrivacySession
        What is released of these rows goes through it.
    rows : Rows
    units : Units
    centers : ndarray of shape (k, d), integers in the ball of the rows
        Released.
    labels : ndarray of int of shape (n,)
        Of each row: a function of the row and of releases.
    path : str
        Which way the releases led.
    status : str
    """

    session: object
    rows: object
    units: object
    centers: np.ndarray
    labels: np.ndarray
    path: str
    status: str = "ok"


def half_of_rows(session, units):
    """Whether each row is in the second half: a fair coin of its unit."""
    coins = session.unit_draws(units.size) & np.uint64(1)
    return units.spread(coins.astype(bool))


def representatives(session, X, units):
    """One row of each unit, drawn at random, each of which is then a unit of its own.

    A row of a unit is one of its rows wherever it is in the table, and its random bits belong to
    the unit: so adding or removing a unit adds or removes one representative.
    """
    if units.index is None:
        return X, units
    order = np.argsort(units.index, kind="stable")
    members = np.bincount(units.index, minlength=units.size)
    low = session.unit_draws(units.size) & np.uint64(2**32 - 1)
    which = ((low * members.astype(np.uint64)) >> np.uint64(32)).astype(np.int64)
    return X[order[np.cumsum(members) - members + which]], Units(units.size)


def integer_centers(points, rows, domain):
    """Points in lengths as integers about the center of a domain, in the ball of its rows."""
    centers = np.rint((points - domain.center) / rows.unit)
    length = np.maximum(np.linalg.norm(centers, axis=1, keepdims=True), 1.0)
    return np.rint(centers * np.minimum(1.0, rows.ball / length))
