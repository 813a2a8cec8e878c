"""Whatever is left of an earlier fit is found."""

import numpy as np
import pytest

from sklearn_dp.audit._loss_checks import refit_problems


def test_an_estimator_that_forgets_is_not_blamed(toy, points):
    assert refit_problems(toy, points) == []
    assert refit_problems(toy, points, groups=np.arange(len(points)) // 3) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda self, X, session: setattr(self, "_n_fits", getattr(self, "_n_fits", 0) + 1),
        lambda self, X, session: (
            setattr(self, "_old", X.copy()) if not hasattr(self, "_old") else None
        ),
    ],
    ids=["a count", "the first rows in memory"],
)
def test_what_stays_is_found(toy, points, after_fit, change):
    after_fit(change)
    assert any("memory differs" in text for text in refit_problems(toy, points))


def test_rows_of_the_last_fit_are_found(toy, make_toy, points, monkeypatch):
    original = make_toy._fit

    def fit(self, X, units, session, progress):
        mixed = X.copy()
        if getattr(self, "_last", X).shape == X.shape:
            mixed[:2] = getattr(self, "_last", X)[:2]
        original(self, mixed, units, session, progress)
        self._last = X

    monkeypatch.setattr(make_toy, "_fit", fit)
    assert any("the statistic is another one" in text for text in refit_problems(toy, points))
