"""What a fitted estimator shows, as numbers and words, and tests that tell two data sets apart.

That is what its pickle holds, what its report and its texts say, how long these are, and what the
fit warned of or raised. Every value is a column of a table; missing ones say something too.
"""

import pickle
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtr
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from sklearn_dp._privacy._trace import Event, Trace
from sklearn_dp._silence import suppress_output
from sklearn_dp.audit._laws import law_of
from sklearn_dp.audit._observe import Outcome, run_fit
from sklearn_dp.audit._replay import Replay

_MOST_NUMBERS = 64  # of one value: more columns than a learner can use
_MOST_COLUMNS = 60  # that a learner sees, the best ones
_MOST_SQUARED = 10  # of which products are made
_MOST_SINGLE = 8  # columns that are tests by themselves
_MOST_VALUES = 20  # words of a column that are told apart
_CLIP = 6.0

Row = tuple[dict[str, float], dict[str, str]]


def shown(outcome: Outcome) -> Row:
    """Numbers and words that one fit shows: of an unpickled copy, or error and warnings."""
    row: Row = ({}, {})
    estimator, text = outcome.estimator, [f"{kind.__name__}: {w}" for kind, w in outcome.warnings]
    _enter("warnings", " / ".join(text), row)
    _enter("error", repr(outcome.error), row)
    _enter("printed", outcome.printed, row)
    if outcome.error is None:
        data = pickle.dumps(estimator, protocol=5)
        _enter("length of the pickle", len(data), row)
        report = getattr(estimator, "privacy_report_", None)
        if report is not None:
            _enter("length of the report", len(repr(report)), row)
            _enter("releases", report.releases, row)
            _enter("notes of the report", " / ".join(report.warnings), row)
        for name, value in vars(pickle.loads(data)).items():
            if name.endswith("_"):
                _enter(name, value, row)
    return row


def _enter(name: str, value: Any, row: Row) -> None:
    """Enter a value under its name, its parts under longer ones, objects by class and length."""
    numbers, words = row
    if value is None or isinstance(value, (str, bytes)):
        words[name] = repr(value)
    elif isinstance(value, dict):
        words[f"keys of {name}"] = repr(sorted(map(str, value)))
        _enter_parts(name, value.items(), row)
    elif (array := _as_numbers(value)) is not None:
        words[f"shape of {name}"] = f"{array.shape} {array.dtype}"
        flat = array.astype(np.float64).ravel()
        if flat.size == 1:
            numbers[name] = flat[0]
            return
        with np.errstate(over="ignore", invalid="ignore"):
            numbers[f"sum of {name}"] = flat.sum()
            numbers[f"norm of {name}"] = float(np.linalg.norm(flat))
        # In order of size too: places may be arbitrary.
        for i, pair in enumerate(zip(flat[:_MOST_NUMBERS], np.sort(flat)[::-1], strict=False)):
            numbers[f"{name}[{i}]"], numbers[f"{name} sorted[{i}]"] = pair
    elif isinstance(value, (list, tuple)):
        numbers[f"length of {name}"] = float(len(value))
        _enter_parts(name, enumerate(value), row)
    else:
        words[name] = type(value).__name__
        numbers[f"length of the pickle of {name}"] = float(len(pickle.dumps(value, protocol=5)))


def _enter_parts(name: str, parts: Iterable[Any], row: Row) -> None:
    for key, part in list(parts)[:_MOST_NUMBERS]:
        _enter(f"{name}[{key}]", part, row)


def _as_numbers(value: Any) -> np.ndarray | None:
    try:
        array = np.asarray(value)
    except ValueError:  # a list of arrays of several shapes
        return None
    return array if array.dtype.kind in "bifu" else None


class Table:
    """A table of many fits: columns of numbers, NaN where a fit has none, and of words."""

    def __init__(self, rows: list[Row]) -> None:
        self.n_rows = len(rows)
        self.numbers = _table_columns([row[0] for row in rows], np.nan, np.float64)
        self.words = _table_columns([row[1] for row in rows], "(missing)", object)


def _table_columns(rows: Any, missing: Any, dtype: Any) -> dict[str, np.ndarray]:
    """One column for each name in any row; constant ones, which tell nothing, are left out."""
    columns = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        column = np.array([row.get(name, missing) for row in rows], dtype=dtype)
        if len(np.unique(column.astype(str) if dtype is object else column)) > 1:
            columns[name] = column
    return columns


# -- distinguishers --------------------------------------------------------------------------------


def scores(
    table: Table, is_other: np.ndarray, learn: np.ndarray, seed: int = 0
) -> dict[str, np.ndarray]:
    """Numbers of all fits, large where it is likely of the other data, by learned tests."""
    scores = _word_scores(table, is_other, learn)
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
        for name, (model, most) in _models(seed).items():
            model.fit(X[learn, :most], is_other[learn])
            scores[f"learned: {name}"] = model.decision_function(X[:, :most])  # of all fits
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
    columns = _columns(table, _word_scores(table, is_other, everyone), everyone)
    return max((separation(column, is_other) for column in columns.values()), default=0.5)


def _word_scores(table: Table, is_other: np.ndarray, learn: np.ndarray) -> dict[str, np.ndarray]:
    """Scores of each column of words, and of all columns together."""
    columns = dict(table.words)
    if columns:
        lines = zip(*columns.values(), strict=True)
        columns["all"] = np.array([" | ".join(line) for line in lines], dtype=object)
    return {
        f"words: {name}": _word_score(column, is_other, learn) for name, column in columns.items()
    }


def _word_score(column: np.ndarray, is_other: np.ndarray, learn: np.ndarray) -> np.ndarray:
    """The log ratio of how often each word was seen, half a sighting more; rare ones share one."""
    words, codes = np.unique(column.astype(str), return_inverse=True)
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
    """Numbers in spreads about their median, clipped; whether they are there; word scores."""
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
    ranks = rankdata(numbers[learn])
    return numbers if ranks[is_other[learn]].mean() >= ranks[~is_other[learn]].mean() else -numbers


def _models(seed: int) -> dict[str, tuple[Any, int]]:
    """The learners, not fitted, small and regularized, by name, and how many columns each gets."""
    logistic = LogisticRegression(C=0.1, max_iter=300)
    squares = PolynomialFeatures(2, include_bias=False)
    trees = HistGradientBoostingClassifier(
        max_iter=60, max_leaf_nodes=15, early_stopping=False, random_state=seed
    )
    return {
        "linear": (LinearDiscriminantAnalysis(solver="lsqr", shrinkage=1e-3), _MOST_COLUMNS),
        "products": (
            make_pipeline(StandardScaler(), squares, StandardScaler(), logistic),
            _MOST_SQUARED,
        ),
        "boosted trees": (trees, _MOST_COLUMNS),
    }


# -- likelihood ------------------------------------------------------------------------------------


_COINS = ("seed", "draws")
_COARSE = 100.0  # scales, in steps, below which the rounding of the noise makes a difference
_CERTAIN = 1e3  # of a fit that the other data set cannot have: it makes other releases


def log_likelihood_ratio(
    estimator: Any, X: Any, other: Any, other_units: np.ndarray
) -> tuple[Outcome, float]:
    """Fit in place, and compare the likelihood of all releases on another data set with that on
    `X`. `other_units` has for each row of `other` its index in `X`, or -1."""
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
        """Do nothing: no claim is checked here."""

    def blame(self, event: Event, text: str) -> None:
        """Do nothing: what differs between the two fits shows in what they release."""


# -- log p(recorded output; other statistic) - log p(recorded output; recorded statistic) ----------


def _noises(known: Event, event: Event) -> list[Any] | None:
    """Return the noise that either statistic needs for the recorded output, if shapes agree."""
    if np.shape(known.value) != np.shape(event.value):
        return None
    return [
        np.asarray(np.asarray(known.output, dtype=object) - each.value, dtype=np.float64)
        for each in (known, event)
    ]


def _gaussian(known: Event, event: Event) -> float:
    """Rounded Gaussian noise: exact where it is coarse, by the density where it is fine."""
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
    """Cells of a histogram: noisy counts where published, else below a level, where they differ."""
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
    """Log-likelihood of one cell, up to a constant; `value` is None if it was not published."""
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
