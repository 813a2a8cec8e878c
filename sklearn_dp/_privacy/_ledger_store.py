"""Where a ledger is kept: in the memory of one process, or in an SQLite file that many share.

A *book* holds the terms of a ledger, the list of its charges and the keys whose values divide the
units. It can `read` all of them at one moment, `append` a charge if the terms admit it,
`list_values` of a key, once, and, on paper only, `create` itself. Nothing takes a charge back, or
changes the values of a key.

What could go wrong with a file, and what is done about it:

* Two fits read the same sum and both fit in: the write lock is taken before the sum is read, and
  held until the charge is in the file (``BEGIN IMMEDIATE``).
* A crash, or a power cut, in the middle: SQLite's journal takes half a charge back. A charge that
  has been reported as made is on the disk (``synchronous = EXTRA``); a fit begins only then. The
  other way round, a charge whose fit never began stays.
* Somebody updates or deletes a charge: triggers in the database refuse it. A person who writes the
  file with other tools, or copies it, is not kept from it.
* The journal is not found, because the file goes by two names or lies on a mount of its own:
  refused before anything is read.
* A fork, a thread, a pickle: nothing is kept open between operations.

Why SQLite: it comes with Python, works on one file, and its recovery from crashes is better tested
than any we could write. It needs working locks; on network drives without them nothing is safe.
"""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from ..exceptions import LedgerError
from ._budget import PrivacyBudget
from ._disjoint import EVERYONE, agreed_values, payers_in_words
from ._ledger_terms import FIELDS, UNTOLD, LedgerCharge, LedgerState, LedgerTerms
from ._neighbors import check_relation
from ._process import process_mark

__all__ = ["FileBook", "MemoryBook"]

_LOCK_SECONDS = 120.0  # patience with other processes; each holds the lock for milliseconds
_APPLICATION_ID = 0x44504C47  # "DPLG"
_VERSION = 3

_KEYS = (
    "CREATE TABLE disjoint (key TEXT PRIMARY KEY NOT NULL, listed TEXT NOT NULL)",
    """CREATE TRIGGER values_are_fixed BEFORE UPDATE ON disjoint
        BEGIN SELECT RAISE(ABORT, 'the values of a key are fixed'); END""",
    """CREATE TRIGGER keys_stay BEFORE DELETE ON disjoint
        BEGIN SELECT RAISE(ABORT, 'a key is never removed'); END""",
    f"PRAGMA user_version = {_VERSION}",
)

# The triggers make a refund an error of the database itself, whoever asks for it.
_SCHEMA = (
    """CREATE TABLE terms (id INTEGER PRIMARY KEY CHECK (id = 1), epsilon REAL, delta REAL NOT NULL,
        rho REAL, unit TEXT NOT NULL, composition TEXT NOT NULL, relation TEXT NOT NULL)""",
    """CREATE TABLE charge (id INTEGER PRIMARY KEY AUTOINCREMENT,
        epsilon REAL NOT NULL CHECK (epsilon >= 0), delta REAL NOT NULL CHECK (delta >= 0),
        rho REAL NOT NULL CHECK (rho >= 0), delta_failure REAL NOT NULL CHECK (delta_failure >= 0),
        gaussian INTEGER NOT NULL, unit TEXT NOT NULL, label TEXT NOT NULL, time TEXT NOT NULL,
        relation TEXT NOT NULL, key TEXT NOT NULL DEFAULT '', value TEXT NOT NULL DEFAULT '')""",
    """CREATE TRIGGER terms_are_fixed BEFORE UPDATE ON terms
        BEGIN SELECT RAISE(ABORT, 'the terms of a ledger are fixed'); END""",
    """CREATE TRIGGER no_refund BEFORE DELETE ON charge
        BEGIN SELECT RAISE(ABORT, 'a charge is never refunded'); END""",
    """CREATE TRIGGER no_rebate BEFORE UPDATE ON charge
        BEGIN SELECT RAISE(ABORT, 'a charge is never changed'); END""",
    f"PRAGMA application_id = {_APPLICATION_ID}",
    *_KEYS,
)
_TERMS = ("epsilon", "delta", "rho", "unit", "composition", "relation")

# Format 1 knew no relation: its charges were documented as "add or remove", which two of the
# package's own were not always. Their records do not tell which it was.
# Format 2 knew no keys.
_FIRST_VERSION = 1
_SINCE = {"relation": 2, "key": 3, "value": 3}
_ASSUMED = "add or remove"
_AMBIGUOUS = ("FederatedDPKMeans", "aggregate_k_tuples")


class MemoryBook:
    """Charges of one process, in a list; gone with the process."""

    path = None

    def __init__(self, terms: LedgerTerms) -> None:
        self._terms = terms
        self._charges: list[LedgerCharge] = []
        self._keys: dict[str, tuple[str, ...]] = {}
        self._lock = threading.Lock()
        self._process = process_mark()

    def _check_process(self) -> None:
        """Refuse to go on in a forked child."""
        # A forked child has a copy of this list: what it charged would be lost to its parent.
        if process_mark() != self._process:
            raise LedgerError(
                "ledger is kept in the memory of another process; "
                "give `ledger` the path of a ledger file to share it between processes"
            )

    def read(self) -> LedgerState:
        """What the ledger holds now, in this process."""
        self._check_process()
        with self._lock:
            return LedgerState(self._terms, tuple(self._charges), dict(self._keys))

    def list_values(self, key: str, values: Iterable[str] | None) -> tuple[str, ...]:
        """The values of a key, which are listed now if it is new."""
        self._check_process()
        with self._lock:
            agreed = agreed_values(self._keys, key, values, self._terms.relation)
            return self._keys.setdefault(str(key), agreed)

    def append(self, charge: LedgerCharge) -> None:
        """Admit and record a charge; two threads are admitted one after the other."""
        self._check_process()
        with self._lock:
            _check_listed(charge, self._keys)
            self._terms.admit(charge, map(self._terms.line, self._charges))
            self._charges.append(charge)


class FileBook:
    """Charges in an SQLite file that any number of processes share; it need not exist yet.

    Each operation opens and closes its own connection, so nothing is carried through a fork or
    into another thread, and no other handle of the file is ever opened in this process: closing
    one would drop the locks of all (POSIX). The path is made absolute: a process that changes its
    folder later still means the same ledger.

    A file of an older format is read as it is, and converted by the first charge or key, in the
    transaction of that: whatever stops it leaves a whole file of the old format. Code of that
    format may work with the file meanwhile. It reads the format inside each of its transactions, so
    it charges before the conversion, which then sees the charge, or refuses the file after it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        name = os.fspath(path) if isinstance(path, os.PathLike) else path
        if not isinstance(name, str):
            kind = f"{type(name).__name__}; epsilon and delta: budget=PrivacyBudget(epsilon, delta)"
            raise TypeError(f"path of a ledger must be a text or a path, got {kind}")
        self.path = Path(name).absolute()

    def create(self, terms: LedgerTerms) -> None:
        """Make the file, readable and writable by its owner only; never replaces one.

        A process that dies between the two steps leaves an empty file, which is no ledger and is
        refused as that: it is never taken for one with nothing spent.
        """
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except (OSError, ValueError) as error:
            there = isinstance(error, FileExistsError)
            why = "there is a file of that name, which is never replaced" if there else error
            raise LedgerError(f"ledger {str(self.path)!r} cannot be created: {why}") from error
        budget = terms.budget
        row = (budget.epsilon, budget.delta, budget.rho, terms.unit, terms.composition,
               terms.relation)  # fmt: skip
        with self._connection() as db:
            db.execute("BEGIN IMMEDIATE")
            for statement in _SCHEMA:
                db.execute(statement)
            db.execute(f"INSERT INTO terms (id, {', '.join(_TERMS)}) "
                       "VALUES (1, ?, ?, ?, ?, ?, ?)", row)  # fmt: skip
            db.execute("COMMIT")

    def read(self) -> LedgerState:
        """What the ledger holds now: terms and charges of one moment, in one transaction."""
        with self._connection() as db:
            db.execute("BEGIN")
            return self._state(db)

    def list_values(self, key: str, values: Iterable[str] | None) -> tuple[str, ...]:
        """The values of a key, which are listed now, for good, if it is new."""
        state = self.read()
        agreed = agreed_values(state.keys, key, values, state.terms.relation)
        if key in state.keys:
            return agreed
        with self._connection() as db:
            db.execute("BEGIN IMMEDIATE")
            keys = self._keys(db)  # it may be there by now
            agreed = agreed_values(keys, key, agreed, state.terms.relation)
            if key not in keys:
                self._convert_untold(db)
                db.execute("INSERT INTO disjoint VALUES (?, ?)", (str(key), json.dumps(agreed)))
                db.execute("COMMIT")
        return agreed

    def append(self, charge: LedgerCharge) -> None:
        """Admit and record a charge; when this returns, it is on the disk.

        One transaction holds the write lock from before the sum is read until the charge is in the
        file. Whatever stops it before COMMIT is done, SQLite's journal takes it back. After a
        BudgetExceededError nothing was spent. A LedgerError for a charge of another unit or
        relation, and when the file cannot be used: also when another process has kept the lock for
        two minutes.
        """
        marks = ", ".join("?" * len(FIELDS))
        insert = f"INSERT INTO charge ({', '.join(FIELDS)}) VALUES ({marks})"
        with self._connection() as db:
            db.execute("BEGIN IMMEDIATE")
            terms = self._terms(db)
            self._convert_untold(db)
            _check_listed(charge, self._keys(db))
            costs = ", ".join(terms.columns)
            terms.admit(charge, db.execute(f"SELECT key, value, {costs} FROM charge"))
            db.execute(insert, [getattr(charge, name) for name in FIELDS])
            db.execute("COMMIT")

    def convert(self, relation: str) -> None:
        """Write down the relation of a file of format 1, as its owner tells it.

        It is that of all charges, past and future; one that contradicts a record is refused.
        """
        check_relation(relation)
        with self._connection() as db:
            db.execute("BEGIN IMMEDIATE")
            if self._version(db) != _FIRST_VERSION:
                raise LedgerError(f"ledger {str(self.path)!r} already records its relation")
            self._check_word(self._charges(db), relation)
            self._convert(db, relation)
            db.execute("COMMIT")

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """Open the file (never make one) and close it, which rolls back what is not committed."""
        self._check_file()
        address = f"{self.path.as_uri()}?mode=rw"
        try:
            with closing(
                sqlite3.connect(address, uri=True, timeout=_LOCK_SECONDS, isolation_level=None)
            ) as db:
                # EXTRA: the removal of the journal is synced too, else a power cut just after
                # COMMIT could bring the journal, and with it the old state, back.
                db.execute("PRAGMA synchronous = EXTRA")
                db.execute("PRAGMA fullfsync = ON")
                yield db
        except sqlite3.Error as error:
            raise LedgerError(f"ledger {str(self.path)!r} cannot be used: {error}") from error

    def _check_file(self) -> None:
        """Raise unless this is one file under one name beside which a journal would be found.

        `os.stat` and not `open`: closing any handle of the file would drop this process's locks.
        """
        try:
            found = os.stat(self.path)
            folder = os.stat(self.path.resolve().parent)
        except FileNotFoundError as error:
            raise LedgerError(
                f"ledger {str(self.path)!r} does not exist; make it with "
                f"`python -m sklearn_dp.ledger create {self.path} --epsilon E --delta D`"
            ) from error
        except (OSError, ValueError) as error:
            raise LedgerError(f"ledger {str(self.path)!r} cannot be used: {error}") from error
        if not stat.S_ISREG(found.st_mode):
            raise LedgerError(f"ledger {str(self.path)!r} is not a file")
        # SQLite puts its journal next to the name that it is given (a symbolic link it follows).
        # Under another name nobody would find it, and take back what a crash left half done.
        if found.st_nlink > 1:
            raise LedgerError(
                f"ledger {str(self.path)!r} has {found.st_nlink} names (hard links), but recovery "
                "from a crash works under one name only. Remove the others, or use symbolic links."
            )
        if found.st_dev != folder.st_dev:
            raise LedgerError(
                f"ledger {str(self.path)!r} is mounted without its folder, but recovery from a "
                "crash needs a file next to it. Mount the folder."
            )

    def _version(self, db: sqlite3.Connection) -> int:
        """The format of the file, from inside the caller's transaction."""
        if _pragma(db, "application_id") != _APPLICATION_ID:
            raise LedgerError(f"ledger {str(self.path)!r} is a file, but not a ledger")
        version = _pragma(db, "user_version")
        if not _FIRST_VERSION <= version <= _VERSION:
            raise LedgerError(
                f"ledger {str(self.path)!r} has format {version}; this package supports formats "
                f"{_FIRST_VERSION} to {_VERSION}"
            )
        return version

    def _state(self, db: sqlite3.Connection) -> LedgerState:
        return LedgerState(self._terms(db), self._charges(db), self._keys(db))

    def _terms(self, db: sqlite3.Connection) -> LedgerTerms:
        """What the ledger allows; a file of format 1 has the relation that was documented."""
        if self._version(db) != _FIRST_VERSION:
            return _terms_of(db.execute(f"SELECT {', '.join(_TERMS)} FROM terms").fetchone())
        row = db.execute(f"SELECT {', '.join(_TERMS[:-1])} FROM terms").fetchone()
        return _terms_of(row and (*row, _ASSUMED))

    def _keys(self, db: sqlite3.Connection) -> dict[str, tuple[str, ...]]:
        """The values of each key, in the order in which they were listed."""
        if self._version(db) < _VERSION:
            return {}
        rows = db.execute("SELECT key, listed FROM disjoint ORDER BY rowid").fetchall()
        return dict(map(_key_of, rows))

    def _charges(self, db: sqlite3.Connection) -> tuple[LedgerCharge, ...]:
        """All charges, oldest first."""
        version = self._version(db)
        names = [name for name in FIELDS if _SINCE.get(name, 1) <= version]
        rows = db.execute(f"SELECT {', '.join(names)} FROM charge ORDER BY id").fetchall()
        charges = [dict(zip(names, row, strict=True)) for row in rows]
        return tuple(_charge_of(charge) for charge in charges)

    def _convert_untold(self, db: sqlite3.Connection) -> None:
        """Convert a file of an older format to what was documented then."""
        if self._version(db) == _FIRST_VERSION:
            self._check_told(self._charges(db))
        self._convert(db, _ASSUMED)

    def _convert(self, db: sqlite3.Connection, relation: str) -> None:
        """To the format of today, within the caller's transaction; a relation holds no quotes."""
        version = self._version(db)
        new = [("terms", "relation", relation), ("charge", "relation", relation)]
        new = (version == _FIRST_VERSION) * new + [("charge", "key", ""), ("charge", "value", "")]
        if version < _VERSION:
            for table, name, default in new:
                column = f"{name} TEXT NOT NULL DEFAULT '{default}'"
                db.execute(f"ALTER TABLE {table} ADD COLUMN {column}")
            for statement in _KEYS:
                db.execute(statement)

    def _check_told(self, charges: Sequence[LedgerCharge]) -> None:
        """Raise if a charge of format 1 could be of either relation: only the owner knows."""
        untold = sorted({charge.label for charge in charges if charge.relation == UNTOLD})
        if untold:
            raise LedgerError(
                f"ledger {str(self.path)!r} has format 1, which does not record the relation of "
                f"{', '.join(untold)}. Its owner must state it: `python -m sklearn_dp.ledger "
                f"convert {self.path} --relation 'add or remove'` (or 'replace', ...)."
            )

    def _check_word(self, charges: Sequence[LedgerCharge], relation: str) -> None:
        """An owner can tell what no record does; what was documented stays what it is."""
        other = sorted({charge.label for charge in charges
                        if charge.relation not in (relation, UNTOLD)})  # fmt: skip
        if other:
            raise LedgerError(
                f"ledger {str(self.path)!r} has charges of {', '.join(other)} for the relation "
                f"{_ASSUMED!r}; under {relation!r} they cost more."
            )


def _check_listed(charge: LedgerCharge, keys: Mapping[str, Sequence[str]]) -> None:
    """Refuse a charge to units that nobody has said to be apart from others."""
    if charge.payers != EVERYONE and charge.value not in keys.get(charge.key, ()):
        raise LedgerError(f"ledger: {payers_in_words(charge.payers)} is not listed")


def _pragma(db: sqlite3.Connection, name: str) -> int:
    """A number in the head of the file."""
    return db.execute(f"PRAGMA {name}").fetchone()[0]


def _damaged(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Report a row that no ledger writes as damage of the file."""

    def checked(row: Any) -> Any:
        try:
            return function(row)
        except (TypeError, ValueError) as error:
            raise LedgerError(f"ledger is damaged: {error}") from error

    return checked


@_damaged
def _terms_of(row: Sequence[Any]) -> LedgerTerms:
    """Terms from a row, checked as those of a new ledger are; no row at all is damage too."""
    epsilon, delta, rho, unit, composition, relation = row
    budget = PrivacyBudget(epsilon=epsilon, delta=delta, rho=rho)
    return LedgerTerms(budget, unit, composition, relation)


@_damaged
def _key_of(row: Sequence[Any]) -> tuple[str, tuple[str, ...]]:
    """A key and its values from a row, checked as new ones are."""
    key, listed = row
    return key, agreed_values({}, key, json.loads(listed), _ASSUMED)


@_damaged
def _charge_of(values: dict[str, Any]) -> LedgerCharge:
    """A charge from a row; without a relation, what is known of that of its label."""
    doubtful = any(name in values["label"] for name in _AMBIGUOUS)
    relation = values.get("relation", UNTOLD if doubtful else _ASSUMED)
    return LedgerCharge(
        **{**values, "gaussian": bool(values["gaussian"]), "relation": relation})  # fmt: skip
