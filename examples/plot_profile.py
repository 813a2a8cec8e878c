"""
Segments of persons, ready to publish
=====================================

A table of persons with ages, skewed incomes, hours, work and sex, in which values are missing,
becomes five segments with a profile each. Three things are needed: epsilon, the public schema, and
a ledger.

In a terminal::

    python examples/plot_profile.py [--quick] [--output FILE.png]
"""

import numpy as np
import pandas as pd
from _common import parse_arguments, save

from sklearn_dp import PrivacyBudget, PrivacyLedger, profile

SCHEMA = {
    "age": (15, 100),
    "income": (0, 300_000),
    "hours": (0, 80),
    "work": ["school", "full", "part", "retired"],
    "sex": ["female", "male"],
}


def persons(n, rng):
    """Persons of five kinds; one income in twenty and one kind of work in ten are missing."""
    kind = rng.choice(5, n, p=[0.15, 0.3, 0.25, 0.2, 0.1])
    income = rng.lognormal(np.array([8.5, 10.2, 11.0, 9.9, 9.0])[kind], 0.5)
    work = np.array(["school", "full", "full", "retired", "part"], dtype=object)[kind]
    return pd.DataFrame(
        {
            "age": rng.normal(np.array([21, 33, 48, 71, 40])[kind], 6).round(),
            "income": np.where(rng.random(n) < 0.05, np.nan, income.round(-2)),
            "hours": rng.normal(np.array([10, 40, 44, 2, 20])[kind], 6).clip(0, 80).round(),
            "work": np.where(rng.random(n) < 0.1, None, work),
            "sex": rng.choice(np.array(["female", "male"], dtype=object), n),
        }
    )


def main(argv=None):
    options = parse_arguments(__doc__, "profile.png", argv)
    table = persons(10_000 if options.quick else 40_000, np.random.default_rng(0))
    ledger = PrivacyLedger(PrivacyBudget(epsilon=2.0, delta=1e-5))
    segments = profile(table, SCHEMA, 5, epsilon=1.0, ledger=ledger)
    print("Status:", segments.status_, *segments.messages_)
    print(segments.table.xs("value", axis=1, level=1).round(2).to_string())
    left = ledger.remaining
    print(f"\nLeft in the ledger: epsilon {left['epsilon']:.3g}, delta {left['delta']:.2g}")
    print(f"\n{segments.privacy_report_}")

    def draw(figure):
        figure.set_layout_engine("constrained")
        segments.plot(figure.subplots())

    save(draw, options.output, (8, 5.5))


if __name__ == "__main__":
    main()
