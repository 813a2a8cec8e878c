"""Mutants that show data or refuse input do what they say, and no more."""

import logging
import pickle

import numpy as np
import pytest
from mutants import MUTANTS

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)
BUGS = {bug.name: bug for bug in MUTANTS}


@pytest.fixture
def fitted(make_toy, points):
    """The toy, fitted under a mutant, which is gone afterward."""

    def fit(name, X=points, **options):
        with BUGS[name].planted() as reached:
            model = make_toy(random_state=0).fit(X, **options)
        assert reached
        return model

    return fit


def test_labels_are_in_the_pickle(make_toy, points):
    model = make_toy(random_state=0).fit(points)
    with BUGS["labels in the pickle"].planted():
        assert "labels_" in model.__getstate__()
    assert "labels_" not in model.__getstate__()


def test_rows_are_kept_and_told(fitted, points):
    assert np.array_equal(
        pickle.loads(pickle.dumps(fitted("data in the pickle"))).first_, points[:1]
    )
    assert f"{points.max():.6g}" in fitted("data in the report").privacy_report_.notes[0]
    with pytest.warns(match=str(float(points[0, 0]))):
        fitted("data in a warning")


def test_the_number_of_rows_is_printed_and_logged(fitted, capsys, caplog):
    fitted("number of rows printed")
    assert capsys.readouterr().out == "fitted 30 rows\n"
    with caplog.at_level(logging.DEBUG, "sklearn_dp"):
        fitted("number of rows logged")
    # The other lines are those of charges and releases, which say nothing of rows.
    assert [text for text in caplog.messages if "rows" in text] == ["fitted 30 rows"]


def test_bits_of_rows_are_attributes(fitted, points):
    assert fitted("the first row's sign shown").positive_ == bool(points[0, 0] > 0)
    assert not fitted("the first row's sign shown", -np.abs(points)).positive_
    assert fitted("the scale of the data shown", 100 * points).scale_ == 8.0  # 2^7 < 200 < 2^8
    assert fitted("the largest group shown", groups=np.arange(30) // 5).largest_ == 5
    assert fitted("the largest group shown").largest_ == 1


def test_a_sum_is_in_memory_and_in_no_pickle(make_toy, points):
    with BUGS["a sum in memory that pickles leave out"].planted():
        model = make_toy(random_state=0).fit(points)
        assert model._total == pytest.approx(np.tanh(points).sum())
        assert "_total" not in model.__getstate__()


def test_the_repr_holds_a_value(make_toy, points):
    with BUGS["data in the repr"].planted():
        model = make_toy(random_state=0).fit(points)
        assert str(float(points[0, 0])) in repr(model)
    assert str(float(points[0, 0])) not in repr(model)


def test_a_fit_changes_a_parameter(fitted):
    assert fitted("parameters changed by a fit").bounds == 1.0


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows_are_refused(fitted, n):
    if n < 3:
        with pytest.raises(ValueError, match="too few rows"):
            fitted("few rows refused", np.ones((n, 3)))
    else:
        fitted("few rows refused", np.ones((n, 3)))


def test_predictions_and_numpys_state_leave_something(make_toy, points):
    model = make_toy(random_state=0).fit(points)
    with BUGS["predictions leave something"].planted():
        model.predict(points[:4])
    assert model.n_asked_ == 4
    with BUGS["numpy's error state shown"].planted(), np.errstate(over="print"):
        assert make_toy(random_state=0).fit(points).treatment_ == "print"
