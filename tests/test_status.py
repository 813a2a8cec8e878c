"""What a fit says of its answer: three words for programs, and messages."""

import copy
import json
import pickle
import re
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import get_args

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import Pipeline

from sklearn_dp import DPBySegment, DPKMeans, FriendlyMean, privacy_report
from sklearn_dp._status import Code, Message, Status
from sklearn_dp.exceptions import UtilityWarning
from sklearn_dp.model_selection import DPGridSearch

RNG = np.random.default_rng(0)
ROWS = np.repeat([[0.0, 0.0], [8.0, 8.0]], 4000, axis=0) + RNG.normal(size=(8000, 2))
NOTE, CAUTION, PART, ALL = (
    Message(severity, f"a {severity}", severity=severity)
    for severity in ("note", "caution", "part", "all")
)


@pytest.mark.parametrize(
    ("messages", "kept", "word", "trustworthy"),
    [
        ([], [], "ok", True),
        ([NOTE], [NOTE], "ok", True),
        ([NOTE, CAUTION], [CAUTION, NOTE], "caution", True),
        ([NOTE, CAUTION, PART], [PART, CAUTION, NOTE], "caution", False),
        ([NOTE, CAUTION, PART, ALL], [ALL, PART], "unusable", False),
        ([CAUTION, CAUTION], [CAUTION], "caution", True),
    ],
)
def test_a_status_is_as_bad_as_its_worst_message(messages, kept, word, trustworthy):
    status = Status().add(*messages)
    assert status == tuple(kept) and (status.word, status.trustworthy) == (word, trustworthy)
    for copied in (pickle.loads(pickle.dumps(status)), copy.deepcopy(status)):
        assert copied == status and type(copied) is Status


def test_a_part_that_is_of_no_use_leaves_the_rest():
    (message,) = Status([ALL]).of_part("north")
    assert message.text == "north: a all" and Status([message]).word == "caution"


def fitted(model, rows=ROWS, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(rows, **options)
    return model, [str(each.message) for each in caught if each.category is UtilityWarning]


def test_every_code_is_used_and_explained():
    root = Path(__file__).resolve().parents[1]
    page = (root / "doc" / "messages.md").read_text(encoding="utf-8")
    codes = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    assert sorted(codes) == sorted(get_args(Code))
    files = [path for path in root.glob("sklearn_dp/**/*.py") if path.name != "_status.py"]
    text = "".join(path.read_text(encoding="utf-8") for path in files)
    assert [code for code in codes if f'"{code}"' not in text] == []


def test_perfect_blobs_are_ok_and_the_bounds_are_a_note():
    model, told = fitted(DPKMeans(2, random_state=0))
    (note,) = model.messages_
    assert model.status_ == "ok" and model.trustworthy_ and not told
    assert (note.code, note.severity, note.action) == (
        *("outside_bound", "note"),
        "pass bounds= to avoid this",
    )


def test_hidden_columns_are_named_and_told_by_a_warning():
    centers = np.array([[25, 2e4, 20], [40, 5e4, 40], [50, 9e4, 45], [70, 3e4, 5]])
    rows = centers[RNG.integers(4, size=10_000)] + RNG.normal(size=(10_000, 3)) * [5, 6e3, 4]
    frame = pd.DataFrame(rows, columns=["age", "pay", "hours"])
    bounds = ([0.0, 0, 0], [100.0, 2e5, 4e4])
    model, told = fitted(DPKMeans(4, bounds=bounds, random_state=0), frame)
    first = model.messages_[0]
    assert (first.code, first.columns, first.severity) == ("mostly_noise", ("hours",), "part")
    assert model.status_ == "caution" and not model.trustworthy_
    assert told == [f"DPKMeans: {model.messages_}"]
    shown = json.loads(json.dumps([asdict(each) for each in model.messages_]))
    assert shown[0]["columns"] == ["hours"] and set(shown[0]) == {*asdict(first)}


def test_noise_is_unusable_and_what_to_do_is_no_part_of_the_text():
    model, told = fitted(DPKMeans(20, epsilon=0.01, bounds=20, random_state=0), ROWS[:100])
    (message,) = model.messages_
    assert model.status_ == "unusable" and "use " not in message.text
    assert message.action.startswith("use ") and told == [f"DPKMeans: {message}"]
    assert str(message) == f"{message.text}; {message.action}"


def test_searches_segments_pipelines_and_reports_carry_messages():
    bad = DPKMeans(bounds=20)
    search, told = fitted(
        DPGridSearch(bad, {"n_clusters": [20]}, epsilon=0.01, random_state=0), ROWS[:50]
    )
    assert search.status_ == "unusable" and told == [f"DPGridSearch: {search.messages_}"]
    assert pickle.loads(pickle.dumps(search)).messages_ == search.messages_
    by = np.where(np.arange(len(ROWS)) < 40, "few", "many")
    model = DPBySegment(FriendlyMean(bounds=(-10, 20)), values=["few", "many"], random_state=0)
    model, _ = fitted(model.set_params(epsilon=0.3), by=by)
    assert model.status_ == "caution" and model.segment_status_.tolist() == ["noise", "ok"]
    assert [each.code for each in model.messages_][0] == "bad_segments"
    pipeline = Pipeline([("means", DPKMeans(2, random_state=0))]).fit(ROWS)
    words = privacy_report(pipeline).subject["Status of 'means'"]
    assert words == f"ok; {pipeline[-1].messages_}"
