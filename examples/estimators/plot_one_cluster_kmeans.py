"""
DPOneClusterKMeans: compact clusters among scattered rows
=========================================================

Half of the rows are scattered. A method that partitions all rows assigns them to clusters, which
moves the centers. `DPOneClusterKMeans` looks for one small ball at a time, and ignores the rest.
"""

# %%
# The rows are synthetic, so they can be shown.

import matplotlib.pyplot as plt
import numpy as np

from sklearn_dp import DPKMeans, DPOneClusterKMeans

rng = np.random.default_rng(0)  # seeds synthetic rows; never seed private noise
places = np.array([[-0.5, -0.4], [0.5, -0.1], [-0.1, 0.6]])
dense = np.repeat(places, 1000, axis=0)
dense += rng.normal(scale=0.02, size=dense.shape)
X = np.vstack([dense, rng.uniform(-1, 1, size=(3_000, 2))])
bounds = ([-1.0, -1.0], [1.0, 1.0])
balls = DPOneClusterKMeans(3, n_points=800, epsilon=2.0, bounds=bounds).fit(X)
partition = DPKMeans(3, epsilon=2.0, bounds=bounds).fit(X)

figure, axis = plt.subplots(figsize=(5, 5), layout="constrained")
axis.scatter(*X[::3].T, s=4, color="0.75", label="rows")
axis.plot(*partition.cluster_centers_.T, "s", color="C1", ms=8, label="DPKMeans")
axis.plot(*balls.cluster_centers_.T, "X", color="C0", ms=9, label="DPOneClusterKMeans")
for center, radius in zip(balls.cluster_centers_, balls.radii_, strict=True):
    axis.add_patch(plt.Circle(center, radius, fill=False, color="C0"))
axis.set(aspect="equal", xlabel="first feature", ylabel="second feature")
axis.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2)

# %%
# Distance from each center to the nearest true center:

for name, model in (("balls", balls), ("partition", partition)):
    gaps = np.linalg.norm(model.cluster_centers_[:, None] - places, axis=2).min(axis=1)
    print(f"{name}: {gaps.max():.3f} at most")
