"""Standard errors of a federated fit: what its last round leaves in doubt, and sampling.

All of it is post-processing of releases and of public points. Of a coordinate of a center it is
the variance that the Kalman step has left (`State.doubts`) and that of drawing the units: the mean
squared distance of units from their center, over their number and the number of features. How far
units are from their centers is no release of its own: it is what the centers leave of the trace of
the released moment and, where there are server data, as the server's points are from them. (Not
by their noisy weights: points in the middle of a cluster are nearest to more rows than others.)

Nothing is said where releases are taken for exact, as in the paper, or have Laplace noise, whose
intervals are not normal.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._aggregate.shared.advice import Budget, hidden_in_noise
from .._aggregate.shared.column_codes import codes_by_column, codes_of_centers, told_by_column
from .._aggregate.shared.column_means import unrefined_centers
from .._aggregate.shared.narrow_bounds import told_of_centers
from .._queries.coordinates import Columns
from .._status import Status
from ._prior import nearest_of
from ._state import State

_CODES = ("cluster_centers_status_", "column_status_")
WITH_ERRORS = {
    "cluster_centers_": (-math.inf, math.inf),
    "cluster_weights_": (0.0, math.inf),
}
_COMMON = 5.0  # points of the mean of all, beside the public points of a cluster
_UNLIKE = 0.5  # part by which the spread of the server's points may be another one
_FEW_POINTS = 20  # of the server: no more tell the spread of a column
_NO_SPREAD = 1e-100  # in squared steps; the inverse of its square is no float
_TOO_SHORT = 0.01  # of the typical distance of a unit: a residual is clipped later than there
_WHOLE_RANGE = 1.9  # standard errors; 95% intervals have 1.96
_LEAST_FOLLOWS = 0.2  # part of its way that a clipped mean is taken to have gone at least


def keep_errors(model: Any, state: State, budget: Budget) -> None:
    """Set the standard errors of a model in the order of its centers, and what they mean for its
    status. `state` is that after the last round."""
    for name in (*(f"{name}std_error_" for name in WITH_ERRORS), *_CODES):
        vars(model).pop(name, None)  # a fit before this one may have had them
    released = center_errors(state)
    if released is None or state.counts is None:
        return
    noise, others, counts_sd = released
    order = np.argsort(-np.asarray(state.counts), kind="stable")
    d, unit = state.setup.n_features, state.unit
    model.cluster_centers_std_error_ = np.repeat(
        (np.hypot(noise, others) * unit)[order, None], d, axis=1
    )
    model.cluster_weights_std_error_ = count_errors(state)[order]
    if not model.messages_ and len(order) > 1:
        model.messages_ = _hidden(state, noise, counts_sd, budget)
    names = model._column_names
    columns, errors = _columns(state, others), model.cluster_centers_std_error_[:, 0]
    by_column = unrefined_centers(columns, model.cluster_centers_, errors)
    numbers = np.asarray(state.counts)[order], np.full(len(order), counts_sd)
    codes, domain = codes_of_centers(by_column, *numbers), state.setup.domain
    model.messages_ = told_by_column(model.messages_, by_column, codes, names)
    if domain is not None:
        real = numbers[0] > 3 * counts_sd
        spread = np.full(d, _typical(state, others))
        centers = model.cluster_centers_[real]
        mean = centers.sum(axis=0) / max(len(centers), 1)
        place = centers, model.cluster_centers_std_error_[real], mean
        model.messages_, cut = told_of_centers(model.messages_, domain, *place, spread, names)
        codes[:, cut] = np.where(codes[:, cut] == "ok", "bound", codes[:, cut])
    model.cluster_centers_status_ = codes
    model.column_status_ = codes_by_column(model.cluster_centers_status_)


def _columns(state: State, others: np.ndarray) -> Columns:
    """The units of the columns, as public points or the sides of a box tell them. Otherwise the
    spread of a typical column, of the centers and, by the error `others` of drawing their units,
    about them."""
    setup = state.setup
    if setup.server is not None and len(setup.server) > _FEW_POINTS:
        spread = np.std(setup.server, axis=0)
        if (spread > 0).all():
            return Columns(np.zeros(setup.n_features), spread, True)
    columns = Columns.of(setup.domain, setup.n_features)
    if columns.scaled:
        return columns
    typical = np.full(setup.n_features, _typical(state, others))
    return Columns(np.zeros(setup.n_features), typical, False)


def _typical(state: State, others: np.ndarray) -> float:
    """The spread of a typical column: of the centers, and by `others` of units about them."""
    counts = np.maximum(np.asarray(state.counts), state.counts_sd or 0.0)
    spread = np.square(_away(state)).mean(axis=1) + counts * np.square(others)
    return state.unit * math.sqrt(np.average(spread, weights=counts))


def _away(state: State) -> np.ndarray:
    """The centers (k, d) about the mean of all, in steps."""
    anchors, counts = np.asarray(state.anchors), np.asarray(state.counts)
    weights = np.maximum(counts, state.counts_sd or 0.0)
    return anchors - weights @ anchors / weights.sum()


def center_errors(state: State) -> tuple[np.ndarray, np.ndarray, float] | None:
    """Standard errors of centers and counts; None where there are no honest ones.

    After the last round: for each cluster the noise of each coordinate of its center, in steps and
    without sampling; the same for drawing the units, and for what clipping may have kept from the
    centers; and the noise of a count.
    """
    setup = state.setup
    if state.doubts is None or state.counts_sd is None or setup.laplace or not setup.residuals:
        return None
    d, counts = setup.n_features, np.maximum(np.asarray(state.counts), state.counts_sd)
    units = _units(state)
    if units is None:
        return None
    spread, follows = units
    # A clipped mean follows its units for a part g of the way: (1 - g) / g of what it went is left.
    remainder = (1 - follows) / np.maximum(follows, _LEAST_FOLLOWS) * np.asarray(state.moved)
    variance = spread / (d * counts) + np.square(remainder) / d
    return np.sqrt(state.doubts[0]), np.sqrt(variance), float(state.counts_sd)


def count_errors(state: State) -> np.ndarray:
    """Standard errors of the counts: of their noise, and for what clipping may have taken.

    A client's counts over its rows sum to one, so their norm is between a bound and one: released
    are between that share of them and all of them. Clients made of the server's points say what is
    typical, and not what these clients are: a 95% interval holds the whole range.
    """
    taken = np.maximum(np.asarray(state.counts), 0.0) * (1 / state.counts_share - 1)
    return float(state.counts_sd or 0.0) + taken / _WHOLE_RANGE


def _units(state: State) -> tuple[np.ndarray, np.ndarray] | None:
    """Estimate the units of each cluster from the public points, or from the released variance.

    Their mean squared distance (k,) from their center, and the mean derivative (k,) of a clipped
    residual by its length, along all axes: 1 where it is not clipped, and the limit over
    the length in the d - 1 directions across it where it is. In squared steps.

    None where the public points are nothing like the units: as many of them as there are centers
    have no distances from their centers, and whatever they are clipped at says nothing of units.
    """
    anchors, d = np.asarray(state.anchors), state.setup.n_features
    counts = np.maximum(np.asarray(state.counts), 0.0)
    n = max(float(counts.sum()), 1.0)
    between = float(counts @ np.square(anchors).sum(axis=1))
    unexplained, left_sd = max(state.square - between, 0.0) / n, state.square_sd / n
    if state.proxy is None:
        return np.full(len(anchors), unexplained), np.ones(len(anchors))
    near = nearest_of(state.proxy, anchors)
    square = np.square(state.proxy - anchors[near]).sum(axis=1)
    own_means, common = _means(square, near, len(anchors)), float(square.mean())
    if common < _NO_SPREAD or state.limit < _TOO_SHORT * math.sqrt(unexplained):
        return None
    # The server's points may be half as far again, or half as far: by inverse variance.
    precisions = 1 / max(_UNLIKE * common, 1e-300) ** 2, 1 / max(left_sd, 1e-300) ** 2
    typical = float(np.average([common, unexplained], weights=precisions))
    beyond = state.limit / np.maximum(np.sqrt(square), 1e-300)
    follows = np.where(beyond >= 1, 1.0, beyond * (1 - 1 / d))
    return own_means * (typical / max(common, 1e-300)), _means(follows, near, len(anchors))


def _means(values: np.ndarray, near: np.ndarray, k: int) -> np.ndarray:
    """Means by cluster, each with `_COMMON` points more of the mean of all."""
    number = np.bincount(near, minlength=k) + _COMMON
    return (np.bincount(near, values, minlength=k) + _COMMON * values.mean()) / number


def _hidden(state: State, noise: np.ndarray, counts_sd: float, budget: Budget) -> Status:
    """Return a status that says whether the noise of a typical center is as large as half of what
    the centers differ by."""
    counts, away = np.asarray(state.counts), np.square(_away(state)).mean(axis=1)
    spread = math.sqrt(float(np.average(away, weights=np.maximum(counts, counts_sd))))
    size = float(counts.sum())
    least = size - 2 * counts_sd * math.sqrt(len(counts))
    error = float(np.median(noise))
    return hidden_in_noise(
        "the centers", error, spread, budget, size, least, units="rows or clients"
    )
