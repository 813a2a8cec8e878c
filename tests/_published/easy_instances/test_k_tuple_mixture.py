"""Mixtures through k-tuples: one row changes one tuple, and the other half pays for the counts."""

import numpy as np
import pytest
from mixture_tools import WAYS, Mixture, audit_data, context_of
from scipy.stats import chi2

from sklearn_dp._aggregate.mixture.parts import Settings
from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.plan import PlanEntry, PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp._privacy._units import Units
from sklearn_dp._published import easy_instances as _mixture_tuples
from sklearn_dp._queries import blocks
from sklearn_dp._queries.samples import UnitNumbers
from sklearn_dp._rows.table import Table
from sklearn_dp.mixture import DPGaussianMixture, KTupleOptions


def test_adding_a_row_changes_one_tuple():
    """easy_instances:B13: t tuples always, and all others bit for bit the same."""
    X = Mixture(3, 3, 12, 2001).X
    settings = Settings(3, method="k_tuples", options=KTupleOptions(8))
    stage = _mixture_tuples.tuple_stage(1.0, 0.01, settings, 3)

    def tuples(rows):
        session = PrivacySession(
            PrivacyPlan(PrivacyBudget(rho=1.0, delta=0.1), (PlanEntry("x", "gaussian", 1.0),)),
            random_state=0,
        )
        table = Table.in_memory(rows, Units(len(rows)))
        context = context_of(session, table, 250.0, settings)
        found = _mixture_tuples._tuples(context, UnitNumbers.of(table), stage)
        return blocks.exact_tuples(found, 3)

    found = []
    for n in range(1990, 2001):
        before, after = tuples(X[:n]), tuples(X[: n + 1])
        assert before.shape == after.shape == (8, 3, 3)
        found.append(int((before != after).any(axis=(1, 2)).sum()))
    assert set(found) == {0, 1}


def test_counts_of_the_second_half():
    """easy_instances:B12: noisy counts of the rows of each cell; weights of sum one.

    180 standard normals: their squares are chi-square but for 1e-6, so noise that is 30% off in
    scale is caught.
    """
    X, noise = audit_data(), []
    for seed in range(10):
        model, recorder = DPGaussianMixture(3, random_state=seed, **WAYS["tuples"][0]), Trace()
        with trace(recorder):
            model.fit(X)
        found = [e for e in recorder.events if e.entry == "component counts"]
        second = found[0].value.sum() / 2**20  # hard assignments, in steps of the weights
        assert second.is_integer() and 0 < second < len(X)
        noise += [(e.output - e.value) / e.scale for e in found]
        counts = np.sort(np.maximum(found[-1].output / 2**20, 1.0))[::-1]
        assert np.allclose(model.weights_, counts / counts.sum(), rtol=1e-9)
        assert model.weights_.min() > 0 and model.weights_.sum() == pytest.approx(1)
    low, high = chi2.ppf([5e-7, 1 - 5e-7], np.size(noise))
    assert np.size(noise) >= 60 and low < np.sum(np.square(noise)) < high
