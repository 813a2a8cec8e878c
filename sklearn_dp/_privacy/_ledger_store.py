"""Where a ledger is kept: in the memory of one process, or in an SQLite file that many share.

A *book* holds the entries of a ledger (see :class:`.LedgerState`). It can `read` all of them at one
moment, and `append` one that follows from what has been read. What could go wrong with a file:

* Two fits read the same sum and both fit in: the write lock is taken before the sum is read, and
  held until the charge is in the file (``BEGIN IMMEDIATE``).
* A crash, or a power cut, in the middle: SQLite's journal takes half a charge back. A charge that
  has been reported as made is on the disk (``synchronous = EXTRA``); a fit begins only then.
* Somebody changes or removes an entry, or puts another one in its place (``REPLACE``): triggers in
  the database refuse it. Who takes these away breaks the chain of hashes, and every later use of
  the ledger is refused. Who makes a new chain, or brings an old copy back, cannot make one with a
  head that was published.
* Another file takes the place of the ledger: it has another random identity.
* The file is damaged: an error, whatever it is that cannot be read.
* The journal is not found, because the file goes by two names or lies on a mount of its own:
  refused before anything is read.
* A fork, a thread, a pickle: nothing is kept open between operations.

It needs working locks; on network drives without them nothing is safe.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from .._costs.ledger_terms import LedgerState, LedgerTerms
from ..exceptions import LedgerError
from ._noise import fresh_bytes, process_mark

Execute = Callable[..., sqlite3.Cursor]
Make = Callable[[LedgerState], str | None]
"""The next entry of a ledger, or None for none; it raises where the ledger does not admit it."""

_LOCK_SECONDS = 60.0  # patience with other processes; each holds the lock for milliseconds
_APPLICATION_ID = 0x44504C47  # "DPLG"
_VERSION = 4
_NEW = (
    "A new file would give the same people a second budget. Create one only if whoever set the "
    "first budget agrees."
)
_RESTORE = (
    "Bring the file back from a backup, and charge again what was released since it was made "
    f"(PrivacyLedger.charge). {_NEW}"
)

# AUTOINCREMENT: SQLite keeps the largest number that there has been. The triggers make a refund an
# error of the database itself, whoever asks for it. Those before an insertion come before whatever
# `REPLACE` would delete to make room.
_SCHEMA = (
    """CREATE TABLE entry (
        number INTEGER PRIMARY KEY AUTOINCREMENT, content TEXT NOT NULL, hash TEXT NOT NULL)""",
    """CREATE TRIGGER entries_follow BEFORE INSERT ON entry
        WHEN NEW.number IS NOT (SELECT coalesce(max(number), 0) + 1 FROM entry)
        BEGIN SELECT RAISE(ABORT, 'an entry of a ledger follows the last one'); END""",
    """CREATE TRIGGER entries_are_fixed BEFORE UPDATE ON entry
        BEGIN SELECT RAISE(ABORT, 'an entry of a ledger is never changed'); END""",
    """CREATE TRIGGER entries_stay BEFORE DELETE ON entry
        BEGIN SELECT RAISE(ABORT, 'an entry of a ledger is never removed'); END""",
    f"PRAGMA application_id = {_APPLICATION_ID}",
    f"PRAGMA user_version = {_VERSION}",
)
_TRIGGERS = {statement for statement in _SCHEMA if statement.startswith("CREATE TRIGGER")}


class MemoryBook:
    """Entries of one process; gone with the process."""

    path = None

    def __init__(self, terms: LedgerTerms) -> None:
        self._state = LedgerState.of([terms.starting(fresh_bytes(16).hex())])
        self.identity = self._state.identity
        self._lock = threading.Lock()
        self._process = process_mark()

    def read(self) -> LedgerState:
        """Return the present state of the ledger, in this process."""
        # A forked child has a copy of it: what it charged would be lost to its parent.
        if process_mark() != self._process:
            raise LedgerError(
                "ledger is kept in the memory of another process; "
                "give `ledger` the path of a ledger file to share it between processes"
            )
        return self._state

    def append(self, make: Make) -> LedgerState:
        """Add an entry; two threads add theirs one after the other."""
        with self._lock:
            entry = make(self.read())
            if entry is not None:
                self._state = self._state.after([entry])
            return self._state


class LostBook:
    """A ledger in memory after a pickle: only its identity is left."""

    path = None

    def __init__(self, identity: str) -> None:
        self.identity = identity

    def read(self) -> LedgerState:
        """Say where the ledger is."""
        raise LedgerError(
            "ledger was kept in the memory of the process that saved this object, and a pickle "
            "does not hold it: a copy would forget the charges of others. `privacy_report_` says "
            "what a fit was charged. To fit again, set `ledger` to the path of a ledger file, "
            "which processes can share: set_params(ledger=...)."
        )

    def append(self, make: Make) -> LedgerState:
        """Refuse the charge: the ledger is gone."""
        return self.read()


class FileBook:
    """Entries in an SQLite file that any number of processes share; it need not exist yet.

    Each operation opens and closes its own connection, so nothing is carried through a fork, and no
    other handle of the file is ever opened in this process: closing one would drop the locks of all
    (POSIX). The path is absolute, and another ledger that has come to be under it is refused."""

    def __init__(self, path: str | os.PathLike[str], identity: str | None = None) -> None:
        name = os.fspath(path) if isinstance(path, os.PathLike) else path
        if not isinstance(name, str):
            kind = f"{type(name).__name__}; epsilon and delta: budget=PrivacyBudget(epsilon, delta)"
            raise TypeError(f"path of a ledger must be a text or a path, got {kind}")
        self.path, self.identity = Path(name).absolute(), identity
        # A missing file is often one that was looked for in another folder.
        self._told = "" if self.path == Path(name) else f" ({name!r} in the working directory)"

    def create(self, terms: LedgerTerms) -> None:
        """Make the file, readable and writable by its owner only; never replaces one. A process
        that dies between the two steps leaves an empty file, which is no ledger and is refused: it
        is never taken for one with nothing spent."""
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except (OSError, ValueError) as error:
            there = isinstance(error, FileExistsError)
            why = "The file already exists; ledgers are never overwritten." if there else error
            raise LedgerError(f"ledger {self} cannot be created: {why}") from error
        first = terms.starting(fresh_bytes(16).hex())
        try:
            with self._connection() as execute:
                execute("BEGIN IMMEDIATE")
                for statement in _SCHEMA:
                    execute(statement)
                self._insert(execute, LedgerState.of([first]), first)
        except BaseException:
            os.unlink(self.path)  # made above, and empty
            raise

    def read(self) -> LedgerState:
        """Return the present state of the ledger: entries of one moment, in one transaction."""
        with self._connection() as execute:
            execute("BEGIN")
            return self._state(execute)

    def append(self, make: Make) -> LedgerState:
        """Add an entry; when this returns, it is on the disk. One transaction holds the write lock
        from before the entries are read; after any error nothing was added."""
        with self._connection() as execute:
            execute("BEGIN IMMEDIATE")
            state = self._state(execute)
            entry = make(state)
            if entry is not None:
                state = state.after([entry])
                self._insert(execute, state, entry)
            return state

    @staticmethod
    def _insert(execute: Execute, state: LedgerState, entry: str) -> None:
        """Add the last entry of a state; the end of the transaction."""
        execute("INSERT INTO entry VALUES (?, ?, ?)", (len(state.heads), entry, state.head))
        execute("COMMIT")

    @contextmanager
    def _connection(self) -> Iterator[Execute]:
        """Open the file (never make one) and close it, which rolls back what is not committed."""
        self._check_file()
        address = f"{self.path.as_uri()}?mode=rw"
        try:
            # No patience of SQLite's own, which does not answer to Ctrl-C.
            with closing(sqlite3.connect(address, uri=True, timeout=0, isolation_level=None)) as db:
                execute = partial(_patiently, db)
                # EXTRA: the removal of the journal is synced too, else a power cut just after
                # COMMIT could bring the journal, and with it the old state, back.
                execute("PRAGMA synchronous = EXTRA")
                execute("PRAGMA fullfsync = ON")
                yield execute
                return
        # The second one of a text that SQLite cannot decode: also in a message of its own.
        except (sqlite3.Error, UnicodeError) as error:
            problem = self._problem(error)
        raise LedgerError(f"ledger {self} {problem}")  # without what the first error may quote

    def _problem(self, error: Exception) -> str:
        """Describe an error about the file, with the remedy; by the primary codes of SQLite."""
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        if code == sqlite3.SQLITE_BUSY:
            return (
                f"has been locked by {_holder(self.path)} for {_LOCK_SECONDS:.0f} seconds, and "
                "nothing was charged. A charge takes milliseconds: that program was stopped in the "
                "middle, or it is a database browser or a backup. End it, and try again. In a "
                "network folder, locks may outlive programs: move the file to a local disk."
            )
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
            return (
                "cannot be written: the file or its folder is read-only for this user. A charge "
                "writes both the file and a journal next to it. Nothing was charged."
            )
        if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_PROTOCOL):
            return (
                f"cannot be used ({getattr(error, 'sqlite_errorname', '')}): the disk is full or "
                "fails, or it is a network folder without the locks that a ledger needs. Move the "
                "file to a local disk. Nothing was charged."
            )
        return f"is damaged, or is not a ledger. {_RESTORE}"

    def _check_file(self) -> None:
        """Raise unless this is one file under one name beside which a journal would be found.
        `os.stat` and not `open`: closing any handle of the file would drop this process's locks."""
        try:
            now = os.stat(self.path)
            folder = os.stat(self.path.resolve().parent)
        except (FileNotFoundError, NotADirectoryError):
            raise LedgerError(
                f"ledger {self} does not exist{self._told}. {_NEW} If these people have no ledger "
                "yet: `python -m sklearn_dp.ledger create FILE --epsilon E --delta D`."
            ) from None
        except (OSError, ValueError) as error:
            raise LedgerError(f"ledger {self} cannot be used: {error}") from error
        if not stat.S_ISREG(now.st_mode):
            raise LedgerError(f"ledger {self} is not a file")
        # SQLite puts its journal next to the name that it is given (a symbolic link it follows).
        # Under another name nobody would find it, and take back what a crash left half done.
        if now.st_nlink > 1:
            raise LedgerError(
                f"ledger {self} has {now.st_nlink} names (hard links), but recovery "
                "from a crash works under one name only. Remove other names, or use symbolic links."
            )
        if now.st_dev != folder.st_dev:
            raise LedgerError(
                f"ledger {self} is mounted without its folder, but recovery from a "
                "crash needs a file next to it. Mount the folder."
            )

    def _state(self, execute: Execute) -> LedgerState:
        """The state in the file, inside the caller's transaction; an error if it is another
        ledger."""
        if execute("PRAGMA application_id").fetchone() != (_APPLICATION_ID,):
            raise LedgerError(f"ledger {self} is a file, but not a ledger")
        (version,) = execute("PRAGMA user_version").fetchone()
        if version != _VERSION:
            raise LedgerError(
                f"ledger {self} has format {version}; this version of sklearn_dp reads format "
                f"{_VERSION}"
            )
        rows = execute("SELECT number, content, hash FROM entry ORDER BY number").fetchall()
        triggers = execute("SELECT sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        last = execute("SELECT seq FROM sqlite_sequence WHERE name = 'entry'").fetchone()
        try:
            state = LedgerState.of([content for _, content, _ in rows])
            written = [(number, head) for number, _, head in rows]
            intact = written == [*enumerate(state.heads, 1)] and last == (len(rows),)
            intact &= {statement for (statement,) in triggers} == _TRIGGERS
        except Exception:  # whatever is wrong with an entry that no ledger has written
            intact = False
        if not intact:
            raise LedgerError(
                f"ledger {self} is damaged: its entries are not those that were written. {_RESTORE}"
            )
        if self.identity not in (None, state.identity):
            raise LedgerError(
                f"ledger {self} is not the ledger that was there before: another file has taken "
                "its place. What was charged to the first one is not in it."
            )
        self.identity = state.identity
        return state

    def __str__(self) -> str:
        return repr(str(self.path))


def _patiently(db: sqlite3.Connection, statement: str, *values: Any) -> sqlite3.Cursor:
    """Execute a statement as soon as no other process has the lock; Ctrl-C ends the wait."""
    end, pause = time.monotonic() + _LOCK_SECONDS, 0.001
    while True:
        try:
            return db.execute(statement, *values)
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not busy or time.monotonic() > end:
                raise
        time.sleep(pause)
        pause = min(1.5 * pause, 0.02)


def _holder(path: Path) -> str:
    """Who has a lock of a file, where the system tells (Linux)."""
    with suppress(OSError):
        inode = f":{os.stat(path).st_ino}"
        for line in Path("/proc/locks").read_text("ascii").splitlines():
            *_, process, place, _, _ = line.split()
            if place.endswith(inode) and int(process) > 0:
                name = Path(f"/proc/{process}/comm").read_text("utf-8", "replace").strip()
                return f"process {process} ({name})"
    return "another program"
