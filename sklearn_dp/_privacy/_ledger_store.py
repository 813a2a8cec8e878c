"""Where a ledger is kept: in the memory of one process, or in an SQLite file that many share.

A *book* holds the terms of a ledger and the list of its charges, and can do three things: `read`
both at one moment, `append` a charge if the terms admit it, and, on paper only, `create` itself.
Nothing takes a charge back.

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

import os
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from ..exceptions import LedgerError
from ._budget import PrivacyBudget
from ._ledger_terms import FIELDS, UNTOLD, LedgerCharge, LedgerState, LedgerTerms
from ._neighbours import check_relation
from ._process import process_mark

__all__ = ["FileBook", "MemoryBook"]

_LOCK_SECONDS = 120.0  # patience with other processes; each holds the lock for milliseconds
_APPLICATION_ID = 0x44504C47  # "DPLG"
_VERSION = 2

# The triggers make a refund an error of the database itself, whoever asks for it.
_SCHEMA = (
    """CREATE TABLE terms (id INTEGER PRIMARY KEY CHECK (id = 1), epsilon REAL, delta REAL NOT NULL,
        rho REAL, unit TEXT NOT NULL, composition TEXT NOT NULL, relation TEXT NOT NULL)""",
    """CREATE TABLE charge (id INTEGER PRIMARY KEY AUTOINCREMENT,
        epsilon REAL NOT NULL CHECK (epsilon >= 0), delta REAL NOT NULL CHECK (delta >= 0),
        rho REAL NOT NULL CHECK (rho >= 0), delta_failure REAL NOT NULL CHECK (delta_failure >= 0),
        gaussian INTEGER NOT NULL, unit TEXT NOT NULL, label TEXT NOT NULL, time TEXT NOT NULL,
        relation TEXT NOT NULL)""",
    """CREATE TRIGGER terms_are_fixed BEFORE UPDATE ON terms
        BEGIN SELECT RAISE(ABORT, 'the terms of a ledger are fixed'); END""",
    """CREATE TRIGGER no_refund BEFORE DELETE ON charge
        BEGIN SELECT RAISE(ABORT, 'a charge is never refunded'); END""",
    """CREATE TRIGGER no_rebate BEFORE UPDATE ON charge
        BEGIN SELECT RAISE(ABORT, 'a charge is never changed'); END""",
    f"PRAGMA application_id = {_APPLICATION_ID}",
    f"PRAGMA user_version = {_VERSION}",
)
_TERMS = ("epsilon", "delta", "rho", "unit", "composition", "relation")

# Format 1 knew no relation: its charges were documented as "add or remove", which two of the
# package's own were not always. Their records do not tell which it was.
_FIRST_VERSION = 1
_ASSUMED = "add or remove"
_AMBIGUOUS = ("FederatedDPKMeans", "aggregate_k_tuples")


class MemoryBook:
    """Charges of one process, in a list; gone with the process."""

    path = None

    def __init__(self, terms: LedgerTerms) -> None:
        self._terms = terms
        self._charges: list[LedgerCharge] = []
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
            return LedgerState(self._terms, tuple(self._charges))

    def append(self, charge: LedgerCharge) -> None:
        """Admit and record a charge; two threads are admitted one after the other."""
        self._check_process()
        with self._lock:
            self._terms.admit(charge, [self._terms.costs(earlier) for earlier in self._charges])
            self._charges.append(charge)


class FileBook:
    """Charges in an SQLite file that any number of processes share; it need not exist yet.

    Each operation opens and closes its own connection, so nothing is carried through a fork or
    into another thread, and no other handle of the file is ever opened in this process: closing
    one would drop the locks of all (POSIX). The path is made absolute: a process that changes its
    folder later still means the same ledger.

    A file of format 1 is read as it is, and converted by the first charge, in the transaction of
    that charge: whatever stops it leaves a whole file of format 1. Code of that format may work
    with the file meanwhile. It reads the format inside each of its transactions, so it charges
    before the conversion, which then sees the charge, or refuses the file by its format after it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        name = os.fspath(path)
        if not isinstance(name, str):
            raise TypeError("ledger must be a path of type str, not bytes")
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
            raise LedgerError(f"ledger {str(self.path)!r} cannot be made: {why}") from error
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
            terms = self._terms(db)
            return LedgerState(terms, self._charges(db))

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
            if self._version(db) == _FIRST_VERSION:
                self._check_told(self._charges(db))
                _convert(db, _ASSUMED)
            spent = db.execute(f"SELECT {', '.join(terms.columns)} FROM charge").fetchall()
            terms.admit(charge, spent)
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
                raise LedgerError(f"ledger {str(self.path)!r} tells its relation already")
            self._check_word(self._charges(db), relation)
            _convert(db, relation)
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
                f"ledger {str(self.path)!r} has {found.st_nlink} names (hard links): what a crash "
                "leaves half done is repaired under one name only. Remove the others, or use "
                "symbolic links."
            )
        if found.st_dev != folder.st_dev:
            raise LedgerError(
                f"ledger {str(self.path)!r} is mounted without its folder: what a crash leaves "
                "half done is repaired with a file next to it. Mount the folder."
            )

    def _version(self, db: sqlite3.Connection) -> int:
        """The format of the file, from inside the caller's transaction."""
        if _pragma(db, "application_id") != _APPLICATION_ID:
            raise LedgerError(f"ledger {str(self.path)!r} is a file, but not a ledger")
        version = _pragma(db, "user_version")
        if version not in (_FIRST_VERSION, _VERSION):
            raise LedgerError(
                f"ledger {str(self.path)!r} has format {version}, this package knows {_VERSION}"
            )
        return version

    def _terms(self, db: sqlite3.Connection) -> LedgerTerms:
        """What the ledger allows; a file of format 1 has the relation that was documented."""
        if self._version(db) != _FIRST_VERSION:
            return _terms_of(db.execute(f"SELECT {', '.join(_TERMS)} FROM terms").fetchone())
        row = db.execute(f"SELECT {', '.join(_TERMS[:-1])} FROM terms").fetchone()
        return _terms_of(row and (*row, _ASSUMED))

    def _charges(self, db: sqlite3.Connection) -> tuple[LedgerCharge, ...]:
        """All charges, oldest first."""
        told = self._version(db) != _FIRST_VERSION
        names = [name for name in FIELDS if told or name != "relation"]
        rows = db.execute(f"SELECT {', '.join(names)} FROM charge ORDER BY id").fetchall()
        charges = [dict(zip(names, row, strict=True)) for row in rows]
        return tuple(_charge_of(charge) for charge in charges)

    def _check_told(self, charges: Sequence[LedgerCharge]) -> None:
        """Raise if a charge of format 1 could be of either relation: only the owner knows."""
        untold = sorted({charge.label for charge in charges if charge.relation == UNTOLD})
        if untold:
            raise LedgerError(
                f"ledger {str(self.path)!r} is of format 1, which does not say what the neighbours "
                f"of {', '.join(untold)} do. Its owner has to: `python -m sklearn_dp.ledger "
                f"convert {self.path} --relation 'add or remove'` (or 'replace', ...)."
            )

    def _check_word(self, charges: Sequence[LedgerCharge], relation: str) -> None:
        """An owner can tell what no record does; what was documented stays what it is."""
        other = sorted({charge.label for charge in charges
                        if charge.relation not in (relation, UNTOLD)})  # fmt: skip
        if other:
            raise LedgerError(
                f"ledger {str(self.path)!r} holds charges of {', '.join(other)}, whose neighbours "
                f"{_ASSUMED}: what they cost for those that {relation} is more."
            )


def _convert(db: sqlite3.Connection, relation: str) -> None:
    """Format 1 to 2, within the caller's transaction; a relation holds no quotes."""
    for table in ("terms", "charge"):
        db.execute(f"ALTER TABLE {table} ADD COLUMN relation TEXT NOT NULL DEFAULT '{relation}'")
    db.execute(f"PRAGMA user_version = {_VERSION}")


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
def _charge_of(values: dict[str, Any]) -> LedgerCharge:
    """A charge from a row; without a relation, what is known of that of its label."""
    doubtful = any(name in values["label"] for name in _AMBIGUOUS)
    relation = values.get("relation", UNTOLD if doubtful else _ASSUMED)
    return LedgerCharge(
        **{**values, "gaussian": bool(values["gaussian"]), "relation": relation})  # fmt: skip
