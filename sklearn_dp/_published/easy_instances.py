"""Mixtures through k-tuples (PrivatekGMM): the means of random blocks of one half show where to
cut.

Each unit tosses a fair coin for its half. Each unit of the first half draws one of a public number
of blocks; a non-private clusterer labels the rows of each block, and the means of the k labels are
its k-tuple. The tuples are aggregated with privacy (`TupleStage`): a unit changes one of them.
Where they agree, the released centers label the rows of the second half, where the k-means engine
runs if they do not. The components are then estimated on the second half, whose units have cost
nothing so far: both halves spend the whole budget, and each unit is in one of them.

Halves and blocks are drawn unit by unit, so that neighbors differ in one block or one row of the
second half."""

from functools import partial
from operator import attrgetter
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline

from .._aggregate.mixture.parts import MixtureContext, Parts, Settings
from .._aggregate.shared.weighted_kmeans import best_start
from .._aggregate.tuples import TupleStage
from .._privacy._grid import Domain
from .._queries._query import TableRows
from .._queries.blocks import BlockFits, fit_blocks
from .._queries.halves import Dropped, in_first
from .._queries.samples import numbered, unit_draws

_ROWS_PER_COMPONENT = 10  # of a block: fewer give means that do not match
_STARTS = 4  # seedings that the k-means of a block chooses from


class LabelMeans(ClusterMixin, BaseEstimator):
    """The mean of the rows of each label that a clusterer gives: the centers of clusterers may be
    anything (a medoid). `inner` has ``labels_`` or ``predict`` after `fit`; rows with labels beyond
    ``n_components - 1`` count for no mean."""

    def __init__(self, inner: Any, n_components: int) -> None:
        self.inner = inner
        self.n_components = n_components

    def fit(self, X: Any, y: Any = None) -> Self:
        """Label the rows; a label without rows has a mean of NaN."""
        fitted = self.inner.fit(X)
        labels = getattr(fitted, "labels_", None)
        labels = fitted.predict(X) if labels is None else labels
        self.means_ = np.array([X[labels == j].mean(axis=0) for j in range(self.n_components)])
        return self


def inner_clusterer(n_components: int, n_features: int) -> Any:
    """K-means of a block, of the first principal components where there are more features."""
    # A named function, no lambda: estimators travel to worker processes by pickle.
    kmeans = KMeans(n_components, init=_start_block, n_init=1)
    if n_features <= n_components:
        return kmeans
    return make_pipeline(PCA(n_components, svd_solver="full"), kmeans)


def _start_block(rows: np.ndarray, n_clusters: int, random_state: Any) -> np.ndarray:
    return best_start(rows, n_clusters, random_state, _STARTS)


def tuple_stage(rho: float, delta: float, settings: Settings, n_features: int) -> TupleStage:
    """The stage that plans the first half, of at most `rho` and `delta`; its size may be 0."""
    options = settings.options
    return TupleStage(
        rho, delta, settings.n_components, n_features, options.aggregator, options.n_tuples
    )


def enough_rows(size: float, settings: Settings, stage: TupleStage) -> bool:
    """True if the blocks of one half are large enough, from the released size."""
    return bool(stage.size) and (
        size / 2 >= stage.size * _ROWS_PER_COMPONENT * settings.n_components
    )


def tuple_parts(context: MixtureContext, stage: TupleStage) -> Parts:
    """Centers from the first half, or of the k-means engine, and rows of the second only."""
    session, domain = context.session, context.place.domain
    numbers = numbered(context.rows.table)
    tuples = _tuples(context, numbers, stage)
    context.progress("inner fits")
    average = stage.run(session.part("first half"), tuples, domain.center, domain.radius)
    context.progress("aggregation")
    rest = context.second_half(numbers, unit_draws(session, numbers))
    context.rows.table.apply(Dropped(rows=True))  # the rest of the fit is about the second half
    if average is None:
        return rest.by_coreset("k_tuples, then coreset")
    return rest.by_nearest(average + domain.center, "k_tuples")


def _tuples(context: MixtureContext, numbers: Any, stage: TupleStage) -> TableRows:
    """The k-tuples, as points of length k d, one for each block of the first half; NaN where its
    fit failed. A unit draws a block whichever half it is in, so its draw has nothing to do with the
    coins of other units."""
    settings, table = context.settings, context.rows.table
    k, d = settings.n_components, table.n_features
    inner = inner_clusterer(k, d) if settings.options.inner is None else settings.options.inner
    fits = BlockFits(
        LabelMeans(inner, k),
        stage.size,
        attrgetter("means_"),
        (k, d),
        min_rows=k,
        prepare=partial(_clip, context.place.domain),  # released
        takes_part=in_first,
        within=context.known,
    )
    return fit_blocks(context.session, table, fits, numbers)


def _clip(domain: Domain, rows: np.ndarray) -> np.ndarray:
    """Rows of a block, clipped: a function of the module, as it goes to worker processes."""
    return domain.clip_points(rows)
