"""
ClusterHierarchy: coarse and fine clusters from one fit
=======================================================

The data are homes in twelve towns of four regions. One private fit finds the towns. The tree, any
cut of it, and clusters that are large enough to be published are then computed from released
numbers, at no charge.
"""

# %%
# The homes are synthetic. Towns have between 150 and 4,000 of them.

import numpy as np

from sklearn_dp import DPKMeans
from sklearn_dp.cluster import ClusterHierarchy
from sklearn_dp.inspection import HierarchyDisplay

rng = np.random.default_rng(3)  # seeds synthetic rows; never seed private noise
regions = np.array([[-0.8, -0.6], [-0.5, 0.7], [0.6, 0.6], [0.7, -0.7]])
towns = (regions[:, None] + 0.15 * rng.normal(size=(4, 3, 2))).reshape(12, 2)
sizes = np.geomspace(150, 4000, 12).astype(int)
X = np.repeat(towns, rng.permutation(sizes), axis=0)
X += 0.015 * rng.normal(size=X.shape)

model = DPKMeans(12, epsilon=1.0, bounds=1.6).fit(X)

# %%
# The tree, with the released sizes of the towns and the intervals of their noise. It is cut into
# the regions.

HierarchyDisplay.from_estimator(model, n_clusters=4)

# %%
# A cut has the centers, the weights and the errors of its clusters, and what it adds to the cost.

tree = ClusterHierarchy.from_estimator(model)
level = tree.cut(4)
print(len(level.weights), "clusters")
for center, error, weight in zip(
    level.centers, level.centers_std_error, level.weights, strict=True
):
    print(f"center {center.round(2)} +- {error.round(4)}, about {weight:,.0f} homes")
print(
    f"sum of squares: {model.inertia_:.0f} of towns, {model.inertia_ + level.loss:.0f} of regions"
)

# %%
# A rule of publication may require 1,000 homes in each cluster. Small towns join their neighbors
# until every remaining cluster has this size, with 95% confidence for all of them at once.

large = tree.merge_small(1000)
print(len(large.weights), "clusters remain")
print("least true size above 1000:", bool(np.bincount(large.predict(X)).min() > 1000))
