"""The independent verifier of doc/: it finds tampered ledgers, and only those.

It is run from a file in an interpreter that cannot import this package, and, for thousands of
files, in this process. `sklearn-dp ledger verify` is asked about the same files.
"""

import hashlib
import importlib.util
import json
import random
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path

import pytest
from ledger_tools import admitted

from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.ledger_terms import LedgerCharge
from sklearn_dp._privacy._ledger import PrivacyLedger
from sklearn_dp.ledger import main

SCRIPT = Path(__file__).resolve().parents[1] / "doc" / "verify_ledger.py"


@pytest.fixture(scope="module")
def verifier():
    spec = importlib.util.spec_from_file_location("verify_ledger", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def problem(verifier, path, head=None):
    """What the verifier says of a file, or None; an error of any other kind is one of the test."""
    try:
        verifier.verify(str(path), head)
    except (ArithmeticError, KeyError, TypeError, ValueError, sqlite3.Error) as error:
        return str(error)
    return None


# -- honest ledgers --------------------------------------------------------------------------------

TERMS = [
    {"budget": PrivacyBudget(1.0, 1e-5)},
    {"budget": PrivacyBudget(1.0, 1e-5), "composition": "zcdp"},
    {"budget": PrivacyBudget(0.1, 1e-9), "composition": "gaussian"},
    {"budget": PrivacyBudget(8.0, 0.0), "unit": "group", "relation": "replace"},
    {"budget": PrivacyBudget(rho=0.5, delta=1e-6)},
    {"budget": PrivacyBudget(40.0, 1e-3), "composition": "zcdp", "unit": "group"},
    {"budget": PrivacyBudget(1e-3, 1e-12), "composition": "gaussian"},
]


def grown(folder, number):
    """A ledger that is charged until little is left: a copy after each entry, and all heads."""
    rng, terms = random.Random(number), TERMS[number % len(TERMS)]
    path = folder / f"{number}.sqlite"
    ledger = PrivacyLedger(path=path, **terms)
    state, payers = ledger.state().terms, [ledger]
    copies, parts = [], rng.choice([1, 3, 10])
    for step in range(12):
        if step == 3 and state.relation == "add or remove":
            region = ledger.disjoint("region", ["north", "south", "\u00e9"])
            payers += [region[value] for value in region]
        elif step == 6:
            ledger._begin(ledger.state().head, 3, "2026-03-01")
        else:
            costs = [cap / parts * rng.choice([1.0, 0.999, 0.5, 0.1]) for cap in state.caps]
            rho, failure = costs if state.composition != "basic" else (1e-3, 0.0)
            epsilon, delta = costs if state.composition == "basic" else (float("inf"), 0.0)
            admitted(
                rng.choice(payers),
                LedgerCharge(
                    epsilon, delta, rho=rho, delta_failure=failure, gaussian=True,
                    unit=state.unit, relation=state.relation, label=rng.choice(["A", "\u00fc", ""]),
                ),
            )  # fmt: skip
        if not copies or len(ledger.state().heads) > len(copies[-1][1]):
            copy = folder / f"{number}-{step}.sqlite"
            shutil.copyfile(path, copy)
            copies.append((copy, ledger.state().heads))
    return copies


@pytest.fixture(scope="module")
def ledgers(tmp_path_factory):
    """All states of some ledgers, oldest first: path and heads."""
    folder = tmp_path_factory.mktemp("ledgers")
    return [grown(folder, number) for number in range(12)]


def test_hundreds_of_honest_ledgers_are_intact(verifier, ledgers):
    """Each state, with each head that had been published by then."""
    asked = [(path, head) for states in ledgers for path, heads in states for head in heads]
    assert len(asked) > 300
    assert [problem(verifier, *each) for each in asked] == [None] * len(asked)
    for states in ledgers:
        path, heads = states[-1]
        assert main(["verify", str(path), "--head", heads[0]]) == 0
        assert verifier.verify(str(path))[1] == heads[-1]


# -- tampered ledgers ------------------------------------------------------------------------------


def rows_of(path):
    with closing(sqlite3.connect(path)) as db:
        return db.execute("SELECT number, content, hash FROM entry ORDER BY number").fetchall()


def written(path, rows, sequence=True):
    """Put these rows in the place of all others, past the triggers, and leave no other trace."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA synchronous = OFF")
        db.execute("PRAGMA journal_mode = MEMORY")
        triggers = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        triggers = triggers.fetchall()
        for name, _ in triggers:
            db.execute(f"DROP TRIGGER {name}")
        db.execute("DELETE FROM entry")
        db.executemany("INSERT INTO entry VALUES (?, ?, ?)", rows)
        if sequence:
            db.execute("UPDATE sqlite_sequence SET seq = ?", [len(rows)])
        for _, sql in triggers:
            db.execute(sql)
        db.commit()


def numbered(contents, hashes):
    return [(place, *row) for place, row in enumerate(zip(contents, hashes, strict=True), 1)]


def chained(contents):
    """Hashes of a chain that is whole: only a published head can tell."""
    hashes, before = [], ""
    for content in contents:
        before = hashlib.sha256(f"{before}\n{content}".encode()).hexdigest()
        hashes.append(before)
    return hashes


def edited(content, rng):
    """Another value in the place of one that decides about something, or that is shown."""
    entry = json.loads(content)
    changes = {
        "charge": {"epsilon": 0.0, "delta": 0.0, "rho": 0.0, "delta_failure": 0.0, "key": "region",
                   "value": "south", "label": "other", "time": "2020-01-01", "gaussian": False,
                   "unit": "client", "relation": "replace the rows of"},
        "key": {"key": "other", "values": ["north", "south", "\u00e9", "west"]},
        "day": {"stream": "other", "number": 2, "day": "2026-03-02"},
        "terms": {"identity": "0" * 32, "unit": "client", "composition": "other",
                  "relation": "replace the rows of",
                  "budget": {"epsilon": 99.0, "delta": 0.1, "rho": None}},
    }  # fmt: skip
    name, value = rng.choice(
        [each for each in changes[entry["kind"]].items() if entry[each[0]] != each[1]]
    )
    return json.dumps({**entry, name: value})


def edit(contents, rng):
    place = rng.randrange(len(contents))
    return [*contents[:place], edited(contents[place], rng), *contents[place + 1 :]]


def change_the_terms(contents, rng):
    return [edited(contents[0], rng), *contents[1:]]


def delete(contents, rng):
    place = rng.randrange(1, len(contents))
    return contents[:place] + contents[place + 1 :]


def cut(contents, rng):
    return contents[: rng.randrange(1, len(contents))]


def insert(contents, rng):
    place = rng.randrange(1, len(contents))
    return [*contents[:place], contents[rng.randrange(1, len(contents))], *contents[place:]]


def reorder(contents, rng):
    first, second = sorted(rng.sample(range(1, len(contents)), 2))
    swapped = list(contents)
    swapped[first], swapped[second] = swapped[second], swapped[first]
    return swapped


def replace(contents, rng):
    place, by = rng.sample(range(1, len(contents)), 2)
    return [*contents[:place], contents[by], *contents[place + 1 :]]


def swap_ledgers(contents, rng):
    """A new ledger with the same charges: only the random identity differs."""
    terms = json.loads(contents[0])
    return [json.dumps({**terms, "identity": f"{rng.getrandbits(128):032x}"}), *contents[1:]]


WAYS = [edit, change_the_terms, delete, cut, insert, reorder, replace, swap_ledgers]
HASHES = ["kept", "of the changed rows", "of a whole new chain"]


def tampered(path, way, hashes, rng):
    """Change a ledger in one way; returns whether it can be told without a published head."""
    rows = rows_of(path)
    before = [content for _, content, _ in rows]
    # What only adds to the end of a ledger is no change of it: an equal entry beside the last ones.
    while (after := way(before, rng))[: len(before)] == before:
        pass
    told = True
    if hashes == "of a whole new chain":
        new, told = chained(after), False
    else:
        new = dict(zip(before, [each for *_, each in rows], strict=True))
        if hashes == "kept":  # each content has its own, and a new one that of its place
            by_place = [each for *_, each in rows] + [rows[-1][2]]
            new = [new.get(content, by_place[place]) for place, content in enumerate(after)]
        else:
            new = [
                new.get(content, whole)
                for content, whole in zip(after, chained(after), strict=True)
            ]
        told = new != chained(after)
    written(path, numbered(after, new))
    return told


def test_hundreds_of_tampered_ledgers_are_found(verifier, ledgers, tmp_path):
    """With the last head that had been published; and without one wherever the chain is broken."""
    rng, found, path = random.Random(0), Counter(), tmp_path / "tampered.sqlite"
    states = [each for several in ledgers for each in several if len(each[1]) > 3]
    for number in range(400):
        way, hashes = WAYS[number % len(WAYS)], HASHES[number // len(WAYS) % len(HASHES)]
        source, heads = rng.choice(states)
        shutil.copyfile(source, path)
        told = tampered(path, way, hashes, rng)
        assert problem(verifier, path, heads[-1]) is not None, (way, hashes, source)
        if told:
            assert problem(verifier, path) is not None, (way, hashes, source)
        if number % 10 < 2:
            assert main(["verify", str(path), "--head", heads[-1]]) == 1
            assert not told or main(["verify", str(path)]) == 1
        found[way.__name__, hashes, told] += 1
    assert sum(found.values()) == 400 and {way for way, *_ in found} == {w.__name__ for w in WAYS}
    assert sum(number for (*_, told), number in found.items() if told) > 160


def test_hundreds_of_ledgers_that_were_set_back_are_found(verifier, ledgers):
    """An old copy of the file is intact by itself, and older than what was published."""
    asked = 0
    for states in ledgers:
        for number, (path, heads) in enumerate(states):
            for _, later in states[number + 1 :]:
                assert problem(verifier, path, later[-1]) is not None
                assert problem(verifier, path, heads[-1]) is None
                asked += 1
    assert asked > 200


@pytest.mark.parametrize(
    "statement",
    ["DELETE FROM entry WHERE number = (SELECT max(number) FROM entry)",
     "REPLACE INTO entry SELECT number, replace(content, '\"key\": \"\"', '\"key\": \"a\"'), hash "
     "FROM entry",
     "INSERT INTO entry SELECT number + 1, content, hash FROM entry ORDER BY number DESC LIMIT 1",
     "UPDATE entry SET number = -number WHERE number = 2", "DELETE FROM sqlite_sequence",
     "UPDATE sqlite_sequence SET seq = seq + 1", "DROP TRIGGER entries_stay", "DROP TABLE entry",
     "UPDATE entry SET content = CAST(content AS BLOB)",
     "UPDATE entry SET hash = upper(hash) WHERE number = 2", "PRAGMA user_version = 4"],
)  # fmt: skip
def test_statements_past_the_triggers_are_found(verifier, ledgers, statement, tmp_path):
    path, heads = ledgers[0][-1]
    shutil.copyfile(path, tmp_path / "a")
    with closing(sqlite3.connect(tmp_path / "a")) as db:
        names = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in names if "entry" in statement else []:
            db.execute(f"DROP TRIGGER {name}")
        db.execute(statement)
        for _, sql in names:
            with suppress(sqlite3.OperationalError):
                db.execute(sql)
        if statement.startswith("DROP TRIGGER"):
            db.execute(statement)
        db.commit()
    found = problem(verifier, tmp_path / "a", heads[0])
    assert (found is None) == (statement == "PRAGMA user_version = 4")  # what it was


@pytest.mark.parametrize(
    ("budget", "options", "charge", "times"),
    [(PrivacyBudget(1.0, 1e-5), {}, {"epsilon": 0.25, "delta": 0.0}, 5),
     (PrivacyBudget(1.0, 1e-5), {}, {"epsilon": 0.1, "delta": 3e-6}, 4),
     (PrivacyBudget(1.0, 1e-5), {}, {"epsilon": None, "delta": 0.0, "rho": 1e-9}, 1),
     (PrivacyBudget(1.0, 1e-5), {"composition": "zcdp"}, {"rho": 0.0142}, 2),
     (PrivacyBudget(1.0, 1e-5), {"composition": "gaussian"}, {"rho": 0.018, "gaussian": True}, 2),
     (PrivacyBudget(1.0, 1e-5), {"composition": "gaussian"}, {"rho": 1e-9, "gaussian": False}, 1),
     (PrivacyBudget(rho=0.5, delta=1e-6), {}, {"rho": 0.26}, 2),
     (PrivacyBudget(rho=0.5, delta=1e-6), {}, {"rho": 0.1, "delta_failure": 6e-7}, 2),
     (PrivacyBudget(1.0, 1e-5), {}, {"epsilon": 0.1, "delta": 0.0, "unit": "group"}, 1),
     (PrivacyBudget(1.0, 1e-5), {}, {"epsilon": 0.1, "delta": 0.0, "key": "k", "value": "v"}, 1),
     (PrivacyBudget(1.0, 1e-5), {}, {"epsilon": -0.1, "delta": 0.0}, 1),
     (PrivacyBudget(1.0, 1e-5), {}, {"epsilon": 0.1, "delta": 0.0, "gift": 1}, 1)],
)  # fmt: skip
def test_charges_that_no_ledger_admits_are_found(
    verifier, budget, options, charge, times, tmp_path
):
    """In a chain that is whole: the last one of them is too much, or none may be there."""
    ledger = PrivacyLedger(budget, tmp_path / "a", **options)
    usual = vars(LedgerCharge(float("inf"), 0.0, rho=0.0)) | {"epsilon": None}
    content = json.dumps({"kind": "charge", **usual, **charge})
    first = rows_of(tmp_path / "a")[0][1]
    for number in range(1, times + 1):
        contents = [first, *[content] * number]
        written(tmp_path / "a", numbered(contents, chained(contents)))
        found = problem(verifier, tmp_path / "a")
        assert (found is not None) == (number == times), found
        assert main(["verify", ledger.path]) == (number == times)


def test_it_runs_without_the_package(ledgers, tmp_path):
    path, heads = ledgers[0][-1]
    shutil.copyfile(path, tmp_path / "a b?#%.sqlite")
    for head, status in ((heads[0], 0), (heads[-1], 0), ("0" * 64, 1)):
        command = [sys.executable, "-I", "-S", SCRIPT, tmp_path / "a b?#%.sqlite", "--head", head]
        run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert (run.returncode, run.stderr) == (status, "")
        assert ("intact" in run.stdout, heads[-1] in run.stdout) == (not status, not status)
    command = [sys.executable, "-I", "-S", SCRIPT, tmp_path / "none"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert run.returncode == 1 and "NOT INTACT" in run.stdout and run.stderr == ""
