"""
FriendlyCovariance: noise in proportion to the data
===================================================

How are height and weight related? The noise of `FriendlyCovariance` has the shape of the data, so
it needs no limits, and units do not matter. The people here are synthetic, so they can be shown.
"""

# %%
# Fits to few and to many people. An ellipse contains 95% of a normal distribution.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.covariance import EmpiricalCovariance

from sklearn_dp import FriendlyCovariance

rng = np.random.default_rng(0)  # seeds synthetic people; never seed private noise
true = np.array([[60.0, 50.0], [50.0, 120.0]])
people = rng.multivariate_normal([172.0, 74.0], true, size=20_000)
angle = np.linspace(0, 2 * np.pi, 200)
circle = np.sqrt(5.99) * np.stack([np.cos(angle), np.sin(angle)])


def outline(model):
    return model.location_[:, None] + np.linalg.cholesky(model.covariance_) @ circle


figure, axes = plt.subplots(1, 2, figsize=(8, 3.8), layout="constrained", sharey=True)
for axis, n in zip(axes, (1_000, 20_000), strict=True):
    rows = people[:n]
    axis.scatter(*rows[:2000].T, s=4, color="0.8")
    axis.plot(*outline(EmpiricalCovariance().fit(rows)), "--", color="0.3", label="without privacy")
    axis.plot(*outline(FriendlyCovariance(epsilon=1.0).fit(rows)), label="epsilon = 1")
    axis.set(title=f"{n:,} people", xlabel="height, cm", xlim=(140, 204), ylim=(30, 118))
axes[0].set_ylabel("weight, kg")
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper right", ncols=2)

# %%
# What was released, and its standard errors:

model = FriendlyCovariance(epsilon=1.0).fit(people)
print(model.summary())
