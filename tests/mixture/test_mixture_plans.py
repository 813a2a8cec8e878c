"""Plans of mixtures: what they spend, whose units pay, and what the noise then is."""

import math
import tracemalloc
import warnings

import mpmath as mp
import numpy as np
import pytest
from mixture_tools import POINTS, WAYS, Mixture, audit_data
from scipy.stats import chi2
from sklearn.datasets import make_spd_matrix

from sklearn_dp._aggregate.mixture import (
    k_tuples as _mixture_tuples,
)
from sklearn_dp._aggregate.mixture.parts import Settings, half_of_rows
from sklearn_dp._aggregate.shared.axes import second_moment
from sklearn_dp._aggregate.shared.rows import Rows
from sklearn_dp._privacy._budget import PrivacyBudget
from sklearn_dp._privacy._domain import Domain
from sklearn_dp._privacy._plan import PlanEntry, PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp._privacy._units import Units
from sklearn_dp.mixture import (
    DPGaussianMixture,
    KTupleOptions,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.UtilityWarning"),
]

# -- plans ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "epsilon, delta, rho",
    [
        (0.1, 1e-6, 0.000321),
        (0.5, 1e-6, 0.006642),
        (1, 1e-6, 0.024356),
        (2, 1e-6, 0.088153),
        (4, 1e-6, 0.311064),
        (8, 1e-6, 1.052356),
        (1, 1e-5, 0.030556),
        (1, 1e-8, 0.017205),
    ],
)
def test_selections_are_converted_as_zcdp(epsilon, delta, rho):
    """separated_gaussians:A6: the table, by the plan of a partition, which chooses balls."""
    plan = DPGaussianMixture(3, method="partition", epsilon=epsilon, delta=delta).privacy_plan(4)
    assert not plan.gaussian and plan.rho == pytest.approx(rho, abs=1.1e-6, rel=5e-6)
    for other in (
        {"epsilon": 1.01 * epsilon, "delta": delta},
        {"epsilon": epsilon, "delta": 1.01 * delta},
    ):
        more = DPGaussianMixture(3, method="partition", **other).privacy_plan(4).rho
        assert plan.rho < more < 1.03 * plan.rho


@pytest.mark.parametrize("epsilon", [0.1, 1, 5, 10, 20])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9])
def test_gaussian_plans_keep_the_exact_inequality(epsilon, delta):
    """separated_gaussians:A7: the inequality in 60 digits for s = 1 / mu; with one part in 10^4
    less noise it fails.

    The classical formula fails, too, where epsilon is 10.
    """

    def holds(noise):
        with mp.workdps(60):
            s, e = mp.mpf(noise), mp.mpf(epsilon)
            found = mp.ncdf(1 / (2 * s) - e * s) - mp.exp(e) * mp.ncdf(-1 / (2 * s) - e * s)
            return found <= mp.mpf(delta)

    plan = DPGaussianMixture(3, epsilon=epsilon, delta=delta).privacy_plan(4)
    noise = 1 / math.sqrt(2 * plan.rho)
    assert plan.gaussian and holds(noise) and not holds(noise * (1 - 1e-4))
    classical = math.sqrt(2 * math.log(2 / delta)) / epsilon
    assert holds(classical) == (epsilon <= 5 or delta == 1e-9 and epsilon == 10)


def test_the_halves_share_a_plan_and_not_their_units():
    """Both halves have the whole budget, but for what the location of all rows takes."""
    model = DPGaussianMixture(3, method="k_tuples", epsilon=4.0)
    plan = model.privacy_plan(4)
    costs = {
        path: math.fsum(entry.rho for entry in plan.entries if entry.paths == path)
        for path in {entry.paths for entry in plan.entries}
    }
    assert set(costs) == {(), ("first half",), ("second half",)}
    assert costs["first half",] == pytest.approx(0.95 * plan.rho, rel=1e-6)
    assert costs["second half",] == pytest.approx(0.95 * plan.rho, rel=1e-6)
    assert plan.epsilon <= 4.0 and plan.delta_failure == pytest.approx(5e-7)
    model.set_params(options=KTupleOptions(60), random_state=0)
    report = model.fit(Mixture(3, 4, 14, 20000).X)
    parts = {row["part"] for row in report.privacy_report_.releases if "part" in row}
    assert parts == {"first half", "second half"}
    assert (
        report.privacy_report_.spent_rho
        <= plan.rho
        < sum(row["rho"] for row in report.privacy_report_.releases)
    )


@pytest.mark.parametrize(
    "options",
    [
        {"method": "partition"},
        {"method": "partition", "options": POINTS},
        {"method": "partition", "covariance_type": "spherical", "bounds": 4.0},
        {"method": "k_tuples", "epsilon": 4.0},
        {"method": "k_tuples", "rho": 0.5},
        {"method": "partition", "rho": 0.1, "options": POINTS},
        {"method": "auto"},
    ],
)
@pytest.mark.parametrize("k", [1, 2, 6])
@pytest.mark.parametrize("d", [1, 3, 20])
def test_plans_spend_what_was_asked_for(options, k, d):
    model = DPGaussianMixture(k, **options)
    plan = model.privacy_plan(d)
    wanted = options.get("rho") or PrivacyBudget(
        epsilon=options.get("epsilon", 1.0), delta=1e-6
    ).to_rho(plan.gaussian, plan.delta_failure)
    assert 0.999 * wanted < plan.rho <= wanted
    assert plan.gaussian == (k == 1 or options["method"] == "auto")


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
        units = Units(len(rows))
        return _mixture_tuples._tuples(
            session,
            rows,
            units,
            ~half_of_rows(session, units),
            Domain.from_bounds(500.0, 3),
            settings,
            stage,
        )

    found = []
    for n in range(1990, 2001):
        before, after = tuples(X[:n]), tuples(X[: n + 1])
        assert before.shape == after.shape == (8, 3, 3)
        found.append(int((before != after).any(axis=(1, 2)).sum()))
    assert set(found) == {0, 1}


def test_bad_options_are_named():
    for options, error in (
        ({"method": "best"}, ValueError),
        ({"covariance_type": "x"}, ValueError),
        ({"options": KTupleOptions()}, ValueError),
        ({"options": "x"}, ValueError),
        ({"n_components": 0}, ValueError),
    ):
        with pytest.raises(error, match=next(iter(options))):
            DPGaussianMixture(**{"n_components": 2, **options}).fit(np.zeros((5, 2)))


@pytest.mark.parametrize("method", ["coreset", "partition"])
def test_memory_is_linear_in_the_rows(method):
    """At most a few copies of the rows: 4.3 and 3.8 of them at 80000; a pair of anything is n^2."""
    most = []
    for n in (20000, 80000):
        X = Mixture(3, 10, 12, n).X
        tracemalloc.start()
        DPGaussianMixture(3, method=method, bounds=200.0, random_state=0).fit(X)
        most.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert most[1] < 4.4 * most[0] and most[1] < 6 * X.nbytes


def test_counts_of_the_second_half():
    """easy_instances:B12: noisy counts of the rows of each cell; weights of sum one.

    180 standard normals: their squares are chi-square but for 1e-6, so noise that is 30 % off in
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


# -- estimation -----------------------------------------------------------------------------------


def test_spherical_estimate_far_from_the_origin():
    """separated_gaussians:C5: PSGE, l = 20, ball of radius 10, m = 20000, 1e4 away; and 1 % of the
    rows anywhere.
    """
    errors = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        center = np.full(20, 1e4 / math.sqrt(20))
        X = center + rng.normal(size=(20000, 20))
        X[:200] = rng.normal(size=(200, 20)) * 1e5 if seed % 2 else X[:200]
        model = DPGaussianMixture(
            1,
            covariance_type="spherical",
            epsilon=1.0,
            random_state=seed,
            bounds=(center - 10 / math.sqrt(20), center + 10 / math.sqrt(20))
            if seed % 2 == 0
            else None,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X)
        errors.append((np.linalg.norm(model.means_[0] - center), abs(model.covariances_[0] - 1)))
    within, outliers = np.array(errors[::2]), np.array(errors[1::2])
    assert within[:, 0].max() < 0.13 and np.median(within[:, 1]) < 0.15  # the box cuts rows
    assert np.median(outliers[:, 0]) < 1.0


def test_weights_have_the_noise_of_the_plan():
    """separated_gaussians:C6: counts with noise sd, normalised, have the deviation sd / n sqrt(1 -
    2 w + k w^2).

    Of 400 draws: within 20 % but for a probability of 1e-8 (chi-square); of the 16 degrees of
    freedom in 8 fits: within the wider limits but for 1e-3, and seeds are fixed.
    """
    rng, weights = np.random.default_rng(0), np.array([0.2, 0.3, 0.5])
    sd, n = 40.0, 20000
    noisy = weights * n + np.array([sd * rng.normal(size=3) for _ in range(400)])
    found = (noisy / noisy.sum(axis=1, keepdims=True)).std(axis=0)
    assert np.allclose(found, sd / n * np.sqrt(1 - 2 * weights + 3 * weights**2), rtol=0.2)
    truth = Mixture(3, 2, 14, 20000, weights=weights)
    fits = [DPGaussianMixture(3, epsilon=0.5, random_state=seed).fit(truth.X) for seed in range(8)]
    rho = max(
        row["rho"]
        for row in fits[0].privacy_report_.releases
        if row["release"] == "component counts"
    )
    share = np.bincount(truth.labels) / 20000
    errors = np.array([fit.weights_[truth.match(fit)] - share for fit in fits])
    scale = np.sqrt(1 - 2 * weights + 3 * weights**2) / (20000 * math.sqrt(2 * rho))
    assert 0.5 < np.sqrt(np.mean(np.square(errors / scale))) < 1.6


@pytest.mark.parametrize(
    "d, n", [(2, 10000), (5, 15000), pytest.param(10, 60000, marks=pytest.mark.slow)]
)
def test_errors_are_those_of_the_formulas(d, n):
    """separated_gaussians:C7: k = 1; sampling plus the noise of the last round, from the report;
    ten runs each.
    """
    ratios = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        root = np.linalg.cholesky(make_spd_matrix(d, random_state=seed))
        X = rng.normal(size=(n, d)) @ root.T
        model = DPGaussianMixture(1, epsilon=1.0, random_state=seed).fit(X)
        last = {row["release"]: row for row in model.privacy_report_.releases}
        white = np.linalg.inv(root)
        C = white @ model.covariances_[0] @ white.T
        noise = last["component moments"]["sigma"] / n
        oracle = d * (d + 1) / n + noise**2 * d * (d + 1) / 2
        mean = d / n + d * (last["component sums"]["sigma"] / n) ** 2
        ratios.append(
            (
                np.linalg.norm(C - np.eye(d)) / math.sqrt(oracle),
                np.linalg.norm(white @ model.means_[0]) / math.sqrt(mean),
            )
        )
    covariance, mean = np.median(ratios, axis=0)
    assert 0.6 < covariance < 1.5 and 0.6 < mean < 1.5


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
        session = PrivacySession(
            PrivacyPlan(
                PrivacyBudget(rho=100.0, delta=0.1), (PlanEntry("axes", "gaussian", 100.0),)
            ),
            random_state=seed,
        )
        rho = 10.0 ** rng.uniform(-3, 2)
        moment = second_moment(session, "axes", Rows.of(X, limit), limit, Units(n), rho)
        vectors = np.linalg.eigh(moment)[1][:, -k:]
        E = np.linalg.norm(moment - X.T @ X, 2)
        A = centers[labels]
        for i in range(k):
            mean, n_i = X[labels == i].mean(axis=0), (labels == i).sum()
            left = np.linalg.norm(mean - vectors @ (vectors.T @ mean))
            right = np.linalg.norm(X - A, 2) / math.sqrt(n_i) + math.sqrt(2 * E / n_i)
            worst = max(worst, left / right)
    assert 0.01 < worst <= 1.0


def test_symmetric_noise_has_the_norm_of_its_law():
    """separated_gaussians:A3: d = 20, mean spectral norm 6.05; the diagonal has twice the variance
    of the rest.
    """
    rows = Rows.of(np.zeros((1, 20)), 1000.0)
    session = PrivacySession(
        PrivacyPlan(
            PrivacyBudget(rho=1e6, delta=0.1), (PlanEntry("axes", "gaussian", 1e6, uses=None),)
        ),
        random_state=0,
    )
    noise = np.array(
        [second_moment(session, "axes", rows, 1000.0, Units(1), 0.5) / 1e6 for _ in range(300)]
    )
    assert np.array_equal(noise, noise.transpose(0, 2, 1))
    assert np.linalg.norm(noise, 2, axis=(1, 2)).mean() == pytest.approx(6.05, abs=0.2)
    diagonal = np.einsum("nii->ni", noise).var()
    rest = noise[:, *np.triu_indices(20, 1)].var()
    assert diagonal == pytest.approx(1, rel=0.12) and rest == pytest.approx(0.5, rel=0.05)
