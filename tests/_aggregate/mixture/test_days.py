"""Mixtures of rows that come day by day: what each day is, what all know, and what a day costs."""

import numpy as np
import pytest
from day_tools import CENTERS, evening, rows_of

from sklearn_dp import DPGaussianMixture


def mixture(k=4, **options):
    return DPGaussianMixture(k, **{"bounds": 1.0, "random_state": 0, **options})


def phase(model):
    """What the next day is."""
    days = model._earlier_days
    if days is None:
        return "first"
    if days.moments is None:
        return "start" if days.stream is None else "clusters"
    return "components" if days.centers is None else "labels"


def stream(model, n_days, n=300, **options):
    phases = []
    for day in range(n_days):
        phases.append(phase(evening(model.partial_fit(rows_of(day, n), **options))))
    return phases


def nearest(model):
    return np.linalg.norm(CENTERS[:, None] - model.means_, axis=2).argmin(axis=1)


@pytest.mark.parametrize("form", ["full", "spherical"])
def test_components_of_many_small_days(form):
    """A fit of a day says nothing; of all days together, errors are true, and the status is ok."""
    model = mixture(epsilon=4.0, covariance_type=form)
    first = model.partial_fit(rows_of(0, 150))
    assert str(first.messages_).startswith("too few rows")
    phases = [phase(model), *stream(model, 24, 150)]
    order = [each for i, each in enumerate(phases) if each != phases[i - 1 if i else -1]]
    assert order == ["start", "clusters", "labels", "components"]
    assert model.trustworthy_ and model.days_.number == 25
    place = nearest(model)
    off = np.abs(model.means_[place] - CENTERS)
    assert np.all(off < 5 * model.means_std_error_[place]) and off.max() < 0.03
    truth = {"full": np.eye(3), "tied": np.eye(3), "diag": np.ones(3), "spherical": 1.0}[form]
    error = np.abs(model.covariances_ - 0.05**2 * truth)
    assert np.all(error < 5 * model.covariances_std_error_) and error.max() < 0.6 * 0.05**2
    assert abs(model.size_ - 3750) < 300
    assert np.allclose(model.weights_, 0.25, atol=0.05)
