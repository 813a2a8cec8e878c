"""
DPOneHotEncoder: find categories that are not known in advance
==============================================================

Persons describe their jobs in their own words. The list of words is itself private: a job that only
one person has reveals that this person is in the table. A private encoder finds the common ones.
"""

# %%
# The persons are synthetic: some jobs are common, many are rare, and 300 are held by one person
# each.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sklearn_dp import DPOneHotEncoder, PublicEncoder

rng = np.random.default_rng(0)  # seeds synthetic persons; never seed private noise
n = 20_000
common = ["sales", "nurse", "teacher", "driver", "cook", "clerk", "builder", "farmer", "coder"]
known = common + [f"rare job {i}" for i in range(30)]
chance = 1 / np.arange(1, len(known) + 1) ** 1.6
jobs = rng.choice(np.array(known, dtype=object), n, p=chance / chance.sum())
jobs[:300] = [f"job of person {i}" for i in range(300)]
age = rng.normal(42, 12, n).round()
table = pd.DataFrame({"job": jobs, "age": age})

# %%
# A job is released with its noisy count if the count reaches the threshold. The threshold is high
# enough that a job held by one person stays hidden, except with a probability of at most delta / 2.

encoder = DPOneHotEncoder(epsilon=0.3).fit(table[["job"]])
print(f"{len(encoder.categories_[0])} jobs with at least {encoder.threshold_} persons")
print(encoder.summary())

# %%
# The exact counts, which are private, and the released counts.

figure, axis = plt.subplots(figsize=(8, 3.6), layout="constrained")
exact = table["job"].value_counts()[:39]
axis.bar(range(39), exact, color="lightgray", label="exact (private)")
place = [exact.index.get_loc(job) for job in encoder.categories_[0]]
error = 2 * encoder.count_std_error_
axis.errorbar(place, encoder.counts_[0], error, fmt="o", capsize=3, label="released")
axis.axhline(encoder.threshold_, color="C3", ls="--", label="threshold")
axis.set(yscale="log", xlabel="jobs, from the most frequent one", ylabel="persons")
axis.legend(frameon=False)

# %%
# The result can serve as a schema for an encoder of the whole table, alongside public ranges.

mixed = PublicEncoder({"age": (15, 95), **encoder.schema_}).fit(table)
mixed.get_feature_names_out()
