"""Mixtures through k-tuples [1]_: the means of random blocks of one half show where to cut.

Each unit tosses a fair coin. The units of the first half go to random blocks, a non-private
clusterer labels each block, and the k-tuples of the means of its labels are aggregated privately.
The components are then estimated on the second half, whose units have cost nothing so far: both
halves spend the whole budget, and each unit is in one of them.

References
----------
.. [1] E. Cohen, H. Kaplan, Y. Mansour, U. Stemmer and E. Tsfadia, "Differentially-private
   clustering of easy instances", ICML 2021; PrivatekGMM, with the halves and blocks drawn unit
   by unit, so that neighbours differ in one block or one row of the second half.
"""

from functools import partial

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline

from ..kmeans.engine import fit_engine
from ..shared.blocks import block_rows, fit_blocks
from ..shared.rows import Rows, nearest
from ..shared.weighted_kmeans import best_start
from ..tuples.stage import TupleStage
from .parts import Parts, half_of_rows, integer_centers

__all__ = ["LabelMeans", "enough_rows", "inner_clusterer", "tuple_parts", "tuple_stage"]

_ROWS_PER_COMPONENT = 10  # of a block: fewer give means that do not match
_STARTS = 4


class LabelMeans(ClusterMixin, BaseEstimator):
    """The mean of the rows of each label that a clusterer gives.

    Parameters
    ----------
    inner : estimator
        With ``labels_`` or ``predict`` after `fit`.
    n_components : int
    """

    def __init__(self, inner, n_components):
        self.inner = inner
        self.n_components = n_components

    def fit(self, X, y=None):
        """Label the rows; a label without rows has a mean of NaN."""
        fitted = self.inner.fit(X)
        labels = getattr(fitted, "labels_", None)
        labels = fitted.predict(X) if labels is None else labels
        self.means_ = np.array([X[labels == j].mean(axis=0) for j in range(self.n_components)])
        return self


def inner_clusterer(n_components, n_features):
    """K-means, of the first principal components where there are more features."""
    kmeans = KMeans(n_components, init=_start_block, n_init=1)
    if n_features <= n_components:
        return kmeans
    return make_pipeline(PCA(n_components, svd_solver="full"), kmeans)


def _start_block(rows, n_clusters, random_state):
    return best_start(rows, n_clusters, random_state, _STARTS)


def tuple_stage(rho, delta, settings, n_features):
    """What the first half is going to spend."""
    options = settings.options
    return TupleStage(
        rho, delta, settings.n_components, n_features, options.aggregator, options.n_tuples
    )


def tuple_parts(session, X, units, place, settings, stage, prefix, progress):
    """Centers from the first half, rows of the second.

    Parameters
    ----------
    session : PrivacySession
        With the entries of `stage`, and of the k-means engine under `prefix`, which answers where
        the tuples do not agree.
    X : ndarray of shape (n, d)
    units : Units
    place : Located
    settings : Settings
    stage : TupleStage
    prefix : str
    progress : callable

    Returns
    -------
    parts : Parts
    """
    second = half_of_rows(session, units)
    tuples = _tuples(session, X, units, ~second, place.domain, settings, stage)
    progress("inner fits")
    found = stage.run(session.part("first half"), tuples - place.domain.center, place.domain.radius)
    progress("aggregation")
    session, X, units = session.part("second half"), X[second], units.take(second)
    rows = Rows.quantise(X, place.domain)
    path = "k_tuples"
    if found is None:
        path = "k_tuples, then coreset"
        centers = fit_engine(
            session, X, units, place.domain, settings.n_components, prefix=prefix
        ).centers
    else:
        centers = found + place.domain.center
    centers = integer_centers(centers, rows, place.domain)
    return Parts(session, rows, units, centers, nearest(rows, centers)[0], path)


def enough_rows(size, settings, stage):
    """Whether the blocks of one half are large enough, from the released size."""
    return bool(stage.size) and (
        size / 2 >= stage.size * _ROWS_PER_COMPONENT * settings.n_components
    )


def _tuples(session, X, units, first, domain, settings, stage):
    """The k-tuples of the blocks: one for each, whatever happens in it."""
    k, d = settings.n_components, X.shape[1]
    rows = np.flatnonzero(first)
    blocks = units.spread(session.blocks(units.size, stage.size))[rows]
    seeds = session.rng("inner fits").integers(2**31, size=stage.size)
    members = [rows[places] for places in block_rows(blocks, stage.size)]
    inner = inner_clusterer(k, d) if settings.options.inner is None else settings.options.inner
    return fit_blocks(
        LabelMeans(inner, k),
        X,
        members,
        seeds,
        _means_of,
        (k, d),
        min_rows=k,
        prepare=partial(_clip, domain),
        n_jobs=settings.n_jobs,
    )


def _means_of(estimator):
    return estimator.means_


def _clip(domain, rows):
    return domain.clip_points(rows)
