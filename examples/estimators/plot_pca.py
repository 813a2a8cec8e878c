"""
DPPCA: principal components of handwritten digits
=================================================

The data are 1,797 images of 64 pixels. `DPPCA` releases the directions of largest variance. With so
few rows it needs a larger budget; the standard errors show which components are reliable.
"""

# %%
# Left: the digits projected onto the first two private components. Right: the variance that each
# component explains, plus or minus two standard errors.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from sklearn_dp import DPPCA

X, digit = load_digits(return_X_y=True)
X = X / 16  # a public fact: a pixel lies between 0 and 16
private = DPPCA(n_components=8, epsilon=4.0, bounds=([0.0] * 64, [1.0] * 64)).fit(X)
plain = PCA(n_components=8).fit(X)

figure, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.8), layout="constrained")
points = private.transform(X)
for each in (0, 1, 4):
    left.scatter(*points[digit == each, :2].T, s=6, label=f"digit {each}")
left.set(xlabel="first direction", ylabel="second direction")
left.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, markerscale=2, borderaxespad=0.2)

place = np.arange(1, 9)
right.plot(place, plain.explained_variance_, "s", color="0.5", mfc="none", label="PCA")
error = 2 * private.explained_variance_std_error_
right.errorbar(
    place, private.explained_variance_, error, fmt="o", capsize=3, label="DPPCA, epsilon = 4"
)
right.set(xlabel="direction", ylabel="variance explained", ylim=(0, None))
right.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.2)

# %%
# What was released:

private.privacy_report_
