"""Tests that try to tell from one fit on which of two data sets it was made.

Each distinguisher gives every fit one number; a threshold makes it a test. All of them see the same
table. What is learned is learned from the fits that are kept for it, and the numbers of all other
fits are then functions of these alone, so that the bounds of the other half stay exact.

1. Words: the log ratio of how often each was seen on either side (`_word_score`).
2. Numbers one by one: the best eight columns, and how far they are from their median (`_turned`).
3. Learned: linear, logistic, products of two columns, boosted trees, on the best sixty columns.

A distinguisher that is missing costs power, never validity.
"""

from typing import Any, Self

import numpy as np
from scipy.stats import rankdata
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from ..._silence.suppress_output import suppress_output
from .shown import Table

__all__ = ["best_column", "scores", "separation"]

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
    found = {}
    for name, column in table.words.items():
        found[f"words: {name}"] = _word_score(column, is_other, learn)
    if table.words:
        together = np.array(
            [" | ".join(parts) for parts in zip(*map(_texts, table.words.values()), strict=True)],
            dtype=object,
        )
        found["words: all"] = _word_score(together, is_other, learn)
    columns = _columns(table, found, learn)
    if not columns:
        return found
    ranked = sorted(columns, key=lambda name: -separation(columns[name][learn], is_other[learn]))
    for name in ranked[:_MOST_SINGLE]:
        if not name.startswith("words"):
            found |= {
                name: _turned(columns[name], is_other, learn),
                f"distance of {name} from its median": _turned(
                    np.abs(columns[name]), is_other, learn
                ),
            }
    X = np.column_stack([columns[name] for name in ranked[:_MOST_COLUMNS]])
    with suppress_output():  # that a learner does not converge costs power only
        for name, model in _models(seed).items():
            model.fit(X[learn], is_other[learn])
            found[f"learned: {name}"] = model.decision_function(X)  # of all fits
    return found


def separation(numbers: np.ndarray, is_other: np.ndarray) -> float:
    """Chance that a number of one data set is above one of the other, 1/2 or more.

    The area under the ROC curve, by ranks (Mann and Whitney), turned to be at least 1/2. Ties count
    half.
    """
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
    """Log ratio of how often a word was seen, with half a sighting more; rare words together.

    Words beyond the twenty most frequent share one score: each alone was seen too rarely to learn
    from.
    """
    words, codes = np.unique(np.asarray(_texts(column)), return_inverse=True)
    seen = np.bincount(codes[learn], minlength=len(words))
    codes = np.where(seen[codes] < np.sort(seen)[::-1][:_MOST_VALUES][-1], len(words), codes)
    counts = [
        np.bincount(codes[learn & side], minlength=len(words) + 1) + 0.5
        for side in (is_other, ~is_other)
    ]
    return np.log(counts[0] / counts[0].sum() / counts[1] * counts[1].sum())[codes]


def _columns(
    table: Table, words: dict[str, np.ndarray], learn: np.ndarray
) -> dict[str, np.ndarray]:
    """Numbers in units of their spread about their median; whether they are there; scores of words.

    Medians and spreads are those of the fits `learn`. Clipped to six spreads: heavy tails would
    rule linear learners.
    """
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
    """The numbers or their opposites, whichever are larger on the other data set.

    A test raises an alarm above its threshold, so every number has to be larger on the other data
    set.
    """
    ranks = np.argsort(np.argsort(numbers[learn]))
    up = ranks[is_other[learn]].mean() >= ranks[~is_other[learn]].mean()
    return numbers if up else -numbers


def _models(seed: int) -> dict[str, Any]:
    """The learners, not fitted, by name.

    Small and regularized: there are some thousand fits to learn from, and a model that follows them
    too closely has no power on the others. "products" sees variances and correlations, which linear
    models cannot; trees see thresholds.
    """
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
