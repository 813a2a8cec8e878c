"""The parameters of the estimator: their checks, the public facts of a fit (`Setup`), its plan."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.cluster import kmeans_plusplus

from .._aggregate.kmeans.fit_context import Candidates
from .._aggregate.kmeans.n_clusters import reference_number
from .._base import MOST_FEATURES, check_integer, check_real, read_table
from .._columns import Schema, check_numbers
from .._costs.accounting import laplace_zcdp_rho
from .._costs.budget import PrivacyBudget
from .._costs.numbers import check_choice
from .._costs.plan import Mechanism, PlanEntry, PrivacyPlan
from .._door import schema
from .._parameters import by_name
from .._privacy._entries import entries_of as entries_of_column
from .._privacy._entries import is_column
from .._privacy._grid import Domain
from .._privacy.mechanisms.shares import MOST_SHARES, SHARES_DELTA
from .._published.feddp_kmeans import paper_costs
from .._queries.client_rounds import ANSWERS, is_count
from .._silence import attempt
from ._state import Setup, server_lloyds, sphere_packing

UNITS = ("auto", "row", "client")
_MOST_ROUNDS = 1000  # each has its share of the budget, and asks all clients
_ROUNDS_WITHOUT_SERVER, _ROUNDS_OF_A_START = 2, 5
_MOST_EPSILON = 700  # up to which a delta of SHARES_DELTA covers noise in shares


def check_parameters(model: Any, n_features: int, server: np.ndarray | None) -> None:
    """Refuse bad values of the parameters that other estimators do not have; errors name them."""
    check_choice("privacy_unit", model.privacy_unit, UNITS)
    check_choice("relation", model.relation, ("add or remove", "replace"))
    check_choice("method", model.method, METHODS)
    options = check_options(model.options)
    if not isinstance(model.n_lloyd, str):
        # Nothing but Lloyd rounds, and none of them: such a fit would see no data at all.
        low = 0 if model.method in ("default", "paper") else 1
        check_integer(model.n_lloyd, "n_lloyd", low=low, high=_MOST_ROUNDS)
    elif model.n_lloyd != "auto":
        raise ValueError("n_lloyd must be an integer or 'auto'.")
    if model.n_honest is not None:
        check_integer(model.n_honest, "n_honest", low=1, high=MOST_SHARES)
        if options.count_noise == "laplace":
            raise ValueError(
                "count_noise='laplace' needs n_honest=None: sums of Laplace shares are not Laplace."
            )
    if model.max_rows_per_client is not None:
        check_integer(model.max_rows_per_client, "max_rows_per_client", low=1)
    check_number_and_server(model, n_features, server)


def check_number_and_server(model: Any, n_features: int, server: np.ndarray | None) -> None:
    """Refuse public points that do not fit the method, the columns or the number of clusters."""
    asked = model._asked_number()
    chosen = isinstance(asked, Candidates)
    if chosen and model.method not in ("default", "paper"):
        raise ValueError(f"n_clusters must be an integer for method={model.method!r}.")
    if server is None:
        if model.method in ("kmeans++", "lloyd"):
            raise ValueError(f"method={model.method!r} needs X_server.")
        return
    if server.shape[1] != n_features:
        raise ValueError("X_server must have as many columns as X.")
    if np.abs(server).max() > _FARTHEST:
        raise ValueError(f"X_server: numbers must not exceed {_FARTHEST:g}.")
    if len(np.unique(server, axis=0)) < (asked.low if chosen else asked):
        raise ValueError("X_server must contain at least n_clusters distinct points.")


def public_ball(server: np.ndarray) -> Domain:
    """The ball about the mean of public points that holds them: bounds that cost nothing."""
    center = server.mean(axis=0)
    reach = np.linalg.norm(server - center, axis=1).max(initial=0.0)
    # Points of one place have a ball too, as small as `bounds` may be: squares of its steps are
    # numbers.
    return Domain(center, max(float(reach), 1e-9 * float(np.abs(center).max()), 1e-140))


def public_columns(n_features: Any, X_server: Any, clients: Sequence[Any]) -> Schema:
    """The columns: as given, of the server's points, or of the clients that are tables, whose
    types, names and numbers of columns are public and have to agree."""
    tables = [("X_server", X_server)] * (X_server is not None)
    tables += [
        (f"clients[{i}]", each)
        for i, each in enumerate(clients)
        # no list, and none that answers
        if {"shape", "collect"} & {*dir(type(each))} and not callable(each)
    ]
    given = [(name, schema(table, name)) for name, table in tables]
    for name, each in given:
        check_numbers(each, name)
    if n_features is None:
        if not given:
            raise ValueError(
                "n_features is required if neither X_server nor the clients' arrays determine it."
            )
        n_features = given[0][1].n_features
    public = tuple(entries_of_column(n_features)) if is_column(n_features) else None
    if public is not None:
        texts = all(isinstance(name, str) for name in public)
        if not texts or len(set(public)) < len(public):
            raise ValueError("n_features must be a number, or the names of the columns, one each.")
        n_features = len(public)
    width = check_integer(n_features, "n_features", low=1, high=MOST_FEATURES)
    for name, each in given:
        if each.n_features != width:
            raise ValueError(f"{name} must have {width} columns, like all other tables.")
    known = [names for names in (public, *(each.names for _, each in given)) if names is not None]
    labels = known[0] if known else None
    for name, table in tables:
        by_name(table, labels, name)
    return Schema(width, labels)


def refuse_clients(X: Any) -> None:
    """Before the charge, clients in the place of one table, if all entries are tables, by types."""

    def is_table(one: Any) -> bool:
        dimensions = attempt(getattr, one, "ndim")[0]
        return type(dimensions) is int and dimensions == 2

    # Nothing else is iterated: that runs code of a table, whose errors may quote rows.
    several = type(X) in (list, tuple) and len(X) > 0 and all(map(is_table, X))
    if several or (isinstance(X, Mapping) and not issparse(X)):  # one sparse format is a dict
        raise TypeError("X must be one table of rows; fit_clients takes one table for each client.")


def setup_of(
    model: Any,
    domain: Domain | None,
    n_features: int,
    per_client: bool,
    server: np.ndarray | None,
    rng: np.random.Generator | None = None,
    names: tuple[str, ...] | None = None,
) -> Setup:
    """The public facts of a fit of a model whose parameters have been checked."""
    paper, options = model.method == "paper", check_options(model.options)
    start, n_lloyd = _start(model, n_features, server, rng), model.n_lloyd
    if isinstance(n_lloyd, str):  # "auto"
        n_lloyd = 0 if server is not None else _ROUNDS_WITHOUT_SERVER
        n_lloyd = n_lloyd if start is None else _ROUNDS_OF_A_START
    asked = model._asked_number()
    return Setup(
        reference_number(asked),
        n_features,
        domain,
        server,
        start,
        n_lloyd,
        per_client,
        residuals=not paper,
        local_means=paper and per_client,
        most_rows=model.max_rows_per_client,
        shares=options.client_bounds,
        laplace=options.count_noise == "laplace",
        n_honest=model.n_honest,
        swap=model.relation == "replace",
        candidates=asked if isinstance(asked, Candidates) else None,
        names=names,
    )


def _start(
    model: Any, n_features: int, server: Any, rng: Any
) -> Callable[[Domain], np.ndarray] | None:
    """Public centers from the public domain, or None for the method's own rounds."""
    k = model.n_clusters
    if model.method == "kmeans++":
        return lambda _: kmeans_plusplus(server, k, random_state=int(rng.integers(2**31)))[0]
    if model.method == "lloyd":
        return lambda _: server_lloyds(server, k, rng)
    if model.method == "sphere_packing":
        return lambda domain: domain.center + sphere_packing(k, n_features, domain.radius, rng)
    return None


def plan_of(model: Any, target: PrivacyBudget, unit: str, rounds: tuple[str, ...]) -> PrivacyPlan:
    """The plan of a fit with these kinds of rounds, or a ValueError for its unit or budget."""
    if model.privacy_unit == "client" and unit == "row":
        raise ValueError(
            "privacy_unit='client' needs groups, the client of each row, in fit; and unit='group' "
            "in privacy_plan."
        )
    if model.privacy_unit == "row" and unit == "group":
        raise ValueError(
            "privacy_unit='row' protects single rows, not groups: use privacy_unit='auto' to "
            "protect all rows of a group."
        )
    shared = model.n_honest is not None
    entries = entries_of(
        rounds,
        target,
        unit,
        paper=model.method == "paper",
        laplace=check_options(model.options).count_noise == "laplace",
        shared=shared,
    )
    who = "a client with all its rows" if unit == "group" else "a row"
    notes = [f"The unit is {who}. The server's points are public."]
    if shared:
        notes.append(
            f"Clients add the noise: at least {model.n_honest} of those that answer, "
            "besides the one in question, must keep their shares secret."
        )
    relation = model._relation(unit)
    plan = PrivacyPlan(target, entries, unit, tuple(notes), relation, federated=True)
    if shared and plan.epsilon > _MOST_EPSILON:
        raise ValueError("epsilon or rho is too large for n_honest: noise in shares.")
    return plan


# -- options ---------------------------------------------------------------------------------------


METHODS = ("default", "paper", "lloyd", "kmeans++", "sphere_packing")
"""Ways of a fit: all the rounds, ours or the paper's; or Lloyd rounds from a public start."""

_LEAST_BOUND = 1e-6  # of a client's vector: more than a step of the longest one
_FARTHEST = 1e100  # of the server's numbers: no square of a distance overflows


@dataclass(frozen=True)
class FederatedOptions:
    """Rarely needed options of :class:`~sklearn_dp.FederatedDPKMeans`.

    Parameters
    ----------
    count_noise : {"gaussian", "laplace"}, default="gaussian"
        "laplace" as in the paper; the plan is then accounted as zCDP, so the same budget buys less
        accuracy.
    client_bounds : dict of str to float, optional
        For clients as the unit: the norm that a vector is clipped to, over the largest norm that a
        client may have, between 1e-6 and 1. By name of the release, such as ``{"second moment":
        0.2}``. Releases that are not named are bounded by what simulated clients send.
    """

    count_noise: str = "gaussian"
    client_bounds: Mapping[str, float] | None = None


def check_options(options: FederatedOptions | None) -> FederatedOptions:
    """Refuse what is no :class:`FederatedOptions`, and bad values of its fields."""
    options = FederatedOptions() if options is None else options
    if not isinstance(options, FederatedOptions):
        raise TypeError("options must be a FederatedOptions.")
    check_choice("options.count_noise", options.count_noise, ("gaussian", "laplace"))
    if options.client_bounds is not None:
        if not isinstance(options.client_bounds, Mapping):
            raise TypeError("options.client_bounds must be a dict of numbers.")
        for name, value in options.client_bounds.items():
            name = f"options.client_bounds[{name!r}]"
            # A client's vector is multiplied by the share and divided by it: of a subnormal one it
            # was a third longer than the noise covers.
            check_real(value, name, low=_LEAST_BOUND, high=1 + 1e-12)
    return options


def public_points(X_server: Any, names: Any = None) -> np.ndarray | None:
    """The server's points as an array of their own, or None; columns in the order of `names`."""
    if X_server is None:
        return None
    return read_table(by_name(X_server, names, "X_server"), "X_server").copy()


# -- the budget ------------------------------------------------------------------------------------
# Every vector that clients send is one release; a vector that is sent in several rounds is one
# entry with as many uses. By default all noise is Gaussian, so the fit is accounted exactly, as one
# Gaussian mechanism with mu^2 = 2 rho. The budget is split by shares of rho (ours), or by the
# paper's fractions of epsilon, scaled until their costs add up to the same rho.


SHARES = {
    "bound": 0.05,
    "center sum": 0.04,
    "center count": 0.01,
    "second moment": 0.30,
    "weights": 0.10,
    "lift sums": 0.50,
    "lift counts": 0.05,
    "client means": 0.35,
    "client presence": 0.05,
    "lloyd sums": 0.35,
    "lloyd counts": 0.05,
}
"""Shares of rho, over their sum. The server's points make half of what the moment had before
superfluous; the lift is what the error is made of. Tuned on four data sets of the paper's kind."""

WITHOUT_SERVER = {
    **SHARES,
    "center sum": 0.08,
    "center count": 0.02,
    "second moment": 0.50,
    "lift sums": 0.35,
    "moment reach": 0.015,
    "lift reach": 0.015,
}
"""Nothing but the moment then tells where to look for clusters; where it does not, the mean is
all that is left."""

_WORDS = {
    "bound": "1: a row is in one bin of the norms",
    "center sum": "radius",
    "center count": "1",
    "second moment": "squared radius, in Frobenius norm",
    "weights": "1: a row has one nearest server point",
    "lift sums": "length that residuals are clipped to",
    "lift counts": "1",
    "lloyd sums": "length that residuals are clipped to",
    "lloyd counts": "1",
    "moment reach": "1",
    "lift reach": "1",
    "client means": "norm that local means are clipped to",
    "client presence": "norm that presence bits are clipped to",
}


def entries_of(
    rounds: tuple[str, ...],
    target: PrivacyBudget,
    unit: str,
    *,
    paper: bool = False,
    laplace: bool = False,
    shared: bool = False,
) -> tuple[PlanEntry, ...]:
    """Plan entries of rounds of these kinds, which together cost no more than the target.

    `paper`: the paper's split of epsilon, instead of the shares of rho. `laplace`: Laplace noise
    for counts; the plan is then accounted as zCDP. `shared`: noise in shares; every release has a
    delta of its own."""
    uses = Counter(name for kind in rounds for name in ANSWERS[kind])
    mechanism = {
        name: Mechanism.LAPLACE if laplace and is_count(name) else Mechanism.GAUSSIAN
        for name in uses
    }
    gaussian = Mechanism.LAPLACE not in mechanism.values()
    delta = {name: SHARES_DELTA * number if shared else 0.0 for name, number in uses.items()}
    rho = target.to_rho(gaussian=gaussian, delta_failure=math.fsum(delta.values()))
    if paper:
        costs = paper_costs(uses, mechanism, rho, target.delta, unit)
    else:  # shares of rho; every use of an entry has its own
        shares = WITHOUT_SERVER if "center sum" in uses else SHARES
        whole = math.fsum(shares[name] * uses[name] for name in uses)
        # Rounded down twice: shares of sum at most one then cost at most rho.
        costs = {name: rho * (shares[name] * uses[name] / whole) * (1 - 2.0**-48) for name in uses}
    words = dict.fromkeys(uses, "norm that the whole vector of a client is clipped to")
    if unit == "row":
        words = _WORDS
    return tuple(
        PlanEntry(name, mechanism[name], costs[name], delta[name], uses=n, sensitivity=words[name])
        for name, n in uses.items()
    )


@lru_cache(maxsize=256)
def laplace_epsilon(rho: float) -> float:
    """The largest epsilon (up to rounding) of a Laplace release that costs at most rho.

    >>> laplace_zcdp_rho(laplace_epsilon(0.125)) <= 0.125 < laplace_zcdp_rho(0.55)
    True
    """
    low, high = 0.0, 1.0
    while laplace_zcdp_rho(high) <= rho:
        low, high = high, 2 * high
    for _ in range(100):
        middle = (low + high) / 2
        fits = middle > 0 and laplace_zcdp_rho(middle) <= rho
        low, high = (middle, high) if fits else (low, middle)
    return low
