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
    "a fit prints nothing: what it may show is what it releases",
    "Print `privacy_report_` after the fit, or set a callback of scikit-learn.",
)
_COPY = Word("X is never changed")
_BATCHES = Word(
    "a fit reads all rows, in chunks where they are many; the time is in proportion to their number"
)
_ROUNDS = Word(
    "the number of iterations follows from the budget and from what has been released",
    "Leave it out; `n_iter_` tells after the fit, `epsilon` decides.",
)
_STOP = Word(
    "when to stop is decided by released values and by the budget, never by changes in the rows"
)
_BUDGET = "Leave it out; spend `epsilon` on one fit, each one costs its own."
_EXACT = Word(
    "the spectrum of a second moment with noise is computed exactly, which takes next to no time"
)

_KMEANS = {
    "init": Word(
        "start centers are found in a private coreset of the rows, with several starts",
        "Leave it out; `DPKMeans(init=...)` takes centers that are public or were released.",
    ),
    "n_init": Word(
        "the start is chosen in a private coreset, where restarts cost no budget and are made"
    ),
    "max_iter": _ROUNDS,
    "tol": _STOP,
    "verbose": _QUIET,
    "copy_x": _COPY,
    "algorithm": Word("there is one algorithm, whose noise does not allow a shortcut to show"),
    "precompute_distances": Word("scikit-learn 1.0 has dropped it too"),
    # MiniBatchKMeans
    "batch_size": _BATCHES,
    "max_no_improvement": _STOP,
    "init_size": _BATCHES,
    "reassignment_ratio": Word("moves that merge and split clusters take its place"),
    "compute_labels": Word("labels of the training rows cost next to nothing, and no budget"),
    # BisectingKMeans
    "bisecting_strategy": Word("clusters are not found by bisection"),
}
_MIXTURE = {
    "tol": _STOP,
    "reg_covar": Word("released covariances are positive definite as they are"),
    "max_iter": _ROUNDS,
    "n_init": Word(
        "the components are isolated by a private partition; a restart would cost as much again",
        _BUDGET,
    ),
    "init_params": Word("the components are isolated by a private partition, see `method`"),
    "weights_init": Word("start weights come from a private partition of the rows"),
    "means_init": Word("start means come from a private partition of the rows"),
    "precisions_init": Word("start precisions come from a private partition of the rows"),
    "warm_start": Word("a fit starts anew, so that it costs no more than it says", _BUDGET),
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
    "shrinkage": Word("what is hidden in the noise is shrunk by as much as the noise asks for"),
    "block_size": _BATCHES,
    "support_fraction": Word("rows far outside the bulk are clipped in the whitened norm"),
    "contamination": Word("rows far outside the bulk are clipped in the whitened norm"),
}
_SCALER = {
    "with_mean": Word("it does nothing but center"),
    "with_std": Word(
        "scales are not released with the mean",
        "Take DPStandardScaler, or PublicScaler where bounds of the columns are known.",
    ),
    "copy": _COPY,
}

_ENCODER = {
    "handle_unknown": Word(
        "an error or a warning would tell that a row is there",
        'Take "infrequent_if_exist" or "ignore".',
    ),
    "categories": Word(
        "it finds the categories", "Take PublicEncoder where they are known: it costs nothing."
    ),
    "drop": Word("a column that is left out would make its category differ from all others"),
    "sparse_output": Word("rows are dense, as private estimators need them"),
    "dtype": Word("rows are float64"),
    "min_frequency": Word("noise decides how rare a category may be: see `threshold_`"),
    "max_categories": Word("all that stand out of the noise are released, at the same cost"),
    "feature_name_combiner": Word("columns are called feature_category"),
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
