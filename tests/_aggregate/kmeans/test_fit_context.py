"""Names of plan entries under a prefix, and what they have left."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from grid_tools import grid_rows
from kernel_tools import open_session

from sklearn_dp._aggregate.kmeans.fit_context import (
    TUNING,
    Context,
    Run,
    lost_in_noise,
    only_last,
    only_one,
)
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


def test_a_run_that_knows_more_is_still_the_same_run():
    run = run_of("a ")
    shared = {field.name: getattr(run, field.name) for field in dataclasses.fields(run)}
    known = Context(**shared, size=Size(10.0, 0.5), radius=3.0)
    assert known.name("sum") == "a sum" and known.rows is run.rows and known.tuning is TUNING
    assert (known.size.signal, known.radius) == (5.0, 3.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        known.radius = 4.0


@pytest.mark.parametrize(
    ("d", "k", "n", "coarse"),
    [
        (3, 2, 100.0, False),
        (3, 2, 50.0, True),
        (3, 1, 100.0, True),
        (4, 2, 100.0, True),
        (4, 2, 1e5, False),
    ],
)
def test_coarse_choices_are_for_small_data_of_many_features_of_one_cluster_or_next_to_none(
    d, k, n, coarse
):
    run = run_of("")
    shared = {field.name: getattr(run, field.name) for field in dataclasses.fields(run)}
    rows = grid_rows(np.zeros((0, d)), 8.0)
    shared |= {"rows": rows, "n_clusters": k}
    known = Context(**shared, size=Size(n, 0.5), radius=3.0)
    assert known.coarse is coarse


def located(n, d, k):
    return SimpleNamespace(
        rows=SimpleNamespace(n_features=d), n_clusters=k, size=Size(n, 0.02), tuning=TUNING
    )


@pytest.mark.parametrize(
    ("n", "d", "k", "lost"),
    [
        (1000, 50, 10, True),
        (1000, 50, 1, False),
        (10_000, 50, 10, False),
        (1000, 2, 2, False),
        (1000, 200, 3, True),
        (3000, 200, 3, False),
    ],
)
def test_when_several_centers_are_lost(n, d, k, lost):
    """rho = 2.6e-4 (epsilon = .1): noise of 44 rows."""
    assert lost_in_noise(located(n, d, k), 2.6e-4) == lost


@pytest.mark.parametrize("k", [3, 10])
def test_in_few_features_centers_anywhere_are_worth_their_noise(k):
    """The same noise of a center, in radii of the data: lost in 100 features, and not in 2."""
    for d, lost in ((2, False), (100, True)):
        n = 44 * k * np.sqrt(d / 2.3)  # squared noise 2.3
        assert lost_in_noise(located(n, d, k), 2.6e-4) == lost


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
