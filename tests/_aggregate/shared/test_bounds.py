"""Bounds of rows: public ones cost nothing, others are paid for, and none is said so; axes."""

import math

import numpy as np
import pytest
from grid_tools import points_of
from kernel_tools import spending

from sklearn_dp import (
    DPPCA,
    DPGaussianMixture,
    DPKMeans,
    DPOneCluster,
    FriendlyCovariance,
    FriendlyMean,
)
from sklearn_dp._aggregate.shared.bounds import (
    clipped_in_words,
    known_or_paid,
    second_moment,
    upper_bound_outside,
)
from sklearn_dp._aggregate.shared.centering import NoisyNorms, radius_from_bins
from sklearn_dp._costs.plan import PlanEntry
from sklearn_dp._privacy._grid import NORM_EDGES
from sklearn_dp._privacy._units import Units
from sklearn_dp._queries._query import TableRows
from sklearn_dp._status import Status
from sklearn_dp.preprocessing import DPStandardScaler

RNG = np.random.default_rng(0)


def open_session(rho=1.0):
    return spending(PlanEntry("bound", "gaussian", rho))


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_a_paid_radius_holds_nearly_all_rows_at_any_scale(scale):
    X, session = scale * RNG.normal(size=(5000, 3)), open_session()
    table = TableRows.in_memory(X, Units(5000))
    domain, status, found = known_or_paid(session, "bound", table, None)
    norms = np.linalg.norm(X, axis=1)
    assert not status
    assert np.mean(norms <= domain.radius) > 0.97
    assert domain.radius < 2 * norms.max()
    assert abs(found.counts.sum() - 5000) < 7 * np.sqrt(len(found.counts)) * found.sd
    assert session.spent == pytest.approx(1.0)


@pytest.mark.quick("1e+300-*")
@pytest.mark.parametrize(
    "model",
    [
        DPGaussianMixture(2),
        DPKMeans(2),
        DPOneCluster(),
        DPPCA(1),
        DPStandardScaler(),
        FriendlyCovariance(),
        FriendlyMean(),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("scale", [1e150, 1e300])
def test_no_fit_says_ok_of_rows_beyond_the_largest_radius(model, scale):
    rows = scale * (1 + np.random.default_rng(0).normal(size=(5000, 2)))
    model.set_params(random_state=0).fit(rows)
    assert not model.trustworthy_ and model.status_ != "ok"


EDGES = np.concatenate([[0.0], 2.0 ** (-100 + np.arange(401) / 2)])
SIZE_SD = 40.0


def noisy(counts, sd, rng):
    return NoisyNorms(counts + np.round(sd * rng.normal(size=len(counts))), EDGES, sd)


def worst_radius(norms, counts, size):
    """Whether the bound fails anywhere: at each of the edges."""
    true = counts.sum() - np.concatenate([[0], np.cumsum(counts)])
    return any(
        upper_bound_outside(norms, edge, size, SIZE_SD) < left
        for edge, left in zip(EDGES[200:230], true[200:230], strict=True)
    )


@pytest.mark.parametrize("known", [True, False])
def test_it_holds_at_all_radii_at_once(known):
    """300 draws: at most 5% fail at any of 30 radii; 10% would be five standard errors."""
    rng, failed = np.random.default_rng(1), 0
    counts = np.zeros(401)
    counts[205:214] = [50, 400, 3000, 9000, 15_000, 12_000, 3000, 100, 5]
    counts[220:224] = [10, 10, 10, 8]  # far out, fewer than the noise of a bin
    for _ in range(300):
        size = counts.sum() + SIZE_SD * rng.normal() if known else math.inf
        norms = noisy(counts, 19.0, rng)
        if known:
            failed += worst_radius(norms, counts, size)
        else:
            true = counts[::-1].cumsum()[::-1]
            found = [
                upper_bound_outside(norms, edge, math.inf, math.inf) for edge in EDGES[200:230]
            ]
            failed += bool((np.array(found) < true[200:230]).any())
    assert failed <= 27


def test_rows_far_out_are_told_only_where_noise_hardly_ever_looks_like_them():
    """One bin of 400 is 4.5 standard deviations high in one of 260 histograms of noise alone."""
    for high, told in ((5.0, False), (8.0, True)):
        counts = np.zeros(401)
        counts[300] = 20 * high
        norms = NoisyNorms(counts, EDGES, 20.0)
        status = clipped_in_words(Status(), norms, EDGES[210], 1e3, "row")
        assert bool(status) == told


def test_a_bound_holds_few_rows_far_out_where_they_are_seen_and_none_that_noise_adds():
    """Noise of 4.3 standard deviations is taken for rows within 99% of all, and 5.6 beyond."""
    sd, counts = 10.0, np.zeros(len(NORM_EDGES) - 1)
    near, far = 200, 212
    counts[near] = 100_000.0
    for held, found in ((5.0 * sd, near), (6.0 * sd, far)):
        counts[far] = held
        assert radius_from_bins(counts, NORM_EDGES, sd, 1.0) == NORM_EDGES[found + 1]
        assert radius_from_bins(counts, NORM_EDGES, sd, 0.99) == NORM_EDGES[near + 1]
    counts[-1] = counts[near + 100] = 6.0 * sd  # of another kind: their ball would be a useless one
    assert radius_from_bins(counts, NORM_EDGES, sd, 1.0) == NORM_EDGES[far + 1]


def test_subspaces_are_as_good_as_lemma_3_1_says():
    """separated_gaussians:C3: the distance of cluster means from the released subspace, B = 2 |E|;
    200 trials.
    """
    worst = 0.0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        n, d, k = 400, 12, 4
        centers, labels = rng.normal(size=(k, d)) * 1000, rng.integers(k, size=n)
        X = np.rint(centers[labels] + 100 * rng.normal(size=(n, d)))
        limit = float(np.linalg.norm(X, axis=1).max())
        session = spending(PlanEntry("axes", "gaussian", 100.0), seed=seed)
        rho = 10.0 ** rng.uniform(-3, 2)
        moment = second_moment(session, "axes", points_of(X, limit), limit, rho)
        vectors = np.linalg.eigh(moment)[1][:, -k:]
        E = np.linalg.norm(moment - X.T @ X, 2)
        A = centers[labels]
        for i in range(k):
            mean, n_i = X[labels == i].mean(axis=0), (labels == i).sum()
            left = np.linalg.norm(mean - vectors @ (vectors.T @ mean))
            right = np.linalg.norm(X - A, 2) / math.sqrt(n_i) + math.sqrt(2 * E / n_i)
            worst = max(worst, left / right)
    assert 0.01 < worst <= 1.0
