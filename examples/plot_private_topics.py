"""
Topics of documents: k-means on sparse text
===========================================

Words are hashed, then projected at random. Neither step learns from the documents, so both are
public and cost no privacy budget. `DPKMeans` accepts the sparse rows directly. Words from a public
list then describe each released center. (Weighting words by frequency, as tf-idf does, would depend
on all documents. Such weights must come from a public collection.)

In a terminal::

    python examples/plot_private_topics.py [--quick] [--output FILE.png]
"""

import warnings

import numpy as np
from _common import ACCENT, INK, MUTED, legend_above, parse_arguments, print_table, save, timed
from sklearn.cluster import KMeans
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.cluster import contingency_matrix
from sklearn.pipeline import make_pipeline
from sklearn.random_projection import SparseRandomProjection

from sklearn_dp import DPKMeans
from sklearn_dp.exceptions import UtilityWarning

TOPICS = {
    "weather": "rain storm cloud wind forecast snow sunny thunder frost humid breeze climate",
    "cooking": "recipe oven garlic butter flour simmer onion sauce bake pepper dough taste",
    "football": "goal striker referee penalty league coach defender match stadium pitch keeper cup",
    "medicine": "patient dose symptom nurse surgery fever vaccine clinic therapy doctor pulse pain",
    "music": "guitar melody concert chorus drummer album violin rhythm singer piano tempo choir",
    "law": "court judge appeal lawyer verdict statute witness clause trial plaintiff jury ruling",
    "garden": "soil seed prune tulip compost blossom hedge rose weed watering shrub bulb",
    "money": "bank interest loan dividend mortgage stock inflation bond credit market rate budget",
    "space": "planet orbit comet telescope galaxy rocket lunar asteroid star probe eclipse crater",
    "travel": "airport luggage hotel passport train island tourist ferry flight visa border beach",
}
COMMON = "the of and to in that it was for on with as his they at be this from have or one had by"
EPSILONS = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1)


def documents(n, rng):
    """Texts of fifty words, and their topics; six words in ten are common words."""
    topics = rng.integers(len(TOPICS), size=n)
    own = np.array([words.split() for words in TOPICS.values()])
    rank = 1 / np.arange(1, 1 + own.shape[1])  # the first words of a topic are its most frequent
    picks = rng.choice(own.shape[1], size=(n, 50), p=rank / rank.sum())
    words = own[topics[:, None], picks]
    plain = rng.random(words.shape) < 0.6
    words[plain] = rng.choice(COMMON.split(), size=int(plain.sum()))
    return [" ".join(text) for text in words], topics


def about(centers, features, words):
    """For each center, the three closest words of a public list, after subtracting the mean
    center."""
    directions = features.transform(words) @ (centers - centers.mean(axis=0)).T
    return [[words[i] for i in np.argsort(-column)[:3]] for column in np.asarray(directions).T]


def matrix(axes, topics, labels, title, names):
    """The share of each topic in each cluster; clusters are ordered by their main topics."""
    parts = contingency_matrix(topics, labels).astype(float)
    parts /= parts.sum(axis=1, keepdims=True)
    order = np.argsort(parts.argmax(axis=0), kind="stable")
    axes.imshow(parts[:, order], cmap="Blues", vmin=0, vmax=1, aspect="auto")
    axes.set_title(title)
    axes.set_yticks(range(len(TOPICS)), list(TOPICS))
    axes.set_xticks(
        range(len(order)), [names[j] for j in order], rotation=90, fontsize=8, color=INK
    )
    axes.tick_params(length=0)


def draw(figure, topics, plain, private, curve):
    """Clusters without and with privacy, then agreement with the topics over epsilon."""
    figure.set_layout_engine("constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=(1, 1, 0.9))
    names = [f"cluster {j + 1}" for j in range(len(TOPICS))]
    matrix(left, topics, plain.labels_, "KMeans: share of each topic", names)
    told = [", ".join(each) for each in private["words"]]
    matrix(middle, topics, private["labels"], "DPKMeans, epsilon = 1: released words", told)
    right.plot(EPSILONS, curve, "o-", color=ACCENT, label="DPKMeans")
    agreement = adjusted_rand_score(topics, plain.labels_)
    right.axhline(agreement, color=MUTED, ls="--", label="KMeans, no privacy")
    right.set_xscale("log", base=2)
    right.set_xticks(EPSILONS, [f"{e:g}" for e in EPSILONS])
    right.set(ylim=(0, 1.02), xlabel="epsilon", ylabel="adjusted Rand index")
    right.set_title("Agreement with the topics")
    right.grid(axis="y")
    legend_above(right, 2)


def main(argv=None):
    options = parse_arguments(__doc__, "private_topics.png", argv)
    n = 6_000 if options.quick else 20_000
    texts, topics = documents(n, np.random.default_rng(0))
    # Both use public numbers only, and the projection roughly preserves the length of unit rows.
    features = make_pipeline(
        HashingVectorizer(n_features=2**16, norm="l2"),
        SparseRandomProjection(n_components=48, density=1 / 3, random_state=0),
    )
    X, seconds = timed(features.fit_transform, texts)
    print(f"{n:,} documents, {X.shape[1]} features, {seconds.cpu:.1f} CPU seconds to make them")
    k = len(TOPICS)
    plain, plain_time = timed(KMeans(k, n_init=10, random_state=0).fit, X)
    rows, curve = [], []
    warnings.simplefilter("ignore", UtilityWarning)  # the smallest budgets warn
    for epsilon in EPSILONS:
        fitted, seconds = timed(DPKMeans(k, epsilon=epsilon, bounds=1.5).fit, X)
        curve.append(adjusted_rand_score(topics, fitted.labels_))
        same = adjusted_rand_score(plain.labels_, fitted.labels_)
        rows.append((f"DPKMeans, {epsilon:g}", f"{curve[-1]:.3f}", f"{same:.3f}"))
        rows[-1] += (f"{fitted.score(X) / plain.score(X):.3f}", f"{seconds.cpu:.1f}")
        if epsilon == 1:
            model = fitted
    agreement = adjusted_rand_score(topics, plain.labels_)
    rows.insert(0, ("KMeans", f"{agreement:.3f}", "1.000", "1.000", f"{plain_time.cpu:.1f}"))
    print_table(("epsilon", "ARI to topics", "ARI to KMeans", "cost / KMeans", "CPU s"), rows)
    words = about(model.cluster_centers_, features, " ".join(TOPICS.values()).split())
    print("\nWhat the released centers are about:")
    for each, weight in zip(words, model.cluster_weights_, strict=True):
        print(f"  {', '.join(each):32} about {weight:,.0f} documents")
    print(f"\n{model.privacy_report_}")
    private = {"labels": model.labels_, "words": words}
    save(lambda figure: draw(figure, topics, plain, private, curve), options.output, (14, 5.2))


if __name__ == "__main__":
    main()
