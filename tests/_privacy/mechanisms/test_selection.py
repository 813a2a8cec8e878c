"""Choices of an index: their laws, and the premises of their proofs."""

import numpy as np
import pytest
from kernel_tools import open_session

from sklearn_dp._costs.plan import PlanEntry, PlanError
from sklearn_dp._privacy.mechanisms import pure


def choose(kind, scores=(3, 9, 4), sensitivity=2, epsilon=0.5, delta=1e-3, threshold=5):
    session = open_session(PlanEntry("a", "lead", 1.0, 0.2), delta=0.5)
    options = {"sensitivity": sensitivity, "epsilon": epsilon}
    if kind == "above_threshold":
        release = pure.above_threshold_release(scores, threshold, **options)
    elif kind == "lead":
        release = pure.lead(scores, delta=delta, **options)
    else:
        release = pure.exponential_release(scores, **options)
    return session._release("a", release)


KINDS = ["exponential", "above_threshold", "lead"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "change, premise",
    [
        ({"sensitivity": 0}, "sensitivity"),
        ({"sensitivity": -1.0}, "sensitivity"),
        ({"sensitivity": np.nan}, "sensitivity"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": np.nan}, "epsilon"),
        ({"epsilon": np.inf}, "epsilon"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"scores": [[1, 2]]}, "vector"),
    ],
)
def test_a_choice_without_its_premises_is_refused(kind, change, premise):
    with pytest.raises(PlanError, match=premise):
        choose(kind, **change)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scores", [[0.5, 1], [np.nan, 1], ["a", "b"]])
def test_scores_are_integers(kind, scores):
    with pytest.raises(TypeError, match="integers"):
        choose(kind, scores=scores)


@pytest.mark.parametrize(
    "kind, change, premise",
    [
        ("exponential", {"scores": []}, "candidate"),
        ("lead", {"scores": [1]}, "two candidates"),
        ("lead", {"delta": 0.0}, "delta"),
        ("lead", {"delta": 0.5}, "delta"),
        ("lead", {"delta": np.nan}, "delta"),
        ("above_threshold", {"threshold": np.nan}, "threshold"),
    ],
)
def test_each_choice_has_premises_of_its_own(kind, change, premise):
    with pytest.raises(PlanError, match=premise):
        choose(kind, **change)


@pytest.mark.parametrize("kind", KINDS)
def test_scores_farther_apart_than_63_bits_are_no_overflow(kind):
    """The gap from -2^62 to 2^62 and more was negative; clipped, no difference leaves 63 bits."""
    scores = np.array([-(2**63), 2**63 - 1, 0])
    assert choose(kind, scores=scores) == 1
    assert choose(kind, scores=np.array([-(10**30), 10**30, 0], dtype=object)) == 1


def test_sensitivities_above_2_to_the_53_make_choices_no_sharper():
    claim = 2**53 + 1
    assert pure.exponential_release([0, 1], claim, 0.5).scale * 2 * claim <= 0.5
    for release in (
        pure.above_threshold_release([0, 1], 5, claim, 0.5),
        pure.lead([0, 1], claim, 0.5, 1e-3),
    ):
        assert int(release.scale) >= 4 * claim
