"""
Handwritten digits: a private step in an existing pipeline
===========================================================

A pipeline groups 8 x 8 images of handwritten digits into ten clusters. It was written with
:class:`~sklearn.cluster.KMeans`. Changing one line makes the clusters private::

    pipeline.set_params(clusters=DPKMeans(n_clusters=10, epsilon=4.0, bounds=(0, 1)))

Each row is one person's handwriting. 1,797 rows are few for 64 dimensions. This example measures
how much accuracy a private fit loses, and how the loss depends on epsilon. (A photograph with
273,280 rows in 3 dimensions loses almost nothing: see `plot_private_palette.py`.)

The scaling step uses only a public fact: pixels range from 0 to 16. A `StandardScaler` in its place
would learn exact means and variances from the rows and disclose them.

A `GridSearchCV` draws the curve over epsilon. Each of its fits is charged to a ledger, in whichever
process it runs. Once the total is spent, the next fit is refused. Run
such a search on public data like these, because every fit to the same people's data costs budget.
"""

import tempfile
import warnings
from pathlib import Path

import numpy as np
from _common import ACCENT, INK, MUTED, parse_arguments, print_table, save
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.metrics import pairwise_distances
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import Pipeline

from sklearn_dp import DPKMeans, PrivacyBudget, PrivacyLedger, PublicScaler
from sklearn_dp.exceptions import BudgetExceededError, UtilityWarning

EPSILONS = [0.5, 1.0, 2.0, 4.0, 8.0]
DELTA = 1e-6
SHOWN = [4.0, 1.0]

# %%
# The original pipeline, and the private version with one line changed.


def kmeans_pipeline():
    return Pipeline([
        ("scale", PublicScaler(bounds=(0, 16))),
        ("clusters", KMeans(n_clusters=10, n_init=10, random_state=0)),
    ])  # fmt: skip


def private_pipeline(epsilon, ledger=None):
    private = DPKMeans(n_clusters=10, epsilon=epsilon, delta=DELTA, bounds=(0, 1), ledger=ledger)
    return kmeans_pipeline().set_params(clusters=private)


# %%
# Two ways to judge a clustering on held-out rows. Both use these rows without noise, so they are
# for internal use only.


def cost(pipeline, X, y=None):
    """Mean squared distance to the nearest center."""
    return -pipeline.score(X) / len(X)


def accuracy(pipeline, X, y):
    """Share of the rows whose digit is the most frequent one of their cluster."""
    clusters = pipeline.predict(X)
    return sum(np.bincount(y[clusters == c]).max() for c in np.unique(clusters)) / len(y)


SCORING = {"cost": cost, "accuracy": accuracy}

# %%
# The search, with a ledger that holds exactly the budget it needs.


def search_epsilon(X, y, folds, ledger, n_jobs):
    """Scores of each epsilon on each fold: two arrays of shape (n_epsilons, n_folds)."""
    search = GridSearchCV(
        private_pipeline(1.0, ledger), {"clusters__epsilon": EPSILONS}, scoring=SCORING, cv=folds,
        refit=False, n_jobs=n_jobs,
    )  # fmt: skip
    with warnings.catch_warnings():
        # At a small budget, a fit warns that its centers are mostly noise.
        warnings.simplefilter("ignore", UtilityWarning)
        results = search.fit(X, y).cv_results_
    return {
        name: np.column_stack([
            results[f"split{i}_test_{name}"] for i in range(folds.get_n_splits())
        ])
        for name in SCORING
    }  # fmt: skip


def make_ledger(path, n_folds):
    total = PrivacyBudget(epsilon=n_folds * sum(EPSILONS), delta=n_folds * len(EPSILONS) * DELTA)
    return PrivacyLedger(total, path)


def one_more_fit(X, path):
    """The ledger is empty now."""
    try:
        private_pipeline(1.0, path).fit(X)
    except BudgetExceededError as error:
        return str(error)
    raise AssertionError("the ledger admitted a fit beyond its total")


def run_search(X, y, folds, n_jobs):
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "study.sqlite")
        ledger = make_ledger(path, folds.get_n_splits())
        scores = search_epsilon(X, y, folds, path, n_jobs)
        print(
            f"\nThe ledger after the search: {len(ledger.entries)} fits, spent "
            f"epsilon = {ledger.spent['epsilon']:g}, delta = {ledger.spent['delta']:.2g}"
        )
        print(f"One more fit is refused: {one_more_fit(X, path)}")
    return scores


def print_scores(reference, private):
    rows = [["KMeans", "none", "1.000", f"{reference['accuracy'].mean():.1%}"]]
    rows += [
        ["DPKMeans", f"{epsilon:g}", f"{ratio.mean():.3f}", f"{hits.mean():.1%}"]
        for epsilon, ratio, hits in zip(
            EPSILONS, private["cost"] / reference["cost"], private["accuracy"], strict=True
        )
    ]
    print()
    print_table(["clusters", "epsilon", "cost / KMeans", "accuracy"], rows)


# %%
# The picture: the centers are images themselves, with the two scores below them.


def centers_like(centers, others):
    """The centers in the order of those that they resemble."""
    _, order = linear_sum_assignment(pairwise_distances(others, centers))
    return centers[order]


def draw_centers(figure, top, name, subtitle, centers):
    figure.text(0.035, top - 0.05, name, fontsize=11, weight="bold")
    figure.text(0.035, top - 0.082, subtitle, color=MUTED, fontsize=9.5)
    for i, center in enumerate(centers):
        axes = figure.add_axes([0.205 + 0.0775 * i, top - 0.115, 0.072, 0.115])
        axes.imshow(center.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1, interpolation="bicubic")
        axes.set(xticks=[], yticks=[])
        for spine in axes.spines.values():
            spine.set(visible=True, color="#dfe2e8")


def draw_curve(axes, values, reference, title, form):
    mean, spread = values.mean(axis=1), values.std(axis=1)
    axes.axhline(reference, color=INK, linewidth=1.2, linestyle=(0, (5, 3)))
    axes.fill_between(EPSILONS, mean - spread, mean + spread, color=ACCENT, alpha=0.13, lw=0)
    axes.plot(EPSILONS, mean, "o-", color=ACCENT, linewidth=2, markersize=6)
    axes.set_xscale("log", base=2)
    axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    axes.yaxis.set_major_formatter(form)
    axes.grid(axis="y")
    axes.set_axisbelow(True)
    axes.set(xlabel="ε of each fit  (band: one standard deviation over the folds)", title=title)


def draw(figure, rows, reference, private):
    for i, (name, subtitle, centers) in enumerate(rows):
        draw_centers(figure, 0.97 - 0.135 * i, name, subtitle, centers)
    left, right = (figure.add_axes([x, 0.085, 0.405, 0.395]) for x in (0.075, 0.565))
    level = reference["accuracy"].mean()
    draw_curve(left, private["accuracy"], level, "Accuracy on held-out images", "{x:.0%}")
    left.set_ylim(top=level + 0.05)
    left.annotate("KMeans", (0.5, level), (0, 5), textcoords="offset points", color=INK)
    left.annotate("DPKMeans", (2, private["accuracy"].mean(axis=1)[2]), (8, -14),
                  textcoords="offset points", color=ACCENT)  # fmt: skip
    ratio = private["cost"] / reference["cost"]
    draw_curve(right, ratio, 1.0, "Cost on held-out images, over that of KMeans", "{x:.2f}")


def fitted_centers(X):
    """Rows of the picture: name, subtitle, centers."""
    plain = kmeans_pipeline().fit(X)["clusters"].cluster_centers_
    rows = [("KMeans", "no privacy", plain)]
    for epsilon in SHOWN:
        model = private_pipeline(epsilon).fit(X)["clusters"]
        rows.append(("DPKMeans", f"ε = {epsilon:g}, δ = 10$^{{-6}}$",
                     centers_like(model.cluster_centers_, plain)))  # fmt: skip
    print(f"Privacy report of the clusters at epsilon = {SHOWN[-1]:g}\n\n{model.privacy_report_}")
    return rows


def main(argv=None):
    arguments = parse_arguments(__doc__, "digits_pipeline.png", argv)
    X, y = load_digits(return_X_y=True)
    # Quick runs use all rows too: half of them would be only 8 standard deviations above the number
    # that epsilon = 0.5 needs.
    folds = KFold(2 if arguments.quick else 5, shuffle=True, random_state=0)
    rows = fitted_centers(X)
    plain = cross_validate(kmeans_pipeline(), X, y, cv=folds, scoring=SCORING)
    reference = {name: plain[f"test_{name}"] for name in SCORING}
    private = run_search(X, y, folds, n_jobs=1 if arguments.quick else 2)
    print_scores(reference, private)
    save(lambda figure: draw(figure, rows, reference, private), arguments.output, (10, 7.2))


if __name__ == "__main__":
    main()
