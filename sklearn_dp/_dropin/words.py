"""Words of scikit-learn's constructors that the private estimators do not have, and why.

One table, by the class that is replaced. Each line says why the word is not needed and what to
write instead. A word that an estimator does have is never looked up.
"""

from typing import Any, NamedTuple

__all__ = ["WORDS", "Word", "explanation"]


class Word(NamedTuple):
    """A word of a constructor of scikit-learn."""

    why: str
    instead: str = "Leave it out."


_QUIET = Word(
    "a fit prints nothing, because it may show only what it releases",
    "Print `privacy_report_` after the fit, or set a scikit-learn callback.",
)
_COPY = Word("X is never changed")
_BATCHES = Word(
    "a fit reads all rows, in chunks if there are many, in time proportional to their number"
)
_ROUNDS = Word(
    "the number of iterations depends on the budget and on released values",
    "Leave it out. After the fit, `n_iter_` has the number; `epsilon` influences it.",
)
_STOP = Word("released values and the budget decide when to stop, never changes in the rows")
_BUDGET = "Leave it out. Spend `epsilon` on one fit; each fit is charged separately."
_EXACT = Word(
    "the spectrum of a noisy second moment is computed exactly, which takes almost no time"
)

_KMEANS = {
    "init": Word(
        "initial centers are found in a private coreset of the rows, with several starts",
        "Leave it out; `DPKMeans(init=...)` accepts centers that are public or were released.",
    ),
    "n_init": Word(
        "initial centers come from a private coreset, where restarts are free and always made"
    ),
    "max_iter": _ROUNDS,
    "tol": _STOP,
    "verbose": _QUIET,
    "copy_x": _COPY,
    "algorithm": Word("there is only one algorithm"),
    "precompute_distances": Word("scikit-learn 1.0 removed it, too"),
    # MiniBatchKMeans
    "batch_size": _BATCHES,
    "max_no_improvement": _STOP,
    "init_size": _BATCHES,
    "reassignment_ratio": Word("steps that merge and split clusters replace it"),
    "compute_labels": Word("labels of the training rows cost no budget and almost no time"),
    # BisectingKMeans
    "bisecting_strategy": Word("clusters are not found by bisection"),
}
_MIXTURE = {
    "tol": _STOP,
    "reg_covar": Word("released covariances are always positive definite"),
    "max_iter": _ROUNDS,
    "n_init": Word(
        "components are isolated by a private partition; a restart would cost the same again",
        _BUDGET,
    ),
    "init_params": Word("components are isolated by a private partition, see `method`"),
    "weights_init": Word("initial weights come from a private partition of the rows"),
    "means_init": Word("initial means come from a private partition of the rows"),
    "precisions_init": Word("initial precisions come from a private partition of the rows"),
    "warm_start": Word(
        "every fit starts from scratch, so that it costs no more than stated", _BUDGET
    ),
    "verbose": _QUIET,
    "verbose_interval": _QUIET,
}
_PCA = {
    "copy": _COPY,
    "svd_solver": _EXACT,
    "tol": _EXACT,
    "iterated_power": _EXACT,
    "n_oversamples": _EXACT,
    "power_iteration_normalizer": _EXACT,
    "n_iter": _EXACT,  # TruncatedSVD
    "batch_size": _BATCHES,  # IncrementalPCA
}
_COVARIANCE = {
    # ShrunkCovariance, LedoitWolf, MinCovDet, EllipticEnvelope
    "shrinkage": Word("directions hidden in the noise are shrunk as much as the noise requires"),
    "block_size": _BATCHES,
    "support_fraction": Word("rows far outside the bulk are clipped in the whitened norm"),
    "contamination": Word("rows far outside the bulk are clipped in the whitened norm"),
}
_SCALER = {
    "with_mean": Word("centering is all that it does"),
    "with_std": Word(
        "scales are not released with the mean",
        "Use DPStandardScaler, or PublicScaler if bounds of the columns are known.",
    ),
    "copy": _COPY,
}

_ENCODER = {
    "handle_unknown": Word(
        "an error or a warning would reveal that a row is there",
        'Use "infrequent_if_exist" or "ignore".',
    ),
    "categories": Word(
        "it finds the categories itself",
        "If they are known, use PublicEncoder, which costs nothing.",
    ),
    "drop": Word("dropping a column would treat its category differently from the others"),
    "sparse_output": Word("its output is dense, as private estimators require"),
    "dtype": Word("its output is float64"),
    "min_frequency": Word("the noise determines how rare a category may be, see `threshold_`"),
    "max_categories": Word(
        "all categories that stand out from the noise are released, at the same cost"
    ),
    "feature_name_combiner": Word("columns are always named feature_category"),
}

WORDS: dict[str, dict[str, Word]] = {
    "KMeans": _KMEANS,
    "GaussianMixture": _MIXTURE,
    "PCA": _PCA,
    "EmpiricalCovariance": _COVARIANCE,
    "OneHotEncoder": _ENCODER,
    "RobustScaler": {"copy": _COPY},
    "StandardScaler": _SCALER,
}
"""Of the class that is replaced: each word that only it has."""


def explanation(name: str, replaced: str, word: Any) -> str | None:
    """What to tell who writes a word of the replaced class, or None if it is no such word."""
    known = WORDS.get(replaced, {}).get(word)
    if known is None:
        return None
    return f"{name} has no parameter {word!r} as {replaced} has: {known.why}. {known.instead}"
