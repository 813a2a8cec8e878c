"""``sklearn-dp profile``: from a CSV file to pages."""

import json
import re

import numpy as np
import pytest

from sklearn_dp import PrivacyBudget, PrivacyLedger
from sklearn_dp.__main__ import main

SCHEMA = {"age": {"minimum": 0, "maximum": 100}, "work": ["none", "full"]}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Two kinds of persons, with rows that no parser likes, and a ledger."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    old = rng.random(4000) < 0.5
    ages = np.where(old, 70, 30) + rng.normal(size=4000)
    lines = [
        f'{age:.1f},p{i // 2},"{"none" if each else "full"}"'
        for i, (age, each) in enumerate(zip(ages, old, strict=True))
    ]
    odd = ["40", "", ",,,,,,", "x\0,y", '"open, and long' + "z" * 200_000, "nan,q,full,more"]
    text = "\n".join(["age,person,work", *lines, *odd])
    (tmp_path / "data.csv").write_bytes(text.encode() + b"\n\xff\xfe,\xff,\xff\n")
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA), encoding="utf-8")
    PrivacyLedger(PrivacyBudget(epsilon=20.0, delta=1e-4), "people.db", unit="group")
    return tmp_path


def run(*more):
    return main(["profile", "data.csv", "--schema", "schema.json", "--epsilon", "15", *more])


def test_a_file_becomes_a_profile_and_two_pages(folder, capsys):
    options = ["--segments", "2", "--ledger", "people.db", "--group", "person"]
    assert run(*options, "--out", "page.html", "--officer", "privacy.html") == 0
    shown = capsys.readouterr()
    assert "status: ok" in shown.out and "epsilon = 15 of your 20" in shown.out
    means = next(line for line in shown.out.splitlines() if line.startswith("age"))
    assert sorted(round(float(each), -1) for each in re.findall(r"([\d.]+) ±", means)) == [30, 70]
    assert shown.err == "" and "Segment 2" in (folder / "page.html").read_text("utf-8")
    page = (folder / "privacy.html").read_text("utf-8")
    assert "DPProfile" in page and "people.db" in page
    assert run(*options) == 1
    assert "only 5 of 20 is left" in capsys.readouterr().err


def test_mistakes_are_found_before_the_charge(folder, capsys):
    for more, words in (
        (["--ledger", "other.db"], "does not exist"),
        (["--ledger", "people.db", "--out", "nowhere/page.html"], "No such file or directory"),
        (["--ledger", "people.db", "--out", "."], "s a directory"),
        (["--ledger", "people.db", "--out", "a.html", "--officer", "a.html"], "not replace"),
        (["--ledger", "people.db", "--out", "data.csv"], "not replace"),
        (["--ledger", "people.db", "--officer", "schema.html"], "not replace"),
        (["--ledger", "people.db", "--columns", "pay"], "there is no field 'pay'"),
        (["--ledger", "people.db", "--group", "name"], "no column 'name'"),
        (["--ledger", "people.db", "--delimiter", ";"], "--delimiter"),
        (["--ledger", "people.db", "--segments", "0"], "n_segments"),
    ):
        assert run(*more) == 1
        assert words in capsys.readouterr().err
    assert not PrivacyLedger(path="people.db").entries
