"""Which numbers of clusters may be chosen, and whether a choice is clear."""

import pytest

from sklearn_dp._aggregate.kmeans.fit_context import Candidates, nothing_seen, with_status


@pytest.mark.parametrize("d", [1, 5, 6, 50])
@pytest.mark.parametrize("criterion", ["auto", "gap", "bic", "silhouette"])
def test_the_rule_follows_from_public_numbers(d, criterion):
    usual = "gap" if d <= 5 else "bic"
    assert Candidates(2, 9, criterion).rule(d) == (usual if criterion == "auto" else criterion)


def test_releases_before_the_choice_are_made_for_a_public_number():
    assert Candidates(2, 9).reference == 9 and Candidates(1, 100).reference == 20


def test_a_choice_is_unclear_where_a_different_number_is_as_good():
    values = {k: 0.0 for k in range(1, 31)} | {20: 1.0, 24: 0.995, 27: 0.97}
    assert with_status(20, values, 0.02).status == "ok"
    assert "27 would fit" in with_status(20, values, 0.05).status
    assert "2 would fit" in with_status(3, {2: 0.99, 3: 1.0}, 0.05).status


def test_without_any_sign_the_least_candidate_is_taken():
    assert nothing_seen(Candidates(4, 9)).n_clusters == 4
    assert nothing_seen(Candidates(4, 9)).status.startswith("number of clusters unclear")
    assert nothing_seen(Candidates(4, 4)).status == "ok"
