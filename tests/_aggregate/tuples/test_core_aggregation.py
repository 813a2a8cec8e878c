"""Aggregation of k-tuples, of which one may be replaced."""

import numpy as np
import pytest
from block_tools import tuples_in_memory
from kernel_tools import open_session

from sklearn_dp._aggregate.tuples import (
    CORE_DELTA,
    CORE_SHARE,
    radii,
    tuple_average,
    tuple_entries,
    tuples_needed,
)
from sklearn_dp._queries import tuples as _tuples
from sklearn_dp._queries.tuples import TuplePairs, match_gamma, matched_distances


def test_number_of_tuples_against_the_table_of_the_exact_formula():
    """Filter with rho 0.7 and delta 9e-9 or 9e-7 of its own: the published table within 2%."""
    for rho, delta, friends, expected in (
        (0.7, 9e-7, 1.0, 138),
        (0.7, 9e-9, 0.9, 272),
        (0.35, 9e-7, 0.9, 458),
        (0.07, 9e-9, 1.0, 1872),
    ):
        t = tuples_needed(rho / CORE_SHARE, delta / CORE_DELTA, friends=friends)
        assert t == pytest.approx(expected, rel=0.02) and t % 2 == 0
    assert tuples_needed(0.01, 1e-6, most=1000) is None


def averaged(session, tuples, radius, *, clients=False, **options):
    """The average in the shape of a tuple."""
    rows, center = tuples_in_memory(tuples), np.zeros(tuples.shape[2])
    n_tuples = None if clients else len(tuples)
    found = tuple_average(session, rows, center, radius, n_tuples, **options)
    return None if found is None else found.mean.reshape(tuples.shape[1:])


def session_of(rho=4.0, delta=1e-6, random_state=0):
    entries = tuple_entries(rho, delta)
    return open_session(*entries, rho=rho, delta=delta, random_state=random_state)


def make_tuples(rng, t=80, k=4, d=2, spread=0.01):
    """Random orders of noisy copies of k far centers."""
    centers = (
        np.stack(
            [np.cos(np.arange(k) * 2 * np.pi / k), np.sin(np.arange(k) * 2 * np.pi / k)], axis=1
        )
        * 0.8
    )
    centers = np.hstack([centers, np.zeros((k, d - 2))])
    tuples = np.stack([rng.permutation(centers) for _ in range(t)])
    return tuples + spread * rng.normal(size=tuples.shape), centers


@pytest.mark.parametrize(
    "tuples",
    [
        np.full((60, 3, 2), np.nan),
        np.random.default_rng(2).uniform(-1, 1, size=(60, 3, 2)),
        np.zeros((60, 3, 2)),
    ],
)
def test_without_agreement_there_is_no_answer(tuples):
    assert averaged(session_of(), tuples, 1.0) is None


def test_two_competing_solutions_give_none_rather_than_a_wrong_one():
    rng = np.random.default_rng(3)
    one, _ = make_tuples(rng, t=40)
    other = one @ np.array([[np.cos(0.8), -np.sin(0.8)], [np.sin(0.8), np.cos(0.8)]])
    for seed in range(20):
        both = np.concatenate([one, other])
        assert averaged(session_of(random_state=seed), both, 1.0) is None


def test_distances_are_pure_functions_of_the_pair(monkeypatch):
    rng = np.random.default_rng(6)
    tuples, _ = make_tuples(rng, t=50, spread=0.2)
    distances = matched_distances(tuples, 0.2)
    monkeypatch.setattr(_tuples, "_PAIR_ENTRIES", 1)
    assert np.array_equal(matched_distances(tuples, 0.2), distances)
    order = rng.permutation(50)
    assert np.allclose(
        matched_distances(tuples[order], 0.2), distances[np.ix_(order, order)], rtol=1e-14
    )
    some = np.sort(order[:30])  # bit for bit: the earlier one of a pair stays the earlier one
    assert np.array_equal(matched_distances(tuples[some], 0.2), distances[np.ix_(some, some)])
    finite = np.isfinite(distances)
    assert 0 < finite.sum() < distances.size and np.array_equal(finite, finite.T)


def two_sided():
    """Two tuples whose distance depends on which of them comes first, and that distance, twice."""
    centers = np.array([[0.6, 0.0], [-0.6, 0.3], [0.0, -0.7]])
    for seed in range(1000):
        rng = np.random.default_rng(seed)
        one, other = centers, centers[rng.permutation(3)] + 0.03 * rng.normal(size=(3, 2))
        there, back = (
            matched_distances(np.stack(pair), 0.2)[0, 1] for pair in ((one, other), (other, one))
        )
        if there != back:
            return (one, other, there, back) if there > back else (other, one, back, there)
    raise AssertionError("no such tuples")


def radius_between(small, large):
    """A public radius with a test radius in [small, large), and the place of that."""
    for place in range(5, len(radii(1.0))):
        about = small / _tuples._SAFE / radii(1.0)[place]
        for radius in about * (1 + np.arange(-40, 41) * 2.0**-53):
            if small <= radii(radius)[place] * _tuples._SAFE < large:
                return radius, place
    raise AssertionError("no such radius")


@pytest.mark.parametrize("place", ["first", "last"])
def test_scores_move_within_the_claim_where_the_order_of_a_pair_decides(place):
    """Pairs that are friends in one order only: 6.7 claims when tiles compared pairs both ways."""
    far, near, large, small = two_sided()
    assert large > small and large - small < 1e-15
    radius, middle = radius_between(small, large)
    limit = radii(radius)[middle] * _tuples._SAFE
    width = 49  # of a tile that held 2**19 point distances to all of the t tuples
    t = 2**19 // 9 // width
    chosen = np.arange(t) % width < width // 2
    tuples = np.where(chosen[:, None, None], far, near)
    longer = np.insert(tuples, 0 if place == "first" else t, tuples[0], axis=0)
    pairs, scores = TuplePairs(np.zeros(2), 0.2, np.array([limit / _tuples._SAFE]), None), []
    for each in (tuples, longer):
        distances = matched_distances(each, 0.2)
        assert np.array_equal(distances, distances.T)
        scores.append(int(pairs._scores(distances)[0]))
    assert abs(scores[0] - scores[1]) <= pairs._claims(None)[0].of_one


def test_aligned_tuples_of_a_friendly_set_are_within_two_radii():
    """3.8: a common friend gives |X - pi(Y)| <= 2 R; two references differ by one permutation."""
    rng = np.random.default_rng(7)
    for _ in range(30):
        tuples, _ = make_tuples(rng, t=12, spread=0.02)
        distances = matched_distances(tuples, 0.2)
        reach = distances[0].max()  # everybody is a friend of the first
        places = match_gamma(tuples[:1], tuples, 0.2)[1][0]
        aligned = np.take_along_axis(tuples, places[:, :, None], axis=1)
        flat = aligned.reshape(12, -1)
        spread = np.linalg.norm(flat[:, None] - flat[None], axis=2)
        assert spread.max() <= 2 * reach
        other = match_gamma(tuples[3:4], tuples, 0.2)[1][0]
        again = np.take_along_axis(tuples, other[:, :, None], axis=1)
        turn = [np.flatnonzero((aligned[0] == point).all(axis=1))[0] for point in again[0]]
        assert np.array_equal(aligned[:, turn], again)


def test_how_far_balls_must_be_for_tuples_to_match():
    """4.6: centers Delta radii apart, points at opposite ends of their balls."""
    for separation, ratio, expected in (
        (16.0, 1 / 7, False),
        (16.01, 1 / 7, True),
        (12.0, 1 / 5, False),
        (12.01, 1 / 5, True),
    ):
        one = np.array([[1.0], [1.0 + separation]])
        two = np.array([[-1.0], [separation - 1.0]])
        assert match_gamma(one[None], two[None], ratio)[0][0, 0] == expected
