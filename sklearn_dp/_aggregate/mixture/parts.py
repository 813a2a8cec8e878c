"""What all ways to split a Gaussian mixture have in common: each gives :class:`Parts`, one released
center for each component, a label for each row (a function of that row and of releases), and the
session of what comes next."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._privacy._grid import Domain
from ..._privacy._session import PrivacySession
from ..._privacy.mechanisms.stability import UnitDraws
from ..._queries.grids import GridRows
from ..._queries.halves import second_half, unit_points
from ..._queries.whitened import NearestLabels
from ..._status import Status
from ..kmeans.engine import fit_engine
from ..kmeans.fit_context import Choice
from ..shared.bounds import CenterRadius

METHODS = ("coreset", "k_tuples", "partition")


@dataclass(frozen=True)
class Settings:
    """Public facts about a fit."""

    n_components: Any  # candidates with "coreset" only, whose k-means engine chooses
    form: str = "full"  # of the covariances, one of `FORMS`
    method: str = "coreset"  # one of `METHODS`
    # `KTupleOptions` or `PartitionOptions` of that method, from `sklearn_dp.mixture`; None for
    # "coreset"
    options: Any = None
    bounded: bool = False  # whether there are public bounds
    ball: bool = False  # which are a ball: columns are in one unit

    @property
    def min_weight(self) -> float:
        """Least weight of a component of a partition."""
        least = self.options.min_weight
        return 1 / (2 * self.n_components) if least is None else float(least)

    @property
    def scaled(self) -> bool:
        """True if columns may have any units: balls, and the published ways, have one for all."""
        one_metric = self.form == "spherical" or self.method != "coreset"
        return not one_metric or (self.n_components == 1 and self.form != "spherical")

    def margins_released(self, n_features: int) -> bool:
        """True if a fit releases what each column is like by itself."""
        several = self.n_components != 1 and n_features > 1
        return self.scaled and several and not self.ball

    @property
    def spherical(self) -> bool:
        """True if the bounded spherical case of "partition" applies."""
        return self.method == "partition" and self.form == "spherical" and self.bounded


@dataclass(frozen=True)
class Parts:
    """A released partition, and the rows that the components are to be estimated on."""

    session: PrivacySession  # what is released of these rows goes through it
    # with labels (:mod:`..._queries.whitened`), unless the number of components is given as one
    rows: GridRows
    centers: np.ndarray  # (k, d), integers in the ball of the rows; released
    path: str  # which way the releases led
    status: Status = Status()
    choice: Choice | None = None  # of the number of components; None where it was given


@dataclass(frozen=True)
class MixtureContext:
    """The rows of a fit, or of one half of them, and what may be released of them."""

    session: PrivacySession
    place: CenterRadius  # where all the rows of the fit are: released, and shared by both halves
    rows: GridRows  # on the integer grid about the released center
    known: Domain | None  # public bounds that the rows of the table may lie out of
    settings: Settings
    prefix: str  # of the plan entries of the partition
    progress: Callable[[str], Any]  # called with the name of each step when it is done

    def second_half(self, numbers: Any, draws: UnitDraws) -> "MixtureContext":
        """That of the second half of the units, from that of all, whose rows stay as they are."""
        rows = second_half(self.rows, numbers, draws, self.place.domain, self.known)
        return replace(self, session=self.session.part("second half"), rows=rows, known=None)

    def points(self, numbers: Any = None) -> GridRows:
        """One row of each unit."""
        return unit_points(self.session, self.rows, self.place.domain, self.known, numbers)

    def by_nearest(self, centers: np.ndarray, path: str) -> Parts:
        """Parts of the rows that are nearest to released centers, in the lengths of the data."""
        points = (centers - self.place.domain.center) / self.rows.unit
        steps = in_ball(np.rint(points), self.rows.ball)
        self.rows.apply(NearestLabels(steps))
        return Parts(self.session, self.rows, steps, path)

    def by_coreset(self, path: str) -> Parts:
        """Parts about the centers of the private k-means engine."""
        domain, k, rows = self.place.domain, self.settings.n_components, self.rows
        clusters = fit_engine(self.session, rows.table, domain, k, prefix=self.prefix, rows=rows)
        self.rows.recenter(np.zeros(self.rows.n_features))  # which the engine has moved
        return replace(self.by_nearest(clusters.centers, path), choice=clusters.choice)


def in_ball(points: np.ndarray, radius: float) -> np.ndarray:
    """Released points as integers, those outside of a ball moved to its border."""
    length = np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1.0)
    return np.rint(points * np.minimum(1.0, radius / length))
