"""A number of clusters that is chosen with a share of its own."""

from fractions import Fraction

import numpy as np
import pytest

from sklearn_dp._aggregate.kmeans.candidates import Candidates
from sklearn_dp._aggregate.kmeans.separate_choice import choose_separately, separate_entries
from sklearn_dp._aggregate.shared.table import Table
from sklearn_dp._privacy._budget import PrivacyBudget
from sklearn_dp._privacy._domain import Domain
from sklearn_dp._privacy._plan import Mechanism, PlanEntry, PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._units import Units

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")
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
    plan = PrivacyPlan(PrivacyBudget(rho=2 * RHO, delta=1e-6), (*entries, later))
    session = PrivacySession(plan, random_state=0)
    X = 12 * np.eye(3, d)[np.arange(n) % 3] + np.random.default_rng(0).normal(size=(n, d))
    table, domain = Table.in_memory(X, Units(n)), Domain.from_bounds(20.0, d)
    choice = choose_separately(session, table, domain, candidates, prefix="choice/", rho=RHO)
    assert session.remaining("later") >= RHO
    assert 1 <= choice.n_clusters <= 12
    if n == 3000 and d > 3:
        assert choice.n_clusters == 3
