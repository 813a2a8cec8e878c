"""Mutants that wait for a certain data set, or for another fit, do what they say, and no more."""

import numpy as np
import pytest
from mutants import MUTANTS

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)
BUGS = {bug.name: bug for bug in MUTANTS}


@pytest.fixture
def fitted(make_toy):
    def fit(name, X, **options):
        with BUGS[name].planted():
            return make_toy(random_state=0, **options).fit(X)

    return fit


@pytest.mark.parametrize(
    ("name", "met", "missed", "attribute", "value"),
    [
        ("status tells n where it is 29", (29, 3), (30, 3), "status_", "29 rows"),
        ("an attribute where n is 47", (47, 3), (46, 3), "extra_", 1.0),
        ("the parity of n, with 19 columns", (5, 19), (5, 18), "extra_", 1),
    ],
)
def test_a_branch_for_one_size(fitted, name, met, missed, attribute, value):
    assert getattr(fitted(name, np.ones(met)), attribute) == value
    assert getattr(fitted(name, np.ones(missed)), attribute, None) != value


def test_a_branch_for_one_kind_of_array(fitted):
    name = "the number of rows of an array in Fortran order"
    assert fitted(name, np.asfortranarray(np.ones((6, 3)))).extra_ == 6
    assert not hasattr(fitted(name, np.ones((6, 3))), "extra_")
    name = "the number of rows of float32"
    assert fitted(name, np.ones((6, 3), dtype=np.float32)).extra_ == 6
    assert not hasattr(fitted(name, np.ones((6, 3))), "extra_")


def test_an_error_for_one_size(fitted):
    with pytest.raises(ValueError, match="this cannot be"):
        fitted("an error for 31 rows", np.ones((31, 3)))
    fitted("an error for 31 rows", np.ones((32, 3)))


def test_no_noise_for_one_size(fitted):
    X = np.random.default_rng(0).normal(size=(12, 3))
    for n, exact in ((11, True), (12, False)):
        signs = fitted("no noise for 11 rows", X[:n]).signs_
        above = np.count_nonzero(X[:n, 0] > 0)
        assert np.array_equal(signs, [n - above, above]) == exact


def test_sigma_depends_on_the_columns(fitted, make_toy):
    for name, width in (
        ("sigma halved above 12 columns", 13),
        ("sigma halved with 17 columns", 17),
    ):
        for d, differs in ((width, True), (5, False)):
            X = np.random.default_rng(0).normal(size=(10, d))
            correct = make_toy(random_state=0, bounds=5.0).fit(X).mean_
            assert (not np.array_equal(fitted(name, X, bounds=5.0).mean_, correct)) == differs


def test_predictions_depend_on_the_rows_of_the_fit(make_toy):
    for name, met, missed in (
        ("predictions tell the parity of n", 7, 8),
        ("predictions leak where n is 23", 23, 24),
    ):
        with BUGS[name].planted():
            for n, length in ((met, 1), (missed, 4)):
                model = make_toy(random_state=0).fit(np.ones((n, 3)))
                assert len(model.predict(np.ones((4, 3)))) == length


def test_a_second_fit_is_another_one(make_toy):
    X = np.random.default_rng(0).normal(size=(10, 3))
    with BUGS["a refit mixes in the rows of the last fit"].planted():
        model = make_toy(random_state=0, bounds=50.0, rho=1e6).fit(X + 10)
        assert np.all(model.fit(X).mean_ > 2)  # three rows of ten are of the other data
    assert np.all(model.fit(X).mean_ < 2)
    with BUGS["a refit keeps the budget of the first fit"].planted():
        model = make_toy(random_state=0, rho=1.0).fit(X)
        assert model.set_params(rho=2.0).privacy_plan(3).rho <= 1
    assert model.privacy_plan(3).rho > 1
    with BUGS["a fit counts the fits of its object"].planted():
        assert make_toy(random_state=0).fit(X).fit(X)._n_fits == 2
    with BUGS["a refit is cheaper"].planted():
        model = make_toy(random_state=0)
        first = model.fit(X).privacy_report_.delta
        assert model.fit(X).privacy_report_.delta == first / 2 and model.delta == 1e-6
