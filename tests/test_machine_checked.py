"""The proofs of proofs/ are about the code of the package; where Coq is installed, they hold.

What is planted there is refused: `python proofs/planted.py` tries all of it.
"""

import importlib.util
import math
import shutil
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from sklearn_dp._privacy._grid import Grid, clip_integer_rows
from sklearn_dp._privacy._session import sigma_of
from sklearn_dp._privacy._units import Units
from sklearn_dp._rows.rows import Rows, clipped_sums

ROOT = Path(__file__).resolve().parents[1]


def script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "proofs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CHECK, PLANTED = script("check"), script("planted")


def test_statements_are_about_this_code():
    assert CHECK.without_coq(ROOT) == []


@pytest.mark.parametrize("edit", [e for e in PLANTED.EDITS if not e.coq], ids=lambda e: e.name)
def test_other_code_and_other_numbers_are_refused(edit, tmp_path):
    assert edit.refusal(ROOT, tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("coqc") is None, reason="Coq is not installed")
@pytest.mark.parametrize("edit", [e for e in PLANTED.EDITS if e.coq], ids=lambda e: e.name)
def test_false_statements_are_refused(edit, tmp_path):
    assert edit.refusal(ROOT, tmp_path)


# -- Floats.v, line by line, in fractions: NumPy does what is said of it there


def fl(x):
    return Fraction(float(x))  # correctly rounded, ties to even


def root(x):
    """A root, cut off after 400 bits: no root of a float is that near the middle of two floats."""
    return Fraction(math.isqrt(x.numerator * x.denominator << 800), x.denominator << 400)


def clip(row, limit):
    norm = fl(sum(x * x for x in row))
    if norm <= fl(fl(limit * limit) * (1 - Fraction(1, 2**50))):
        return row
    factor = min(Fraction(1), fl(fl(limit / fl(root(norm))) * (1 - Fraction(1, 2**48))))
    return [math.trunc(fl(x * factor)) for x in row]


def quantize(row, radius):
    exponent = math.frexp(radius)[1] - (math.frexp(radius)[0] == 0.5)
    unit, radius = Fraction(2) ** (max(exponent, -980) - 24), Fraction(radius)
    row, largest = [Fraction(x) for x in row], max(abs(Fraction(x)) for x in row)
    if radius < largest:
        row = [fl(fl(x / largest) * radius) for x in row]
    steps = [math.trunc(fl(x * fl(1 / unit))) for x in row]
    return clip(steps, min(fl(radius / unit), Fraction(2**24)))


def clip_factor(square, limit):
    below = fl(limit * (1 - Fraction(1, 2**48)))
    shrink = min(Fraction(1), fl(below / fl(root(max(Fraction(square), Fraction(1))))))
    return math.floor(fl(shrink * 2**10))


@pytest.mark.parametrize("radius", [1.0, 0.3, 1e-310, 1e-300, 7e299, 1.7e308, np.nextafter(4, 0)])
def test_rows_are_quantized_as_stated(radius):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)) * np.exp2(rng.uniform(-30, 3, size=(300, 1)))
    with np.errstate(over="ignore", under="ignore"):
        X = np.clip(X * radius, -1.7e308, 1.7e308)
    found = Grid.for_radius(radius).quantize(X, radius)
    assert found.tolist() == [quantize(row, radius) for row in X.tolist()]


def test_integer_rows_are_clipped_as_stated():
    rng = np.random.default_rng(1)
    rows = np.trunc(rng.normal(size=(500, 4)) * np.exp2(rng.uniform(0, 23, size=(500, 1))))
    limits = np.exp2(rng.uniform(-5, 24, 500))
    limits[:100] = np.sqrt(np.einsum("ij,ij->i", rows, rows)[:100])  # next to the border
    limits[:100] += (limits[:100] == 0) + np.spacing(limits[:100]) * rng.integers(-40, 40, 100)
    found = clip_integer_rows(rows, limits)
    exact = [clip([int(x) for x in row], Fraction(t)) for row, t in zip(rows, limits, strict=True)]
    assert found.tolist() == exact


def test_residuals_are_clipped_as_stated():
    rng = np.random.default_rng(2)
    rows = np.trunc(rng.normal(size=(60, 3)) * np.exp2(rng.uniform(0, 20, size=(60, 1))))
    limits, labels = np.exp2(rng.uniform(0, 20, 60)), np.arange(60)
    sums = clipped_sums(Rows.of(rows, 2.0**24), np.zeros((60, 3)), labels, None, limits, Units(60))
    for row, limit, found in zip(rows, limits, sums, strict=True):
        row = [int(x) for x in row]
        factor = clip_factor(sum(x * x for x in row), Fraction(limit))
        assert found.tolist() == [factor * x for x in row]


def test_noise_is_scaled_as_stated():
    rng = np.random.default_rng(3)
    for s, rho in np.exp2(rng.uniform(-40, 40, size=(500, 2))).tolist():
        stated = float(fl(Fraction(s) / fl(root(fl(2 * Fraction(rho))))))
        assert sigma_of(s, rho) == math.nextafter(math.nextafter(stated, math.inf), math.inf)
