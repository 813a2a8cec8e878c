"""Mixtures under replay, and what a fit of one shows."""

import numpy as np
import pytest
from mixture_tools import FORMS, LITERAL, Mixture, audit_data

from sklearn_dp._privacy._trace import Trace
from sklearn_dp.audit._observe import prepared, run_fit
from sklearn_dp.mixture import DPGaussianMixture

# -- what a fit shows ------------------------------------------------------------------------------


class _Hostile(Trace):
    """Counts with the worst noise that there is."""

    def record(self, event):
        if event.kind == "gaussian" and event.entry == "component counts":
            event.output = -np.abs(event.output)
        return super().record(event)


@pytest.mark.parametrize("form", FORMS)
def test_counts_below_zero_are_counts_of_next_to_nothing(form):
    """Floors after the noise."""
    model = prepared(DPGaussianMixture(3, covariance_type=form))
    assert run_fit(model, audit_data(), recorder=_Hostile()).error is None
    assert model.weights_.min() > 0 and model.weights_.sum() == pytest.approx(1)
    assert np.isfinite(model.means_).all() and np.isfinite(model.precisions_cholesky_).all()


@pytest.mark.parametrize("n, epsilon", [(300, 1.0), (5000, 1.0), (5000, 8.0)])
def test_the_literal_partition_is_graceful(n, epsilon):
    """separated_gaussians:E2: at the published constants these rows are far too few; a coreset
    answers, as planned.
    """
    truth = Mixture(3, 2, 12, n)
    model = DPGaussianMixture(
        3, method="partition", options=LITERAL, epsilon=epsilon, random_state=0
    )
    plan = model.privacy_plan(2)
    model.fit(truth.X)
    assert model.path_ == "partition, then coreset"
    assert model.means_.shape == (3, 2) and np.isfinite(model.precisions_cholesky_).all()
    assert model.weights_.sum() == pytest.approx(1) and model.weights_.min() > 0
    report = model.privacy_report_
    assert report.spent_rho <= plan.rho and not any("part" in row for row in report.releases)
    asked = {row["release"] for row in report.releases if "radius" in row["release"]}
    assert any("level 0" in name for name in asked)  # it was looked for a ball, and none is there
    if n == 5000:
        assert truth.variations(model).max() < 0.2
