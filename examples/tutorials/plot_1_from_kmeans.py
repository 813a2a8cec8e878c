"""
From KMeans to DPKMeans: handwritten digits in a pipeline
=========================================================

Suppose that you want to publish a pipeline that groups images of handwritten digits. Each image is
somebody's handwriting, so the pipeline has to be private first. This tutorial changes it step by
step, and measures the cost of each step.

You need scikit-learn and Matplotlib. :doc:`Get started </get_started>` explains what `epsilon`
means.
"""

# %%
# The original pipeline
# ------------------------
#
# The data are 1,797 images of 8 x 8 pixels, scaled, then grouped into ten clusters. The centers are
# images, too.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

X, digit = load_digits(return_X_y=True)
old = Pipeline([("scale", StandardScaler()), ("clusters", KMeans(n_clusters=10, n_init=5))])
old.fit(X)

# %%
# Why it cannot be published
# --------------------------
#
# The centers are not the only problem. The scaler has learned the exact mean of each pixel. If one
# person leaves, and the pipeline is published again, the two means reveal that person's image
# exactly:

without_first = StandardScaler().fit(X[1:])
stolen = old["scale"].mean_ * len(X) - without_first.mean_ * (len(X) - 1)

figure, axes = plt.subplots(1, 2, figsize=(5, 2.6), layout="constrained")
for axis, image, title in zip(axes, (X[0], stolen), ("the image", "from two means"), strict=True):
    axis.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
    axis.set(xticks=[], yticks=[], title=title)

# %%
# A scaler that learns nothing
# ----------------------------
#
# A pixel lies between 0 and 16, whoever drew it, so this scaling needs no data. The range, and
# the bounds 0 and 1 of the scaled values, are public facts.

from sklearn_dp import PublicScaler

plain = Pipeline(
    [("scale", PublicScaler(bounds=(0, 16))), ("clusters", KMeans(n_clusters=10, n_init=5))]
)
plain.fit(X)

# %%
# Private clusters
# ----------------
#
# Change one line: the step `clusters` becomes another estimator. A *plan* lists what a fit will
# release and what each release costs. It needs no data.

from sklearn_dp import DPKMeans

private = Pipeline(plain.steps).set_params(
    clusters=DPKMeans(n_clusters=10, epsilon=4.0, bounds=(0, 1))
)
print(private["clusters"].privacy_plan(n_features=64))

# %%
# Now fit. Do not set `random_state`: anyone who knows the seed can subtract the noise.

private.fit(X)
print(private["clusters"].status_, *private["clusters"].messages_)

# %%
# Compare the centers. They come in a different order, so each private center is drawn below the
# `KMeans` center that it resembles most.

from scipy.optimize import linear_sum_assignment
from sklearn.metrics import pairwise_distances

exact, released = plain["clusters"].cluster_centers_, private["clusters"].cluster_centers_
_, order = linear_sum_assignment(pairwise_distances(exact, released))

figure, axes = plt.subplots(2, 10, figsize=(9, 2.4), layout="constrained")
for row, centers in zip(axes, (exact, released[order]), strict=True):
    for axis, center in zip(row, centers, strict=True):
        axis.imshow(center.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
        axis.set(xticks=[], yticks=[])
axes[0, 0].set_ylabel("KMeans")
axes[1, 0].set_ylabel("DPKMeans")

# %%
# What does privacy cost?
# -----------------------
#
# There are two measures: the mean squared distance of an image to its center, and the share of
# images that have the most frequent digit of their cluster. Both use the images without noise,
# because these images are public. With private rows, do not publish such results.


def cost(pipeline):
    return -pipeline.score(X) / len(X)


def accuracy(pipeline):
    clusters = pipeline.predict(X)
    return sum(np.bincount(digit[clusters == c]).max() for c in np.unique(clusters)) / len(X)


for name, pipeline in (("KMeans", plain), ("DPKMeans", private)):
    print(f"{name:10} cost {cost(pipeline):.2f}, accuracy {accuracy(pipeline):.0%}")

# %%
# How do other budgets compare? At a small `epsilon` a fit warns that its centers are mostly noise.
# The warning is based on released numbers only, so it reveals nothing about the images.

import warnings

from sklearn_dp.exceptions import UtilityWarning

epsilons = [0.5, 1.0, 2.0, 4.0, 8.0]
fits = []
for epsilon in epsilons:
    pipeline = Pipeline(private.steps).set_params(
        clusters=DPKMeans(n_clusters=10, epsilon=epsilon, bounds=(0, 1))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UtilityWarning)
        fits.append(pipeline.fit(X))

figure, axis = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
axis.plot(epsilons, [cost(fit) / cost(plain) for fit in fits], "o-", color="C1")
axis.axhline(1, color="0.2", linewidth=1, linestyle="--")
axis.set_xscale("log", base=2)
axis.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
axis.set(xlabel="epsilon", ylabel="cost relative to KMeans")

# %%
# For 64 dimensions, 1,797 rows are few. The noise is proportional to 1 / (epsilon n): with twice as
# many images, the same cost is reached at half the `epsilon`.
#
# These five fits are for demonstration. If the images were private, the five would cost the sum of
# their budgets, 15.5, even if you published only one of them.
#
# What to publish
# ---------------
#
# Publish the fitted pipeline. Its pickle contains the released values and the report, but no image
# and no exact labels.

import pickle

published = pickle.loads(pickle.dumps(private))
print(hasattr(private["clusters"], "labels_"), hasattr(published["clusters"], "labels_"))
published["clusters"].privacy_report_

# %%
# Next, run :doc:`a study with a budget <plot_2_study>`, or read about other :doc:`sharp edges
# </sharp_edges>` like the scaler.
