"""``sklearn-dp profile``: from a CSV file to pages."""

import gzip
import json
import re

import numpy as np
import pytest

from sklearn_dp import PrivacyBudget, PrivacyLedger
from sklearn_dp.__main__ import main
from sklearn_dp.segments import _command

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


def test_a_file_without_rows_is_paid_for_and_the_error_says_so(folder, capsys):
    (folder / "data.csv").write_text("age,person,work\n", encoding="utf-8")
    assert run("--ledger", "people.db", "--group", "person") == 1
    shown = capsys.readouterr().err
    assert "data.csv has no row below its header. The fit has been paid for" in shown
    assert PrivacyLedger(path="people.db").remaining["epsilon"] == pytest.approx(5.0)
    assert run("--segments", "0") == 1
    assert "paid" not in capsys.readouterr().err


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


def test_other_ways_to_write_a_table_give_the_same_profile(folder, capsys):
    rng = np.random.default_rng(1)
    rows = [(f"{age:.1f}", f"{pay:.2f}") for age, pay in rng.uniform((18, 0), (90, 9e4), (500, 2))]
    schema = {"age": {"minimum": 0, "maximum": 100}, "pay": {"minimum": 0, "maximum": 90_000}}
    (folder / "two.json").write_text(json.dumps(schema), encoding="utf-8")
    table = "\n".join(["age,pay", *map(",".join, rows)])
    signs = str.maketrans({",": ";", ".": ","})
    grouped = "\n".join(f'{age}\t"{float(pay):,.2f}"' for age, pay in rows)
    ways = [
        ("plain.csv", table, []),
        ("excel.csv", "\ufeff" + table.translate(signs), ["--delimiter", ";", "--decimal", ","]),
        ("tabs.csv", "age\tpay\n" + grouped, ["--delimiter", r"\t", "--thousands", ","]),
        ("zipped.csv.gz", table, []),
    ]
    shown = set()
    for name, text, more in ways:
        opened = gzip.open if name.endswith("gz") else open
        with opened(folder / name, "wt", encoding="utf-8") as file:
            file.write(text)
        seen = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                _command, "profile", lambda X, *_, seen=seen, **__: seen.append(X) or 1 / 0
            )
            with pytest.raises(ZeroDivisionError):
                main(["profile", name, "--schema", "two.json", "--epsilon", "1", *more])
        shown.add(seen[0].to_numpy().tobytes())
    assert len(shown) == 1 and np.frombuffer(shown.pop()).size == 1000
    # A point is no decimal comma: such a number is not known, rather than wrong.
    assert np.isnan(_command._number("1.5", str.maketrans({".": "?", ",": "."})))


def test_heads_that_do_not_match_are_told_without_a_row_of_data(folder, capsys):
    PrivacyLedger(PrivacyBudget(epsilon=20.0, delta=1e-4), "rows.db")
    secret = "83.25"
    for head, words in (
        ("age;work", "separated by ';'"),
        ("age\twork", "separated by '\\t'"),
        ("Age, work", "no column 'age' but 'Age'"),
        ("age,work,age", "more than one column 'age'"),
        (f"{secret},full", "no column 'age': its first line must name the columns"),
        ("", "no column 'age': its first line must name the columns"),
    ):
        (folder / "data.csv").write_text(f"{head}\n{secret},none\n", encoding="utf-8")
        assert run("--ledger", "rows.db") == 1
        error = capsys.readouterr().err
        assert words in error and secret not in error
    assert not PrivacyLedger(path="rows.db").entries
