"""Seeded bugs of the building blocks: the mistakes that published implementations make."""

import math
from dataclasses import replace

import numpy as np
from grid_tools import parts_in_memory, rows_in_memory

from sklearn_dp._aggregate import tuples as _tuple_stage
from sklearn_dp._aggregate.columns import moments as _moments
from sklearn_dp._aggregate.friendly import refine as _averages
from sklearn_dp._aggregate.friendly import refine as _refine
from sklearn_dp._aggregate.kmeans import coreset as _coreset
from sklearn_dp._aggregate.kmeans import lloyd as _lloyd
from sklearn_dp._aggregate.kmeans import quality as _quality
from sklearn_dp._aggregate.kmeans.fit_context import Run
from sklearn_dp._privacy import _products
from sklearn_dp._privacy._units import exact_of, opened
from sklearn_dp._queries import averages as _friendly_core
from sklearn_dp._queries import blocks as _blocks
from sklearn_dp._queries import columns as _columns
from sklearn_dp._queries import names as _names
from sklearn_dp._queries import point_pairs as _ball_moments
from sklearn_dp._queries import ranks as _ranks
from sklearn_dp._queries import tuples as _tuples
from sklearn_dp._queries import vectors as _vectors
from sklearn_dp._queries._query import TableRows
from sklearn_dp._queries.clusters import CappedSquares, CappedSum
from sklearn_dp._rows import rows as _row_sums
from sklearn_dp._status import Message, Status
from sklearn_dp.cluster import _dp_k_tuple_kmeans as _k_tuple_kmeans
from sklearn_dp.cluster._dp_k_tuple_kmeans import DPKTupleKMeans
from sklearn_dp.cluster._dp_kmeans import DPKMeans
from sklearn_dp.preprocessing import _dp_quantiles as _quantiles

from .planting import mutant


def _rows_of(X):
    """The rows that a fit has: those of a table of one part, or the array itself."""
    if isinstance(X, TableRows):
        (part,) = parts_in_memory(X)
        return part.source.read()
    return X


# -- scores ----------------------------------------------------------------------------------------


@mutant("private_score: half of the claim", "check_replay_of_methods", CappedSum, "on")
def _(original):
    def on(self, part):
        part, (total,) = original(self, part)
        return part, (2 * total,)

    return on


@mutant("private_score: NaN as an integer", "check_replay_of_methods", CappedSum, "on")
def _(original):
    def on(self, part):
        part, (total,) = original(self, part)
        small = self.cap <= part["rows"].unit
        return part, (np.full_like(total, -(2**63)) if small else total,)

    return on


# -- k-means engine --------------------------------------------------------------------------------


@mutant("Lloyd: early stop on true counts", "check_replay", _lloyd, "_iterate")
def _(original):
    def iterate(context, estimate, number, last):
        settled = original(context, estimate, number, last)
        labels, _ = _row_sums.nearest(rows_in_memory(context.rows), np.rint(estimate.centers))
        # Whatever the rule: here one that most pairs of neighbors tell apart.
        return settled or np.bincount(labels, minlength=len(estimate.centers)).max() % 2 == 0

    return iterate


@mutant("Lloyd: empty cluster skipped", "check_replay", Run, "released")
def _(original):
    def released(self, entry, answer, *others):
        exact = opened(answer, self.session.plan)
        if np.ndim(exact) == 2 and (exact == 0).all(axis=1).any():
            return np.zeros(exact.shape)
        return original(self, entry, answer, *others)

    return released


@mutant("Lloyd: clip skipped", "check_replay", _row_sums, "clipped_sums")
def _(original):
    def clipped_sums(rows, centers, labels, squared, limits, units):
        return original(rows, centers, labels, squared, limits * 1e3, units)

    return clipped_sums


@mutant("Lloyd: clip radius from the data", "check_replay", _lloyd, "clip_radius")
def _(original):
    def clip_radius(context, *others):
        clip = original(context, *others)
        (part,) = parts_in_memory(context.rows)
        middle = math.sqrt(np.median(np.append(part["clusters"].squared, 1.0)))
        return replace(clip, radius=np.maximum(1.0, np.minimum(clip.radius, middle)))

    return clip_radius


@mutant(
    "Lloyd: errors without a cap", "check_replay check_replay_of_methods", _row_sums, "square_sums"
)
def _(original):
    # Where the centers are not those of Lloyd, scores have such sums.
    def square_sums(labels, squared, cap, n_labels, units):
        caps = np.broadcast_to(cap, n_labels)
        steps = squared / caps[labels] * _row_sums.ERROR_STEPS
        return np.bincount(labels, steps, minlength=n_labels).astype(np.int64)

    return square_sums


@mutant("quality: squared distances without a cap", "check_replay", CappedSquares, "on")
def _(original):
    def on(self, part):
        # Caps a thousand times as far, in steps of what is claimed.
        far = replace(self, caps=1e6 * self.caps, largest=1e6 * self.largest)
        part, (steps,) = original(far, part)
        return part, (steps * 10**6,)

    return on


def _after_a_fit(change):
    """Another value of an attribute of k-means, by the rows of the fit."""

    def wrap(original):
        def fit_table(self, table, *others):
            original(self, table, *others)
            change(self, _rows_of(table))

        return fit_table

    return wrap


def _true_counts(self, rows):
    return np.bincount(self.predict(rows), minlength=len(self.cluster_centers_))


@mutant("quality: exact inertia", "check_replay", DPKMeans, "_fit_table")
@_after_a_fit
def _(self, rows):
    self.inertia_ = -self.score(rows)


@mutant("quality: status from the exact inertia", "check_replay", DPKMeans, "_fit_table")
@_after_a_fit
def _(self, rows):
    # Whatever the rule: here one that most pairs of neighbors tell apart.
    if int(1e3 * self.score(rows)) % 2:
        self.messages_ = Status([Message("noise", "mostly noise", severity="all")])


@mutant("quality: standard errors from true counts", "check_replay", DPKMeans, "_fit_table")
@_after_a_fit
def _(self, rows):
    counts = np.maximum(_true_counts(self, rows), 1)[:, None]
    self.cluster_centers_std_error_ = self.cluster_centers_std_error_ / np.sqrt(counts)


@mutant("weights without noise", "check_replay", DPKMeans, "_fit_table")
@_after_a_fit
def _(self, rows):
    self.cluster_weights_ = _true_counts(self, rows).astype(float)


@mutant("centers ordered by true counts", "check_replay", DPKMeans, "_fit_table")
@_after_a_fit
def _(self, rows):
    order = np.argsort(-_true_counts(self, rows), kind="stable")
    self.cluster_centers_ = self.cluster_centers_[order]


@mutant("quality: caps from the data", "check_replay", _quality, "measure_quality")
def _(original):
    def measure_quality(context, points, caps, *others):
        farthest = math.sqrt(rows_in_memory(context.rows).squares.max(initial=1.0))
        return original(context, points, np.minimum(caps, farthest / 4), *others)

    return measure_quality


@mutant("cells counted again without noise", "check_replay", Run, "released_cells")
def _(original):
    def released_cells(self, entry, answer, *others):
        cells, values = original(self, entry, answer, *others)
        occupied, counts = opened(answer, self.session.plan)
        exact = np.zeros(answer.n_cells)
        exact[occupied] = counts * answer.claim.unit
        shown = cells >= answer.n_cells - answer.n_shown
        # A cell that the noise alone has made may be one that no row can be in.
        return cells, np.where(shown, exact[cells], values)

    return released_cells


@mutant("radius of the data without noise", "check_replay", _coreset, "mean_radius")
def _(original):
    def mean_radius(context, *others):
        _, size = original(context, *others)
        return math.sqrt(rows_in_memory(context.rows).squares.max(initial=1.0)), size

    return mean_radius


@mutant("number of rows without noise", "check_replay", _coreset, "mean_radius")
def _(original):
    def mean_radius(context, *others):
        radius, size = original(context, *others)
        return radius, replace(size, n=float(max(rows_in_memory(context.rows).n_rows, 1)))

    return mean_radius


@mutant("second moment without a clip", "check_replay", _products, "exact_gram")
def _(original):
    return lambda parts, d, limit, *others: original(parts, d, 1e3 * limit, *others)


# -- tuples and friendly averages ------------------------------------------------------------------


@mutant("number of blocks from n", "check_replay", DPKTupleKMeans, "_start")
def _(original):
    def start(self, session, table, domain, k, stage, numbers, progress):
        self.n_tuples_ = max(2, min(self.n_tuples_, numbers.size // 20))
        return original(self, session, table, domain, k, stage, numbers, progress)

    return start


@mutant("failed blocks dropped", "check_replay", _blocks, "fit_table_blocks")
def _(original):
    def fit_table_blocks(session, table, fits, numbers=None):
        found = original(session, table, fits, numbers)
        return found[: max(2, min(len(found), len(_rows_of(table)) // 15))]

    return fit_table_blocks


@mutant("inner fits see a scale of all rows", "check_replay", _blocks, "fit_table_blocks")
def _(original):
    def fit_table_blocks(session, table, fits, numbers=None):
        numbers = _blocks.UnitNumbers.of(table) if numbers is None else numbers

        def prepare(rows):
            own = rows * (1 + 0.1 * (numbers.size % 2))
            return own if fits.prepare is None else fits.prepare(own)

        return original(session, table, replace(fits, prepare=prepare), numbers)

    return fit_table_blocks


@mutant("blocks by position within a part", "check_replay", _blocks.UnitNumbers, "draws_of")
def _(original):
    def draws_of(self, part, draws):
        n = part.units.n_rows
        return np.arange(n, dtype=np.uint64) * np.uint64((2 * n + 1) * 0x9E3779B97F4A7C15 % 2**64)

    return draws_of


@mutant("tuples not aligned", "check_replay", _tuples, "_aligned")
def _(original):
    def aligned(core, session):
        rng = np.random.default_rng(len(core))
        return np.array(
            [each[rng.permutation(len(each))] for each in original(core, session)]
        ).reshape(core.shape)

    return aligned


@mutant("radius of the tuples without noise", "check_replay", _tuple_stage, "_find_radius")
def _(original):
    return lambda session, entry, scores, grid: float(grid[np.argmax(exact_of(scores) <= 0)])


@mutant("everybody in the core", "check_replay", _friendly_core, "core_fixed_size")
def _(original):
    return lambda *others, **options: original(*others, **options) | True


@mutant(
    "friends of the others only, with a score to spare",
    "check_replay",
    _friendly_core,
    "core_add_remove",
)
def _(original):
    def core_add_remove(session, entry, friends, *others, **options):
        return original(session, entry, 2 * friends, *others, **options)

    return core_add_remove


@mutant("diameter without noise", "check_replay", _averages, "find_radius")
def _(original):
    def find_radius(session, entry, far, radii, **options):
        original(session, entry, far, radii, **options)
        return float(radii[min(np.count_nonzero(exact_of(far)), len(radii) - 1)])

    return find_radius


@mutant("mean clipped at a true quantile", "check_replay", _refine, "clip_radius")
def _(original):
    def clip_radius(session, rows, *others):
        clip = original(session, rows, *others)
        far = np.sqrt(rows_in_memory(rows).squares) * rows.unit
        radius = max(1e-9, min(clip.radius, float(np.median(np.append(far, clip.radius)))))
        return clip._replace(radius=radius)

    return clip_radius


@mutant("histograms of columns: half of the claim", "check_replay", _columns.ColumnCounts, "claims")
@mutant("refined centers: half of their claims", "check_replay", _columns.OffsetSums, "claims")
@mutant("Column moments: half of the claim", "check_replay", _vectors.VectorSums, "claims")
def _(original):
    return lambda self, facts: tuple(
        replace(each, l2=np.asarray(each.l2) / 2) for each in original(self, facts)
    )


@mutant("raw number of units used", "check_replay", _k_tuple_kmeans, "released_numbers")
def _(original):
    return lambda session, entry, numbers, units: (float(numbers.size), numbers.totals * units.step)


@mutant("points outside the ball counted", "check_replay", _ball_moments.BallMoments, "on")
def _(original):
    return lambda self, part: original(replace(self, ball=4 * self.ball, clip=4 * self.clip), part)


# -- moments of columns ----------------------------------------------------------------------------


@mutant("Column moments: a box of the rows", "check_replay", _moments, "_approached")
def _(original):
    def approached(session, table, ends, *others):
        rows, closed = _rows_of(table)[:], ends.closed
        if closed.any() and len(rows):
            low, high = np.clip([rows.min(axis=0), rows.max(axis=0)], *ends.outer)
            low, high = np.where(closed, low, ends.low), np.where(closed, high, ends.high)
            ends = replace(ends, low=low, high=np.maximum(low, high))
        return original(session, table, ends, *others)

    return approached


@mutant("Column moments: rows beyond", "check_replay", _vectors.Vectors, "outside")
def _(original):
    return lambda self, rows: _vectors._WHOLE * len(self.low) * (original(self, rows) > 0)


# -- quantiles -------------------------------------------------------------------------------------


@mutant("Prefix sums: claim for half of the histograms", "check_replay", _ranks, "round_up")
def _(original):
    return lambda length: original(length) / math.sqrt(math.sqrt(2))


@mutant("Quantiles: bins chosen by true ranks", "check_replay", _quantiles, "_release")
def _(original):
    def release(session, entry, table, edges, ends, rho):
        ranks = original(session, entry, table, edges, ends, rho)
        answer = table.ask(_ranks.ColumnRanks(edges, *ends))
        exact = opened(answer, session.plan).astype(float) @ _ranks.prefix_noise(1024).T
        return replace(ranks, below=np.rint(exact * answer.claim.unit))

    return release


# -- categories ------------------------------------------------------------------------------------


@mutant("Categories: every row of a group counted", "check_replay", _names, "_one_of_each")
def _(original):
    return lambda units, session: None


@mutant("Categories: numbers less the mean of their column", "check_replay", _names, "keys_of")
def _(original):
    return lambda values: original(np.asarray(values, dtype=float) - np.mean(values))
