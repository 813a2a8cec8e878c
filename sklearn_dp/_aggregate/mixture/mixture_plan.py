"""The plan of a mixture, from public facts only.

Paid for are the columns (9% of rho, or 6% without histograms of values), the location (5%), the
partition, the radii of the start (5%), and by all that is left the rounds of moments. With two
halves of units the entries are on two paths: a unit is in one half, so each half may spend the
whole budget.
"""

import dataclasses
from collections.abc import Iterable
from typing import Any

from ..._costs.plan import PlanEntry
from ..._costs.rounding import sum_down
from ..._published.easy_instances.k_tuple_mixture import tuple_stage
from ..._published.separated_gaussians.partition import partition_entries
from ..._published.separated_gaussians.spherical import spherical_entries
from ..columns.look import column_entries
from ..kmeans.engine import engine_entries
from ..moments.margins import margin_entries
from ..moments.moment_releases import moment_entries
from ..shared.adaptive_center import center_radius_entries
from ..tuples.stage import TupleStage
from .parts import Settings

PREFIX = "partition/"
RADII = "component radii"
_LOCATION_SHARE, _PARTITION_SHARE, _RADII_SHARE = 0.05, 0.25, 0.05
_MARGINS_SHARE, _COLUMNS_SHARE = 0.09, 0.06
_TREE_SHARE = 0.35  # of a partition by terrific balls
_SPHERICAL_SHARE = 0.5  # balls are costly, and spherical covariances cheap
_FAILURES = {"k_tuples": 0.5, "partition": 0.1}  # shares of delta
_ALL, _FIRST, _SECOND = (), ("first half",), ("second half",)


def failure_delta(delta: float, settings: Settings, *, whole: bool = False) -> float:
    """The part of delta for failures of mechanisms that are not Gaussian: all, if the `whole`
    budget is in zCDP; else some of it is left for the conversion to (epsilon, delta)."""
    if settings.n_components == 1 or settings.method == "coreset":
        return 0.0
    partition = settings.method == "partition" and not settings.spherical
    if partition and settings.options.balls == "joint":
        return 0.0
    return (1.0 if whole else _FAILURES[settings.method]) * delta * (1 - 1e-9)


def mixture_entries(
    rho: float, delta: float, n_features: int, settings: Settings
) -> tuple[PlanEntry, ...]:
    """Plan entries of `fit_mixture`, worth at most `rho` in all, and `delta` for failures."""
    location = center_radius_entries(rho, _LOCATION_SHARE)
    if settings.margins_released(n_features):
        location = (*margin_entries(_MARGINS_SHARE * rho), *location)
    one_component = settings.scaled and settings.n_components == 1
    if one_component and not settings.bounded and n_features > 1:
        location = (*column_entries(_COLUMNS_SHARE * rho), *location)
    rest = sum_down([rho, *(-entry.rho for entry in location)])
    if settings.n_components == 1:
        return (*location, *moment_entries(rest))
    halves, entries = _split_entries(rho, rest, delta, n_features, settings)
    paths = _SECOND if halves else _ALL
    words = "a unit adds 1 to the histograms of distances from its center"
    radii = dataclasses.replace(PlanEntry.gaussian(RADII, _RADII_SHARE * rho, words), paths=paths)
    spent = [-entry.rho for entry in entries if entry.paths == paths]
    remaining = sum_down([rest, *spent, -radii.rho])
    # Where a path leaves something, it goes to the moments.
    most = sum_down([rest, -radii.rho])
    moments = [
        dataclasses.replace(entry, paths=paths, max_rho=most)
        for entry in moment_entries(remaining, tails=False)
    ]
    return (*location, *entries, radii, *moments)


def _split_entries(
    rho: float, rest: float, delta: float, n_features: int, settings: Settings
) -> tuple[bool, tuple[PlanEntry, ...]]:
    """True if there are two halves of units, and the entries of the partition, of the `rest`."""
    if settings.spherical:
        second = _SPHERICAL_SHARE * rho
        return True, spherical_entries(second, delta, rest, settings, n_features, PREFIX)
    if settings.method == "partition":
        return False, partition_entries(_TREE_SHARE * rho, delta, settings, n_features, PREFIX)
    share, k = _PARTITION_SHARE * rho, settings.n_components
    engine = engine_entries(share, n_features, bounds_known=True, prefix=PREFIX, n_clusters=k)
    stage = stage_of(rho, delta, settings, n_features)
    if stage is None or not stage.size:
        return False, engine
    return True, (*_on(stage.entries(), _FIRST), *_on(engine, _SECOND))


def _on(entries: Iterable[PlanEntry], paths: Any) -> tuple[PlanEntry, ...]:
    return tuple(dataclasses.replace(entry, paths=paths) for entry in entries)


def stage_of(rho: float, delta: float, settings: Settings, n_features: int) -> TupleStage | None:
    """The aggregation of tuples, which has the whole budget but for the location; or None."""
    if settings.method != "k_tuples":
        return None
    spent = sum_down([rho, *(-entry.rho for entry in center_radius_entries(rho, _LOCATION_SHARE))])
    return tuple_stage(spent, delta, settings, n_features)
