"""Private topics: clusters of embeddings, and the words that the texts in each of them use."""

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri
from sklearn.cluster import AgglomerativeClustering
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
from sklearn.utils.validation import check_is_fitted

from .._base import BaseDPEstimator, LedgerLike, RandomStateLike, check_integer
from .._costs.numbers import round_down, sum_down
from .._costs.plan import Mechanism, PlanEntry
from .._door import column, integers
from .._intervals import StandardErrors
from .._n_clusters import check_number_of_clusters
from .._partitions import engine_of, in_memory
from .._privacy._entries import dtype_of, is_column, kind_of
from .._privacy._grid import unit_rows
from .._privacy._session import lump, sigma_of
from .._privacy._units import unit_of
from .._privacy.mechanisms.stability import release_names, stability_threshold
from .._queries.words import LONGEST, Topical, TopicSizes, TopicWords, pair_of, with_texts
from .._rows.nearest import UnitRows, nearest_point
from .._rows.single_rows import row_guard, saturated
from .._silence import suppress_output
from .._sklearn_compat import with_callbacks
from .._status import Code, Message, Status, extent
from ._dp_kmeans import DPKMeans
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


def looks_like_texts(y: Any) -> bool:
    """True if a target, which a fit ignores, is a column of texts: a slip that would go unseen."""
    if not isinstance(y, list | tuple) and hasattr(y, "tolist"):
        y = y.tolist()
    return isinstance(y, list | tuple) and len(y) > 0 and issubclass(type(y[0]), str | list | tuple)


def described(
    counts: np.ndarray, count_errors: np.ndarray, sizes: np.ndarray, size_errors: np.ndarray,
    words: Sequence[str], n_keywords: int,
) -> list[Topic]:  # fmt: skip
    """Topics, by noisy counts (k, n_words) with errors (k,), and sizes (k,). A keyword's count
    exceeds its share in the other topics by more than noise and chance do in any word; those that
    add most to the divergence come first."""
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
        names, noisy = tuple(words[i] for i in order), sizes[k] < 2 * size_errors[k]
        label = ", ".join(names[:_IN_LABEL]) or f"topic {k}"
        size = float(sizes[k]), float(size_errors[k])
        used = tuple(counts[k, order].tolist()), float(count_errors[k])
        status = "noise" if noisy else "ok" if names else "unnamed"
        topics.append(Topic(label, *size, names, *used, status))
    return topics


def status_of(topics: Sequence[Topic], clusters: Status) -> Status:
    """Return the messages about topics, by their numbers, and about the clusters."""
    fewer, unnamed = "use fewer topics or a larger epsilon", "no keyword stands out from the noise"
    troubles: dict[str, tuple[Code, str, str]] = {
        "noise": ("noisy_topics", "the size is mostly noise", fewer),
        "unnamed": ("unnamed_topics", unnamed, ""),
    }
    messages = []
    for short, (code, words, action) in troubles.items():
        numbers = [str(number) for number, topic in enumerate(topics) if topic.status == short]
        if numbers:
            shown = ", ".join(numbers[:10]) + ", ..." * (len(numbers) > 10)
            text = f"{len(numbers)} of {len(topics)} topics ({shown}): {words}"
            severity = extent(len(numbers), len(topics))
            messages.append(Message(code, text, (), action, severity))
    if not clusters.trustworthy:
        messages += clusters.of_part("clusters")
    return Status(messages)


_CLUSTERS, _SIZES, _KEYWORDS = "clusters", "sizes", "keywords"
_SIZES_SHARE, _KEYWORDS_SHARE = 0.05, 0.35
"""Of rho; the clusters have the rest. See doc/benchmarks/topics.md."""
_FAILURE = 0.5  # of delta, without a vocabulary: that a word of a single unit is seen
_MOST_COUNTS = 2**24  # 128 MB
_MOST_WORDS = 2**20
_FEW = 5  # features: with so few, only the silhouette chooses a number of directions


class DPTopics(StandardErrors, BaseDPEstimator):
    """Topics of texts: clusters of their embeddings, with the words that distinguish each cluster.

    `DPKMeans` clusters the directions of the embeddings. Then the words of the texts are counted in
    each cluster, with noise, and the noisy counts choose the keywords and the label of each topic.
    One charge covers all of it.

    Parameters
    ----------
    n_topics : int, "auto" or pair (low, high), default=20
        Number of topics, public. With "auto" or a pair the fit chooses it, as `DPKMeans` does.
    epsilon : float, default=1.0
        Privacy budget of one fit, for clusters and keywords together.
    delta : float, default=1e-6
        Probability that the epsilon limit fails; keep it far below one over the number of units.
    rho : float, optional
        Budget in zero-concentrated DP. Give it in place of `epsilon`.
    ledger : str, path or PrivacyLedger, optional
        Ledger with the total budget of many fits; charged before the data are read.
    vocabulary : list of str, optional
        Public words that may become keywords, from a glossary or a public collection, never from
        the texts themselves. None: words are found, and released if enough units use them in a
        topic (`threshold_`).
    stop_words : "english", list of str or None, default="english"
        Words that do not count if there is no `vocabulary`; a public list. "english": that of
        scikit-learn.
    keywords_per_text : int, default=8
        Public: so many different words of a text may become keywords, the first ones; with
        `groups`, of all of a person's texts. The noise grows with the square root of this number.
    n_keywords : int, default=10
        Maximum number of keywords shown per topic. It costs nothing.
    n_jobs : int, optional
        Number of threads. Results are bitwise identical for any value.
    random_state : int, RandomState instance or Generator, optional
        For tests: a seed voids the guarantee against anyone who knows it. None: system noise.

    Attributes
    ----------
    topics_ : list of Topic
        Label, size, keywords and status of each topic, made of released numbers.
        ``pandas.DataFrame(model.topics_)`` is a table of them, and
        `sklearn_dp.inspection.TopicDisplay` a picture and a page.
    sizes_ : ndarray of shape (n_topics,)
        Released number of units of each topic; with `groups`, the texts of a person add up to one.
    sizes_std_error_ : ndarray of shape (n_topics,)
        Standard deviation of the noise of each.
    words_ : list of str
        The vocabulary, or the words that were found.
    word_counts_ : ndarray of shape (n_topics, n_words)
        Released number of units that use each word in each topic, with noise; without a
        `vocabulary`, 0 where it is below `threshold_`.
    word_count_std_error_ : float
        Standard deviation of the noise of a count; of merged topics, the largest.
    threshold_ : int or None
        Public: without a `vocabulary`, the least noisy count of a word that is released.
    estimator_ : DPKMeans
        The fitted clusters, with ``metric="cosine"``.
    center_topics_ : ndarray of int32 of shape (n_clusters,)
        The topic of each center of `estimator_`: its own, unless topics have been merged.
    status_ : {"ok", "caution", "unusable"}
        The worth of the answer in one word.
    messages_ : tuple of Message
        What limits it: the `code`, `text`, `columns`, `action` and `severity` of each. They say
        which topics are mostly noise, which ones have no keyword, and what is wrong with the
        clusters.
    privacy_report_ : PrivacyReport
        The guarantee, and every release that it covers.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If `X` has string column names.

    See Also
    --------
    DPKMeans : Clusters alone, and how the budget affects them.
    sklearn_dp.inspection.TopicDisplay : Draws the topics, and makes a page of them.

    Notes
    -----
    Guarantee: a fit is (epsilon, delta)-differentially private for adding or removing one row (with
    `groups`: all rows of a group), that is a text together with its embedding. It holds if the
    embedding of a text is a function of that text alone: a fixed model, hashing, or a random
    projection. Models that have learned from these texts (TF-IDF weights, singular value
    decomposition, a fine-tuned network) may reveal them; no noise of this fit covers that.

    The clusters have 60% of rho, the sizes 5% and the keywords 35%. A text is in one topic, by
    released centers, so one release holds the counts of all topics: it changes by at most the root
    of `keywords_per_text` in Euclidean norm, and has Gaussian noise. Without a `vocabulary` half of
    delta is the probability that any word of a single unit is seen; the noise is then larger too,
    by about a tenth.

    A keyword's count exceeds the one expected from the share of the word in the other topics, by
    more than noise and chance do in any of the words, with 95% confidence. The words of a text are
    read in lower case, without punctuation; lists of words are taken as they are, so phrases, stems
    or words in the order of their importance may be given.

    References
    ----------
    Grootendorst, M. (2022). BERTopic: Neural topic modeling with a class-based TF-IDF procedure.
    arXiv:2203.05794. (words that distinguish a cluster)
    Korolova, A., Kenthapadi, K., Mishra, N. and Ntoulas, A. (2009). Releasing search queries and
    clicks privately. WWW. (words that nobody listed)

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dp import DPTopics
    >>> texts = ["when will my parcel arrive", "I cannot log in to my account"] * 2000
    >>> X = np.tile([[1.0, 0.1], [0.1, 1.0]], (2000, 1))  # of some public model
    >>> model = DPTopics(2).fit(X, texts=texts)
    >>> sorted(sorted(topic.keywords) for topic in model.topics_)
    [['account', 'log'], ['arrive', 'parcel']]
    """

    bounds = None  # directions have length 1
    _with_errors = {"sizes_": (0.0, math.inf)}

    def __init__(
        self,
        n_topics: int | str | tuple[int, int] = 20,
        *,
        epsilon: float | None = 1.0,
        delta: float = 1e-6,
        rho: float | None = None,
        ledger: LedgerLike | None = None,
        vocabulary: Any = None,
        stop_words: Any = "english",
        keywords_per_text: int = 8,
        n_keywords: int = 10,
        n_jobs: int | None = None,
        random_state: RandomStateLike | None = None,
    ) -> None:
        super().__init__(epsilon, delta, rho, ledger, n_jobs, random_state)
        self.n_topics = n_topics
        self.vocabulary = vocabulary
        self.stop_words = stop_words
        self.keywords_per_text = keywords_per_text
        self.n_keywords = n_keywords

    # -- parameters and plan --------------------------------------------------------------------

    def _listed(self) -> list[str] | None:
        if self.vocabulary is None:
            return None
        listed = checked_words(self.vocabulary, "vocabulary", " or None")
        if not 1 <= len(listed) <= _MOST_WORDS or len(set(listed)) != len(listed):
            raise ValueError(f"vocabulary must hold 1 to {_MOST_WORDS} words that differ.")
        return listed

    def _left_out(self) -> frozenset[str]:
        if isinstance(self.stop_words, str):
            if self.stop_words != "english":
                raise ValueError("stop_words must be 'english', a list of words or None.")
            return frozenset(ENGLISH_STOP_WORDS)
        if self.stop_words is None:
            return frozenset()
        return frozenset(checked_words(self.stop_words, "stop_words", ", 'english' or None"))

    def _check_parameters(self, n_features: int) -> None:
        asked: Any = check_number_of_clusters(self.n_topics, "n_topics")
        check_integer(self.keywords_per_text, "keywords_per_text", low=1, high=1000)
        check_integer(self.n_keywords, "n_keywords", low=1, high=1000)
        self._left_out()
        listed, most = self._listed(), getattr(asked, "high", asked)
        if listed is not None and most * len(listed) > _MOST_COUNTS:
            raise ValueError(f"vocabulary times n_topics must be at most {_MOST_COUNTS} counts.")

    def _stages(self, target: Any, n_features: int, unit: str = "row") -> Any:
        """The clusterer, its plan, and all entries."""
        finds_vocabulary = self.vocabulary is None
        failure = target.delta * _FAILURE if finds_vocabulary else 0.0
        rho = target.to_rho(gaussian=not finds_vocabulary, delta_failure=failure)
        sizes, keywords = (round_down(share * rho) for share in (_SIZES_SHARE, _KEYWORDS_SHARE))
        rest = round_down(sum_down([rho, -sizes, -keywords]))
        model = DPKMeans(
            self.n_topics,
            epsilon=None,
            rho=rest,
            delta=target.delta,
            metric="cosine",
            criterion="silhouette" if n_features <= _FEW else "auto",
            n_jobs=self.n_jobs,
        )
        plan, words = model._make_plan(n_features, unit), f"root of {self.keywords_per_text}"
        law = Mechanism.STABILITY_HISTOGRAM if finds_vocabulary else Mechanism.GAUSSIAN
        entries = (
            lump(_CLUSTERS, plan),
            PlanEntry.gaussian(_SIZES, sizes, "1 unit"),
            PlanEntry(_KEYWORDS, law, keywords, failure, sensitivity=words),
        )
        return model, plan, entries

    def _plan_entries(self, target: Any, n_features: int) -> tuple[PlanEntry, ...]:
        return self._stages(target, n_features)[-1]

    # -- fit ------------------------------------------------------------------------------------

    @with_callbacks
    @row_guard
    def fit(
        self, X: ArrayLike, y: object = None, *, texts: Any = None, groups: ArrayLike | None = None
    ) -> Self:
        """Release the topics of texts.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Embedding of each text, dense, finite and in memory; only its direction counts.
        y : Ignored
            Present for API consistency with scikit-learn.
        texts : array-like of shape (n_samples,), optional
            The text of each row, or a list of its words. Entries of other types have no words.
            None: the words of a row are the names of the columns in which it is positive, the
            largest first, as in a table of word counts.
        groups : array-like of shape (n_samples,), optional
            The privacy unit of each row, such as the person who wrote it: the guarantee is then for
            adding or removing all texts of a person.

        Returns
        -------
        self : DPTopics
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError
            For invalid input or parameters; the message names the parameter.
        BudgetExceededError
            If the remaining budget of `ledger` is too small. The data have not been read.

        Warns
        -----
        UtilityWarning
            If released values show that some topics are of little use.
        """
        if texts is None and looks_like_texts(y):
            raise TypeError("y is ignored: pass the texts as texts=.")
        if isinstance(X, list | tuple) and X and issubclass(type(X[0]), str):
            raise TypeError("X must have a vector for each text. Pass the texts as texts=.")
        source = engine_of(X, groups)
        if texts is not None:
            in_memory(X, "texts")
            # By its type alone: a column of texts, or of lists of words.
            if not is_column(texts) or kind_of(dtype_of(texts)) not in ("text", "object", "other"):
                raise ValueError(_NO_TEXTS)
        if source is not None:
            return self._fit_parts(source)
        session = self._open_session(X, unit_of(groups))
        rows = self._validated(X)
        units = self._units(rows, groups)
        if texts is not None:
            entries = column(texts, "texts").tolist()
            if len(entries) != len(rows):
                raise ValueError(_NO_TEXTS)
            rows = with_texts(self._table(saturated(rows), units), entries)
        return self._fit_session(rows, units, session)

    def _fit_table(self, table: Any, session: Any, progress: Any) -> None:
        model, plan, _ = self._stages(session.plan.target, table.n_features, session.plan.unit)
        model.n_features_in_ = table.n_features
        with suppress_output():
            model._fit_session(table, table.units, session.inner(_CLUSTERS, plan, _CLUSTERS))
        # What the fit kept for itself is no release: the state of callbacks.
        for name in [name for name in vars(model) if name[0] == "_"]:
            delattr(model, name)
        model.n_jobs = None
        progress(_CLUSTERS)
        n_topics = len(model.cluster_centers_)
        table.apply(Topical(model.cluster_centers_))
        self.sizes_ = session.release(_SIZES, table.ask(TopicSizes(n_topics)))
        error = float(sigma_of(1.0, session.plan[_SIZES].rho))
        self.sizes_std_error_ = np.full(n_topics, error)
        progress(_SIZES)
        self._release_words(table, session, n_topics)
        progress(_KEYWORDS)
        self.estimator_ = model
        self.center_topics_ = np.arange(n_topics, dtype=np.int32)
        self._describe(np.full(n_topics, self.word_count_std_error_))

    def _released_parts(self) -> Any:
        return [((), self.estimator_)]

    def _release_words(self, table: Any, session: Any, n_topics: int) -> None:
        """Release the number of units that use each word in each topic."""
        most = self.keywords_per_text
        listed, entry, self.threshold_ = self._listed(), session.plan[_KEYWORDS], None
        names, left_out = (tuple(map(str, each)) for each in (self._column_names, self._left_out()))
        known = None if listed is None else tuple(listed)
        answer = table.ask(TopicWords(n_topics, most, known, left_out, names))
        sigma = float(sigma_of(answer.claim.l2, entry.rho))
        if listed is None:
            rho, delta = entry.rho, entry.delta
            codes, counts = release_names(session, entry.name, answer, rho=rho, delta=delta)
            pairs = [pair_of(code) for code in codes.tolist()]
            self.words_ = sorted({word for _, word in pairs})
            place = {word: i for i, word in enumerate(self.words_)}
            self.word_counts_ = np.zeros((n_topics, len(place)))  # 0 where hidden
            for (topic, word), count in zip(pairs, counts, strict=True):
                self.word_counts_[topic, place[word]] = count
            self.threshold_ = stability_threshold(sigma, round_down(entry.delta / most))
        else:
            self.words_ = listed
            self.word_counts_ = session.release(entry.name, answer).reshape(n_topics, -1)
        self.word_count_std_error_ = sigma

    @row_guard
    def predict(self, X: ArrayLike) -> np.ndarray:
        """Index of the topic of each row, by the nearest released center.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Embeddings, finite; only their directions count.

        Returns
        -------
        topics : ndarray of int32 of shape (n_samples,)
            Indices of `topics_`. Not private where the rows are.
        """
        rows = UnitRows(self._validate_predict(X))
        return self.center_topics_[nearest_point(rows, self.estimator_.cluster_centers_)]

    def merge(self, labels: ArrayLike | None = None) -> Self:
        """Merge topics, by released values only: nothing is charged.

        Sizes and counts of words are added up, and the keywords are chosen again.

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
        variances = np.square(np.column_stack([self.sizes_std_error_, errors]))
        model = copy(self)
        model.center_topics_ = labels[self.center_topics_].astype(np.int32, casting="same_kind")
        model.sizes_, model.word_counts_ = (
            total(self.sizes_, labels),
            total(self.word_counts_, labels),
        )
        # Noises are independent, so their variances add up.
        model.sizes_std_error_, errors = np.sqrt(total(variances, labels)).T
        model.word_count_std_error_ = float(errors.max())
        model._describe(errors)
        return model

    def _describe(self, count_errors: np.ndarray) -> None:
        """Name the topics by the released counts, whose errors (n_topics,) are given."""
        sizes = self.sizes_, self.sizes_std_error_
        counts = self.word_counts_, count_errors
        self.topics_ = described(*counts, *sizes, self.words_, self.n_keywords)
        self.messages_ = status_of(self.topics_, self.estimator_.messages_)

    def _near_topics(self) -> np.ndarray:
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
