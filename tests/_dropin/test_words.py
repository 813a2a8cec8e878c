"""Words of replaced constructors: each is explained, and nothing else about them changes."""

import inspect
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path

import cloudpickle
import pytest
from sklearn.base import clone

from sklearn_dp import (
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
def test_other_words_are_python_s_affair(cls):
    with pytest.raises(TypeError, match="unexpected keyword argument 'nonsense'"):
        cls(nonsense=1)
    with pytest.raises(ValueError, match="Invalid parameter 'nonsense'"):
        cls().set_params(nonsense=1)


@pytest.mark.parametrize("cls", CLASSES)
def test_signatures_stay_clean(cls):
    parameters = inspect.signature(cls).parameters
    kinds = {parameter.kind for parameter in parameters.values()}
    assert not kinds & {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}
    assert sorted(cls().get_params()) == sorted(parameters)
    assert cls.__init__.__qualname__ == f"{cls.__name__}.__init__"


class Named(DPKMeans):
    """What a user may derive: words of its own, `n_init` among them."""

    def __init__(self, n_clusters=3, *, n_init=1, epsilon=None):
        super().__init__(n_clusters, epsilon=epsilon)
        self.n_init = n_init


class Open(DPKMeans):
    """A subclass that hands on whatever it gets."""

    def __init__(self, n_clusters=3, **options):
        super().__init__(n_clusters, **options)


class Plain(DPKMeans):
    """A subclass without a constructor."""


def test_subclasses_have_the_words_that_they_declare():
    model = clone(Named(4, n_init=7)).set_params(n_init=8)
    assert (model.n_init, model.get_params()["n_init"]) == (8, 8)
    with pytest.raises(TypeError, match="Named has no parameter 'tol'"):
        Named(tol=1)
    with pytest.raises(TypeError, match="Open has no parameter 'tol'"):
        Open(tol=1)
    with pytest.raises(TypeError, match="Plain has no parameter 'tol'"):
        Plain(tol=1)
    assert pickle.loads(pickle.dumps(Plain(5))).n_clusters == 5
    assert Open(2, epsilon=3.0).epsilon == 3.0


@pytest.mark.slow
def test_a_class_pickled_by_value_goes_on_to_explain():
    """As of a notebook, into a process that does not have it."""
    source = """
        import sys, cloudpickle
        from sklearn_dp import DPKMeans
        class Mine(DPKMeans):
            def __init__(self, n_clusters=3, *, mine=1):
                super().__init__(n_clusters)
                self.mine = mine
        sys.stdout.buffer.write(cloudpickle.dumps(Mine))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(source)], capture_output=True, check=True
    )
    mine = cloudpickle.loads(done.stdout)
    assert clone(mine(2, mine=5)).mine == 5
    with pytest.raises(TypeError, match="Mine has no parameter 'n_init'"):
        mine(n_init=3)


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
