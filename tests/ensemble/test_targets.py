"""Targets in parts, and fits on blocks of parts: the bits of one array."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge

from sklearn_dp import SampleAndAggregate
from sklearn_dp.exceptions import PartError
from sklearn_dp.ledger import PrivacyBudget, PrivacyLedger

RNG = np.random.default_rng(0)
X = RNG.normal(size=(301, 3))
Y = X @ [1.0, -2.0, 0.0] + 3
LABELS = np.where(Y > 3, "a", "b")
GROUPS = RNG.integers(0, 90, len(X))
OPTIONS = {"epsilon": 50.0, "n_blocks": 12, "aggregator": "mean", "output_bounds": 5.0}
MODELS = {
    "median": (SampleAndAggregate(**OPTIONS, random_state=0), None),
    "ball": (SampleAndAggregate(epsilon=50.0, n_blocks=12, random_state=0), None),
    "copies": (
        SampleAndAggregate(**OPTIONS, bounds=2.0, sampling="with_replacement", random_state=0),
        None,
    ),
    "line": (
        SampleAndAggregate(Ridge(), output=("coef_", "intercept_"), **OPTIONS, random_state=0),
        Y,
    ),
    "labels": (
        SampleAndAggregate(
            LogisticRegression(), output=("coef_",), classes=["a", "b"], **OPTIONS, random_state=0
        ),
        LABELS,
    ),
}


def cut(values, n_parts):
    """Uneven parts, some of them empty."""
    if values is None:
        return None
    ends = np.sort(np.random.default_rng(n_parts).integers(0, len(X) + 1, n_parts - 1))
    return np.split(values, ends)


def fitted(name, rows, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = clone(MODELS[name][0]).fit(rows, y, **options)
    return {key: pickle.dumps(value) for key, value in found.__getstate__().items()}


@pytest.mark.parametrize("name", MODELS)
def test_parts_have_the_bits_of_one_array(name):
    y = MODELS[name][1]
    known = fitted(name, X, y)
    assert fitted(name, cut(X, 7), cut(y, 7)) == known
    known = fitted(name, X.astype(np.float32), y, groups=GROUPS)
    assert known == fitted(name, cut(X.astype(np.float32), 7), cut(y, 7), groups=cut(GROUPS, 7))


def test_targets_are_refused_by_name_before_the_charge():
    ledger = PrivacyLedger(PrivacyBudget(epsilon=99.0, delta=1e-4))
    model, before = clone(MODELS["line"][0]).set_params(ledger=ledger), ledger.remaining
    for bad, kind, words in (
        (None, ValueError, "^y must be given"),
        (Y, TypeError, "^y must be a list .* not ndarray"),
        (3.0, TypeError, "^y must be a list .* not float"),
        (cut(Y, 3), ValueError, "^y must be a list .* number differs"),
    ):
        with pytest.raises(kind, match=words):
            model.fit(cut(X, 2), bad)
    with pytest.raises(ValueError, match="^y must be given"):
        model.fit_partitions(iter(cut(X, 2)))
    with pytest.raises(TypeError, match="^y must be a list .* not ndarray"):
        model.fit_partitions(cut(X, 2), y=Y)
    with pytest.raises(TypeError, match="sample_weight"):
        model.fit_partitions(cut(X, 2), y=cut(Y, 2), sample_weight=cut(Y, 2))
    assert ledger.remaining == before


@pytest.mark.parametrize(
    "spoiled", [lambda y: y[1:], lambda y: np.where(y == y[-1], np.nan, y), lambda y: ["7319"] * 7]
)
def test_a_bad_target_of_a_part_is_told_by_its_number(spoiled):
    parts = cut(X, 2)
    y = [part @ [1.0, -2.0, 0.0] for part in parts]
    y[1] = spoiled(y[1])
    with pytest.raises(PartError, match="^y, part 1: it must") as caught:
        clone(MODELS["line"][0]).fit(parts, y)
    error = caught.value
    assert "7319" not in str(error) and error.__cause__ is None and error.__context__ is None
