"""
DPStandardScaler: standardize a table with privacy
==================================================

The columns are ages in years, salaries in dollars and hours per week. k-means compares distances in
the table's units, so salaries alone would determine the clusters. A private scaler makes the
columns comparable.
"""

# %%
# The persons are synthetic: two groups that differ in age and working hours, and skewed salaries.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline

from sklearn_dp import DPKMeans, DPStandardScaler

rng = np.random.default_rng(0)  # seeds synthetic persons; never seed private noise
n = 20_000
group = np.arange(n) % 2
age = np.where(group, 62, 33) + rng.normal(0, 6, n)
salary = rng.lognormal(10.4, 0.6, n)
hours = np.where(group, 20, 40) + rng.normal(0, 3, n)
X = np.column_stack([age, salary, hours])

# %%
# Nothing is assumed about the columns: their locations and spreads are released. Means and standard
# deviations come with standard errors.

scaler = DPStandardScaler(epsilon=0.5)
pipeline = make_pipeline(scaler, DPKMeans(2, epsilon=0.5)).fit(X)
print(scaler.summary())

# %%
# The centers, converted back to years, dollars and hours, compared with those found without a
# scaler.

centers = scaler.inverse_transform(pipeline[-1].cluster_centers_)
plain = DPKMeans(2, epsilon=1.0).fit(X).cluster_centers_
figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained", sharey=True)
for axis, found, title in zip(axes, (centers, plain), ("scaled", "as it is"), strict=True):
    axis.scatter(age[::21], hours[::21], c=group[::21], s=4, alpha=0.4)
    axis.plot(found[:, 0], found[:, 2], "k*", ms=14)
    axis.set(xlabel="age", title=title, xlim=(0, 100), ylim=(0, 60))
axes[0].set_ylabel("hours a week")

# %%
# What the scaler cost:

scaler.privacy_report_
