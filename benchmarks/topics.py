"""Topics of texts, from embeddings: clusters and keywords at several budgets.

    python benchmarks/topics.py [--seeds 3]

prints its table and writes ``doc/benchmarks/topics.md``, which says what is compared.
"""

import argparse
import time
import warnings

import _run  # first: one thread
import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from sklearn_dp import DPTopics
from sklearn_dp.cluster._dp_topics import described

PAGE = _run.PAGES / "topics.md"
ROWS, FEATURES, TOPICS, THEMES = 50_000, 384, 100, 12
OWN, SHARED, COMMON = 8, 10, 1000  # words of a topic, of a theme, of all texts
LENGTH = 12  # words of a text
EPSILONS = (1.0, 4.0, 10.0)
POWERS = (0.7, 1.0)  # of Zipf's law of the sizes
INTRO = """# Topics of texts

Made by `{made}` with {versions}; delta 1e-6.

{rows:,} texts with embeddings of {features} features: unit rows about {topics} topics in
{themes} themes, spread most along axes that all topics share, as embeddings of texts are. The size
of the i-th topic falls like i ^ -power, so with a power of 1 the largest one has about 9,600 texts
and the smallest about 100. A text has {length} words: about a third from {own} words of its topic,
a sixth from {shared} words of its theme, the others from {common:,} common words.

* not private: k-means from the true centers, and once from k-means++; keywords from exact counts;
* vocabulary: `DPTopics` with a public list of all {words:,} words;
* found: `DPTopics` without a vocabulary.

`Rand` is the adjusted Rand index with the true topics; `ideal` what it is once topics whose texts
are mostly of one true topic are merged, which only the truth can tell. `named` is the share of
texts in a topic whose label is right: all of its keywords, up to three, belong to the topic that
most texts in it are of. `right` is the share of the first five keywords of all topics that belong
to it, and `keywords` is how many keywords, of five, a topic has. A line `merged` has the same of
`merge()`, which merges topics whose centers are closer to each other than a text is to its own, by
released numbers only: it costs nothing. Means of {seeds} fits; CPU seconds of a fit.

Where a large topic has several centers, and small ones share one, k-means has a local minimum, with
and without privacy. With a power of 1 the largest topic is a fifth of all texts, and the index
falls by much where it is split; the pieces still have the right name. Merging near ones makes that
good. The rule needs topics that are farther apart than their texts are wide, as here.
"""


def corpus(power, seed):
    """Unit rows of float32, the true topics, the true centers, texts, and words of topics."""
    rng = np.random.default_rng(seed)
    theme_of = np.arange(TOPICS) % THEMES
    themes, own = rng.normal(size=(THEMES, FEATURES)), rng.normal(size=(TOPICS, FEATURES))
    centers = 0.4 * _unit(themes)[theme_of] + 0.8 * _unit(own)
    shares = np.arange(1.0, TOPICS + 1) ** -power
    topics = rng.choice(TOPICS, size=ROWS, p=shares / shares.sum())
    widths = np.arange(1.0, FEATURES + 1) ** -0.5
    widths *= np.sqrt(0.2) / np.linalg.norm(widths)
    axes = np.linalg.qr(rng.normal(size=(FEATURES, FEATURES)))[0]
    X = _unit(centers[topics] + (rng.normal(size=(ROWS, FEATURES)) * widths) @ axes.T)
    kind = rng.random((ROWS, LENGTH))
    first = rng.integers(COMMON, size=kind.shape) ** 2 // COMMON  # the first ones are used most
    own = COMMON + topics[:, None] * OWN + rng.integers(OWN, size=kind.shape)
    shared = COMMON + TOPICS * OWN + theme_of[topics][:, None] * SHARED
    shared = shared + rng.integers(SHARED, size=kind.shape)
    numbers = np.where(kind < 1 / 3, own, np.where(kind < 1 / 2, shared, first))
    names = np.array([f"w{i}" for i in range(COMMON + TOPICS * OWN + THEMES * SHARED)], object)
    return X.astype(np.float32), topics, centers.astype(np.float32), names[numbers].tolist(), names


def _unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def exact(X, texts, names, **start):
    """Labels and topics without privacy: of all words of the texts."""
    model = KMeans(TOPICS, n_init=1, **start).fit(X)
    labels, counts = model.labels_, np.zeros((TOPICS, len(names)))
    column = {name: i for i, name in enumerate(names)}
    for label, text in zip(labels, texts, strict=True):
        for word in {*text}:
            counts[label, column[word]] += 1
    sizes = np.bincount(labels, minlength=TOPICS).astype(float)
    none = np.full(TOPICS, 1e-9)
    return labels, described(counts, none, sizes, none, names.tolist(), 10)


def quality(labels, found, topics):
    """Rand index, before and after pieces of a true topic are joined, texts with a right label,
    right keywords among the first five, and how many."""
    named, right, told, joined = 0, 0, 0, labels.copy()
    for number, topic in enumerate(found):
        inside = topics[labels == number]
        if not len(inside):
            continue
        joined[labels == number] = true = int(np.bincount(inside).argmax())
        first = COMMON + true * OWN
        good = [first <= int(word[1:]) < first + OWN for word in topic.keywords[:5]]
        named += len(inside) * bool(good and all(good[:3]))
        right, told = right + sum(good), told + len(good)
    index = [adjusted_rand_score(topics, each) for each in (labels, joined)]
    return *index, named / len(topics), right / max(told, 1), told / len(found)


def line(power, name, results, seconds):
    """A row of the table."""
    index, joined, named, right, told = np.mean(results, axis=0)
    shown = "" if seconds is None else f"{np.mean(seconds):.0f}"
    return (
        f"| {power:g} | {name} | {index:.3f} | {joined:.3f} | {named:.2f} "
        f"| {right:.2f} | {told:.1f} | {shown} |"
    )


def lines_of(power, seeds):
    """The rows of the table of one power."""
    results, seconds = {}, {}
    for seed in range(seeds):
        X, topics, centers, texts, names = corpus(power, 700 + seed)
        starts = {"true centers": {"init": centers}, "k-means++": {"random_state": seed}}
        for name, start in starts.items():
            found = exact(X, texts, names, **start)
            results.setdefault(f"not private, {name}", []).append(quality(*found, topics))
        for epsilon in EPSILONS:
            for way, vocabulary in (("vocabulary", names.tolist()), ("found", None)):
                name = f"{way}, ε = {epsilon:g}"
                start = time.process_time()
                model = DPTopics(
                    TOPICS, epsilon=epsilon, vocabulary=vocabulary, random_state=seed
                ).fit(X, texts=texts)
                seconds.setdefault(name, []).append(time.process_time() - start)
                for each, way in ((model, name), (model.merge(), f"{name}, merged")):
                    found = quality(each.predict(X), each.topics_, topics)
                    results.setdefault(way, []).append(found)
    return [line(power, name, found, seconds.get(name)) for name, found in results.items()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = ["| power | | Rand | ideal | named | right | keywords | CPU |", "|---" * 8 + "|"]
    for power in POWERS:
        lines += lines_of(power, options.seeds)
        print("\n".join(lines[-2 - 4 * len(EPSILONS) :]), flush=True)
    intro = INTRO.format(
        made=f"python benchmarks/topics.py --seeds {options.seeds}",
        versions=_run.versions("numpy"),
        rows=ROWS, features=FEATURES, topics=TOPICS, themes=THEMES, length=LENGTH, own=OWN,
        shared=SHARED, common=COMMON, words=COMMON + TOPICS * OWN + THEMES * SHARED,
        seeds=options.seeds,
    )  # fmt: skip
    PAGE.write_text(intro + "\n" + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
