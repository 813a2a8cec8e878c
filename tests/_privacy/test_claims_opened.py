"""What a release takes from a sealed answer: its claim, its unit, and its own entry's cost."""

import numpy as np
import pytest
from kernel_tools import open_session

from sklearn_dp._costs.plan import PlanEntry
from sklearn_dp._privacy._session import release_cells
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp._privacy._units import Claim, Sealed, SealedCells, SealedNames, UnitFacts
from sklearn_dp._privacy.mechanisms.pure import choose, first_above, leader, release_laplace
from sklearn_dp._privacy.mechanisms.shares import release_shared
from sklearn_dp._privacy.mechanisms.stability import release_names

CLAIM = Claim(7.0, 0.5, l1=11.0, most=4.0)  # four numbers that no release may confuse
ANSWER = Sealed(np.array([0, 90]), CLAIM, UnitFacts(), "a")
CELLS = SealedCells((np.array([1]), np.array([90])), CLAIM, UnitFacts(), "c", 9, 0)
NAMES = SealedNames((np.array([1]), np.array([90])), CLAIM, UnitFacts(), "n", cells=3)
OPENED = {
    "choose": ("exponential", lambda s: choose(s, "a", ANSWER, epsilon=0.1), 4.0),
    "first_above": ("above threshold", lambda s: first_above(s, "a", ANSWER, 9, epsilon=0.1), 4.0),
    "leader": ("lead", lambda s: leader(s, "a", ANSWER, epsilon=0.1, delta=1e-3), 4.0),
    "laplace": ("laplace", lambda s: release_laplace(s, "a", ANSWER, epsilon=0.1), 11.0),
    "cells": ("gaussian", lambda s: release_cells(s, "a", CELLS, threshold=9.0), 7.0),
    "names": (
        "stability histogram",
        lambda s: release_names(s, "a", NAMES, rho=0.1, delta=1e-3),
        7.0,
    ),
    "shared": ("gaussian", lambda s: release_shared(s, "a", ANSWER, n_honest=2), 7.0),
}


@pytest.mark.parametrize("name", OPENED)
def test_a_release_opens_the_claim_and_spends_its_own_entry(name):
    mechanism, call, sensitivity = OPENED[name]
    entries = PlanEntry("a", mechanism, 0.25, 0.01), PlanEntry("b", "gaussian", 0.5)
    with trace(Trace()) as seen:
        session = open_session(*entries, delta=0.5)
        call(session)
    event, line = seen.events[-1], session.report().releases[0]
    assert 0 < line["rho"] <= 0.25
    told = {"leader": 8.0, "laplace": 5.5, "cells": 3.5, "shared": 3.5}.get(name, sensitivity)
    assert line["sensitivity"] == told
    assert event.public.get("cells", 3) == 3 and (name != "cells" or event.public["low"] == 19)
