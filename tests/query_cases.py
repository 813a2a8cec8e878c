"""Random questions of every class: parameters, and the steps before them."""

from itertools import product

import numpy as np
from query_columns import (
    column_blocks,
    column_ranks,
    equal_bins,
    grid_cells_,
    octaves,
    outside,
    tail_counts,
    unit_totals,
    vector_ranks,
    vector_sums,
)
from query_ground import Ground, around, edges, features
from query_tools import PLAN, WIDE, Case, problem
from query_whitened import distances_and_values, whitened_distances, whitened_moments

from sklearn_dp._parameters import domain_of
from sklearn_dp._privacy._grid import Domain
from sklearn_dp._privacy._session import PrivacySession
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
    samples,
    tuples,
    words,
)
from sklearn_dp._queries import grids as active
from sklearn_dp._queries import places as second_moments
from sklearn_dp._queries import whitened as labels
from sklearn_dp._queries.balls import Members

# -- parameters ------------------------------------------------------------------------------------


def norm_counts(rng):
    d = features(rng)
    center = Domain(rng.normal(size=d), 1.0) if rng.random() < 0.5 else None
    within = domain_of(2.0, d) if rng.random() < 0.5 else None
    return Case(places.NormCounts(center, within), d)


def sum_and_totals(rng):
    return Ground.draw(rng, plain=rng.random() < 0.5).case(places.SumAndTotals())


def length_counts(rng):
    ground = Ground.draw(rng)
    return ground.case(places.LengthCounts(edges(rng, ground.limit)))


def second_moment(rng):
    ground = Ground.draw(rng)
    return ground.case(second_moments.SecondMoment(float(ground.limit * rng.uniform(0.05, 0.5))))


def active_second_moment(rng):
    ground = Ground.draw(rng)
    case = ground.case(active.Active(second_moments.SecondMoment(float(ground.limit * 0.3))))
    case.units = False
    return case


def _nearest(rng, ground):
    k = int(rng.integers(1, 5))
    scales = rng.uniform(0.5, 2, k)
    return clusters.Nearest(ground.points(rng, k), scales, edges(rng, ground.limit))


def nearest(rng):
    ground = Ground.draw(rng)
    return ground.case(_nearest(rng, ground))


def pinned(rng):
    ground = Ground.draw(rng)
    query = _nearest(rng, ground)
    pins = clusters.Pinned(ground.points(rng, len(query.centers)))
    return ground.case(query, pins)


def cluster_sums(rng):
    ground = Ground.draw(rng)
    near = _nearest(rng, ground)
    radius = rng.uniform(0.01, 0.5, len(near.centers)) * ground.ball
    cap = (radius * 2) ** 2 if rng.random() < 0.7 else None
    likely = around(ground, near.centers, radius, rng)
    return ground.case(clusters.ClusterSums(radius, cap), near, likely=likely)


def capped_squares(rng):
    ground, k = Ground.draw(rng), int(rng.integers(1, 5))
    caps = rng.uniform(0.1, 0.6, k) * ground.ball
    points = np.concatenate([ground.points(rng, k), ground.points(rng, 1, 0.3)])
    limits = np.full(k, np.inf) if rng.random() < 0.5 else caps * rng.uniform(0.8, 1.5)
    bounds = None if rng.random() < 0.5 else domain_of(ground.domain.radius, ground.d)
    largest = np.array([np.max(caps) ** 2, (ground.ball * 0.2) ** 2])
    query = clusters.CappedSquares(points, np.square(caps), largest, np.square(limits), bounds)
    return ground.case(query, likely=around(ground, points[:-1], limits.clip(max=2e9), rng))


def capped_sum(rng):
    ground = Ground.draw(rng)
    cap = float(ground.unit * ground.ball * 10.0 ** rng.choice([-9.0, -1.0, -0.5, -0.3]))
    return ground.case(clusters.CappedSum(ground.points(rng, 3), cap))


def _tree(rng):
    """The steps to a first level, those to a second one, and what they are about."""
    ground = Ground.draw(rng, plain=True)
    d, limit = ground.d, ground.ball
    q = min(d, 4)
    spread, basis = np.full(q, 0.3 * limit), None
    if rng.random() < 0.5 or q < d:
        basis = np.rint(np.linalg.qr(rng.normal(size=(d, q)))[0] * 2.0**grids.BASIS_BITS)
    axes = grids.Axes(basis, spread, 0.8 * np.full(q, limit), 0.8 * limit)
    grid = clusters.CellGrid(axes.half_widths, 5)
    searched = bool(rng.random() < 0.5)
    shells = clusters.Rays(axes.half_widths * 0.3, limit, 1.5, 4, searched)
    if rng.random() < 0.3:
        shells = clusters.Prefixes(grid, 2)
    level = clusters.Level(np.array([0, -1]), 1, 0, 3, 2)
    first = (clusters.Coded(axes, grid, shells), clusters.Rooted(), level)
    second = (*first, clusters.Moved(4, np.array([0, 1, 3]), np.array([2, 3, 4])))
    return ground, axes, shells, first, second


def first_level(rng):
    ground, *_, first, _ = _tree(rng)
    return ground.case(first[-1], *first[:-1])


def second_level(rng):
    ground, *_, second = _tree(rng)
    # Nodes 2 and 4 are split, node 3 is counted again.
    return ground.case(clusters.Level(np.array([-1, -1, 0, 8, 1]), 2, 1, 1, 2), *second)


def grid_counts(rng):
    ground = Ground.draw(rng, plain=True)
    bounds = None if rng.random() < 0.5 else domain_of(0.7 * ground.domain.radius, ground.d)
    grid = clusters.CellGrid(ground.ball * rng.uniform(0.3, 1.2, ground.d), int(rng.integers(7)))
    return ground.case(clusters.GridCounts(grid, bounds))


_SETTLED = clusters.Settled(np.array([-1, -1, 0, -1, 1], dtype=np.int32))


def far_counts(rng):
    ground, _, shells, _, second = _tree(rng)
    return ground.case(clusters.FarCounts(shells.n_cells), *second, _SETTLED)


def leaf_sums(rng):
    ground, axes, shells, _, second = _tree(rng)
    index = np.full(shells.n_cells + 1, -1, dtype=np.int32)
    index[: len(index) // 2] = 2
    centers = np.trunc(rng.uniform(-0.3, 0.3, (3, len(axes.spread))) * axes.half_widths)
    reach = rng.uniform(0.05, 0.4, 3) * axes.limit
    query = clusters.LeafSums(centers, reach)
    return ground.case(query, *second, _SETTLED, clusters.FarLeaves(index))


def line_ranks(rng):
    ground, basis = Ground.draw(rng, plain=True), None
    if ground.d > 1:
        basis = np.zeros((ground.d, 1))
        basis[rng.integers(ground.d)] = 2.0**grids.BASIS_BITS
    axis = grids.Axes(basis, np.ones(1), np.ones(1), ground.ball)
    edges = np.sort(rng.uniform(-1.2, 1.2, int(rng.choice([1, 6, 1023]))) * ground.ball)
    return ground.case(grids.LineRanks(axis, edges))


def category_counts(rng):
    odd = np.array([0.0, -0.0, 1.0, np.nan, np.inf, 1e300, 0.5, 2.0**53])

    def likely(direction):
        return rng.choice(odd, size=direction.shape)

    d = int(rng.integers(1, 4))
    return Case(names.CategoryCounts(), d, likely=likely, units=False)


def _outputs(rng, make, usable=True):
    """Of blocks: some of them failed, and another one may be in the place of any."""
    d = int(rng.integers(1, 4))

    def likely(direction):
        return np.where(rng.random((len(direction), 1)) < 0.3, np.nan, direction)

    def prepare(rows):
        if usable:
            rows.apply(balls.Usable())
        return rows

    query = make(d)
    return Case(query, d, prepare=prepare, likely=likely, units=False, replace=True, additive=False)


def working(rng):
    return _outputs(rng, lambda d: balls.Working(), usable=False)


def middle_scores(rng):
    about = None if rng.random() < 0.3 else float(rng.normal())
    grid, half = np.sort(rng.normal(size=6)), int(rng.integers(1, 5))
    return _outputs(rng, lambda d: balls.MiddleScores(int(rng.integers(d)), grid, half, about))


def length_scores(rng):
    squares = np.square(edges(rng, 2.0))
    crossing = balls.Crossing(int(rng.integers(1, 9)), int(rng.integers(1, 5)))
    return _outputs(rng, lambda d: balls.LengthScores(crossing, squares))


def offset_sums(rng):
    d, k = features(rng), int(rng.integers(1, 4))
    box, whole = None, np.zeros(d, dtype=bool)
    if rng.random() < 0.6:
        side = rng.choice([0.5, 1.0, 3.0], d)
        box, whole = domain_of((-side, side), d), rng.random(d) < 0.7
    centers, base, about = rng.uniform(-1, 1, (3, k, d))
    scale = rng.uniform(0.1, 1, d)
    if box is not None:
        base, scale = np.where(whole, 0.0, base), np.where(whole, box.high, scale)
    return Case(columns.OffsetSums(box, centers, base, about, scale, whole), d, 3.0)


def score_sum(rng):
    low = float(rng.normal() * 10.0 ** rng.integers(-3, 4))
    high = low + float(10.0 ** rng.uniform(-3, 4))
    odd = np.array([low, high, np.nan, -np.inf, np.inf, 1e300, (low + high) / 2, low + high / 3])

    def likely(direction):
        return rng.choice(odd, size=(len(direction), 1))

    return Case(boxes.ScoreSum(low, high), 1, likely=likely)


def _topical(rng, make):
    """Topics of rows by their directions; words are names of columns."""
    d, k = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    topics = words.Topical(rng.normal(size=(k, d)))

    def prepare(rows):
        rows.apply(topics)
        return rows

    return make(d, k), d, prepare


def topic_sizes(rng):
    query, d, prepare = _topical(rng, lambda d, k: words.TopicSizes(k))
    return Case(query, d, prepare=prepare)


def topic_words(rng):
    listed, left_out = (("a", "c", "d"), ()) if rng.random() < 0.5 else (None, ("a",))
    most = int(rng.integers(1, 3))
    query, d, prepare = _topical(
        rng, lambda d, k: words.TopicWords(k, most, listed, left_out, tuple("abcdef"[:d]))
    )

    def likely(direction):
        return np.abs(direction)

    return Case(query, d, prepare=prepare, likely=likely, additive=False)


# Of points, which are rows that are units: a neighbor may also have another one in place of one.


def _some_active(rng, ground, share=0.1):
    """A step that leaves those active which are not near some place, or none."""
    center = ground.points(rng, 1)[0]
    return [balls.Beyond(center, float((share * ground.ball) ** 2))] if rng.random() < 0.5 else []


def points(rng):
    ground = Ground.draw(rng)
    return ground.points_case(balls.Points(), *_some_active(rng, ground), replace=True)


def counts_about(rng):
    ground = Ground.draw(rng)
    query = balls.CountsAbout(ground.points(rng, 3), float((0.5 * ground.ball) ** 2))
    return ground.points_case(query, *_some_active(rng, ground), replace=True)


def ball_counts(rng):
    ground = Ground.draw(rng)
    squares = np.floor(np.square(edges(rng, ground.limit)))
    crossing = balls.Crossing(int(rng.integers(1, 9)), int(rng.integers(1, 5)))
    query = balls.BallCounts(ground.points(rng, 1)[0], squares, crossing)
    return ground.points_case(query, *_some_active(rng, ground), replace=True, additive=False)


def _ball_sum(rng, replace):
    ground = Ground.draw(rng)
    center, radius = ground.points(rng, 1), rng.uniform(0.05, 0.5, 1) * ground.ball
    if replace and rng.random() < 0.5:
        radius /= 1e6  # the number of points counts as well
    query = balls.BallSum(center[0], int(radius[0] ** 2), replace=replace)
    likely = around(ground, center, radius * (1 - 1e-9), rng)
    steps = _some_active(rng, ground, 0.6)
    return ground.points_case(query, *steps, likely=likely, replace=replace)


def ball_sum(rng):
    return _ball_sum(rng, False)


def ball_sum_replaced(rng):
    return _ball_sum(rng, True)


def members(rng):
    ground = Ground.draw(rng)
    center = ground.points(rng, 1)[0]
    query = Members(center, float(0.5 * ground.ball), ground.limit, active.ACTIVE)
    return ground.points_case(query, balls.Beyond(center, -1.0), replace=True)


def _grid(rng, ground):
    d, matrix = ground.n_features, None
    if d > 3 or rng.random() < 0.3:
        matrix = np.where(rng.random((3, d)) < 0.5, -1.0, 1.0)
    grid = boxes.Boxes(matrix, float(ground.ball * rng.uniform(0.2, 1.0)))
    return grid, rng.random((4, grid.width(d))) * grid.side


def _tossed(rng, rate=0.7):
    """From rows to coins of them, for some cases."""
    if rng.random() < 0.5:
        return False, lambda rows: None

    def toss(rows):
        session = PrivacySession(PLAN, random_state=0)
        return samples.Coins.toss(session, "e", rows.ask(balls.Points()).sizes, rate)

    return True, toss


def fullest_boxes(rng):
    ground = Ground.draw(rng)
    grid, shifts = _grid(rng, ground)
    numbered, toss = _tossed(rng)
    return ground.points_case(
        lambda rows: boxes.FullestBoxes(grid, shifts, rows.table.n_parts, toss(rows)),
        *_some_active(rng, ground),
        additive=False,
        replace=True,
        numbered=numbered,
    )


def _named(rng, replace, **options):
    ground = Ground.draw(rng)
    grid, shifts = _grid(rng, ground)
    numbered, toss = _tossed(rng)

    def query(rows):
        return boxes.NamedBoxes(grid, shifts[0], coins=toss(rows), replace=replace, **options)

    steps = _some_active(rng, ground)
    return ground.points_case(
        query, *steps, additive=not numbered, replace=replace, numbered=numbered
    )


def named_boxes(rng):
    return _named(rng, False)


def named_boxes_replaced(rng):
    return _named(rng, True)


def named_intervals(rng):
    return _named(rng, False, by_axis=True)


def radius_scores(rng):
    ground = Ground.draw(rng)
    kind = balls.LogRadii if rng.random() < 0.5 else balls.LinearRadii
    radii = kind(ground.ball / 16, 2 * ground.limit)
    t, (numbered, toss) = int(rng.integers(1, 6)), _tossed(rng)
    crossing = balls.Crossing(t * t, int(rng.integers(1, 4)))
    return ground.points_case(
        lambda rows: balls.RadiusScores(radii, t, crossing, toss(rows)),
        *_some_active(rng, ground),
        additive=False,
        replace=True,
        numbered=numbered,
    )


def interior_scores(rng):
    ground = Ground.draw(rng)
    while ground.n_features != 1:
        ground = Ground.draw(rng)
    query = boxes.InteriorScores(ground.points(rng, 5)[:, 0])
    return ground.points_case(query, additive=False, replace=True)


def _client_round(rng, kinds, clients=False, swap=False, l1=False):
    """A message of a server, for rows or for clients as units."""
    ground = Ground.draw(rng)
    while ground.d == WIDE:
        ground = Ground.draw(rng)
    kind, d, k, none = str(rng.choice(kinds)), ground.d, int(rng.integers(1, 4)), np.empty(0)
    origin = np.zeros(d) if ground.origin is None or "center" in kind else ground.origin
    limit = float((ground.ball if "center" in kind else ground.limit) * rng.uniform(0.1, 1))
    if "center" in kind:
        limit = float(ground.ball)
    anchors, within = np.trunc(rng.uniform(-0.5, 0.5, (k, d)) / np.sqrt(d) * ground.ball), None
    if ground.domain.low is not None:
        within = ground.domain
    message = {
        "center": ground.domain.center,
        "radius": np.array([ground.domain.radius]),
        "low": none if within is None else within.low,
        "high": none if within is None else within.high,
        "origin": none if not origin.any() else origin,
        "limit": np.array([limit]),
        "basis": np.empty((0, 0)) if ground.basis is None else ground.basis,
        "anchors": anchors,
        "l1": np.zeros(int(l1)),
        "shares": none,
    }
    message["points"] = client_rounds.project(message, anchors)
    if clients:
        message["shares"] = rng.uniform(0.05, 1, len(client_rounds.ANSWERS[kind]))
    query = client_rounds.ClientRound.of(kind, message, ground.unit, swap)

    def likely(direction):
        own = rng.integers(len(anchors), size=len(direction))
        steps = anchors[own] + direction * limit * rng.choice([0.99, 1.0, 2.0])
        return (steps + origin) * ground.unit + ground.domain.center

    return Case(query, d, ground.domain.radius, likely=likely, units=clients)


_OF_ROWS = ["bound", "center", "moment", "weights", "lift", "lloyd"]


def round_of_rows(rng):
    return _client_round(rng, _OF_ROWS)


def round_of_rows_replaced(rng):
    case = _client_round(rng, _OF_ROWS, swap=True)
    case.replace = True
    return case


def round_of_clients(rng):
    kinds = [*_OF_ROWS, "means", "moment reach", "lift reach"]
    case = _client_round(rng, kinds, clients=True, l1=rng.random() < 0.5)
    case.additive, case.together = False, True
    return case


def _tuple_pairs(rng, fixed):
    """A few tuples, about alike, in any order; some of them with nothing."""
    k, d, center = int(rng.integers(1, 4)), int(rng.integers(1, 3)), rng.normal(size=2)
    places, radii = rng.uniform(-1, 1, (k, d)), 0.02 * 1.5 ** np.arange(8)

    def likely(direction):
        found = np.array([rng.permutation(places) for _ in direction]).reshape(-1, k, d)
        found += 0.05 * direction.reshape(-1, k, d)
        found[rng.random(len(found)) < 0.2] = np.nan
        return found.reshape(len(direction), k * d)

    def query(rows):
        n = sum(part.units.n_rows for part in rows._raw().engine.states)
        return tuples.TuplePairs(center[:d], 0.2, radii, n if fixed else None)

    # Of a private number t, a score moves by 2 (t - 1) / t - 1/4 at most, and there are few here.
    options = {"replace": fixed, "fixed": fixed, "reached": 0.9 if fixed else 0.7}
    return Case(query, k * d, likely=likely, often=True, units=False, additive=False, **options)


def tuple_pairs(rng):
    return _tuple_pairs(rng, False)


def tuple_pairs_replaced(rng):
    return _tuple_pairs(rng, True)


def ring_counts(rng):
    ground = Ground.draw(rng)
    squares = np.floor(np.square(edges(rng, ground.limit)))
    query = balls.RingCounts(ground.points(rng, 1)[0], squares)
    return ground.points_case(query, *_some_active(rng, ground))


def length_ranks(rng):
    ground = Ground.draw(rng)
    return ground.case(grids.LengthRanks(np.square(edges(rng, ground.limit)[1:])))


def ball_moments_(rng):
    """Rows at the clip, or at the border of the ball."""
    ground = Ground.draw(rng)
    ball = float(ground.limit * rng.uniform(0.3, 0.9))
    clip, small = ball * float(rng.choice([1.0, 0.5, 0.1])), rng.random() < 0.3
    powers = ((), (0.05,), (0.05, 0.05), (0.3, 0.05))[int(rng.integers(4))]
    clip = 2.5 if small else clip  # a few steps, in one direction, show how rows are rounded
    query = point_pairs.BallMoments(ball, clip, float(rng.choice([0.01, 0.2])), powers)
    likely = at_clip = around(ground, np.zeros((1, ground.n_features)), np.array([clip]), rng)
    if small and at_clip is not None:
        likely = lambda x: at_clip(np.eye(*x.shape)[:1].repeat(len(x), 0))  # noqa: E731
    return ground.case(query, likely=likely, often=small)


def label_distances(rng):
    ground = Ground.draw(rng)
    centers = ground.points(rng, int(rng.integers(1, 5)))
    query = labels.LabelDistances(centers, edges(rng, ground.limit))
    squares = np.square(rng.uniform(0.1, 1, len(centers)) * ground.ball)
    steps = (
        labels.NearestLabels(centers),
        halves.BallLabels(None, centers, squares),
        halves.LeafLabels(ground.cut(rng) if len(centers) > 1 else None),
    )
    return ground.case(query, steps[rng.integers(3)])


def view_sum(rng):
    """Of one of two nodes, in coordinates of its own."""
    ground = Ground.draw(rng, plain=True)
    query = active.Active(places.SumAndTotals())
    return Case(query, ground.d, ground.domain.radius, ground.node(rng), units=False)


def half_sum(rng):
    """Of one half of the points, along axes; some are taken away."""
    ground = Ground.draw(rng, plain=True)
    query, options = active.Active(places.SumAndTotals()), {"additive": False, "numbered": True}
    return Case(query, ground.d, ground.domain.radius, ground.half(rng), units=False, **options)


def ball_scores(rng):
    """Of sizes up to that of the table: with small ones most points change no score."""
    ground = Ground.draw(rng)
    near = np.square(edges(rng, 0.6 * ground.limit, 3)[1:])
    centers, tilt = ground.points(rng, 2), rng.integers(0, 4, 3)
    query = halves.BallScores(centers, near, 4 * near, int(rng.integers(1, 9)), tilt)
    case = ground.points_case(query, *_some_active(rng, ground, 0.6), replace=True)
    case.additive, case.reached = False, 0.4  # one score moves, of six that may
    return case


def largest_scores(rng):
    ground, t = Ground.draw(rng), int(rng.integers(1, 4))
    radii = edges(rng, 0.5 * ground.limit, 3)[1:]
    numbered, toss = _tossed(rng)

    def query(rows):
        return halves.LargestScores(radii, 2.0, t, toss(rows))

    options = {"additive": False, "replace": not numbered, "numbered": numbered, "reached": 0.5}
    return ground.points_case(query, *_some_active(rng, ground), **options)


def wide_boxes(rng):
    d = features(rng)
    query = cells.WideBoxes(float(rng.choice([1e-300, 0.4, 3.0])), rng.uniform(0, 0.4, d))
    return Case(query, d, units=False)


def point_pairs_(rng):
    """Most points in a few places; of few points, a score moves by less than two."""
    places, radii = rng.uniform(-1, 1, (2, 2)), 0.02 * 1.5 ** np.arange(12)

    def likely(direction):
        return places[rng.integers(2, size=len(direction))] + 0.05 * direction

    coined = rng.random() < 0.5

    def query(rows):
        session = PrivacySession(PLAN, random_state=0)
        coins = samples.Coins.of(session, samples.numbered(rows), 0.7) if coined else None
        return point_pairs.PointPairs(radii, coins)

    return Case(
        query,
        2,
        likely=likely,
        often=True,
        reached=0.7,
        units=False,
        additive=False,
        numbered=coined,
    )


CASES = {
    each.__name__: each
    for each in (
        norm_counts, sum_and_totals, length_counts, second_moment, active_second_moment, nearest,
        pinned, cluster_sums, capped_squares, capped_sum, first_level, second_level, far_counts,
        leaf_sums, distances_and_values, whitened_moments, whitened_distances, column_ranks,
        line_ranks, unit_totals, octaves, equal_bins, grid_cells_, vector_ranks, vector_sums,
        grid_counts, column_blocks, outside, tail_counts, offset_sums, category_counts, topic_sizes,
        topic_words, working, middle_scores, length_scores, score_sum, points, counts_about,
        ball_counts, ring_counts, ball_sum, ball_sum_replaced, members, fullest_boxes,
        named_boxes, named_boxes_replaced, named_intervals, radius_scores, interior_scores,
        tuple_pairs, tuple_pairs_replaced, label_distances, ball_scores, largest_scores,
        length_ranks, ball_moments_, wide_boxes, point_pairs_, view_sum, half_sum,
        round_of_rows, round_of_rows_replaced, round_of_clients,
    )
}  # fmt: skip


def first_problem(names, seeds):
    """The first problem of some cases, or None."""
    for seed, name in product(range(seeds), names):
        rng = np.random.default_rng([seed, 7])
        why, _ = problem(CASES[name](rng), rng)
        if why is not None:
            return f"{name}, seed {seed}: {why}"
    return None
