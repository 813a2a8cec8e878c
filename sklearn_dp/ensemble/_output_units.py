"""Comparable units of the outputs of blocks: an origin and a scale for each column, released.

A coefficient of an age and one of an income differ by factors of thousands, and noise that is the
same in both would hide one of them. For each column up to three numbers are chosen, at equal cost:

1. a power of two within which half of the outputs lie in absolute value: its unit,
2. of 128 equal steps between minus and plus that number, the one that has the median,
3. a power of two within which half of them lie about it.

Where the blocks are not enough for the last two, columns that lie far from zero by their own
standards keep the first. A choice is right if its rank is off by less than half of the blocks; of
the same noise, a histogram of octaves would want half of them in one bin. A column that is zero in
most blocks keeps the unit that it has.
"""

import math

import numpy as np

from .._aggregate.one_cluster.radius import exponential_epsilon
from .._privacy._plan import Mechanism, PlanEntry
from .._privacy._pure_releases import choose
from .._privacy._session import PrivacySession
from .._queries.coordinates import Columns
from .._queries.outputs import MiddleScores
from .._queries.table_rows import TableRows
from .._status import Message, Status

UNITS = "units"
"""Name of the plan entry that pays for them."""

_SHARE = 0.25  # of the budget, at most
_MISSED, _WELL = 0.5, 0.25  # of the blocks: by which a rank may be off; which is exact enough
_FAILURE = 0.01  # chance that the rank of any choice is off by more
_MAGNITUDES = np.append(0.0, 2.0 ** np.arange(-63, 64))
_STEPS = 64  # on each side of zero
_SPREADS = 2.0 ** np.arange(-20, 2)  # times the magnitude


def _each(rho: float, n_choices: int) -> float:
    """What a choice may cost."""
    return rho / n_choices * (1 - 1e-9)


def _off(rho: float, n_choices: int) -> float:
    """By how many blocks no rank of so many choices is off, but for `_FAILURE`."""
    # By the exponential mechanism: the chance of a score t below the best is at most the number of
    # candidates times exp(-epsilon t / 2).
    epsilon = exponential_epsilon(_each(rho, n_choices))
    return 2 / epsilon * math.log(2 * _STEPS * n_choices / _FAILURE)


def _enough(rho: float, n_choices: int) -> int:
    """How many blocks it takes to make so many choices, out of `rho` for all of a fit."""
    return math.ceil(_off(_SHARE * rho, n_choices) / _MISSED)


def blocks_for_units(rho: float, n_outputs: int, n_blocks: float) -> float:
    """`n_blocks`, or as many as units take: at most three times as many. More blocks have fewer
    rows each. Where it takes still more, there are no units."""
    for choices in (3 * n_outputs, n_outputs):
        enough = _enough(rho, choices)
        if enough <= 3 * n_blocks:
            return max(enough, n_blocks)
    return n_blocks


def unit_entries(rho: float, n_blocks: int, n_outputs: int) -> tuple[PlanEntry, ...]:
    """The plan entry for units, out of `rho` for all; none where the noise would hide them."""
    for choices in (3 * n_outputs, n_outputs):
        if n_blocks >= _enough(rho, choices):
            # Ranks are off in proportion to 1 / sqrt(share): no more is spent than is of use.
            off = _off(_SHARE * rho, choices) / (_WELL * n_blocks)
            cost = _SHARE * rho * min(1.0, off**2)
            words = "1 block"
            return (PlanEntry(UNITS, Mechanism.EXPONENTIAL, cost, uses=choices, sensitivity=words),)
    return ()


def release_units(session: PrivacySession, outputs: TableRows, n_working: float) -> Columns:
    """Origins and scales of the columns of the active outputs, as the plan pays for them."""
    d = outputs.n_features
    entry = next((each for each in session.plan.entries if each.name == UNITS), None)
    if entry is None:
        return Columns(np.zeros(d), np.ones(d), False)
    assert entry.uses is not None
    epsilon = exponential_epsilon(_each(entry.rho, entry.uses))
    half = max(1, int(n_working / 2))

    def chosen(column: int, grid: np.ndarray, about: float | None) -> float:
        """About the smallest number of a public or released grid that half are no more than."""
        scores = outputs.ask(MiddleScores(column, grid, half, about))
        return float(grid[choose(session, UNITS, scores, epsilon=epsilon)])

    magnitude = np.array([chosen(j, _MAGNITUDES, 0.0) for j in range(d)])
    unit = np.where(magnitude > 0, magnitude, 1.0)
    if entry.uses == d:
        return Columns(np.zeros(d), unit, True)
    step = unit / _STEPS
    grid = np.arange(1 - _STEPS, _STEPS + 1)
    median = np.array([chosen(j, step[j] * grid, None) for j in range(d)]) - step / 2
    spread = [chosen(j, unit[j] * _SPREADS, float(median[j])) for j in range(d)]
    return Columns(np.where(magnitude > 0, median, 0.0), np.where(magnitude > 0, spread, 1.0), True)


def hidden_units(error: np.ndarray, spreads: bool) -> Status:
    """The status of outputs with an error in their units: spreads over the blocks, or magnitudes.
    The noise is about the same in all columns. Above one spread it tells less than a block does. A
    magnitude is up to twice the size of most outputs: half of it may be all of an output."""
    part = float(np.median(error))
    if part <= (1.0 if spreads else 0.5):
        return Status()
    what = "spread over the blocks" if spreads else "size"
    text = f"mostly noise: the standard error of an output is about {100 * part:.0f}% of its {what}"
    action = 'use output_bounds, aggregator="mean" or a larger n_blocks'
    return Status([Message("mostly_noise", text, (), action, "all")])
