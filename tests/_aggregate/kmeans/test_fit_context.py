"""Names of plan entries under a prefix, and what they have left."""

from types import SimpleNamespace

import numpy as np
import pytest
from grid_tools import grid_rows
from kernel_tools import open_session

from sklearn_dp._aggregate.kmeans.fit_context import (
    Context,
    Run,
    only_last,
    only_one,
)
from sklearn_dp._aggregate.kmeans.tuning import TUNING
from sklearn_dp._aggregate.shared.centering import Size
from sklearn_dp._privacy._plan import PlanEntry

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")


def run_of(prefix):
    entries = [PlanEntry(name, "gaussian", rho) for name, rho in (("sum", 0.5), ("a sum", 0.25))]
    rows = grid_rows(np.zeros((0, 2)), 8.0)
    return Run(session=open_session(*entries), rows=rows, n_clusters=3, prefix=prefix)


@pytest.mark.parametrize(("prefix", "name", "rho"), [("", "sum", 0.5), ("a ", "a sum", 0.25)])
def test_a_step_spends_the_entry_of_its_own_run(prefix, name, rho):
    run = run_of(prefix)
    assert run.name("sum") == name and run.left("sum") == rho
    run.session.gaussian(name, 1, sensitivity=1)
    assert run.left("sum") == 0 and run.session.spent == rho


def test_one_center_gets_few_iterations_of_any_data():
    context = Context(
        session=None, rows=SimpleNamespace(), n_clusters=7, size=Size(100, 1.0), radius=1.0
    )
    alone = only_one(context)
    assert alone.n_clusters == 1 and context.n_clusters == 7
    assert alone.tuning.most_iterations == TUNING.few_iterations < TUNING.most_iterations
    last = only_last(context)
    assert last.n_clusters == 7 and not last.moves and alone.moves
    assert last.tuning.most_iterations == TUNING.few_iterations
