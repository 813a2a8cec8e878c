"""Halves, and one row for each unit: they belong to units, wherever the rows are."""

import numpy as np
from mixture_tools import session_of

from sklearn_dp._costs.plan import PlanEntry
from sklearn_dp._privacy.mechanisms import stability
from sklearn_dp._queries.halves import in_first, in_second
from sklearn_dp._queries.samples import ByPart
from sklearn_dp._rows.table import ROWS

N = 60


def session():
    return session_of(PlanEntry("x", "gaussian", 1.0))


def _rows(part):
    x = [np.empty((0, 2)), *(x for _, x in part[ROWS].chunks())]
    weights = part.units.weights
    weights = np.ones(part.units.n_rows) if weights is None else weights
    return part, (ByPart({part.source.number: (np.concatenate(x), weights)}),)


def test_each_unit_is_in_one_half():
    draws = stability.unit_draws(session(), N)
    assert np.array_equal(in_first(draws), ~in_second(draws)) and 15 < in_second(draws).sum() < 45
