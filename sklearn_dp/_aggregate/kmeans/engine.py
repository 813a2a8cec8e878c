"""The k-means engine: from rows to released centers, in one plan of Gaussian releases.

1. a bound of the rows, where there is no public one: a histogram of norms (`shared.bounds`);
2. the rows as integers on a grid of that bound (`_rows.rows`): free of cost;
3. their sum and number: the center (`shared.centering`);
4. a histogram of the distances from it: the radius, a better number of rows, whether they have long
   tails (:mod:`.coreset`);
5. from 4 features on, the second moment: the axes along which cells are cut (:mod:`.coreset`);
6. counts and means of the cells of a noisy tree: the coreset (:mod:`.coreset`); of a single column,
   its noisy ranks (:class:`.coreset.Line`); and the number of clusters, where it is to be chosen
   (:mod:`.n_clusters`);
7. weighted k-means of the coreset, with more centers than asked for (:mod:`.coreset`): free;
8. Lloyd's iterations from there, with all the budget that is left (:mod:`.lloyd`);
9. how far the rows are from the answer (:mod:`.quality`), and the status (:mod:`.result`).

With centers to start from, steps 5 to 7 are left out, and no cluster is merged or split.

All releases are Gaussian. So a fit is exactly mu-Gaussian-DP with mu = sqrt(2 rho), although some
shares and the number of iterations follow from earlier releases: see "Accounting" in
`doc/development/kmeans_engine.md`, and "Shares of the budget" there.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import gammaincinv

from ..._costs.numbers import sum_down
from ..._costs.plan import PlanEntry
from ..._privacy._grid import Domain, Sphere
from ..._privacy._session import PrivacySession
from ..._queries._query import TableRows
from ..._queries.clusters import Pinned
from ..._queries.grids import BASIS_BITS, Axes, GridRows
from ..shared.bounds import known_or_paid, normal_points, second_moment
from ..shared.centering import noise_sd
from .coreset import (
    CELLS,
    CENTER,
    LINE,
    MEANS,
    MOMENT,
    RADIUS,
    Coreset,
    Line,
    axes_of,
    axis_coreset,
    build_coreset,
    column_coreset,
    release_location,
    ruling_axis,
    solved_start,
)
from .fit_context import (
    TUNING,
    Candidates,
    Choice,
    Context,
    Run,
    SizedFacts,
    Tuning,
    lost_in_noise,
    with_few_iterations,
)
from .lloyd import lloyd, lloyd_budget, lloyd_entries
from .lloyd_state import LloydState
from .n_clusters import choice_entries, choose, reference_number
from .quality import QUALITY, quality_entry
from .result import EngineResult, build_result, measured

# -- projection ------------------------------------------------------------------------------------
# Many clusters in many features: found in a public random projection, then moved in all features.
#
# Each of Lloyd's iterations pays the noise of all features, and the axes of the cell tree are the
# widest ones of the rows. Where all clusters are long in the same directions, as those of
# embeddings are, these axes tell none of them apart. A random projection onto q features keeps the
# distances of clusters up to a factor 1 +- 1 / sqrt(2 q), and pays the noise of q features. So with
# many features
#
# 1. the second moment of the projected rows is released. If its axes are more uneven than random
#    centers make them, clusters are taken to be long in the same ones, and the fit goes on here;
#    otherwise it goes on without a projection;
# 2. the axes are drawn toward the same width, so that what all clusters share does not hide what
#    differs;
# 3. the cell tree and noisy Lloyd iterations find the clusters, with a part of the budget;
# 4. rows keep the labels that they have there, for one of a few iterations in all features, which
#    move the centers (:func:`_from_projection`).
#
# The projection is public randomness, the same for neighbors. A projected row is a function of the
# row and of released values, and an integer vector of norm at most `limit`: all that is proved of
# rows holds of projected ones, with the same entries of the plan. "Projection" in
# `doc/development/kmeans_engine.md` tells how good it is.


_TIMES = 4  # as many features as a projection has: from there on it may pay


def may_project(n_features: int, n_clusters: int, tuning: Tuning) -> bool:
    """True if there are more features, and more clusters, than a cell tree could tell apart."""
    many = n_features >= _TIMES * tuning.projection_features
    return many and n_clusters > tuning.most_axes + 1


class Projected(NamedTuple):
    """Where clusters are looked for in a projection."""

    context: Context  # of the projected rows
    axes: Axes  # of the cell tree
    back: np.ndarray  # (q, d), from projected centers to nearest points of the whole space


def projected(context: Context) -> Projected | None:
    """The fit in a projection, where its released second moment shows that it pays, or None."""
    tuning, size = context.tuning, context.size
    d, q = context.rows.n_features, tuning.projection_features
    if size.small or not may_project(d, context.n_clusters, tuning):
        return None
    basis = np.linalg.qr(normal_points(context.session.rng("projection"), d, np.ones(q)))[0]
    # A row keeps about sqrt(q / d) of its length: few are longer by a third.
    reach = min(context.radius, tuning.projection_reach * context.radius * math.sqrt(q / d))
    rho = tuning.second_moment * context.session.plan[context.name(MOMENT)].rho
    rows = _projected(context.rows, basis)
    moment = second_moment(context.session, context.name(MOMENT), rows, reach, rho) / size.n
    rows.unproject()
    noise = reach**2 * noise_sd(rho) / size.n
    values, vectors = np.linalg.eigh(moment)
    values = np.maximum(values, noise)  # not to divide by less than the noise
    if not _in_common(values, noise, context.n_clusters, tuning):
        return None
    # The widest axis comes first, and the narrowest one stays as it is.
    values, basis = values[::-1], basis @ vectors[:, ::-1]
    drawn = (values[-1] / values) ** (tuning.projection_whitening / 2)
    spread = drawn * np.sqrt(values)
    radius = min(context.radius, tuning.projection_reach * float(np.linalg.norm(spread)))
    inner = replace(context, rows=_projected(context.rows, basis * drawn), radius=radius)
    q = min(tuning.most_axes, len(spread))  # the widest of the features are for the cell tree
    axes = Axes(
        np.eye(len(spread), q) * 2.0**BASIS_BITS,
        spread[:q],
        np.minimum(radius, tuning.box_reach * spread[:q]),
        radius,
        float(np.square(spread[q:]).sum()),
    )
    return Projected(inner, axes, (basis / drawn).T)


def _projected(rows: GridRows, basis: np.ndarray) -> GridRows:
    return rows.project(np.rint(basis * 2.0**BASIS_BITS))


def _in_common(values: np.ndarray, noise: float, n_clusters: int, tuning: Tuning) -> bool:
    """True if axes of mean squares (q,) are more uneven, and more so to one side, than the centers
    of clusters make them.

    The logarithm of their mean over their geometric mean is about half of their relative variance.
    That of k - 1 random directions is q / (k - 1) (Marchenko and Pastur 1967), times the square of
    the part that lies between clusters; their skewness is the root of q / (k - 1). A matrix of
    `noise`, on its diagonal, adds q / 2 times its square to that variance."""
    mean, q = float(values.mean()), len(values)
    uneven = math.log(mean) - float(np.log(values).mean()) - q / 4 * (noise / mean) ** 2
    skewness = float(np.mean((values - mean) ** 3)) / float(np.var(values)) ** 1.5
    ratio = q / (n_clusters - 1)
    return uneven > tuning.projection_uneven * ratio and skewness > math.sqrt(ratio) + 3 / q


# -- engine ----------------------------------------------------------------------------------------


BOUND = "bound"


def _shares(n_features: int, tuning: Tuning) -> dict[str, tuple[float, float]]:
    """Nominal and largest shares of the releases before Lloyd's iterations."""
    flat, moment = n_features <= 3, tuning.moment_share
    radius = tuning.center_share if flat else tuning.radius_share
    far = tuning.flat_cells + tuning.far_cells
    if n_features == 1:
        cells, means = tuning.cells_share, tuning.means_share
        line = cells + means, cells * far + means
        return {CENTER: (tuning.center_share,) * 2, RADIUS: (radius,) * 2, LINE: line}
    return {
        CENTER: (tuning.center_share,) * 2,
        RADIUS: (radius,) * 2,
        **({} if flat else {MOMENT: (moment, moment * (1 + tuning.second_moment))}),
        CELLS: (tuning.cells_share, tuning.cells_share * far),
        MEANS: (tuning.means_share,) * 2,
    }


_WORDS = {
    BOUND: "a unit adds 1 to the histogram of norms",
    CENTER: "sqrt(5)/2 radius: the sum moves by the radius, half a radius times the count too",
    RADIUS: "a unit adds 1 to the histogram of distances from the center",
    MOMENT: "squared radius in Frobenius norm",
    LINE: "a unit adds at most one column of the root of sums",
    CELLS: "a unit adds 1 to the cells of each level, or a column of the root of sums to ranks",
    MEANS: "a unit adds a residual clipped to the reach of its cell",
}


def engine_entries(
    rho: float,
    n_features: int,
    *,
    bounds_known: bool,
    prefix: str = "",
    quality: bool = False,
    n_clusters: int | Candidates = 1,
) -> tuple[PlanEntry, ...]:
    """Plan entries of `fit_engine`, of `rho` in all, from parameters and public facts alone."""
    entries = first_entries(rho, n_features, TUNING, bounds_known=bounds_known, prefix=prefix)
    rest = sum_down([rho, *(-entry.rho for entry in entries)])
    choice = choice_entries(n_clusters, n_features, rest, rho, prefix)
    rest = sum_down([rest, *(-entry.rho for entry in choice)])
    return (*entries, *choice, *last_entries(rest, rho, prefix, quality=quality))


def started_entries(rho: float, n_features: int, *, bounds_known: bool) -> tuple[PlanEntry, ...]:
    """Plan entries of `fit_engine` with centers to start from, and with the quality."""
    first = first_entries(rho, n_features, TUNING, bounds_known=bounds_known)
    first = tuple(entry for entry in first if entry.name in (BOUND, CENTER, RADIUS))
    rest = sum_down([rho, *(-entry.rho for entry in first)])
    return (*first, *last_entries(rest, rho, quality=True, moves=False))


def first_entries(
    rho: float, n_features: int, tuning: Tuning, *, bounds_known: bool, prefix: str = ""
) -> tuple[PlanEntry, ...]:
    """Entries of what comes before Lloyd's iterations; `rho` is that of all."""
    entries: list[PlanEntry] = []
    shares = _shares(n_features, tuning)
    if not bounds_known:
        shares = {BOUND: (tuning.center_share,) * 2, **shares}
    # Cells are counted level by level, and the moment of a projection comes before the other one.
    many = n_features >= _TIMES * tuning.projection_features
    several = {CELLS, MOMENT} if many else {CELLS}
    part = rho
    for name, (share, most) in shares.items():
        # Rounded down: shares that sum to at most one then cost at most rho.
        entry = PlanEntry.gaussian(
            prefix + name,
            math.nextafter(part * share, 0.0),
            _WORDS[name],
            uses=None if name in several else 1,
            max_rho=math.nextafter(part * most, 0.0),
        )
        entries.append(entry)
        if name == BOUND:
            part = sum_down([rho, -entry.rho])
    return tuple(entries)


def last_entries(
    rho: float, cap: float, prefix: str = "", *, quality: bool = False, moves: bool = True
) -> tuple[PlanEntry, ...]:
    """Entries of Lloyd's iterations (at most `cap`) and of the quality: worth `rho` in all."""
    if not quality:
        return lloyd_entries(rho, cap, prefix, moves=moves)
    last = quality_entry(math.nextafter(rho * TUNING.quality_share, 0.0), prefix)
    return (*lloyd_entries(sum_down([rho, -last.rho]), cap, prefix, moves=moves), last)


class Start(NamedTuple):
    """Where Lloyd's iterations may start from: public, or released before."""

    centers: np.ndarray  # (k, d)
    misplaced: float = 0.0  # about how many of them may be in the wrong cluster


def fit_engine(
    session: PrivacySession,
    table: TableRows,
    domain: Domain | None,
    n_clusters: int | Candidates,
    *,
    start: Start | None = None,
    prefix: str = "",
    callback: Callable[[str], object] | None = None,
    rows: GridRows | None = None,
    on_size_released: Callable[[float], object] | None = None,
) -> EngineResult:
    """Release the centers of k clusters, where k may be chosen here; the table may have no rows.

    What earlier releases left is spent too, up to the caps. `callback` is called with the name of
    each Lloyd iteration when it is done; `on_size_released` with the released number of units, once
    it is known: it may release and waive entries that follow in the plan."""
    domain, status, norms = known_or_paid(session, prefix + BOUND, table, domain)
    run = Run(
        session=session,
        rows=GridRows.quantize(table, domain) if rows is None else rows,
        n_clusters=reference_number(n_clusters),
        prefix=prefix,
        tuning=TUNING,
        callback=callback,
    )
    left = lloyd_budget(session, prefix)
    context = release_location(run, math.sqrt(2 * left))
    if on_size_released is not None:
        on_size_released(context.size.n)
        left = lloyd_budget(session, prefix)
    if start is not None and not _misleads(context, start):
        # Lloyd's iterations from centers that are given.
        points = (domain.clip_points(start.centers) - domain.center) / context.rows.unit
        final = lloyd(replace(context, moves=False), points - context.rows.origin)
        # Treat given centers as found by the cells.
        found = StartOutcome(context, final, len(start.centers))
    else:
        found = _from_coreset(context, n_clusters, left, domain)
    # Rows of one length are not beyond it.
    bounds = None if norms is not None or isinstance(domain, Sphere) else domain
    context, final, n_leaves, choice, line = found
    measurement = measured(context, final, domain, n_leaves, bounds, line)
    result = build_result(context, final, domain, status, n_leaves, measurement)
    unit = context.session.plan.unit
    return result.chosen(choice).bounded(norms, domain, context.size.n, context.size.sd, unit)


class StartOutcome(NamedTuple):
    """Centers, and what they were found with."""

    context: Context  # of their number
    final: LloydState
    n_leaves: int | None  # cells that stood out of the noise; None if no tree was built
    choice: Choice | None = None  # of the number; None where it was given
    line: Line | None = None  # along a single axis, if that is where they were found


def _from_coreset(
    context: Context, n_clusters: int | Candidates, left: float, domain: Domain
) -> StartOutcome:
    """Lloyd's iterations from where the coreset shows clusters, or about one center."""
    given, quality = not isinstance(n_clusters, Candidates), context.pays(QUALITY)
    if quality and given and lost_in_noise(context, left / 2):
        return StartOutcome(context, _about_one(context), None)
    sketch = projected(context) if given else None
    if sketch is None:
        coreset = _coreset(context, domain=domain if given else None)
    else:
        coreset = _coreset(sketch.context, sketch.axes)
    choice = choose(context, coreset, n_clusters)
    if choice is not None:
        context = replace(context, n_clusters=choice.n_clusters)
    if sketch is not None:
        final = _from_projection(context, sketch, coreset)
    elif quality and lost_in_noise(context, lloyd_budget(context.session, context.prefix)):
        final = _about_one(context, coreset)
    elif choice is not None and choice.start is not None:
        final = lloyd(context, *choice.start, coreset=coreset)
    elif isinstance(coreset, Line):
        start = solved_start(context, coreset)
        final = lloyd(replace(context, moves=False), start, coreset=coreset)
        return StartOutcome(context, final, coreset.n_leaves, choice, coreset)
    else:
        final = lloyd(context, solved_start(context, coreset), coreset=coreset)
    return StartOutcome(context, final, coreset.n_leaves, choice)


def _about_one(context: Context, coreset: Coreset | None = None) -> LloydState:
    """The iterations of a single center, from the released one."""
    origin = np.zeros((1, context.rows.n_features))
    return lloyd(with_few_iterations(context, n_clusters=1), origin, coreset=coreset)


def _from_projection(context: Context, sketch: Projected, coreset: Coreset) -> LloydState:
    """Lloyd's iterations among the projected rows, by half of the budget, then in all features."""
    reserve = lloyd_budget(context.session, context.prefix) / 2
    n = 2 * context.tuning.most_iterations
    tuning = replace(context.tuning, most_iterations=n, few_iterations=n)
    inner = replace(sketch.context, tuning=tuning, reserve=reserve)
    found = lloyd(inner, solved_start(inner, coreset), coreset=coreset)
    centers = inner.rows.inside(found.centers)
    inner.rows.apply(Pinned(centers))
    inner.rows.unproject()
    final = lloyd(with_few_iterations(context, moves=False), centers @ sketch.back)
    final.n_iterations += found.n_iterations
    return final


def _coreset(context: Context, axes: Axes | None = None, domain: Domain | None = None) -> Coreset:
    """Leaves of a cell tree, along measured axes if none are given; or bins of a single axis."""
    fraction = _initial_budget_fraction(context)
    if context.pays(LINE):
        return column_coreset(context, fraction)
    first = None
    if axes is None:
        axes, first = axes_of(context, fraction)
    cells_rho, far_rho = _cell_shares(context, axes, fraction)
    ruling = None if domain is None else ruling_axis(context, domain, axes, first)
    if ruling is not None:
        rho = context.tuning.ruling_share * context.left(CELLS)
        coreset = axis_coreset(context, *ruling, CELLS, rho)
        if _still_rules(context, coreset):
            return coreset
        cells_rho, far_rho = context.left(CELLS), 0.0
    return build_coreset(context, axes, cells_rho, far_rho)


def _still_rules(context: Context, coreset: Coreset) -> bool:
    """True if what clusters along an axis leave is more than what is off it."""
    weights = coreset.leaves[1]
    _, squares, _ = coreset.nearest(solved_start(context, coreset))
    left = float(weights @ squares) / max(float(weights.sum()), 1e-300)
    return left > coreset.axes.rest


def _initial_budget_fraction(facts: SizedFacts) -> float:
    """Part of the start's shares to spend: less where the noise of Lloyd's iterations rules."""
    if facts.coarse:
        return 1.0
    tuning = facts.tuning
    faint = tuning.level_signal * facts.n_clusters / facts.size.signal
    return min(1.0, max(facts.lean, faint**2 / tuning.cells_share))


def _misleads(facts: SizedFacts, start: Start) -> bool:
    """True if a start of the fit's own is better than one where some centers may be misplaced:
    these cost what half a cluster does or more, an own start what the noise hides."""
    most = 2 * facts.tuning.lean_noise * math.sqrt(start.misplaced)
    return facts.noise_of_center <= most


def _cell_shares(context: Context, axes: Axes, fraction: float) -> tuple[float, float]:
    """For the cell tree, and for a last look at far rows, which Lloyd's iterations pay for."""
    tuning, few = context.tuning, len(axes.spread) <= 3
    nominal = context.session.plan[context.name(CELLS)].rho
    rho = nominal * (tuning.flat_cells if few else 1.0) * fraction
    look = far_look_pays(context, axes, rho)
    return math.nextafter(rho, 0.0), tuning.far_cells * nominal if look else 0.0


def far_look_pays(facts: SizedFacts, axes: Axes, rho: float) -> bool:
    """True if it pays to look once more, with coarse cells, at rows that are in no cell: where the
    tail is longer than that of one round cluster, in many features than the searched box."""
    size, tuning, d = facts.size, facts.tuning, facts.rows.n_features
    if axes.basis is not None and d <= tuning.wide_features:
        # Squared lengths of the rows of a round cluster have the law of gamma.
        round_tail = gammaincinv(d / 2, max(tuning.inside)) / gammaincinv(d / 2, 0.5)
        return size.tail**2 > round_tail
    if size.tail <= tuning.box_reach:
        return False
    if axes.basis is not None:
        return not size.small
    large = size.n / facts.n_clusters > tuning.far_rows * noise_sd(rho / 4)
    return d == 3 if size.small else large
