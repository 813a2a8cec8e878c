"""Public schemas from files: three formats, and errors that name the field."""

import copy
import json

import numpy as np
import pytest
from sklearn.base import clone

from sklearn_dp import PublicEncoder, Schema

AGE = {"minimum": 15, "maximum": 95}
FIELDS = [
    {"name": "age", "type": "integer", "constraints": AGE},
    {"name": "work", "type": "string", "constraints": {"enum": ["none", "full"]}},
    {"name": "grade", "type": "string", "categories": [{"value": "a", "label": "A"}, "b"]},
    {"name": "member", "type": "boolean"},
]
COLUMNS = [
    {"name": "age", "titles": {"en": ["Age"]}, "datatype": {"base": "integer", **AGE}},
    {"titles": "Pay", "datatype": {"base": "number", "minInclusive": "0", "maxInclusive": 1e5}},
    {"name": "work", "datatype": {"base": "string", "format": "none|part time"}},
]


@pytest.fixture
def written(tmp_path):
    def write(found):
        text = found if isinstance(found, str) else json.dumps(found)
        (tmp_path / "s.json").write_text(text, encoding="utf-8")
        return tmp_path / "s.json"

    return write


@pytest.mark.parametrize(
    ("found", "schema"),
    [
        ({"age": AGE, "work": ["none", None, 3]}, {"age": (15, 95), "work": ["none", None, 3]}),
        (
            {"fields": FIELDS},
            {
                "age": (15, 95),
                "work": ["none", "full"],
                "grade": ["a", "b"],
                "member": [True, False],
            },
        ),
        ({"resources": [{"schema": {"fields": FIELDS[:1]}}]}, {"age": (15, 95)}),
        (
            {"@context": "http://www.w3.org/ns/csvw", "tableSchema": {"columns": COLUMNS}},
            {"Age": (15, 95), "Pay": (0, 1e5), "work": ["none", "part time"]},
        ),
        ({"tables": [{"tableSchema": {"columns": COLUMNS[:1]}}]}, {"Age": (15, 95)}),
        ({"fields": ["a", "b"]}, {"fields": ["a", "b"]}),
    ],
)
def test_a_schema_is_read_in_each_format(written, found, schema):
    read = Schema.from_file(written(found))
    assert read == schema and list(read) == list(schema) and type(read) is Schema
    assert type(copy.deepcopy(read)) is Schema


def test_an_encoder_takes_it_and_columns_can_be_chosen(written):
    text = {"name": "id", "type": "string"}  # of which nothing public is known
    schema = Schema.from_file(written({"fields": [*FIELDS, text]}), columns=["work", "age"])
    encoder = clone(PublicEncoder(schema)).fit(np.empty((0, 2), dtype=object))
    np.testing.assert_array_equal(
        encoder.transform([["none", 55], ["full", 55]]),
        PublicEncoder([["none", "full"], (15, 95)])
        .fit(np.empty((0, 2), dtype=object))
        .transform([["none", 55], ["full", 55]]),
    )


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ("{", "line 1"),
        ([1], "must be an object"),
        ({}, "schema must have a column"),
        ({"a": 5}, "field 'a' must be a list of categories"),
        ({"a": []}, "column 'a' must be a pair"),
        ({"a": [18, 64]}, "field 'a' has two numbers, which may be a range or two categories"),
        ({"a": ["x", "x"]}, "column 'a': categories must be different"),
        ({"a": {"minimum": 0}}, "field 'a' needs numbers as minimum and maximum"),
        ({"a": {"minimum": 9, "maximum": 1}}, "column 'a': .*must not exceed"),
        ({"a": {"minimum": "2020-01-01", "maximum": "2021-01-01"}}, "field 'a' needs numbers"),
        ({"fields": [{"name": "id", "type": "string"}]}, "field 'id' needs numbers"),
        ({"fields": [{"type": "boolean"}]}, "must have different names"),
        ({"fields": FIELDS[:1] * 2}, "must have different names"),
        ({"tables": [{}, {}]}, "tables must have one table"),
    ],
)
def test_what_is_wrong_is_told_with_the_file_and_the_field(written, found, words):
    path = written(found)
    with pytest.raises(ValueError, match=words) as caught:
        Schema.from_file(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_a_column_that_is_not_there_is_an_error(written):
    with pytest.raises(ValueError, match="there is no field 'pay'"):
        Schema.from_file(written({"age": AGE}), columns=["pay"])
    with pytest.raises(ValueError, match="columns must be a list"):
        Schema.from_file(written({"age": AGE}), columns="age")
