"""The leak scanner finds every form in which a value can show, and only these."""

import pickle
import warnings

import numpy as np
import pytest

from sklearn_dp._status import Message, Status
from sklearn_dp.audit import scan_for_leaks
from sklearn_dp.audit._observe import needles, search
from sklearn_dp.exceptions import UtilityWarning

VALUE = -0.6180339887498949
FORMS = {
    "float64": np.float64(VALUE).tobytes(),
    "float64, big endian": np.array(VALUE, ">f8").tobytes(),
    "pickle": pickle.dumps({"a": [VALUE]}),
    "array": pickle.dumps(np.array([1.0, VALUE, 2.0])),
    "array, Fortran order": pickle.dumps(np.asfortranarray([[1.0, VALUE], [2.0, 3.0]])),
    "repr": repr(VALUE),
    "numpy's repr": repr(np.float64(VALUE)),
    "float32": str(np.float32(VALUE)),
    "an array's repr": repr(np.array([VALUE, 3.5])),
    "six digits": f"{VALUE:.6g}",
    "six decimals": f"error near {VALUE:f}, sorry",
    "scientific": f"{VALUE:.8e}",
    "magnitude": str(abs(VALUE)),
    "json": '{"x": -0.6180339887498949}',
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_value_is_found(form):
    sought = needles(np.array([[1.0, 2.0], [3.0, VALUE]]))
    assert search(sought, FORMS[form]) == ["row 1, column 1"]


def test_other_numbers_are_not_found():
    rng = np.random.default_rng(0)
    sought, others = needles(rng.uniform(size=(50, 4))), rng.uniform(size=5000)
    assert search(sought, pickle.dumps(others)) == []
    assert search(sought, " ".join(f"{value:.4g} {value!r}" for value in others[:400])) == []


def test_the_toy_has_no_leaks(toy, points):
    assert scan_for_leaks(toy, points) == []
    assert scan_for_leaks(toy, points, groups=np.arange(len(points)) // 2) == []


def keep(attribute, value_of):
    return lambda self, X: setattr(self, attribute, value_of(X))


def warn(self, X):
    warnings.warn(f"an outlier at {X[3, 1]:.7g}", UtilityWarning, stacklevel=2)


def note(self, X):
    self.messages_ = Status([Message("mean", f"mean below {X.max()}", severity="all")])


def refuse(self, X):
    if len(X) > 3:
        raise ValueError(f"X has the strange value {X[2, 2]}")


@pytest.mark.parametrize(
    ("plant", "where"),
    [
        (keep("rows_", lambda X: X), "pickle"),
        (keep("_hidden", lambda X: [float(X[7, 0])]), "pickle"),
        (keep("first32_", lambda X: X[0].astype(np.float32)), "pickle"),
        (keep("text_", lambda X: f"{X[4, 2]:.6g}"), "pickle"),
        (warn, "warnings"),
        (note, "warnings"),
        (refuse, "error"),
    ],
    ids=["rows", "one value", "float32", "text", "warning", "status", "error"],
)
def test_planted_leaks_are_found(make_toy, points, after_fit, plant, where):
    after_fit(lambda self, X, session: plant(self, X))
    leaks = scan_for_leaks(make_toy(), points)
    assert any(leak.startswith(where) for leak in leaks), leaks
