"""Edits of the package's text, as an outside reviewer makes them, and the test that sees each.

Those of the other modules are found by checks that fit any estimator. These are about a room of
their own: what pads a search, what a composite step hands out, a sampler that one law alone has. So
each names a test of the normal suite, which has to fail while the edit is there
(`tests/test_outside_mutants.py`).
"""

import __future__

import inspect
import textwrap
from dataclasses import dataclass, field
from typing import Any

from federated_states import CLIENT_STATES

from sklearn_dp import DPKMeans, DPOneCluster
from sklearn_dp._aggregate.moments import days
from sklearn_dp._aggregate.one_cluster import search as _one_cluster
from sklearn_dp._costs import accounting as _accounting
from sklearn_dp._costs import ledger_terms as _dp_accounting
from sklearn_dp._costs import numbers as _disjoint
from sklearn_dp._days import BaseByDays
from sklearn_dp._partitions._sources import CheckedSource
from sklearn_dp._privacy import _ledger as _prepaid
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy.mechanisms import pure as _selection
from sklearn_dp._privacy.mechanisms import stability as _stability
from sklearn_dp._privacy.mechanisms.shares import NoiseShares
from sklearn_dp._queries import blocks as _blocks
from sklearn_dp._queries import boxes as _scores
from sklearn_dp._queries import client_rounds as _rounds
from sklearn_dp._queries import clusters as _clusters
from sklearn_dp._queries import grids as _grids
from sklearn_dp._queries import halves as _terrific
from sklearn_dp._queries import places as _places
from sklearn_dp._queries import point_pairs as _ball_moments
from sklearn_dp._queries import separated_balls as _noisy_centers
from sklearn_dp._queries import separated_balls as _separated_balls
from sklearn_dp._queries import tuples as _k_averages
from sklearn_dp._queries import words as _words
from sklearn_dp._queries.balls import MiddleScores
from sklearn_dp._queries.boxes import NamedBoxes
from sklearn_dp.ensemble import SampleAndAggregate
from sklearn_dp.ensemble._aggregation import Aggregation
from sklearn_dp.federated import _clients
from sklearn_dp.federated._clients import LocalEngine
from sklearn_dp.model_selection import _search_plan
from sklearn_dp.model_selection._runs import Runner

from .planting import Mutant

__all__ = ["OUTSIDE", "Edit"]


@dataclass(frozen=True)
class Edit:
    """One edit of the text of a function, of a class or a module; the name says what is wrong.

    `old`, which stands there once, becomes `new`. Then `test`, ``path::function`` below `tests/`,
    has to fail with these arguments, beside `monkeypatch`.
    """

    name: str
    owner: Any
    attribute: str
    old: str
    new: str
    test: str
    arguments: dict = field(default_factory=dict)

    def planted(self):
        """The edit is there in this context; yields a list that fills when it is reached."""
        return Mutant(self.name, (), ((self.owner, self.attribute, self._edited),)).planted()

    def _edited(self, original):
        function = inspect.unwrap(original)
        source = textwrap.dedent(inspect.getsource(function))
        if source.count(self.old) != 1:
            raise LookupError(f"{self.name}: {self.old!r} stands {source.count(self.old)} times")
        names: dict[str, Any] = {}
        text = source.replace(self.old, self.new)
        # Types are not looked up: some are imported for type checkers only.
        flags = __future__.annotations.compiler_flag
        code = compile(text, inspect.getfile(function), "exec", flags)
        exec(code, function.__globals__, names)
        return names[function.__name__]


OUTSIDE = [
    Edit(
        "padding runs of a search join the choice",
        Runner,
        "_best",
        "self._made(drawn, sessions)[:counted]",
        "self._made(drawn, sessions)",
        "model_selection/test_runs.py::test_padding_runs_are_no_candidates",
        {"drawn": [1], "winner": 1},
    ),
    Edit(
        "shares of noise from a constant seed",
        LocalEngine,
        "__init__",
        "self.seed_shares(None)",
        "self.seed_shares(0)",
        "test_entropy.py::test_two_fits_without_a_seed_have_no_bit_in_common",
        {"name": "clients that add noise"},
    ),
    Edit(
        "blocks and coins from a constant seed",
        PrivacySession,
        "__init__",
        'fresh = int.from_bytes(fresh_bytes(32), "big") if seed is None else seed',
        "fresh = 5 if seed is None else seed",
        "test_entropy.py::test_two_fits_without_a_seed_have_no_bit_in_common",
        {"name": "SampleAndAggregate, copies"},
    ),
    Edit(
        "queries above a threshold with the noise of the threshold",
        _selection,
        "above_threshold_release",
        "noise.rounded_laplace(2 * scale, queries.shape)",
        "noise.rounded_laplace(scale, queries.shape)",
        "audit/test_draws.py::test_answers_above_a_threshold_tell_no_more_than_they_cost",
    ),
    Edit(
        "scales that are not those of the record",
        _selection,
        "above_threshold_release",
        "noise.rounded_laplace(2 * scale, queries.shape)",
        "noise.rounded_laplace(1.9 * scale, queries.shape)",
        "audit/test_draws.py::test_a_law_asks_for_the_scale_that_it_claims",
        {"name": "threshold"},
    ),
    Edit(
        "a clear lead with half of its noise",
        _selection,
        "lead",
        "noise.rounded_laplace(scale)",
        "noise.rounded_laplace(scale / 2)",
        "audit/test_draws.py::test_a_law_asks_for_the_scale_that_it_claims",
        {"name": "lead"},
    ),
    Edit(
        "boxes with all of epsilon",
        _k_averages,
        "box_means",
        "epsilon / (2 * p)",
        "epsilon / p",
        "test_composite_steps.py::test_box_means_spend_what_they_may",
        {"n_sets": 1, "p": 6},
    ),
    Edit(
        "each end of a segment with all of its epsilon",
        _k_averages,
        "bounding_segment",
        "interior_point(step, part, cell, ball, changes=changes, epsilon=epsilon / 2)",
        "interior_point(step, part, cell, ball, changes=changes, epsilon=epsilon)",
        "test_composite_steps.py::test_a_test_for_far_balls_and_its_answer",
        {"aggregator": "k_averages", "sampling": "disjoint"},
    ),
    Edit(
        "fourth powers beside a mean with half of their claim",
        _ball_moments.BallMoments,
        "claims",
        "longest / math.sqrt(share) * _UP",
        "longest / math.sqrt(share) / (1 + place) * _UP",
        "_aggregate/friendly/test_refine.py"
        "::test_a_row_on_an_axis_at_the_clip_moves_a_release_by_all_of_its_claim",
        {"powers": (0.05, 0.05)},
    ),
    Edit(
        "an answer after far balls with all of epsilon",
        _separated_balls,
        "answer_budget",
        "epsilon / 2 * _SAFE",
        "epsilon * _SAFE",
        "test_composite_steps.py::test_a_test_for_far_balls_and_its_answer",
        {"aggregator": "noisy_centers", "sampling": "with_replacement"},
    ),
    Edit(
        "a failure of the test for far balls counted in one law",
        _separated_balls,
        "answer_budget",
        "(1 + math.exp(epsilon))",
        "math.exp(epsilon)",
        "test_composite_steps.py::test_what_theorem_w_adds_up",
        {"epsilon": 1.0},
    ),
    Edit(
        "noisy centers with all of epsilon",
        _noisy_centers,
        "noisy_centers",
        "epsilon=epsilon / 2, delta=delta / 2)",
        "epsilon=epsilon, delta=delta / 2)",
        "test_composite_steps.py::test_a_test_for_far_balls_and_its_answer",
        {"aggregator": "noisy_centers", "sampling": "disjoint"},
    ),
    Edit(
        "a scale of noisy centers for one of k",
        _noisy_centers,
        "_noisy_scale",
        "math.log(k / (2 * delta))",
        "math.log(1 / (2 * delta))",
        "test_composite_steps.py::test_the_scale_of_noisy_centers_is_an_upper_bound_but_for_its_delta",
    ),
    Edit(
        "copies of a unit paid for as one",
        SampleAndAggregate,
        "_block_target",
        "before_sampling(epsilon, delta, COPY_RATE)",
        "before_sampling(epsilon, delta, COPY_RATE / 2)",
        "test_composite_steps.py::test_an_aggregation_of_blocks_with_copies",
        {"aggregator": "mean", "bounds": 4.0},
    ),
    Edit(
        "a sample amplified twice",
        _accounting,
        "epsilon_on_a_sample",
        "math.expm1(epsilon) / rate",
        "math.expm1(epsilon) / rate**2",
        "test_composite_steps.py::test_a_radius_on_a_sample",
        {"method": "above_threshold"},
    ),
    Edit(
        "boxes of replaced points with the noise for one more",
        NamedBoxes,
        "_claims",
        "math.sqrt(2) if self.replace else 1.0",
        "1.0",
        "ensemble/test_sample_and_aggregate.py::"
        "test_a_row_that_moves_its_block_from_one_place_to_another",
        {"options": {"agreement": 0.3}, "entry": "box"},
    ),
    Edit(
        "a share of a client far away from a constant seed",
        _clients,
        "client_update",
        "NoiseShares() if shares is None",
        "NoiseShares(0) if shares is None",
        "test_entropy.py::test_two_fits_without_a_seed_have_no_bit_in_common",
        {"name": "clients far away"},
    ),
    Edit(
        "a share of noise from the name of its client",
        NoiseShares,
        "draw",
        "noise_source(self._seed, f",
        "noise_source(hash(self._name)% 97, f",
        "test_entropy.py::test_two_fits_without_a_seed_have_no_bit_in_common",
        {"name": "clients that add noise"},
    ),
    Edit(
        "moments of clients in one another's place without their rounding",
        _rounds,
        "_bound_of_a_swap",
        "_ROOT_2 * (bound + rounded)",
        "_ROOT_2 * bound",
        "federated/test_clients.py::"
        "test_moments_of_clients_need_more_than_the_root_of_two_by_their_rounding_alone",
    ),
    Edit(
        "half of the noise off the diagonal of a client's second moment",
        _clients,
        "_with_share",
        "np.where(diagonal, sigma, off_diagonal)",
        "np.where(diagonal, sigma, off_diagonal / 2)",
        "federated/test_shared_noise.py::"
        "test_a_share_of_a_second_moment_is_drawn_at_what_each_entry_is_told",
    ),
    Edit(
        "a client uses all of its rows",
        _clients,
        "_rows_of",
        'saturated(X[: int(message["most_rows"][0])] if message["most_rows"].size else X)',
        "saturated(X)",
        "federated/test_clients.py::test_a_client_uses_its_first_rows_only",
        {"state": CLIENT_STATES[0]},
    ),
    Edit(
        "a score with the noise of one row where a group counts",
        _scores.ScoreSum,
        "claims",
        "largest = _STEPS * facts.units.scale",
        "largest = _STEPS",
        "_queries/test_queries.py::test_a_question_is_as_proved",
        {"name": "score_sum"},
    ),
    Edit(
        "a score as far out as rounding takes it",
        _scores.ScoreSum,
        "on",
        "exact_integers(np.clip(steps, -_STEPS, _STEPS))",
        "exact_integers(steps)",
        "_queries/test_queries.py::test_a_question_is_as_proved",
        {"name": "score_sum"},
    ),
    Edit(
        "the score of the winner in the rows of all candidates",
        Runner,
        "_best",
        "scores[index] = score",
        "scores[:] = score",
        "model_selection/test_runs.py::test_padding_runs_are_no_candidates",
        {"drawn": [2, 1], "winner": 1},
    ),
    Edit(
        "no more tasks than runs",
        Runner,
        "_made",
        "n_threads(self.n_jobs)",
        "min(n_threads(self.n_jobs), len(numbers))",
        "model_selection/test_runs.py::test_as_many_tasks_whatever_the_number_of_runs",
        {"drawn": [1]},
    ),
    Edit(
        "a search that is padded to one run less",
        Runner,
        "_surplus",
        "- {*drawn})",
        "- {*drawn})[1:]",
        "model_selection/test_runs.py::test_padding_runs_are_no_candidates",
        {"drawn": [1], "winner": 1},
    ),
    Edit(
        "surplus runs of the first candidate",
        Runner,
        "_surplus",
        ".integers(rule.m, size=int(rule.cap))",
        ".integers(1, size=int(rule.cap))",
        "model_selection/test_runs.py::test_surplus_runs_are_drawn_like_those_that_count",
        {"counted": 1},
    ),
    Edit(
        "the best of many runs that may fail",
        _search_plan,
        "only_gaussian",
        " and not plan.delta_failure",
        "",
        "model_selection/test_search_plan.py::test_a_gaussian_release_that_may_fail_is_not_one_of_the_theorem",
    ),
    Edit(
        "a fit that protects a row inside one that protects a group",
        PrivacySession,
        "_check_neighbors",
        "plan.unit != self.plan.unit or ",
        "",
        "_privacy/test_session.py::test_a_fit_inside_protects_the_neighbors_of_the_whole",
        {"whole": {"unit": "group"}, "part": {}},
    ),
    Edit(
        "a status from the true number of blocks that worked",
        Aggregation,
        "run",
        "if n_working < n_blocks / 2:",
        "if __import__('block_tools').number_that_worked(outputs) < n_blocks / 2:",
        "ensemble/test_aggregation.py::test_how_many_blocks_failed_shows_by_its_release_only",
        {"options": {}},
    ),
    Edit(
        "a number of outputs to agree from those that worked",
        Aggregation,
        "_by_one_cluster",
        "int(self.agreement * n_blocks)",
        "int(self.agreement * __import__('block_tools').number_that_worked(outputs))",
        "ensemble/test_aggregation.py::test_how_many_blocks_failed_shows_by_its_release_only",
        {"options": {"agreement": 0.3, "output_bounds": 1.0}},
    ),
    Edit(
        "blocks of a task that draw from one stream",
        _blocks,
        "fit_some",
        "start_stream(seed)",
        "start_stream(seeds[0]) if rows is blocks[0] else None",
        "_silence/test_global_generators.py::test_one_row_more_changes_one_block",
    ),
    Edit(
        "units of outputs with the noise for half of a block",
        MiddleScores,
        "_claims",
        "Claim.of_entries(1.0,",
        "Claim.of_entries(0.5,",
        "ensemble/test_aggregation.py::test_replay_of_replaced_outputs",
        {"kind": "mean"},
    ),
    Edit(
        "outputs in one another's place with the noise for one more",
        Aggregation,
        "_by_mean",
        "rho, replace=True",
        "rho, replace=False",
        "ensemble/test_sample_and_aggregate.py::"
        "test_a_row_that_moves_its_block_from_one_place_to_another",
        {"options": {"aggregator": "mean"}, "entry": "mean"},
    ),
    Edit(
        "sums of wide clusters with the noise of a middling one",
        _clusters,
        "residual_claim",
        "np.nextafter(radius * 2.0**WEIGHT_BITS, np.inf)",
        "np.nextafter(np.minimum(radius, np.median(radius)) * 2.0**WEIGHT_BITS, np.inf)",
        "_queries/test_queries.py::test_a_question_is_as_proved",
        {"name": "cluster_sums"},
    ),
    Edit(
        "groups of another length than the rows",
        CheckedSource,
        "_same",
        "len(values) != self._length",
        "len(values) < self._length",
        "_partitions/test_check_part.py::"
        "test_groups_and_weights_of_another_length_are_refused_when_rows_are_counted",
        {"values": [1, 2, 3, 4, 5]},
    ),
    Edit(
        "a sum and a count with the noise of the sum alone",
        _places.SumAndTotals,
        "claims",
        "np.full(d, round_up(facts.limit * of_sum))",
        "np.full(d, round_up(facts.limit))",
        "_queries/test_queries.py::test_a_question_is_as_proved",
        {"name": "sum_and_totals"},
    ),
    Edit(
        "boxes on the sample of the radius",
        _one_cluster,
        "_coins_of_boxes",
        'prefix + "boxes"',
        'task.prefix + "radius"',
        "_aggregate/one_cluster/test_search.py::test_no_two_samples_share_their_coins",
        {"estimator": DPOneCluster},
    ),
    Edit(
        "a scan of radii with the noise of half its claim",
        _terrific.LargestScores,
        "_claims",
        "2.0 * self.t - 1",
        "float(self.t)",
        "_published/separated_gaussians/test_terrific_points.py::test_a_scan_claims_what_its_queries_move_by",
        {"least": 1.0},
    ),
    Edit(
        "two fits take one part of what was paid for them together",
        _prepaid._Untaken,
        "take",
        "self.parts.remove(min(fitting, key=lambda part: part.rho))",
        "min(fitting, key=lambda part: part.rho)",
        "_privacy/test_prepaid.py::test_each_part_is_taken_once_by_what_it_covers",
    ),
    Edit(
        "what was paid for one value of a key is taken for another",
        _prepaid,
        "_account",
        "ledger.payers",
        "('', '')",
        "_privacy/test_disjoint.py::test_a_payment_for_one_value_is_not_taken_by_another",
    ),
    Edit(
        "a unit pays for the cheapest value of a key",
        _disjoint,
        "dearest",
        "max(sums",
        "min(sums",
        "_privacy/test_disjoint.py::test_a_charge_is_admitted_if_every_combination_can_pay_it",
        {"n_keys": 1},
    ),
    Edit(
        "a charge to a value leaves out what is common",
        _disjoint,
        "dearest",
        "for key, values in paid.items():",
        "for key, values in [each for each in paid.items() if payers[0] in ('', each[0])]:",
        "_privacy/test_disjoint.py::test_the_guarantee_holds_for_whoever_chooses_by_all_that_was_released",
    ),
    Edit(
        "steps of one fit are charged to two values of a key",
        _disjoint,
        "check_one_value",
        "!= value",
        "is None",
        "_privacy/test_disjoint.py::test_steps_of_one_fit_are_not_charged_to_two_values",
    ),
    Edit(
        "the events of several values cover the first of them",
        _dp_accounting,
        "_covering",
        "if most in totals:\n        return several[totals.index(most)]",
        "return several[0]",
        "_privacy/test_disjoint.py::test_totals_of_random_books_are_those_of_all_combinations",
        {"books": 10, "n_keys": 1},
    ),
    Edit(
        "a part of what was paid for covers a fit that costs more",
        _prepaid.PrepaidFit,
        "covers",
        "and charge.rho <= self.rho",
        "",
        "_privacy/test_prepaid.py::test_each_part_is_taken_once_by_what_it_covers",
    ),
    Edit(
        "later days draw half of their noise",
        BaseByDays,
        "_opened",
        "if today.n_days > 1:",
        "own = session._source.rounded_gaussian\n"
        "    if number:\n"
        "        session._source.rounded_gaussian = lambda s, size=None: own(s / 2, size)\n"
        "    if today.n_days > 1:",
        "test_days.py::test_each_day_draws_the_noise_that_it_pays_for",
        {"estimator": DPKMeans(4, bounds=1.0), "name": "one day each"},
    ),
    Edit(
        "later days of units whose ledger was never charged",
        BaseByDays,
        "_check_ledger",
        "state.identity != first",
        "False",
        "test_days.py::test_another_ledger_is_refused",
        {"first": "fit", "kept": "in memory", "tmp_path": None},
    ),
    Edit(
        "the next day of components is told how many rows there are",
        days.AxesDays,
        "and_one",
        "max(float(release.counts[0]), 1.0)",
        "float(rows.table._raw().sums(lambda part: (part, (np.asarray(part.units.n_rows),)))[0])",
        "test_days.py::test_a_unit_moves_one_day_for_what_a_day_costs",
        {"state": "components", "name": "one day each"},
    ),
    Edit(
        "the next day of a mixture is told how many rows there are",
        days._Day,
        "ended",
        "max(float(self.release.counts[j]), 1.0)",
        "float(self.rounds.rows.table._raw().sums(lambda p: (p, (np.array(p.units.n_rows),)))[0])",
        "test_days.py::test_a_unit_moves_one_day_for_what_a_day_costs",
        {"state": "tied mixture", "name": "one day each"},
    ),
    Edit(
        "a forked child takes a part that its parent has paid for",
        _prepaid._Untaken,
        "take",
        "self._process != process_mark() or ",
        "",
        "_privacy/test_prepaid.py::test_a_forked_child_takes_no_part",
    ),
    Edit(
        "as many words of a person as there are",
        _words,
        "counted_pairs",
        " and len(taken[unit]) < most",
        "",
        "_queries/test_queries.py::test_a_question_is_as_proved",
        {"name": "topic_words"},
    ),
    Edit(
        "counts of words with the noise of one word",
        _words.TopicWords,
        "claims",
        "self.most",
        "1",
        "_queries/test_queries.py::test_a_question_is_as_proved",
        {"name": "topic_words"},
    ),
    Edit(
        "a threshold for one word of a text",
        _stability,
        "stability",
        "delta if cells == 1 else round_down(delta / cells)",
        "delta",
        "_privacy/mechanisms/test_histograms.py::"
        "test_of_a_unit_in_many_cells_none_is_seen_but_for_delta",
        {"cells": 8},
    ),
    Edit(
        "projected rows may be longer than the limit",
        _grids,
        "projected",
        "clip_integer_rows(_products(rows, basis), limit)",
        "_products(rows, basis)",
        "_queries/test_queries.py::test_a_question_is_as_proved",
        {"name": "sum_and_totals"},
    ),
]
