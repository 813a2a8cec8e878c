"""
A study with a ledger: from plan to publication
===============================================

A hospital has measured 569 tumors, one per patient. It wants to publish the mean of two measures,
two groups of tumors, and how well these groups fit. All of this together may cost at most `epsilon`
= 3. The data come with scikit-learn.
"""

# %%
# 1. Set the total budget
# -----------------------
#
# The costs of everything published about the same people add up. So whoever is responsible for the
# data sets a total before anybody analyzes them. A *ledger* is the file that keeps track of it.

import tempfile
from pathlib import Path

from sklearn_dp import PrivacyBudget, PrivacyLedger

folder = tempfile.TemporaryDirectory()  # in a real study, restrict who can write to this file
path = str(Path(folder.name) / "study.sqlite")
ledger = PrivacyLedger(PrivacyBudget(epsilon=3.0, delta=1e-5), path)

# %%
# 2. Collect public knowledge
# ---------------------------
#
# The two features are the mean radius of the cell nuclei and their texture. Limits must not be
# taken from the patients' data. They come from the instrument: a radius of at most 40 and a texture
# of at most 50. (Without limits, a fit estimates its own, and pays for them.)

bounds = ([0.0, 0.0], [40.0, 50.0])

# %%
# 3. Plan
# -------
#
# There will be three releases: a mean, a clustering and a score. Are 569 patients enough? Before
# anything is spent, compute from synthetic rows how much higher the cost of a private clustering is
# than without privacy.

import matplotlib.pyplot as plt

from sklearn_dp import DPKMeans, FriendlyMean
from sklearn_dp.inspection import PrivacyUtilityDisplay, utility_curve

curve = utility_curve(
    DPKMeans(n_clusters=2, bounds=bounds),
    n_units=569,
    n_features=2,
    epsilons=[0.25, 0.5, 1.0, 2.0],
    n_repeats=3,
)
figure, axis = plt.subplots(figsize=(7, 3.6), layout="constrained")
PrivacyUtilityDisplay.from_curve(curve, ax=axis)

# %%
# From 1 upward, little is lost. So plan 1 for the mean, 1.5 for the clusters and 0.5 for the score.
# Whoever must approve the study can see all of this in advance.

mean = FriendlyMean(epsilon=1.0, bounds=bounds, ledger=path)
clusters = DPKMeans(n_clusters=2, epsilon=1.5, bounds=bounds, ledger=path)
print(clusters.privacy_plan(n_features=2))

# %%
# 4. Fit
# ------
#
# Only now are the rows read. Each fit is charged to the ledger before it reads them. Do not set a
# seed.

from sklearn.datasets import load_breast_cancer

X = load_breast_cancer().data[:, :2]  # mean radius, mean texture

mean.fit(X)
clusters.fit(X)
print("mean", mean.mean_.round(1), "status:", mean.status_, *mean.messages_)
print("centers", clusters.cluster_centers_.round(1).tolist(), "status:", clusters.status_)

# %%
# How well do two groups describe the tumors? `score` adds no noise, so its result must not be
# published. `private_score` does, and is charged.

score = clusters.private_score(X, epsilon=0.5)
print(f"mean squared distance to a center, about {-score / clusters.cluster_weights_.sum():.0f}")

# %%
# 5. The total is spent
# ---------------------
#
# One more fit is refused before it reads the data.

from sklearn_dp.exceptions import BudgetExceededError

try:
    DPKMeans(n_clusters=3, epsilon=0.5, bounds=bounds, ledger=path).fit(X)
except BudgetExceededError as error:
    print(error)

# %%
# Where the budget went:

from sklearn_dp.inspection import BudgetDisplay

figure, axis = plt.subplots(figsize=(7, 2.6), layout="constrained")
BudgetDisplay.from_ledger(ledger, ax=axis)

# %%
# 6. Publish
# ----------
#
# The published picture shows no patient: only the released centers, with error bars for how far the
# noise may have moved them.

from sklearn_dp.inspection import ClusterDisplay

figure, axis = plt.subplots(figsize=(5.5, 4), layout="constrained")
ClusterDisplay.from_estimator(clusters, ax=axis)
axis.set(xlabel="mean radius", ylabel="mean texture")

# %%
# Publish with it what a reader needs to judge the guarantee: the report of each fit, and the
# ledger's total.

print(clusters.privacy_report_)
print({name: round(value, 9) for name, value in ledger.spent.items()})

# %%
# Keep the ledger file. The total also limits future questions about these patients, and only those
# who set it can change it.

folder.cleanup()
