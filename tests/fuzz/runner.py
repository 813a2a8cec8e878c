"""Run a call under watch: what it may raise, say, take and return."""

import contextlib
import io
import logging
import re
import resource
import signal
import threading
import warnings
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import InvalidParameterError

from sklearn_dp.exceptions import (
    BudgetExceededError,
    LedgerError,
    PartError,
    PrivacyWarning,
    SeededNoiseWarning,
    UtilityWarning,
)

from .tables import PLANT, PLANTED_ROWS

TYPED = (
    ValueError,
    TypeError,
    NotFittedError,
    BudgetExceededError,
    LedgerError,
    PartError,
    InvalidParameterError,
)
"""Documented errors; what merely derives from them, such as LinAlgError, comes from inside."""

EXPECTED_WARNINGS = (SeededNoiseWarning, UtilityWarning, PrivacyWarning)
SECONDS = 20.0
"""Of processor time, for one call on a tiny table, whatever its parameters are."""

MEMORY = 2**30
"""Bytes that one call on a tiny table may take, whatever its parameters are.

Those that can be written: threads reserve much address space that nobody takes.
"""

_RAW = re.compile(
    r"unhashable|not supported between|has no attribute|object is not|not subscriptable|"
    r"positional argument|could not be broadcast|truth value|codec|object cannot be|ufunc|"
    r"invalid literal|cannot convert|must be real number|not iterable|int too large|out of bounds|"
    r"unsupported operand|Cannot cast|array must not contain|data type|Integer overflow|"
    r"Maximum allowed|negative dimensions|division|incompatible dimension|NAType|math domain"
)
"""Words of errors that Python or numpy raised because nobody looked at a value before."""

_DATA = re.compile(
    # The first digits of a number, and not some of those of an address.
    r"(?<![\w.])(?:0\.0*)?7[.,]?3[.,]?1[.,]?9|person|"
    rf"(?<![\w.])(?:{'|'.join(f'{n // 1000},?{n % 1000:03}' for n in PLANTED_ROWS)})(?![\w.])"
)


class Slow(BaseException):
    """A call took too long; no ``except Exception`` may hide it."""


@dataclass(frozen=True)
class Outcome:
    """What a call did: its value or its error, and all words that it left behind."""

    value: object = None
    error: BaseException | None = None
    warnings: tuple = ()
    printed: str = ""

    @property
    def kind(self):
        """Name of the error's type, or "ok"."""
        return "ok" if self.error is None else type(self.error).__name__

    def texts(self):
        """Everything that a person could read."""
        error, found = self.error, [self.printed, *(text for _, text in self.warnings)]
        while error is not None:
            found += [f"{error!r} {error}", *getattr(error, "__notes__", ())]
            error = error.__cause__ or error.__context__
        return found


@dataclass
class Tally:
    """How many calls of what ended how."""

    outcomes: Counter = field(default_factory=Counter)

    @property
    def calls(self):
        return sum(self.outcomes.values())

    def add(self, method, outcome):
        self.outcomes[method, outcome.kind] += 1

    def table(self):
        """Outcomes by kind, all methods together: what travels with a test report."""
        found = Counter()
        for (_, kind), number in self.outcomes.items():
            found[kind] += number
        return dict(found)


def run(function, /, *args, **options):
    """Call a function, within bounds of time and memory, and keep what it says."""
    value = error = None
    printed, log = io.StringIO(), io.StringIO()
    handler = logging.StreamHandler(log)
    logging.getLogger().addHandler(handler)
    with (
        warnings.catch_warnings(record=True) as caught,
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
    ):
        warnings.simplefilter("always")
        try:
            with _bounded():
                value = function(*args, **options)
        except (Exception, Slow, SystemExit) as raised:
            error = raised
    logging.getLogger().removeHandler(handler)
    return Outcome(
        value,
        error,
        tuple((item.category, str(item.message)) for item in caught),
        printed.getvalue() + log.getvalue(),
    )


@contextlib.contextmanager
def _bounded():
    """An alarm of processor time, and a limit of the memory, for the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    before = signal.signal(signal.SIGVTALRM, _too_slow)
    resource.setrlimit(resource.RLIMIT_DATA, (_memory() + MEMORY, hard))
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _too_slow(signum, frame):
    raise Slow(f"more than {SECONDS:g} seconds")


def _memory():
    """Bytes that can be written (Linux; elsewhere no limit is felt)."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[5]) * resource.getpagesize()
    except OSError:
        return 2**50


def problems(outcome, names, *, allowed=(), quiet=False):
    """What is wrong with the outcome of a call, in words.

    Parameters
    ----------
    outcome : Outcome
    names : collection of str
        Parameters and arguments, one of which an error has to name.
    allowed : tuple of types, optional
        Further errors that the docstring of the function names.
    quiet : bool, default=False
        Whether the data are such that nothing of them can show.
    """
    found = [*_wrong_error(outcome.error, names, allowed), *_wrong_warnings(outcome.warnings)]
    if outcome.printed:
        found.append(f"prints {outcome.printed[:200]!r}")
    for text in () if quiet else outcome.texts():
        leak = _DATA.search(text)
        if leak:
            found.append(f"quotes {leak.group()!r}: {text[:300]}")
    return found


def _wrong_error(error, names, allowed):
    if error is None or type(error) in allowed:
        return []
    if type(error) not in TYPED:
        return [f"raises {type(error).__name__}: {str(error)[:300]}"]
    text = str(error)
    raw = _RAW.search(text)
    if raw and not _names_one(text, names):
        return [f"raises raw words ({raw.group()!r}): {text[:300]}"]
    if isinstance(error, (NotFittedError, BudgetExceededError)) or _names_one(text, names):
        return []
    return [f"names no argument: {type(error).__name__}: {text[:300]}"]


_KNOWN = (
    "Expected 2D array",
    "Found array with",
    "Complex data",
    "The feature names should match",
    "Feature names are only supported",
    "output config must be in",
)
"""How errors of scikit-learn about the table begin that name no argument."""


def _names_one(text, names):
    return text.removeprefix("X: ").startswith(_KNOWN) or any(
        re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) for name in names
    )


def _wrong_warnings(caught):
    return [
        f"warns {kind.__name__}: {text[:300]}"
        for kind, text in caught
        if not issubclass(kind, EXPECTED_WARNINGS) and not _public_warning(text)
    ]


def _public_warning(text):
    """Scikit-learn's warnings about names of columns and about grids: of the call, not of rows."""
    return text.startswith(
        (
            "X has feature names, but",
            "X does not have valid feature names",
            "The total space of parameters",
        )
    )


def wrong_numbers(value):
    """Whether a result for finite rows holds something that is not finite."""
    try:
        numbers = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return not np.isfinite(numbers).all()


assert str(PLANT) == "7319"  # as the pattern of `_DATA` has it
