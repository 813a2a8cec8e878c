"""
Examples of scikit-learn's gallery, with private estimators
===========================================================

    python examples/from_scikit_learn/gallery.py                  # all of them, and the pictures
    python examples/from_scikit_learn/gallery.py plot_gmm_pdf     # one of them
    python examples/from_scikit_learn/gallery.py --quick          # numbers only
    python examples/from_scikit_learn/gallery.py --write          # the page and pictures of doc/

Each example is a function of `make`, which receives every estimator. In the original, `make`
returns it unchanged; in the private version it is `from_sklearn`. That is the only difference.
Examples with synthetic data run again with ten times as many rows.

The pictures show the data themselves, which are public here. For private rows, only the data owner
may see such a picture.
"""

import argparse
import sys
import warnings
from functools import partial
from pathlib import Path

import clusters
import models
import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from sklearn_dp import DPPCA, DPGaussianMixture, DPKMeans, FriendlyCovariance, SampleAndAggregate
from sklearn_dp.exceptions import ConversionWarning, UtilityWarning
from sklearn_dp.inspection import _curve

EXAMPLES = {example.name: example for example in (*clusters.EXAMPLES, *models.EXAMPLES)}
PRIVATE = {
    "KMeans": DPKMeans,
    "MiniBatchKMeans": DPKMeans,
    "BisectingKMeans": DPKMeans,
    "GaussianMixture": DPGaussianMixture,
    "PCA": DPPCA,
    "EmpiricalCovariance": FriendlyCovariance,
}
DOC = Path(__file__).resolve().parents[2] / "doc"
PAGE, PICTURES = DOC / "gallery.md", DOC / "images" / "gallery"
MORE = 10


def original(estimator, **public):
    """What scikit-learn's gallery has: the estimator as it is."""
    return estimator


def private(epsilon, estimator, *, aggregate=None, **public):
    """The private version; `aggregate` are the options of one that is aggregated over blocks."""
    if aggregate is not None:
        return SampleAndAggregate(estimator, epsilon=epsilon, **aggregate, **public)
    cls = PRIVATE[type(estimator).__name__]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConversionWarning)  # n_init, random_state
        return cls.from_sklearn(estimator, epsilon=epsilon, **public)


def runs(example, quick=False):
    """The versions of an example: title, what makes the estimators, and how many rows there are."""
    found = [
        ("scikit-learn", original, 1),
        (f"epsilon = {example.epsilon:g}", partial(private, example.epsilon), 1),
    ]
    if example.generated and not quick:
        more = [(f"{title}, {MORE} x rows", make, MORE) for title, make, _ in found]
        found += more
    return found


def numbers(example, quick=False, axes=None):
    """The number of each version of an example; pictures into `axes`, if there are any."""
    found = []
    for i, (_, make, factor) in enumerate(runs(example, quick)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UtilityWarning)
            ax = None if axes is None else axes[i]
            found.append(float(example.run(make, factor, ax)))
    return found


@rc_context(_curve.SETTINGS)
def draw(example, path, quick=False):
    """The versions of an example next to each other, as a PNG; their numbers."""
    titles = [title for title, _, _ in runs(example, quick)]
    figure = Figure(figsize=(2.7 * len(titles), 2.8), layout="constrained")
    axes = figure.subplots(1, len(titles), squeeze=False)[0]
    for ax in axes:
        ax.set_xticks([])
        ax.set_yticks([])
    found = numbers(example, quick, axes)
    for ax, title, number in zip(axes, titles, found, strict=True):
        ax.set_title(f"{title}: {number:.3g}", fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=80)
    return found


TEXT = """# Examples of scikit-learn, made private

Examples of [scikit-learn's gallery](https://scikit-learn.org/stable/auto_examples/), on the same
data, with one change: `from_sklearn` converts each estimator.

    model = KMeans(n_clusters=3)                                       # the original
    model = DPKMeans.from_sklearn(KMeans(n_clusters=3), epsilon=1.0)   # the private version

This page is written by `python examples/from_scikit_learn/gallery.py --write`; the code of the
examples is in `clusters.py` and `models.py` in the same folder. Noise comes from the operating
system, so every run gives slightly different numbers; delta is 1e-6. Gallery examples have few
rows, which is where privacy costs most. If the data are synthetic, both versions run again with ten
times as many rows at the same budget. The pictures show the data themselves, which are public here.

"""


def write(chosen):
    """The page with its pictures."""
    heads = ["example", "number", "rows", "scikit-learn", "epsilon", "private"]
    heads += [f"scikit-learn, {MORE} x rows", f"private, {MORE} x rows"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    stories = []
    for example in chosen:
        found = [f"{x:.3g}" for x in draw(example, PICTURES / f"{example.name}.png")]
        found.insert(1, f"{example.epsilon:g}")
        found += [""] * (5 - len(found))
        name = f"[{example.title}](#{example.anchor})"
        lines.append(f"| {name} | {example.number} | {example.rows:,} | {' | '.join(found)} |")
        stories += [
            f"## {example.title}\n",
            f"`{example.name}`. {example.story}\n",
            f"![{example.title}](images/gallery/{example.name}.png)\n",
        ]
    PAGE.write_text(TEXT + "\n".join([*lines, "", *stories]), encoding="utf-8")


def main(argv=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("examples", nargs="*", choices=[[], *EXAMPLES], help="all by default")
    parser.add_argument("--quick", action="store_true", help="numbers only")
    parser.add_argument("--write", action="store_true", help="write the page of doc/")
    options = parser.parse_args(argv)
    chosen = [EXAMPLES[name] for name in options.examples or EXAMPLES]
    if options.write:
        write(chosen)
        return 0
    for example in chosen:
        folder = Path(__file__).resolve().parents[1] / "output" / "from_scikit_learn"
        path = folder / f"{example.name}.png"
        found = numbers(example, True) if options.quick else draw(example, path)
        named = zip([title for title, _, _ in runs(example, options.quick)], found, strict=True)
        lines = [f"{title}: {number:.3g}" for title, number in named]
        print(f"{example.name}, {example.number}:", *lines, sep="\n  ")
        assert np.isfinite(found).all()
    return 0


if __name__ == "__main__":
    sys.exit(main())
