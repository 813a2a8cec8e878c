"""Words of replaced constructors: each is explained, and nothing else about them changes."""

import inspect
from pathlib import Path

import pytest

from sklearn_dp import (
    DPDBSCAN,
    DPPCA,
    DPGaussianMixture,
    DPKMeans,
    DPKTupleKMeans,
    DPOneClusterKMeans,
    DPStandardScaler,
    FederatedDPKMeans,
    FriendlyCovariance,
    FriendlyMean,
)
from sklearn_dp._dropin import ABSENT, REPLACED, WORDS

CLASSES = [
    DPDBSCAN,
    DPKMeans,
    DPKTupleKMeans,
    DPOneClusterKMeans,
    FederatedDPKMeans,
    DPGaussianMixture,
    DPPCA,
    FriendlyCovariance,
    FriendlyMean,
    DPStandardScaler,
]
CASES = [
    pytest.param(cls, word, id=f"{cls.__name__}-{word}")
    for cls in CLASSES
    for word in WORDS[cls._replaces]
    if word not in inspect.signature(cls).parameters
]


@pytest.mark.parametrize(("cls", "word"), CASES)
def test_a_word_is_refused_by_name_with_what_to_write(cls, word):
    known = WORDS[cls._replaces][word]
    with pytest.raises(TypeError, match=f"{cls.__name__} has no parameter '{word}'") as told:
        cls(**{word: 1})
    assert known.why in str(told.value) and known.instead in str(told.value)
    with pytest.raises(ValueError, match=word) as told:
        cls().set_params(**{word: 1})
    assert known.why in str(told.value)
    assert not hasattr(cls(), word)


@pytest.mark.parametrize("cls", CLASSES)
def test_every_word_of_the_replaced_class_is_a_parameter_or_in_the_table(cls):
    """Of all classes that count as replaced, as the installed scikit-learn has them."""
    ours = set(inspect.signature(cls).parameters) | set(WORDS[cls._replaces])
    for theirs in REPLACED[cls._replaces]:
        assert set(inspect.signature(theirs).parameters) <= ours, theirs


@pytest.mark.parametrize("cls", CLASSES)
def test_signatures_stay_clean(cls):
    parameters = inspect.signature(cls).parameters
    kinds = {parameter.kind for parameter in parameters.values()}
    assert not kinds & {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}
    assert sorted(cls().get_params()) == sorted(parameters)
    assert cls.__init__.__qualname__ == f"{cls.__name__}.__init__"


@pytest.mark.parametrize("page", ["doc/coming_from_scikit_learn.md"])
def test_the_guide_has_both_tables(page):
    text = (Path(__file__).resolve().parents[2] / page).read_text(encoding="utf-8")
    lines = text.splitlines()
    for theirs, words in WORDS.items():
        for name, word in words.items():
            parts = (f"| `{theirs}` |", f"`{name}`", f"| {word.why} |", f"| {word.instead} |")
            assert any(all(part in line for part in parts) for line in lines), (theirs, name)
    for ours, absent in ABSENT.items():
        for name, why in absent.items():
            parts = (f"| `{ours}` |", f"`{name}`", f"| {why} |")
            assert any(all(part in line for part in parts) for line in lines), (ours, name)
