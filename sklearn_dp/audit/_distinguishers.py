"""Everything that a fitted estimator shows, as numbers and as words.

What an estimator shows is what its pickle holds (in-memory conveniences such as ``labels_`` are not
in it), what its report and its texts say, how long these are, and what the fit warned of or raised.

Every attribute is flattened under a name of its own, so that a column of the table means the same
in all fits; an attribute that is missing in some of them is a column with holes, which says
something too. Lengths are there because a text or a list that grows with n tells n.
"""

import pickle
from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy.special import log_ndtr, ndtr
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from .._privacy._trace import Event, Trace
from .._silence.suppress_output import suppress_output
from ._observe import Outcome, run_fit
from ._replay import Replay
from .mechanisms import law_of

_MOST_NUMBERS = 64  # of one attribute
_PARAMETERS_OF_RELEASES = ("sensitivity", "sigma", "rho", "delta")


def shown(outcome: Outcome) -> tuple[dict[str, float], dict[str, str]]:
    """Return numbers and words that one fit shows: of an unpickled copy, or error and warnings if
    it fails."""
    numbers: dict[str, float] = {}
    words = {
        "warnings": " / ".join(f"{kind.__name__}: {text}" for kind, text in outcome.warnings),
        "error": "" if outcome.error is None else repr(outcome.error),
        "printed": outcome.printed,
    }
    if outcome.error is not None:
        return numbers, words
    data = pickle.dumps(outcome.estimator, protocol=5)
    numbers["length of the pickle"] = float(len(data))
    report = getattr(outcome.estimator, "privacy_report_", None)
    if report is not None:
        _report(report, numbers, words)
    attributes = {
        name: value for name, value in vars(pickle.loads(data)).items() if name.endswith("_")
    }
    for name, value in attributes.items():
        _enter(name, value, numbers, words)
    _totals(attributes, numbers)
    return numbers, words


def _report(report: Any, numbers: dict[str, Any], words: dict[str, Any]) -> None:
    """Return the public columns of a report. They are constant, unless scales or releases follow
    the data."""
    numbers["length of the report"] = float(len(repr(report)))
    numbers["number of releases"] = float(len(report.releases))
    words["releases"] = " / ".join(row["release"] for row in report.releases)
    words["notes of the report"] = " / ".join(report.warnings)
    for i, row in enumerate(report.releases[:_MOST_NUMBERS]):
        for name in _PARAMETERS_OF_RELEASES:
            _enter(f"report: {name} of release {i}", row.get(name), numbers, words)


def _enter(name: str, value: Any, numbers: dict[str, Any], words: dict[str, Any]) -> None:
    """Enter an attribute under its name, and its parts under longer ones; other objects by class
    and pickle length."""
    if value is None or isinstance(value, (str, bytes)):
        words[name] = repr(value)
    elif isinstance(value, dict):
        words[f"keys of {name}"] = repr(sorted(map(str, value)))
        _enter_parts(name, value.items(), numbers, words)
    elif isinstance(value, (list, tuple)) and not _is_numeric(value):
        numbers[f"length of {name}"] = float(len(value))
        _enter_parts(name, enumerate(value), numbers, words)
    elif _is_numeric(value):
        _enter_array(name, np.asarray(value), numbers, words)
    else:
        words[name] = type(value).__name__
        numbers[f"length of the pickle of {name}"] = float(len(pickle.dumps(value, protocol=5)))


def _enter_parts(name: str, parts: Any, numbers: dict[str, Any], words: dict[str, Any]) -> None:
    """The first 64 parts under longer names: more columns than a learner can use."""
    for key, part in list(parts)[:_MOST_NUMBERS]:
        _enter(f"{name}[{key}]", part, numbers, words)


def _is_numeric(value: Any) -> bool:
    try:
        return np.asarray(value).dtype.kind in "bifu"
    except ValueError:  # a list of arrays of several shapes
        return False


def _enter_array(
    name: str, array: np.ndarray, numbers: dict[str, Any], words: dict[str, Any]
) -> None:
    """Entries of an array: by place, in order of size, their sum and their norm."""
    words[f"shape of {name}"] = f"{array.shape} {array.dtype}"
    flat = array.astype(np.float64).ravel()
    if array.ndim == 0:
        numbers[name] = float(flat[0])
        return
    # In order of size too: places may be arbitrary.
    for i, (number, ordered) in enumerate(
        zip(flat[:_MOST_NUMBERS], np.sort(flat)[::-1], strict=False)
    ):
        numbers[f"{name}[{i}]"] = number
        if len(flat) > 1:
            numbers[f"{name} sorted[{i}]"] = ordered
    if len(flat) > 1:
        with np.errstate(over="ignore", invalid="ignore"):
            numbers |= {f"sum of {name}": flat.sum(), f"norm of {name}": np.linalg.norm(flat)}


def _totals(attributes: Any, numbers: dict[str, Any]) -> None:
    """Return points times their weights: multiplied out, the sum behind a center can be
    seen again."""
    arrays = {
        name: np.atleast_1d(np.asarray(value, dtype=np.float64))
        for name, value in attributes.items()
        if value is not None and _is_numeric(value)
    }
    for other, weights in arrays.items():
        if weights.ndim > 1 or not ("weight" in other or "size" in other):
            continue
        for name, points in arrays.items():
            if name == other or points.ndim > 2 or len(weights) not in (1, len(points)):
                continue
            with np.errstate(over="ignore", invalid="ignore"):
                total = weights @ points if len(weights) == len(points) else weights[0] * points
            for i, number in enumerate(np.ravel(total)[:_MOST_NUMBERS]):
                numbers[f"{name} times {other}[{i}]"] = float(number)


class Table:
    """A table of many fits: columns of numbers, NaN where a fit has no such number, and of
    words."""

    def __init__(self, rows: list[tuple[dict[str, float], dict[str, str]]]) -> None:
        self.n_rows = len(rows)
        self.numbers = _table_columns([row[0] for row in rows], np.nan, np.float64)
        self.words = _table_columns([row[1] for row in rows], "(missing)", object)


def _table_columns(rows: Any, missing: Any, dtype: Any) -> dict[str, np.ndarray]:
    """One column for each name in any row; constant ones, which tell nothing, are left out."""
    columns = {}
    for i, row in enumerate(rows):
        for name, value in row.items():
            if name not in columns:
                columns[name] = np.full(len(rows), missing, dtype=dtype)
            columns[name][i] = value
    return {name: column for name, column in columns.items() if not _is_constant(column)}


def _is_constant(column: np.ndarray) -> bool:
    if column.dtype == object:
        return bool(np.all(column == column[0]))
    return bool(np.array_equal(column, np.full(len(column), column[0]), equal_nan=True))


# -- distinguishers --------------------------------------------------------------------------------


_MOST_COLUMNS = 60  # that a learner sees, the best ones
_MOST_SQUARED = 10  # of which products are made
_MOST_SINGLE = 8  # columns that are tests by themselves
_MOST_VALUES = 20  # words of a column that are told apart
_CLIP = 6.0


def scores(
    table: Table, is_other: np.ndarray, learn: np.ndarray, seed: int = 0
) -> dict[str, np.ndarray]:
    """Numbers of all fits, by many distinguishers, learned from the fits `learn`.

    Large numbers where a fit is more likely one of the other data set.
    """
    scores = {}
    for name, column in table.words.items():
        scores[f"words: {name}"] = _word_score(column, is_other, learn)
    if table.words:
        together = np.array(
            [" | ".join(parts) for parts in zip(*map(_texts, table.words.values()), strict=True)],
            dtype=object,
        )
        scores["words: all"] = _word_score(together, is_other, learn)
    columns = _columns(table, scores, learn)
    if not columns:
        return scores
    ranked = sorted(columns, key=lambda name: -separation(columns[name][learn], is_other[learn]))
    for name in ranked[:_MOST_SINGLE]:
        if not name.startswith("words"):
            scores |= {
                name: _turned(columns[name], is_other, learn),
                f"distance of {name} from its median": _turned(
                    np.abs(columns[name]), is_other, learn
                ),
            }
    X = np.column_stack([columns[name] for name in ranked[:_MOST_COLUMNS]])
    with suppress_output():  # that a learner does not converge costs power only
        for name, model in _models(seed).items():
            model.fit(X[learn], is_other[learn])
            scores[f"learned: {name}"] = model.decision_function(X)  # of all fits
    return scores


def separation(numbers: np.ndarray, is_other: np.ndarray) -> float:
    """Return the area under the ROC curve, by ranks, turned to be at least 1/2. Ties count half."""
    ranks = rankdata(numbers)
    n, m = int(is_other.sum()), int((~is_other).sum())
    if not n or not m:
        return 0.5
    area = (float(ranks[is_other].sum()) - n * (n + 1) / 2) / (n * m)
    return max(area, 1 - area)


def best_column(table: Table, is_other: np.ndarray) -> float:
    """How well the best single column tells the data sets apart."""
    everyone = np.ones(table.n_rows, dtype=bool)
    words = {name: _word_score(column, is_other, everyone) for name, column in table.words.items()}
    columns = _columns(table, words, everyone)
    return max((separation(column, is_other) for column in columns.values()), default=0.5)


def _texts(column: np.ndarray) -> list[str]:
    return [str(word) for word in column]


def _word_score(column: np.ndarray, is_other: np.ndarray, learn: np.ndarray) -> np.ndarray:
    """Return the log ratio of how often each word was seen, half a sighting more; rare words share
    one score."""
    words, codes = np.unique(np.asarray(_texts(column)), return_inverse=True)
    occurrences = np.bincount(codes[learn], minlength=len(words))
    codes = np.where(
        occurrences[codes] < np.sort(occurrences)[::-1][:_MOST_VALUES][-1], len(words), codes
    )
    counts = [
        np.bincount(codes[learn & side], minlength=len(words) + 1) + 0.5
        for side in (is_other, ~is_other)
    ]
    return np.log(counts[0] / counts[0].sum() / counts[1] * counts[1].sum())[codes]


def _columns(
    table: Table, words: dict[str, np.ndarray], learn: np.ndarray
) -> dict[str, np.ndarray]:
    """Return numbers in units of their spread about their median, clipped to six; whether they are
    there; scores of words."""
    columns = {name: score for name, score in words.items() if np.ptp(score[learn]) > 0}
    for name, column in table.numbers.items():
        with np.errstate(over="ignore", invalid="ignore"):
            known = column[learn & np.isfinite(column)]
            middle, low, high = np.quantile(known, [0.5, 0.16, 0.84]) if len(known) else (0, 0, 0)
            spread = (high - low) / 2 or np.std(known) if len(known) else 0.0
            scaled = (column - middle) / (spread if np.isfinite(spread) and spread else 1.0)
        if not np.isfinite(column).all():
            columns[f"whether {name} is a number"] = np.isfinite(column).astype(np.float64)
        columns[name] = np.clip(np.nan_to_num(scaled, nan=0.0), -_CLIP, _CLIP)
    return columns


def _turned(numbers: np.ndarray, is_other: np.ndarray, learn: np.ndarray) -> np.ndarray:
    """Return the numbers or their opposites, whichever are larger on the other data set."""
    ranks = np.argsort(np.argsort(numbers[learn]))
    up = ranks[is_other[learn]].mean() >= ranks[~is_other[learn]].mean()
    return numbers if up else -numbers


def _models(seed: int) -> dict[str, Any]:
    """Return the learners, not fitted, by name: small and regularized, as there are some thousand
    fits."""
    products = make_pipeline(
        StandardScaler(),
        _First(),
        PolynomialFeatures(2, include_bias=False),
        StandardScaler(),
        LogisticRegression(C=0.1, max_iter=300),
    )
    return {
        "linear": LinearDiscriminantAnalysis(solver="lsqr", shrinkage=1e-3),
        "logistic": make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=300)),
        "products": products,
        "boosted trees": HistGradientBoostingClassifier(
            max_iter=60, max_leaf_nodes=15, early_stopping=False, random_state=seed
        ),
    }


class _First:
    """The first columns, which are the best ones."""

    def fit(self, X: Any, y: Any = None) -> Self:
        return self

    def transform(self, X: Any) -> Any:
        return X[:, :_MOST_SQUARED]


# -- likelihood ------------------------------------------------------------------------------------


_COINS = ("seed", "draws")
_COARSE = 100.0  # scales, in steps, below which the rounding of the noise makes a difference
_CERTAIN = 1e3
"""The score of a fit that the other data set cannot have: it makes other releases."""


def log_likelihood_ratio(
    estimator: Any, X: Any, other: Any, other_units: np.ndarray
) -> tuple[Outcome, float]:
    """Fit, and compare the likelihood of all releases on another data set with that on `X`.

    The estimator is fitted in place. `other_units` has for each row of `other` its index in `X`, or
    -1. The score is log p(releases; other) - log p(releases; X).
    """
    recorder = Trace()
    outcome = run_fit(estimator, X, recorder=recorder)
    witness = _Witness(recorder.events, other_units)
    again = run_fit(clone(estimator), other, recorder=witness)
    if witness.open and ((outcome.error is None) != (again.error is None) or witness.finish()):
        return outcome, _CERTAIN
    return outcome, witness.score


class _Witness(Replay):
    """A replay that adds up log-likelihood ratios, up to the first decision that is no release."""

    def __init__(self, recorded: list[Event], units: np.ndarray) -> None:
        super().__init__(recorded, units)
        self.score, self.open = 0.0, True

    def _played(self, event: Event) -> Any:
        if self.open:
            known = self.recorded[self._next] if self._next < len(self.recorded) else None
            if known is None or (known.kind, known.entry) != (event.kind, event.entry):
                self.score, self.open = _CERTAIN, False
            elif known.kind in _RATIOS:
                # Bounded either way: an outcome that is impossible on one side decides by itself.
                ratio = np.nan_to_num(float(_RATIOS[known.kind](known, event)), nan=_CERTAIN)
                self.score += float(np.clip(ratio, -_CERTAIN, _CERTAIN))
            elif known.kind not in _COINS:
                self.open = False
        return super()._played(event)

    def account(self, event: Event, distance: float, cost: float) -> None:
        """It is not asked here whether a claim is kept."""

    def blame(self, event: Event, text: str) -> None:
        """Nor whether the two fits are treated alike: that would show in what they release."""


# -- log p(recorded output; other statistic) - log p(recorded output; recorded statistic) ----------


def _noises(known: Event, event: Event) -> list[Any] | None:
    """Return the noise that either statistic would need for the recorded output; None if shapes
    differ."""
    if np.shape(known.value) != np.shape(event.value):
        return None
    return [
        np.asarray(np.asarray(known.output, dtype=object) - each.value, dtype=np.float64)
        for each in (known, event)
    ]


def _gaussian(known: Event, event: Event) -> float:
    """Log-likelihood of rounded Gaussian noise under the other statistic, minus the recorded one's.

    Exact where it is coarse, by the density where it is fine.
    """
    noises = _noises(known, event)
    if noises is None:
        return _CERTAIN
    scale, logs = np.asarray(event.scale, dtype=np.float64), []
    for noise in noises:
        low, high = ((np.abs(noise) + side) / scale for side in (-0.5, 0.5))
        mass = np.log(np.maximum(ndtr(-low) - ndtr(-high), 1e-300))
        logs.append(np.where(scale < _COARSE, mass, -np.square(noise / scale) / 2))
    return float(np.sum(logs[1] - logs[0]))  # a constant of the density cancels


def _laplace(known: Event, event: Event) -> float:
    """The density is proportional to exp(-|noise| / scale)."""
    noises = _noises(known, event)
    if noises is None:
        return _CERTAIN
    return float(np.sum((np.abs(noises[0]) - np.abs(noises[1])) / event.scale))


def _chosen(known: Event, event: Event) -> float:
    """Chances of the index that came out."""
    if np.shape(known.value) != np.shape(event.value):
        return _CERTAIN
    logs = []
    for each in (known, replace(event, output=known.output)):
        low, high = law_of(each).numbers(each)
        logs.append(float(np.log(np.maximum(high - low, 1e-300)).sum()))
    return logs[1] - logs[0]


def _published(known: Event, event: Event) -> float:
    """Cells of a histogram: noisy counts where published, else that they are below a level.

    Cells of equal counts have equal likelihoods, so only those that differ are visited.
    """
    before, after = (
        dict(zip(*map(np.ndarray.tolist, each.value), strict=True)) for each in (known, event)
    )
    counts_of_names = dict(zip(*map(np.ndarray.tolist, known.output), strict=True))
    moved = [
        cell for cell in before.keys() | after.keys() if before.get(cell, 0) != after.get(cell, 0)
    ]
    return sum(
        _log_chance(after.get(cell, 0), counts_of_names.get(cell), event)
        - _log_chance(before.get(cell, 0), counts_of_names.get(cell), known)
        for cell in moved
    )


def _log_chance(count: int, value: int | None, event: Event) -> float:
    """Log-likelihood of one cell of an exact count, up to a constant where it was published.

    `value` is None if it was not.
    """
    if value is None:
        return float(log_ndtr((event.public["low"] - 0.5 - count) / event.scale))
    return -(((value - count) / event.scale) ** 2) / 2


_RATIOS = {
    "gaussian": _gaussian,
    "laplace": _laplace,
    "choice": _chosen,
    "sparse": _published,
    "stability": _published,
}
