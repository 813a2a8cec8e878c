"""Seeded bugs in mixtures, which the replay audit has to catch."""

import math
from dataclasses import replace

import numpy as np
import pytest
from grid_tools import parts_in_memory, raw_table, rows_in_memory
from mixture_tools import WAYS, Mixture, audit_data

from sklearn_dp._aggregate.mixture import fit as _mixture
from sklearn_dp._aggregate.moments import estimates as _estimates
from sklearn_dp._aggregate.moments import margins as _margins
from sklearn_dp._aggregate.moments import moment_releases
from sklearn_dp._aggregate.moments import rounds as _rounds
from sklearn_dp._aggregate.tuples import stage as _tuple_stage
from sklearn_dp._published.separated_gaussians import partition as _mixture_partition
from sklearn_dp._published.separated_gaussians import tree as _mixture_tree
from sklearn_dp._queries import blocks as _blocks
from sklearn_dp._queries import halves as _mixture_halves
from sklearn_dp._queries import terrific as _terrific
from sklearn_dp._queries.active import ACTIVE
from sklearn_dp._queries.labels import LabelDistances
from sklearn_dp._rows.table import ROWS
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


def _unclipped(original):
    return lambda columns, limit: columns


def _too_little_noise(original):
    return lambda d, form, square: original(d, form, square) * 0.7


def _no_noise_off_the_diagonal(original):
    def claim(d, form, square):
        rows, columns = np.triu_indices(d)
        return np.where(rows == columns, 1.0, 0.3) * original(d, form, square)

    return claim


def _weight_of_two(original):
    def weights(*given):
        out = original(*given)
        out[0] *= 2
        return out

    return weights


def _responsibilities_above_one(original):
    def weights(*given):
        return np.minimum(original(*given) + 2**19, 2**20).astype(np.int32)

    return weights


def _labels_from_true_points(original):
    def weights(n_rows, squares, parts):
        return original(n_rows, [square + square[0] for square in squares], parts)

    return weights


def _weights_from_true_counts(original):
    def result(ends, codes, place, status, parts, here):
        n_rows = rows_in_memory(parts.rows).n_rows
        ends = [replace(end, weight=end.weight + n_rows) for end in ends]
        return original(ends, codes, place, status, parts, here)

    return result


def _repair_reads_data(original):
    def moments(part, *rest):
        _estimates.NARROWEST = 1e6 * part.units.n_rows
        return original(part, *rest)

    return moments


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
        counts, totals = raw_table(table).sums(_margins._margin_counts, origin, scale)
        return counts * table.units.step, sd, float(totals[0]) * table.units.step

    return counted


def _half_of_the_claim(original):
    return lambda value: original(value) / 2


def _true_order(original):
    def result(ends, codes, place, status, parts, here):
        ends = ends[::-1] if rows_in_memory(parts.rows).n_rows % 2 else ends
        ends = [replace(end, weight=1.0) for end in ends]
        return original(ends, codes, place, status, parts, here)

    return result


def _wrong_norm(original):
    """Clipped before whitening: whitened rows may then have any length."""

    def moments(part, components, *rest):
        wide = [replace(component, scales=component.scales * 4) for component in components]
        part, (counts, sums, moments) = original(part, wide, *rest)
        return part, (counts, 4 * sums, 16 * moments)

    return moments


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
        _mixture_tree.Recursion,
        "grow",
        _depth_from_the_data,
    ),
    "ball by true counts": ("joint balls", _mixture_tree, "joint_ball", _ball_by_true_counts),
    "order by true sizes": (
        "joint balls",
        _mixture_tree,
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
        _mixture_tree.Recursion,
        "find",
        _radii_from_the_data,
    ),
    "parts that overlap": ("two clusters", _mixture_tree.Node, "cut", _children_that_overlap),
    "score of sensitivity two": (
        "joint balls",
        _terrific,
        "terrific_scores",
        _annulus_counted_twice,
    ),
    "one half for all": ("tuples", _mixture_halves, "in_second", _second_half_is_everything),
    "blocks by position": ("tuples", _blocks, "drawn_rows", _blocks_by_position),
    "raw tuple": ("tuples", _tuple_stage.TupleStage, "run", _tuples_of_raw_rows),
    "clip forgotten": ("coreset", moment_releases, "clip_integer_columns", _unclipped),
    "clip at the wrong norm": ("coreset", _rounds, "exact_moments", _wrong_norm),
    "noise too small": ("coreset", moment_releases, "_moment_sensitivity", _too_little_noise),
    "noise not isometric": (
        "coreset",
        moment_releases,
        "_moment_sensitivity",
        _no_noise_off_the_diagonal,
    ),
    "a row of weight two": ("coreset", moment_releases, "component_weights", _weight_of_two),
    "responsibilities above one": (
        "coreset",
        moment_releases,
        "component_weights",
        _responsibilities_above_one,
    ),
    "labels from true means": (
        "coreset",
        moment_releases,
        "component_weights",
        _labels_from_true_points,
    ),
    "margins claimed as half": ("coreset", _margins, "round_up", _half_of_the_claim),
    "margins without noise": ("coreset", _margins, "_counted", _margins_of_rows),
    "weights from true counts": ("coreset", _mixture, "_result", _weights_from_true_counts),
    "order from the data": ("coreset", _mixture, "_result", _true_order),
    "repair that reads the data": ("coreset", _rounds, "exact_moments", _repair_reads_data),
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
def test_noise_that_is_not_symmetric_is_caught(monkeypatch):
    """Both triangles released as if one came with the other: entries cost twice."""

    def entries(x, form):
        return (x.T @ x).astype(np.int64).ravel()

    def claim(d, form, square):
        return np.where(np.eye(d).ravel() == 1, square, square * math.sqrt(0.5)) * (1 + 1e-9)

    monkeypatch.setattr(moment_releases, "_n_moments", lambda d, form: d * d)
    monkeypatch.setattr(moment_releases, "_moments_of", entries)
    monkeypatch.setattr(moment_releases, "_moment_sensitivity", claim)
    monkeypatch.setattr(
        moment_releases,
        "_matrices",
        lambda values, d, form: (
            (values.reshape(-1, d, d) + values.reshape(-1, d, d).transpose(0, 2, 1)) / 2
        ),
    )
    result = replay_audit(DPGaussianMixture(2, **WAYS["coreset"][0]), mutant_data("coreset")[0])
    assert any("component moments: distance" in text for text in result.violations)


@pytest.mark.slow
@pytest.mark.quick(
    but=(
        "candidates from the data",
        "blocks by position",
        "labels from true means",
        "a row of weight two",
    )
)
@pytest.mark.parametrize("name", MUTATIONS)
def test_mutants_are_killed(name, monkeypatch):
    way, owner, attribute, change = MUTATIONS[name]
    monkeypatch.setattr(_estimates, "NARROWEST", _estimates.NARROWEST)
    monkeypatch.setattr(owner, attribute, change(getattr(owner, attribute)))
    X, k, way = mutant_data(way)
    assert replay_audit(DPGaussianMixture(k, **WAYS[way][0]), X, stop_at_first=True).violations
