"""
A hyperparameter search with one guarantee: number and shape of components
==========================================================================

The search tries six mixtures: one to three components, with full or diagonal covariances. All fits,
all scores, the choice and the final fit are (1, 1e-6)-differentially private together, for one
charge to the ledger. `GridSearchCV` would charge each fit separately, and compare scores without
noise.

In a terminal::

    python examples/plot_private_search.py [--quick] [--output FILE.png]
"""

import warnings

import numpy as np
from _common import (
    ACCENT,
    INK,
    MUTED,
    OTHER,
    legend_above,
    parse_arguments,
    print_table,
    save,
    timed,
)
from matplotlib.patches import Ellipse

from sklearn_dp import DPGaussianMixture, PrivacyBudget, PrivacyLedger
from sklearn_dp.exceptions import UtilityWarning
from sklearn_dp.inspection import BudgetDisplay
from sklearn_dp.model_selection import DPGridSearch

GRID = {"n_components": [1, 2, 3], "covariance_type": ["full", "diag"]}


def visits(n, rng):
    """Three elongated groups in the plane, with different orientations."""
    centers = np.array([[-6.0, 0.0], [5.0, 5.0], [4.0, -6.0]])
    turns, kinds = np.array([0.8, -0.7, 0.3]), rng.integers(3, size=n)
    along, across = rng.normal(scale=2.0, size=n), rng.normal(scale=0.5, size=n)
    cos, sin = np.cos(turns[kinds]), np.sin(turns[kinds])
    return centers[kinds] + np.c_[cos * along - sin * across, sin * along + cos * across]


def draw_mixture(axis, X, model):
    """Some rows (synthetic, so they may be shown) and the released components."""
    axis.plot(*X[:3000].T, ".", color=MUTED, ms=1.5, alpha=0.4)
    full = model.covariance_type == "full"
    for mean, covariance in zip(model.means_, model.covariances_, strict=True):
        values, vectors = np.linalg.eigh(covariance if full else np.diag(covariance))
        angle = np.degrees(np.arctan2(*vectors[::-1, 1]))
        wide, high = 4 * np.sqrt(values[::-1])  # two standard deviations to each side
        axis.add_patch(Ellipse(mean, wide, high, angle=angle, fill=False, ec=ACCENT, lw=2))
    axis.set_title(f"Chosen: {model.n_components} components, {model.covariance_type}")
    axis.set_aspect("equal")


def draw_scores(axis, found):
    """The released scores, with two standard deviations of their noise."""
    shapes = found["param_covariance_type"]
    for shape, color in (("full", ACCENT), ("diag", OTHER)):
        of = np.flatnonzero(shapes == shape)
        numbers = [int(found["param_n_components"][i]) for i in of]
        axis.errorbar(
            numbers, found["mean_test_score"][of], 2 * found["score_noise_"][of],
            color=color, marker="o", capsize=4, label=f"{shape} covariances",
        )  # fmt: skip
    axis.set(xticks=GRID["n_components"], xlabel="components", title="Released scores")
    axis.set_ylabel("mean log-density over a uniform law", color=INK)
    legend_above(axis, 2)


def main(argv=None):
    options = parse_arguments(__doc__, "private_search.png", argv)
    rng = np.random.default_rng(0)
    X = visits(10_000 if options.quick else 50_000, rng)
    ledger = PrivacyLedger(PrivacyBudget(epsilon=2.0, delta=1e-5))
    search = DPGridSearch(DPGaussianMixture(bounds=16.0), GRID, epsilon=1.0, ledger=ledger)
    print("Before any data exist:\n")
    print(search.privacy_plan(n_features=2))
    with warnings.catch_warnings():
        # The best two scores may differ by less than their noise, and a candidate may find one
        # component too few.
        warnings.simplefilter("ignore", UtilityWarning)
        _, seconds = timed(search.fit, X)
    found = search.cv_results_
    print(f"\nSix candidates and a final fit,  {seconds.cpu:.1f} CPU seconds:")
    print_table(
        ("components", "covariances", "released score", "rank"),
        [
            (str(one["n_components"]), one["covariance_type"], f"{score:.3f}", str(rank))
            for one, score, rank in zip(
                found["params"], found["mean_test_score"], found["rank_test_score"], strict=True
            )
        ],
    )
    print(f"Noise of a score: {search.score_noise_:.4f}. Chosen: {search.best_params_}\n")
    print(search.privacy_report_)
    print(f"\nCharges in the ledger: {len(ledger.entries)}")

    def draw(figure):
        figure.set_layout_engine("constrained")
        left, middle, right = figure.subplots(1, 3)
        draw_mixture(left, X, search.best_estimator_)
        draw_scores(middle, found)
        BudgetDisplay.from_report(search.privacy_report_, ax=right)

    save(draw, options.output, (14, 5))


if __name__ == "__main__":
    main()
