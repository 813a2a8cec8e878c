"""One model of the rows of all segments, for the fits of the segments to start from."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import ndtr
from sklearn.base import clone

from .._aggregate.mixture.fit import Mixture
from .._privacy._rounding import round_down, sum_down
from .._sklearn_compat import without_callbacks
from ..covariance import FriendlyCovariance
from ..mixture import DPGaussianMixture
from ._covariances import share_covariances, share_mixtures
from ._shrinkage import matched_centers, share_centers, share_means

_WITH_START = ("whiten", "auto", "coreset")
"""Methods that may start from released covariances or components."""

_POOLED_SHARE = 0.05
"""Of rho, for one model of all rows: in many more rows it takes little to find clusters."""


class BasePooledStart:
    """Base class of `DPBySegment`: what a fit of all rows and one of a segment may spend."""

    borrow: bool
    pooled_: Any
    n_jobs: int | None
    _inner: Callable[[], Any]
    _listed: Callable[[], list[Any]]

    def _budgeted(self, **budget):
        """A fresh estimator of a segment."""
        inner = without_callbacks(clone(self._inner()))
        return inner.set_params(n_jobs=self.n_jobs, **{"epsilon": None, "rho": None, **budget})

    def _pools(self):
        """Whether a model of all rows is fitted too: the kind of model that segments borrow from.
        "start" of centers, which the fits of the segments start from; "covariance" or "mixture",
        which theirs are moved toward."""
        inner, several = self._inner(), len(self._listed()) > 1
        params = inner.get_params(deep=False)
        asked = params.get("n_clusters", params.get("n_components"))
        if not (self.borrow and several) or str(params.get("metric")) == "cosine":
            return None  # means of directions are none
        if "init" in params and params["init"] is None and isinstance(asked, int) and asked > 1:
            return "start"
        if isinstance(inner, FriendlyCovariance):
            return "covariance"
        mixture = isinstance(inner, DPGaussianMixture) and isinstance(asked, int)
        return "mixture" if mixture else None

    def _stages(self, target, n_features, unit):
        """The estimators of all rows (or None) and of a segment, with their budgets and plans.

        Without a pooled model a segment has the whole budget as it was asked for. With one, a plan
        of centers holds the search for a start of its own too: what is not searched for is left to
        Lloyd's iterations. One of moments within bounds holds no such search.
        """
        rho = target.to_rho()
        if self._pools():
            pooled = self._budgeted(rho=round_down(_POOLED_SHARE * rho), delta=target.delta)
            first = pooled._make_plan(n_features, unit)
            # Gaussian noise only: no failures, and rho adds up exactly.
            if first.gaussian:
                rest = round_down(sum_down([rho, -first.rho]))
                each = self._budgeted(rho=rest, delta=target.delta)
                moments = self._pools() != "start" and each.bounds is not None
                if moments and each.method in _WITH_START:
                    each._of_others = True  # the plan of a fit that has a start
                return (pooled, first), (each, each._make_plan(n_features, unit))
        each = self._budgeted(epsilon=target.epsilon, rho=target.rho, delta=target.delta)
        return None, (each, each._make_plan(n_features, unit))

    def _common(self, each):
        """What the fits of the segments start from, as released; None for nothing."""
        kind, pooled = self._pools(), self.pooled_
        if kind == "start":
            return CommonStart(pooled)
        if not each._of_others:
            return None
        size = pooled.size_ / len(self._listed())
        if kind == "covariance":
            return pooled.location_, pooled.covariance_, size
        weights, shapes = pooled.weights_ * size, pooled.covariances_
        if pooled.covariance_type_ == "tied":
            shapes = np.repeat(shapes[None], len(weights), axis=0)
        return Mixture(weights, pooled.means_, shapes, pooled._margins)

    def _share(self, fits):
        """Move what the segments have released toward what is common to them."""
        if not self.borrow:
            return
        share_means(fits)
        kind = self._pools() if hasattr(self, "pooled_") else None
        if kind == "start":
            share_centers(fits, self.pooled_.cluster_centers_)
        if kind == "covariance":
            share_covariances(fits, self.pooled_)
        if kind == "mixture":
            share_mixtures(fits, self.pooled_)


class CommonStart:
    """Common centers for segments to start from, and how far from them those of segments are. All
    of it follows from what has been released. So the fit of a segment may depend on the segments
    before it, which are other units."""

    def __init__(self, pooled: Any) -> None:
        self.centers = np.asarray(pooled.cluster_centers_, dtype=np.float64)
        # In units of the largest number, so that no square overflows.
        self._unit = max(float(np.abs(self.centers).max()), 1e-150)
        self._errors = np.asarray(pooled.cluster_centers_std_error_, dtype=np.float64) / self._unit
        self._precision, self._excess = np.zeros((2, self.centers.shape[1]))

    def learn(self, model: Any) -> None:
        """What the centers of another segment tell of the variance between segments, by column."""
        found, errors, _ = (each[0] for each in matched_centers([model], self.centers))
        variance = np.square(errors / self._unit) + np.square(self._errors)
        weight = 1 / np.maximum(variance, 1e-300)
        offsets = (found - self.centers) / self._unit
        self._precision += weight.sum(axis=0)
        self._excess += (weight * np.square(offsets) - np.isfinite(variance)).sum(axis=0)

    def misplaced(self) -> float:
        """How many clusters of a segment are nearer to the common center of another one.

        Lloyd's iterations from there end with two centers in one cluster. Where a center scatters
        about the common one with standard deviations s, by column, that of cluster i is nearer to
        the common center j with probability Phi(-|v| / 2 s_v), where v = c_j - c_i and s_v, the
        standard deviation along v, is the root of sum (s v)^2 / |v|^2. None before the first
        segment, which takes the common centers on trust.
        """
        between = np.maximum(self._excess, 0.0) / np.maximum(self._precision, 1e-300)
        points = self.centers / self._unit
        apart = cdist(points, points, "sqeuclidean")[~np.eye(len(points), dtype=bool)]
        scaled = points * np.sqrt(between)
        along = cdist(scaled, scaled)[~np.eye(len(points), dtype=bool)]
        return float(ndtr(-apart / np.maximum(2 * along, 1e-300)).sum())
