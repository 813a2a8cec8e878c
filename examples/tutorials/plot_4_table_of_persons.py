"""
A survey: from raw columns to a published table of groups
=========================================================

A statistical office has surveyed 30,000 persons about their age, income, working hours, kind of
work, marital status and region. It wants to publish medians, and a table of groups: what kinds of
persons there are, and how many of each. Columns have different units, most are skewed, some contain
words, and each person represents many others. All of this together may cost at most `epsilon` = 3.
The persons are synthetic.
"""

# %%
# 1. The raw table
# ----------------
#
# There are six kinds of persons, from students to retirees. Small regions were oversampled, so each
# row has a weight: the number of people that it represents.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

rng = np.random.default_rng(0)  # seeds synthetic persons; never seed private noise
n = 30_000
kinds = pd.DataFrame(
    [
        # share, age, hours, log income, and how likely each kind of work and each status is
        [0.13, 21, 14, 9.0, [85, 12, 1, 0, 2], [94, 4, 2, 0]],
        [0.25, 34, 41, 10.5, [2, 90, 6, 0, 2], [46, 44, 10, 0]],
        [0.25, 47, 43, 11.2, [0, 78, 21, 0, 1], [8, 76, 15, 1]],
        [0.10, 42, 18, 9.7, [2, 80, 12, 0, 6], [8, 84, 7, 1]],
        [0.20, 72, 2, 10.0, [0, 4, 3, 92, 1], [5, 59, 12, 24]],
        [0.07, 45, 3, 8.7, [3, 3, 2, 2, 90], [42, 28, 28, 2]],
    ],
    columns=["share", "age", "hours", "log income", "work", "marital"],
)
person = kinds.iloc[rng.choice(6, n, p=kinds["share"])]


def words(column, values):
    """A word for each person, with the probabilities of their kind."""
    chance = np.array(person[column].tolist()) / 100
    drawn = (rng.random((n, 1)) > np.cumsum(chance, axis=1)).sum(axis=1)
    return np.array(values, dtype=object)[np.minimum(drawn, len(values) - 1)]


table = pd.DataFrame(
    {
        "age": np.clip(rng.normal(person["age"], 6), 15, 95).round(),
        "income": rng.lognormal(person["log income"], 0.5).round(-1),
        "hours": np.clip(rng.normal(person["hours"], 5), 0, 80).round(),
        "work": words("work", ["student", "employed", "self-employed", "retired", "none"]),
        "marital": words("marital", ["single", "married", "divorced", "widowed"]),
        "region": rng.choice(["north", "south", "east", "west"], n, p=[0.4, 0.3, 0.2, 0.1]),
    }
)
table.loc[:4, "work"] = ["pope", "astronaut", "diver", "king", "lion tamer"]
weight = table["region"].map({"north": 260, "south": 200, "east": 120, "west": 60}).to_numpy()
print(table.head(8).to_string())

# %%
# 2. Public knowledge
# -------------------
#
# Ranges come from the questionnaire, regions from the map, and the largest weight from the survey
# design. The kinds of work are not known in advance, because that field is free text. The total
# budget is set before anybody analyzes the data.

from sklearn_dp import PrivacyBudget, PrivacyLedger

ranges = {"age": (15, 95), "income": (0, 300_000), "hours": (0, 80)}
low, high = zip(*ranges.values(), strict=True)
regions = ["north", "south", "east", "west"]
marital = ["single", "married", "divorced", "widowed"]
largest_weight = 300
ledger = PrivacyLedger(PrivacyBudget(epsilon=3.0, delta=1e-5))

# %%
# 3. Medians and quartiles
# ------------------------
#
# The mean of a skewed column is far from a typical person, so offices publish medians. One
# price covers all quantiles of a fit. With weights, quantiles describe the population that the
# persons represent.

from sklearn_dp import DPQuantiles

numbers = table[list(ranges)]
quantiles = DPQuantiles(
    [0.1, 0.25, 0.5, 0.75, 0.9],
    epsilon=0.5,
    bounds=(low, high),
    ledger=ledger,
    max_weight=largest_weight,
).fit(numbers, sample_weight=weight)
print("people:", f"{quantiles.size_:,.0f}", "status:", quantiles.status_)

# %%
# For comparison, the exact quantiles, which stay in the office:


def exact(values, level):
    order = np.argsort(values)
    return values[order][np.searchsorted(np.cumsum(weight[order]), level * weight.sum())]


figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained")
for column, (axis, name) in enumerate(zip(axes, ranges, strict=True)):
    truth = [exact(table[name].to_numpy(), level) for level in quantiles.quantiles]
    axis.plot(quantiles.quantiles, truth, "o", color="lightgray", ms=11, label="exact (private)")
    error = 2 * quantiles.quantiles_std_error_[:, column]
    released = quantiles.quantiles_[:, column]
    axis.errorbar(quantiles.quantiles, released, error, fmt=".", capsize=3, label="released")
    axis.set(title=name, xlabel="level", ylim=(0, None))
axes[0].legend(frameon=False)

# %%
# 4. Lists of categories
# ----------------------
#
# A kind of work that only one person named must not appear in the published table. A private list
# contains the categories that stand out from the noise, and the share of the rows that it leaves
# out.

from sklearn_dp import DPOneHotEncoder

lists = DPOneHotEncoder(epsilon=0.5, ledger=ledger).fit(table[["work"]])
print("found:", lists.schema_["work"], "with at least", lists.threshold_, "persons each")
hidden, error = lists.hidden_share_[0], lists.hidden_share_std_error_[0]
print(f"in none of them: {hidden:.1%} of the persons, +- {2 * error:.1%}")

# %%
# 5. Groups
# ---------
#
# Clustering compares persons by distance, and a year is not comparable to a dollar. `PublicEncoder`
# makes all columns comparable: the range of a numeric column is as long as the distance of two
# different words. Incomes are compared on a log scale, a transformation that uses one row at a time
# and so costs nothing. The parameter `weights` reduces the influence of words, most of all of
# regions.

from sklearn_dp import DPKMeans, PublicEncoder

encoder = PublicEncoder(
    {
        "age": ranges["age"],
        "log income": (3.0, 5.5),
        "hours": ranges["hours"],
        **lists.schema_,
        "marital": marital,
        "region": regions,
    },
    weights={"work": 0.5, "marital": 0.4, "region": 0.1},
)
logs = np.log10(np.maximum(table["income"], 1.0)).rename("log income")
rows = encoder.fit_transform(table.join(logs))
groups = DPKMeans(
    6, epsilon=2.0, bounds=encoder.output_bounds, ledger=ledger, max_weight=largest_weight
).fit(rows, sample_weight=weight)
print("status:", groups.status_, *groups.messages_)

# %%
# 6. The published table
# ----------------------
#
# The encoder converts the centers back: numeric columns to their own units, and each word to its
# share of the group. This is post-processing of released values, so it costs nothing. The mean on
# the log scale becomes a geometric mean, which is close to the median of a skewed column.

found = encoder.inverse_transform(groups.cluster_centers_)
published = pd.DataFrame(
    {
        "people": groups.cluster_weights_.round(-3),
        "age": found["age"].round(),
        "income": (10 ** found["log income"]).round(-2),
        "hours": found["hours"].round(),
        **{
            name: found[name].round(2)
            for name in found
            if "_" in name and not name.endswith(("_missing", "_unlisted")) and "region" not in name
        },
    }
).sort_values("age", ignore_index=True)
print(published.T.to_string(header=False))

# %%
# As a picture: each column is a group, with its mean age, income, hours and number of people in
# millions. Each row shows the share of one category.

shares = published.loc[:, [name for name in published if "_" in name]].T
figure, axis = plt.subplots(figsize=(9, 5), layout="constrained")
image = axis.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
heads = [
    f"{row.age:.0f} years\n{row.income:,.0f}\n{row.hours:.0f} h\n{row.people / 1e6:.2f} m"
    for row in published.itertuples()
]
axis.set_xticks(range(len(heads)), heads)
axis.set_yticks(range(len(shares)), [name.replace("_", ": ") for name in shares.index])
for (line, group), share in np.ndenumerate(shares.to_numpy()):
    axis.text(group, line, f"{share:.0%}", ha="center", va="center",
              color="white" if share > 0.5 else "black")  # fmt: skip
axis.xaxis.tick_top()
figure.colorbar(image, label="share of the group")

# %%
# How accurate are these numbers? Each has a standard error. For centers it covers both privacy
# noise and sampling variability, for sizes the noise only. For comparison, the exact sizes, which
# stay in the office:

years = groups.cluster_centers_std_error_[:, 0] * (ranges["age"][1] - ranges["age"][0])
print("mean ages are known to", years.max().round(2), "years")
order = found["age"].argsort().to_numpy()
truth = np.bincount(groups.predict(rows), weights=weight, minlength=6)[order]
figure, axis = plt.subplots(figsize=(7, 3), layout="constrained")
axis.barh(range(6), truth, color="lightgray", label="exact (private)")
sizes, error = groups.cluster_weights_[order], groups.cluster_weights_std_error_[order]
axis.errorbar(sizes, range(6), xerr=2 * error, fmt="o", capsize=4, label="released")
axis.set(xlabel="people", yticks=range(6), yticklabels=[head.split("\n")[0] for head in heads])
axis.legend(frameon=False)

# %%
# 7. What it cost
# ---------------
#
# The ledger holds three charges, which add up to the total set at the start. A fourth fit is
# refused before it reads a row.

from sklearn_dp.exceptions import BudgetExceededError

print(ledger)
try:
    DPQuantiles(epsilon=0.1, bounds=(low, high), ledger=ledger).fit(numbers)
except BudgetExceededError as error:
    print("refused:", error)

# %%
# The medians, list and table can now be published with the guarantee: together they reveal little
# more about any person than if this person had not been surveyed. The raw table, the exact
# quantiles and the labels of individual persons stay in the office.
#
# If all columns are numeric, a pipeline does the same with less code:
# ``privatize(make_pipeline(StandardScaler(), KMeans(6)), epsilon=2.0, ledger=ledger)`` charges both
# steps at once.
