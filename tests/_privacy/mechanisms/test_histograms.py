"""Histograms of some cells: their law, and the premises of their proofs."""

import numpy as np
import pytest
from kernel_tools import open_session
from scipy.stats import norm

from sklearn_dp._costs.plan import PlanEntry, PlanError
from sklearn_dp._privacy import _session
from sklearn_dp._privacy._noise import NoiseSource, gaussian_tail
from sklearn_dp._privacy.mechanisms import stability
from sklearn_dp._privacy.mechanisms.stability import stability_threshold


def sparse_plan():
    return PlanEntry("cells", "gaussian", 0.125)


def test_every_cell_of_a_sparse_histogram_gets_noise_of_its_own():
    """All of 2^20 cells have the release's noise, so it needs no delta, however empty they are.

    Empty cells that are simulated follow their law up to a small distance t only, which costs a
    delta of t (1 + exp(epsilon)). Noise shows here by its replay: the output is a function of the
    noise vector, cell by cell.
    """
    codes, counts = np.array([9, 4]), np.array([50, 3])
    release = _session.sparse(codes, counts, 2**20, 2.5, 1.0, 0.125)
    noise = NoiseSource(3).rounded_gaussian(release.scale, 2**20)
    noise[[9, 4]] += [50, 3]
    cells, values = release.draw(NoiseSource(3))
    assert release.delta == 0.0
    assert np.array_equal(cells, np.flatnonzero(noise > 2.5))
    assert np.array_equal(values, noise[cells])
    assert len(cells) > 10**5  # nearly all of them empty


def test_more_cells_than_can_get_noise_of_their_own_are_refused():
    with pytest.raises(PlanError, match="2\\*\\*20 candidates"):
        _session.sparse(**{**SPARSE, "n_candidates": 2**20 + 1})


def test_stability_threshold_is_the_smallest_that_hides_a_single_unit():
    for sigma in (0.3, 1.0, 7.5, 1e4):
        for delta in (1e-3, 1e-9):
            low = stability_threshold(sigma, delta)
            assert gaussian_tail(sigma, low - 1) <= delta
            assert low == 2 or gaussian_tail(sigma, low - 3) > delta


SPARSE = {
    "codes": [3, 1],
    "counts": [5, 6],
    "n_candidates": 9,
    "threshold": 2.0,
    "sensitivity": 1.0,
    "rho": 0.1,
}


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
def test_a_sparse_histogram_without_its_premises_is_refused(change, premise):
    """Two counts of one code, say, would be two cells for a unit that is in one."""
    session = open_session(sparse_plan())
    with pytest.raises(PlanError, match=premise):
        session._release("cells", _session.sparse(**{**SPARSE, **change}))
    assert session.spent == 0


@pytest.mark.parametrize(
    "change",
    [{"codes": [1.5, 2]}, {"codes": [np.nan, 2]}, {"counts": [0.5, 2]}, {"counts": [np.nan, 2]}],
)
def test_cells_and_counts_are_integers(change):
    options = {**SPARSE, **change}
    with pytest.raises(TypeError, match="integers"):
        _session.sparse(**options)


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
        ({"cells": 0}, "cell of a unit"),
        ({"cells": 2.0}, "cell of a unit"),
    ],
)
def test_a_stability_histogram_without_its_premises_is_refused(change, premise):
    options = {"codes": [3, 1], "counts": [5, 6], "rho": 0.1, "delta": 1e-6, **change}
    session = open_session(PlanEntry("cells", "stability histogram", 0.5, 0.1), delta=0.5)
    with pytest.raises(PlanError, match=premise):
        session._release("cells", stability.stability(**options))
    assert session.spent == 0


def test_two_codes_of_bytes_that_are_one():
    with pytest.raises(PlanError, match="distinct"):
        stability.stability(np.array([b"ab", b"ab"]), np.array([1, 1]), 0.1, 1e-6)


@pytest.mark.parametrize("cells", [1, 2, 8, 1000])
def test_of_a_unit_in_many_cells_none_is_seen_but_for_delta(cells):
    """The tail of one cell times their number is at most delta, and not far below it."""
    options = {"rho": 0.01, "delta": 1e-5, "sensitivity": cells**0.5, "cells": cells}
    release = stability.stability(np.array([3]), np.array([1]), **options)
    low = release.public["low"]
    assert release.public["cells"] == cells
    assert cells * norm.sf((low - 1.5) / release.scale) <= 1e-5
    assert cells * norm.sf((low - 3.5) / release.scale) > 1e-5
