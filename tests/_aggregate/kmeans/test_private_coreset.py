"""The money of a coreset that is the answer."""

from fractions import Fraction

import numpy as np
import pytest
from grid_tools import table_rows
from kernel_tools import open_session

from sklearn_dp import DPCoreset
from sklearn_dp._aggregate.kmeans.fit_context import Candidates
from sklearn_dp._aggregate.kmeans.private_coreset import choose_separately, separate_entries
from sklearn_dp._costs.plan import Mechanism, PlanEntry
from sklearn_dp._parameters import domain_of


@pytest.mark.parametrize("d", [2, 5, 20])
def test_the_means_spend_what_the_tree_has_left(d):
    """A level that is not released costs nothing: its share is not lost."""
    X = np.random.default_rng(0).normal(size=(5000, d))
    coreset = DPCoreset(3, epsilon=1.0, bounds=6.0, random_state=0).fit(X)
    plan = DPCoreset(3, epsilon=1.0, bounds=6.0).privacy_plan(d)
    spent = sum(coreset.privacy_report_.to_frame()["rho"])
    assert plan.rho * (1 - 1e-6) <= spent <= plan.rho * (1 + 1e-12)


RHO = 0.1


@pytest.mark.parametrize("d", [1, 3, 5, 6, 12])
@pytest.mark.parametrize("n", [0, 1, 40, 3000])
@pytest.mark.parametrize("criterion", ["auto", "silhouette"])
def test_what_comes_later_keeps_its_share(d, n, criterion):
    """Also in small data, where the steps of the engine may take more than their shares."""
    candidates = Candidates(1, 12, criterion)
    entries = separate_entries(RHO, d, candidates, "choice/")
    assert sum(Fraction(entry.rho) for entry in entries) <= Fraction(RHO)
    later = PlanEntry("later", Mechanism.GAUSSIAN, RHO)
    session = open_session(*entries, later, rho=2 * RHO)
    X = 12 * np.eye(3, d)[np.arange(n) % 3] + np.random.default_rng(0).normal(size=(n, d))
    table, domain = table_rows(X), domain_of(20.0, d)
    choice = choose_separately(session, table, domain, candidates, prefix="choice/", rho=RHO)
    assert session.remaining("later") >= RHO
    assert 1 <= choice.n_clusters <= 12
    if n == 3000 and d > 3:
        assert choice.n_clusters == 3
