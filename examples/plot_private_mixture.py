"""
Anomaly scores and a synthetic table from a private mixture
===========================================================

A Gaussian mixture is a compact description of a table: a few weights, means and covariances. Once
it has been released with differential privacy, it can be published, and everything computed from it
is private too: scores of unusual rows, and synthetic rows that resemble the original ones.

The rows here are synthetic: three kinds of visits to a shop, by time of day and amount. No range is
given for either column.

**What a synthetic table means.** Its rows belong to nobody, and the guarantee of the fit covers all
of them together, however many are drawn. But they contain only what a mixture of Gaussians can
represent: margins, correlations and clusters. Rare groups, exact zeros, ties and upper limits are
lost, and a pattern that the mixture cannot represent is an artifact. Check conclusions on the real
rows, at a separate privacy cost.
"""

import numpy as np
from _common import ACCENT, INK, MUTED, OTHER, legend_above, parse_arguments, print_table, save
from sklearn.metrics import roc_auc_score
from sklearn.mixture import GaussianMixture

from sklearn_dp import DPGaussianMixture

EPSILON = 1.0

# %%
# Three kinds of visits, in hours and dollars.


def visits(n, rng):
    kinds = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    hour = np.array([8.0, 12.5, 18.0])[kinds] + np.array([0.7, 0.4, 1.1])[kinds] * rng.normal(
        size=n
    )
    amount = np.array([4.5, 12.5, 42.0])[kinds] + np.array([0.9, 2.1, 8.0])[kinds] * rng.normal(
        size=n
    )
    return np.column_stack([hour, amount + 3 * (kinds == 2) * (hour - 18)])


# %%
# Anomalies are visits at any hour and of any amount. A detector is judged by its ranking: the area
# under the ROC curve, for mixtures fitted with and without privacy.


def detect(model, X, anomalies):
    truth = np.repeat([0, 1], [len(X), len(anomalies)])
    return roc_auc_score(truth, -model.score_samples(np.vstack([X, anomalies])))


def draw(figure, X, anomalies, model, synthetic):
    figure.set_layout_engine("constrained")
    left, right = figure.subplots(1, 2, sharex=True, sharey=True)
    left.plot(*X.T, ".", ms=2, color=MUTED, alpha=0.4, label="visits")
    left.plot(*anomalies.T, "x", ms=4, color=ACCENT, label="anomalies")
    turn = np.linspace(0, 2 * np.pi, 100)
    for mean, covariance in zip(model.means_, model.covariances_, strict=True):
        ring = np.linalg.cholesky(covariance) @ np.stack([np.cos(turn), np.sin(turn)])
        left.plot(*(mean[:, None] + 3 * ring), color=INK)
    right.plot(*synthetic.T, ".", ms=2, color=OTHER, alpha=0.4, label="synthetic visits")
    for axis, title in (
        (left, f"Real rows, private components, epsilon = {EPSILON:g}"),
        (right, "Rows drawn from the released mixture"),
    ):
        axis.set(title=title, xlabel="hour", xlim=(4, 24), ylim=(-5, 90))
        legend_above(axis, 2, markerscale=2)
    left.set_ylabel("amount")


def main(argv=None):
    options = parse_arguments(__doc__, "private_mixture.png", argv)
    rng = np.random.default_rng(0)
    X = visits(20000 if options.quick else 50000, rng)
    anomalies = rng.uniform([5, 0], [23, 80], size=(200, 2))
    private = DPGaussianMixture(3, epsilon=EPSILON).fit(X)
    plain = GaussianMixture(3, n_init=5, random_state=0).fit(X)
    fresh = visits(5000, rng)
    print_table(
        ("", "area under the curve", "mean log-density"),
        [
            (name, f"{detect(model, fresh, anomalies):.3f}", f"{model.score(fresh):.3f}")
            for name, model in (("DPGaussianMixture", private), ("GaussianMixture", plain))
        ],
    )
    synthetic, _ = private.sample(len(fresh), random_state=0)
    print("\nSynthetic rows, compared with new real ones:")
    print_table(
        ("", "mean hour", "mean amount", "correlation"),
        [
            (
                name,
                f"{t[:, 0].mean():.2f}",
                f"{t[:, 1].mean():.1f}",
                f"{np.corrcoef(t.T)[0, 1]:.3f}",
            )
            for name, t in (("synthetic", synthetic), ("real", fresh))
        ],
    )
    print(f"\n{private.privacy_report_!r}")
    save(
        lambda figure: draw(figure, X[:4000], anomalies, private, synthetic),
        options.output,
        (10, 5),
    )


if __name__ == "__main__":
    main()
