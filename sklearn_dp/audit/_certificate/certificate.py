"""The certificate: a lower bound of epsilon from what fits show, beside the claim.

1. Two neighboring data sets are chosen that should be as easy to tell apart as the claim allows.
2. Both are fitted thousands of times, with noise from the operating system, from end to end.
3. On one half of the fits distinguishers are learned, and one of them, with a threshold, is chosen.
   The likelihood ratio of all releases needs no learning: a fifth of the fits choose its
   threshold, or none where the theory knows it.
4. On the other fits its alarms are counted. Clopper-Pearson limits of the two rates give a lower
   bound of the privacy parameter; a claim below it is false, but for the stated error.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from .._observe import n_features_of
from .cases import Pair, pairs_of
from .distinguishers import best_column, scores, separation
from .epsilon_bounds import GAUSSIAN, Claim, Rates, claim_of, least_epsilon, smallest_deficit
from .runs import run_pair
from .shown import Table

__all__ = ["ERROR", "Certificate", "Finding", "certify"]

ERROR = 1e-6
"""Chance that a certificate blames a claim that is true."""

_SHOWN = 0.3, 0.5  # the part of the fits to learn from ends, the part to choose with ends
_RELEASED = 0.0, 0.2
_KNOWN = 0.0, 0.0
_THRESHOLDS = np.linspace(0, 1, 101)  # quantiles of what is learned
_LEVELS = (-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0)  # of the log-likelihood ratio
_PILOT = 200


@dataclass(frozen=True)
class Finding:
    """The result of the best test of one view, on fits that it had not seen.

    Parameters
    ----------
    view : str
        "the fitted estimator" or "all releases".
    distinguisher : str
        The chosen test, in words.
    rates : Rates
        Its alarm rates, counted on fits that were not used to choose it.
    value : float
        Lower bound of the parameter of the claim: mu, rho or epsilon.
    epsilon : float
        The claim's epsilon, computed from this value.
    epsilon_of_rates : float
        Lower bound of epsilon from the two rates alone, for any kind of claim.
    deficit : float
        Smallest noise deficit that nine of ten certificates would find; inf if even a factor of 100
        is not enough.
    """

    view: str
    distinguisher: str
    rates: Rates
    value: float
    epsilon: float
    epsilon_of_rates: float
    deficit: float


@dataclass(frozen=True)
class Certificate:
    """What a certificate found.

    Parameters
    ----------
    estimator : str
        Name of its class.
    pair : str
        The two data sets in words.
    claim : Claim
        What the estimator promises.
    fits : int
        Number of fits to both data sets together.
    error : float
        Probability that any of the lower bounds exceeds the true value.
    findings : tuple of Finding
        One for each view of a fit.
    planted : float or None
        Factor by which the noise was deliberately reduced.
    """

    estimator: str
    pair: str
    claim: Claim
    fits: int
    error: float
    findings: tuple[Finding, ...]
    planted: float | None = None

    @property
    def best(self) -> Finding:
        """The finding with the largest lower bound."""
        return max(self.findings, key=lambda finding: finding.value)

    @property
    def kept(self) -> bool:
        """Whether no lower bound is above the claim."""
        return all(
            finding.value <= self.claim.value and finding.epsilon_of_rates <= self.claim.epsilon
            for finding in self.findings
        )

    @property
    def deficit(self) -> float:
        """The smallest noise deficit that would have been found."""
        return min(finding.deficit for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Return the results as plain numbers and strings, for JSON.

        Returns
        -------
        found : dict
            Numbers that are not finite are None.
        """
        claim = self.claim
        return {
            "estimator": self.estimator,
            "pair": self.pair,
            "fits": self.fits,
            "error": self.error,
            "planted": self.planted,
            "kept": self.kept,
            "claim": {
                "kind": claim.kind,
                claim.parameter: claim.value,
                "epsilon": claim.epsilon,
                "delta": claim.delta,
            },
            "deficit": _finite(self.deficit),
            "findings": [
                {
                    "view": f.view,
                    "distinguisher": f.distinguisher,
                    claim.parameter: f.value,
                    "epsilon": f.epsilon,
                    "epsilon_of_rates": f.epsilon_of_rates,
                    "deficit": _finite(f.deficit),
                    "rates": vars(f.rates),
                }
                for f in self.findings
            ],
        }

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


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


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

    Parameters
    ----------
    estimator : estimator
        An estimator of this package, or any with parameters `epsilon` and `delta` and a ``fit(X)``.
        Clones are fitted with noise from the operating system: `random_state` and `ledger` are set
        to None.
    pairs : Pair or sequence of Pair, optional
        Neighboring data sets; a pilot run chooses among several. By default, pairs that are hard
        for most algorithms.
    fits : int, default=20000
        Total number of fits: half on each data set, and half used for learning.
    seed : int, default=0
        Seed of the choice of pairs and of the learning, never of the noise.
    jobs : int, default=1
        Processes.
    error : float, default=1e-6
        Probability that any of the lower bounds is too large.
    deficit : float, optional
        Deliberately make the noise too small by this factor, to see whether it is found.

    Returns
    -------
    certificate : Certificate
        Lower bounds, the claim, and the smallest deficit that would have been found.

    Notes
    -----
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
    learn, _, _ = _parts(len(runs.rows), _SHOWN)
    shown = scores(Table(runs.rows), runs.is_other, learn, seed)
    shown = shown or {"nothing differs": np.zeros(len(runs.rows))}
    views = [_View("the fitted estimator", shown, _SHOWN)]
    if runs.ratios is not None and np.ptp(runs.ratios):
        views.append(_view_of_releases(runs.ratios, claim))
    findings = tuple(_finding(view, runs.is_other, claim, error / len(views)) for view in views)
    return Certificate(type(estimator).__name__, pair.name, claim, fits, error, findings, deficit)


def _promise(estimator: Any, pair: Pair, jobs: int, deficit: float | None) -> float:
    """How well a few fits on a pair can be told apart, by the best single number.

    A pair is a promising one if a single number separates it. The pilot's fits are not counted
    again.
    """
    runs = run_pair(estimator, pair, _PILOT, jobs=jobs, deficit=deficit)
    found = best_column(Table(runs.rows), runs.is_other)
    return found if runs.ratios is None else max(found, separation(runs.ratios, runs.is_other))


@dataclass(frozen=True)
class _View:
    """What can be seen of a fit, as numbers of several distinguishers.

    Two views are taken where it can be done. "The fitted estimator" is what a user of a model sees.
    "All releases" is what the guarantee is about, so it has far more power.
    """

    name: str
    scores: dict[str, np.ndarray]
    # parts of the fits: up to the first to learn from, up to the second to choose with
    ends: tuple[float, float]
    levels: tuple[float, ...] | None = (
        None  # thresholds to choose from; quantiles of the numbers by default
    )


def _view_of_releases(ratios: np.ndarray, claim: Claim) -> _View:
    """For mu-GDP, a test at log-ratio zero has the rates Phi(mu/2) and 1 - Phi(mu/2).

    With no choice to be made, all fits can be counted.
    """
    # Of a Gaussian shift the two rates are equally far from 1/2 at zero, where a bound of mu has
    # the smallest error: nothing is left to choose.
    scores = {"log-likelihood ratio": ratios}
    if claim.kind == GAUSSIAN:
        return _View("all releases", scores, _KNOWN, (0.0,))
    return _View("all releases", scores, _RELEASED, _LEVELS)


def _parts(n: int, ends: tuple[float, float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fits to learn from, to choose with, and to count on; each has equally many of both sides.

    Those of the two data sets alternate; `ends` are those of a `_View`. Disjoint: the counted fits
    are independent of the test that counts on them, so the limits are exact.
    """
    place = np.arange(n) // 2 / (n / 2)
    return place < ends[0], (ends[0] <= place) & (place < ends[1]), place >= ends[1]


def _finding(view: _View, is_other: np.ndarray, claim: Claim, error: float) -> Finding:
    """Choose a distinguisher and a threshold, then count on fits that had no part in it.

    `error` is the chance that either limit of the two rates is wrong.
    """
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
    """The distinguisher and the threshold with the largest lower bound on the fits that choose.

    Where no bound is above zero, that with the largest difference of the two rates. Trying many of
    them costs nothing but power: the choice is made before the counted fits are looked at.
    """
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
