"""Which numbers of clusters may be chosen, and whether a choice is clear."""

import numpy as np
import pytest

from sklearn_dp._aggregate.kmeans.fit_context import Candidates, Choice, judged, nothing_seen
from sklearn_dp._aggregate.kmeans.result import EngineResult
from sklearn_dp._status import Message, Status


@pytest.mark.parametrize("d", [1, 5, 6, 50])
@pytest.mark.parametrize("criterion", ["auto", "gap", "bic", "silhouette"])
def test_the_rule_follows_from_public_numbers(d, criterion):
    usual = "gap" if d <= 5 else "bic"
    assert Candidates(2, 9, criterion).rule(d) == (usual if criterion == "auto" else criterion)


def test_a_choice_is_unclear_where_a_different_number_is_as_good():
    every = Candidates(1, 30)
    values = {k: 0.0 for k in range(1, 31)} | {20: 1.0, 24: 0.995, 27: 0.97}
    assert not judged(20, values, every, 0.02).unclear
    assert "27 would fit" in judged(20, values, every, 0.05).unclear
    assert "2 would fit" in judged(3, {2: 0.99, 3: 1.0}, every, 0.05).unclear


def test_a_choice_at_the_upper_limit_says_so():
    values = {1: 0.0, 2: 1.0, 3: 2.0}
    assert "3 is the largest number allowed" in judged(3, values, Candidates(1, 3), 0.1).unclear
    assert not judged(3, values, Candidates(1, 4), 0.1).unclear
    assert not judged(3, values, Candidates(3, 3), 0.1).unclear


def test_without_any_sign_the_least_candidate_is_taken():
    assert nothing_seen(Candidates(4, 9)).n_clusters == 4
    assert str(nothing_seen(Candidates(4, 9)).told("components")).startswith(
        "number of components unc"
    )
    assert not nothing_seen(Candidates(4, 4)).unclear


@pytest.mark.parametrize("code", ["missing_clusters", "empty_clusters", "inertia_capped"])
def test_where_clusters_may_be_missing_their_number_is_unclear(code):
    told = Status([Message(code, "trouble", severity="part")])
    found = EngineResult(np.zeros((5, 2)), np.ones(5), 1.0, told, 1, 0.0)
    doubtful = code != "inertia_capped"
    for choice in (Choice(5, {4: 0.5, 5: 1.0}), Choice(5, {4: 0.5, 5: 1.0}, "4 may do")):
        codes = [each.code for each in found.chosen(choice).status]
        assert codes == [code, "unclear_number"][: 1 + (doubtful or bool(choice.unclear))]
    assert found.chosen(None).status == told
    assert found.chosen(Choice(5, {5: 1.0})).status == told  # nothing was chosen
