"""One registry of settings that lead the public estimators down each of their ways.

The common tests take their cases from here, so that each check runs once for each setting. An
estimator that is not in the table is tested all the same, with `DEFAULT`: estimators are found, not
listed. `USES` says what a setting is for.
"""

from dataclasses import dataclass, field

from estimators import all_estimators

from sklearn_dp import DPKMeans, FriendlyMean
from sklearn_dp.federated import FederatedOptions
from sklearn_dp.mixture import KTupleOptions, PartitionOptions

__all__ = ["ESTIMATORS", "Configuration", "configurations"]

ESTIMATORS = dict(all_estimators())
GENEROUS = {"epsilon": 1000.0}
USES = {
    "sklearn": "scikit-learn's checks",
    "privacy": "the checks of sklearn_dp.audit: all of them for the first setting of an estimator",
    "privacy, slow": "the same in `make audit`: minutes each",
    "neighbors": "replay audits of a thousand pairs of neighbors",
    "mutants": "seeded bugs that the checks have to catch",
    "more mutants": "those that no setting of these reaches",
    "releases": "quick replays that together make every release that any option can make",
}


@dataclass(frozen=True)
class Configuration:
    """One estimator with its options, and the tests that take them."""

    name: str
    options: dict = field(default_factory=dict)
    uses: tuple = ()

    def __post_init__(self):
        unknown = set(self.uses) - set(USES)
        if unknown:
            raise ValueError(f"{self}: no such use: {unknown}")

    @property
    def estimator(self):
        return ESTIMATORS[self.name](**self.options)

    def __str__(self):
        return f"{self.name}({', '.join(f'{k}={v!r}' for k, v in self.options.items())})"


BOTH = ("sklearn", "privacy")
PATH = ("neighbors",)
MADE = ("releases",)
DEFAULT = [({}, (*BOTH, *PATH)), (GENEROUS, ("privacy", *PATH, "mutants", *MADE))]
COMMON = [({}, BOTH), (GENEROUS, ("privacy",))]
TUPLES = {"n_clusters": 3, "n_tuples": 4, "epsilon": 1000.0}
EIGHT_POINTS = {"epsilon": 20.0, "n_points": 8}
BLOCKS = {"n_blocks": 6, "epsilon": 50.0}
TWO_TUPLES = {"method": "k_tuples", "options": KTupleOptions(2)}
MANY_TUPLES = {"n_clusters": 2, "n_tuples": 62, "epsilon": 1000.0}
# A ball of nearly all rows: one row more moves whatever is released of it.
LARGE_BALL = {"n_points": 0.9, "epsilon": 1000.0}
CENTERS = [
    {"center_method": method, "n_init": n_init}
    for n_init in (1, 2)
    for method in ("grid", "pca", "paper")
]
RADII = ("exponential", "binary_search", "above_threshold", "rec_concave")
# Every way to a center and every way to a radius.
BALLS = [
    {**LARGE_BALL, **center, "radius_method": RADII[number % 4]}
    for number, center in enumerate(CENTERS)
]
START = [[-1.0, 0.5], [1.0, 2.0]]  # centers to start from, of two features
SEGMENTS = {"values": (0.0, 1.0), "by": 0}
UNEQUAL = ([-4.0, -90.0], [5.0, 80.0])  # a box of two columns of different units
LISTED = {"vocabulary": ("x0", "x1", "x2")}  # names of columns, of texts that are not there
LAPLACE = {"options": FederatedOptions("laplace")}
CLIPPED = {"options": FederatedOptions("laplace", {"client presence": 0.5})}
PUBLISHED_BALLS = {"method": "partition", "options": PartitionOptions("points")}

TABLE = {
    "DPKMeans": [
        *COMMON,
        ({"n_clusters": 8, **GENEROUS}, MADE),
        ({"n_clusters": (1, 5), "criterion": "silhouette", **GENEROUS}, MADE),
        ({"n_clusters": 3}, PATH),
        ({"n_clusters": 4, "epsilon": 100.0, "bounds": 8.0}, PATH),
        ({"n_clusters": 2, "rho": 3.0, "bounds": (-4.0, 5.0)}, PATH),
        ({"n_clusters": 2, "rho": 3.0, "bounds": UNEQUAL}, MADE),
        ({"n_clusters": 1, "rho": 3.0}, MADE),
        ({"n_clusters": 1, "rho": 3.0, "bounds": (-4.0, 5.0)}, MADE),
        ({"n_clusters": 2, "init": START, **GENEROUS}, MADE),
        ({"n_clusters": 3, "metric": "cosine", **GENEROUS}, (*MADE, *PATH)),
        ({"n_clusters": 3, "metric": "cosine"}, ("privacy", *PATH)),
        ({"n_clusters": "auto"}, ("privacy",)),
        ({"n_clusters": (1, 5), "epsilon": 100.0}, PATH),
        ({"n_clusters": (2, 5), "criterion": "bic", "epsilon": 100.0, "bounds": 8.0}, PATH),
        ({"n_clusters": 3, "epsilon": 100.0}, ("mutants", *PATH)),
        ({"n_clusters": 2, "delta": 0.0, "bounds": UNEQUAL}, PATH),
        ({"n_clusters": 2, "delta": 0.0, "bounds": 8.0, **GENEROUS}, (*MADE, *PATH)),
    ],
    "DPBySegment": [
        ({}, (*BOTH, *PATH)),
        (GENEROUS, ("privacy", *PATH, *MADE)),
        ({"rho": 8.0}, ("mutants", *MADE)),
        # A center of all rows in a box is refined column by column.
        ({"estimator": DPKMeans(1, bounds=(-9.0, 8.0)), "rho": 8.0}, ("more mutants",)),
        ({"estimator": FriendlyMean(diameter_range=(0.1, 100.0)), "epsilon": 30.0}, MADE),
        ({"estimator": FriendlyMean(diameter=10.0), "rho": 30.0}, MADE),
        ({"estimator": DPKMeans(2, bounds=8.0), **SEGMENTS, **GENEROUS}, MADE),
    ],
    "DPDBSCAN": [
        ({}, (*BOTH, *PATH)),
        ({**GENEROUS, "bounds": 8.0}, ("privacy", *PATH, "mutants")),
        ({**GENEROUS, "bounds": 8.0, "eps": 100.0}, MADE),
        ({"rho": 3.0, "bounds": UNEQUAL, "eps": 2.0}, PATH),
        ({**GENEROUS, "eps": 100.0}, MADE),
    ],
    "DPCoreset": [
        ({}, (*BOTH, *PATH)),
        (GENEROUS, ("privacy", *PATH, *MADE)),
        ({"n_clusters": 3, "epsilon": 100.0, "bounds": 8.0}, PATH),
        ({"n_clusters": 2, "rho": 3.0, "bounds": (-4.0, 5.0)}, (*PATH, *MADE)),
        ({"n_clusters": 3, "epsilon": 100.0}, ("mutants",)),
    ],
    "DPKTupleKMeans": [
        *COMMON,
        ({"n_clusters": 3}, PATH),
        (TUPLES, PATH),
        ({**TUPLES, "bounds": 6.0, "delta": 1e-2}, PATH),
        ({**TUPLES, "n_tuples": 2, "fallback": "public"}, PATH),
        ({**TUPLES, "n_clusters": (1, 4)}, PATH),
        ({"n_clusters": 2, "n_tuples": 20, "epsilon": 1000.0, "bounds": 30.0}, ("mutants",)),
        ({"n_tuples": 200, **GENEROUS}, MADE),
        ({"n_clusters": 1, "rho": 3.0}, MADE),
        ({"n_clusters": (1, 4), "epsilon": 0.1}, MADE),
        ({"n_clusters": (1, 4), "n_tuples": 4, "criterion": "silhouette", **GENEROUS}, MADE),
        ({"n_clusters": 5, "n_tuples": 4, "sampling": "with_replacement", "epsilon": 1e5}, MADE),
        ({**MANY_TUPLES, "aggregator": "noisy_centers"}, MADE),
        ({**MANY_TUPLES, "aggregator": "k_averages"}, MADE),
    ],
    "DPOneCluster": [
        ({}, (*BOTH, *PATH)),
        (GENEROUS, ("privacy",)),
        ({"epsilon": 100.0, "n_points": 3, "bounds": 9.0}, PATH),
        ({"epsilon": 1000.0, "n_points": 5, "sample_size": 8}, PATH),
        ({"epsilon": 1.0, "n_points": 5, "sample_size": 8}, PATH),
        ({"epsilon": 100.0, "center_method": "pca", "n_points": 3}, PATH),
        ({"epsilon": 100.0, "n_points": 0.6}, PATH),
        ({"epsilon": 300.0, "n_init": 2, "n_points": 3}, PATH),
        (EIGHT_POINTS, ("mutants",)),
        *((ball, MADE) for ball in BALLS),
    ],
    # Two rounds make the same releases as eight, in the same way: the checks that fit hundreds of
    # times do with them in the normal suite, and take the defaults in `make audit`.
    "DPOneClusterKMeans": [
        ({}, ("sklearn", "privacy, slow")),
        ({"n_clusters": 2}, ("privacy", *PATH)),
        ({"n_clusters": 2, **GENEROUS}, ("privacy",)),
        ({"n_clusters": 2, "epsilon": 300.0, "bounds": 9.0}, PATH),
        ({"n_clusters": 2, **EIGHT_POINTS}, ("mutants",)),
        *(({"n_clusters": 2, **ball}, MADE) for ball in BALLS),
    ],
    "DPOutlierScreen": [
        ({}, (*BOTH, *PATH)),
        (GENEROUS, ("privacy",)),
        ({"epsilon": 100.0, "bounds": 9.0}, PATH),
        ({"epsilon": 5.0, "n_points": 8}, ("mutants",)),
        *((ball, MADE) for ball in BALLS),
    ],
    # So do ten blocks and as many as there are by default.
    "SampleAndAggregate": [
        ({}, ("sklearn", "privacy, slow")),
        ({"n_blocks": 10}, ("privacy",)),
        ({"n_blocks": 20, **GENEROUS}, ("privacy", *MADE)),
        ({"n_blocks": 20, "aggregator": "one_cluster"}, ("privacy",)),
        ({"n_blocks": 20, "aggregator": "friendly_core"}, ("privacy",)),
        ({"n_blocks": 20, "aggregator": "mean"}, ("privacy",)),
        ({"n_blocks": 20, "sampling": "with_replacement"}, ("privacy",)),
        *(
            ({**BLOCKS, "aggregator": name, **bounds}, PATH)
            for name in ("one_cluster", "friendly_core", "mean")
            for bounds in ({}, {"output_bounds": 3.0})
        ),
        ({"n_blocks": 12, "epsilon": 20.0}, ("mutants",)),
        ({"n_blocks": 12, "agreement": 0.2, **GENEROUS}, MADE),
        ({"n_blocks": 6, "aggregator": "friendly_core", "output_bounds": 100.0, **GENEROUS}, MADE),
        ({"n_blocks": 20, "aggregator": "mean", "output_bounds": 3.0, **GENEROUS}, MADE),
        ({"n_blocks": 20, "sampling": "with_replacement", **GENEROUS}, MADE),
    ],
    "DPGaussianMixture": [
        ({}, (*BOTH, *PATH)),
        (GENEROUS, ("privacy",)),
        ({"n_components": 2, "covariance_type": "diag"}, ("privacy",)),
        ({"n_components": 2, "method": "partition"}, ("privacy, slow",)),
        ({"n_components": 2, **TWO_TUPLES}, ("privacy, slow",)),
        ({"n_components": 3, "epsilon": 100.0}, PATH),
        ({"n_components": 2, "bounds": 5.0}, ("releases",)),
        ({"n_components": 2, "bounds": (-5.0, 5.0), "epsilon": 100.0}, (*PATH, *MADE)),
        ({"n_components": "auto", "epsilon": 100.0}, PATH),
        ({"n_components": 3, "method": "partition", "epsilon": 300.0}, PATH),
        ({"n_components": 2, **PUBLISHED_BALLS, **GENEROUS}, PATH),
        (
            {
                "n_components": 2,
                "method": "partition",
                "covariance_type": "spherical",
                "epsilon": 300.0,
                "bounds": 9.0,
            },
            PATH,
        ),
        ({"n_components": 2, "method": "k_tuples", "options": KTupleOptions(3), **GENEROUS}, PATH),
        ({"n_components": 2, "epsilon": 100.0}, ("mutants",)),
        ({"n_components": 5, "epsilon": 1e5}, MADE),
        ({"n_components": "auto", "criterion": "silhouette", **GENEROUS}, MADE),
        ({"n_components": 2, "method": "partition", "epsilon": 4.0}, MADE),
        ({"n_components": 3, **PUBLISHED_BALLS, **GENEROUS}, MADE),
        (
            {
                "n_components": 2,
                "method": "partition",
                "covariance_type": "spherical",
                "bounds": 9.0,
                **GENEROUS,
            },
            MADE,
        ),
        (
            {"n_components": 3, "method": "k_tuples", "options": KTupleOptions(3), "epsilon": 1e5},
            MADE,
        ),
    ],
    "FriendlyCovariance": [
        ({}, (*BOTH, *PATH)),
        (GENEROUS, ("privacy", *MADE)),
        ({"method": "friendly_core", "n_blocks": 30, **GENEROUS}, MADE),
        ({"method": "gram", "bounds": 10.0}, ("privacy",)),
        ({"epsilon": 100.0}, (*PATH, "mutants")),
        ({"epsilon": 20.0, "method": "gram", "bounds": 9.0}, PATH),
        (
            {"epsilon": 300.0, "method": "friendly_core", "n_blocks": 30, "assume_centered": True},
            PATH,
        ),
    ],
    "DPPCA": [
        ({}, (*BOTH, *PATH)),
        (GENEROUS, ("privacy", *PATH, *MADE)),
        ({"rho": 3.0, "bounds": UNEQUAL}, MADE),
        ({"n_components": 0.9, "whiten": True}, ("privacy", *PATH)),
        ({"n_components": "auto"}, PATH),
        ({"epsilon": 5.0}, ("mutants",)),
    ],
    "FriendlyMean": [
        ({}, (*BOTH, *PATH)),
        (GENEROUS, ("privacy", *MADE)),
        ({"rho": 8.0, "locate": "basic"}, (*PATH, "mutants", *MADE)),
        ({"rho": 8.0, "refine": False}, (*PATH, *MADE)),
        ({"epsilon": 20.0, "bounds": 20.0}, PATH),
        ({"epsilon": 20.0, "bounds": (-20.0, 30.0)}, PATH),
        ({"epsilon": 30.0}, PATH),
        ({"epsilon": 30.0, "locate": "cells", "diameter": 10.0}, (*PATH, *MADE)),
    ],
    "DPOneHotEncoder": [
        ({}, (*BOTH, *PATH)),
        (GENEROUS, ("privacy", *PATH, *MADE)),
        ({"epsilon": 5.0}, ("mutants",)),
        ({"handle_unknown": "ignore", "rho": 8.0}, ("privacy", *PATH)),
    ],
    "DPQuantiles": [
        ({}, (*BOTH, *PATH)),
        (GENEROUS, ("privacy", *PATH, *MADE)),
        ({"quantiles": (0.5,), "rho": 8.0, "bounds": (-4.0, 5.0)}, PATH),
        ({"epsilon": 5.0, "bounds": 9.0}, ("mutants",)),
        ({"delta": 0.0, "epsilon": 8.0, "bounds": (-4.0, 5.0)}, ("privacy", *PATH)),
        ({"delta": 0.0, **GENEROUS}, MADE),
    ],
    "DPRobustScaler": [
        ({}, (*BOTH, *PATH)),
        (GENEROUS, ("privacy", *PATH, *MADE)),
        ({"epsilon": 5.0, "bounds": 9.0}, ("mutants",)),
        ({"delta": 0.0, **GENEROUS}, (*PATH, *MADE)),
    ],
    "DPStandardScaler": [
        ({}, (*BOTH, *PATH)),
        (GENEROUS, ("privacy", *PATH, *MADE)),
        ({"with_std": False, "with_mean": False, "rho": 8.0}, ("privacy", *PATH)),
        ({"epsilon": 5.0, "bounds": (-9.0, 8.0)}, (*PATH, "mutants", *MADE)),
    ],
    "DPTopics": [
        ({}, (*BOTH, *PATH)),
        (GENEROUS, ("privacy",)),
        ({"n_topics": 2, "keywords_per_text": 1, **GENEROUS}, (*PATH, *MADE)),
        ({"n_topics": 2, "keywords_per_text": 2, "epsilon": 20.0, **LISTED}, (*PATH, *MADE)),
        ({"n_topics": 2, "keywords_per_text": 2, "epsilon": 100.0, **LISTED}, ("mutants",)),
    ],
    "FederatedDPKMeans": [
        ({}, (*BOTH, *PATH)),
        (GENEROUS, ("privacy", *PATH, *MADE)),
        ({"method": "paper", **GENEROUS}, MADE),
        ({"n_clusters": 3, "method": "paper", **CLIPPED, **GENEROUS}, MADE),
        ({**LAPLACE, **GENEROUS}, MADE),
        ({"n_clusters": "auto", "epsilon": 100.0}, PATH),
        ({"n_clusters": 3, "epsilon": 100.0}, ("mutants",)),
    ],
}


def configurations(use, name=None):
    """The settings for one use, of one estimator or of all."""
    return [
        Configuration(estimator, options, uses)
        for estimator in ESTIMATORS
        if name in (None, estimator)
        for options, uses in TABLE.get(estimator, DEFAULT)
        if use in uses
    ]
