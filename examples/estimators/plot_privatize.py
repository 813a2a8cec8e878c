"""
privatize: make an existing pipeline private
============================================

`privatize` replaces each step of a pipeline with its private counterpart, and splits one budget
among them. `BudgetDisplay` plots where the budget went.
"""

# %%
# Privacy takes one extra line. The pixels of the digits are scaled by a public fact.

import matplotlib.pyplot as plt
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline

from sklearn_dp import privatize
from sklearn_dp.inspection import BudgetDisplay

X = load_digits().data / 16
old = make_pipeline(PCA(8), KMeans(10))
new = privatize(old, epsilon=4.0)
new.fit(X)

figure, axes = plt.subplots(2, 1, figsize=(8, 6), layout="constrained", height_ratios=[1, 2])
for axis, step in zip(axes, new.named_steps.values(), strict=True):
    BudgetDisplay.from_report(step.privacy_report_, ax=axis)
    axis.set_title(type(step).__name__, loc="left")

# %%
# Together, both steps stay within the budget:

print([type(step).__name__ for step in new.named_steps.values()])
new.named_steps["kmeans"].privacy_report_
