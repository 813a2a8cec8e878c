"""A sealed answer tells what is public of it, and nothing else; a session opens it."""

import copy
import pickle

import numpy as np
import pytest
from kernel_tools import open_session

from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.plan import PlanEntry, PlanError, PrivacyPlan
from sklearn_dp._privacy._session import release_cells
from sklearn_dp._privacy._units import Claim, Sealed, SealedCells, UnitFacts, opened

EXACT = np.array([70001, 70002, 70003])
SEALED = Sealed(EXACT, Claim(1.0, 0.5), UnitFacts(), "Something")
OCCUPIED = np.array([1, 70001]), np.array([5, 6])
CELLS = SealedCells(OCCUPIED, Claim(1.0), UnitFacts(), "Many", 2**18, 1)
USES = [
    bool, len, iter, list, tuple, set, int, float, complex, hash, abs, round, bytes, vars, dict,
    np.asarray, np.array, np.sum, np.float64, memoryview, reversed, copy.copy, copy.deepcopy,
    pickle.dumps,
    lambda s: s == s, lambda s: s != 1, lambda s: s < 1, lambda s: s >= 1, lambda s: s + 1,
    lambda s: 1 - s, lambda s: np.ones(3) * s, lambda s: np.add(s, 1), lambda s: s[0],
    lambda s: 0 in s, lambda s: -s, lambda s: s @ s, lambda s: s % 2, lambda s: s**2,
    lambda s: s // 2, lambda s: s & 1, lambda s: ~s, lambda s: f"{s:d}", lambda s: range(3)[s],
    lambda s: setattr(s, "claim", Claim(9.0)), lambda s: delattr(s, "claim"), lambda s: max(s, 1),
    lambda s: divmod(s, 2), lambda s: 1 << s, lambda s: np.where(s, 1, 0),
    lambda s: [*s], lambda s: np.concatenate([s, s]),
]  # fmt: skip


@pytest.mark.parametrize("sealed", [SEALED, CELLS], ids=["numbers", "cells"])
@pytest.mark.parametrize("use", USES)
def test_nothing_can_be_computed_with_it(use, sealed):
    with pytest.raises(TypeError) as caught:
        use(sealed)
    assert "7000" not in str(caught.value)


def test_what_shows_is_public():
    assert repr(SEALED) == str(SEALED) == "<sealed Something of shape (3,)>"
    assert repr(CELLS) == "<sealed Many of shape ()>"  # how many are occupied is not


def test_a_release_has_the_noise_of_the_claim_and_the_length_of_a_step():
    session = open_session(PlanEntry("e", "gaussian", 1e9), rho=1e9)
    assert session.release("e", SEALED, rho=1e9).tolist() == (EXACT / 2).tolist()
    (line,) = session.report().releases
    assert line["sensitivity"] == 0.5 and line["rho"] == 1e9
    with pytest.raises(TypeError, match="only what a question"):
        session.release("e", EXACT)


def test_cells_beyond_a_threshold_and_those_that_are_shown_anyway():
    claim = Claim(2.0, 0.5, l1=2.0)
    exact = np.array([1, 4, 7]), np.array([100, 3, 8])
    session = open_session(PlanEntry("e", "gaussian", 1e9), rho=1e9)
    sealed = SealedCells(exact, claim, UnitFacts(2), "Cells", 8, 2)
    cells, counts = release_cells(session, "e", sealed, threshold=20.0)
    assert cells.tolist() == [1, 6, 7] and counts.tolist() == [50.0, 0.0, 4.0]


@pytest.mark.parametrize(("unit", "good"), [("row", ("row", "group")), ("group", ("group",))])
def test_a_plan_for_groups_takes_no_answer_about_rows(unit, good):
    plan = PrivacyPlan(PrivacyBudget(rho=1.0, delta=1e-6), (PlanEntry("e", "gaussian", 1.0),), unit)
    for own in ("row", "group"):
        sealed = Sealed(EXACT, Claim(1.0), UnitFacts(unit=own), "Something")
        if own in good:
            assert opened(sealed, plan) is EXACT
        else:
            with pytest.raises(PlanError, match="protects groups"):
                opened(sealed, plan)
