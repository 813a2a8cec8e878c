"""
DPBySegment: one result for each region, for the price of one
=============================================================

Clusters of persons in eight regions, with 300 to 3,000 persons each. Every person lives in one
region, so all fits together are as private as one of them. Small regions start from
the clusters of all regions.
"""

# %%
# The persons are synthetic: five groups, placed slightly differently in each region.

import matplotlib.pyplot as plt
import numpy as np

from sklearn_dp import DPBySegment, DPKMeans, FriendlyMean

rng = np.random.default_rng(0)  # seeds synthetic persons; never seed private noise
regions = [f"region {number}" for number in range(1, 9)]
sizes = [300, 300, 500, 500, 1000, 1000, 3000, 3000]
where = np.repeat(regions, sizes)
place = np.repeat(np.arange(8), sizes)
common = rng.uniform(-0.8, 0.8, size=(5, 2))
centers = common + 0.06 * rng.normal(size=(8, 5, 2))
X = centers[place, rng.integers(5, size=len(place))] + 0.07 * rng.normal(size=(len(place), 2))

# %%
# One fit covers all regions. The list of regions comes from a register, never from the rows.

model = DPBySegment(DPKMeans(5, bounds=1.5), values=regions, epsilon=1.0).fit(X, by=where)
print("regions:", model.segment_status_.tolist())

figure, axes = plt.subplots(2, 4, figsize=(10, 5.2), layout="constrained", sharex=True, sharey=True)
for axis, (region, fitted) in zip(axes.flat, model.estimators_.items(), strict=True):
    rows = X[where == region]
    axis.scatter(*rows.T, s=3, alpha=min(1.0, 200 / len(rows)), color="0.5")
    axis.plot(*fitted.cluster_centers_.T, "C3*", ms=12)
    axis.set_title(f"{region}, {len(rows)} persons", fontsize=9)
axes[0, 0].set(xlim=(-1.2, 1.2), ylim=(-1.2, 1.2))

# %%
# The mean of each region. The fit shrinks each mean toward the mean of all regions by the part of
# the distance that is probably error, so small regions are estimated more accurately than they
# would be alone.

means = DPBySegment(FriendlyMean(bounds=(-1.5, 1.5)), values=regions, epsilon=1.0).fit(X, by=where)
for region, fitted in means.estimators_.items():
    print(region, "mean", fitted.mean_.round(3), "standard error", fitted.mean_std_error_.round(3))

# %%
# What it all cost:

model.privacy_report_
