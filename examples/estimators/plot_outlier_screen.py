"""
DPOutlierScreen: spend budget to find bounds
============================================

Somebody misplaced decimal points, so some rows are a thousand times too large. Public limits that
contain all rows are far too wide for good clusters. `DPOutlierScreen` spends some budget to find a
ball that contains most rows, and maps it to the ball of radius 1 for the next steps of a pipeline.
"""

# %%
# The rows are synthetic, so they can be shown. Two million is a public limit, but too large to
# be useful.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs
from sklearn.pipeline import make_pipeline

from sklearn_dp import DPKMeans, DPOutlierScreen

X, _ = make_blobs(20_000, centers=[[0, 0], [6, 2], [2, 7]], random_state=0)
X[::100] *= 1000
screen = DPOutlierScreen(epsilon=0.5, bounds=2e6)
clusters = DPKMeans(3, epsilon=0.5, bounds=1.0)
make_pipeline(screen, clusters).fit(X)
behind = screen.inverse_transform(clusters.cluster_centers_)
alone = DPKMeans(3, epsilon=1.0, bounds=2e6).fit(X).cluster_centers_

figure, axes = plt.subplots(1, 2, figsize=(8.5, 4), layout="constrained")
angle = np.linspace(0, 2 * np.pi, 200)
ball = screen.center_ + screen.radius_ * np.stack([np.cos(angle), np.sin(angle)], axis=1)
for axis, title in zip(axes, ("All rows", "Most rows, and the ball"), strict=True):
    axis.scatter(*X[:4000].T, s=4, color="0.75", label="rows")
    axis.plot(*ball.T, color="C0", label="released ball")
    axis.plot(*alone.T, "s", color="C1", ms=8, label="DPKMeans alone")
    axis.plot(*behind.T, "X", color="C2", ms=9, label="DPKMeans after the screen")
    axis.set(title=title, xlabel="first feature")
axes[0].set(ylabel="second feature")
axes[0].ticklabel_format(style="plain")
x, y = screen.center_
reach = 1.6 * screen.radius_
axes[1].set(xlim=(x - reach, x + reach), ylim=(y - reach, y + reach), aspect="equal")
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper left", ncols=4)

# %%
# Without bounds, `DPKMeans` finds a radius by itself. Use the screen for estimators that need
# bounds, or if you want to know which rows are outliers:

print(f"rows in the ball: {np.mean(screen.predict(X) == 1):.1%}, radius {screen.radius_:.1f}")
