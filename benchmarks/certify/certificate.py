"""The certificate: a lower bound of epsilon from what fits show.

Two neighboring data sets are fitted thousands of times, with noise from the operating system. On
one half of the fits distinguishers are learned, and one of them, with a threshold, is chosen; the
likelihood ratio of all releases needs no learning. On the other fits its alarms are counted.
Clopper-Pearson limits of the two rates give a lower bound of the privacy parameter; a claim below
it is false, but for the stated error.
"""

import math
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri
from sklearn.base import BaseEstimator, ClusterMixin, clone

from sklearn_dp._base import BaseDPEstimator
from sklearn_dp._privacy._noise import NoiseSource
from sklearn_dp._privacy._trace import altering
from sklearn_dp.audit._observe import n_features_of, run_fit
from sklearn_dp.mean import FriendlyMean

from .claims import GAUSSIAN, Claim, Rates, claim_of, least_epsilon, smallest_deficit
from .distinguishers import Table, best_column, log_likelihood_ratio, scores, separation, shown

# -- cases -----------------------------------------------------------------------------------------


class Pair:
    """Two data sets, called `name` in words: `X`, and `other`, with one more row at its end."""

    def __init__(self, name: str, X: ArrayLike, record: ArrayLike) -> None:
        self.name = name
        self.X = np.asarray(X, dtype=np.float64)
        self.other = np.concatenate([self.X, np.asarray(record, dtype=np.float64)[None]])

    @property
    def units_of_other(self) -> np.ndarray:
        """For each row of `other` its index in `X`, or -1."""
        return np.append(np.arange(len(self.X)), -1)

    @property
    def units_of_X(self) -> np.ndarray:
        """For each row of `X` its index in `other`."""
        return np.arange(len(self.X))

    def __repr__(self) -> str:
        return f"Pair({self.name!r})"


def equal_rows(n: int, place: float = 0.0, record: float = 1.0) -> Pair:
    """`n` equal rows of one column, and one at another place."""
    rows = "one row" if n == 1 else f"{n} equal rows"
    words = f"{rows} at {place:g}, and one more at {record:g}"
    return Pair(words, np.full((n, 1), place), [record])


def scattered_rows(n: int, d: int, far: float, seed: int) -> Pair:
    """Rows about the origin, and one at a distance `far` from it in a random direction."""
    numbers = ndtri(np.random.default_rng(seed).random((n + 1, d)))
    direction = numbers[-1] / np.linalg.norm(numbers[-1])
    return Pair(
        f"{n} scattered rows, and one more at a distance of {far:g} (d = {d})",
        0.1 * numbers[:-1],
        far * direction,
    )


def rows_on_rings() -> Pair:
    """Rows at two distances from the origin, and one more at the nearer one."""
    near, far = (np.tile([place, -place], 500) for place in (_NEAR, _FAR))
    rows = np.concatenate([near[:_N_NEAR], far[: 1000 - _N_NEAR]])
    return Pair(
        f"{_N_NEAR} rows at +-{_NEAR:g} and {1000 - _N_NEAR} at +-{_FAR:g}, and one more at "
        f"{_NEAR:g}",
        rows[:, None],
        [_NEAR],
    )


class Detector(ClusterMixin, BaseEstimator):
    """The worst inner estimator: what it learns tells whether the record is among its rows."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Note whether there is a positive number: only the record is one."""
        self.cluster_centers_ = np.array([[1.0 if (X > 0).any() else -1.0]])
        return self


@dataclass(frozen=True)
class Case:
    """How an estimator of this package is tested."""

    params: dict[str, Any]  # of the estimator, besides its budget
    pairs: tuple[Pair, ...]  # neighbors that move every release by nearly all that is claimed
    # Where a given number of fits sees most. A test of Gaussian noise has the smallest relative
    # error at a mu of about 3; but noise of less than a step, as on counts at large budgets, has
    # rounding added to it. The two rates of a claim by zCDP must not be near 0 and 1.
    epsilon: float = 16.0


# A row alone, and a second one at the border of the public bounds: it fills a bin of its own in
# each histogram, and every sum moves by the whole clipping radius. The fewer rows there are, the
# less of what was paid depends on others.
_ALONE = equal_rows(1)
_OPPOSITE = equal_rows(4, place=-1.0)
_ONE = {"bounds": 1.0}
# A row below all others: it moves every rank.
_BELOW = equal_rows(8, place=1.0, record=-1.0)
_ZCDP = 8.0
# A category of as many rows as are shown at that budget: with one more it is shown more often, and
# both counts are far from the one that is never shown.
_SHOWN = equal_rows(6, place=1.0, record=1.0)

# Balls about means. The rows are symmetric and many, so each center is near 0; the public radii
# that matter are 2**-1/4 = .841 and 1, and each ring is just inside one of them. The record is in
# every ball, near the border of most. A choice tells most if half of its chance is on radii whose
# score the record raises, and half on those whose score it lowers. On the way to the last center,
# where a ball has to hold 80% of `n_points`, these are .841 and 1, of equal scores; for the last
# radius they are 1 and the sixteen above it.
_NEAR, _FAR, _N_NEAR = 0.83, 0.99, 787
_RINGS = rows_on_rings()
_BALLS = {"n_points": 1011, "center_method": "clip", **_ONE}

CASES = {
    # One segment, of all rows.
    "DPBySegment": Case({"estimator": FriendlyMean(bounds=1.0)}, (equal_rows(40),)),
    # Cells are split only where rows are: a hundred in one place make each level of the tree count.
    "DPCoreset": Case({"n_clusters": 1, **_ONE}, (equal_rows(100, place=1.0),)),
    "DPDBSCAN": Case({"eps": 1.0, **_ONE}, (equal_rows(1),)),
    "DPGaussianMixture": Case({"n_components": 1, **_ONE}, (_ALONE,)),
    # Ranks of a column: a row in the lowest bin moves most of them.
    "DPKMeans": Case({"n_clusters": 1, **_ONE}, (equal_rows(1, record=-1.0),)),
    "DPKTupleKMeans": Case({"n_clusters": 1, **_ONE}, (_ALONE,), _ZCDP),
    "DPOneHotEncoder": Case({}, (_SHOWN,), _ZCDP),
    "DPOneCluster": Case(_BALLS, (_RINGS,), _ZCDP),
    "DPOneClusterKMeans": Case({"n_clusters": 1, **_BALLS}, (_RINGS,), _ZCDP),
    "DPOutlierScreen": Case(_BALLS, (_RINGS,), _ZCDP),
    "DPPCA": Case({"n_components": 1, **_ONE}, (_OPPOSITE,)),
    "DPQuantiles": Case(_ONE, (_BELOW,)),
    "DPRobustScaler": Case(_ONE, (_BELOW,)),
    "DPStandardScaler": Case(_ONE, (_ALONE,)),
    # A row of zeros has no words; the other one is in the same topic.
    "DPTopics": Case({"n_topics": 1, "vocabulary": ("x0",), "keywords_per_text": 1}, (_ALONE,)),
    "FederatedDPKMeans": Case({"n_clusters": 1, **_ONE}, (_ALONE,)),
    "FriendlyCovariance": Case(_ONE, (_ALONE,)),
    "FriendlyMean": Case({"diameter": 2.0, **_ONE}, (equal_rows(40),), 12.0),
    # Two blocks, and an inner estimator that looks for the record.
    "SampleAndAggregate": Case(
        {
            "estimator": Detector(),
            "output": ("cluster_centers_",),
            "output_bounds": 1.0,
            "aggregator": "mean",
            "n_blocks": 2,
        },
        (equal_rows(8, place=-1.0),),
    ),
}
"""Of every estimator of this package."""


def pairs_of(estimator: Any, pairs: Any, seed: int) -> list[Pair]:
    """The given pairs, or those of the case, or some that are hard for most, by the seed."""
    if pairs is not None:
        return [pairs] if isinstance(pairs, Pair) else list(pairs)
    case = CASES.get(type(estimator).__name__)
    if case is not None and type(estimator).__module__.startswith("sklearn_dp."):
        return list(case.pairs)
    return [
        equal_rows(1),
        equal_rows(8),
        equal_rows(8, place=-1.0),
        scattered_rows(40, 2, 1.0, seed),
        scattered_rows(40, 2, 1e3, seed),
    ]


# -- runs ------------------------------------------------------------------------------------------


_CHUNK = 50


@dataclass(frozen=True)
class Runs:
    """Results of many fits on two data sets."""

    rows: list[Any]  # numbers and words
    is_other: np.ndarray  # whether the fit had the data set with the record
    # log-likelihood ratio of all releases; None where they cannot be seen
    ratios: np.ndarray | None


def less_noise(factor: float) -> type[NoiseSource]:
    """Return a noise source whose samplers all draw too little noise, by a factor above 1."""

    class LessNoise(NoiseSource):
        """The source of a context that :func:`~sklearn_dp._privacy._trace.altering` has made."""

        def rounded_gaussian(self, sigma: Any, size: Any = None) -> np.ndarray:
            return super().rounded_gaussian(np.asarray(sigma) / factor, size)

        def rounded_laplace(self, scale: Any, size: Any = None) -> np.ndarray:
            return super().rounded_laplace(np.asarray(scale) / factor, size)

        def exponential_choice(self, gaps: np.ndarray, rate: float) -> int:
            return super().exponential_choice(gaps, rate * factor)

    return LessNoise


def run_pair(
    estimator: Any, pair: Pair, fits: int, *, jobs: int = 1, deficit: float | None = None
) -> Runs:
    """Fit clones to the two data sets of a pair in turn, with noise too small by a `deficit`."""
    sides = [bool(i % 2) for i in range(fits)]
    tasks = [(estimator, pair, sides[i : i + _CHUNK], deficit) for i in range(0, fits, _CHUNK)]
    if jobs == 1:
        parts = [_chunk(*task) for task in tasks]
    else:
        with ProcessPoolExecutor(jobs, initializer=_one_thread) as pool:
            parts = list(pool.map(_chunk, *zip(*tasks, strict=True)))
    results = [result for part in parts for result in part]
    ratios = np.array([ratio for _, ratio in results])
    seen = isinstance(estimator, BaseDPEstimator)  # its releases on the way can be seen
    return Runs([row for row, _ in results], np.array(sides), ratios if seen else None)


def _one_thread() -> None:
    """Processes that share cores lose by threads."""
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")


def _chunk(estimator: Any, pair: Pair, sides: Any, deficit: float | None) -> list[Any]:
    """Run some fits in one process; a deficit is planted there."""
    planted = nullcontext() if deficit is None else altering(NoiseSource, less_noise(deficit))
    with planted:
        return [_run(estimator, pair, side) for side in sides]


def _run(estimator: Any, pair: Pair, other: Any) -> tuple[Any, float]:
    """Return what one fit shows, and its log-likelihood ratio, large for the larger data set."""
    copy = clone(estimator)
    X, rest = (pair.other, pair.X) if other else (pair.X, pair.other)
    if not isinstance(estimator, BaseDPEstimator):
        return shown(run_fit(copy, X, strict=False)), 0.0
    units = pair.units_of_X if other else pair.units_of_other
    outcome, score = log_likelihood_ratio(copy, X, rest, units)
    return shown(outcome), -score if other else score


# -- certificate -----------------------------------------------------------------------------------

ERROR = 1e-6  # chance that a certificate blames a claim that is true

_MOST_SHOWN = 0.3, 0.5  # the part of the fits to learn from ends, the part to choose with ends
_RELEASED = 0.0, 0.2
_KNOWN = 0.0, 0.0
_THRESHOLDS = np.linspace(0, 1, 101)  # quantiles of what is learned
_LEVELS = (-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0)  # of the log-likelihood ratio
_PILOT = 200


@dataclass(frozen=True)
class Finding:
    """The result of the best test of one view, on fits that it had not seen."""

    view: str  # "the fitted estimator" or "all releases"
    distinguisher: str  # the chosen test, in words
    rates: Rates  # of its alarms, counted on fits that were not used to choose it
    value: float  # lower bound of the parameter of the claim: mu, rho or epsilon
    epsilon: float  # the claim's, computed from this value
    epsilon_of_rates: float  # lower bound from the two rates alone, for any kind of claim
    # smallest noise deficit that nine of ten certificates would find; inf beyond a factor of 100
    deficit: float


@dataclass(frozen=True)
class Certificate:
    """Lower bounds of the privacy parameter of an estimator, next to its claim."""

    estimator: str  # name of its class
    pair: str  # the two data sets in words
    claim: Claim  # what the estimator promises
    fits: int  # to both data sets together
    error: float  # probability that any of the lower bounds exceeds the true value
    findings: tuple[Finding, ...]  # one for each view of a fit
    planted: float | None = None  # factor by which the noise was deliberately reduced

    @property
    def best(self) -> Finding:
        """The finding with the largest lower bound."""
        return max(self.findings, key=lambda finding: finding.value)

    @property
    def kept(self) -> bool:
        """True if no lower bound is above the claim."""
        return all(
            finding.value <= self.claim.value and finding.epsilon_of_rates <= self.claim.epsilon
            for finding in self.findings
        )

    @property
    def deficit(self) -> float:
        """The smallest noise deficit that would have been found."""
        return min(finding.deficit for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """The results as plain numbers and strings, for JSON: None where a number is infinite."""
        claim = self.claim
        found = asdict(self) | {"kept": self.kept, "deficit": self.deficit}
        found["claim"] = {
            "kind": claim.kind,
            claim.parameter: claim.value,
            "epsilon": claim.epsilon,
            "delta": claim.delta,
        }
        for finding in found["findings"]:
            finding[claim.parameter] = finding.pop("value")
        for each in (found, *found["findings"]):
            each["deficit"] = each["deficit"] if math.isfinite(each["deficit"]) else None
        return found

    def __repr__(self) -> str:
        claim, name = self.claim, self.claim.parameter
        lines = [
            f"Certificate of {self.estimator}: {self.fits} fits, {self.pair}",
            f"claim: ({claim.epsilon:.4g}, {claim.delta:.3g})-DP; {name} = {claim.value:.4g}",
        ]
        if self.planted is not None:
            lines.append(f"planted: noise that is {self.planted:g} times too small")
        for finding in self.findings:
            rates = finding.rates
            lines += [
                f"{finding.view}: {name} is at least {finding.value:.4g}, epsilon "
                f"{finding.epsilon:.4g} (by the rates alone {finding.epsilon_of_rates:.4g})",
                f"  by {finding.distinguisher}: alarms {rates.true} of {rates.n_true} with "
                f"the record, {rates.false} of {rates.n_false} without",
                f"  would find noise that is {finding.deficit:.3g} times too small",
            ]
        verdict = "no lower bound is above the claim" if self.kept else "THE CLAIM IS FALSE"
        return "\n".join([*lines, f"{verdict} (chance of error at most {self.error:.3g})"])


def certify(
    estimator: BaseEstimator,
    pairs: Pair | Sequence[Pair] | None = None,
    *,
    fits: int = 20000,
    seed: int = 0,
    jobs: int = 1,
    error: float = ERROR,
    deficit: float | None = None,
) -> Certificate:
    """Test an estimator's privacy claim from what its fits show.

    The estimator is one of this package, or any with parameters `epsilon` and `delta` and a
    ``fit(X)``. Clones are fitted with noise from the operating system: `random_state` and `ledger`
    are set to None, and `seed` is for the choice of pairs and the learning only. Of several `pairs`
    a pilot run chooses one; by default they are hard for most algorithms. Half of the `fits` are to
    each data set, and half of them are learned from. With probability at most `error` any of the
    lower bounds is too large. `deficit` makes the noise too small by this factor on purpose.

    A certificate can disprove a claim, but never prove it: it covers one pair of data sets, one set
    of parameters, and the distinguishers that it tries. The deficit that it reports is its power.
    """
    estimator = clone(estimator)
    kept = estimator.get_params(deep=False).keys() & {"ledger", "random_state"}
    estimator.set_params(**dict.fromkeys(kept))  # charges no ledger; fresh noise in each fit
    candidates = pairs_of(estimator, pairs, seed)
    claim = claim_of(estimator, n_features_of(candidates[0].X))
    pair = (
        candidates[0]
        if len(candidates) == 1
        else max(candidates, key=lambda each: _promise(estimator, each, jobs, deficit))
    )
    runs = run_pair(estimator, pair, fits, jobs=jobs, deficit=deficit)
    learn, _, _ = _parts(len(runs.rows), _MOST_SHOWN)
    shown = scores(Table(runs.rows), runs.is_other, learn, seed)
    shown = shown or {"nothing differs": np.zeros(len(runs.rows))}
    views = [_View("the fitted estimator", shown, _MOST_SHOWN)]
    if runs.ratios is not None and np.ptp(runs.ratios):
        views.append(_view_of_releases(runs.ratios, claim))
    findings = tuple(_finding(view, runs.is_other, claim, error / len(views)) for view in views)
    return Certificate(type(estimator).__name__, pair.name, claim, fits, error, findings, deficit)


def _promise(estimator: Any, pair: Pair, jobs: int, deficit: float | None) -> float:
    """Return how well the best single number tells a few fits on a pair apart."""
    runs = run_pair(estimator, pair, _PILOT, jobs=jobs, deficit=deficit)
    score = best_column(Table(runs.rows), runs.is_other)
    return score if runs.ratios is None else max(score, separation(runs.ratios, runs.is_other))


@dataclass(frozen=True)
class _View:
    """A view of a fit, as numbers of several distinguishers: of the fitted estimator, which a user
    of a model sees, or of all releases, with far more power."""

    name: str
    scores: dict[str, np.ndarray]
    # parts of the fits: up to the first to learn from, up to the second to choose with
    ends: tuple[float, float]
    levels: tuple[float, ...] | None = None  # thresholds to choose from; by default quantiles


def _view_of_releases(ratios: np.ndarray, claim: Claim) -> _View:
    """The likelihood ratio of all releases. Of a Gaussian shift a test at log-ratio zero has rates
    equally far from 1/2, where a bound of mu has the smallest error: all fits can be counted."""
    ends, levels = (_KNOWN, (0.0,)) if claim.kind == GAUSSIAN else (_RELEASED, _LEVELS)
    return _View("all releases", {"log-likelihood ratio": ratios}, ends, levels)


def _parts(n: int, ends: tuple[float, float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fits to learn from, to choose with and to count on: disjoint, so the limits are exact."""
    place = np.arange(n) // 2 / (n / 2)
    return place < ends[0], (ends[0] <= place) & (place < ends[1]), place >= ends[1]


def _finding(view: _View, is_other: np.ndarray, claim: Claim, error: float) -> Finding:
    """Choose a distinguisher and a threshold, then count on fits that had no part in it."""
    _, choose, count = _parts(len(is_other), view.ends)
    name, threshold = _choice(view, choose, is_other, claim, error)
    rates = _rates(view.scores[name][count] > threshold, is_other[count])
    low, high = rates.limits(error)
    value = claim.least(low, high)
    return Finding(
        view.name,
        name,
        rates,
        value,
        claim.epsilon_at(value),
        least_epsilon(low, high, claim.delta),
        smallest_deficit(claim, rates, error),
    )


def _choice(
    view: _View, choose: np.ndarray, is_other: np.ndarray, claim: Claim, error: float
) -> tuple[str, float]:
    """The distinguisher and threshold with the largest lower bound, or difference of rates."""
    options = []
    for name, numbers in view.scores.items():
        levels = view.levels or np.unique(np.quantile(numbers[choose], _THRESHOLDS, method="lower"))
        options += [(name, float(level)) for level in levels]
    if len(options) == 1:
        return options[0]

    def worth(option: Any) -> Any:
        rates = _rates(view.scores[option[0]][choose] > option[1], is_other[choose])
        return claim.least(*rates.limits(error)), rates.counted[0] - rates.counted[1]

    return max(options, key=worth)


def _rates(alarms: np.ndarray, is_other: np.ndarray) -> Rates:
    """Alarms on either data set."""
    return Rates(
        int(alarms[is_other].sum()),
        int(is_other.sum()),
        int(alarms[~is_other].sum()),
        int((~is_other).sum()),
    )
