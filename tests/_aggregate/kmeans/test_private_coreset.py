"""The money of a coreset that is the answer."""

from fractions import Fraction

import numpy as np
import pytest
from grid_tools import table_rows
from kernel_tools import open_session

from sklearn_dp import DPCoreset
from sklearn_dp._aggregate.kmeans.fit_context import Candidates
from sklearn_dp._aggregate.kmeans.private_coreset import (
    choose_separately,
    private_coreset_entries,
    separate_entries,
)
from sklearn_dp._bounds import domain_of
from sklearn_dp._privacy._plan import Mechanism, PlanEntry

FLAT = {"sum and count": 0.05, "radius": 0.05, "cells": 0.60, "cell means": 0.30}
LINE = {"sum and count": 0.05, "radius": 0.05, "ranks": 0.90}
WIDE = {
    "sum and count": 0.05,
    "radius": 0.04,
    "second moment": 0.15,
    "cells": 0.47,
    "cell means": 0.29,
}


def shares_of(d):
    return LINE if d == 1 else FLAT if d <= 3 else WIDE


@pytest.mark.parametrize("d", [1, 3, 4, 10, 11, 100])
@pytest.mark.parametrize("known", [True, False])
def test_entries_sum_to_the_budget_and_no_more(d, known):
    for rho in (0.01922, 1 / 3, 7e-7, 123.456):
        entries = private_coreset_entries(rho, d, bounds_known=known)
        total = sum(Fraction(entry.rho) for entry in entries)
        assert Fraction(rho) * (1 - Fraction(1, 10**9)) < total <= Fraction(rho)
        assert all(entry.mechanism == "gaussian" and entry.cap <= rho for entry in entries)
        assert all(entry.sensitivity for entry in entries)
        shares = {entry.name: entry.rho / rho for entry in entries if entry.name != "bound"}
        assert ("bound" in {entry.name for entry in entries}) != known
        part = 1.0 if known else 0.95
        wanted = {name: share * part for name, share in shares_of(d).items()}
        assert shares == pytest.approx(wanted, rel=1e-9)


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
