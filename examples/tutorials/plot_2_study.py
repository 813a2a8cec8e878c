"""
A study with a ledger: from plan to publication
===============================================

A hospital has measured 569 tumors, one for each patient. It wants to publish the mean of two
measures, two groups of tumors, and how well these fit. All of it together shall cost
`epsilon` = 3 and not more. The data come with scikit-learn.
"""

# %%
# 1. Write the total down
# -----------------------
#
# Everything that is published about the same people adds up. So those who answer for the data fix
# a total, before anybody looks. A *ledger* is the file that keeps it.

import tempfile
from pathlib import Path

from sklearn_dp import PrivacyBudget, PrivacyLedger

folder = tempfile.TemporaryDirectory()  # a real study keeps this file where only few can write
path = str(Path(folder.name) / "study.sqlite")
ledger = PrivacyLedger(PrivacyBudget(epsilon=3.0, delta=1e-5), path)

# %%
# 2. Collect what is known without the data
# -----------------------------------------
#
# Two features: the mean radius of the nuclei of cells, and their texture. Nobody may read the
# limits off the patients. They come from the instrument: a radius of at most 40, a texture of at
# most 50. (Without any limits a fit finds its own, and pays for them.)

bounds = ([0.0, 0.0], [40.0, 50.0])

# %%
# 3. Plan
# -------
#
# Three releases: a mean, a clustering, a score. Will 569 patients be enough? A curve tells, from
# made-up rows, before anything is spent. It shows how much larger the cost of a private clustering
# is than without privacy.

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
# From 1 on, little is lost. So: 1 for the mean, 1.5 for the clusters, 0.5 for the score.
# All of this can be shown to whoever has to agree.

mean = FriendlyMean(epsilon=1.0, bounds=bounds, ledger=path)
clusters = DPKMeans(n_clusters=2, epsilon=1.5, bounds=bounds, ledger=path)
print(clusters.privacy_plan(n_features=2))

# %%
# 4. Fit
# ------
#
# Only now are the rows read. Each fit is charged to the ledger before it sees them. No seed.

from sklearn.datasets import load_breast_cancer

X = load_breast_cancer().data[:, :2]  # mean radius, mean texture

mean.fit(X)
clusters.fit(X)
print("mean", mean.mean_.round(1), "status:", mean.status_)
print("centers", clusters.cluster_centers_.round(1).tolist(), "status:", clusters.status_)

# %%
# How well do two groups describe the tumors? `score` would answer without noise, so it is not for
# publication. `private_score` pays.

score = clusters.private_score(X, epsilon=0.5)
print(f"mean squared distance to a center, about {-score / clusters.cluster_weights_.sum():.0f}")

# %%
# 5. The total is spent
# ---------------------
#
# One more look is refused before the data are touched.

from sklearn_dp.exceptions import BudgetExceededError

try:
    DPKMeans(n_clusters=3, epsilon=0.5, bounds=bounds, ledger=path).fit(X)
except BudgetExceededError as error:
    print(error)

# %%
# Where it went:

from sklearn_dp.inspection import BudgetDisplay

figure, axis = plt.subplots(figsize=(7, 2.6), layout="constrained")
BudgetDisplay.from_ledger(ledger, ax=axis)

# %%
# 6. Publish
# ----------
#
# The picture of a publication has no patient in it: it shows the released centers, and bars that
# tell how far off the noise may have put them.

from sklearn_dp.inspection import ClusterDisplay

figure, axis = plt.subplots(figsize=(5.5, 4), layout="constrained")
ClusterDisplay.from_estimator(clusters, ax=axis)
axis.set(xlabel="mean radius", ylabel="mean texture")

# %%
# With it goes what a reader needs to judge the promise: the report of each fit, and the total of
# the ledger.

print(clusters.privacy_report_)
print({name: round(value, 9) for name, value in ledger.spent.items()})

# %%
# The file stays, and so does the promise: whoever wants to ask these patients something new has to
# talk to those who fixed the total.

folder.cleanup()
