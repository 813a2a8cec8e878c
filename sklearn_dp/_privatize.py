"""Pipelines of scikit-learn with private counterparts of what has one; nothing is fitted."""

import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

from ._base import BaseDPEstimator, Bounds, LedgerLike, budget_of
from ._compositions import COMPOSED, owned
from ._costs.budget import PrivacyBudget
from ._costs.numbers import warn
from ._dropin import REPLACED
from ._guarantee import SingleRows, follows_from_rows
from ._parameters import check_steps, names_of, shares_of_one
from .cluster import DPDBSCAN, DPKMeans
from .covariance import FriendlyCovariance
from .decomposition import DPPCA
from .exceptions import ConversionWarning, PrivacyWarning
from .mixture import DPGaussianMixture
from .model_selection import DPGridSearch, DPRandomizedSearch
from .preprocessing import (
    DPOneHotEncoder,
    DPRobustScaler,
    DPStandardScaler,
    PublicEncoder,
    PublicScaler,
)

_TWINS = (
    DPKMeans, DPDBSCAN, DPGaussianMixture, DPPCA, FriendlyCovariance, DPStandardScaler,
    DPRobustScaler, DPOneHotEncoder,
)  # fmt: skip
_PUBLIC = (PublicScaler, PublicEncoder, SingleRows)  # they learn nothing, and fail at no row
# Composed estimators, and the parameter that holds their parts.
_HOLDERS = {Pipeline: "steps", FeatureUnion: "transformer_list", ColumnTransformer: "transformers"}
_HOLDERS |= {COMPOSED[kind]: name for kind, name in _HOLDERS.items()}
_SEARCH = ("param_grid", "param_distributions", "scoring", "n_jobs")
_LOST = {
    "memory": "it would keep private rows on disk",
    "n_jobs": "the steps are paid for together, in one thread",
}
_ADVICE = {
    "MinMaxScaler": "it learns values of individual rows: give the public bounds of the "
    "columns in `bounds`, which replaces it with PublicScaler",
    "MaxAbsScaler": "it learns values of individual rows: use PublicScaler with public bounds",
    "OrdinalEncoder": "use PublicEncoder with a public list of categories",
    "SimpleImputer": "it learns the values that it fills in, or whether a column is empty, and its "
    "input check fails if one value is infinite: fill in a public constant before the fit",
}


def privatize(
    estimator: BaseEstimator,
    *,
    epsilon: float | None = 1.0,
    delta: float = 1e-6,
    rho: float | None = None,
    bounds: Mapping[str, Bounds] | Bounds | None = None,
    ledger: LedgerLike | None = None,
    shares: Mapping[str, float] | None = None,
    allow: Collection[str] = (),
) -> BaseEstimator:
    """Return the unfitted private counterpart of a scikit-learn estimator or pipeline.

    Estimators that have a private counterpart are replaced by it, and the budget is divided among
    them. Steps that learn nothing get each row by itself. Any other step is refused, unless
    `allow` names it.

    Parameters
    ----------
    estimator : estimator
        ``KMeans``, ``DBSCAN``, ``GaussianMixture``, ``PCA``, ``EmpiricalCovariance``,
        ``StandardScaler``, ``RobustScaler``, ``OneHotEncoder``, a private estimator, or a
        ``Pipeline``, ``FeatureUnion`` or ``ColumnTransformer`` of such; or a ``GridSearchCV`` or
        ``RandomizedSearchCV`` of one of these, which becomes the private search of
        :mod:`sklearn_dp.model_selection`. Steps of these may also be
        :class:`~sklearn_dp.PublicScaler` and :class:`~sklearn_dp.PublicEncoder`, which cost
        nothing, ``MinMaxScaler`` with `bounds`, which becomes the first of them,
        ``OneHotEncoder`` with listed categories, which becomes the second, and what treats each row
        by itself: ``Normalizer``, ``Binarizer``, ``PolynomialFeatures``, ``HashingVectorizer``,
        ``FeatureHasher``, random projections to a given number of components, and a
        ``FunctionTransformer`` of a ufunc of NumPy or SciPy. It is not changed.
    epsilon : float, default=1.0
        Privacy budget of one fit of the whole pipeline.
    delta : float, default=1e-6
        Probability that the epsilon limit fails; keep it far below one over the number of units.
    rho : float, optional
        Budget in zero-concentrated DP. Give it in place of `epsilon`.
    bounds : dict of str to bounds, or bounds of a single estimator, optional
        Public bounds of the input of a step, by the name of the step; they become its parameter
        `bounds`.
    ledger : str, path or PrivacyLedger, optional
        Total budget of many fits. All private steps of a fit are charged to it at once, before the
        first of them reads a row. If one of them fails, nothing is refunded.
    shares : dict of str to float, optional
        Share of the budget of each private step, by its name (``outer__inner`` inside a step), in
        any unit. By default all shares are equal.
    allow : collection of str, default=()
        Names of steps to keep although they use rows without privacy.

    Returns
    -------
    private : estimator
        Same structure, not fitted. A pipeline prints the guarantee of the whole.

    Warns
    -----
    ConversionWarning
        For parameters that did not carry over.
    PrivacyWarning
        If steps are kept by `allow`: what they compute from rows is not private, and the guarantee
        does not hold for private steps that follow them either.

    Notes
    -----
    Guarantee: with nothing in `allow`, a fit of the whole is (epsilon, delta)-differentially
    private for adding or removing one row. Steps without a state get one row at a time, read as
    numbers or as a text; a row that they fail at becomes zeros, and an infinite result the largest
    number. Several private steps share a budget in zCDP: their releases add up to rho, and to half
    of delta for failure events; the other half is for the conversion. A single private step gets
    all of it. Functions that choose the columns of a ``ColumnTransformer`` must look at names and
    types only.

    Mistakes that do not depend on values, such as a parameter of a later step or a column of dates
    that reaches it, are refused before anything is charged. `groups` are given to all private steps
    or to none. A fit costs a ledger the budget of the whole, not the sum of what the steps would
    cost alone. A step that is taken out of the pipeline, or is given a budget in epsilon, is
    charged separately. Steps are fitted in one thread. ``preflight(twin, X)`` says what a fit will
    cost, and charges nothing.

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> from sklearn.decomposition import PCA
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn_dp import privatize
    >>> pipeline = privatize(make_pipeline(PCA(2), KMeans(8)), epsilon=1.0)
    >>> [type(step).__name__ for step in pipeline.named_steps.values()]
    ['DPPCA', 'DPKMeans']
    """
    target = budget_of(epsilon, delta, rho)
    if isinstance(estimator, GridSearchCV | RandomizedSearchCV):
        return _search(estimator, target, bounds, ledger, {"shares": shares, "allow": allow})
    parts = dict(_parts(estimator))
    # Public bounds by the names of steps.
    if bounds is not None and "" not in parts and not isinstance(bounds, Mapping):
        names = ", ".join(map(repr, parts))
        raise TypeError(f"bounds must be a dict of step names and bounds; steps: {names}.")
    given: Any = bounds if bounds is None or "" not in parts else {"": bounds}
    given = dict(given or {})
    public = {name: step for name, part in parts.items() if (step := _public(name, part, given))}
    parts = {name: part for name, part in parts.items() if name not in public}
    private = {name: twin for name, part in parts.items() if (twin := _twin_of(part)) is not None}
    rest = {name: part for name, part in parts.items() if name not in private}
    _check_rest(rest, set(names_of(allow, "allow")) - public.keys())
    if not private:
        raise ValueError("estimator: nothing in it has a private counterpart.")
    unknown = given.keys() - private.keys() - public.keys()
    if unknown:
        which = ", ".join(sorted(map(repr, unknown)))
        raise ValueError(f"bounds: no step that takes bounds is called {which}.")
    budgets = _budgets(target, _shares(shares, private))
    twins = {
        name: _converted(parts[name], twin, budgets[name], ledger) for name, twin in private.items()
    }
    for name in given.keys() & twins.keys():
        twins[name].set_params(bounds=given[name])
    if "" in twins:
        return twins[""]
    return _with_twins(estimator, {**twins, **public})


def _search(
    search: Any, target: PrivacyBudget, bounds: Any, ledger: Any, others: dict[str, Any]
) -> BaseEstimator:
    """The private twin of a search: every fit, score and choice within one budget."""
    for name, value in others.items():
        if value:
            raise ValueError(f"{name} must not be set for a search: it divides its own budget.")
    if search.refit is not True:
        raise ValueError("estimator: refit must be True.")
    kind: Any = DPGridSearch if isinstance(search, GridSearchCV) else DPRandomizedSearch
    defaults = type(search)(None, {}).get_params(deep=False)
    given = search.get_params(deep=False)
    kept = {name: given[name] for name in (*_SEARCH, "n_iter") if name in given}
    unsupported = [name for name in given if name not in {*kept, "estimator", "refit"}]
    unsupported = [name for name in unsupported if given[name] is not defaults[name]]
    if unsupported:
        warn(f"privatize: not carried over: {', '.join(unsupported)}", ConversionWarning)
    budget = {name: getattr(target, name) for name in ("epsilon", "delta", "rho")}
    return kind(privatize(search.estimator, bounds=bounds), **kept, **budget, ledger=ledger)


def _public(name: str, part: Any, bounds: dict[str, Any]) -> Any:
    """Return the replacement of a step that has nothing to learn; None where it may learn."""
    if type(part) in _PUBLIC:
        return clone(part)
    if type(part) is MinMaxScaler and name in bounds:
        return PublicScaler(bounds[name], feature_range=part.feature_range, clip=part.clip)
    listed = type(part) is OneHotEncoder and isinstance(part.categories, list | tuple)
    if listed and part.drop is None:
        return PublicEncoder([list(values) for values in part.categories])
    return SingleRows(clone(part)) if follows_from_rows(part) else None


def _parts(estimator: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Pairs (name, estimator) of all parts that are not compositions, such as ``outer__inner``."""
    holder = _HOLDERS.get(type(estimator))
    if holder is None:
        yield prefix.removesuffix("__"), estimator
        return
    steps = getattr(estimator, holder)
    check_steps(steps)
    parts = [(name, part) for name, part, *_ in steps]
    for name, part in (*parts, ("remainder", getattr(estimator, "remainder", None))):
        if part is not None and not isinstance(part, str):
            yield from _parts(part, f"{prefix}{name}__")


def _twin_of(estimator: Any) -> Any:
    """The private class that takes the place of an estimator, if any; of a private one, its own."""
    if isinstance(estimator, BaseDPEstimator):
        return type(estimator)
    twins = (twin for twin in _TWINS if isinstance(estimator, REPLACED[twin._replaces]))
    return next((twin for twin in twins if twin._cannot_replace(estimator) is None), None)


def _check_rest(rest: dict[str, Any], allow: Collection[str]) -> None:
    """Refuse what sees rows without a private twin, or warn where it is allowed."""
    unknown = set(allow) - set(rest)
    if unknown:
        raise ValueError(f"allow: no step called {sorted(unknown)} lacks a private counterpart.")
    refused = [_in_words(name, part) for name, part in rest.items() if name not in allow]
    if refused:
        models = any(isinstance(part, ClassifierMixin | RegressorMixin) for part in rest.values())
        raise ValueError(
            f"estimator: no private counterpart for {'; '.join(refused)}. Remove it, or name it in "
            "`allow` if what it learns may be public and does not depend on private rows."
            + " SampleAndAggregate(...) makes a classifier or a regressor private."
            * models
        )
    if rest:
        warn(
            f"not private: {'; '.join(_in_words(*each) for each in rest.items())}. The guarantee "
            "holds only if what they learn depends on public values alone, if their output for a "
            "row depends on that row alone, and if no row makes them warn or fail.",
            PrivacyWarning,
        )


def _in_words(name: str, part: Any) -> str:
    kind = type(part).__name__
    advice = f" ({_ADVICE[kind]})" if kind in _ADVICE else ""
    return f"{kind} {name!r}{advice}" if name else f"{kind}{advice}"


def _shares(shares: Mapping[str, float] | None, private: dict[str, Any]) -> dict[str, float]:
    """Share of each private step, of sum 1."""
    if shares is None:
        return {name: 1 / len(private) for name in private}
    if not isinstance(shares, Mapping):
        raise TypeError("shares must be a dict of step names and numbers.")
    if set(shares) != set(private):
        raise ValueError(f"shares must name exactly the private steps, {sorted(private)}.")
    return shares_of_one({name: shares[name] for name in private}, "shares")


def _budgets(target: PrivacyBudget, shares: dict[str, float]) -> dict[str, PrivacyBudget]:
    """Budgets of the steps, which compose to the target by zCDP: parts of (rho_i, delta_i), with
    sums rho and delta / 2, are (rho, delta / 2)-zCDP together; `split` rounds down."""
    if len(shares) == 1:
        return dict.fromkeys(shares, target)
    whole = target
    if target.epsilon is not None:
        failure = target.delta / 2
        whole = PrivacyBudget(
            rho=target.to_rho(gaussian=False, delta_failure=failure), delta=failure
        )
    scale = 1.0 if math.fsum(shares.values()) <= 1 else 1 - 1e-12  # for rounding
    return dict(zip(shares, whole.split([s * scale for s in shares.values()]), strict=True))


def _converted(part: Any, twin: Any, budget: PrivacyBudget, ledger: LedgerLike | None) -> Any:
    """The private twin of a part, with its budget and the ledger of the whole."""
    options = {name: getattr(budget, name) for name in ("epsilon", "delta", "rho")}
    options["ledger"] = ledger
    if isinstance(part, BaseDPEstimator):
        return clone(part).set_params(**options)
    return twin.from_sklearn(part, **options)


def _with_twins(estimator: Any, twins: dict[str, Any]) -> Any:
    """A copy of a composition with these parts, charged together, without caches and threads."""
    copy = clone(estimator)
    params = {"": copy, **copy.get_params()}
    kept = [
        name
        for name, value in params.items()
        for holder, _, word in [("__" + name).rpartition("__")]
        if word in _LOST and value is not None
        if type(params[holder.removeprefix("__")]) in _HOLDERS
    ]
    if kept:
        words = (f"{name} ({_LOST[name.rpartition('__')[2]]})" for name in kept)
        warn(f"privatize: not carried over: {', '.join(words)}", ConversionWarning)
    return owned(copy).set_params(**twins, **dict.fromkeys(kept))
