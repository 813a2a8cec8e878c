"""Data for audits, as pairs of neighbors, and what an observer sees of a fit.

An audit runs a fit, and collects everything that it shows to the world: its *face* (pickle,
attributes in memory, answers of all methods to public rows, repr, report, warnings, prints, log,
error). Two fits with the same releases have to have the same face, byte by byte.

Neighbors have one unit more, or one unit less.
"""

from __future__ import annotations

import inspect
import io
import pickle
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils import get_tags

from .._privacy._trace import trace
from .._silence import overheard
from .._sklearn_compat import with_callbacks
from ..exceptions import PrivacyWarning, UtilityWarning

_LIBRARIES = {"numpy", "scipy", "sklearn", "joblib", "threadpoolctl", "dp_accounting"}


class Explosion(Exception):
    """Raised by the audit inside a fit on purpose."""


def is_of_audit(error: BaseException, *, inside_fit: bool = False) -> bool:
    """True if the audit itself raised an exception by mistake: the innermost frame outside
    libraries is the audit's. `inside_fit`: only what it does after a fit has begun counts."""
    if isinstance(error, AssertionError | Explosion):
        return False
    modules = [module_of(frame) for frame, _ in traceback.walk_tb(error.__traceback__)]
    if inside_fit:
        while modules and _is_audit(modules[0]):
            modules.pop(0)
    last = next((name for name in reversed(modules) if not is_library(name)), "")
    return _is_audit(last)


def module_of(frame: Any) -> str:
    return frame.f_globals.get("__name__", "")


def is_library(name: str) -> bool:
    top = name.split(".")[0]
    return top != "__main__" and (top in _LIBRARIES or top in sys.stdlib_module_names)


def _is_audit(name: str) -> bool:
    return f"{name}.".startswith(f"{__package__}.")


# -- observe ---------------------------------------------------------------------------------------


def prepared(estimator: Any, **params: Any) -> Any:
    """A clone with these parameters, no ledger, and reproducible noise."""
    copy = clone(estimator)
    return copy.set_params(**{"ledger": None, "random_state": 0, **params})


def accepts_groups(estimator: Any) -> bool:
    """True if the estimator knows privacy units of several rows."""
    return "groups" in inspect.signature(estimator.fit).parameters


def n_features_of(X: Any) -> int:
    """Number of columns; also of an array without rows."""
    return int(np.shape(X)[1])


def n_features_seen(estimator: Any, X: Any) -> int:
    """Number of columns that a fit learns from: without the one that holds a key."""
    return n_features_of(X) - (getattr(estimator, "by", None) is not None)


def target_of(estimator: Any, X: Any) -> np.ndarray | None:
    """A target for an estimator that needs one, by the first feature of each row, or None."""
    if not get_tags(estimator).target_tags.required:
        return None
    first = np.asarray(getattr(X, "rows", X))[:, 0]  # watched rows are not looked at by this
    if not is_classifier(estimator):
        return np.array(first)
    classes = getattr(estimator, "classes", None)
    return np.asarray([0, 1] if classes is None else classes)[:2][(first > 0).astype(int)]


@dataclass(frozen=True)
class Outcome:
    """A fit that was run, and what it showed."""

    estimator: Any  # fitted, unless there is an error
    warnings: tuple[tuple[type[Warning], str], ...]  # category and text
    error: Exception | None
    printed: str = ""  # what went to the standard streams and to the log

    def face(self, html: bool = False) -> dict[str, Any]:
        """Everything shown, by name: pickle, memory, answers, texts, warnings, prints, error."""
        error = ""
        if self.error is not None:
            error = f"{self.error!r} {self.error.__cause__!r} {self.error.__context__!r}"
        shown: dict[str, str | bytes] = {
            "error": error,
            "printed": self.printed,
            "warnings": "\n".join(f"{kind.__name__}: {text}" for kind, text in self.warnings),
        }
        if self.error is None:
            shown |= {
                "pickle": pickle.dumps(self.estimator, protocol=5),
                "memory": _memory(self.estimator),
                "repr": _texts(self.estimator),
                "report": repr(self.estimator.privacy_report_),
                **_answers(self.estimator),
            }
            if html:
                html_text = self.estimator._repr_html_()
                html_text += self.estimator.privacy_report_._repr_html_()
                shown["html"] = re.sub(r"sk-[a-z-]*id-\d+", "", html_text)  # running numbers
        return shown


def _texts(estimator: Any) -> str:
    """Return its `repr`, and its `str` if its class has one of its own."""
    text, classes = repr(estimator), type(estimator).__mro__[:-1]
    return f"{text} {estimator}" if any("__str__" in vars(each) for each in classes) else text


def _memory(estimator: Any) -> bytes:
    """All attributes but documented in-memory ones, also those that ``__getstate__`` hides."""
    return b"".join(
        _bytes((name, value))
        for name, value in sorted(vars(estimator).items())
        if name != "labels_"
    )


def _bytes(value: Any) -> bytes:
    """Return equal bytes for equal values, however they came to be."""
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, protocol=5)
    pickler.fast = True  # no memo: whether two equal strings are one object makes no difference
    pickler.dump(value)
    return buffer.getvalue()


# Methods that a fitted estimator has for public rows, or that need nothing.
_METHODS = (
    *("predict", "predict_proba", "transform", "inverse_transform", "score", "score_samples"),
    *("decision_function", "mahalanobis", "get_precision", "get_feature_names_out", "aic", "bic"),
)


def probe(n_features: int) -> np.ndarray:
    """Public rows to ask a fitted estimator about: small, large, zero, of either sign."""
    rows = np.sin(np.arange(1.0, 7 * n_features + 1)).reshape(7, n_features)
    return rows * np.array([0.0, 1e-3, 1.0, 3.0, 30.0, 1e3, 1e6])[:, None]


def _answers(estimator: Any) -> dict[str, Any]:
    """Return what every public method says about public rows, also from state in modules."""
    rows = probe(estimator.n_features_in_)
    return {
        name: _answer(getattr(estimator, name), rows)
        for name in _METHODS
        if hasattr(estimator, name)
    }


@lru_cache(maxsize=256)
def _takes_rows(function: Callable[..., Any]) -> bool:
    """True if a method, as its class has it, takes rows."""
    return "X" in inspect.signature(function).parameters


def _answer(method: Callable[..., Any], rows: np.ndarray) -> bytes:
    """Return the result, error and warnings of one method of the fitted estimator, as bytes."""
    given = (rows,) if _takes_rows(getattr(method, "__func__", method)) else ()
    with overheard(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            answer = _bytes(method(*given))
        except Exception as error:  # an answer too, that may not depend on the data
            answer = repr(error).encode()
    return answer + "".join(str(item.message) for item in caught).encode()


def run_fit(
    estimator: Any,
    X: Any,
    groups: Any = None,
    *,
    internal: bool = False,
    recorder: Any = None,
    strict: bool = True,
) -> Outcome:
    """Fit `estimator` in place and note what happens; a mistake of the recorder is raised.

    `internal` leaves out scikit-learn's validation, which refuses an empty `X`. `strict`: all
    warnings are errors but the package's own, and numpy raises whatever it can; what overflows on
    one of two neighbors is then an error on one of them."""
    error = None
    numeric = np.errstate(all="raise") if strict else nullcontext()
    with (
        overheard() as heard,
        warnings.catch_warnings(record=True) as caught,
        trace(recorder),
        numeric,
    ):
        warnings.simplefilter("error" if strict else "always")
        for kind in (PrivacyWarning, UtilityWarning):
            warnings.simplefilter("always", kind)
        try:
            if internal:
                _fit_internal(estimator, X, groups)
            else:
                options = {"groups": groups, "y": target_of(estimator, X)}
                estimator.fit(X, **{k: v for k, v in options.items() if v is not None})
        except Exception as raised:  # whatever a fit raises is a finding, for the caller to judge
            if is_of_audit(raised, inside_fit=True):
                raise
            error = raised
    shown = tuple((item.category, str(item.message)) for item in caught)
    return Outcome(estimator, shown, error, heard.getvalue())


@with_callbacks  # which tidies up what belongs to scikit-learn
def _fit_internal(estimator: Any, X: Any, groups: Any) -> None:
    """Fit without scikit-learn's validation: the empty data set is a neighbor of single units."""
    session = estimator._open_session(X, "row" if groups is None else "group")
    estimator.n_features_in_ = n_features_of(X)
    estimator._fit_session(X, estimator._units(X, groups), session)


# -- leaks -----------------------------------------------------------------------------------------


_DIGITS = (6, 7, 8, 10, 12, 15, 17)
_FEWEST_DIGITS = 6  # of a value, to be told from chance: 1.5 occurs in any text
_MOST_VALUES = 300


def scan_for_leaks(
    estimator: BaseEstimator, X: ArrayLike, *, groups: ArrayLike | None = None
) -> list[str]:
    """Fit a clone and search everything that it shows for values of `X`.

    It searches the pickle, the texts (repr, report, HTML displays), the warnings, and the errors of
    fits and predictions on corrupted data: NaN, infinite or complex values, strings, wrong shapes.

    Parameters
    ----------
    estimator : estimator of this package
        Clones are fitted.
    X : ndarray of shape (n_samples, n_features)
        Values with fewer than six significant digits could match by chance and are left out; random
        numbers work best.
    groups : array-like of shape (n_samples,), optional
        The unit of each row.

    Returns
    -------
    leaks : list of str
        The place, row, column and form of each value found; empty if there are none.

    Notes
    -----
    Forms searched: the eight bytes of a float64 and the bytes of the two adjacent float32, in both
    byte orders; decimals with 6 to 17 digits. Values derived from the data (a sum, a count) are
    found by :func:`replay_audit`, not here.
    """
    X = np.asarray(X, dtype=np.float64)
    sought = needles(X)
    return [
        f"{where}: {leak}"
        for where, text in _shown(estimator, X, groups)
        for leak in search(sought, text)
    ]


_NUMBER = re.compile(rb"\d+(?:\.\d*)?(?:[eE][+-]?\d+)?")


@dataclass
class Needles:
    """Texts and bytes that would betray a value, each with the value that it betrays."""

    # decimals without a sign: a text may show a minus as something else
    numbers: dict[bytes, str] = field(default_factory=dict)
    binary: dict[bytes, str] = field(default_factory=dict)


def search(sought: Needles, text: str | bytes) -> list[str]:
    """Return the needles that a text (as whole numbers) or bytes (anywhere) hold."""
    data = text if isinstance(text, bytes) else text.encode()
    matches = {sought.numbers[text] for text in set(_NUMBER.findall(data)) & set(sought.numbers)}
    return sorted(matches | {what for needle, what in sought.binary.items() if needle in data})


@np.errstate(over="ignore")
def needles(X: Any) -> Needles:
    """All that would betray one of at most 300 values of `X`; four bytes alone occur by chance."""
    sought = Needles()
    places = np.argwhere(np.isfinite(X))
    for i, j in places[np.linspace(0, len(places) - 1, min(len(places), _MOST_VALUES), dtype=int)]:
        value, what = abs(float(X[i, j])), f"row {i}, column {j}"
        if _n_digits(repr(value)) >= _FEWEST_DIGITS:
            for order in "<>":
                sought.binary[np.array(X[i, j], dtype=order + "f8").tobytes()] = what
            texts = {repr(value), str(np.float32(value))}
            texts |= {f"{value:.{p}{kind}}" for p in _DIGITS for kind in "gfe"}
            enough = [text.encode() for text in texts if _n_digits(text) >= _FEWEST_DIGITS]
            sought.numbers |= dict.fromkeys(enough, what)
    for matrix, name in ((X, "row"), (X.T, "column")):
        for i, j in np.ndindex(min(len(matrix), _MOST_VALUES), max(matrix.shape[1] - 1, 0)):
            pair = matrix[i, j : j + 2].astype(np.float32)
            if min(map(_n_digits, map(str, pair))) >= _FEWEST_DIGITS and pair[0] != pair[1]:
                for order in "<>":
                    what = f"float32 bytes of {name} {i}"
                    sought.binary[pair.astype(order + "f4").tobytes()] = what
    return sought


def _n_digits(text: str) -> int:
    """Significant digits of a number in a text; none of inf and nan."""
    return len(re.sub(r"[^0-9]", "", text.split("e")[0]).strip("0"))


# -- everything that is shown ----------------------------------------------------------------------


def _shown(estimator: Any, X: Any, groups: Any) -> Iterator[tuple[str, Any]]:
    """Yield pairs (where, text or bytes), errors too, in which NumPy quotes values."""
    # Not as a strict user: what warnings say is to be read.
    outcome = run_fit(prepared(estimator), X, groups, strict=False)
    yield from outcome.face(html=True).items()
    if outcome.error is not None:
        return
    yield "pickle (protocol 0)", pickle.dumps(outcome.estimator, protocol=0)
    yield "plan", repr(outcome.estimator.privacy_plan(X.shape[1]))
    yield "releases", repr(outcome.estimator.privacy_report_.releases)
    for name, spoiled in spoiled_data(X):
        yield f"fit of {name}", _text_of(prepared(estimator).fit, spoiled)
        for method in ("predict", "transform", "score"):
            if hasattr(outcome.estimator, method):
                yield (f"{method} of {name}", _text_of(getattr(outcome.estimator, method), spoiled))
    if accepts_groups(estimator):
        for name, wrong in (("long", X.ravel()), ("matrix", X), ("short", X[1:, 0])):
            yield f"groups ({name})", _text_of(prepared(estimator).fit, X, groups=wrong)


def spoiled_data(X: Any) -> list[tuple[str, Any]]:
    """Data that has to be refused, with the values of `X` in it."""
    nan, infinite = X.copy(), X.copy()
    nan[-1, 0], infinite[-1, 0] = np.nan, np.inf
    mixed = X.astype(object)
    mixed[0, 0] = f"{X[0, 0]!r}?"
    with_dict = X.astype(object)
    with_dict[0, 0] = {X[0, 0]: 1}
    return [
        ("NaN", nan),
        ("infinity", infinite),
        ("complex numbers", X * 1j),
        ("strings", np.char.add(X.astype(str), "?")),
        ("mixed objects", mixed),
        ("dicts", with_dict),
        ("one dimension", X[0]),
        ("three dimensions", X[None]),
        ("a number", X[0, 0]),
        ("no features", X[:, :0]),
        ("ragged rows", [*X.tolist(), [1.0]]),
    ]


def _text_of(method: Callable[..., Any], *args: Any, **options: Any) -> str:
    """Warnings and error of a call that should fail, with `__cause__` and `__context__`."""
    texts = []
    with overheard(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            method(*args, **options)
        except Exception as raised:
            error: BaseException | None = raised
            while error is not None:
                texts.append(f"{error!r} {error}")
                error = error.__cause__ or error.__context__
    return " ".join([*texts, *(str(item.message) for item in caught)])


def ids(groups: Any) -> list[Any]:
    """The ids of any array-like, as they are: numpy would make equal texts of 1 and "1"."""
    return list(groups)


def unit_numbers(groups: Any) -> np.ndarray:
    """The number of the unit of each row, by a dictionary over the ids as given."""
    number_of: dict[object, int] = {}
    return np.array(
        [number_of.setdefault(value, len(number_of)) for value in ids(groups)], dtype=np.int64
    )


def fresh_id(groups: Any, rng: np.random.Generator) -> Any:
    """An id that no unit has: of the kind of the others, or in half of the cases of another one."""
    values = ids(groups)
    known = set(values)
    k = int(rng.integers(len(known) + 2))
    others: list[Any] = [
        *(0.5 + k, -1 - k, 2**53 + 1 + k, 2**63 + k, 2**70 + k, f"unit {k}", str(k), b"unit"),
        *(("unit", k), frozenset({k, "unit"}), date(1900 + k % 100, 1, 1)),
    ]
    rng.shuffle(others)
    near = [new for i in rng.permutation(len(known) + 2) for new in _alike(values, int(i))]
    # A list has no dtype and takes any object, like an array of objects.
    typed = str(getattr(groups, "dtype", "object")).lower() != "object"
    candidates = [*near, *others] if typed or rng.random() < 0.5 else others
    return next(new for new in candidates if new not in known)


def _alike(values: Any, k: int) -> list[Any]:
    """Ids of the kind of the first of those there are."""
    first = values[0] if values else 0
    match first:
        case bool() | np.bool_():
            return [bool(k % 2)]
        case np.datetime64() | np.timedelta64():
            return [first + k]
        case Integral():
            return [k]
        case Real():
            return [k + 0.5]
        case bytes():
            return [first + b"%d" % k]
        case str():
            return [first + str(k)]
        case date():
            return [first.replace(year=1900 + k)]
    return []


def refilled(groups: Any, values: Any) -> Any:
    """An array of the kind of `groups` with other ids, equal to `values`; else a list."""
    if isinstance(groups, (list, tuple)):
        return type(groups)(values)
    try:
        if not isinstance(groups, np.ndarray):
            # Categories of pandas are those that occur; it is about to refuse others.
            dtype = "category" if str(groups.dtype) == "category" else groups.dtype
            full = type(groups)(values, dtype=dtype)
        elif groups.dtype.kind in "US":
            full = np.array(values, dtype=groups.dtype.type)  # as wide as it takes
        else:
            full = np.empty(len(values), dtype=groups.dtype)
            for place, value in enumerate(values):
                full[place] = value
        return full if ids(full) == values else values
    except (ArithmeticError, TypeError, ValueError):
        return values


# -- neighbors -------------------------------------------------------------------------------------


KINDS = (
    "random", "duplicate", "far", "farthest", "zero", "tiny", "released", "first", "last",
    "remove", "remove_first", "remove_last",
)  # fmt: skip
"""The units by which neighbors differ; see `neighboring_pairs`."""

_FARTHEST = 1.7e308  # sums of two overflow, and of both signs are no number
_LARGEST_SCALE = 1e300  # of the data, for rows that must stay finite at a multiple of it
_MOST_ROWS = 5  # of an added group


@dataclass(frozen=True)
class Neighbor:
    """A data set that differs from another one by one unit.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    X : ndarray of shape (n_samples, n_features)
        All the rows.
    groups : array-like of shape (n_samples,), or None
        Ids as given, in an array of the same type if it can hold them.
    units : ndarray of int of shape (n_units,)
        For each unit, its index in the other data set, or -1 for the added one. Units are rows, or
        groups in the order of their first rows.
    """

    kind: str
    X: np.ndarray
    groups: object
    units: np.ndarray


def neighboring_pairs(
    X: ArrayLike,
    rng: int | np.random.Generator | None = None,
    *,
    kinds: Sequence[str] = KINDS,
    groups: ArrayLike | None = None,
    points: ArrayLike | None = None,
    repeats: int = 1,
) -> Iterator[Neighbor]:
    """Generate neighbors of a data set, random and adversarial.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        May be empty.
    rng : int or Generator, optional
        Source of randomness for rows, positions and the choice of units.
    kinds : sequence of str, default=KINDS
        Added unit: ``"random"`` (near the others), ``"duplicate"`` (of an existing row), ``"far"``
        (1e6 times the scale of the data), ``"farthest"`` (1.7e308, of random signs), ``"zero"``,
        ``"tiny"`` (subnormal numbers), ``"released"`` (equal to one of `points`), ``"first"`` and
        ``"last"`` (at that end, where the others are anywhere). Removed unit: ``"remove"``,
        ``"remove_first"``, ``"remove_last"``.
    groups : array-like of shape (n_samples,), optional
        The unit of each row. An added group has up to five rows, at random positions, and a new id:
        of the same type, or, if the array can hold anything, of another type.
    points : ndarray of shape (n_points, n_features), optional
        Released points, such as centers: the most sensitive positions for a row.
    repeats : int, default=1
        Number of times to go through `kinds`.

    Yields
    ------
    neighbor : Neighbor
        One for each kind; none that removes a unit from an empty data set.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dp.audit import neighboring_pairs
    >>> (pair,) = neighboring_pairs(np.zeros((3, 2)), 0, kinds=["remove_first"])
    >>> pair.X.shape, pair.units.tolist()
    ((2, 2), [1, 2])
    """
    rng = np.random.default_rng(rng)
    X = np.asarray(X, dtype=np.float64)
    for kind in [kind for _ in range(repeats) for kind in kinds]:
        if not kind.startswith("remove"):
            yield _with_unit(kind, X, groups, rng, points)
        elif len(X):
            yield _without_unit(kind, X, groups, rng)


def unrelated(X: Any, rng: np.random.Generator, *, groups: Any = None) -> Iterator[Neighbor]:
    """Data sets that have nothing in common with `X` but the number of features."""
    n, d = X.shape
    base = ndtri(rng.random((2 * n + 3, d)))
    for other in (1e3 * base, np.zeros((n, d)), np.full((n // 2 + 1, d), 7.0), 1e-9 * base + 5):
        names = None if groups is None else rng.integers(0, len(other), len(other))
        size = len(other) if names is None else len(np.unique(names))
        yield Neighbor("unrelated data", other, names, np.full(size, -1))


def _without_unit(kind: str, X: Any, groups: Any, rng: np.random.Generator) -> Neighbor:
    numbers = np.arange(len(X)) if groups is None else unit_numbers(groups)
    n_units = int(numbers.max()) + 1
    gone = {"remove": int(rng.integers(n_units)), "remove_first": 0, "remove_last": n_units - 1}[
        kind
    ]
    stay = np.flatnonzero(numbers != gone)
    if groups is not None:
        values = ids(groups)
        groups = refilled(groups, [values[i] for i in stay])
    return Neighbor(kind, X[stay], groups, np.delete(np.arange(n_units), gone))


def _with_unit(kind: str, X: Any, groups: Any, rng: np.random.Generator, points: Any) -> Neighbor:
    size = 1 if groups is None else int(rng.integers(1, _MOST_ROWS + 1))
    rows = np.array([_row(kind, X, rng, points) for _ in range(size)])
    places = {"first": np.zeros(size, int), "last": np.full(size, len(X))}.get(
        kind, rng.integers(0, len(X) + 1, size)
    )
    wider = np.insert(X, places, rows, axis=0)
    if groups is None:
        return Neighbor(kind, wider, None, np.insert(np.arange(len(X)), places, -1))
    numbers = unit_numbers(groups)
    # Of the units there are, those that come before the first new row keep their numbers.
    before = len(set(numbers[: places.min()].tolist()))
    units = np.insert(np.arange(len(set(numbers.tolist()))), before, -1)
    values, new = ids(groups), fresh_id(groups, rng)
    for place in sorted(places.tolist(), reverse=True):
        values.insert(place, new)
    return Neighbor(kind, wider, refilled(groups, values), units)


def _row(kind: str, X: Any, rng: np.random.Generator, points: np.ndarray) -> np.ndarray:
    """One row of an added unit."""
    d = X.shape[1]
    direction = ndtri(rng.random(d))
    scale = min(float(np.abs(X).max(initial=1.0)), _LARGEST_SCALE)
    near = X[rng.integers(len(X))] if len(X) else np.zeros(d)
    if kind == "released" and points is not None and len(points):
        return np.asarray(points[rng.integers(len(points))], dtype=np.float64)
    signs = np.where(direction > 0, 1.0, -1.0)
    fixed = {
        "duplicate": near,
        "far": 1e6 * scale * direction,
        "farthest": _FARTHEST * signs,
        "zero": np.zeros(d),
        "tiny": 5e-324 * signs,
    }
    return fixed.get(kind, near + scale * 10.0 ** rng.integers(-3, 1) * direction)
