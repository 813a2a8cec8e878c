"""What a mean says of its columns, from numbers by hand."""

import math

import numpy as np
import pytest

from sklearn_dp._aggregate.friendly.mean_answer import _codes, _in_words
from sklearn_dp._aggregate.friendly.mean_facts import PublicFacts
from sklearn_dp._aggregate.friendly.refine import Refined
from sklearn_dp._privacy._domain import Domain
from sklearn_dp._queries.coordinates import Columns

BOX = Columns.of(Domain.from_bounds(([0, -10, 5], [100, 10, 5]), 3), 3)


def refined(mean, error, variance=0.1, noise=0.01, least=900.0, bias=0.0):
    d = len(mean)
    spread, of_spread = np.full(d, math.sqrt(variance)), np.full(d, math.inf)
    mean, error, own = np.array(mean), np.array(error), np.full(d, variance)
    return Refined(
        mean, 2.0, error, spread, 1e3, least, 0.0, of_spread, np.full(d, bias), own, noise
    )


@pytest.mark.parametrize(
    ("end", "codes"),
    [
        (refined([0.2, 0.2, 0.0], [0.01] * 3), ["ok"] * 3),
        (refined([-1.0, -0.99, 0.0], [0.01] * 3), ["ok", "bound", "ok"]),  # 0 is a natural end
        (refined([0.985, 0.5, 0.0], [0.01] * 3), ["bound", "ok", "ok"]),
        (refined([0.2, 0.2, 0.0], [0.01, 0.2, 0.2]), ["ok", "noise", "ok"]),
        (refined([0.2, 0.2, 0.0], [0.01, 0.02, 0.0], 0.01), ["ok", "noise", "ok"]),
        (refined([0.2] * 3, [0.03, 0.06, 0.0], 0.01, bias=0.028), ["ok", "noise", "ok"]),
        (refined([0.2, 0.2, 0.0], [0.01] * 3, least=-1.0), ["noise", "noise", "ok"]),
    ],
)
def test_codes_of_columns_in_a_box(end, codes):
    facts = PublicFacts(1e3, 3, 2 * math.sqrt(2), 0.1, 0.0, math.sqrt(2))
    assert _codes(end, BOX, facts)[0].tolist() == codes


def test_a_mean_few_spreads_from_a_bound_is_told_and_no_answer_if_it_is_within_its_error():
    facts = PublicFacts(1e3, 3, 2 * math.sqrt(2), 0.1, 0.0, math.sqrt(2))
    codes, near = _codes(refined([0.7, -0.7, 0.0], [0.01] * 3), BOX, facts)
    assert codes.tolist() == ["bound", "bound", "ok"] and not near.any()
    near = _codes(refined([0.985, -0.5, 0.0], [0.01] * 3), BOX, facts)[1]
    assert near.tolist() == [True, False, False]
    near = _codes(refined([0.35, 0.5, 0.0], [0.35, 0.1, 0.0], 1.0), BOX, facts)[1]
    assert not near.any()  # the first may be anywhere


def test_words_name_the_columns():
    facts = PublicFacts(1e3, 3, 20.0, 0.1, 0.0, None, names=["age", "pay", "gifts"])
    end = refined([0.0] * 3, [0.1, 0.1, 0.25])
    words = {
        ("ok", "ok", "noise"): "about 79% of the spread of these columns: gifts; use about",
        ("ok", "bound", "bound"): "rows may lie beyond it: pay, gifts (try wider bounds",
        ("constant", "ok", "ok"): "ok, but only a single value is visible in these columns: age",
        ("ok", "ok", "ok"): "ok",
    }
    for codes, status in words.items():
        near = np.array(codes) == "bound"
        assert status in _in_words(np.array(codes), near, end, facts, facts.names, str)
    lost = end._replace(std_error=np.array([0.1, 0.1, math.inf]))
    codes, near = np.array(["ok", "ok", "noise"]), np.zeros(3, dtype=bool)
    status = _in_words(codes, near, lost, facts, facts.names, str)
    assert status.startswith("no spread found in these columns: gifts; more rows")


def test_what_a_long_tail_may_shift_is_told_where_it_is_most_of_the_error():
    facts, codes = PublicFacts(1e3, 1, 20.0, 0.1, 0.0, None), np.array(["ok"])
    short, long = (refined([0.0], [0.03], bias=bias) for bias in (0.026, 0.029))
    near = np.array([False])
    assert _in_words(codes, near, short, facts, [0], str) == "ok"
    status = _in_words(codes, near, long, facts, [0], str)
    assert status.startswith("ok, but the noise may hide long tails")
    assert "9% of a spread" in status


def test_a_column_of_one_value_is_named_beside_other_limits_which_are_not_its_own():
    facts, near = PublicFacts(1e3, 2, 20.0, 0.1, 0.0, None, names=["age", "gifts"]), [False] * 2
    codes, near = np.array(["ok", "constant"]), np.array(near)
    end = refined([0.0, 0.0], [0.03, 0.03], bias=0.0)
    words = "only a single value is visible in these columns: gifts"
    for bias in ([0.0, 0.029], [0.029, 0.2]):
        status = _in_words(codes, near, end._replace(bias=np.array(bias)), facts, facts.names, str)
        assert status.startswith("ok, but ") and status.endswith(words)
        assert ("9% of a spread" in status) == (bias[0] > 0) == ("long tails" in status)
    told = _in_words(codes, near, end._replace(open=True), facts, facts.names, str)
    assert "the noise hides how long tails are" in told and told.endswith(f"; {words}")
