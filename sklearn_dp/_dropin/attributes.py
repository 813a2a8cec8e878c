"""Attributes of scikit-learn's classes that the private estimators cannot have, and why.

One table, by our class. `hasattr` is False for all of them; who reads one is told what to use.
"""

__all__ = ["ABSENT", "reason"]

_NO_INERTIA = "the cost is not released by the fit; `private_score` releases it, at its own cost"
_NO_LIKELIHOOD = (
    "the likelihood of the training rows is not released; `score` computes it for given rows"
)
_SIZE = "the number of rows is private; `size_` is a noisy release of it"
_ALL_ROWS = "each fit is charged for all of its rows; fit all rows at once"

ABSENT: dict[str, dict[str, str]] = {
    "DPOneClusterKMeans": {
        "inertia_": _NO_INERTIA,
        "n_iter_": "clusters are found one after the other; `privacy_report_` lists the releases",
    },
    "FederatedDPKMeans": {
        "inertia_": _NO_INERTIA,
        "n_iter_": "`n_rounds_` counts its rounds",
    },
    "DPGaussianMixture": {
        "lower_bound_": _NO_LIKELIHOOD,
        "lower_bounds_": _NO_LIKELIHOOD,
    },
    "DPPCA": {"n_samples_": _SIZE},
    "DPStandardScaler": {"n_samples_seen_": _SIZE, "partial_fit": _ALL_ROWS},
    "FriendlyMean": {
        "scale_": "scales are not released with the mean; `DPStandardScaler` releases them",
        "var_": "variances are not released with the mean; `DPStandardScaler` releases them",
        "n_samples_seen_": _SIZE,
        "inverse_transform": "add `mean_` to the rows",
    },
}
"""Of our class: each attribute or method that the replaced class has, and why it is not there."""


def reason(cls: type, name: str) -> str | None:
    """Why a class, or one that derives from it, has no such attribute; None if it is not told."""
    for each in cls.__mro__:
        if name in ABSENT.get(each.__name__, {}):
            return ABSENT[each.__name__][name]
    return None
