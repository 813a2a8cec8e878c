"""The mixin of estimators that take the place of a class of scikit-learn."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Self

from sklearn.base import BaseEstimator
from sklearn.cluster import BisectingKMeans, KMeans, MiniBatchKMeans
from sklearn.covariance import EmpiricalCovariance
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import OneHotEncoder, RobustScaler, StandardScaler

from .._privacy._warn import warn
from ..exceptions import ConversionWarning
from .attributes import reason
from .words import WORDS, explanation

__all__ = ["REPLACED", "Replacing"]

REPLACED: dict[str, tuple[type, ...]] = {
    "KMeans": (KMeans, MiniBatchKMeans, BisectingKMeans),
    "GaussianMixture": (GaussianMixture,),
    "PCA": (PCA,),
    "EmpiricalCovariance": (EmpiricalCovariance,),
    "OneHotEncoder": (OneHotEncoder,),
    "RobustScaler": (RobustScaler,),
    "StandardScaler": (StandardScaler,),
}
"""Classes of scikit-learn that are replaced, by the name that the tables have for them."""

_CARRIED = frozenset(
    {
        "n_clusters",
        "n_components",
        "covariance_type",
        "whiten",
        "assume_centered",
        "store_precision",
        "n_jobs",
        "with_centering",
        "with_scaling",
        "quantile_range",
        "unit_variance",
        "with_mean",
        "with_std",
        "handle_unknown",
    }
)
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
    """Takes the place of a class of scikit-learn.

    Words of its constructor and attributes that an estimator does not have are explained by the
    tables of `words` and `attributes`. Signatures, `get_params`, `clone` and pickles are untouched,
    and so is what users derive.
    """

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
            For a name that is no parameter. A word of the class that this one replaces is
            explained.
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
        """The private twin of a configured estimator of scikit-learn, to be fitted.

        Parameters
        ----------
        estimator : estimator
            An instance of the class that this one replaces, or of one that derives from it. It is
            not changed; whether it is fitted makes no difference.
        epsilon : float, default=1.0
            Privacy budget of one fit.
        **private : dict
            Other parameters of this class, such as `bounds` or `ledger`; they go before those of
            the estimator.

        Returns
        -------
        twin : estimator
            Of this class, not fitted.

        Warns
        -----
        ConversionWarning
            Once, with each parameter that was set and did not carry over, and why. A `random_state`
            is among them: with it there is no guarantee against those who know it.
        """
        cls._check_replaced(estimator)
        given = estimator.get_params(deep=False)
        known = inspect.signature(cls.__init__).parameters
        carried = {
            name: given[name]
            for name in _CARRIED & given.keys() & known.keys()
            if given[name] not in ("error", "warn")  # of one row, which no private fit may be
        }
        lost = [
            f"{name} ({cls._why_lost(name)})"
            for name, parameter in inspect.signature(type(estimator)).parameters.items()
            if parameter.kind is not parameter.VAR_KEYWORD
            and name not in carried.keys() | private.keys() | _IMPLIED
            and not _is_default(given.get(name, parameter.default), parameter.default)
        ]
        twin = cls(**{**carried, **private, "epsilon": epsilon})
        if lost:
            warn(
                f"{cls.__name__}.from_sklearn: not carried over: {'; '.join(lost)}",
                ConversionWarning,
            )
        return twin

    @classmethod
    def _check_replaced(cls, estimator: Any) -> None:
        known = REPLACED.get(cls._replaces, ())
        if not isinstance(estimator, known):
            names = ", ".join(each.__name__ for each in known)
            raise TypeError(f"estimator must be an instance of {names}.")
        text = cls._cannot_replace(estimator)
        if text is not None:
            raise ValueError(f"estimator: {text}")

    @classmethod
    def _cannot_replace(cls, estimator: Any) -> None:
        """Why this instance has no private twin, or None."""
        return None

    @classmethod
    def _why_lost(cls, name: str) -> str:
        if name == "random_state":
            return _SEED
        known = WORDS.get(cls._replaces, {}).get(name)
        return f"{cls.__name__} has no such parameter" if known is None else known.why


def _is_default(value: Any, default: Any) -> bool:
    """Whether a parameter has been left alone. Values are told from it, never shown."""
    if value is default:
        return True
    plain = (str, int, float, bool)
    return isinstance(value, plain) and isinstance(default, plain) and value == default
