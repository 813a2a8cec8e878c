"""
DPQuantiles and DPRobustScaler: medians, and scaling by quartiles
=================================================================

Medians and quartiles of a table of persons (years, dollars and hours), with nothing known about the
columns but a box. The same quantiles scale the columns for k-means.
"""

# %%
# The persons are synthetic: two groups that differ in age and working hours, and salaries in the
# tens of thousands that have little to do with the groups.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline

from sklearn_dp import DPKMeans, DPQuantiles, DPRobustScaler

rng = np.random.default_rng(0)  # seeds synthetic persons; never seed private noise
n = 12_000
group = np.arange(n) % 2
age = np.where(group, 62, 33) + rng.normal(0, 6, n)
salary = rng.lognormal(10.4, 0.6, n)
hours = np.where(group, 20, 40) + rng.normal(0, 3, n).round()
X = np.column_stack([age, salary, hours])
box = ([15, 0, 0], [100, 1_000_000, 100])

# %%
# Nine deciles cost as much as one median. The bars are 95% intervals, which cover both privacy
# noise and sampling variability.

levels = np.linspace(0.1, 0.9, 9)
model = DPQuantiles(levels, epsilon=0.5, bounds=box).fit(X)
low, high = model.confidence_interval()
figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
axes[0].plot(levels, np.quantile(salary, levels), color="0.6", label="exact")
error = [model.quantiles_[:, 1] - low[:, 1], high[:, 1] - model.quantiles_[:, 1]]
axes[0].errorbar(levels, model.quantiles_[:, 1], error, fmt="o", ms=4, label="private")
axes[0].set(xlabel="share of persons below", ylabel="salary")
axes[0].legend()
print("columns:", model.column_status_.tolist())

# %%
# Without a scaler, salaries would dominate the clusters because their numbers are largest.

scaler = DPRobustScaler(epsilon=0.3, bounds=box)
pipeline = make_pipeline(scaler, DPKMeans(2, epsilon=0.7)).fit(X)
centers = scaler.inverse_transform(pipeline[-1].cluster_centers_)
axes[1].scatter(age[::11], hours[::11], c=group[::11], s=4, alpha=0.4)
axes[1].plot(centers[:, 0], centers[:, 2], "k*", ms=14, label="private centers")
axes[1].set(xlabel="age", ylabel="hours a week")
axes[1].legend()

# %%
# What the medians and quartiles cost:

scaler.privacy_report_
