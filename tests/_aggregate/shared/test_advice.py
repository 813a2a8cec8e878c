"""Words about answers that the noise hides."""

import math

import pytest

from sklearn_dp._aggregate.shared.advice import advice, hidden_in_noise


def test_so_much_more_would_help_is_in_numbers():
    assert advice(3.0, 0.5) == "; about 3 times the rows, or an epsilon of about 1.5, would help"
    assert "(30)" in advice(3.0, 0.5, 10.0)
    assert (
        advice(1.01, 0.5) == "; about 1.1 times the rows, or an epsilon of about 0.55, would help"
    )
    assert advice(1e3, 1.0) == advice(math.inf, 1.0) == advice(math.nan, 1.0) == ""


@pytest.mark.parametrize(
    ("error", "spread", "least", "words"),
    [
        (0.49, 1.0, 9.0, "ok"),
        (0.51, 1.0, 9.0, "mostly noise: the standard error is about 51 % of the spread of it; "),
        (40.0, 1.0, 9.0, "mostly noise: the standard error is many times the spread of it; "),
        (math.inf, 1.0, 9.0, "mostly noise: the standard error is many times the spread of it"),
        (1.0, 0.0, 9.0, "mostly noise: the standard error is many times the spread of it"),
        (0.01, 1.0, -1.0, "too few rows for this budget: their number is lost in the noise; "),
        (0.01, 1.0, math.nan, "too few rows for this budget: their number is lost in the noise"),
    ],
)
def test_an_error_is_told_by_the_spread_that_hides_in_it(error, spread, least, words):
    status = hidden_in_noise("it", error, spread, 1.0, 10.0, least)
    assert status.startswith(words) and (status == "ok") == (words == "ok")


def test_what_helps_leads_to_a_fifth_of_the_spread():
    assert hidden_in_noise("it", 2.0, 1.0, 0.1, 30.0, 9.0).endswith(
        "; about 10 times the rows (300), or an epsilon of about 1, would help"
    )
    assert hidden_in_noise("it", 2.0, 1.0, 0.1, 30.0, 0.0).endswith("; about 300 rows would help")
