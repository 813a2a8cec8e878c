"""What topics are called, by noisy counts of words: no text is looked at again."""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri
from sklearn.cluster import AgglomerativeClustering
from sklearn.utils.validation import check_is_fitted

from .._door import column, integers
from .._privacy._domain import unit_rows
from .._privacy._entries import dtype_of, is_column, kind_of
from .._queries.words import LONGEST, pair_of
from .._status import Code, Message, Status, extent
from ._hierarchy import total

_NO_TEXTS = "texts must hold a text, or a list of words, for each row of X."
_IN_LABEL = 3  # keywords
_CHANCE = 0.05  # that noise alone makes any keyword of a topic without rows


@dataclass(frozen=True)
class Topic:
    """A released topic, made of noisy numbers only.

    Parameters
    ----------
    label : str
        Its first three keywords; without any, "topic 3" with the number that `predict` gives.
    size, size_std_error : float
        Released number of units, and the standard error of it.
    keywords : tuple of str
        Words that stand out from the noise and from the other topics, most telling first.
    counts : tuple of float
        Released noisy number of units that use each of them in this topic.
    count_std_error : float
        Standard deviation of the noise of each count.
    status : str
        "ok"; "noise" if the size is lost in its noise; or "unnamed" without any keyword.
    """

    label: str
    size: float
    size_std_error: float
    keywords: tuple[str, ...]
    counts: tuple[float, ...]
    count_std_error: float
    status: str


def checked_words(value: Any, name: str, others: str) -> list[str]:
    """A public list of words, or an error that names it."""
    listed = value.tolist() if isinstance(value, np.ndarray) else value
    if not isinstance(listed, list | tuple | set | frozenset):
        raise TypeError(f"{name} must be a list of words{others}.")
    if not all(isinstance(word, str) and 0 < len(word) <= LONGEST for word in listed):
        raise ValueError(f"{name} must hold words of 1 to {LONGEST} characters.")
    return [str(word) for word in listed]


def listed_texts(texts: Any, n_rows: int) -> list[Any]:
    """The texts as a list, each as it was given; an error quotes none of them."""
    check_texts(texts)
    found = column(texts, "texts").tolist()
    if len(found) != n_rows:
        raise ValueError(_NO_TEXTS)
    return found


def check_texts(texts: Any) -> None:
    """Refuse by its type alone what holds no texts, and no lists of words."""
    if not is_column(texts) or kind_of(dtype_of(texts)) not in ("text", "object", "other"):
        raise ValueError(_NO_TEXTS)


def looks_like_texts(y: Any) -> bool:
    """Whether a target, which a fit ignores, is a column of texts: a slip that would go unseen."""
    if not isinstance(y, list | tuple) and hasattr(y, "tolist"):
        y = y.tolist()
    return isinstance(y, list | tuple) and len(y) > 0 and issubclass(type(y[0]), str | list | tuple)


def found_words(
    codes: np.ndarray, values: np.ndarray, n_topics: int
) -> tuple[list[str], np.ndarray]:
    """The words of released pairs and their counts (n_topics, n_words), 0 where hidden."""
    pairs = [pair_of(code) for code in codes.tolist()]
    words = sorted({word for _, word in pairs})
    column, counts = {word: i for i, word in enumerate(words)}, np.zeros((n_topics, len(words)))
    for (topic, word), value in zip(pairs, values, strict=True):
        counts[topic, column[word]] = value
    return words, counts


def described(
    counts: np.ndarray, count_errors: np.ndarray, sizes: np.ndarray, size_errors: np.ndarray,
    words: Sequence[str], n_keywords: int,
) -> list[Topic]:  # fmt: skip
    """Topics, by noisy counts (k, n_words) with errors (k,), and sizes (k,): post-processing.

    A keyword's count is above what the share of the word in the other topics would make of it, by
    more than noise and chance would do in any of the words. The first ones add most to the
    divergence of the topic from the others.
    """
    others = np.maximum(counts.sum(axis=0) - counts, 0.0)
    share = others / np.maximum(sizes.sum() - sizes, 1.0)[:, None]
    expected = np.maximum(sizes, 0.0)[:, None] * share
    # Few counts are not taken for infinitely telling: less than the noise is not known.
    noise = count_errors[:, None]
    telling = counts * np.log(np.maximum(counts, 1e-300) / np.maximum(expected, noise))
    variance = noise**2 + np.square(share * size_errors[:, None]) + expected
    least = -ndtri(_CHANCE / max(len(words), 1)) * np.sqrt(variance)
    telling[counts - expected < least] = -np.inf
    topics = []
    for k in range(len(sizes)):
        order = np.argsort(-telling[k], kind="stable")[:n_keywords]
        order = order[np.isfinite(telling[k, order])].tolist()
        names, lost = tuple(words[i] for i in order), sizes[k] < 2 * size_errors[k]
        topics.append(
            Topic(
                ", ".join(names[:_IN_LABEL]) or f"topic {k}",
                float(sizes[k]),
                float(size_errors[k]),
                names,
                tuple(float(counts[k, i]) for i in order),
                float(count_errors[k]),
                "noise" if lost else "ok" if names else "unnamed",
            )
        )
    return topics


def status_of(topics: Sequence[Topic], clusters: Status) -> Status:
    """The status: the trouble of topics, by their numbers, and of the clusters."""
    troubles: dict[str, tuple[Code, str, str]] = {
        "noise": (
            "noisy_topics",
            "the size is mostly noise",
            "use fewer topics or a larger epsilon",
        ),
        "unnamed": ("unnamed_topics", "no keyword stands out from the noise", ""),
    }
    told = []
    for short, (code, words, action) in troubles.items():
        numbers = [str(number) for number, topic in enumerate(topics) if topic.status == short]
        if numbers:
            shown = ", ".join(numbers[:10]) + ", ..." * (len(numbers) > 10)
            text = f"{len(numbers)} of {len(topics)} topics ({shown}): {words}"
            severity = extent(len(numbers), len(topics))
            told.append(Message(code, text, (), action, severity))
    if not clusters.trustworthy:
        told += clusters.of_part("clusters")
    return Status(told)


# -- merged topics ---------------------------------------------------------------------------------


class MergedTopics:
    """The method of `DPTopics` that merges its topics."""

    def merge(self: Any, labels: ArrayLike | None = None) -> Any:
        """Merge topics, by released values only: nothing is charged.

        A large topic that the fit has split into several becomes one again. Sizes and counts of
        words are added up, and the keywords are chosen again.

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
        model.messages_ = status_of(model.topics_, model.estimator_.messages_)
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
