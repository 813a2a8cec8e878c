"""The mixin of estimators that take the place of a class of scikit-learn."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from sklearn.base import BaseEstimator
from sklearn.cluster import DBSCAN, BisectingKMeans, KMeans, MiniBatchKMeans
from sklearn.covariance import EmpiricalCovariance
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import OneHotEncoder, RobustScaler, StandardScaler

from ._costs.numbers import warn
from .exceptions import ConversionWarning

_NO_INERTIA = "the cost is not released by the fit; `private_score` releases it, at its own cost"
_NO_LIKELIHOOD = (
    "the likelihood of the training rows is not released; `score` computes it for given rows"
)
_NO_CORE_ROWS = "rows are not released; `core_cells_` are the dense places"
_SIZE = "the number of rows is private; `size_` is a noisy release of it"
_ALL_ROWS = "each fit is charged for all of its rows; fit all rows at once"

ABSENT: dict[str, dict[str, str]] = {
    "DPOneClusterKMeans": {
        "inertia_": _NO_INERTIA,
        "n_iter_": "clusters are found one after the other; `privacy_report_` lists the releases",
    },
    "FederatedDPKMeans": {"inertia_": _NO_INERTIA, "n_iter_": "`n_rounds_` counts its rounds"},
    "DPDBSCAN": {"core_sample_indices_": _NO_CORE_ROWS, "components_": _NO_CORE_ROWS},
    "DPGaussianMixture": {"lower_bound_": _NO_LIKELIHOOD, "lower_bounds_": _NO_LIKELIHOOD},
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


# -- words -----------------------------------------------------------------------------------------


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
_DBSCAN = dict.fromkeys(
    ("metric", "metric_params", "algorithm", "leaf_size", "p"),
    Word("distances are Euclidean, and a grid replaces the search for neighbors"),
)
_MIXTURE = {
    "tol": _STOP,
    "reg_covar": Word("released covariances are always positive definite"),
    "max_iter": _ROUNDS,
    "n_init": Word(
        "components are isolated by a private partition; a restart would cost the same again",
        _BUDGET,
    ),
    "init_params": Word("components are isolated by a private partition, see `method`"),
    **{
        f"{each}_init": Word(f"initial {each} come from a private partition of the rows")
        for each in ("weights", "means", "precisions")
    },
    "warm_start": Word(
        "every fit starts from scratch, so that it costs no more than stated", _BUDGET
    ),
    "verbose": _QUIET,
    "verbose_interval": _QUIET,
}
_SPECTRUM = (
    "svd_solver", "tol", "iterated_power", "n_oversamples", "power_iteration_normalizer", "n_iter",
)  # fmt: skip
_EXACT = Word(
    "the spectrum of a noisy second moment is computed exactly, which takes almost no time"
)
_PCA = {"copy": _COPY, "batch_size": _BATCHES, **dict.fromkeys(_SPECTRUM, _EXACT)}
_COVARIANCE = {
    # ShrunkCovariance, LedoitWolf, MinCovDet, EllipticEnvelope
    "shrinkage": Word("directions that are mostly noise are shrunk as much as the noise requires"),
    "block_size": _BATCHES,
    **dict.fromkeys(
        ("support_fraction", "contamination"),
        Word("rows far outside the bulk are clipped in the whitened norm"),
    ),
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
    "drop": Word("dropping a column would treat its category differently from all others"),
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
    "DBSCAN": _DBSCAN,
    "GaussianMixture": _MIXTURE,
    "PCA": _PCA,
    "EmpiricalCovariance": _COVARIANCE,
    "OneHotEncoder": _ENCODER,
    "RobustScaler": {"copy": _COPY},
    "StandardScaler": _SCALER,
}
"""Of the class that is replaced: each word that only it has."""


def explanation(name: str, replaced: str, word: Any) -> str | None:
    """Explain a word of the replaced class, or return None if it is no such word."""
    known = WORDS.get(replaced, {}).get(word)
    if known is None:
        return None
    return f"{name} has no parameter {word!r} as {replaced} has: {known.why}. {known.instead}"


# -- replacing -------------------------------------------------------------------------------------


REPLACED: dict[str, tuple[type, ...]] = {
    "KMeans": (KMeans, MiniBatchKMeans, BisectingKMeans),
    "DBSCAN": (DBSCAN,),
    "GaussianMixture": (GaussianMixture,),
    "PCA": (PCA,),
    "EmpiricalCovariance": (EmpiricalCovariance,),
    "OneHotEncoder": (OneHotEncoder,),
    "RobustScaler": (RobustScaler,),
    "StandardScaler": (StandardScaler,),
}
"""Classes of scikit-learn that are replaced, by the name that the tables have for them."""

_CARRIED = frozenset({
    "eps", "min_samples", "n_clusters", "n_components", "covariance_type", "whiten",
    "assume_centered", "store_precision", "n_jobs", "with_centering", "with_scaling",
    "quantile_range", "unit_variance", "with_mean", "with_std", "handle_unknown",
})  # fmt: skip
"""Words that mean the same on both sides."""
_IMPLIED = {"with_mean", "with_std"}  # of a scaler: others are refused
_SEED = "it would make the noise reproducible and void the guarantee; pass it here to set it anyway"


def _refusing_words(init: Callable[..., Any]) -> Callable[..., Any]:
    """A constructor that explains words of the replaced class; its signature stays."""
    parameters = inspect.signature(init).parameters
    if any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return init  # what it does with other words is its own affair

    @wraps(init)
    def __init__(self: Any, *values: Any, **options: Any) -> None:
        for word in options.keys() - parameters.keys():
            text = explanation(type(self).__name__, self._replaces, word)
            if text is not None:
                raise TypeError(
                    f"{text} {type(self).__name__}.from_sklearn converts a configured "
                    f"{self._replaces}."
                )
        init(self, *values, **options)

    return __init__


class Replacing:
    """Mixin of estimators that take the place of a class of scikit-learn: errors explain words of
    its constructor and attributes that an estimator does not have."""

    _replaces = ""
    """The class that is replaced, a key of `REPLACED`; empty where there is none."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            setattr(cls, "__init__", _refusing_words(vars(cls)["__init__"]))  # noqa: B010

    if not TYPE_CHECKING:  # type checkers go on to know which attributes there are

        def __getattr__(self, name: str) -> Any:
            """Called for what is not there: explain it, or raise Python's own error."""
            cls = type(self)
            text = reason(cls, name)
            if text is not None:
                raise AttributeError(f"{cls.__name__} has no {name}: {text}.", name=name, obj=self)
            text = explanation(cls.__name__, cls._replaces, name)
            if text is not None:
                raise AttributeError(text, name=name, obj=self)
            return super().__getattribute__(name)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, as everywhere in scikit-learn.

        Parameters
        ----------
        **params : dict
            Names and values; ``step__name`` for those of an inner estimator.

        Returns
        -------
        self : estimator
            The same estimator.

        Raises
        ------
        ValueError
            For a name that is not a parameter; those of the replaced class are explained.
        """
        known = self.get_params(deep=False)  # type: ignore[attr-defined]
        for word in params.keys() - known.keys():
            text = explanation(type(self).__name__, self._replaces, word)
            if text is not None:
                raise ValueError(text)
        return super().set_params(**params)  # type: ignore[misc]

    @classmethod
    def from_sklearn(
        cls, estimator: BaseEstimator, *, epsilon: float | None = 1.0, **private: Any
    ) -> Self:
        """The private counterpart of a configured estimator of scikit-learn, to be fitted.

        Parameters
        ----------
        estimator : estimator
            An instance of the class that this one replaces, or of one that derives from it. It is
            not changed; whether it is fitted makes no difference.
        epsilon : float, default=1.0
            Privacy budget of one fit.
        **private : dict
            Other parameters of this class, such as `bounds`; they go before those of the estimator.

        Returns
        -------
        private : estimator
            Of this class, not fitted.

        Warns
        -----
        ConversionWarning
            Once, with each parameter that was set and did not carry over, and why. A `random_state`
            is among them: with it there is no guarantee against those who know it.
        """
        known: Any = REPLACED.get(cls._replaces, ())
        if not isinstance(estimator, known):
            names = ", ".join(each.__name__ for each in known)
            raise TypeError(f"estimator must be an instance of {names}.")
        if (text := cls._cannot_replace(estimator)) is not None:
            raise ValueError(f"estimator: {text}")
        given = estimator.get_params(deep=False)
        parameters = inspect.signature(cls.__init__).parameters
        carried = {
            name: given[name]
            for name in _CARRIED & given.keys() & parameters.keys()
            if given[name] not in ("error", "warn")  # of one row, which no private fit may be
        }
        dropped = [
            f"{name} ({cls._why_lost(name)})"
            for name, parameter in inspect.signature(type(estimator)).parameters.items()
            if parameter.kind is not parameter.VAR_KEYWORD
            and name not in carried.keys() | private.keys() | _IMPLIED
            and not _is_default(given.get(name, parameter.default), parameter.default)
        ]
        twin = cls(**{**carried, **private, "epsilon": epsilon})
        if dropped:
            text = f"{cls.__name__}.from_sklearn: not carried over: {'; '.join(dropped)}"
            warn(text, ConversionWarning)
        return twin

    @classmethod
    def _cannot_replace(cls, estimator: Any) -> None:
        """Why this instance has no private counterpart, or None."""
        return None

    @classmethod
    def _why_lost(cls, name: str) -> str:
        if name == "random_state":
            return _SEED
        known = WORDS.get(cls._replaces, {}).get(name)
        return f"{cls.__name__} has no such parameter" if known is None else known.why


def _is_default(value: Any, default: Any) -> bool:
    """True if a parameter has been left alone."""
    if value is default:
        return True
    plain = (str, int, float, bool)
    return isinstance(value, plain) and isinstance(default, plain) and value == default
