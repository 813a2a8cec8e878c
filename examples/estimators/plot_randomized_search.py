"""
DPRandomizedSearch: parameters drawn at random, one guarantee
=============================================================

In a search, each fit and each score spends some of the budget. `DPRandomizedSearch` covers all of
them with one charge.
"""

# %%
# How many clusters do these rows have? Six candidates are drawn from 2 to 12; they are public. The
# scores and the best fit are released with noise.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from sklearn_dp import DPKMeans
from sklearn_dp.model_selection import DPRandomizedSearch

turn = np.arange(6) * np.pi / 3
places = 5 * np.stack([np.cos(turn), np.sin(turn)], axis=1)
X, _ = make_blobs(50_000, centers=places, cluster_std=0.5, random_state=0)
space = {"n_clusters": range(2, 13)}
search = DPRandomizedSearch(
    DPKMeans(bounds=10.0), space, n_iter=6, epsilon=4.0, selection="all", candidates_state=0
)
search.fit(X)

candidates = np.array([each["n_clusters"] for each in search.cv_results_["params"]])
scores = np.asarray(search.cv_results_["mean_test_score"])
order = np.argsort(candidates)
best = search.best_params_["n_clusters"]

figure, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.8), layout="constrained")
left.plot(candidates[order], scores[order], "o-")
left.axvline(best, color="C1", lw=1, ls="--")
left.text(best, scores.min(), f" {best} clusters", color="C1")
left.set(xlabel="clusters", ylabel="released score", title="Candidates")
right.scatter(*X[::20].T, s=3, color="0.75")
right.plot(*search.best_estimator_.cluster_centers_.T, "X", color="C1", ms=9)
right.set(
    xlabel="first feature", ylabel="second feature", title="Centers of the best", aspect="equal"
)

# %%
# One charge for everything:

search.privacy_report_
