"""Every kind of bad input to every estimator: how does it end?

    python benchmarks/bad_input.py            # the table; exit status 1 if an outcome is not good
    python benchmarks/bad_input.py --write    # the same, into doc/benchmarks/bad_input.md
    python benchmarks/bad_input.py DPKMeans   # of some estimators

A good end is a ``ValueError``, ``TypeError`` or ``BudgetExceededError`` that names the parameter,
or a documented answer.
The others are: a typed error that does not name it, an error of another type ("raw"), an error that
quotes the data, an answer where none is documented, and anything that takes over 20 seconds.
`tests/test_bad_input.py` runs the same kinds.
"""

import argparse
import contextlib
import re
import signal
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import _run  # first: one thread
import numpy as np
import pandas as pd
from scipy.sparse import csc_matrix, csr_array, dok_array

import sklearn_dp
from sklearn_dp import PrivacyLedger
from sklearn_dp._base import BaseDPEstimator
from sklearn_dp.exceptions import BudgetExceededError
from sklearn_dp.ledger import LedgerCharge, PrivacyBudget

PAGE = _run.PAGES / "bad_input.md"
SECONDS = 20
SECRET = 7319.4825  # in all the data
X = np.full((12, 3), SECRET) + np.arange(36).reshape(12, 3)
TYPED = (TypeError, ValueError, BudgetExceededError)
GOOD = ("typed and named", "documented answer")
OUTCOMES = (*GOOD, "typed, not named", "raw", "quotes data", "accepted", "slow")


class Slow(BaseException):
    """Raised by the alarm; nothing that a library catches."""


@dataclass(frozen=True)
class Kind:
    """One kind of bad input.

    Attributes
    ----------
    group : str
        Where it comes in.
    bad : callable
        From a class of estimators to what is done; raises `LookupError` of `Unfit` where the
        estimator has no such parameter or method.
    names : str
        Regular expression of the parameter that an error has to name.
    answer : str
        Why an answer is right, too; empty: it is not.
    """

    group: str
    bad: Callable
    names: str
    answer: str = ""


class Unfit(Exception):
    """The estimator has no such parameter or method: not a case."""


# -- what is given ---------------------------------------------------------------------------------


def with_entry(value, dtype=None):
    """The rows with one entry replaced."""
    spoiled = X.astype(dtype or X.dtype)
    spoiled[len(X) // 2, 1] = value
    return spoiled


def frame(**columns):
    return pd.DataFrame(X, columns=["a", "b", "c"]).assign(**columns)


def named(*names):
    return pd.DataFrame(X, columns=list(names))


class Unreadable:
    """Data whose own code fails, with data in its words."""

    shape = X.shape

    def __len__(self):
        return len(X)

    def __array__(self, dtype=None, copy=None):
        raise OSError(f"row {SECRET}")


NUMBERS = "texts of numbers, and dates, are numbers to scikit-learn"
NAMES = "scikit-learn before 1.9 allows columns of the same name"
SPARSE = "sparse rows where the docstring of `fit` says so"
ROWS = {
    "NaN": lambda: with_entry(np.nan),
    "infinity": lambda: with_entry(np.inf),
    "an integer beyond floats": lambda: with_entry(10**400, object),
    "complex numbers": lambda: X + 1j,
    "words": lambda: np.char.add(X.astype(str), "x"),
    "objects": lambda: with_entry(object(), object),
    "None inside": lambda: with_entry(None, object),
    "pandas.NA inside": lambda: with_entry(pd.NA, object),
    "a list inside": lambda: with_entry([SECRET], object),
    "ragged lists": lambda: [[SECRET], [SECRET, 1.0]],
    "one dimension": lambda: X[:, 0],
    "three dimensions": lambda: X[None],
    "a number": lambda: SECRET,
    "None": lambda: None,
    "a text": lambda: f"{SECRET}",
    "bytes": lambda: X.tobytes(),
    "a dict": lambda: {"a": X[:, 0]},
    "a set": lambda: set(X[:, 0]),
    "a generator": lambda: (row for row in X),
    "a class": lambda: np.ndarray,
    "zero columns": lambda: X[:, :0],
    "zero rows": lambda: X[:0],
    "a structured array": lambda: np.array([tuple(row) for row in X], "f8,f8,f8"),
    "numpy.matrix": lambda: np.asmatrix(X),
    "a column of words": lambda: frame(a=f"{SECRET}m"),
    "a column of dates": lambda: frame(a=pd.Timestamp("2020-01-01")),
    "a column with NA": lambda: frame(a=pd.array([None, *X[1:, 0]], "Float64")),
    "names of mixed types": lambda: named("a", "b", 3),
    "data that cannot be read": Unreadable,
}
"""Rows that no estimator takes, but for entries of an encoder."""

CATEGORIES = "any entry is a category to DPOneHotEncoder: what cannot be one has no column"
ENTRIES = {
    "NaN", "infinity", "an integer beyond floats", "words", "objects", "None inside",
    "pandas.NA inside", "a list inside", "ragged lists", "a column of words", "a column of dates",
    "a column with NA",
}  # fmt: skip

ANSWERED = {
    "dates": (lambda: X.astype("M8[s]"), NUMBERS),
    "texts of numbers": (lambda: X.astype(str), NUMBERS),
    "two columns of one name": (lambda: named("a", "a", "b"), NAMES),
    "sparse, CSR": (lambda: csr_array(X), SPARSE),
    "sparse, CSC": (lambda: csc_matrix(X), SPARSE),
    "sparse, dictionary of keys": (lambda: dok_array(X), SPARSE),
    "sparse, with a NaN": (lambda: csr_array(with_entry(np.nan)), ""),
    "sparse, complex": (lambda: csr_array(X + 1j), ""),
}
"""Rows that are refused or have an answer that is documented."""

GROUPS = {
    "too short": lambda: X[1:, 0],
    "too long": lambda: np.append(X[:, 0], SECRET),
    "two dimensions": lambda: X,
    "a number": lambda: SECRET,
    "a NaN": lambda: with_entry(np.nan)[:, 1],
    "a None": lambda: [None, *X[1:, 0]],
    "a text": lambda: f"{SECRET}",
    "a generator": lambda: (value for value in X[:, 0]),
    "a dict": lambda: dict.fromkeys(X[:, 0]),
}
WEIGHTS = {
    "too short": lambda: np.ones(len(X) - 1),
    "two dimensions": lambda: np.ones((len(X), 2)),
    "negative": lambda: -np.ones(len(X)),
    "a NaN": lambda: np.full(len(X), np.nan),
    "infinite": lambda: np.full(len(X), np.inf),
    "words": lambda: ["heavy"] * len(X),
    "a text": lambda: "heavy",
}

HUGE = 10**400
PARAMETERS = {
    "epsilon": (0, -1.0, np.nan, np.inf, HUGE, 1e-300, "1", True, [1.0], 1 + 0j, pd.NA),
    "delta": (0.0, 1.0, 2, -1e-6, np.nan, "tiny", None, 5e-324, [1e-6]),
    "rho": (0.0, -1.0, np.nan, np.inf, "1", True),
    "bounds": (
        0.0, -1.0, np.nan, np.inf, "1", True, HUGE, 5e-324, (1.0, -1.0), (0.0, 0.0), (0.0, np.nan),
        (np.inf, np.inf), (0.0, [1.0, 1.0]), ([0.0] * 4, 1.0), (0.0, 1.0, 2.0), (None, None),
        {"low": 0, "high": 1}, ("a", "b"), (0j, 1j),
    ),
    "n_jobs": (0, 1.5, "all", np.nan),
    "random_state": ("1", -1, 1.5, True, [1, 2], np.nan),
    "ledger": (3, ["a"], {"epsilon": 1.0}, PrivacyBudget(epsilon=1.0, delta=1e-6), b"ledger"),
}  # fmt: skip
"""Values of the parameters that all estimators have."""

SIZES = (0, -1, 1.5, "8", "many", None, True, np.nan, np.inf, 10**9, HUGE, [2], 2 + 0j)
"""Of whatever counts something: clusters, components, blocks, points."""
COUNTS = ("n_clusters", "n_components", "n_points", "n_blocks")
DOCUMENTED_SIZES = {
    "0": "`n_components=0` is a PCA without components, as in scikit-learn",
    "None": "`n_components=None` is as many as there are features, as in `PCA`",
    "1000000000": "`n_points`: more than there are rows is no error, as their number is private",
}


def text_of(value):
    text = repr(value)
    return "10**400" if value is HUGE else text if len(text) < 40 else text[:30] + "..."


# -- what is done with it --------------------------------------------------------------------------


@cache
def fitted(cls):
    """One model for all kinds that only ask it."""
    return boxed(cls).fit(X)


def boxed(cls):
    """With bounds, where it takes any."""
    return cls(**({"bounds": 1e4} if "bounds" in parameters(cls) else {}))


def parameters(cls):
    return cls().get_params(deep=False)


def weighted(cls):
    """With a largest weight, where it takes weights."""
    return cls(**({"max_weight": 1.0} if "max_weight" in parameters(cls) else {}))


def fit_with(option, value, cls):
    if option not in parameters(cls):
        raise Unfit
    cls(**{option: value}).fit(X)


def fit_size(value, cls):
    """The first parameter that counts something; its name is that of the parameter."""
    name = size_of(cls)
    if name is None:
        raise Unfit
    cls(**{name: value}).fit(X)


def size_of(cls):
    return next((name for name in COUNTS if name in parameters(cls)), None)


def fit_rows(make, cls):
    cls().fit(make())


def ask_rows(make, cls):
    """All methods of a fitted estimator that take rows; each has to refuse them."""
    model = fitted(cls)
    methods = [name for name in ("predict", "transform", "score") if hasattr(model, name)]
    if not methods:
        raise Unfit
    errors = [_error(lambda name=name: getattr(model, name)(make())) for name in methods]
    if None in errors:
        return
    raise next((e for e in errors if not isinstance(e, TYPED)), errors[0])


def _error(call):
    try:
        call()
    except Exception as error:
        return error
    return None


def call(name, arguments, cls, **options):
    """A method of a fitted estimator."""
    model = fitted(cls)
    if not hasattr(model, name):
        raise Unfit
    getattr(model, name)(*arguments, **options)


def unfitted(cls):
    for name in ("predict", "transform", "score", "mahalanobis", "to_frame"):
        if hasattr(cls(), name):
            return getattr(cls(), name)(*([] if name == "to_frame" else [X]))
    raise Unfit


def renamed(cls):
    model = boxed(cls).fit(frame())
    name = next((n for n in ("predict", "transform", "score") if hasattr(model, n)), None)
    if name is None:
        raise Unfit
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        getattr(model, name)(named("a", "b", "d"))


def with_ledger(make, cls):
    with tempfile.TemporaryDirectory() as folder:
        ledger, options = make(Path(folder))
        cls(ledger=ledger).fit(X, **options)


def spent():
    ledger = PrivacyLedger(PrivacyBudget(epsilon=1.0, delta=1e-3))
    ledger.charge(LedgerCharge(epsilon=1.0, delta=1e-3))
    return ledger


def note(folder):
    path = folder / "notes.txt"
    path.write_text("not a ledger, but long enough to be taken for a file of some database")
    return path


def removed(folder):
    ledger = PrivacyLedger(PrivacyBudget(epsilon=9.0, delta=1e-3), folder / "ledger.sqlite")
    (folder / "ledger.sqlite").unlink()
    return ledger


def budget():
    return PrivacyBudget(epsilon=9.0, delta=1e-3)


LEDGERS = {
    "nothing left": lambda _: (spent(), {}),
    "a missing file": lambda folder: (str(folder / "missing"), {}),
    "another kind of file": lambda folder: (str(note(folder)), {}),
    "a folder": lambda folder: (str(folder), {}),
    "a file that is gone": lambda folder: (removed(folder), {}),
    "of another unit": lambda _: (PrivacyLedger(budget(), unit="group"), {}),
    "of rows, fit of groups": lambda _: (PrivacyLedger(budget()), {"groups": np.arange(12)}),
    "of another relation": lambda _: (PrivacyLedger(budget(), relation="replace the rows of"), {}),
}

Y = "`y` is ignored, as in scikit-learn, by estimators without a target"


def kinds():
    """All kinds by name, in the order of the table."""
    found = {}
    for name, make in ROWS.items():
        found[f"fit: {name}"] = Kind("rows of fit", partial(fit_rows, make), r"\bX\b")
    for name, (make, why) in ANSWERED.items():
        found[f"fit: {name}"] = Kind("rows of fit", partial(fit_rows, make), r"\bX\b", why)
    for name, make in ROWS.items():
        found[f"ask: {name}"] = Kind("rows of methods", partial(ask_rows, make), r"\bX\b")
    for option, values in PARAMETERS.items():
        for value in values:
            bad = partial(fit_with, option, value)
            found[f"{option}={text_of(value)}"] = Kind("parameters of all", bad, rf"\b{option}\b")
    both = lambda cls: cls(epsilon=2.0, rho=0.1).fit(X)  # noqa: E731
    found["epsilon and rho"] = Kind("parameters of all", both, "epsilon and rho")
    for value in SIZES:
        bad = partial(fit_size, value)
        why = DOCUMENTED_SIZES.get(text_of(value), "")
        found[f"size={text_of(value)}"] = Kind("sizes", bad, "|".join(COUNTS), why)
    for name, make in GROUPS.items():
        bad = lambda cls, make=make: cls().fit(X, groups=make())  # noqa: E731
        found[f"groups: {name}"] = Kind("groups and weights", bad, r"\bgroups\b")
    for name, make in WEIGHTS.items():
        bad = lambda cls, make=make: weighted(cls).fit(X, sample_weight=make())  # noqa: E731
        found[f"sample_weight: {name}"] = Kind("groups and weights", bad, "sample_weight")
    for name, y in {"too short": X[1:, 0], "words": ["a"] * 12, "two dimensions": X}.items():
        bad = lambda cls, y=y: cls().fit(X, y)  # noqa: E731
        found[f"y: {name}"] = Kind("groups and weights", bad, r"\by\b", Y)
    for name, make in LEDGERS.items():
        found[f"ledger: {name}"] = Kind("ledgers", partial(with_ledger, make), "ledger")
    return found | _calls()


def _calls():
    """Methods before their time, and arguments other than rows."""
    refused = {
        "before the fit": (unfitted, "fit"),
        "fewer columns than fitted": (partial(ask_rows, lambda: X[:, :2]), r"\bX\b"),
        "more columns than fitted": (partial(ask_rows, lambda: np.hstack([X, X])), r"\bX\b"),
        "other names than fitted": (renamed, "feature names"),
        "an unknown word": (lambda cls: cls(n_bananas=3), "n_bananas"),
        "set_params of an unknown word": (lambda cls: cls().set_params(n_bananas=3), "n_bananas"),
        "an unknown argument of fit": (lambda cls: cls().fit(X, bananas=3), "bananas"),
        "positional budget": (lambda cls: cls(3, 1.0).fit(X), "positional"),
        "plan of no features": (lambda cls: cls().privacy_plan(0), "n_features"),
        "plan of 2.0 features": (lambda cls: cls().privacy_plan(2.0), "n_features"),
        "plan of '3' features": (lambda cls: cls().privacy_plan("3"), "n_features"),
        "plan of 10**30 features": (lambda cls: cls().privacy_plan(10**30), "n_features"),
        "plan of a person": (lambda cls: cls().privacy_plan(3, unit="person"), "unit"),
        "plan of no unit": (lambda cls: cls().privacy_plan(3, unit=None), "unit"),
        "set_output of bananas": (_set_output, "transform|output config"),
        "level of 2": (partial(call, "confidence_interval", (2,)), "level"),
        "interval of no attribute": (
            partial(call, "confidence_interval", (), attribute="bananas"),
            "attribute",
        ),
        "private_score, epsilon=0": (partial(call, "private_score", (X,), epsilon=0), "epsilon"),
        "private_score, ledger=3": (partial(call, "private_score", (X,), ledger=3), "ledger"),
        "private_score, max_distance=-1": (
            partial(call, "private_score", (X,), max_distance=-1),
            "max_distance",
        ),
        "sample of 0": (partial(call, "sample", (0,)), "n_samples"),
        "sample of 1.5": (partial(call, "sample", (1.5,)), "n_samples"),
    }
    return {name: Kind("calls", bad, names) for name, (bad, names) in refused.items()}


def _set_output(cls):
    if not hasattr(cls, "set_output"):
        raise Unfit
    boxed(cls).set_output(transform="bananas").fit(X).transform(X)


# -- how it ends -----------------------------------------------------------------------------------


@contextlib.contextmanager
def time_limit():
    """An alarm, where the system has one."""

    def ring(*_):
        raise Slow

    if not hasattr(signal, "SIGALRM"):
        yield
        return
    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def outcome(kind, cls):
    """How one kind ends: a word of `OUTCOMES` and the error; None for what is no case."""
    try:
        with warnings.catch_warnings(), time_limit():
            warnings.simplefilter("ignore")
            kind.bad(cls)
    except Unfit:
        return None
    except Slow:
        return "slow", ""
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        if str(SECRET)[:6] in f"{text} {error!r} {error.__cause__!r} {error.__context__!r}":
            return "quotes data", text
        if not isinstance(error, TYPED):
            return "raw", text
        named_it = re.search(kind.names, str(error)) is not None
        return ("typed and named" if named_it else "typed, not named"), text
    return ("documented answer" if kind.answer else "accepted"), ""


def run(classes, chosen):
    """Outcomes by estimator and kind."""
    return {
        (name, kind): end
        for name, cls in classes.items()
        for kind, about in chosen.items()
        if (end := outcome(of_categories(name, kind, about), cls)) is not None
    }


def of_categories(name, kind, about):
    """A kind of input for one estimator: to an encoder any entry is a category."""
    taken = name == "DPOneHotEncoder" and kind.split(": ")[-1] in ENTRIES
    return replace(about, answer=CATEGORIES) if taken else about


def bad_ends(ends):
    """Lines about what did not end well."""
    return [
        f"{name}, {kind}: {word} {text}".rstrip()
        for (name, kind), (word, text) in ends.items()
        if word not in GOOD
    ]


def table(ends):
    """Lines of Markdown: outcomes by estimator, and the kinds with a documented answer."""
    names = list(dict.fromkeys(name for name, _ in ends))
    counts = {name: Counter(ends[key][0] for key in ends if key[0] == name) for name in names}
    counts["all"] = sum(counts.values(), Counter())
    lines = [f"| estimator | kinds | {' | '.join(OUTCOMES)} |", "|---" * (len(OUTCOMES) + 2) + "|"]
    for name, each in counts.items():
        cells = [str(each[word]) for word in OUTCOMES]
        lines.append(f"| {name} | {each.total()} | {' | '.join(cells)} |")
    return lines


def answers(ends):
    """Lines about the documented answers: of which kinds, by how many estimators, and why."""
    every = kinds()
    given = Counter(kind for (_, kind), (word, _) in ends.items() if word == "documented answer")
    lines = ["| kind | estimators that answer | why |", "|---|---|---|"]
    return [*lines, *(f"| {kind} | {n} | {every[kind].answer} |" for kind, n in given.items())]


TEXT = """# Bad input

Written by `python benchmarks/bad_input.py --write`: {n} kinds of bad input to {m} estimators. A
good end is a `ValueError`, `TypeError` (or what derives from them) or `BudgetExceededError` that
names the parameter, or an answer that is documented. A kind that asks for a parameter or method
that an estimator does not have is no case.

"""


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("estimators", nargs="*", help="all of them by default")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    options = parser.parse_args(argv)
    public = {getattr(sklearn_dp, name) for name in sklearn_dp.__all__}
    public_classes = [kind for kind in public if isinstance(kind, type)]
    classes = {kind.__name__: kind for kind in public_classes if issubclass(kind, BaseDPEstimator)}
    classes = {name: classes[name] for name in options.estimators or sorted(classes)}
    every = kinds()
    ends = run(classes, every)
    text = TEXT.format(n=len(every), m=len(classes)) + "\n".join(
        [*table(ends), "", "Documented answers:", "", *answers(ends)]
    )
    print(text, *bad_ends(ends), sep="\n")
    if options.write:
        PAGE.write_text(text + "\n", encoding="utf-8")
    return 1 if bad_ends(ends) else 0


if __name__ == "__main__":
    sys.exit(main())
