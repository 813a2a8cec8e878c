"""
See what epsilon costs before you spend anything
================================================

A study will collect 10,000 private rows. How good will k-means with eight clusters be at each
epsilon? Synthetic rows stand in for the private ones, with noise scaled to their number, and no
ledger is charged. One private fit follows, charged to a ledger, with a chart of where its budget
went.

In a terminal::

    python examples/plot_what_epsilon_costs.py [--quick] [--output FILE.png]
"""

import numpy as np
from _common import parse_arguments, print_table, save

from sklearn_dp import DPKMeans, PrivacyBudget, PrivacyLedger
from sklearn_dp.inspection import (
    BudgetDisplay,
    ClusterDisplay,
    PrivacyUtilityDisplay,
    utility_curve,
)

N_UNITS = 10_000


def private_rows(rng):
    """What the study will collect: eight groups on a circle."""
    turns = np.linspace(0, 2 * np.pi, 8, endpoint=False)
    centers = 10 * np.c_[np.cos(turns), np.sin(turns)]
    return centers[np.arange(N_UNITS) % 8] + rng.normal(size=(N_UNITS, 2))


def draw(figure, curve, model, synthetic):
    """The curve, the split of the budget, and the released centers."""
    figure.set_layout_engine("constrained")
    left, right, below, ledger = figure.subplots(2, 2).ravel()
    PrivacyUtilityDisplay.from_curve(curve, ax=left)
    BudgetDisplay.from_report(model.privacy_report_, ax=right)
    ClusterDisplay.from_estimator(model, synthetic, ax=below)
    BudgetDisplay.from_ledger(model.ledger, ax=ledger)


def main(argv=None):
    options = parse_arguments(__doc__, "what_epsilon_costs.png", argv)
    ledger = PrivacyLedger(PrivacyBudget(epsilon=3.0, delta=1e-5))
    estimator = DPKMeans(n_clusters=8, epsilon=1.0, bounds=15.0, ledger=ledger)
    print(estimator.privacy_plan(n_features=2).noise(N_UNITS))
    curve = utility_curve(
        estimator, n_units=N_UNITS, n_features=2, n_repeats=3 if options.quick else 15
    )
    low, median, high = curve.quartiles
    print("\nOn synthetic rows:")
    print_table(
        ("epsilon", "cost / KMeans", "half of the fits", "floor"),
        [
            (f"{e:g}", f"{m:.5f}", f"{a:.5f} to {b:.5f}", f"{f:.5f}")
            for e, a, m, b, f in zip(curve.epsilons, low, median, high, curve.floor, strict=True)
        ],
    )
    print(f"Charged for the curve: {ledger.spent['epsilon'] or 'nothing'}\n")
    rng = np.random.default_rng(0)
    model = estimator.fit(private_rows(rng))
    print(model.privacy_report_)
    # Rows that may be shown: drawn around the released centers, with a spread that is public here.
    synthetic = model.cluster_centers_[rng.integers(8, size=800)] + rng.normal(size=(800, 2))
    save(lambda figure: draw(figure, curve, model, synthetic), options.output, (12.5, 9))


if __name__ == "__main__":
    main()
