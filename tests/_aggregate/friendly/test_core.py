"""Predicates, counts and filters; every filter replayed on neighbors and broken on purpose."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_tools import open_session
from scipy.special import ndtr
from scipy.stats import binom

from sklearn_dp._costs.accounting import zcdp_epsilon
from sklearn_dp._costs.plan import PlanEntry
from sklearn_dp._privacy._noise import gaussian_tail
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp._queries import averages as core
from sklearn_dp._queries import tuples

RHO, DELTA = 1.0, 1e-6


def session(seed=0, rho=RHO, delta=DELTA):
    entry = PlanEntry("core", "friendly core", rho, delta, uses=None)
    size = PlanEntry("size", "gaussian", rho, uses=None)
    return open_session(entry, size, rho=3 * rho, delta=2 * delta, random_state=seed)


def event_of(run, seed=0, **options):
    """The filter's event of a run, and its decisions."""
    with trace(Trace()) as recorder:
        keep = run(session(seed, **options))
    return recorder.events[-1], keep


# -- predicates -------------------------------------------------------------------------------


@given(st.integers(0, 10**6))
def test_match_is_symmetric_and_invariant(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(4, 3, 2)) * 2
    Y = X[:, ::-1] + rng.normal(size=(4, 3, 2)) * 0.2
    match = tuples.match_gamma(X, Y)[0]
    assert np.array_equal(tuples.match_gamma(Y, X)[0].T, match)
    turn = np.linalg.qr(rng.normal(size=(2, 2)))[0]
    order = rng.permutation(3)
    moved = [(T @ turn * 4.0 + 7.0)[:, order] for T in (X, Y)]
    assert np.array_equal(tuples.match_gamma(*moved)[0], match)


@pytest.mark.parametrize("k, ratio", [(3, 0.22668), (10, 0.20221)])
def test_a_fifth_is_the_sharp_limit(k, ratio):
    """Six small turns carry a regular polygon onto itself, shifted: never friends at 1/5."""
    angles = 2 * np.pi * (np.arange(k) / k)
    polygon = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    step = 2 * np.pi / (6 * k)
    turn = np.array([[np.cos(step), np.sin(step)], [-np.sin(step), np.cos(step)]])
    pair = polygon[None], (polygon @ turn)[None]
    assert not tuples.match_gamma(*pair, tuples.MATCH_LIMIT)[0][0, 0]
    assert tuples.match_gamma(*pair, ratio * 1.0001)[0][0, 0]
    assert not tuples.match_gamma(*pair, ratio * 0.9999)[0][0, 0]


@given(st.integers(0, 10**6), st.sampled_from([0.0, 1e6, 1e12]))
def test_predicate_is_a_function_of_the_pair(seed, far):
    """The same bits whatever the tile, the order of the rows and the order of the pair."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 13)) + far
    whole = core.cdist(X, X, "sqeuclidean")
    order = rng.permutation(40)
    assert np.array_equal(core.cdist(X[order], X[order], "sqeuclidean"), whole[order][:, order])
    assert np.array_equal(core.cdist(X[7:9], X[3:20], "sqeuclidean"), whole[7:9, 3:20])
    assert np.array_equal(whole, whole.T)


# -- counts -----------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.integers(0, 25), st.integers(1, 30))
def test_counts_do_not_depend_on_tiles(seed, n, tile):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    friends = np.array([[np.sum((x - y) ** 2) <= 4 for y in X] for x in X]).reshape(n, n)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(core, "_TILE", tile)
        assert np.array_equal(core.friend_counts(X, 2.0), friends.sum(axis=1))
        radii = np.array([0.5, 2.0, 100.0])
        pairs = core.non_friend_pairs(X, radii)
    far = np.linalg.norm(X[:, None] - X[None], axis=2)
    assert pairs.tolist() == [int((far > r).sum()) for r in radii]


@given(st.integers(0, 10**6), st.integers(1, 14))
def test_scores_move_as_the_proofs_say(seed, n):
    """Half counts 2 W - n: by exactly 1 when an element goes, by at most 2 when one changes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    score = 2 * core.friend_counts(X, 1.5) - n
    if n > 1:
        less = 2 * core.friend_counts(X[:-1], 1.5) - (n - 1)
        assert set(np.abs(score[:-1] - less)) <= {1}
    X[-1] += rng.normal(size=2) * 5
    assert np.abs(2 * core.friend_counts(X, 1.5) - n - score)[:-1].max(initial=0) <= 2


# -- filters: the numbers -----------------------------------------------------------------------


def keep_probability(event, friends, size):
    return gaussian_tail(float(event.scale), int(event.public["threshold"]) - (2 * friends - size))


@pytest.mark.parametrize(
    "t, rho, delta, sigma, tau, table",
    [
        (200, 0.7, 9e-9, 11.922, 77.291, {200: 0.9716, 190: 0.8568, 180: 0.5899, 170: 0.2704}),
        (400, 0.7, 9e-9, 16.882, 111.195, {340: 0.956, 320: 0.699, 300: 0.254}),
        (500, 0.35, 9e-7, None, None, {450: 0.944, 425: 0.743}),
    ],
)
def test_fixed_size_filter_has_the_published_constants(t, rho, delta, sigma, tau, table):
    event, _ = event_of(
        lambda s: core.core_fixed_size(s, "core", np.full(t, t), rho=rho, delta=delta),
        rho=rho,
        delta=delta,
    )
    if sigma is not None:
        assert event.scale / 2 == pytest.approx(sigma, abs=1e-3)
        assert (event.public["threshold"] - 0.5) / 2 == pytest.approx(tau, abs=0.5)
    for friends, probability in table.items():
        # The threshold is rounded up to a half count: at most 0.5 / sigma of a density of 0.4.
        assert keep_probability(event, friends, t) == pytest.approx(probability, abs=0.02)


@pytest.mark.parametrize("n, rho, delta", [(100, 1.0, 1e-6), (800, 0.09, 5e-9)])
def test_add_remove_filter_constants(n, rho, delta):
    """friendly_core:11: sigma and tau for rows that come and go, at a known bound of the size, in
    counts.
    """
    event, _ = event_of(
        lambda s: core.core_add_remove(s, "core", np.full(n, n), n, 2.0, rho=rho, delta=delta),
        rho=rho,
        delta=delta,
    )
    upper = event.public["most"]
    assert upper == pytest.approx(n + 0.5 - 2.0 * core.ndtri(delta / 2))
    assert event.scale / 2 == pytest.approx(math.sqrt(upper / (8 * rho)))
    tau = 0.5 - event.scale / 2 * core.ndtri(delta / (2 * (upper + 1)))
    assert tau <= event.public["threshold"] / 2 <= tau + 1


@pytest.mark.parametrize("sd", [0.3, 1.0, 2.4, 17.0])
@pytest.mark.parametrize("delta", [0.3, 1e-3, 1e-9])
def test_the_bound_of_the_size_holds_for_the_smaller_neighbor_too(sd, delta):
    """Exact law of the rounded noise: without the half step it is too small up to 60% more often.

    The n of a data set is what its smaller neighbor has in common with the larger one.
    """
    n = 1000
    noise = np.arange(-n, 1)
    short = np.array([core._size_upper_bound(float(n + m), sd, delta) < n for m in noise])
    last = noise[short].max(initial=-n)  # round(sd Z) <= last
    assert ndtr((last + 0.5) / sd) <= delta
    assert not short[-1], "no noise at all is always enough"


FILTERS = {
    "add or remove": lambda s, W, n: core.core_add_remove(s, "core", W, n, 3.0, rho=RHO, delta=0.2),
    "fixed size": lambda s, W, n: core.core_fixed_size(s, "core", W, rho=RHO, delta=0.2),
}


def bad_survivors(event, n, top_score):
    """Exact mean number of survivors among n elements with a bad element's largest score."""
    return n * gaussian_tail(float(event.scale), int(event.public["threshold"]) - top_score)


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("n", [2, 3, 40, 41, 500])
def test_bad_elements_survive_only_within_delta(name, n):
    """A bad element has at most half of the n - 1 common elements as friends, and x, and itself."""
    top = (n - 1) // 2 + 1
    event, _ = event_of(lambda s: FILTERS[name](s, np.full(n, top), n), delta=0.2)
    top_score = 2 * top - n
    assert top_score <= 1
    if name == "fixed size":
        limit = 0.2
    else:  # half of delta is for the bound of the size; the other half is shared by upper + 1
        limit, top_score = 0.1 * n / (event.public["most"] + 1), 1
    assert bad_survivors(event, n, top_score) <= limit
    # Sharp: one half count lower, as a threshold without the 1/2 would be, and the bound fails.
    assert bad_survivors(event, n, top_score + 1) > limit


def basic_probabilities(X, radius):
    if not len(X):
        return np.empty(0)
    event, _ = event_of(
        lambda s: core.core_basic(s, "core", core.friend_counts(X, radius), rho=RHO, delta=0.0)
    )
    return event.value


def test_basic_filter_attains_its_constant():
    """Identical points and a stranger: 2 (n - 1) / n in all but the stranger."""
    for n in (5, 20):
        near, far = np.zeros((n, 1)), np.concatenate([np.zeros((n - 1, 1)), [[9.0]]])
        with_it, without = (basic_probabilities(D, 1.0) for D in (far, near[:-1]))
        assert np.abs(with_it[:-1] - without).sum() == pytest.approx(2 * (n - 1) / n)


@given(st.integers(0, 10**6), st.integers(2, 15))
def test_basic_filter_never_exceeds_its_constant(seed, n):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 1)) * rng.choice([0.3, 1.0, 3.0])
    p, q = (basic_probabilities(D, 1.0) for D in (X, X[:-1]))
    assert np.abs(p[:-1] - q).sum() + p[-1] <= core.BASIC_GAMMA + 1e-12


@given(st.integers(0, 10**6), st.integers(2, 15))
def test_survivors_share_a_friend(seed, n):
    """Elements that either filter may keep, in D and in D minus x, have a common friend."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 1))
    friends = core.dist_r(X, X, 1.0)
    p, q = basic_probabilities(X, 1.0), basic_probabilities(X[:-1], 1.0)
    possible = (p > 0) | np.append(q > 0, False)
    for i, j in itertools.combinations(np.flatnonzero(possible), 2):
        assert (friends[i] & friends[j]).any()


# -- filters: the exact law -------------------------------------------------------------------


def hockey_stick(p, q, epsilon):
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def core_size_delta(scale_factor, kind="fixed size", t=200, rho=0.7, delta=1e-3):
    """delta, at the epsilon that the filter promises, of the core's size on a hard pair.

    All elements have a common number of friends, one fewer with the other element in place: every
    score moves by 2. The number of survivors is binomial.
    """
    event, _ = event_of(
        lambda s: core.core_fixed_size(s, "core", np.full(t, t), rho=rho, delta=delta),
        rho=rho,
        delta=delta,
    )
    event = replace(event, scale=event.scale * scale_factor)
    friends = int(t + event.public["threshold"]) // 2
    laws = [
        binom.pmf(np.arange(t), t - 1, keep_probability(event, f, t))
        for f in (friends, friends - 1)
    ]
    epsilon = zcdp_epsilon(rho, 1e-2)
    return max(hockey_stick(*laws, epsilon), hockey_stick(*laws[::-1], epsilon))


def test_audit_of_the_core_size():
    """Within the promise; with half the noise, or the noise for add/remove, far outside."""
    assert core_size_delta(1.0) <= 1e-2 + 1e-3
    assert core_size_delta(0.5) > 5e-2
    assert core_size_delta(0.25) > 0.5
