"""Planted bugs of questions, one of each kind for each of them: what takes the place of what.

A bug is (owner, attribute, change): ``change(original)`` takes the place of the attribute.
"""

from dataclasses import replace

import numpy as np
from query_columns import OF_COLUMNS, in_two_cells
from query_tools import masks_of_the_first_rows
from query_whitened import OF_WHITENED

from sklearn_dp._privacy import _grid
from sklearn_dp._privacy import _grid as _aggregates
from sklearn_dp._privacy._units import Units
from sklearn_dp._queries import (
    balls,
    boxes,
    cells,
    client_rounds,
    clusters,
    columns,
    grids,
    halves,
    names,
    places,
    point_pairs,
    ranks,
    samples,
    tuples,
    vectors,
    whitened,
    words,
)
from sklearn_dp._queries import grids as active
from sklearn_dp._queries import whitened as labels
from sklearn_dp._queries._query import PointQuery
from sklearn_dp._rows import rows as row_sums
from sklearn_dp._rows import single_rows
from sklearn_dp._rows.table import CellCounts, Summed

QUESTIONS = {
    places.NormCounts: ["norm_counts"],
    places.SumAndTotals: ["sum_and_totals"],
    places.LengthCounts: ["length_counts"],
    places.SecondMoment: ["second_moment"],
    active.Active: ["active_second_moment", "view_sum", "half_sum"],
    clusters.Nearest: ["nearest", "pinned"],
    clusters.ClusterSums: ["cluster_sums"],
    clusters.CappedSquares: ["capped_squares"],
    clusters.CappedSum: ["capped_sum"],
    clusters.Level: ["first_level", "second_level"],
    clusters.FarCounts: ["far_counts"],
    clusters.GridCounts: ["grid_counts"],
    clusters.LeafSums: ["leaf_sums"],
    ranks.ColumnRanks: ["column_ranks"],
    ranks.ColumnBlocks: ["column_blocks"],
    grids.LineRanks: ["line_ranks"],
    grids.LengthRanks: ["length_ranks"],
    point_pairs.BallMoments: ["ball_moments_"],
    cells.WideBoxes: ["wide_boxes"],
    labels.LabelDistances: ["label_distances"],
    halves.BallScores: ["ball_scores"],
    halves.LargestScores: ["largest_scores"],
    point_pairs.PointPairs: ["point_pairs_"],
    vectors.UnitTotals: ["unit_totals"],
    columns.Octaves: ["octaves"],
    columns.EqualBins: ["equal_bins"],
    columns.GridCells: ["grid_cells_"],
    vectors.VectorRanks: ["vector_ranks"],
    vectors.VectorSums: ["vector_sums"],
    vectors.Outside: ["outside"],
    vectors.TailCounts: ["tail_counts"],
    columns.OffsetSums: ["offset_sums"],
    whitened.DistancesAndValues: ["distances_and_values"],
    whitened.WhitenedMoments: ["whitened_moments"],
    whitened.WhitenedDistances: ["whitened_distances"],
    names.CategoryCounts: ["category_counts"],
    words.TopicSizes: ["topic_sizes"],
    words.TopicWords: ["topic_words"],
    balls.Working: ["working"],
    balls.MiddleScores: ["middle_scores"],
    balls.LengthScores: ["length_scores"],
    boxes.ScoreSum: ["score_sum"],
    balls.Points: ["points"],
    balls.CountsAbout: ["counts_about"],
    balls.BallCounts: ["ball_counts"],
    balls.RingCounts: ["ring_counts"],
    balls.BallSum: ["ball_sum", "ball_sum_replaced"],
    balls.Members: ["members"],
    boxes.FullestBoxes: ["fullest_boxes"],
    boxes.NamedBoxes: ["named_boxes", "named_boxes_replaced", "named_intervals"],
    balls.RadiusScores: ["radius_scores"],
    client_rounds.ClientRound: ["round_of_rows", "round_of_rows_replaced", "round_of_clients"],
    boxes.InteriorScores: ["interior_scores"],
    tuples.TuplePairs: ["tuple_pairs", "tuple_pairs_replaced"],
}
"""The cases of each question."""

# -- kinds that any question may have --------------------------------------------------------------


def of_sums(change):
    """Another value of every sum: ``change(part, sum)``."""

    def wrap(original):
        def on(self, part):
            after, sums = original(self, part)
            return after, tuple(_changed(change, part, each) for each in sums)

        return on

    return wrap


def _changed(change, part, value):
    if isinstance(value, CellCounts):
        return CellCounts(value.cells, change(part, value.counts))
    if isinstance(value, Summed):
        return value
    return change(part, np.asarray(value))


def of_part(change):
    """The pass of a part that is not the one there is."""
    return lambda original: lambda self, part: original(self, change(part))


def of_claims(part):
    """A claim of a part of what is proved."""

    def wrap(original):
        def claims(self, facts):
            found = original(self, facts)
            return tuple(
                replace(
                    each,
                    l2=np.asarray(each.l2) * part,
                    l1=each.l1 and each.l1 * part,
                    most=each.most and each.most * part,
                )
                for each in found
            )

        return claims

    return wrap


def without_weights(part):
    units = Units(part.units.n_rows)
    units.scale, units.own_weights = part.units.scale, part.units.own_weights
    if part.units.weights is not None:
        units.weights = np.full(units.n_rows, units.scale, dtype=np.int64)
    return replace(part, units=units)


def with_weights_of_others(part):
    n = part.units.n_rows
    return replace(part, units=part.units.take(np.roll(np.arange(n), 1)))


def by_the_number_of_rows(part, value):
    return value + (part.units.n_rows > 5)


ANY = {
    "counted twice": ("on", of_sums(lambda part, value: 2 * value)),
    "weights ignored": ("on", of_part(without_weights)),
    "weights of another row": ("on", of_part(with_weights_of_others)),
    "wraps": ("on", of_sums(lambda part, value: (value + 2) % 4 - 2)),
    "tells the number of rows": ("on", of_sums(by_the_number_of_rows)),
    "a root of two missing": ("claims", of_claims(2**-0.5)),
    "of half a unit": ("claims", of_claims(0.5)),
    "a little less": ("claims", of_claims(1 - 1e-3)),
}
OF_WEIGHTS = {"weights ignored", "weights of another row"}
WITHOUT_WEIGHTS = (active.Active, PointQuery, client_rounds.ClientRound, words.TopicWords)
OF_SUMS = {"counted twice", "wraps", "tells the number of rows"}
ADDS_NOTHING = {
    balls.RadiusScores, point_pairs.PointPairs, halves.LargestScores, tuples.TuplePairs,
    words.TopicWords,
}  # fmt: skip
"""What they bring together is counted at the end."""


def there_is(question, kind):
    """Whether questions of that class can have the bug."""
    if question is vectors.UnitTotals and kind == "weights of another row":
        return False  # it asks what all of them are together
    if question is point_pairs.PointPairs and kind == "a little less":
        return False  # two pairs are the limit of many points
    if kind in OF_WEIGHTS:
        return not issubclass(question, WITHOUT_WEIGHTS)
    return kind not in OF_SUMS or question not in ADDS_NOTHING


# -- kinds that only some have ---------------------------------------------------------------------


def far_clip(original):
    return lambda rows, centers, labels, squared, limits, units: original(
        rows, centers, labels, squared, limits * 1e3, units
    )


def other_clip(original):  # of the widest cluster for all of them
    return lambda rows, centers, labels, squared, limits, units: original(
        rows, centers, labels, squared, np.full(len(limits), limits.max()), units
    )


def stale_distances(original):
    def sums(rows, centers, labels, squared, limits, units):
        return original(rows, centers, labels, 0 * squared, limits, units)

    return sums


def labels_of_others(original):
    def nearest(rows, centers):
        labels, squared = original(rows, centers)
        return np.roll(labels, 1), squared

    return nearest


def squares_up(original):
    def sums(labels, squared, cap, n, units):
        cap = np.broadcast_to(np.asarray(cap, float), n)
        steps = np.minimum(squared, cap[labels]) / cap[labels] * row_sums.ERROR_STEPS * (1 + 2e-8)
        w = 1.0 if units.weights is None else units.weights * units.step
        return np.bincount(labels, np.ceil(steps * w), minlength=n).astype(np.int64)

    return sums


def no_cap(original):
    def sums(labels, squared, cap, n, units):
        cap = np.broadcast_to(np.asarray(cap, float), n)
        steps = squared / cap[labels] * row_sums.ERROR_STEPS
        w = 1.0 if units.weights is None else units.weights * units.step
        return np.bincount(labels, np.floor(steps * w), minlength=n).astype(np.int64)

    return sums


def away_from_zero(original):
    def quantize(self, rows, radius):
        found = original(self, rows, radius)
        return found + np.sign(found)

    return quantize


def whole_for_each_entry(original):
    return lambda self, rows: np.sign(original(self, rows)) * vectors._WHOLE


def fourths_twice(original):
    def sums(self, x, *rest):
        total, powers = original(self, x, *rest)
        return total, powers * np.where(np.arange(len(powers)) < len(total), 1, 2)

    return sums


def rounded_to_nearest(original):
    def sums(self, x, squares, share):
        total, powers = original(self, x, squares, share)
        if share is not None:
            clipped = _grid.clip_integer_rows(x, self.clip, squares)
            total = np.rint(clipped * share).sum(axis=0).astype(np.int64)
        return total, powers

    return sums


def far_in_both(original):
    def on(self, part):
        part, (totals,) = original(self, part)
        totals = totals.copy()
        totals[:2] += totals[2]
        return part, (totals,)

    return on


def again_and_as_a_child(original):
    def on(self, part):
        part, (counts,) = original(self, part)
        if self.n_again and len(counts.cells):
            last = (self.n_parents << self.bits) + self.n_again - 1
            counts += CellCounts(np.array([last]), np.array([int(counts.counts.sum())]))
        return part, (counts,)

    return on


def about_their_mean(original):
    def gram(chunks, d, limit, coarse, units):
        chunks = [(place, x - np.mean(x), None) for place, x, _ in chunks]
        return original(chunks, d, limit, coarse, units)

    return gram


def not_centered(original):
    def on(self, part):
        part, (total,) = original(replace(self, low=2 * self.low - self.high), part)
        return part, (2 * total,)

    return on


def excess_without_a_bound(original):
    def totals(self):
        found = original.fget(self)
        return found * np.array([1, 1, 1000])[: len(found)]

    return property(totals)


def without_the_cap(original):
    def scores(counts, t):
        top = min(t, len(counts))
        return np.sort(counts, axis=0)[len(counts) - top :].sum(axis=0, dtype=np.int64)

    return scores


def of_scaled_points(original):
    def squared(rows, lengths, mine, others):
        rows = np.trunc(rows * (2.0**23 / np.abs(rows).max(initial=1.0)))
        return original(rows, np.einsum("ij,ij->i", rows, rows), mine, others)

    return squared


def client_clip_missing(original):
    def clip(name, value, n_rows, bound, share, message):
        steps = value / max(n_rows, 1) * (client_rounds.CLIENT_STEPS / (bound * share))
        return np.trunc(steps).astype(np.int64)

    return clip


def numbers_about_their_mean(original):
    def numbers(part):
        found = original(part)
        return found - np.rint(found.sum() / max(len(found), 1))

    return numbers


def words_of_the_row_before(original):
    before = []

    def words(*arguments):
        before.append(original(*arguments))
        return [*before[-2:][0], *before[-1]]

    return words


def state_of_others(name):
    def wrap(original):
        def on(self, part):
            part = original(self, part)
            return part.having(**{name: np.roll(part[name], 1)})

        return on

    return wrap


def coins_of_the_number(original):
    return lambda self, part: (
        np.random.default_rng(part.units.n_rows).random(part.units.n_rows) < 0.7
    )


def other_parameters(**changes):
    """Another question in the place of the one there is: ``name=function of its value``."""

    def wrap(original):
        def method(self, argument):
            other = {name: change(getattr(self, name)) for name, change in changes.items()}
            return original(replace(self, **other), argument)

        return method

    return wrap


SOME = {
    **OF_COLUMNS,
    **OF_WHITENED,
    "radii: without the cap": (balls, "radius_scores", without_the_cap, balls.RadiusScores),
    "the clip skipped (clients)": (
        client_rounds, "clipped_sums", far_clip, client_rounds.ClientRound,
    ),
    "the radius of a moment instead of its square": (
        client_rounds, "row_bounds",
        lambda f: lambda kind, message: {
            name: bound**0.5 if name == "second moment" else bound
            for name, bound in f(kind, message).items()
        },
        client_rounds.ClientRound,
    ),
    "a unit in the place of another, claimed as added": (
        client_rounds, "_bound_of_a_swap", lambda f: lambda name, bound, asked: bound,
        client_rounds.ClientRound,
    ),
    "labels of another row (clients)": (
        client_rounds, "nearest", labels_of_others, client_rounds.ClientRound,
    ),
    "a client's clip missing": (
        client_rounds, "_clip_whole", client_clip_missing, client_rounds.ClientRound,
    ),
    "a client's mean that is a sum": (
        client_rounds, "_clip_whole",
        lambda f: lambda name, value, n, *rest: n * f(name, value, n, *rest),
        client_rounds.ClientRound,
    ),
    "a client's reach without a bound": (
        client_rounds, "_reach", lambda f: lambda *a: 5 * f(*a), client_rounds.ClientRound,
    ),
    "scores about the mean of the numbers": (
        boxes, "_numbers", numbers_about_their_mean,
        boxes.InteriorScores,
    ),
    "scores that add both sides": (
        boxes.InteriorScores, "exact", lambda f: lambda self, sums: (3 * sums[0].sum(axis=0),),
        boxes.InteriorScores,
    ),
    "pairs: friends of the first tuple only": (
        tuples, "matched_distances",
        lambda f: lambda *a: (lambda d: np.where(np.isfinite(d[:1]), d, np.inf))(f(*a)),
        tuples.TuplePairs,
    ),
    "pairs: distances over the largest": (
        tuples, "matched_distances",
        lambda f: lambda *a: (lambda d: d / d[np.isfinite(d)].max(initial=1e-9))(f(*a)),
        tuples.TuplePairs,
    ),
    "pairs: counted in both orders twice": (
        tuples.TuplePairs, "_scores", lambda f: lambda *a: 2 * f(*a), tuples.TuplePairs,
    ),
    "radii: distances of scaled points": (balls, "_squared", of_scaled_points, balls.RadiusScores),
    "scores twice as sensitive": (
        balls.Crossing, "scores", lambda f: lambda *a: 2 * f(*a), balls.BallCounts,
    ),
    "points beyond the ball": (
        balls.BallSum, "on", other_parameters(square=lambda value: 16 * value), balls.BallSum,
    ),
    "replaced, claimed as added (balls)": (
        balls.BallSum, "_claims", other_parameters(replace=lambda value: False), balls.BallSum,
    ),
    "replaced, claimed as added (boxes)": (
        boxes.NamedBoxes, "_claims", other_parameters(replace=lambda value: False),
        boxes.NamedBoxes,
    ),
    "a grid that begins at the first point": (
        boxes.Boxes, "of",
        lambda f: lambda self, images, shift: f(self, images, shift - images.min(initial=0.0)),
        boxes.FullestBoxes,
    ),
    "coins by the number of rows": (samples.Coins, "mask", coins_of_the_number, boxes.NamedBoxes),
    "coins by the place in a part": (
        samples, "_drawn", lambda f: lambda draws, first, n: f(draws, 0, n), boxes.NamedBoxes,
    ),
    "the clip skipped (clusters)": (clusters, "clipped_sums", far_clip, clusters.ClusterSums),
    "the clip skipped (leaves)": (clusters, "clipped_sums", far_clip, clusters.LeafSums),
    "the clip of another cluster": (clusters, "clipped_sums", other_clip, clusters.ClusterSums),
    "distances to other centers": (
        clusters, "clipped_sums", stale_distances, clusters.ClusterSums,
    ),
    "the clip skipped (moments)": (
        places, "exact_gram",
        lambda f: lambda chunks, d, limit, *o: f(chunks, d, 4 * limit, *o),
        places.SecondMoment,
    ),
    "rows about their mean": (
        places, "exact_gram", about_their_mean, places.SecondMoment,
    ),
    "labels of another row": (clusters, "nearest", labels_of_others, clusters.Nearest),
    "labels of another row (pinned)": (
        clusters, "to_centers", lambda f: lambda rows, c, labels: f(rows, c, np.roll(labels, 1)),
        clusters.Nearest,
    ),
    "distances of another row": (
        clusters, "nearest",
        lambda f: lambda *a: (lambda found: (found[0], np.roll(found[1], 1)))(f(*a)),
        clusters.CappedSum,
    ),
    "squares rounded up": (clusters, "square_sums", squares_up, clusters.CappedSum),
    "squares rounded up (quality)": (clusters, "square_sums", squares_up, clusters.CappedSquares),
    "squares without a cap": (clusters, "square_sums", no_cap, clusters.ClusterSums),
    "squares without a cap (score)": (clusters, "square_sums", no_cap, clusters.CappedSum),
    "far rows in all sums": (clusters.CappedSquares, "on", far_in_both, clusters.CappedSquares),
    "rows longer than the ball": (_grid.Grid, "quantize", away_from_zero, places.SumAndTotals),
    "projected rows longer than their limit": (
        grids, "clip_integer_rows", lambda _: lambda rows, *_: rows, places.SumAndTotals,
    ),
    "a row in two bins": (single_rows, "weighted_bincount", in_two_cells, places.LengthCounts),
    "a row in two clusters": (clusters, "weighted_bincount", in_two_cells, clusters.Nearest),
    "a row in two cells": (clusters, "weighted_bincount", in_two_cells, clusters.Level),
    "a row in two far cells": (clusters, "weighted_bincount", in_two_cells, clusters.FarCounts),
    "a row in two norms": (_aggregates, "weighted_bincount", in_two_cells, places.NormCounts),
    "labels of another row (components)": (
        labels, "to_centers", lambda f: lambda rows, c, own: f(rows, c, np.roll(own, 1)),
        labels.LabelDistances,
    ),
    "a row of two components": (
        single_rows, "weighted_bincount", in_two_cells, labels.LabelDistances,
    ),
    **{
        f"the mask of the first rows ({question.__name__})": (
            question, "on", masks_of_the_first_rows, question,
        )
        for question in (
            halves.BallScores, balls.BallCounts, balls.BallSum, balls.CountsAbout,
            balls.RingCounts,
        )
    },
    "what is around counted twice": (
        halves, "terrific_scores", lambda f: lambda i, a, o, t: f(i, 2 * a, o, 2 * t),
        halves.BallScores,
    ),
    "scores without the cap of what is around": (
        halves, "terrific_scores",
        lambda f: lambda i, a, o, t: np.minimum(np.minimum(i, o), t) - a,
        halves.LargestScores,
    ),
    "all scores instead of the t largest": (
        halves.LargestScores, "exact",
        lambda f: lambda self, sums: f(replace(self, t=3 * self.t), sums),
        halves.LargestScores,
    ),
    "a length in two ranks": (single_rows, "weighted_bincount", in_two_cells, grids.LengthRanks),
    "the clip skipped (ball)": (
        point_pairs, "clip_integer_rows", lambda _: lambda rows, *_: rows,
        point_pairs.BallMoments,
    ),
    "weighted rows rounded to the nearest step": (
        point_pairs.BallMoments, "_chunk_sums", rounded_to_nearest, point_pairs.BallMoments,
    ),
    "labels of another row (balls)": (
        halves.BallLabels, "on", state_of_others(labels.LABELS), labels.LabelDistances,
    ),
    "labels of another row (leaves)": (
        halves.LeafLabels, "on", state_of_others(labels.LABELS), labels.LabelDistances,
    ),
    "nodes of other points": (
        halves.Divided, "on", state_of_others(halves.NODES), active.Active,
    ),
    "others taken away": (
        balls.Beyond, "on", state_of_others(active.ACTIVE), active.Active,
    ),
    "halves of other points": (
        halves, "in_second", lambda f: lambda draws: np.roll(f(draws), 1), active.Active,
    ),
    "coordinates longer than their limit": (
        grids, "clip_integer_rows", lambda _: lambda rows, *_: rows, active.Active,
    ),
    "points of any distance": (
        point_pairs.BallMoments, "on",
        other_parameters(ball=lambda value: 4 * value, clip=lambda value: 4 * value),
        point_pairs.BallMoments,
    ),
    "fourth powers twice": (
        point_pairs.BallMoments, "_chunk_sums", fourths_twice, point_pairs.BallMoments,
    ),
    "nothing left for the powers": (
        point_pairs.BallMoments, "sum_limit",
        lambda f: property(lambda self: f.fget(replace(self, powers=()))),
        point_pairs.BallMoments,
    ),
    "powers for nothing": (
        point_pairs.BallMoments, "number_limit",
        lambda f: property(lambda self: f.fget(replace(self, weight=1.1 * self.weight))),
        point_pairs.BallMoments,
    ),
    "a grid that begins at the first point (wide)": (
        cells.WideBoxes, "on",
        lambda f: lambda self, part: f(
            replace(self, shift=part.source.read()[:][:, 0].min(initial=0.0) + self.shift), part
        ),
        cells.WideBoxes,
    ),
    "far pairs over less": (
        point_pairs, "non_friend_pairs", lambda f: lambda *a: 2 * f(*a), point_pairs.PointPairs,
    ),
    "pairs of scaled points": (
        point_pairs, "non_friend_pairs",
        lambda f: lambda X, radii: f(X / np.abs(X).max(initial=1e-9), radii),
        point_pairs.PointPairs,
    ),
    "coins by the number of rows (pairs)": (
        samples.Coins, "mask", coins_of_the_number, point_pairs.PointPairs,
    ),
    "values less the mean of their column": (
        whitened, "_hashes", lambda f: lambda values, n: f(values - np.mean(values), n),
        whitened.DistancesAndValues,
    ),
    "a value in two bins (distances)": (
        whitened, "weighted_bincount", in_two_cells, whitened.DistancesAndValues,
    ),
    "counted for each end that it is beyond": (
        vectors.Vectors, "outside", whole_for_each_entry, vectors.VectorSums,
    ),
    "numbers less the mean of their column": (
        names, "keys_of", lambda f: lambda values: f(values - np.mean(values)),
        names.CategoryCounts,
    ),
    "a word of any number of texts": (
        words, "counted_pairs", lambda f: lambda parts, most: f(parts, most + 1), words.TopicWords,
    ),
    "each text of a unit counts": (
        words, "counted_pairs",
        lambda f: lambda parts, most: f([(None, *rest) for _, *rest in parts], most),
        words.TopicWords,
    ),
    "words of the row before": (
        words, "keywords_of", words_of_the_row_before, words.TopicWords,
    ),
    "topics of directions about their mean": (
        words, "UnitRows", lambda f: lambda X: f(X - X.mean(axis=0)), words.TopicSizes,
    ),
    "a value in two categories": (
        names, "keys_of", lambda f: lambda values: [*f(values), *("again" for _ in values)],
        names.CategoryCounts,
    ),
    "scores twice as sensitive (units)": (
        balls, "counts_within", lambda f: lambda *a: 2 * f(*a), balls.MiddleScores,
    ),
    "lengths over their mean": (
        balls, "counts_within",
        lambda f: lambda v, grid: f(v / max(v.sum() / (v.size or 1), 1e-9), grid),
        balls.LengthScores,
    ),
    "offsets beyond the clip": (
        np, "clip", lambda f: lambda x, low, high: f(x, 4 * low, 4 * high), columns.OffsetSums,
    ),
    "a row next to two centers": (columns, "weighted_bincount", in_two_cells, columns.OffsetSums),
    "a claim of all for each of two": (
        vectors.VectorSums, "claims",
        lambda f: lambda self, facts: tuple(
            replace(each, l2=each.l2 * np.sqrt(1 - self.vectors.beyond)) for each in f(self, facts)
        ),
        vectors.VectorSums,
    ),
    "excess without a bound (totals)": (
        Units, "totals", excess_without_a_bound, vectors.UnitTotals,
    ),
    "scores that are not centered": (boxes.ScoreSum, "on", not_centered, boxes.ScoreSum),
    "counted again and as a child": (clusters.Level, "on", again_and_as_a_child, clusters.Level),
    "excess without a bound": (Units, "totals", excess_without_a_bound, places.SumAndTotals),
    "a claim of each part alone": (
        places.SumAndTotals, "scales",
        lambda f: staticmethod(lambda units: (1.0, f.__func__(units)[1])), places.SumAndTotals,
    ),
    "a claim by the typical radius": (
        clusters, "residual_claim",
        lambda f: lambda radius, d, facts: f(np.full(len(radius), np.mean(radius)), d, facts),
        clusters.ClusterSums,
    ),
    "a claim in another unit": (
        places.SumAndTotals, "claims",
        lambda f: lambda self, facts: f(
            self, facts._replace(grid=facts.grid._replace(limit=facts.limit * facts.unit))
        ),
        places.SumAndTotals,
    ),
}  # fmt: skip


def bugs():
    """Name, place, attribute, change, and the names of the cases that have to see it."""
    for question, cases in QUESTIONS.items():
        for kind, (attribute, change) in ANY.items():
            if there_is(question, kind):
                yield f"{question.__name__}: {kind}", question, attribute, change, cases
    for name, (owner, attribute, change, question) in SOME.items():
        yield name, owner, attribute, change, QUESTIONS[question]
