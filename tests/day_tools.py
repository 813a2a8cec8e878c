"""Streams of days under the replay audit: one mechanism, of which one unit moves one day."""

import pickle
import warnings

import numpy as np
from sklearn.base import clone

from sklearn_dp._privacy._trace import trace
from sklearn_dp.audit._laws import law_of
from sklearn_dp.audit._observe import Outcome
from sklearn_dp.audit._replay import Recorder, Replay, different

CENTERS = np.random.default_rng(7).uniform(-0.5, 0.5, size=(4, 3))


def rows_of(day, n=300):
    rng = np.random.default_rng([1, day])
    return CENTERS[rng.integers(4, size=n)] + 0.05 * rng.normal(size=(n, 3))


STREAMS = {"one day each": {}, "two days each": {"n_days": 2}, "forgetting": {"half_life": 2.0}}


def evening(model):
    """What a model is the next morning."""
    return pickle.loads(pickle.dumps(model))


def run(estimator, days, traces, **options):
    """Fit day by day, each day under its trace, with a night in between."""
    model = clone(estimator).set_params(ledger=None, random_state=0)
    for rows, each in zip(days, traces, strict=True):
        with warnings.catch_warnings(), trace(each):
            warnings.simplefilter("ignore")
            model = evening(model.partial_fit(rows, **options))
    return model


def face(model):
    return Outcome(model, (), None).face()


def recorded(estimator, days, **options):
    """A stream, what it shows, and the releases of each day."""
    traces = [Recorder() for _ in days]
    model = run(estimator, days, traces, **options)
    return model, face(model), [each.events for each in traces]


def problems(estimator, days, recording, day, pair, ratios=None, **options):
    """What is wrong where the rows of one day are those of a neighbor, and later days go on.

    The releases of that day may move, for what a day costs; those of all other days must not.
    `ratios` is filled with the largest distance of each over its claim.
    """
    model, shown, events = recording
    others = [np.arange(len(rows)) for rows in days]
    units = [pair.units if i == day else place for i, place in enumerate(others)]
    replays = [Replay(each, place) for each, place in zip(events, units, strict=True)]
    rows = [pair.X if i == day else each for i, each in enumerate(days)]
    other = run(estimator, rows, replays, **options)
    found = [text for replay in replays for text in replay.finish()]
    for name, ratio in replays[day].ratios.items() if ratios is not None else ():
        ratios[name] = max(ratios.get(name, 0.0), ratio)
    costs = [
        sum(
            cost
            for name, cost in replay.loss.items()
            if any(event.entry == name and law_of(event).in_rho for event in each)
        )
        for replay, each in zip(replays, events, strict=True)
    ]
    found += [f"day {i} moves" for i, cost in enumerate(costs) if i != day and cost > 0]
    if sum(costs) > model.days_.cost[2] * (1 + 1e-9):
        found.append("the stream costs more than a day")
    return found + different(shown, face(other))
