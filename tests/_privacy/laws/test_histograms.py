"""Histograms of some cells: their law, and the premises of their proofs."""

import numpy as np
import pytest
from kernel_tools import open_session
from scipy import stats

from sklearn_dp._privacy._noise import SIMULATION_TV, NoiseSource, gaussian_tail
from sklearn_dp._privacy._plan import PlanEntry, PlanError
from sklearn_dp._privacy.laws import histograms
from sklearn_dp._privacy.laws.histograms import (
    dense_cells,
    simulated_cells,
    simulation_delta,
    stability_threshold,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")


def sparse_plan(delta=None):
    return PlanEntry(
        "cells", "gaussian", 0.125, delta=simulation_delta(1.0) if delta is None else delta
    )


def test_simulated_cells_follow_the_law_of_dense_noise():
    """2^12 cells, three occupied, sd 2, both ways 4,000 times.

    Compared: how many cells survive, their values, and how often each occupied cell does.
    Chi-square two-sample tests, false alarm 3e-7 each. Power: with the naive tail Q(low / sd)
    for the number of empty cells, 12 % too few survive, which 4,000 x 90 survivors show at 30
    standard errors.
    """

    codes, counts = np.array([3, 700, 4000]), np.array([2, 5, 9])
    sigma, low, runs = 2.0, 5, 4000
    samples = []
    for draw, seed in ((dense_cells, 1), (simulated_cells, 2)):
        noise = NoiseSource(seed)
        outputs = [draw(noise, codes, counts, 2**12, sigma, low) for _ in range(runs)]
        samples.append(outputs)
    for what in (
        lambda out: [len(out[0])],
        lambda out: out[1].tolist(),
        lambda out: np.searchsorted(codes, out[0][np.isin(out[0], codes)]).tolist(),
        lambda out: (out[0] // 256).tolist(),
    ):
        flat = [np.concatenate([what(out) for out in outputs]) for outputs in samples]
        values = np.unique(np.concatenate(flat))
        table = np.array([[np.sum(side == value) for value in values] for side in flat])
        table = table[:, table.sum(axis=0) >= 20]
        assert stats.chi2_contingency(table).pvalue > 3e-7
    for cells, values in samples[1]:
        assert (np.diff(cells) > 0).all() and (values >= low).all()


def test_simulated_cells_are_distinct_and_avoid_nothing_but_occupied_ones():

    cells, values = simulated_cells(NoiseSource(0), np.arange(5), np.zeros(5, int), 40, 3.0, -30)
    assert np.array_equal(cells, np.arange(40)) and len(values) == 40


def test_a_huge_sparse_histogram_needs_its_delta_in_the_plan():
    arguments = dict(n_candidates=2**40, threshold=20.0, sensitivity=1.0)
    session = open_session(sparse_plan(delta=0.0))
    with pytest.raises(PlanError, match="delta"):
        session.sparse_histogram("cells", np.array([1]), np.array([50]), **arguments)
    session = open_session(sparse_plan())
    cells, values = session.sparse_histogram(
        "cells", np.array([2**39]), np.array([500]), **arguments
    )
    assert 2**39 in cells and values[cells == 2**39][0] > 400
    assert simulation_delta(1.0) >= SIMULATION_TV * (1 + np.e) * (1 - 1e-12)


def test_stability_threshold_is_the_smallest_that_hides_a_single_unit():
    for sigma in (0.3, 1.0, 7.5, 1e4):
        for delta in (1e-3, 1e-9):
            low = stability_threshold(sigma, delta)
            assert gaussian_tail(sigma, low - 1) <= delta
            assert low == 2 or gaussian_tail(sigma, low - 3) > delta


def test_stability_histogram_shows_full_cells_and_hides_single_rows():
    codes, counts = np.unique(
        np.concatenate([np.full(500, 7), np.full(400, -3), np.arange(100, 160)]), return_counts=True
    )
    session = open_session(PlanEntry("cells", "stability histogram", 0.5, 1e-9))
    codes, values = session.stability_histogram("cells", codes, counts, rho=0.5, delta=1e-9)
    assert np.array_equal(codes, [-3, 7])
    assert np.abs(values - [400, 500]).max() < 10


SPARSE = {
    "codes": [3, 1],
    "counts": [5, 6],
    "n_candidates": 9,
    "threshold": 2.0,
    "sensitivity": 1.0,
    "rho": 0.1,
}


@pytest.mark.parametrize("n_candidates", [9, 2**40])
@pytest.mark.parametrize(
    "change, premise",
    [
        ({"codes": [1, 1]}, "distinct"),
        ({"codes": [-1, 1]}, "candidates"),
        ({"codes": [2**41, 1]}, "candidates"),
        ({"codes": [1]}, "each code"),
        ({"codes": [[3, 1]], "counts": [[5, 6]]}, "each code"),
        ({"counts": [5, -6]}, "negative"),
        ({"threshold": np.nan}, "threshold"),
        ({"threshold": np.inf}, "threshold"),
        ({"n_candidates": 0}, "candidates"),
        ({"n_candidates": 2**64}, "candidates"),
        ({"sensitivity": 0.0}, "sensitivity"),
        ({"rho": 0.0}, "rho"),
        ({"rho": np.nan}, "rho"),
    ],
)
def test_a_sparse_histogram_without_its_premises_is_refused(n_candidates, change, premise):
    """Two counts of one code, say, would be two cells for a unit that is in one."""
    session = open_session(sparse_plan())
    options = {**SPARSE, "n_candidates": n_candidates, "threshold": 20.0, **change}
    codes, counts = np.array(options.pop("codes")), np.array(options.pop("counts"))
    with pytest.raises(PlanError, match=premise):
        session.sparse_histogram("cells", codes, counts, **options)
    assert session.spent == 0


@pytest.mark.parametrize(
    "change",
    [{"codes": [1.5, 2]}, {"codes": [np.nan, 2]}, {"counts": [0.5, 2]}, {"counts": [np.nan, 2]}],
)
def test_cells_and_counts_are_integers(change):
    options = {**SPARSE, **change}
    with pytest.raises(TypeError, match="integers"):
        histograms.sparse(**options)


@pytest.mark.parametrize("threshold", [-1.0, 0.0, 3.0])
def test_more_simulated_cells_than_the_proof_allows_are_refused(threshold):
    """`SIMULATION_TV` is proved for 2^26 survivors and p <= 1/2: 2^40 Q(3.5 / 2) is 4e10."""
    with pytest.raises(PlanError, match="2\\*\\*26"):
        histograms.sparse(**{**SPARSE, "n_candidates": 2**40, "threshold": threshold, "rho": 0.125})


def test_the_report_tells_the_delta_of_a_simulation():
    session = open_session(sparse_plan())
    session.sparse_histogram(
        "cells", np.array([1]), np.array([50]), n_candidates=2**40, threshold=20.0, sensitivity=1.0
    )
    assert session.report().releases[0]["delta"] == SIMULATION_TV


@pytest.mark.parametrize(
    "change, premise",
    [
        ({"counts": [5, 0]}, "occupied"),
        ({"codes": [1, 1]}, "distinct"),
        ({"codes": [1.0, 2.0]}, "integers or bytes"),
        ({"codes": [1]}, "each code"),
        ({"delta": 0.0}, "delta"),
        ({"delta": 0.5}, "delta"),
        ({"delta": np.nan}, "delta"),
        ({"rho": -1.0}, "rho"),
        ({"sensitivity": np.nan}, "sensitivity"),
    ],
)
def test_a_stability_histogram_without_its_premises_is_refused(change, premise):
    options = {"codes": [3, 1], "counts": [5, 6], "rho": 0.1, "delta": 1e-6, **change}
    session = open_session(PlanEntry("cells", "stability histogram", 0.5, 0.1), delta=0.5)
    with pytest.raises(PlanError, match=premise):
        session.stability_histogram(
            "cells", np.array(options.pop("codes")), np.array(options.pop("counts")), **options
        )
    assert session.spent == 0


def test_two_codes_of_bytes_that_are_one():
    with pytest.raises(PlanError, match="distinct"):
        histograms.stability(np.array([b"ab", b"ab"]), np.array([1, 1]), 0.1, 1e-6)
