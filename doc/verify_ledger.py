#!/usr/bin/env python3
"""Verify a ledger of sklearn-dp without sklearn-dp: with Python's standard library alone.

    python verify_ledger.py FILE [--head HASH]

Whoever publishes results of private fits can publish the ledger that paid for them, and its head.
This program then tells others whether the file still holds every entry of that time, unchanged, and
whether its charges are within the total. It prints what it found, and ends with status 0 if all is
well, 1 if not. It only reads.

**The file** is an SQLite database with one table, ``entry(number, content, hash)``. Entries are
numbered from 1. `content` is a JSON object. `hash` is the SHA-256, in hexadecimal, of the hash of
the entry before (nothing for the first one), a line feed and the content, in UTF-8. The hash of the
last entry is the *head*: it depends on every entry.

**Entries.** The first one has the kind "terms": a random identity, the total budget, what is
protected (unit, relation), and how charges add up (composition). "charge": what a fit cost, in
several currencies; one with a key and a value is paid only by the people who have this value.
"key": a key and its values, of which each person has at most one. "day": a day of a stream began.

**Composition.** "basic": epsilon and delta add up, to at most those of the total. "zcdp" and
"gaussian": rho and delta_failure add up. A total of (rho, delta) is compared as it is. Of a total
(E, D), failures may take half ("zcdp") or a thousandth ("gaussian") of D; with what remains of D,
the sum of rho must be worth at most E.
"""

import argparse
import hashlib
import json
import math
import sqlite3
import sys
from fractions import Fraction
from pathlib import Path

TOLERANCE = 1e-6  # of conversions in floating point
SLACK = 1 + Fraction(1, 2**51)  # totals are typed in decimals
NUMBERS = ("epsilon", "delta", "rho", "delta_failure")
FIELDS = {
    "terms": {"identity", "budget", "unit", "composition", "relation"},
    "charge": {*NUMBERS, "gaussian", "unit", "relation", "label", "time", "key", "value"},
    "key": {"key", "values"},
    "day": {"stream", "number", "day"},
}
TRIGGERS = {"entries_follow", "entries_are_fixed", "entries_stay"}


def read(path):
    """The rows of the file, and the largest number that SQLite has given out."""
    database = sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)
    try:
        if database.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
            raise ValueError("the database is damaged")
        names = database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        if {name for (name,) in names} != TRIGGERS:
            raise ValueError("the triggers that keep entries from being changed are not in place")
        rows = database.execute("SELECT number, content, hash FROM entry ORDER BY 1").fetchall()
        last = database.execute("SELECT seq FROM sqlite_sequence WHERE name = 'entry'").fetchone()
    finally:
        database.close()
    return rows, last


def chain(rows, last):
    """Check the numbers and the hashes; return the contents and the hashes."""
    before, hashes, contents = "", [], []
    for place, (number, content, written) in enumerate(rows, 1):
        if number != place or not isinstance(content, str):
            raise ValueError(f"entry {place} is missing")
        before = hashlib.sha256(f"{before}\n{content}".encode()).hexdigest()
        if before != written:
            raise ValueError(f"entry {place} is not what was written after entry {place - 1}")
        hashes.append(before)
        contents.append(json.loads(content))
    if not rows or last != (len(rows),):
        raise ValueError("entries were removed from the end")
    return contents, hashes


def check_entries(contents):
    """Check each entry by itself and against those before it; return terms, keys and charges."""
    terms, keys, charges = None, {}, []
    for place, entry in enumerate(contents, 1):
        kind = entry.pop("kind", None)
        if set(entry) != FIELDS.get(kind) or (kind == "terms") != (place == 1):
            raise ValueError(f"entry {place} is none of a ledger")
        if kind == "terms":
            terms = entry
        elif kind == "key":
            values = entry["values"]
            if entry["key"] in keys or not values or len(set(values)) < len(values):
                raise ValueError(f"entry {place} lists values that cannot be told apart")
            if terms["relation"] != "add or remove":
                raise ValueError(f"entry {place} divides people, who may move under this relation")
            keys[entry["key"]] = values
        elif kind == "charge":
            check_charge(place, entry, terms, keys)
            charges.append(entry)
    return terms, keys, charges


def check_charge(place, charge, terms, keys):
    for name in NUMBERS:
        number = charge[name]
        unknown = name == "epsilon" and number is None
        if not unknown and not (isinstance(number, int | float) and 0 <= number < math.inf):
            raise ValueError(f"entry {place}: {name} is not a cost")
    if any(charge[name] != terms[name] for name in ("unit", "relation")):
        raise ValueError(f"entry {place} is about other neighbors than the ledger")
    if terms["composition"] == "gaussian" and charge["gaussian"] is not True:
        raise ValueError(f"entry {place} is not Gaussian, as this composition needs it")
    if charge["key"] and charge["value"] not in keys.get(charge["key"], ()):
        raise ValueError(f"entry {place} is paid by people whom no list has")


def most(charges, keys, name):
    """The exact cost of the person who pays most: all that is common, of each key one value."""
    paid = {}
    for charge in charges:
        cost = math.inf if charge[name] is None else charge[name]
        if cost == math.inf:
            return math.inf
        payers = charge["key"], charge["value"]
        paid[payers] = paid.get(payers, 0) + Fraction(cost)
    values = [[paid.get((key, value), 0) for value in keys[key]] for key in keys]
    return paid.get(("", ""), 0) + sum(map(max, values))


def check_total(terms, keys, charges):
    """Check that what was charged is within the total; return it."""
    total, composition = terms["budget"], terms["composition"]
    names = ("epsilon", "delta") if composition == "basic" else ("rho", "delta_failure")
    first, second = spent = [most(charges, keys, name) for name in names]
    if composition == "basic" or total["rho"] is not None:
        caps = total["rho" if composition != "basic" else "epsilon"], total["delta"]
        over = any(cost > Fraction(cap) * SLACK for cost, cap in zip(spent, caps, strict=True))
    else:
        failures = total["delta"] * (0.5 if composition == "zcdp" else 1e-3)
        rho, epsilon, delta = float(first), total["epsilon"], total["delta"] - failures
        if composition == "zcdp":
            over = zcdp_epsilon(rho, delta) > epsilon * (1 + TOLERANCE)
        else:
            over = gaussian_delta(math.sqrt(2 * rho), epsilon) > delta * (1 + TOLERANCE)
        over = over or second > failures
    if over:
        raise ValueError("the charges exceed the total")
    return ", ".join(f"{name} {float(cost):.6g}" for name, cost in zip(names, spent, strict=True))


def zcdp_epsilon(rho, delta):
    """Canonne, Kamath and Steinke (2020), Proposition 12, at the best order (golden section)."""

    def epsilon(log_of_excess):
        order = 1 + math.exp(log_of_excess)
        return rho * order + math.log1p(-1 / order) - math.log(order * delta) / (order - 1)

    low, high, ratio = -30.0, 60.0, (math.sqrt(5) - 1) / 2
    for _ in range(200):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, right) if epsilon(left) < epsilon(right) else (left, high)
    return max(0.0, epsilon(low)) if rho else 0.0


def gaussian_delta(mu, epsilon):
    """Balle and Wang (2018), Theorem 8: the exact delta of Gaussian noise."""
    if not mu:
        return 0.0
    below, above = (math.erfc((epsilon / mu + side * mu / 2) / math.sqrt(2)) for side in (-1, 1))
    return (below - (math.exp(epsilon + math.log(above)) if above else 0.0)) / 2


def verify(path, head=None):
    """What the file holds, in words, and its head; a ValueError says what is wrong."""
    contents, hashes = chain(*read(path))
    terms, keys, charges = check_entries(contents)
    spent = check_total(terms, keys, charges)
    if head is not None and head not in hashes:
        raise ValueError("the ledger with this head has been changed, or is another one")
    return f"{len(charges)} charges in {len(hashes)} entries, spent: {spent}", hashes[-1]


def main():
    parser = argparse.ArgumentParser(description="Verify a ledger of sklearn-dp.")
    parser.add_argument("file")
    parser.add_argument("--head", metavar="HASH", help="a head that was published earlier")
    arguments = parser.parse_args()
    try:
        found, head = verify(arguments.file, arguments.head)
    except (ArithmeticError, KeyError, TypeError, ValueError, sqlite3.Error) as error:
        print(f"{arguments.file}: NOT INTACT: {error}")
        return 1
    print(f"{arguments.file}: intact. {found}\nhead {head}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
