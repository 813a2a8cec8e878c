"""Seeded bugs in mixtures, which the replay audit has to catch."""

from dataclasses import replace

import numpy as np
import pytest
from grid_tools import exact, parts_in_memory, raw_table, rows_in_memory
from mixture_tools import WAYS, Mixture, audit_data

from sklearn_dp._aggregate.mixture import fit as _mixture
from sklearn_dp._aggregate.moments import estimates as _estimates
from sklearn_dp._aggregate.moments import margins as _margins
from sklearn_dp._aggregate.tuples import stage as _tuple_stage
from sklearn_dp._published.separated_gaussians import partition as _mixture_partition
from sklearn_dp._queries import blocks as _blocks
from sklearn_dp._queries import halves as _mixture_halves
from sklearn_dp._queries import terrific as _terrific
from sklearn_dp._queries.distances import DistancesAndValues
from sklearn_dp._queries.grids import ACTIVE
from sklearn_dp._queries.whitened import LabelDistances, WhitenedMoments
from sklearn_dp._rows.rows import ROWS
from sklearn_dp.audit import replay_audit
from sklearn_dp.mixture import (
    DPGaussianMixture,
    _dp_gaussian_mixture,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.UtilityWarning"),
]


def points_in_memory(rows):
    """The part of an inner table in memory; a fit itself never has it."""
    found = []
    raw_table(rows).sums(lambda part: (found.append(part) or part, ()))
    (part,) = found
    return part


def n_points(rows):
    return points_in_memory(rows).units.n_rows


def _weights_from_true_counts(original):
    def result(ends, codes, place, status, parts, here):
        n_rows = rows_in_memory(parts.rows).n_rows
        ends = [replace(end, weight=end.weight + n_rows) for end in ends]
        return original(ends, codes, place, status, parts, here)

    return result


def _repair_reads_data(original):
    def on(self, part):
        _estimates.NARROWEST = 1e6 * part.units.n_rows
        return original(self, part)

    return on


def _half_of_claims(original):
    return lambda self, facts: tuple(replace(c, l2=c.l2 / 2) for c in original(self, facts))


def _rounds_from_rows(original):
    def refine(rounds, *rest, **options):
        number = 1 + rows_in_memory(rounds.rows).n_rows % 2
        options |= {"least_rounds": number, "most_rounds": number}
        return original(rounds, *rest, **options)

    return refine


def _components_from_rows(original):
    def fit(session, table, domain, settings, *rest):
        (part,) = parts_in_memory(table)
        number = settings.n_components + part.units.n_rows % 2
        settings = replace(settings, n_components=number)
        return original(session, table, domain, settings, *rest)

    return fit


def _margins_of_rows(original):
    def counted(session, table, origin, scale):
        _, sd, _ = original(session, table, origin, scale)
        asked = DistancesAndValues(origin, scale, _margins._EDGES, _margins._HASHES)
        counts = exact(table.ask(asked)) * table.units.step
        return counts[:-1].reshape(len(origin), -1), sd, float(counts[-1])

    return counted


def _true_order(original):
    def result(ends, codes, place, status, parts, here):
        ends = ends[::-1] if rows_in_memory(parts.rows).n_rows % 2 else ends
        ends = [replace(end, weight=1.0) for end in ends]
        return original(ends, codes, place, status, parts, here)

    return result


def _depth_from_the_data(original):
    """One more attempt wherever the number of rows is odd: no plan knows."""

    def grow(self, root):
        if points_in_memory(self.points).units.n_rows % 2:
            self.split(root)
        else:
            original(self, root)

    return grow


def _ball_by_true_counts(original):
    def ball(session, prefix, rows, *rest, **options):
        found = original(session, prefix, rows, *rest, **options)
        active = points_in_memory(rows).state.get(ACTIVE, np.ones(n_points(rows)))
        return None if np.count_nonzero(active) % 2 else found

    return ball


def _sizes_from_true_counts(original):
    def ball(session, prefix, rows, *rest, **options):
        found = original(session, prefix, rows, *rest, **options)
        return found and replace(found, inside=float(n_points(rows) % 2), outside=0.5)

    return ball


def _candidates_from_the_data(original):
    def candidates(session, coreset, axes, settings, points):
        (_, x), *_ = points_in_memory(points)[ROWS].chunks()
        return np.vstack([original(session, coreset, axes, settings, points), x[:1], x[-1:]])

    return candidates


def _radii_from_the_data(original):
    def find(self, node, view, prefix, *, largest):
        squares = points_in_memory(self.points)[ROWS].squares
        reach = max(float(np.sqrt(squares.max(initial=1.0))), 1.0)
        return original(self, node, replace(view, limit=reach), prefix, largest=largest)

    return find


def _children_that_overlap(original):
    def cut(self, points, view, ball):
        original(self, points, view, ball)
        for child in self.children:
            # Both are looked at, and have the same points.
            child.number, child.size = self.children[0].number, -child.depth

    return cut


def _annulus_counted_twice(original):
    return lambda inside, around, outside, t: original(inside, 2 * around, outside, 2 * t)


def _second_half_is_everything(original):
    """All rows are in it, and the blocks are of half of them."""
    return lambda draws: np.ones(len(draws), dtype=bool)


def _blocks_by_position(original):
    """Blocks that move along when a row comes or goes."""

    def drawn_rows(draws, n_blocks, rate):
        rows, copies, _ = original(draws, n_blocks, rate)
        return rows, copies, rows[::-1] % n_blocks

    return drawn_rows


def _tuples_of_raw_rows(original):
    def stage(self, session, tuples, radius):
        found = original(self, session, tuples, radius)
        return found if found is None else np.where(np.isfinite(tuples[0]), tuples[0], found)

    return stage


MUTATIONS = {
    "depth from the data": (
        "joint balls",
        _mixture_partition.Recursion,
        "grow",
        _depth_from_the_data,
    ),
    "ball by true counts": ("joint balls", _mixture_partition, "joint_ball", _ball_by_true_counts),
    "order by true sizes": (
        "joint balls",
        _mixture_partition,
        "joint_ball",
        _sizes_from_true_counts,
    ),
    "candidates from the data": (
        "joint balls",
        _mixture_partition,
        "_candidates",
        _candidates_from_the_data,
    ),
    "radii from the data": (
        "joint balls",
        _mixture_partition.Recursion,
        "find",
        _radii_from_the_data,
    ),
    "parts that overlap": ("two clusters", _mixture_partition.Node, "cut", _children_that_overlap),
    "score of sensitivity two": (
        "joint balls",
        _terrific,
        "terrific_scores",
        _annulus_counted_twice,
    ),
    "one half for all": ("tuples", _mixture_halves, "in_second", _second_half_is_everything),
    "blocks by position": ("tuples", _blocks, "drawn_rows", _blocks_by_position),
    "raw tuple": ("tuples", _tuple_stage.TupleStage, "run", _tuples_of_raw_rows),
    "margins without noise": ("coreset", _margins, "_counted", _margins_of_rows),
    "weights from true counts": ("coreset", _mixture, "_result", _weights_from_true_counts),
    "order from the data": ("coreset", _mixture, "_result", _true_order),
    "repair that reads the data": ("coreset", WhitenedMoments, "on", _repair_reads_data),
    "radii with half of the noise": ("coreset", LabelDistances, "claims", _half_of_claims),
    "rounds from the data": ("coreset", _mixture, "refine", _rounds_from_rows),
    "components from the data": (
        "coreset",
        _dp_gaussian_mixture,
        "fit_mixture",
        _components_from_rows,
    ),
}


def mutant_data(way):
    if way == "two clusters":
        return Mixture(2, 4, 30, 200).X, 4, "joint balls"
    return (Mixture(2, 3, 8, 90).X, 2, way) if way == "coreset" else (audit_data(), 3, way)


@pytest.mark.slow
@pytest.mark.quick(
    but=(
        "candidates from the data",
        "blocks by position",
    )
)
@pytest.mark.parametrize("name", MUTATIONS)
def test_mutants_are_killed(name, monkeypatch):
    way, owner, attribute, change = MUTATIONS[name]
    monkeypatch.setattr(_estimates, "NARROWEST", _estimates.NARROWEST)
    monkeypatch.setattr(owner, attribute, change(getattr(owner, attribute)))
    X, k, way = mutant_data(way)
    assert replay_audit(DPGaussianMixture(k, **WAYS[way][0]), X, stop_at_first=True).violations
