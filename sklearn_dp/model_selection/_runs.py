"""The fits of a search, inside one session: first steps, candidates, the choice, the last fit."""

import math
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from .._aggregate.shared.blocks import ask_all, n_threads
from .._aggregate.shared.silence import attempt_silently, silent
from .._base import fits_inside
from ._allowance import longest
from ._fitted import Fitted, transformed
from ._plans import SCORE
from ._scorers import noisy_score

__all__ = ["Outcome", "Runner"]


@dataclass(frozen=True)
class Outcome:
    """What a search releases.

    Attributes
    ----------
    index : int
        Of the chosen candidate.
    fitted : Fitted or None
        The answer; while the last fit is still to come, the winning run.
    scores : ndarray of shape (n_candidates,)
        NaN where nothing was released.
    candidates : list of Fitted or None
        All of them, where all are released.
    noise : float
        Standard deviation of the noise of a score.
    """

    index: int
    fitted: Fitted | None
    scores: np.ndarray
    candidates: list | None
    noise: float


class Runner:
    """Fits of one search, on one table.

    Parameters
    ----------
    search_plan : SearchPlan
    session : PrivacySession
        Of ``search_plan.plan``.
    X : ndarray of shape (n, d)
    y : ndarray of shape (n,) or None
    units : Units
    groups : array-like or None
    n_jobs : int or None
        Threads that make runs side by side.
    """

    def __init__(self, search_plan, session, X, y, units, groups, n_jobs):
        self._plan, self._session = search_plan, session
        self._X, self._y, self._units, self._groups = X, y, units, groups
        self._n_jobs = n_jobs
        self._step: Any = None
        self._prefix: list[tuple[str, Any]] = []

    def run(self):
        """Make all fits and choose.

        Returns
        -------
        outcome : Outcome
        """
        plan = self._plan
        if plan.best_of is not None:
            target = plan.plan.target
            self._step = self._session.step("selection", epsilon=target.epsilon, delta=target.delta)
        if plan.prefix is not None:
            session = self._inner("first steps", plan.prefix.plan, "first steps")
            with silent():
                self._prefix = self._fitted(plan.prefix.steps, session, self._X)
        with silent():
            outcome = self._chosen()
            if plan.refits is not None:
                fit = plan.refits[outcome.index]
                session = self._inner("last fit", fit.plan, "last fit")
                fitted = self._chain(fit, session, outcome.index)
                outcome = replace(outcome, fitted=fitted)
        if outcome.fitted is None:
            raise RuntimeError("no candidate could be fitted.")
        return outcome

    def _chosen(self):
        if not self._plan.runs:
            return Outcome(0, None, np.array([math.nan]), None, math.nan)
        return self._all() if self._step is None else self._best()

    def _inner(self, entry, plan, tag):
        """The session of one fit. In a step everything is paid at once, by Theorem 1."""
        if self._step is not None:
            return self._session.inside(plan, tag)
        return self._session.inner(entry, plan, tag)

    def _all(self):
        """Every candidate once, all of them released."""
        runs = self._plan.runs
        sessions = [
            self._inner("candidates", run.plan, f"candidate {i}") for i, run in enumerate(runs)
        ]
        found = self._made(list(range(len(runs))), sessions)
        scores = np.array([score for score, _ in found])
        index = int(np.argmax(scores))
        return Outcome(
            index,
            found[index][1],
            scores,
            [fitted for _, fitted in found],
            _noise_of(sessions[index]),
        )

    def _best(self):
        """Secretly many runs, of which the best is released and all others are forgotten.

        Nothing that leaves this method may tell how many runs there were, or the place of the
        winner among them: not the report, not the tag of its noise, not a message.
        """
        rule, runs = self._plan.allowance.rule, self._plan.runs
        drawn = self._step.runs(rule).tolist()
        counted = len(drawn)
        if self._plan.best_of.constant_time:
            drawn += [0] * (longest(rule) - counted)
        sessions = [self._inner("", runs[j].plan, f"run {t}") for t, j in enumerate(drawn)]
        found = self._made(drawn, sessions)[:counted]
        best = int(np.argmax([score for score, _ in found]))  # of equal scores, the earliest run
        index, (score, winner) = drawn[best], found[best]
        scores = np.full(len(runs), math.nan)
        scores[index] = score
        return Outcome(index, winner, scores, None, _noise_of(sessions[best]))

    def _made(self, numbers, sessions):
        """Score and model of each run; the number of tasks does not tell how many there are."""
        tasks = n_threads(self._n_jobs)
        shares = [range(first, len(numbers), tasks) for first in range(tasks)]
        answers = ask_all(
            lambda share: [self._attempt(numbers[t], sessions[t]) for t in share],
            shares,
            n_jobs=self._n_jobs,
        )
        found = [None] * len(numbers)
        for share, (results, error) in zip(shares, answers, strict=True):
            if error is not None:
                raise error
            for t, result in zip(share, results, strict=True):
                found[t] = result
        return found

    def _attempt(self, number, session):
        """A run in silence; one that fails has the lowest score there is.

        That is private only if the failure follows from what the run released. The estimators of
        this package do not fail otherwise: what their fits do depends on releases alone.
        """
        found, error = attempt_silently(self._scored, number, session)
        return found if error is None else (-math.inf, None)

    def _scored(self, number, session):
        fitted = self._chain(self._plan.runs[number], session, number)
        score = noisy_score(
            session, SCORE, self._plan.scorer, fitted, self._X, self._y, self._units
        )
        return score, fitted

    def _chain(self, fit, session, number):
        """All fitted steps of a candidate, the shared ones as it wants them."""
        wanted = self._plan.candidates[number].steps
        prefix = [
            (name, _sliced(step, like.estimator))
            for (name, step), like in zip(self._prefix, wanted, strict=False)
        ]
        X = self._X
        for _, step in prefix:
            X = transformed(step, X)
        return Fitted(prefix + self._fitted(fit.steps, session, X)).stripped()

    def _fitted(self, steps, session, X):
        """Fit some steps in turn, each on what the one before makes of the rows."""
        done: list[tuple[str, Any]] = []
        for step in steps:
            if done:
                X = transformed(done[-1][1], X)
            estimator = deepcopy(step.estimator)
            if step.private:
                with fits_inside(partial(_paid_step, session, step.name)):
                    estimator.fit(X, self._y, groups=self._groups)
            done.append((step.name, estimator))
        return done


def _paid_step(session, name, plan):
    """The session of one step of a run: the run pays for it."""
    return session.inner(name, plan, name)


def _sliced(step, like):
    """A fitted step as a candidate wants it: a copy that keeps fewer of its releases."""
    names = getattr(step, "_post_processing_params", ())
    wanted = {name: getattr(like, name) for name in names}
    if all(getattr(step, name) == value for name, value in wanted.items()):
        return step
    return copy(step)._post_processed(**wanted)


def _noise_of(session):
    """Standard deviation of the noise of the score of a run, as its report tells."""
    made = (row for row in session.report().releases if row["release"] == SCORE)
    return next((row.get("sigma", math.nan) for row in made), math.nan)
