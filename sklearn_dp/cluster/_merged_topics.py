"""Topics that are merged after a fit, from what it released: nothing is charged."""

from copy import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.cluster import AgglomerativeClustering
from sklearn.utils.validation import check_is_fitted

from .._door import integers
from .._privacy._domain import unit_rows
from ._keywords import described, status_of
from ._merging import total

__all__ = ["MergedTopics"]


class MergedTopics:
    """The method of `DPTopics` that merges its topics."""

    def merge(self: Any, labels: ArrayLike | None = None) -> Any:
        """Merge topics, by released values only: nothing is charged.

        A large topic that the fit has split into several becomes one again. Sizes and counts of
        words are added up, and the keywords are chosen anew.

        Parameters
        ----------
        labels : array-like of shape (n_topics,), optional
            Integers: topics with equal ones are merged. Those of a :class:`ClusterLevel` merge by
            its tree. None: topics are merged whose centers are closer to each other (average
            linkage of cosine distances) than a text is to its own center, on average.

        Returns
        -------
        model : DPTopics
            A fitted copy with the merged topics, in ascending order of their labels. `self` is
            unchanged.

        Raises
        ------
        ValueError
            If `labels` are not one integer for each topic.
        """
        check_is_fitted(self)
        if labels is None:
            labels = self._near_topics()
        labels = integers(labels, "labels")
        if labels is None or labels.shape != self.sizes_.shape:
            raise ValueError("labels must hold one integer for each topic.")
        labels = np.unique(labels, return_inverse=True)[1]
        errors = np.array([topic.count_std_error for topic in self.topics_])
        model = copy(self)
        model.center_topics_ = labels[self.center_topics_].astype(np.int32, casting="same_kind")
        model.sizes_, model.word_counts_, squares = (
            total(each, labels)
            for each in (
                self.sizes_,
                self.word_counts_,
                np.square(np.column_stack([self.sizes_std_error_, errors])),
            )
        )
        # Noises are independent, so their variances add up.
        model.sizes_std_error_, errors = np.sqrt(squares).T
        model.word_count_std_error_ = float(errors.max())
        model.topics_ = described(
            model.word_counts_,
            errors,
            model.sizes_,
            model.sizes_std_error_,
            model.words_,
            model.n_keywords,
        )
        model.status_ = status_of(model.topics_, model.estimator_.status_)
        return model

    def _near_topics(self: Any) -> np.ndarray:
        """Labels (n_topics,), equal where topics are nearer to each other than texts to theirs."""
        of = self.estimator_
        mass = np.maximum(of.cluster_weights_, 1.0)[:, None]
        centers = unit_rows(total(mass * of.cluster_centers_, self.center_topics_))
        if len(centers) == 1:
            return np.zeros(1, dtype=np.int64)
        within = max(of.inertia_ / max(of.size_, 1.0), 0.0)
        apart = np.maximum(1 - centers @ centers.T, 0.0)
        near = AgglomerativeClustering(
            None, metric="precomputed", linkage="average", distance_threshold=within
        )
        return near.fit_predict(apart)
