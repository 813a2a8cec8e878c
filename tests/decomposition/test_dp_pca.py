"""DPPCA, and the location that it starts from."""

import numpy as np
import pytest
from grid_tools import points_of
from kernel_tools import open_session
from scipy.stats import chi2
from sklearn.decomposition import PCA

from sklearn_dp._aggregate.shared.axes import second_moment
from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.plan import PlanEntry
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp.decomposition import DPPCA
from sklearn_dp.ledger import PrivacyLedger

GENEROUS = {"rho": 1e6, "delta": 0.1}


def table(n=20000, scale=1.0, shift=0.0):
    X = np.random.default_rng(0).normal(size=(n, 6)) * [5.0, 3.0, 0.3, 0.3, 0.3, 0.3]
    return scale * (X + shift)


@pytest.mark.parametrize("scale", [1e-3, 1e6])
@pytest.mark.parametrize("shift", [0.0, 1e4])
def test_components_at_any_scale_and_place(scale, shift):
    X = table(scale=scale, shift=shift)
    model, plain = DPPCA(2, epsilon=1.0, random_state=0).fit(X), PCA(2).fit(X)
    assert model.trustworthy_
    assert np.abs(np.sum(model.components_ * plain.components_, axis=1)).min() > 0.99
    assert np.allclose(model.explained_variance_, plain.explained_variance_, rtol=0.1)
    assert np.linalg.norm(model.mean_ - X.mean(axis=0)) < scale
    assert np.allclose(model.components_ @ model.components_.T, np.eye(2))


def test_without_noise_it_is_pca_of_the_clipped_rows():
    X = table()
    model, plain = DPPCA(bounds=100.0, random_state=0, **GENEROUS).fit(X), PCA().fit(X)
    assert np.allclose(model.explained_variance_[:2], plain.explained_variance_[:2], rtol=0.03)
    assert model.inverse_transform(model.transform(X)) == pytest.approx(X)
    assert np.array_equal(model.transform(X.astype(np.float32)).dtype, np.float32)


def test_the_noise_is_symmetric_and_isometric():
    """All eigenvalues of constant data but noise: the squared Frobenius norm is chi-square.

    False alarm 1e-6. The mean of 40 draws with 21 degrees of freedom has a relative standard
    deviation of 0.05, so noise that is 30% off in variance is caught.
    """
    X, norms = np.zeros((50, 6)), []
    for seed in range(40):
        model = DPPCA(bounds=1.0, rho=0.5, random_state=seed)
        session_plan = model.privacy_plan(6)["second moment"]
        recorder = Trace()
        with trace(recorder):
            model.fit(X)
        event = recorder.events[-1]
        shift = (event.output - event.value) / event.scale
        norms.append(np.sum(np.square(shift)))
        diagonal = np.triu_indices(6)[0] == np.triu_indices(6)[1]
        assert event.cost <= session_plan.rho
        assert np.ptp(event.scale[diagonal]) == 0
        assert event.scale[diagonal][0] / event.scale[~diagonal][0] == pytest.approx(2**0.5)
    low, high = chi2.ppf([5e-7, 1 - 5e-7], 21 * len(norms))
    assert low < np.sum(norms) < high


def exact_moment(rows, limit):
    """The upper triangle behind a release of the sum of x x^T, and what is claimed of it."""
    recorder = Trace()
    with trace(recorder):
        table = points_of(rows)
        second_moment(
            open_session(PlanEntry("moment", "gaussian", 1.0)), "moment", table, limit, 1.0
        )
    event = recorder.events[-1]
    return event.value.astype(np.float64), event.sensitivity


def test_second_moments_move_as_far_as_is_claimed():
    """separated_gaussians:A2: a row more is g^2 in Frobenius norm, one for another sqrt(2) g^2;
    both attained.

    Exact. The claim is in units of g^2: the claimed vector of a change is |change|_F / g^2 long.
    """
    rng, limit, worst = np.random.default_rng(0), 2.0**15, np.zeros(2)
    rest = np.rint(rng.normal(size=(3, 4)) * 3000)
    for number in range(120):
        x, y = np.rint(rng.normal(size=(2, 1, 4)) * 10.0 ** rng.uniform(1, 6))
        if number % 3 == 0:  # orthogonal, and as long as is allowed
            x, y = limit * np.eye(4)[rng.permutation(4)[:2], None]
        before, claim = exact_moment(rest, limit)
        with_x, with_y = (exact_moment(np.vstack([rest, row]), limit)[0] for row in (x, y))
        moved = [np.linalg.norm((a - b) / claim) for a, b in ((before, with_x), (with_x, with_y))]
        worst = np.maximum(worst, moved)
    assert worst[0] <= 1 and worst[1] <= np.sqrt(2)
    assert worst == pytest.approx([1, np.sqrt(2)], rel=3e-4)  # but for rounding toward zero


@pytest.mark.parametrize("d", [1, 2, 10])
def test_noise_alone_is_not_called_a_direction(d):
    """The largest eigenvalue of noise is above its level in one of ten fits or so, else."""
    X = np.zeros((40, d))
    found = [DPPCA(1, bounds=1.0, random_state=seed).fit(X) for seed in range(40)]
    assert sum(model.trustworthy_ for model in found) <= 1


@pytest.mark.parametrize("bounds", [1e140, 1e100, 1e-140])
def test_errors_are_finite_in_the_widest_and_narrowest_bounds(bounds):
    """Squares of the variances would overflow, and the fit would raise after its charge."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    pca = DPPCA(2, bounds=bounds, random_state=0).fit(X)
    assert np.isfinite(pca.explained_variance_std_error_).all()
    assert 0 <= pca.explained_std_error_ <= 1


def test_auto_keeps_what_stands_out_of_the_noise():
    X = np.random.default_rng(0).normal(size=(20_000, 8)) * [9, 7, 5, 0.01, 0.01, 0.01, 0.01, 0.01]
    model = DPPCA("auto", bounds=30.0, random_state=0).fit(X)
    whole = DPPCA(bounds=30.0, random_state=0).fit(X)
    assert model.n_components_ == 3 == (whole.explained_variance_ > whole.noise_level_).sum()
    assert np.array_equal(model.components_, whole.components_[:3])
    assert model.transform(X[:5]).shape == (5, 3)
    # Where nothing stands out there is one component all the same, and the status says so.
    few = DPPCA("auto", bounds=30.0, random_state=0).fit(X[:20])
    assert few.n_components_ == 1 and few.status_ != "ok"
    for pair, kept in (((1, 2), 2), ([4, 6], 4), ((2, 5), 3)):
        limited = DPPCA(pair, bounds=30.0, random_state=0).fit(X)
        assert limited.n_components_ == kept
        assert np.array_equal(limited.components_, whole.components_[:kept])


@pytest.mark.parametrize(
    "n_components", ["mle", "most", (3, 2), (0, 2), (1, 9), (1, 2, 3), (1.0, 2)]
)
def test_wrong_numbers_of_components_are_named_before_the_charge(n_components):
    X, ledger = np.zeros((20, 8)), PrivacyLedger(PrivacyBudget(epsilon=5.0, delta=1e-5))
    with pytest.raises((TypeError, ValueError), match="n_components"):
        DPPCA(n_components, ledger=ledger).fit(X)
    assert ledger.entries == ()
