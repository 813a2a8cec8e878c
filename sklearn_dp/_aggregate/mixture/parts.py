"""What the ways to split a Gaussian mixture into its components have in common.

Each way takes a :class:`MixtureContext` (the rows, where they are, what may be released of them)
and gives :class:`Parts`: one released center for each component, a label for each row, and the
session through which everything else about these rows is released. A label is a function of the
row and of releases, so that a row that comes or goes moves no label of another row. Labels are
where the rows are (:func:`labelled`), in the parts of a table.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._privacy._domain import Domain
from ..._privacy._session import PrivacySession
from ..kmeans.candidates import Choice
from ..kmeans.engine import fit_engine
from ..moments.moment_releases import LABELS
from ..shared.grid_table import ROWS, GridTable
from ..shared.location import Located
from ..shared.row_sums import nearest
from ..shared.table import Part

__all__ = [
    "METHODS",
    "MixtureContext",
    "Parts",
    "Settings",
    "in_ball",
    "integer_centers",
    "labelled",
    "nearest_label",
]

METHODS = ("coreset", "k_tuples", "partition")


@dataclass(frozen=True)
class Settings:
    """Public facts about a fit.

    Attributes
    ----------
    n_components : int or Candidates
        Candidates with "coreset" only, whose k-means engine chooses.
    form : str
        Of the covariances, one of `FORMS`.
    method : str, one of `METHODS`
    options : KTupleOptions, PartitionOptions or None
        Of that method, from `sklearn_dp.mixture`; None for "coreset".
    bounded : bool
        Whether there are public bounds.
    """

    n_components: Any
    form: str = "full"
    method: str = "coreset"
    options: Any = None
    bounded: bool = False

    @property
    def min_weight(self):
        """Least weight of a component of a partition."""
        least = self.options.min_weight
        return 1 / (2 * self.n_components) if least is None else float(least)

    @property
    def scaled(self) -> bool:
        """Whether columns may have any units: balls, and the published ways, have one for all."""
        one_metric = self.form == "spherical" or self.method != "coreset"
        return not one_metric or (self.n_components == 1 and self.form != "spherical")

    def columns_released(self, n_features: int) -> bool:
        """Whether a fit releases the scales of columns, which no bounds tell."""
        return self.scaled and not self.bounded and n_features > 1

    @property
    def spherical(self):
        """Whether the bounded spherical case of "partition" applies: see :mod:`.spherical`."""
        return self.method == "partition" and self.form == "spherical" and self.bounded


@dataclass(frozen=True)
class Parts:
    """A released partition, and the rows that the components are to be estimated on.

    Attributes
    ----------
    session : PrivacySession
        What is released of these rows goes through it.
    rows : GridTable
        With labels (:func:`labelled`), unless the number of components is given as one.
    centers : ndarray of shape (k, d), integers in the ball of the rows
        Released.
    path : str
        Which way the releases led.
    status : str
    choice : Choice or None
        Of the number of components; None where it was given.
    """

    session: PrivacySession
    rows: GridTable
    centers: np.ndarray
    path: str
    status: str = "ok"
    choice: Choice | None = None


@dataclass(frozen=True)
class MixtureContext:
    """The rows of a fit, or of one half of them, and what may be released of them.

    Attributes
    ----------
    session : PrivacySession
    place : Located
        Where all the rows of the fit are: released, and shared by both halves.
    rows : GridTable
        On the integer grid about the released center.
    known : Domain or None
        Public bounds that the rows of the table may lie out of.
    settings : Settings
    prefix : str
        Of the plan entries of the partition.
    progress : callable
        Called with the name of each step when it is done.
    """

    session: PrivacySession
    place: Located
    rows: GridTable
    known: Domain | None
    settings: Settings
    prefix: str
    progress: Callable[[str], Any]

    def by_nearest(self, centers, path):
        """Parts of the rows that are nearest to released centers, in the lengths of the data."""
        steps = integer_centers(centers, self.rows, self.place.domain)
        self.rows.update(labelled, nearest_label, steps)
        return Parts(self.session, self.rows, steps, path)

    def by_coreset(self, path):
        """Parts about the centers of the private k-means engine."""
        found = fit_engine(
            self.session,
            self.rows.table,
            self.place.domain,
            self.settings.n_components,
            prefix=self.prefix,
            rows=self.rows,
        )
        self.rows.recenter(np.zeros(self.rows.n_features))  # which the engine has moved
        return replace(self.by_nearest(found.centers, path), choice=found.choice)


def labelled(part: Part, label: Callable[..., np.ndarray], *released: Any) -> tuple[Part, tuple]:
    """The part with a label for each row: ``label(rows, *released)``, a function of single rows."""
    return part.having(**{LABELS: label(part[ROWS], *released)}), ()


def nearest_label(rows, centers):
    """The index of the nearest of some released centers, for each of the rows."""
    return nearest(rows, centers)[0]


def in_ball(points, radius):
    """Released points as integers, those outside of a ball moved to its border.

    >>> in_ball(np.array([[3.2, 0.0], [0.0, 50.0]]), 10.0)
    array([[ 3.,  0.],
           [ 0., 10.]])
    """
    length = np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1.0)
    return np.rint(points * np.minimum(1.0, radius / length))


def integer_centers(points, rows, domain):
    """Points in lengths as integers about the center of a domain, in the ball of its rows."""
    return in_ball(np.rint((points - domain.center) / rows.unit), rows.ball)
