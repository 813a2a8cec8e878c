"""
SampleAndAggregate: make an ordinary regression private
=======================================================

This package has no private ridge regression. `SampleAndAggregate` makes one: it fits the regression
to many random blocks of rows, and releases a point on which most of the fits agree.
"""

# %%
# How the price of a house depends on five features; the houses are synthetic. More rows make more
# blocks, and more accurate private coefficients.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import Ridge

from sklearn_dp import SampleAndAggregate

rng = np.random.default_rng(0)  # seeds synthetic houses; never seed private noise
true = np.array([2.0, -1.0, 0.5, 0.0, 1.5])
facts = ["rooms", "age", "garden", "color", "view"]
X = rng.normal(size=(40_000, 5))
price = X @ true + rng.normal(scale=0.5, size=len(X))

figure, axis = plt.subplots(figsize=(7, 3.6), layout="constrained")
axis.hlines(true, np.arange(5) - 0.35, np.arange(5) + 0.35, color="0.3", label="true")
for shift, marker, n in ((-0.15, "s", 10_000), (0.15, "o", 40_000)):
    private = SampleAndAggregate(
        Ridge(), output=("coef_", "intercept_"), epsilon=1.0, output_bounds=10.0
    )
    private.fit(X[:n], price[:n])
    coefficients = private.estimator_.coef_
    axis.plot(np.arange(5) + shift, coefficients, marker, label=f"{n:,} houses")
    print(f"{n:,} houses: largest error {np.abs(coefficients - true).max():.3f}")
axis.axhline(0, color="0.85", lw=0.8, zorder=0)
axis.set_xticks(range(5), facts)
axis.set(ylabel="coefficient")
axis.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2)

# %%
# What was released:

private.privacy_report_
