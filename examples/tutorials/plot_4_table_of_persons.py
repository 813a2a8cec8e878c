"""
A table of persons: from raw columns to a published table of groups
===================================================================

An office has asked 30,000 persons for their age, income and working hours, for the kind of their
work, their marital status and their region. It wants to publish medians, and a table of groups:
what kinds of persons there are, and how many of each. Ages are in years and incomes in money, most
columns are skewed, some are words, and each person stands for many others. All of it together
shall cost `epsilon` = 3. The persons are made up.
"""

# %%
# 1. The raw table
# ----------------
#
# Six kinds of persons, from students to the retired. The survey asked more persons in small
# regions, so each row has a weight: the number of people it stands for.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

rng = np.random.default_rng(0)  # for the made-up persons; private noise never gets a seed
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
    """A word for each person, by the chances of its kind."""
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
# 2. What is known without the data
# ---------------------------------
#
# Ranges come from the questionnaire, regions from the map, and the largest weight from the design
# of the survey. Which kinds of work people write down is not known: the field is free text. And
# the total is fixed before anybody looks.

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
# The mean of a skewed column says little about anybody, so offices ask for medians. All quantiles
# of a fit have one price. With weights they are about the people that the persons stand for.

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
# Beside the exact ones, which stay in the office:


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
# A kind of work that one person has written down must not be in the table at all. A private list
# has those that stand out of the noise, and tells what share of the rows it hides.

from sklearn_dp import DPOneHotEncoder

lists = DPOneHotEncoder(epsilon=0.5, ledger=ledger).fit(table[["work"]])
print("found:", lists.schema_["work"], "with at least", lists.threshold_, "persons each")
hidden, error = lists.hidden_share_[0], lists.hidden_share_std_error_[0]
print(f"in none of them: {hidden:.1%} of the persons, +- {2 * error:.1%}")

# %%
# 5. Groups
# ---------
#
# Clusters compare persons by distances, and a year is not a unit of money. `PublicEncoder` makes
# all columns comparable: a range counts as much as two different words. Incomes are compared by
# their logarithm, which looks at one person at a time and so costs nothing. Words, and those of
# regions most of all, count less here, by `weights`.

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
print("status:", groups.status_)

# %%
# 6. The published table
# ----------------------
#
# The encoder turns centers back: numbers in their own units, and of each word the share of the
# group that has it. This is post-processing of what was released, and costs nothing. The mean of
# logarithms is the logarithm of a geometric mean, which is near the median of a skewed column.

found = encoder.inverse_transform(groups.cluster_centers_)
published = pd.DataFrame(
    {
        "people": groups.cluster_weights_.round(-3),
        "age": found["age"].round(),
        "income": (10 ** found["log income"]).round(-2),
        "hours": found["hours"].round(),
        **{name: found[name].round(2) for name in found if "_" in name and "region" not in name},
    }
).sort_values("age", ignore_index=True)
print(published.T.to_string(header=False))

# %%
# As a picture: each column is a group, with its mean age, income, hours and number of people in
# millions; each line is the share of a word.

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
# How well do we know them? Every published number has a standard error. Those of the centers cover
# the noise and the chance of which persons were asked, those of the sizes the noise. Beside the
# exact sizes, which stay in the office:

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
# 7. What it has cost
# -------------------
#
# The ledger has three charges, which add up to the total that was fixed at the start. A fourth fit
# is refused before it reads a row.

from sklearn_dp.exceptions import BudgetExceededError

print(ledger)
try:
    DPQuantiles(epsilon=0.1, bounds=(low, high), ledger=ledger).fit(numbers)
except BudgetExceededError as error:
    print("refused:", error)

# %%
# Medians, list and table can now be published, with the guarantee: whoever sees all of it learns
# hardly more about any person than if this person had not been asked. The raw table, the exact
# quantiles and the labels of single persons stay in the office.
#
# Where all columns are numbers, a pipeline does the same with less code:
# ``privatize(make_pipeline(StandardScaler(), KMeans(6)), epsilon=2.0, ledger=ledger)`` charges both
# steps at once.
