"""Tests that tell data sets apart: what is shown, learned from some fits, and likelihoods."""

import numpy as np
import pytest
from kernel_tools import laplace
from scipy.special import ndtr

from benchmarks.certify import distinguishers
from benchmarks.certify.distinguishers import Table, log_likelihood_ratio, scores, separation
from sklearn_dp._privacy._trace import Event

N = 800
OTHER = np.arange(N) % 2 == 1
LEARN = np.arange(N) < N // 2


def gaussian(seed=0, size=(N,)):
    return np.random.default_rng(seed).normal(size=size)


def table_of(**columns):
    rows = [({}, {}) for _ in range(N)]
    for name, column in columns.items():
        for row, value in zip(rows, column, strict=True):
            row[isinstance(value, str)][name] = value
    return Table(rows)


def best_on_the_rest(table):
    found = scores(table, OTHER, LEARN)
    held = {name: separation(numbers[~LEARN], OTHER[~LEARN]) for name, numbers in found.items()}
    return max(held, key=held.get), held


CASES = {
    "a shift": ({"a": gaussian() - 2.0 * OTHER}, "a"),
    "a spread": ({"a": gaussian() * np.where(OTHER, 5.0, 1.0)}, "distance of a from its median"),
    "a direction": (
        {
            "a": gaussian(0) + 10 * gaussian(1) + 1.5 * OTHER,
            "b": 10 * gaussian(1) - 1.5 * OTHER + gaussian(2),
        },
        "learned",
    ),
    "a product": (
        {"a": gaussian(0), "b": gaussian(0) * np.where(OTHER, 1, -1) + gaussian(1) / 2},
        "learned",
    ),
    "a word": ({"w": np.where(OTHER & (gaussian() > -1), "ok", "poor").tolist()}, "words: w"),
    "a missing number": ({"a": np.where(OTHER, np.nan, gaussian())}, "learned"),
    "two words": (
        {
            "v": np.where(gaussian(3) > 0, "a", "b").tolist(),
            "w": np.where((gaussian(3) > 0) ^ OTHER, "a", "b").tolist(),
        },
        "words: all",
    ),
}


@pytest.mark.parametrize("what", CASES)
def test_a_difference_is_found(what):
    columns, expected = CASES[what]
    name, held = best_on_the_rest(table_of(**columns))
    assert held[name] > 0.85
    assert expected in name or max(v for k, v in held.items() if expected in k) > 0.85


def test_nothing_is_found_where_nothing_differs():
    """All of 30 distinguishers within five standard deviations of one half."""
    words = np.where(gaussian(7) > 0, "a", "b").tolist()
    _, held = best_on_the_rest(table_of(a=gaussian(5), b=gaussian(6), w=words))
    assert len(held) > 7 and max(held.values()) < 0.5 + 5 / np.sqrt(6 * N / 2)
    assert scores(table_of(a=np.zeros(N)), OTHER, LEARN) == {}


def test_only_what_may_be_learned_from_is_learned_from():
    """Other labels of the other fits change no number."""
    table = table_of(a=gaussian(0), b=gaussian(1), w=np.where(gaussian(2) > 0, "a", "b").tolist())
    again = np.where(LEARN, OTHER, ~OTHER)
    before, after = (scores(table, labels, LEARN) for labels in (OTHER, again))
    assert before.keys() == after.keys()
    for name in before:
        np.testing.assert_array_equal(before[name], after[name])


# -- likelihood ratios -----------------------------------------------------------------------------


def event(kind, value, scale, output, **public):
    return Event(kind, "entry", value, 1.0, scale, 0.1, public, output)


def ratio(kind, before, after, scale, output, **public):
    return distinguishers._RATIOS[kind](
        event(kind, before, scale, output, **public), event(kind, after, scale, None, **public)
    )


def total(kind, before, after, scale, outputs, **public):
    """Ratios times the chances before are the chances after: they sum to one."""
    return [ratio(kind, before, after, scale, np.array(each), **public) for each in outputs]


@pytest.mark.parametrize("scale", [0.3, 1.5, 20.0])
def test_ratios_of_rounded_gaussian_noise_are_exact(scale):
    outputs = np.arange(-200, 201)
    logs = total("gaussian", np.array(2), np.array(5), np.array(scale), outputs)
    before, after = (
        ndtr((outputs - v + 0.5) / scale) - ndtr((outputs - v - 0.5) / scale) for v in (2, 5)
    )
    likely = before > 1e-8  # the differences above cancel in the upper tail
    np.testing.assert_allclose(
        np.exp(logs)[likely] * before[likely], after[likely], rtol=1e-6, atol=1e-14
    )


def test_ratios_of_histograms_are_of_cells_that_differ():
    before = np.array([3, 7]), np.array([10, 4])
    after = np.array([3, 9]), np.array([11, 1])
    seen = np.array([3]), np.array([12])
    found = ratio("stability", before, after, 2.0, seen, low=5)
    expected = (
        (2**2 - 1**2) / 8
        - np.log(ndtr((4.5 - 4) / 2))
        + np.log(ndtr(4.5 / 2))
        + np.log(ndtr((4.5 - 1) / 2))
        - np.log(ndtr(4.5 / 2))
    )
    assert found == pytest.approx(expected)


def ratios(estimator, X, other, n=60):
    units = np.append(np.arange(len(X)), -np.ones(len(other) - len(X), int))[: len(other)]
    return np.array([log_likelihood_ratio(estimator, X, other, units)[1] for _ in range(n)])


def test_a_whole_fit_has_the_privacy_loss_that_it_pays_for(make_toy):
    """-mu^2/2 and mu on average; the toy's row realizes 0.67 of rho. Error: five deviations."""
    X = np.zeros((5, 1))
    other = np.append(X, [[1.0]], axis=0)
    toy = make_toy(rho=2.0, bounds=1.0)
    found = ratios(toy, X, other, 200)
    spent = (0.1 + 0.4 + 0.2) * 2.0
    assert abs(found.mean() + spent) < 5 * np.sqrt(2 * spent / 200)
    assert abs(found.var() / (2 * spent) - 1) < 5 * np.sqrt(2 / 200)


@pytest.mark.parametrize("plant", ["another release", "an error", "fewer releases"])
def test_control_flow_that_depends_on_data_tells_everything(make_toy, after_fit, plant):
    def change(self, X, session):
        if len(X) == 5:
            if plant == "an error":
                raise ValueError
            session.gaussian("extra", len(X), sensitivity=1.0)
        elif plant == "another release":
            laplace(session, "extra", len(X), sensitivity=1.0, epsilon=0.01)

    make_toy._SHARES = {**make_toy._SHARES, "extra": 0.05}
    try:
        after_fit(change)
        X = np.zeros((5, 1))
        other = np.zeros((6, 1))
        found = ratios(make_toy(bounds=1.0, rho=1.0), X, other, 1)
    finally:
        make_toy._SHARES = {k: v for k, v in make_toy._SHARES.items() if k != "extra"}
    assert found[0] == 1e3
