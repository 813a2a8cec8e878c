"""Releases in plain words."""

import pytest

from sklearn_dp import DPPCA, DPGaussianMixture, DPKMeans
from sklearn_dp.inspection._words import _WORDS, in_plain_words


@pytest.mark.parametrize("estimator", [DPKMeans(3), DPGaussianMixture(3), DPPCA(2)])
def test_two_releases_of_a_plan_do_not_share_their_words(estimator):
    names = [entry.name for entry in estimator.privacy_plan(9).entries]
    assert len({in_plain_words(name) for name in names}) == len(set(names))


def test_every_word_is_about_a_release_that_exists():
    """A release that was renamed would be shown by its bare name."""
    estimators = [
        *(kind(3, **options) for kind in (DPKMeans, DPGaussianMixture) for options in OPTIONS),
        *(DPPCA(2, **options) for options in OPTIONS),
    ]
    names = {
        entry.name.rpartition("/")[2]
        for estimator in estimators
        for entry in estimator.privacy_plan(9).entries
    }
    assert set(_WORDS) <= names


OPTIONS = ({}, {"bounds": 3.0}, {"epsilon": 0.1})
