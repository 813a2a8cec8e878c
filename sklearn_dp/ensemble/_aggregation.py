"""From the outputs of blocks, of which one may be replaced by any other, to one private vector.

The number of blocks is public, and a unit is in one of them (or the caller pays for more, see
`sampling` of `SampleAndAggregate`). So neighbors differ in one row of the table of outputs, which
may be any vector in either of them: sensitivities below are for *replacing* a row, and none depends
on what the estimator does with its block.

How many blocks worked is released. The outputs are put into comparable units, public or released;
without bounds, a radius that holds nine in ten of them is chosen. They are aggregated, clipped:
"one_cluster" by a small ball that holds an agreed fraction of them, and their mean there;
"friendly_core" by the average of those that are near to most others; "mean" by the mean of all.

Outputs are numbers that are read off fitted estimators, and put on a fresh one. Their shapes must
be public: an estimator is fitted once to dummy rows (:func:`probe`), and a fit with an output of
another shape is a failed fit.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from .._aggregate.one_cluster.center import Region, ball_mean, choice, exponential_epsilon
from .._aggregate.one_cluster.search import (
    Search,
    fit_one_cluster,
    one_cluster_entries,
    points_needed,
    seen_ball,
)
from .._aggregate.shared.advice import advice, hidden_in_noise
from .._aggregate.shared.centering import noise_sd
from .._aggregate.tuples import tuple_average, tuple_entries, tuples_needed
from .._costs.budget import PrivacyBudget
from .._costs.numbers import sum_down
from .._costs.plan import Mechanism, PlanEntry
from .._door import check_target, column
from .._parameters import domain_of
from .._privacy._entries import exact_integers, floats, places_among
from .._privacy._grid import Domain
from .._privacy._session import PrivacySession
from .._privacy.mechanisms.pure import choose
from .._queries._query import TableRows
from .._queries.balls import LengthScores, MiddleScores, Usable, Working
from .._queries.columns import Columns
from .._queries.grids import GridRows
from .._silence import attempt_silently, own_streams, suppress_output
from .._sklearn_compat import without_callbacks
from .._status import Code, Message, Status, extent, in_short, names_at

AGGREGATORS = ("one_cluster", "friendly_core", "mean")
_WORKING_SHARE, _BOUND_SHARE = 0.02, 0.1
_HELD = 0.9  # of the outputs, in the ball that stands for bounds
_DELTA_SHARE = {"one_cluster": 0.1, "friendly_core": 0.5, "mean": 0.0}
# Times 1 / sqrt(rho), to which the noise of a count of blocks is in proportion. More blocks mean
# less noise and worse fits in each.
_BLOCKS = {"one_cluster": 50.0, "mean": 16.0}
_BLOCKS_UNBOUNDED = {"one_cluster": 50.0, "mean": 100.0}  # to find units and bounds
_FEWEST_BLOCKS, _MOST_BLOCKS, _MOST_TUPLES = 8, 4096, 1000
_TOO_FAR = 2.0**12  # times a unit: where outputs do not lie
_MORE = "use output_bounds, or a larger n_blocks or epsilon"
_ONE_UNIT = Message(
    "one_scale",
    "there are too few blocks to estimate the scales of the outputs: all have the same error, "
    "which hides small outputs",
    action=_MORE,
)
_BOUND_SQUARES = np.append(0.0, 4.0 ** np.arange(-20, 41))  # radii 2**-20 ... 2**40


# -- aggregation -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Aggregate:
    """The released aggregate of the outputs."""

    vector: np.ndarray  # (n_outputs,)
    n_working: float  # noisy number of blocks whose fit worked
    status: Status
    n_working_sd: float  # of its noise
    error: np.ndarray | None  # of the vector, for the noise; None where it is not known


@dataclass(frozen=True)
class Aggregation:
    """How outputs are aggregated; all of it public."""

    kind: str  # one of `AGGREGATORS`
    n_blocks: Any  # or "auto"
    bounds: Any  # of the outputs; None: a radius is paid for
    agreement: float  # fraction of the outputs in a ball, for "one_cluster"
    budget: Any = "a larger epsilon".format  # of the fit, for words about what would help

    # -- plan -----------------------------------------------------------------------------------

    def spending(self, target):
        """The rho for everything, and the part of delta for failures: all of it for zCDP."""
        failure = _DELTA_SHARE[self.kind] * target.delta
        if target.rho is not None and failure:
            failure = target.delta
        failure *= 1 - 1e-9
        gaussian = self.kind == "mean" and self.bounds is not None  # and so are all releases
        return target.to_rho(gaussian=gaussian, delta_failure=failure), failure

    def size(self, target: PrivacyBudget, n_outputs: int) -> int:
        """The number of blocks: a function of parameters alone."""
        if self.n_blocks != "auto":
            return int(self.n_blocks)
        rho, failure = self.spending(target)
        if self.kind == "friendly_core":
            return tuples_needed(0.9 * rho, failure, most=_MOST_TUPLES) or _MOST_TUPLES
        bounded = self.bounds is not None
        wanted = (_BLOCKS if bounded else _BLOCKS_UNBOUNDED)[self.kind] / math.sqrt(rho)
        if self.kind == "one_cluster":
            wanted /= self.agreement
        if not bounded:
            wanted = blocks_for_units(rho, n_outputs, wanted)
        return int(min(max(wanted, _FEWEST_BLOCKS), _MOST_BLOCKS))

    def _search(self):
        # Where most outputs agree, their mean leads to them.
        return Search(center_method="clip" if self.agreement >= 0.5 else "grid", replace=True)

    def entries(self, target: PrivacyBudget, n_outputs: int) -> tuple[PlanEntry, ...]:
        """Releases from the outputs of the blocks, of which one is replaced."""
        rho, failure = self.spending(target)
        entries = [PlanEntry.gaussian("working blocks", _WORKING_SHARE * rho, "1 block")]
        if self.bounds is None:
            entries += unit_entries(rho, self.size(target, n_outputs), n_outputs)
            law, cost = Mechanism.EXPONENTIAL, _BOUND_SHARE * rho
            entries.append(PlanEntry("bound", law, cost, sensitivity="1 block"))
        rest = sum_down([rho, *(-entry.rho for entry in entries)])
        if self.kind == "one_cluster":
            return (*entries, *one_cluster_entries(rest, failure, self._search()))
        if self.kind == "friendly_core":
            return (*entries, *tuple_entries(rest, failure))
        return (*entries, PlanEntry.gaussian("mean", rest, "1 block replaced"))

    # -- releases -------------------------------------------------------------------------------

    def run(self, session, outputs, n_blocks):
        """Release the aggregate of outputs, NaN for failed ones, of a public number of blocks."""
        sd = noise_sd(session.remaining("working blocks"))
        n_working = float(session.release("working blocks", outputs.ask(Working()))[0])
        outputs.apply(Usable())
        d = outputs.n_features
        if self.bounds is None:
            columns = release_units(session, outputs, n_working)
        else:
            columns = Columns.of(domain_of(self.bounds, d), d)
        columns.applied_to(outputs)
        domain = self._output_domain(session, outputs, n_blocks, columns)
        by = getattr(self, f"_by_{self.kind}")
        vector, status, error = by(session, outputs, n_blocks, domain)
        vector = columns.to_table(domain.clip_points(vector))
        if n_working < n_blocks / 2:
            text = "most blocks failed, perhaps because they have too few rows"
            status = _useless("failed_blocks", text)
        elif not status and n_working < 2 * sd:
            more = advice(4 * sd / n_blocks, self.budget, n_blocks, units="blocks")
            text = "few blocks for this budget: noise could explain their number"
            status = _useless("few_blocks", text, more)
        elif not status and self.bounds is None and d > 1:
            # In the right units half of each column is within one of the origin.
            if not columns.scaled:
                status = Status([_ONE_UNIT])
            elif domain.radius > _TOO_FAR * math.sqrt(d):
                text = "the scales of the outputs are mostly noise"
                status = _useless("mostly_noise", text, _MORE)
            elif error is not None:
                status = hidden_units(error, bool(columns.origin.any()))
        error = None if error is None else error * columns.scale
        return Aggregate(vector, n_working, status, sd, error)

    def _output_domain(
        self, session: PrivacySession, outputs: TableRows, n_blocks: int, columns: Columns
    ) -> Domain:
        """The public bounds in these columns, or a ball that holds nine in ten, paid for."""
        if columns.domain is not None:
            return columns.domain
        crossing, epsilon = choice(
            _HELD * n_blocks, len(_BOUND_SQUARES), session.remaining("bound")
        )
        scores = outputs.ask(LengthScores(crossing, _BOUND_SQUARES))
        chosen = choose(session, "bound", scores, epsilon=epsilon)
        radius = max(math.sqrt(_BOUND_SQUARES[chosen]), 2.0**-20)
        return Domain.about_origin(radius, outputs.n_features)

    # The ways to aggregate take (session, outputs, n_blocks, domain), the domain being public or
    # released by now, and give a vector, a status, and the standard error of the vector, where it
    # is known. What did not work is left out.

    def _by_one_cluster(self, session, outputs, n_blocks, domain):
        rows = GridRows.quantize(outputs, domain)
        target = max(1, int(self.agreement * n_blocks))
        ball = fit_one_cluster(session, rows, target, self._search())
        status, times = seen_ball(ball, self.budget), points_needed(ball) / ball.target
        if status:
            # More blocks help where even as many as were looked for could not be told from none.
            more = advice(times, self.budget, n_blocks, units="blocks") if times > 1 else ""
            status = _useless("few_blocks", "few blocks agree", more)
        return ball.center * rows.unit + domain.center, status, ball.error * rows.unit

    def _by_mean(self, session, outputs, n_blocks, domain):
        rows, rho = GridRows.quantize(outputs, domain), session.remaining("mean")
        region = Region(np.zeros(rows.n_features), rows.limit)
        mean = ball_mean(session, "mean", rows, region, rho, replace=True)
        error = float(np.linalg.norm(mean.error)) * rows.unit
        status = self._judged(error, domain, mean.size, mean.size - 2 * mean.size_sd)
        return mean.mean * rows.unit + domain.center, status, mean.error * rows.unit

    def _by_friendly_core(self, session, outputs, n_blocks, domain):
        d = outputs.n_features
        Columns(np.zeros(d), np.ones(d), False, domain).applied_to(outputs, always=True)
        # Tuples of one point each; those that are not active are nobody's friends.
        average = tuple_average(session, outputs, domain.center, domain.radius, n_blocks)
        if average is None:
            action = "use more blocks or a larger epsilon"
            return domain.center, _useless("few_blocks", "no core found", action), None
        error = np.full(len(average.mean), average.sd)
        length = float(np.linalg.norm(error))
        # The released size is a lower bound already, and at least one.
        status = self._judged(length, domain, average.size, average.size)
        return average.mean + domain.center, status, error

    def _judged(self, error, domain, size, least):
        """All outputs are within the bounds: an error of half of these says nothing of them."""
        known = error, domain.radius, self.budget, size, least
        return hidden_in_noise("their bounds", *known, units="blocks")


def _useless(code: Code, text: str, action: str = "") -> Status:
    """No output can be used."""
    return Status([Message(code, text, (), action, "all")])


# -- comparable units of the outputs ---------------------------------------------------------------
# A coefficient of an age and one of an income differ by factors of thousands, and noise that is the
# same in both would hide one of them. For each column up to three numbers are chosen, at equal
# cost:
#
# 1. a power of two within which half of the outputs lie in absolute value: its unit,
# 2. of 128 equal steps between minus and plus that number, the one that has the median,
# 3. a power of two within which half of them lie about it.
#
# Where the blocks are not enough for the last two, columns that lie far from zero by their own
# standards keep the first. A choice is right if its rank is off by less than half of the blocks; of
# the same noise, a histogram of octaves would want half of them in one bin. A column that is zero
# in most blocks keeps the unit that it has.


UNITS = "units"
"""Name of the plan entry that pays for them."""

_SHARE = 0.25  # of the budget, at most
_MISSED, _WELL = 0.5, 0.25  # of the blocks: by which a rank may be off; which is exact enough
_FAILURE = 0.01  # chance that the rank of any choice is off by more
_MAGNITUDES = np.append(0.0, 2.0 ** np.arange(-63, 64))
_STEPS = 64  # on each side of zero
_SPREADS = 2.0 ** np.arange(-20, 2)  # times the magnitude


def _each(rho: float, n_choices: int) -> float:
    """Return the budget of one choice."""
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
    """`n_blocks`, or as many as units take, up to three times as many."""
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
    """The status of outputs with an error in their units: above one spread over the blocks, or half
    of a magnitude, which is up to twice the size of most outputs."""
    part = float(np.median(error))
    if part <= (1.0 if spreads else 0.5):
        return Status()
    what = "spread over the blocks" if spreads else "size"
    text = f"mostly noise: the standard error of an output is about {100 * part:.0f}% of its {what}"
    action = 'use output_bounds, aggregator="mean" or a larger n_blocks'
    return _useless("mostly_noise", text, action)


# -- outputs of an estimator -----------------------------------------------------------------------


_PROBE_ROWS = 128
_MOST_COLUMNS = 2**19  # half a gigabyte of dummy rows
_TOLD = 1.96  # standard errors within which a coefficient may be zero
_GOLDEN_ANGLE = 2.399963  # radians
_USUAL = (
    ("coef_", "intercept_"),
    ("center_", "scale_"),
    ("center_",),
    ("mean_", "scale_"),
    ("location_", "covariance_"),
)
"""The default output of an estimator is the first of these that it has."""


class WithTarget(BaseEstimator):
    """An estimator that takes the target from the last column, for a classifier as places."""

    def __init__(self, estimator, classes=None):
        self.estimator = estimator
        self.classes = classes

    def fit(self, rows):
        if self.classes is not None:  # rows with another label are left out
            rows = rows[rows[:, -1] >= 0]
        y = rows[:, -1]
        if self.classes is not None:
            y = labels_of(self.classes)[exact_integers(y)]
        self.fitted_ = clone(self.estimator).fit(rows[:, :-1], y)
        return self


def labels_of(classes):
    """The public labels of a classifier as an array: of one type if all are texts or numbers."""
    labels = column(classes, "classes")
    kinds = {str if isinstance(each, str) else type(each) for each in labels.tolist()}
    same_kind = labels.dtype == object and (len(kinds) == 1 or kinds <= {int, float})
    return np.array(labels.tolist()) if same_kind else labels


def target_column(y, n, labels=None):
    """A target of `n` rows as numbers, or one error for all that may be wrong with it.

    With public `labels` of a classifier the numbers are their places; other labels are -1, since
    an error would reveal that they are there."""
    if y is None:
        raise ValueError("y must be given: the estimator needs a target.")
    check_target(y)
    given = column(y, "y")
    if labels is None:
        numbers, wrong = floats(given)
    else:
        # A column may be a list of lists, of one label each.
        entries = [
            each[0] if type(each) is list and len(each) == 1 else each for each in given.tolist()
        ]
        numbers, wrong = places_among(entries, labels.tolist()).astype(float), set()
    if wrong or len(numbers) != n or not np.isfinite(numbers).all():
        raise ValueError(
            "y must be a vector of finite numbers (of labels, for a classifier), "
            "one for each row of X."
        )
    return numbers


@dataclass(frozen=True)
class Output:
    """Which attributes of a fitted estimator are wanted, and their public shapes.

    >>> from types import SimpleNamespace
    >>> output = Output(("coef_", "intercept_"), ((2,), ()), ())
    >>> output.read(SimpleNamespace(coef_=[1, 2], intercept_=3.0))
    array([1., 2., 3.])
    >>> fresh = SimpleNamespace()
    >>> output.write(fresh, np.array([4.0, 5.0, 6.0]))
    >>> fresh
    namespace(coef_=array([4., 5.]), intercept_=6.0)
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]  # one for each name; () for a number
    signs: tuple[str, ...]  # names whose rows have arbitrary signs

    @property
    def size(self):
        """Length of the flat vector."""
        return sum(math.prod(shape) for shape in self.shapes)

    def read(self, fitted):
        """Flat vector of one fitted estimator; fails on any other shape."""
        fitted = getattr(fitted, "fitted_", fitted)
        values = [np.asarray(getattr(fitted, name), dtype=np.float64) for name in self.names]
        if tuple(value.shape for value in values) != self.shapes:
            raise ValueError("another shape")
        named = zip(self.names, values, strict=True)
        parts = [_fix_signs(value) if name in self.signs else value for name, value in named]
        return np.concatenate([part.ravel() for part in parts])

    def hidden(self, vector, error, *, bounded):
        """Return the status of released outputs, which are compared with their own errors."""
        if bounded and (np.abs(vector) < _TOLD * error).all():
            text = "mostly noise: no output can be told from zero"
            action = "use closer output_bounds, more rows or a larger epsilon"
            return _useless("mostly_noise", text, action)
        sizes = [math.prod(shape) for shape in self.shapes]
        of_coef = np.repeat([name == "coef_" for name in self.names], sizes)
        noisy = np.abs(vector[of_coef]) < _TOLD * error[of_coef]
        number = int(np.count_nonzero(noisy))
        if 2 * number <= noisy.size:
            return Status()
        shape = self.shapes[self.names.index("coef_")]
        places = [f"coef_[{', '.join(map(str, place))}]" for place in np.ndindex(*shape)]
        text = (
            f"mostly noise: {number} of the {noisy.size} coefficients cannot be "
            f"told from zero ({in_short(names_at(places, noisy))}), so predictions may be far off"
        )
        action = "use more rows, fewer columns or a larger epsilon"
        return Status([Message("mostly_noise", text, (), action, extent(number, noisy.size))])

    def write(self, fitted, vector):
        """Set the attributes of a fresh estimator."""
        ends = np.cumsum([math.prod(shape) for shape in self.shapes])
        parts = np.split(vector, ends[:-1])
        for name, shape, part in zip(self.names, self.shapes, parts, strict=True):
            setattr(fitted, name, float(part[0]) if shape == () else part.reshape(shape))


def _fix_signs(rows):
    """Each row with the sign that makes its product with a fixed direction positive: only rows that
    are nearly orthogonal to it flip between blocks."""
    direction = np.cos(np.arange(rows.shape[-1]) * _GOLDEN_ANGLE)  # public, far from any axis
    return rows * np.where(rows @ direction < 0, -1.0, 1.0)[..., None]


def probe(trainable, n_columns, names, signs, n_classes=None):
    """The output of an estimator, in public shapes: from a fit to dummy rows, with a target in the
    last column. Without `names` it is the first of `_USUAL` that a fit has."""
    if n_columns > _MOST_COLUMNS:
        raise ValueError(
            f"n_features, the columns of X, must be at most {_MOST_COLUMNS:,}: the estimator is "
            f"first fitted to {_PROBE_ROWS} dummy rows to find the shape of its output."
        )
    rows = np.sin(1.7 * np.arange(1, _PROBE_ROWS * n_columns + 1) ** 1.3)
    rows = rows.reshape(_PROBE_ROWS, n_columns)
    if n_classes is not None:
        rows[:, -1] = np.arange(_PROBE_ROWS) % n_classes

    def values_of_a_fit():
        fitted = without_callbacks(clone(trainable)).fit(rows)
        return _numbers(getattr(fitted, "fitted_", fitted))

    with suppress_output(), own_streams() as start_stream:
        start_stream(0)
        values = attempt_silently(values_of_a_fit)[0]
    if values is None:
        raise ValueError("estimator: it could not be fitted to dummy data. Check its parameters.")
    wanted = _USUAL if names is None else (tuple(names),)
    match = next((each for each in wanted if values.keys() >= {*each}), None)
    if match is None:
        asked = "none of the usual attributes" if names is None else f"not {', '.join(names)}"
        raise ValueError(
            f"output: fitted to dummy data, the estimator has {asked} as numbers, but has "
            f"{', '.join(sorted({*values} - {'n_features_in_'})) or 'none at all'}."
            + " Clusters have no order: use DPKTupleKMeans."
            * ("cluster_centers_" in values)
        )
    return Output(match, tuple(values[name].shape for name in match), tuple(signs))


def _numbers(fitted):
    """Attributes of a fitted estimator that are arrays of finite numbers, by name."""
    numbers = {}
    for name in dir(fitted):
        if name.endswith("_") and name[0] != "_":
            # Some are properties, which may ask for what is not there. None is a NaN to numpy.
            value = attempt_silently(lambda name=name: np.asarray(getattr(fitted, name), float))[0]
            if value is not None and np.isfinite(value).all():
                numbers[name] = value
    return numbers


def clip_features(domain, n_features, block):
    """Rows of a block, clipped to public bounds; a target in the last column stays."""
    if domain is None:
        return block
    return np.column_stack([domain.clip_points(block[:, :n_features]), block[:, n_features:]])
