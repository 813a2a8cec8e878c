"""What a replay audit has found adds up, and is printed."""

from sklearn_dp.audit import replay_audit
from sklearn_dp.audit._replay import ReplayResult


def test_results_add_up_and_print(toy, points):
    one = replay_audit(toy, points)
    both = one + ReplayResult(
        "ToyMean",
        5,
        1,
        ["far: count: distance 2"],
        {"count": 2.0},
        {"count": 9.0},
        {"count": 3.0},
        9.0,
        3.0,
    )
    assert (both.n_pairs, both.n_voided, both.ratios["count"]) == (17, 1, 2.0)
    assert one.passed and not both.passed
    assert "17 pairs, 1 voided, 1 violations" in repr(both) and "far: count" in repr(both)


def test_no_pairs_prove_nothing(toy, points):
    assert not replay_audit(toy, points, []).passed
    assert not ReplayResult("ToyMean", n_pairs=3, n_voided=3).passed
