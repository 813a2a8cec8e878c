"""The fits of a search, inside one session: first steps, candidates, the choice, the last fit.

The shared first steps are fitted once. Each run fits the other steps of a candidate, and releases a
noisy score; the run with the largest one is chosen. If the plan says so, the chosen candidate is
fitted once more.

:meth:`Runner._all` makes one run of each candidate and releases all of them; each is paid for.
:meth:`Runner._best` draws by a public rule which candidates are run, and how often, and releases
the winner only. It is cheaper for many candidates, but its guarantee (Theorem 1 of
doc/development/private_search.md) holds only for as long as nobody learns how many runs there were.
So in the second way these are as secret as the rows, and each has its place in the code:

* the number of runs: the number of tasks that threads are given is public (:meth:`Runner._made`),
  and with `constant_time` the number of fits is too;
* the winner's place among the runs: only its candidate's number leaves :meth:`Runner._best`;
* scores of losers: NaN in the table, as if those candidates had never been drawn;
* what fits say and how they fail: every run is silent, callbacks of the estimators included, and a
  failure is the lowest score.

Nothing is shown while runs are made, and attributes are set when everything is done.
"""

import math
from collections.abc import Callable, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np

from .._base import fits_inside
from .._costs.plan import PrivacyPlan
from .._privacy._selection import Geometric, Thin
from .._privacy._session import PrivacySession
from .._privacy._units import Units
from .._privacy.mechanisms.pure import open_step
from .._rows.threads import ask_all, n_threads
from .._silence import attempt_silently, suppress_output
from .._sklearn_compat import without_callbacks
from ._candidates import Fitted, Step, transformed
from ._scorers import noisy_score
from ._search_plan import SCORE, Fit, SearchPlan


@dataclass(frozen=True)
class Outcome:
    """The releases of a search. `candidates` and all but one of the `scores` are there only where
    every run is released."""

    index: int  # of the chosen candidate
    fitted: Any  # the answer; while the last fit is still to come, the winning run
    scores: np.ndarray  # (n_candidates,); NaN where nothing was released
    candidates: list[Fitted | None] | None
    noise: float  # standard deviation of the noise of a score


@dataclass
class Runner:
    """Fits of one search, on one checked table, in its session."""

    plan: SearchPlan
    session: PrivacySession
    X: Any
    y: Any
    units: Units
    groups: Any
    n_jobs: int | None
    progress: Callable[[str], None]  # told the name of each step, where all runs are released
    names: np.ndarray | None = None  # of the columns
    step: Any = None
    prefix: Sequence[tuple[str, Any]] = ()

    def run(self) -> Outcome:
        """Make all fits and choose. The step is opened, and so paid for, before any fit; the first
        steps are fitted before the choice: Theorem 1 counts them as releases before it."""
        plan = self.plan
        if plan.best_of is not None:
            target = plan.plan.target
            self.step = open_step(
                self.session, "selection", epsilon=cast(float, target.epsilon), delta=target.delta
            )
        if plan.prefix is not None:
            session = self._inner("first steps", plan.prefix.plan, "first steps")
            with suppress_output():
                self.prefix = self._fitted(plan.prefix.steps, session, self.X)
            self._tell("first steps")
        with suppress_output():
            if not plan.runs:  # one candidate, which is not scored: its last fit is the answer
                outcome = Outcome(0, None, np.array([math.nan]), None, math.nan)
            else:
                outcome = self._all() if self.step is None else self._best()
        self._tell("candidates")
        if plan.refits is not None:
            fit = plan.refits[outcome.index]
            session = self._inner("last fit", fit.plan, "last fit")
            with suppress_output():
                fitted = self._chain(fit, session, outcome.index)
            outcome = replace(outcome, fitted=fitted)
            self._tell("last fit")
        if outcome.fitted is None:
            raise RuntimeError("no candidate could be fitted.")
        return outcome

    def _tell(self, step: str) -> None:
        """A step is done; not told where the number of runs is secret: times would tell it."""
        if self.step is None:
            self.progress(step)

    def _inner(self, entry: str, plan: PrivacyPlan, tag: str) -> PrivacySession:
        """The session of one fit. In a step everything is paid at once, by Theorem 1."""
        if self.step is not None:
            return self.session.inside(plan, tag)
        return self.session.inner(entry, plan, tag)

    def _all(self) -> Outcome:
        """Run every candidate once, all of them released. Sessions are made here, in the order of
        the candidates, so noise does not depend on which thread comes first."""
        runs = self.plan.runs
        sessions = [
            self._inner("candidates", run.plan, f"candidate {i}") for i, run in enumerate(runs)
        ]
        scores, fitted = zip(*self._made(list(range(len(runs))), sessions), strict=True)
        index = int(np.argmax(scores))
        noise = _noise_of(sessions[index])
        return Outcome(index, fitted[index], np.array(scores), list(fitted), noise)

    def _best(self) -> Outcome:
        """Secretly many runs, of which the best is released and all others are forgotten.

        Nothing that leaves this method may tell how many runs there were, or the place of the
        winner among them: not the report, not the tag of its noise, not a message. With
        `constant_time`, runs are added up to the most that the rule can draw, and cut off before
        the choice. Without, whoever can measure the time learns about the number of runs; `BestOf`
        says so."""
        rule, runs = self.plan.split.rule, self.plan.runs
        drawn = self.step.runs(rule).tolist()
        counted = len(drawn)
        if self.plan.best_of.constant_time:
            drawn += self._surplus(drawn)
        sessions = [self._inner("", runs[j].plan, f"run {t}") for t, j in enumerate(drawn)]
        results = self._made(drawn, sessions)[:counted]
        best = int(np.argmax([score for score, _ in results]))  # of equal scores, the earliest run
        index, (score, winner) = drawn[best], results[best]
        scores = np.full(len(runs), math.nan)
        scores[index] = score
        return Outcome(index, winner, scores, None, _noise_of(sessions[best]))

    def _surplus(self, drawn: list[int]) -> list[int]:
        """Candidates of the runs that do not count, so that which are run tells nothing: where each
        is drawn once at most, all others; where each run draws one, these do too."""
        rule = self.plan.split.rule
        if isinstance(rule, Thin):
            return sorted({*range(rule.m)} - {*drawn})
        rule = cast(Geometric, rule)
        surplus = self.session.rng("surplus").integers(rule.m, size=int(rule.cap))
        return surplus[len(drawn) :].tolist()

    def _made(
        self, numbers: list[int], sessions: list[PrivacySession]
    ) -> list[tuple[float, Fitted | None]]:
        """Score and model of each run, in order; the number of tasks does not tell how many there
        are.

        There is one task for each thread, with every `tasks`-th run, even if some get none: with
        one for each run, joblib would know a number that is secret. They are made in the order of
        their candidates, or the surplus would come last."""
        tasks = n_threads(self.n_jobs)
        order = np.argsort(numbers, kind="stable").tolist()
        shares = [order[first::tasks] for first in range(tasks)]
        answers = ask_all(
            lambda share: [self._attempt(numbers[t], sessions[t]) for t in share],
            shares,
            n_jobs=self.n_jobs,
        )
        outcomes: list[Any] = [None] * len(numbers)
        for share, (results, error) in zip(shares, answers, strict=True):
            if error is not None:
                raise error
            for t, result in zip(share, results, strict=True):
                outcomes[t] = result
        return outcomes

    def _attempt(self, number: int, session: PrivacySession) -> tuple[float, Fitted | None]:
        """A run in silence; one that fails has the lowest score there is. That is private only if
        failures follow from releases, as those of this package do. An error that ended the search
        would tell that some run was made whose rows made it fail."""
        outcome, error = attempt_silently(self._scored, number, session)
        return outcome if error is None else (-math.inf, None)

    def _scored(self, number: int, session: PrivacySession) -> tuple[float, Fitted]:
        """Fit a candidate and release its noisy score: what Theorem 1 calls a run."""
        fitted = self._chain(self.plan.runs[number], session, number)
        rows = self.X, self.y, self.units
        return noisy_score(session, self.plan.scorer, fitted, *rows), fitted

    def _chain(self, fit: Fit, session: PrivacySession, number: int) -> Fitted:
        """All fitted steps of a candidate, the shared ones sliced as it wants them. Rows are
        transformed again for each run, and numbers that overflow become finite."""
        wanted = self.plan.candidates[number].steps
        prefix = [
            (name, _sliced(step, like.estimator))
            for (name, step), like in zip(self.prefix, wanted, strict=False)
        ]
        X = self.X
        for _, step in prefix:
            X = transformed(step, X)
        return Fitted(prefix + self._fitted(fit.steps, session, X)).stripped()

    def _fitted(
        self, steps: Sequence[Step], session: PrivacySession, X: Any
    ) -> list[tuple[str, Any]]:
        """Fit copies of some steps in turn; private ones ask the run's session for their budget."""
        done: list[tuple[str, Any]] = []
        for step in steps:
            if done:
                X = transformed(done[-1][1], X)
            estimator = without_callbacks(deepcopy(step.estimator))
            if step.private:
                if X is self.X and self.names is not None:  # what its status calls the columns
                    estimator._names_of_search = self.names
                opened = partial(session.inner, step.name, tag=step.name)
                with fits_inside(estimator, opened):
                    estimator.fit(X, self.y, groups=self.groups)
            done.append((step.name, estimator))
        return done


def _sliced(step: Any, like: Any) -> Any:
    """A copy of a fitted step that keeps fewer of its releases, as a candidate wants."""
    names = getattr(step, "_post_processing_params", ())
    wanted = {name: getattr(like, name) for name in names}
    if all(getattr(step, name) == value for name, value in wanted.items()):
        return step
    return copy(step)._post_processed(**wanted)


def _noise_of(session: PrivacySession) -> float:
    """Standard deviation of the noise of the score of a run, as its report tells: public."""
    made = (row for row in session.report().releases if row["release"] == SCORE)
    return next((row.get("sigma", math.nan) for row in made), math.nan)
