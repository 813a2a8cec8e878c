r"""The privacy ledger: what all fits on one data set may spend together, and what they have spent.

A ledger is a *privacy filter*: it holds a total fixed at its creation and admits a charge only if
everything charged so far, this charge included, stays within the total. Whoever charges may choose
each budget, and whether to go on, after seeing the results of all earlier fits, so the rule must be
sound under fully adaptive composition. Three rules are, each with two costs that simply add up and
one cap for each cost:

==============  ====================  ===============================================
composition     costs that add up     caps, for a total of (E, D)
==============  ====================  ===============================================
``"basic"``     epsilon, delta        E, D
``"zcdp"``      rho, delta_failure    zcdp_rho(E, D - F), F with F = D / 2
``"gaussian"``  rho, delta_failure    gaussian_rho(E, D - F), F with F = D / 1000
==============  ====================  ===============================================

A total of (rho, delta) is kept by ``"zcdp"``, with rho and delta themselves as the caps; and
``"gaussian"`` admits Gaussian fits only.

**Proofs.** P and Q are the laws of everything released on two neighbouring data sets, S an event.

*Basic* [1]_. Claim: with (e, d) left after a history h, P(S|h) <= exp(e) Q(S|h) + d. It holds when
nothing more is released. Let the next fit, whose budget (e1, d1) is a function of h, satisfy
e1 <= e and d1 <= d, and let o be its output. By induction
g(o) = P(S|h,o) - (d - d1) <= min(1, exp(e - e1) Q(S|h,o)) =: u(o), and 0 <= u <= 1, so that
P(S|h) - (d - d1) = E_P[g] <= E_P[u] <= exp(e1) E_Q[u] + d1 <= exp(e) Q(S|h) + d1.
With h empty: (E, D)-DP. In particular N fits of (E/N, D/N) always fit, of whatever kind.

*zCDP* [2]_. Let each fit be (rho_i, f_i)-zCDP: its two laws are mixtures, with weight 1 - f_i, of
laws whose Renyi divergence of each order a > 1 is at most a rho_i. Let P*, Q* be the laws of the
transcript when all fits draw from these components. The weights along any transcript multiply to
at least 1 - sum f_i >= 1 - F, so P = (1 - F) P* + F P' for some law P', and Q likewise. For P*
and Q*, by induction as above, with r left after h:
E_Q*[(P*/Q*)^a | h] = E_o[(p/q)^a E_Q*[(P*/Q*)^a | h, o]] <= exp((a - 1) a rho_1)
exp((a - 1) a (r - rho_1)). So the whole is (R, F)-zCDP, and (E, D)-DP when zcdp_epsilon(R, D - F)
<= E, as P(S) <= (1 - F) P*(S) + F <= (1 - F) (exp(E) Q*(S) + D - F) + F <= exp(E) Q(S) + D.

*Gaussian* [3]_. Let each fit consist of Gaussian releases whose costs m_j^2 / 2 add up to at most
rho_i, but for failures of probability f_i, treated as above. Given the history, the means of
release j under the two data sets lie m <= m_j standard deviations apart. Draw the noise in this
direction as 1/m times the increment of a Brownian motion W over a time of m^2, all other noise
independently: the two means then differ by a drift of W of exactly one, and the transcript is a
(randomised) function of W on [0, 2 R]. Telling W from W with drift one is telling N(0, 1) from
N(sqrt(2 R), 1), however the m_j were chosen on the way: sqrt(2 R)-GDP, and so (E, D - F)-DP for
R = gaussian_rho(E, D - F).

**Why the rule is fixed at creation.** Each rule alone is sound; admitting whatever *one* of them
admits is not, when budgets depend on results. After a first result of small privacy loss it pays to
spend all of the remaining delta on failures, after a large one to spend it on more Gaussian noise;
the two together exceed D (by up to a factor of two). For the same reason D - F is no function of
the failures that happened to be charged. With (E, D) chosen, ``"basic"`` admits any mixture that
adds up; ``"gaussian"`` admits about N fits of (E / sqrt(N), D / N), but never one of all of (E, D).

**Mechanisms without rho.** (epsilon, delta)-DP implies (epsilon tanh(epsilon / 2), delta)-zCDP,
which is at most the (epsilon^2 / 2, delta)-zCDP of [2]_.

**Arithmetic.** Costs are compared with caps exactly, with no rounding at all: the sign of a
correctly rounded sum is the sign of the exact sum. Totals and charges are numbers that people type
in decimals or compute as E / N, and a double is off by up to 2^-53 of them. Therefore caps that
were typed are read as ``cap (1 + 2^-51)``: ten charges of 0.1 fit in 1.0, and this total, larger
by 4.5e-16 of it, is what is guaranteed. Derived caps are used as they are, rounded down.

References
----------
.. [1] Rogers, Roth, Ullman and Vadhan, "Privacy odometers and filters: pay-as-you-go composition",
   NeurIPS 2016.
.. [2] Whitehouse, Ramdas, Rogers and Wu, "Fully-adaptive composition in differential privacy",
   ICML 2023; Bun and Steinke, "Concentrated differential privacy", TCC 2016.
.. [3] Smith and Thakurta, "Fully adaptive composition for Gaussian differential privacy", 2022.
"""

from __future__ import annotations

import math
import os
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from ..exceptions import BudgetExceededError, LedgerError
from . import _accounting as accounting
from ._budget import PrivacyBudget
from ._process import process_mark

__all__ = ["LedgerCharge", "PrivacyLedger", "open_ledger"]

UNITS = ("row", "group")
COMPOSITIONS = ("basic", "zcdp", "gaussian")

_FAILURE_SHARE = {"zcdp": 0.5, "gaussian": 1e-3}
_TYPED_SLACK = 2.0**-51  # of a cap that a person typed; a power of two, so products are exact
_LOCK_SECONDS = 120.0  # patience with other processes; each holds the lock for milliseconds
_APPLICATION_ID = 0x44504C47  # "DPLG"
_VERSION = 1

# The triggers make a refund an error of the database itself, whoever asks for it.
_SCHEMA = (
    """CREATE TABLE terms (id INTEGER PRIMARY KEY CHECK (id = 1), epsilon REAL, delta REAL NOT NULL,
        rho REAL, unit TEXT NOT NULL, composition TEXT NOT NULL)""",
    """CREATE TABLE charge (id INTEGER PRIMARY KEY AUTOINCREMENT,
        epsilon REAL NOT NULL CHECK (epsilon >= 0), delta REAL NOT NULL CHECK (delta >= 0),
        rho REAL NOT NULL CHECK (rho >= 0), delta_failure REAL NOT NULL CHECK (delta_failure >= 0),
        gaussian INTEGER NOT NULL, unit TEXT NOT NULL, label TEXT NOT NULL, time TEXT NOT NULL)""",
    """CREATE TRIGGER terms_are_fixed BEFORE UPDATE ON terms
        BEGIN SELECT RAISE(ABORT, 'the terms of a ledger are fixed'); END""",
    """CREATE TRIGGER no_refund BEFORE DELETE ON charge
        BEGIN SELECT RAISE(ABORT, 'a charge is never refunded'); END""",
    """CREATE TRIGGER no_rebate BEFORE UPDATE ON charge
        BEGIN SELECT RAISE(ABORT, 'a charge is never changed'); END""",
    f"PRAGMA application_id = {_APPLICATION_ID}",
    f"PRAGMA user_version = {_VERSION}",
)


def _check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


@dataclass(frozen=True)
class LedgerCharge:
    """What one fit costs, in every currency that a ledger may count in.

    Parameters
    ----------
    epsilon, delta : float
        The fit is (epsilon, delta)-DP. An infinite epsilon says that no such bound is known.
    rho : float, optional
        The fit is (rho, delta_failure)-zCDP; by default what holds for every
        (epsilon, delta)-DP mechanism: epsilon tanh(epsilon / 2) and delta.
    delta_failure : float, default=0.0
        Used with `rho` only.
    gaussian : bool, default=False
        Whether all releases are plain Gaussian, with costs that add up to `rho`.
    unit : {"row", "group"}, default="row"
        What is added or removed between neighbouring data sets.
    label : str, default=""
        Name of the estimator; never anything that depends on the data.
    time : str, default=""
        Set by the ledger.
    """

    epsilon: float
    delta: float
    rho: float | None = None
    delta_failure: float = 0.0
    gaussian: bool = False
    unit: str = "row"
    label: str = ""
    time: str = ""

    def __post_init__(self) -> None:
        _check_choice("unit", self.unit, UNITS)
        if self.epsilon != math.inf:
            self._set("epsilon", accounting.check_non_negative("epsilon", self.epsilon))
        self._set("delta", accounting.check_delta("delta", self.delta, zero=True))
        if self.rho is None:
            rho, failure = accounting.approx_dp_zcdp(self.epsilon, self.delta)
            self._set("rho", rho)
            self._set("delta_failure", failure)
        self._set("rho", accounting.check_non_negative("rho", self.rho))
        failure = accounting.check_delta("delta_failure", self.delta_failure, zero=True)
        self._set("delta_failure", failure)

    def _set(self, name: str, value: float) -> None:
        object.__setattr__(self, name, value)


_FIELDS = tuple(field.name for field in fields(LedgerCharge))


@dataclass(frozen=True)
class LedgerTerms:
    """What a ledger allows; fixed when it is made. The rules are proved at the top of the module.

    Parameters
    ----------
    budget : PrivacyBudget
    unit : {"row", "group"}
    composition : {"basic", "zcdp", "gaussian"}
        A budget in rho knows "zcdp" only.
    """

    budget: PrivacyBudget
    unit: str
    composition: str

    def __post_init__(self) -> None:
        in_rho = self.budget.rho is not None
        _check_choice("unit", self.unit, UNITS)
        _check_choice("composition", self.composition, ("zcdp",) if in_rho else COMPOSITIONS)
        if self._derived and not self.budget.delta:
            raise ValueError(f"composition={self.composition!r} needs a delta above 0")

    @classmethod
    def of(cls, budget: object, unit: str, composition: str | None) -> LedgerTerms:
        """Terms with the default composition filled in."""
        if not isinstance(budget, PrivacyBudget):
            kind = type(budget).__name__
            raise TypeError(f"budget of a ledger must be a PrivacyBudget, got {kind}")
        default = "basic" if budget.rho is None else "zcdp"
        return cls(budget, unit, default if composition is None else composition)

    @property
    def _derived(self) -> bool:
        """Whether the caps are computed from the budget rather than typed."""
        return self.budget.rho is None and self.composition != "basic"

    @property
    def columns(self) -> tuple[str, str]:
        """The two costs of a charge that add up."""
        basic = self.composition == "basic"
        return ("epsilon", "delta") if basic else ("rho", "delta_failure")

    @cached_property
    def caps(self) -> tuple[float, float]:
        """Most that each of the two costs may add up to."""
        budget = self.budget
        if budget.rho is not None:
            return budget.rho, budget.delta
        assert budget.epsilon is not None
        if self.composition == "basic":
            return budget.epsilon, budget.delta
        failure = budget.delta * _FAILURE_SHARE[self.composition]
        largest = accounting.zcdp_rho if self.composition == "zcdp" else accounting.gaussian_rho
        return largest(budget.epsilon, accounting.sum_down([budget.delta, -failure])), failure

    def costs(self, charge: LedgerCharge) -> tuple[float, float]:
        """The two costs of a charge."""
        first, second = self.columns
        return getattr(charge, first), getattr(charge, second)

    def admit(self, charge: LedgerCharge, spent: Sequence[tuple[float, float]]) -> None:
        """Raise unless the charge fits beside what was spent."""
        self._check_kind(charge)
        costs = self.costs(charge)
        for name, cap, cost, column in zip(
            self.columns, self.caps, costs, _columns(spent), strict=True
        ):
            if self._exceeds([*column, cost], cap):
                left = _left(cap, column)
                raise BudgetExceededError(
                    f"ledger: this needs {name} {cost:.6g} but only {left:.6g} of {cap:.6g} is "
                    f"left ({self.composition} composition). Nothing was spent, no data were read."
                )

    def _check_kind(self, charge: LedgerCharge) -> None:
        if charge.unit != self.unit:
            raise LedgerError(
                f"ledger protects each {self.unit}, this fit protects each {charge.unit}: "
                f"the two guarantees do not add up. Use a ledger made with unit={charge.unit!r}."
            )
        if self.composition == "gaussian" and not charge.gaussian:
            raise LedgerError(
                "ledger has composition='gaussian' and this fit makes other releases than Gaussian "
                "ones; use a ledger with composition='basic' or 'zcdp'."
            )

    def _exceeds(self, costs: Sequence[float], cap: float) -> bool:
        """Decide sum(costs) > cap exactly (fsum rounds once, so its sign is the true sign)."""
        slack = 0.0 if self._derived else cap * _TYPED_SLACK
        return math.fsum([*costs, -cap, -slack]) > 0


@dataclass(frozen=True)
class LedgerState:
    """What a ledger held at one moment."""

    terms: LedgerTerms
    charges: tuple[LedgerCharge, ...]

    @cached_property
    def _columns(self) -> tuple[list[float], list[float]]:
        return _columns([self.terms.costs(charge) for charge in self.charges])

    @property
    def spent(self) -> dict[str, float]:
        """Sum of each cost that the ledger counts, rounded up."""
        return dict(zip(self.terms.columns, map(accounting.sum_up, self._columns), strict=True))

    @property
    def remaining(self) -> dict[str, float]:
        """What is left of each cost that the ledger counts, rounded down."""
        left = map(_left, self.terms.caps, self._columns)
        return dict(zip(self.terms.columns, left, strict=True))


def _columns(spent: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [pair[0] for pair in spent], [pair[1] for pair in spent]


def _left(cap: float, costs: Sequence[float]) -> float:
    return max(0.0, accounting.sum_down([cap, *(-cost for cost in costs)]))


# ------------------------------------------------------------------------------ where it is kept


class _MemoryBook:
    """Charges of one process, in a list."""

    path = None

    def __init__(self, terms: LedgerTerms) -> None:
        self._terms = terms
        self._charges: list[LedgerCharge] = []
        self._lock = threading.Lock()
        self._process = process_mark()

    def _check_process(self) -> None:
        # A forked child has a copy of this list: what it charged would be lost to its parent.
        if process_mark() != self._process:
            raise LedgerError(
                "ledger is kept in the memory of another process; "
                "give `ledger` the path of a ledger file to share it between processes"
            )

    def read(self) -> LedgerState:
        self._check_process()
        with self._lock:
            return LedgerState(self._terms, tuple(self._charges))

    def append(self, charge: LedgerCharge) -> None:
        self._check_process()
        with self._lock:
            self._terms.admit(charge, [self._terms.costs(earlier) for earlier in self._charges])
            self._charges.append(charge)


class _FileBook:
    """Charges in an SQLite file that any number of processes share.

    Each operation opens and closes its own connection, so nothing is carried through a fork or
    into another thread, and no other handle of the file is ever opened in this process: closing
    one would drop the locks of all (POSIX).
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        name = os.fspath(path)
        if not isinstance(name, str):
            raise TypeError("ledger must be a path of type str, not bytes")
        self.path = Path(name).absolute()

    def create(self, terms: LedgerTerms) -> None:
        """Make the file, readable and writable by its owner only; never replaces one."""
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except (OSError, ValueError) as error:
            raise LedgerError(f"ledger {str(self.path)!r} cannot be made: {error}") from error
        budget = terms.budget
        row = budget.epsilon, budget.delta, budget.rho, terms.unit, terms.composition
        with self._connection() as db:
            db.execute("BEGIN IMMEDIATE")
            for statement in _SCHEMA:
                db.execute(statement)
            db.execute("INSERT INTO terms VALUES (1, ?, ?, ?, ?, ?)", row)
            db.execute("COMMIT")

    def read(self) -> LedgerState:
        with self._connection() as db:
            db.execute("BEGIN")
            terms = self._terms(db)
            rows = db.execute(f"SELECT {', '.join(_FIELDS)} FROM charge ORDER BY id").fetchall()
        return LedgerState(terms, tuple(_charge_of(row) for row in rows))

    def append(self, charge: LedgerCharge) -> None:
        """Admit and record a charge; when this returns, it is on the disk.

        One transaction holds the write lock from before the sum is read until the charge is in
        the file. Whatever stops it before COMMIT is done, SQLite's journal takes it back.
        """
        marks = ", ".join("?" * len(_FIELDS))
        insert = f"INSERT INTO charge ({', '.join(_FIELDS)}) VALUES ({marks})"
        with self._connection() as db:
            db.execute("BEGIN IMMEDIATE")
            terms = self._terms(db)
            spent = db.execute(f"SELECT {', '.join(terms.columns)} FROM charge").fetchall()
            terms.admit(charge, spent)
            db.execute(insert, [getattr(charge, name) for name in _FIELDS])
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
        try:
            mode = os.stat(self.path).st_mode
        except FileNotFoundError as error:
            raise LedgerError(
                f"ledger {str(self.path)!r} does not exist; make it with "
                f"`python -m sklearn_dp.ledger create {self.path} --epsilon E --delta D`"
            ) from error
        except (OSError, ValueError) as error:
            raise LedgerError(f"ledger {str(self.path)!r} cannot be used: {error}") from error
        if not stat.S_ISREG(mode):
            raise LedgerError(f"ledger {str(self.path)!r} is not a file")

    def _terms(self, db: sqlite3.Connection) -> LedgerTerms:
        if _pragma(db, "application_id") != _APPLICATION_ID:
            raise LedgerError(f"ledger {str(self.path)!r} is a file, but not a ledger")
        version = _pragma(db, "user_version")
        if version != _VERSION:
            raise LedgerError(
                f"ledger {str(self.path)!r} has format {version}, this package knows {_VERSION}"
            )
        row = db.execute("SELECT epsilon, delta, rho, unit, composition FROM terms").fetchone()
        return _terms_of(row)


def _pragma(db: sqlite3.Connection, name: str) -> int:
    return db.execute(f"PRAGMA {name}").fetchone()[0]


def _damaged(function: Callable[[Sequence[Any]], Any]) -> Callable[[Sequence[Any]], Any]:
    """Report a row that no ledger writes as damage of the file."""

    def checked(row: Sequence[Any]) -> Any:
        try:
            return function(row)
        except (TypeError, ValueError) as error:
            raise LedgerError(f"ledger is damaged: {error}") from error

    return checked


@_damaged
def _terms_of(row: Sequence[Any]) -> LedgerTerms:
    epsilon, delta, rho, unit, composition = row
    return LedgerTerms(PrivacyBudget(epsilon=epsilon, delta=delta, rho=rho), unit, composition)


@_damaged
def _charge_of(row: Sequence[Any]) -> LedgerCharge:
    values = dict(zip(_FIELDS, row, strict=True))
    return LedgerCharge(**{**values, "gaussian": bool(values["gaussian"])})


# --------------------------------------------------------------------------------- the public face


class PrivacyLedger:
    """The privacy budget that all fits on one data set share.

    A fit charges its ledger for its whole plan before it reads any data, and is refused when the
    ledger does not hold enough. A charge is never refunded, whatever becomes of the fit.

    Parameters
    ----------
    budget : PrivacyBudget, optional
        The total, in (epsilon, delta) or (rho, delta). Left out to open an existing file.
    path : str or path, optional
        A ledger file; with `budget`, the file is made and must not exist. Without `path`, the
        ledger lives in the memory of this process.
    unit : {"row", "group"}, default="row"
        What is protected; fits that protect another unit are refused.
    composition : {"basic", "zcdp", "gaussian"}, optional
        How charges add up; see Notes. By default "basic" for a total in epsilon and "zcdp" for one
        in rho.

    Raises
    ------
    LedgerError
        The path does not exist (and no budget is given), exists (and a budget is given) or is not
        a ledger.

    See Also
    --------
    sklearn_dp.ledger : The same from the command line.

    Notes
    -----
    Everything released by all the fits together is (epsilon, delta)-DP, or (rho, delta)-zCDP, for
    the ledger's total, even if each fit and its budget are chosen after seeing earlier results.
    Use one ledger for each data set: budgets of data sets that share people add up as well.

    With "basic", epsilon and delta add up: N fits of (epsilon / N, delta / N) always fit. With
    "zcdp", rho and the failure probabilities add up. "gaussian" is for many fits whose releases are
    all Gaussian: it admits about N fits of (epsilon / sqrt(N), delta / N), though never a single
    fit of the whole budget. The rule cannot change later: taking the better of two rules after
    seeing results would break the guarantee.

    A file is shared by processes and threads and survives clone, copies, pickling and crashes:
    give `ledger` its path. A ledger in memory is shared by identity (clones and copies are the
    ledger itself) and refuses to be pickled. A ledger guards against mistakes, not against a person
    who deletes or copies the file.

    Examples
    --------
    >>> from sklearn_dp.ledger import LedgerCharge, PrivacyBudget, PrivacyLedger
    >>> ledger = PrivacyLedger(PrivacyBudget(epsilon=1.0, delta=1e-5))
    >>> ledger.charge(LedgerCharge(epsilon=0.75, delta=1e-6))
    >>> ledger.remaining["epsilon"]
    0.25
    """

    def __init__(
        self,
        budget: PrivacyBudget | None = None,
        path: str | os.PathLike[str] | None = None,
        *,
        unit: str = "row",
        composition: str | None = None,
    ) -> None:
        self._book: _MemoryBook | _FileBook
        if budget is None and path is None:
            raise TypeError("PrivacyLedger needs a budget, or the path of an existing ledger")
        if path is None:
            self._book = _MemoryBook(LedgerTerms.of(budget, unit, composition))
            return
        self._book = _FileBook(path)
        if budget is not None:
            self._book.create(LedgerTerms.of(budget, unit, composition))
        self._book.read()  # a wrong path is an error here and now

    @property
    def path(self) -> str | None:
        """The absolute path of the file, or None for a ledger in memory."""
        return None if self._book.path is None else str(self._book.path)

    def state(self) -> LedgerState:
        """Read everything at one moment.

        Returns
        -------
        state : LedgerState
            Terms, charges, spent and remaining.
        """
        return self._book.read()

    @property
    def budget(self) -> PrivacyBudget:
        """The total."""
        return self.state().terms.budget

    @property
    def entries(self) -> tuple[LedgerCharge, ...]:
        """All charges, oldest first."""
        return self.state().charges

    @property
    def spent(self) -> dict[str, float]:
        """Sum of each cost that the ledger counts, rounded up."""
        return self.state().spent

    @property
    def remaining(self) -> dict[str, float]:
        """What is left of each cost that the ledger counts, rounded down."""
        return self.state().remaining

    def charge(self, charge: LedgerCharge, label: str | None = None) -> None:
        """Charge one fit; when this returns, the charge is recorded for good.

        Parameters
        ----------
        charge : LedgerCharge
            What the fit costs.
        label : str, optional
            Replaces the charge's own label.

        Raises
        ------
        BudgetExceededError
            The ledger does not hold enough; nothing was spent.
        LedgerError
            The charge is of another unit or kind than the ledger's, or the file cannot be used.
        """
        if not isinstance(charge, LedgerCharge):
            raise TypeError(f"charge must be a LedgerCharge, got {type(charge).__name__}")
        label = charge.label if label is None else label
        time = datetime.now(UTC).isoformat(timespec="seconds")
        self._book.append(replace(charge, label=label, time=time))

    def __repr__(self) -> str:
        where = "in memory" if self.path is None else f"path={self.path!r}"
        return f"<PrivacyLedger {where}>"

    def __sklearn_clone__(self) -> PrivacyLedger:
        return self

    def __copy__(self) -> PrivacyLedger:
        return self

    def __deepcopy__(self, memo: dict) -> PrivacyLedger:
        return self

    def __reduce__(self) -> tuple:
        if self.path is None:
            raise LedgerError(
                "a ledger in memory cannot be pickled or sent to another process, as its copy "
                "would forget the charges; give `ledger` the path of a ledger file instead"
            )
        return PrivacyLedger, (None, self.path)


def open_ledger(ledger: str | os.PathLike[str] | PrivacyLedger | None) -> PrivacyLedger | None:
    """Return the ledger that an estimator's `ledger` parameter means.

    Parameters
    ----------
    ledger : None, str, path or PrivacyLedger

    Raises
    ------
    LedgerError
        The path is not a ledger. None is ever made here: a mistyped path would be a fresh budget.
    TypeError
        `ledger` is something else.
    """
    if ledger is None or isinstance(ledger, PrivacyLedger):
        return ledger
    if isinstance(ledger, (str, os.PathLike)):
        return PrivacyLedger(path=ledger)
    raise TypeError(
        f"ledger must be None, a path or a PrivacyLedger, got {type(ledger).__name__}"
    )
