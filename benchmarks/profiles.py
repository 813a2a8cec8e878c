"""Segments with a profile: `profile` compared with k-means on the same balanced columns.

    python benchmarks/profiles.py --data FOLDER [--runs 6] [--epsilon 1.0] [--tables persons ...]

prints, for each table, the cost of the released segments over that of k-means without privacy, what
the status says of the table and of the same table with every column shuffled (no structure is left
between columns), and how often a margin of error misses. ``FOLDER`` has the tables
``*_mixed.csv.gz``; without it, only the made-up table is used.
"""

import argparse
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans

from sklearn_dp import PublicEncoder, profile
from sklearn_dp.segments._profile_answer import Balance

N_SEGMENTS = 5
TABLES = {  # name: file, columns; a list of categories is that of the file, as a code book has it
    "persons": (
        "adult",
        {
            **{"age": (15, 100), "education_num": (1, 16), "hours": (0, 100)},
            **dict.fromkeys(("workclass", "marital", "sex", "race")),
        },
    ),
    "persons, gains": (
        "adult",
        {
            **{"age": (15, 100), "education_num": (1, 16), "hours": (0, 100)},
            **{"capital_gain": (0, 100_000), "capital_loss": (0, 5_000)},
            **dict.fromkeys(("workclass", "marital", "sex", "race")),
        },
    ),
    "loans": (
        "loans",
        {
            **{"annual_income": (0, 500_000), "debt_to_income": (0, 100)},
            **{"total_credit_limit": (0, 2_000_000), "loan_amount": (0, 40_000)},
            "interest_rate": (0, 40),
            **dict.fromkeys(("homeownership", "verified_income", "grade")),
        },
    ),
    "taxis": (
        "taxis",
        {
            **{"passengers": (0, 8), "distance": (0, 50), "fare": (0, 200), "tip": (0, 50)},
            **dict.fromkeys(("color", "payment", "pickup_borough")),
        },
    ),
    "listings": (
        "airbnb",
        {
            **{"price": (0, 1_000), "minimum_nights": (0, 365), "number_of_reviews": (0, 1_000)},
            **{"reviews_per_month": (0, 30), "availability_365": (0, 365), "room_type": None},
        },
    ),
    "health": (
        "framingham",
        {
            **{"age": (30, 80), "cigsPerDay": (0, 80), "totChol": (100, 600), "sysBP": (80, 300)},
            **{"BMI": (10, 60), "glucose": (40, 400)},
            **dict.fromkeys(("male", "prevalentHyp", "diabetes")),
        },
    ),
}


def made_up(n=10_000, seed=0):
    """Persons of five kinds, with skewed incomes and missing values."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(5, n, p=[0.15, 0.3, 0.25, 0.2, 0.1])
    income = rng.lognormal(np.array([8.5, 10.2, 11.0, 9.9, 9.0])[kind], 0.5)
    work = np.array(["school", "full", "full", "retired", "part"], dtype=object)[kind]
    table = pd.DataFrame(
        {
            "age": rng.normal(np.array([21, 33, 48, 71, 40])[kind], 6).round(),
            "income": np.where(rng.random(n) < 0.05, np.nan, income.round(-2)),
            "hours": rng.normal(np.array([10, 40, 44, 2, 20])[kind], 6).clip(0, 80).round(),
            "work": np.where(rng.random(n) < 0.1, None, work),
            "sex": rng.choice(np.array(["female", "male"], dtype=object), n),
        }
    )
    ranges = {"age": (15, 100), "income": (0, 500_000), "hours": (0, 80)}
    lists = {"work": ["school", "full", "part", "retired"], "sex": ["female", "male"]}
    return table, {**ranges, **lists}


def read(folder, name):
    """A table and its schema."""
    if folder is None:
        return made_up()
    file, columns = TABLES[name]
    table = pd.read_csv(folder / f"{file}_mixed.csv.gz")
    schema = {
        column: kind or sorted(table[column].dropna().unique().tolist())
        for column, kind in columns.items()
    }
    return table[list(schema)], schema


def balanced(table, schema):
    """Balanced rows by the means and variances of the table itself, without privacy."""
    encoder = PublicEncoder(schema).fit(table)
    rows = encoder.transform(table)
    exact = SimpleNamespace(mean_=rows.mean(axis=0), var_=rows.var(axis=0))
    return Balance.of(encoder._columns(), exact, {}).rows(rows)


def cost(rows, centers):
    """Mean squared distance to the nearest center."""
    return np.square(rows[:, None] - centers[None]).sum(axis=2).min(axis=1).mean()


def missed(found, table):
    """The share of 95% margins, of means and of shares, that miss those of the rows. Sizes have
    margins of their own; means and errors of empty segments are left out."""
    labels, rows = found.predict(table), found.encoder_.transform(table)
    full = np.flatnonzero([np.any(labels == segment) for segment in range(1, N_SEGMENTS + 1)])
    true = np.array([rows[labels == segment + 1].mean(axis=0) for segment in full])
    return float(np.mean(abs(found.means_[full] - true) > 1.96 * found.means_std_error_[full]))


def compared(table, schema, epsilon, runs):
    """Ratios of costs, statuses, misses and seconds of some runs."""
    rows = balanced(table, schema)
    best = cost(rows, KMeans(N_SEGMENTS, n_init=10, random_state=0).fit(rows).cluster_centers_)
    ratios, told, misses, began = [], [], [], time.perf_counter()
    for seed in range(runs):
        found = profile(table, schema, N_SEGMENTS, epsilon=epsilon, random_state=seed)
        labels = found.predict(table)
        means = [rows[labels == label].mean(axis=0) for label in np.unique(labels)]
        ratios.append(cost(rows, np.array(means)) / best)
        told.append(found)
        misses.append(missed(found, table))
    return np.array(ratios), told, float(np.mean(misses)), (time.perf_counter() - began) / runs


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of the tables")
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--tables", nargs="*", default=list(TABLES))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in options.tables if options.data else ["made up"]:
        table, schema = read(options.data, name)
        rng = np.random.default_rng(0)
        shuffled = pd.DataFrame({each: rng.permutation(table[each].to_numpy()) for each in table})
        for what, rows in ((name, table), (f"{name}, shuffled", shuffled)):
            ratios, told, misses, seconds = compared(rows, schema, options.epsilon, options.runs)
            codes = [each.code for found in told for each in found.messages_]
            trusted = sum(found.trustworthy_ for found in told)
            print(
                f"{what:24s} n={len(rows):6d} cost ratio median {np.median(ratios):.3f} "
                f"max {ratios.max():.3f}; trustworthy {trusted}/{len(told)}, no evidence of "
                f"clusters {codes.count('no_clusters')}, hidden {codes.count('unclear_clusters')}; "
                f"margins missed {100 * misses:.1f}%; {seconds:.1f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
