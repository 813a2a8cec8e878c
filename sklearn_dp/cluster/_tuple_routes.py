"""What answers a fit of `DPKTupleKMeans`, with k-tuples or without.

Three things can: the k-means engine on all rows (:meth:`TupleContext.coreset`), Lloyd iterations
from centers that the tuples agree on (:meth:`TupleContext.refined`), and the same from public
centers (:meth:`TupleContext.public_centers`). Which of them does is decided by public facts, by the
released number of units, and by whether the aggregation has released centers.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from .._aggregate.kmeans.engine import fit_engine
from .._aggregate.kmeans.fit_context import Candidates, Context
from .._aggregate.kmeans.lloyd import lloyd, lloyd_budget
from .._aggregate.kmeans.private_coreset import choose_separately
from .._aggregate.kmeans.result import build_result
from .._aggregate.shared.bounds import known_or_paid
from .._aggregate.shared.centering import Size, noise_sd
from .._privacy._domain import Domain
from .._privacy._session import PrivacySession
from .._queries.handles import GridRows, TableRows

__all__ = ["TupleContext", "centers_of", "clipped"]


@dataclass(frozen=True)
class TupleContext:
    """The rows of a fit, and what may be released of them."""

    session: PrivacySession
    rows: TableRows
    domain: Domain | None  # public or paid for; None before it is
    n_clusters: Any  # `Candidates` as long as the number has not been chosen
    progress: Callable[[str], Any]  # called with the name of each step when it is done

    def bounded(self, entry):
        """The same with a domain, which `entry` pays for where there is none; status and norms."""
        domain, status, norms = known_or_paid(self.session, entry, self.rows, self.domain)
        return replace(self, domain=domain), status, norms

    def judged(self, result, norms, weight, rho):
        """A result with what a released bound leaves open.

        `norms` are those of `bounded`; `weight`, of all units, was released for `rho`.
        """
        assert self.domain is not None
        # Where rows have weights of their own, their weight has a quarter of the budget.
        sd = noise_sd(rho) * (2.0 if self.rows.units.own_weights else 1.0)
        return result.bounded(norms, self.domain, weight, sd)

    def numbered(self, prefix, rho):
        """The same with a number of clusters, and the choice of it; None where it is given.

        The plan entries of the choice have this prefix and are worth `rho`.
        """
        if not isinstance(self.n_clusters, Candidates):
            return self, None
        assert self.domain is not None
        choice = choose_separately(
            self.session, self.rows, self.domain, self.n_clusters, prefix=prefix, rho=rho
        )
        self.progress("number of clusters")
        return replace(self, n_clusters=choice.n_clusters), choice

    def coreset(self, prefix="", once_sized=None):
        """What the k-means engine releases, with the plan entries of a prefix."""
        return fit_engine(
            self.session,
            self.rows,
            self.domain,
            self.n_clusters,
            prefix=prefix,
            callback=self.progress,
            once_sized=once_sized,
        )

    def public_centers(self):
        """Centers that know nothing of the data: on a sphere, relative to the domain's center."""
        assert self.domain is not None
        rng = self.session.rng("public centers")
        points = rng.random((self.n_clusters, self.rows.n_features)) - 0.5
        return points / np.linalg.norm(points, axis=1, keepdims=True) * self.domain.radius / 2

    def refined(self, centers, size):
        """What noisy Lloyd iterations on all rows make of centers, released or public.

        The centers (k, d) are about that of the domain, `size` is the released number of units. The
        aggregation has found them in blocks, which use a part of the rows each and a part of the
        budget; iterations use the rest of it on all rows.
        """
        assert self.domain is not None
        rows, prefix = GridRows.quantize(self.rows, self.domain), "refine/"
        known = Size(max(size, 1.0), math.sqrt(2 * lloyd_budget(self.session, prefix)))
        context = Context(
            session=self.session,
            rows=rows,
            n_clusters=self.n_clusters,
            prefix=prefix,
            size=known,
            radius=rows.limit,
            callback=self.progress,
        )
        final = lloyd(context, np.rint(centers / rows.unit))
        return build_result(context, final, self.domain, "ok", n_leaves=None, bounds=self.domain)


def centers_of(estimator):
    """Centers of a fitted clusterer, in the coordinates of the rows it was fitted to."""
    if isinstance(estimator, Pipeline):
        return estimator[:-1].inverse_transform(centers_of(estimator[-1]))
    found = getattr(estimator, "cluster_centers_", None)
    return estimator.means_ if found is None else found


def clipped(domain, rows):
    """Rows of a block, clipped: a function of the module, as it goes to worker processes."""
    # Few blocks have a row outside of a ball; the others stay as they are.
    if (
        domain.low is None
        and math.sqrt(np.einsum("ij,ij->i", rows, rows).max(initial=0.0)) < domain.radius
    ):
        return rows
    return domain.clip_points(rows)
