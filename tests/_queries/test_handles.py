"""Handles: what they refuse, and that there is no way through them to a row."""

import copy
import pickle

import numpy as np
import pytest
from grid_tools import grid_rows, quantized, table_rows

from sklearn_dp._privacy._units import Claim, Sealed, UnitFacts
from sklearn_dp._queries._query import IntegerPoints, Public, Query, Step
from sklearn_dp._queries.clusters import ClusterSums, Nearest, Pinned
from sklearn_dp._queries.grids import Recentered
from sklearn_dp._queries.places import LengthCounts, SumAndTotals
from sklearn_dp._queries.samples import numbered

X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(40, 2))
SEALED = Sealed(np.arange(3), Claim(1.0), UnitFacts(), "Something")
EDGES = np.array([0.0, 1e3, 1e6])


@pytest.mark.parametrize(
    "value", [SEALED, lambda rows: rows, np.array([{}, 1.0]), [1.0, SEALED], {"a": 1}, object()]
)
def test_parameters_are_public_numbers(value):
    with pytest.raises(TypeError, match=r"LengthCounts\.edges must be public numbers"):
        LengthCounts(value)


def test_a_question_is_about_the_numbers_that_it_was_made_of():
    edges = EDGES.copy()
    query = LengthCounts(edges)
    edges[1] = 5.0
    assert query.edges[1] == 1e3
    with pytest.raises(ValueError, match="read-only"):
        query.edges[1] = 5.0
    with pytest.raises(AttributeError):
        query.edges = edges


@pytest.mark.parametrize("rows", [table_rows(X), quantized(X, 1.0)], ids=["table", "grid"])
def test_no_name_of_a_handle_leads_to_rows(rows):
    public = {name: getattr(rows, name) for name in dir(rows) if not name.startswith("_")}
    for name in ("sums", "rows", "update", "engine", "exchange", "shuffle", "reduce"):
        assert name not in public
    values = [value for value in public.values() if not callable(value)]
    assert not any(np.size(value) >= len(X) for value in values)
    with pytest.raises(TypeError, match="only a question"):
        rows.ask(lambda part: (part, (part.units.n_rows,)))
    for wrong in (lambda part: part, SumAndTotals()):
        with pytest.raises(TypeError, match="only a step"):
            rows.apply(wrong)


@pytest.mark.parametrize("rows", [table_rows(X), quantized(X, 1.0)], ids=["table", "grid"])
@pytest.mark.parametrize("made", [pickle.dumps, copy.deepcopy])
def test_a_handle_is_neither_copied_nor_written(rows, made):
    with pytest.raises(TypeError, match="cannot be copied or pickled"):
        made(rows)


def test_what_is_hidden_is_neither_shown_nor_compared():
    one, other = numbered(table_rows(X)), numbered(table_rows(X))
    assert one != other and repr(one) == "UnitNumbers"


def test_a_handle_of_rows_that_have_been_moved_answers_nothing():
    """Its claim would be about shorter rows than there are."""
    rows = quantized(X, 1.0)
    other = quantized(X, 1.0)
    rows.table.apply(Recentered(np.array([500.0, 0.0])))  # behind the back of `rows`
    with pytest.raises(TypeError, match="moved since"):
        rows.ask(SumAndTotals())
    projected = other.project(np.array([[2.0**20], [0.0]]))
    with pytest.raises(TypeError, match="moved since"):
        other.ask(SumAndTotals())
    projected.unproject()
    assert isinstance(other.ask(SumAndTotals()), Sealed)


def test_residuals_are_clipped_by_distances_of_the_same_rows():
    rows = grid_rows(np.trunc(X * 1e6), 1e6)
    near = Nearest(np.zeros((1, 2)), np.ones(1), EDGES)
    rows.ask(near)
    rows.recenter(np.array([1e5, 0.0]))
    with pytest.raises(TypeError, match="since their distances were found"):
        rows.ask(ClusterSums(np.ones(1), None))
    rows.apply(Pinned(np.zeros((2, 2))))
    with pytest.raises(TypeError, match="another number of centers"):
        rows.ask(near)


@pytest.mark.parametrize("points", [np.full((1, 2), 0.5), np.full((1, 2), 2.0**25)])
def test_points_that_rows_are_compared_with_are_integers_within_reach(points):
    with pytest.raises(ValueError, match="points must be integers"):
        Nearest(points, np.ones(1), EDGES)
    with pytest.raises(ValueError, match="points must be integers"):
        Nearest(np.array([[np.nan, 0.0]]), np.ones(1), EDGES)


@pytest.mark.parametrize("annotation", ["IntegerPoints", IntegerPoints | None])
def test_points_of_a_type_that_nobody_checks_are_refused(annotation):
    """A text, as all types are with annotations from the future, or a union."""
    with pytest.raises(TypeError, match="must be plain"):
        type("Far", (Public,), {"__annotations__": {"center": annotation}})


def test_a_question_without_a_claim_or_a_pass_has_no_answer():
    class Half(Query):
        pass

    class Nothing(Step):
        pass

    rows = table_rows(X)
    with pytest.raises(NotImplementedError):
        rows.ask(Half())
    rows.apply(Nothing())
    with pytest.raises(NotImplementedError):
        rows.ask(LengthCounts(EDGES))
