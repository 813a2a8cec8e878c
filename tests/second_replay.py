"""A second replay, which shares nothing with that of `sklearn_dp.audit` but the public hook.

python tests/second_replay.py [ESTIMATOR ...] [--mutants]

It records a fit on D, forces the outputs on fits of neighbors, and has its own idea of everything
else: who is a neighbor, how the randomness of single units follows them, how far apart two values
of each kind are, what a release costs by the scale that the sampler used, and what a fit may show.
An error in the first replay is then no error here. A line of the table is an estimator in all its
settings, with rows and with groups of two rows as units. With ``--mutants`` each plan entry in turn
claims half of its sensitivity, all samplers draw noise that is too small by a thousandth, and the
seeded bugs of `tests/mutants` are planted: the table says how many of these are caught.
"""

import argparse
import importlib
import inspect
import io
import logging
import math
import pickle
import pkgutil
import re
import warnings
from collections import defaultdict
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from unittest.mock import patch

import mutants  # noqa: F401 - registers them
import numpy as np
from configurations import ESTIMATORS, USES, configurations
from mutants import MUTANTS
from mutants.planting import Mutant
from scipy.linalg import eigvalsh
from scipy.optimize import linear_sum_assignment
from scipy.stats import norm
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from sklearn_dp import _privacy
from sklearn_dp._privacy._noise import NoiseSource
from sklearn_dp.audit import record_releases

__all__ = [
    "DISTANCES",
    "Result",
    "claimed",
    "claimed_half",
    "data_sets",
    "fitting",
    "halves",
    "less_noise",
    "line_of",
    "planted",
    "quietly",
    "replayed",
    "settings",
]

FREE = {"seed", "draws", "order", "copies", "sample", "runs", "condition", "share"}
NOISY = {"gaussian", "sparse", "stability", "laplace", "choice", "lead", "filter"}
NOISY |= {"inner_gaussian", "inner_laplace", "inner_choice"}
CLOSE = 1 + 1e-9


# -- neighbors ------------------------------------------------------------------------------------


def data_sets():
    """Clusters with a border of their own, next to nothing, and rows at the bounds."""
    rng = np.random.default_rng(11)
    places = rng.uniform(-3, 3, size=(3, 3))
    yield places[np.arange(45) % 3] + rng.uniform(-0.2, 0.2, size=(45, 3))
    yield np.array([[-9.0], [-9.0], [9.0], [0.0], [9.0], [0.5]])
    yield np.repeat(rng.integers(-2, 3, size=(6, 2)).astype(float), 5, axis=0)
    yield np.repeat([[0.0], [1.0]], [28, 32], axis=0)  # a row at 2 has friends, and is far out


def fitting(estimator):
    """The data sets that an estimator takes: bounds and starts are of so many columns."""
    widths = {np.shape(getattr(estimator, name, None))[1:] for name in ("bounds", "init")} - {()}
    least = 2 if key_of(estimator) else 1
    return [X for X in data_sets() if widths <= {X.shape[1:]} and X.shape[1] >= least]


def key_of(estimator):
    """The columns that tell in which segment a row is: one number, or none."""
    by = getattr(estimator, "by", None)
    return [] if by is None else [by]


def neighbors(units, points):
    """(units, origins): one unit more, at its place in turn, or one less.

    Units are an array of shape (n, size, d); an origin is the place where a unit was, or -1.
    """
    n, size, d = units.shape
    first, last, far = units[0, 0], units[-1, 0], 4 * np.abs(units).max() + 1
    added = [first, last / 2, np.full(d, far), np.zeros(d), 2 * last - first, *points[:2]]
    for i, row in enumerate(added):
        place = (0, n, n // 2)[i % 3]
        yield (
            np.insert(units, place, np.tile(row, (size, 1)), axis=0),
            np.insert(np.arange(n), place, -1),
        )
    for gone in (0, n // 2, n - 1):
        yield np.delete(units, gone, axis=0), np.delete(np.arange(n), gone)


def released_points(model, d):
    shown = [v for k, v in vars(model).items() if k.endswith("_") and isinstance(v, np.ndarray)]
    arrays = [np.atleast_2d(v) for v in shown if v.ndim and v.dtype.kind == "f"]
    points = [row for a in arrays if a.shape[1:] == (d,) for row in a]
    return [row for row in points if np.isfinite(row).all()]


# -- distances: of two values before noise, in units of what is claimed ----------------------------


class Void(Exception):
    """The recording is an outcome that delta pays for: the pair shows nothing."""


def exact(value):
    """Python integers: differences of int64 may wrap around."""
    return np.asarray(value, dtype=object)


def l2(first, second, units):
    moved = (exact(first.value) - exact(second.value)) / first.sensitivity
    return float(np.linalg.norm(np.ravel(moved).astype(float)))


def l1(first, second, units):
    moved = np.abs(np.ravel(exact(first.value) - exact(second.value)).astype(float))
    own = first.public.get("own", False)  # one of them is the unit's own, which is the farthest
    return (moved.sum() - own * moved.max(initial=0.0)) / first.sensitivity


def largest(first, second, units):
    moved = np.abs(np.asarray(first.value) - np.asarray(second.value))
    return float(moved.max(initial=0)) / first.sensitivity


def cells(event):
    codes, counts = event.value
    return dict(zip(codes.tolist(), counts.tolist(), strict=True))


def of_cells(first, second, units):
    one, other = cells(first), cells(second)
    moved = [one.get(code, 0) - other.get(code, 0) for code in one | other]
    return math.hypot(*moved, 0.0) / first.sensitivity


def of_found_cells(first, second, units):
    """Cells that one of them does not have hold one unit, and are hidden but for delta."""
    one, other = cells(first), cells(second)
    if not set(first.output[0].tolist()) <= other.keys():
        raise Void
    moved = [one[code] - other[code] for code in one.keys() & other.keys()]
    lone = [[d[code] for code in d.keys() - e.keys()] for d, e in ((one, other), (other, one))]
    many = max(map(sum, lone)) / first.public["cells"]
    return max(math.hypot(*moved, 0.0) / first.sensitivity, many, *lone[0], *lone[1])


def of_lead(first, second, units):
    a, b = np.asarray(first.value), np.asarray(second.value)
    if np.argmax(a) != np.argmax(b):
        if first.output >= 0:
            raise Void
        return largest(first, second, units)
    leads = [np.diff(np.sort(values)[-2:])[0] for values in (a, b)]
    return max(largest(first, second, units), abs(leads[0] - leads[1]) / 2 / first.sensitivity)


def of_matrices(first, second, units):
    (a, n), (b, m) = first.value, second.value
    a, b = (exact(s).astype(float) / max(1, k) for s, k in ((a, n), (b, m)))
    size = np.sqrt(np.outer(np.diag(a), np.diag(a)))
    with np.errstate(all="ignore"):
        if not np.linalg.eigvalsh(a / size)[0] > 0:
            raise Void
        ratios = eigvalsh(b / size, a / size)
    return (max(ratios[-1], 1 / max(ratios[0], 1e-300)) - 1) / first.sensitivity


def common(first, second, units):
    """Places in both of the elements that both have; elements of either alone."""
    here = np.arange(len(units)) if second.units is None else second.units
    there = np.arange(len(first.value)) if first.units is None else first.units
    place = {int(unit): i for i, unit in enumerate(there)}
    pairs = [(place[int(units[unit])], j) for j, unit in enumerate(here) if units[unit] in place]
    i, j = np.array(pairs, dtype=int).reshape(-1, 2).T
    return i, j, np.setdiff1d(np.arange(len(there)), i), np.setdiff1d(np.arange(len(here)), j)


def of_shifts(event, shifts):
    """The largest against the claim; all of them, as shifts of Gaussians, against the cost."""
    realized = float(np.sum(np.square(shifts / event.draws[0].scale)) / 2)
    return max(shifts.max(initial=0) / event.sensitivity, realized / event.cost)


def of_scores(first, second, units):
    """Friendly cores: whatever survives within delta only voids the pair."""
    bad = first.public["bad"]
    if first.public["fixed"]:  # results of blocks, of which one is another
        if (
            np.any(first.output & (first.value <= bad))
            or np.sum(first.output & (second.value <= bad)) > 1
        ):
            raise Void
        return of_shifts(first, np.sort(np.abs(second.value - first.value))[:-1])
    i, j, gone, _ = common(first, second, units)
    hopeless = (first.value[i] <= bad) & (second.value[j] <= bad)
    if (
        np.any(first.output[i] & hopeless)
        or np.any(first.output[gone] & (first.value[gone] <= bad))
        or len(i) > first.public["most"]
    ):
        raise Void
    return of_shifts(first, np.abs(first.value[i] - second.value[j]))


def of_chances(first, second, units):
    i, j, gone, new = common(first, second, units)
    if np.any(first.output[i] & (second.value[j] <= 0)):
        raise Void
    moved = np.abs(first.value[i] - second.value[j]).sum()
    return (moved + first.value[gone].sum() + second.value[new].sum()) / first.sensitivity


def of_conditions(first, second, units):
    if not (first.value and second.value):
        raise Void
    return 0.0


def of_copies(first, second, units):
    gone = np.setdiff1d(np.arange(len(first.value)), units)
    if np.any(first.value[gone] > 1) or np.any(second.value[units < 0] > 1):
        raise Void
    return 0.0


def nothing(first, second, units):
    return 0.0


DISTANCES = {
    "gaussian": l2,
    "inner_gaussian": l2,
    "laplace": l1,
    "inner_laplace": l1,
    "sparse": of_cells,
    "stability": of_found_cells,
    "choice": largest,
    "inner_choice": largest,
    "lead": of_lead,
    "proportional": of_matrices,
    "filter": of_scores,
    "bernoulli": of_chances,
    "condition": of_conditions,
    "copies": of_copies,
    **dict.fromkeys(("seed", "draws", "order", "sample", "runs", "share", "step", "fit"), nothing),
}
VECTORS = (l2, l1, largest, of_lead)


# -- costs: of what was really drawn ---------------------------------------------------------------


def pure(epsilon):
    """Largest Renyi divergence over its order of randomized response."""
    return epsilon * math.tanh(epsilon / 2)


def laplace_cost(epsilon):
    """The same of two Laplace laws: the limit at order one."""
    return epsilon + math.expm1(-epsilon)


def range_cost(epsilon):
    """Of a bounded range of log-ratios, by Hoeffding's lemma; it is pure, too."""
    return min(epsilon**2 / 8, pure(epsilon))


def cost(event):
    """rho by the scales of the samplers; what is a theorem about a whole step is taken as told."""
    scales, claim = [draw.scale for draw in event.draws], event.sensitivity
    if event.kind in ("gaussian", "sparse", "stability") and scales:
        if event.kind == "stability":  # a cell of one unit stays hidden but for delta
            tail = norm.sf((event.public["low"] - 1.5) / scales[0])
            assert event.public["cells"] * tail <= event.public["delta"] * CLOSE
        return float(np.max(claim / np.asarray(scales[0], dtype=float)) ** 2 / 2)
    if event.kind == "laplace":
        return laplace_cost(claim / float(scales[0]))
    if event.kind == "lead":
        return pure(2 * claim / float(scales[0]))
    if event.kind == "choice" and "threshold" in event.public:
        return pure(claim / float(scales[0]) + 2 * claim / float(scales[1]))
    if event.kind == "choice":
        return range_cost(2 * claim * float(scales[0]))
    return event.cost


def paid(events):
    inner = ("inner_laplace", "inner_gaussian", "inner_choice")
    return [e for e in events if e.kind not in {*FREE, *inner} and "nested" not in e.public]


def total(events):
    """A unit pays for the releases along one chain of parts."""
    charges = [(tuple(e.public.get("part", "").split("/")), cost(e)) for e in paid(events)]
    charges = [(() if part == ("",) else part, rho) for part, rho in charges]
    return max(
        (sum(rho for part, rho in charges if leaf[: len(part)] == part) for leaf, _ in charges),
        default=0.0,
    )


def delta_of(rho, epsilon):
    """Of Gaussian noise, in closed form."""
    mu = math.sqrt(2 * rho)
    return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon + norm.logcdf(-mu / 2 - epsilon / mu))


# -- the replay ------------------------------------------------------------------------------------


@dataclass
class Result:
    """What was found."""

    pairs: int = 0
    voided: int = 0
    problems: list = field(default_factory=list)
    ratios: dict = field(default_factory=lambda: defaultdict(float))


def forced(recorded, units):
    """The outputs of a recording, for other units: each unit keeps its own randomness."""
    coming = iter(recorded)

    def force(event):
        known = next(coming, None)
        if known is None or (known.kind, known.entry) != (event.kind, event.entry):
            return event.output  # noticed when the two are compared
        if event.kind == "draws" and len(event.output) == len(units):
            output = event.output.copy()
            output[units >= 0] = known.output[units[units >= 0]]
            return output
        if event.public.get("fixed"):  # a result of blocks that has lost its friends is dropped
            return known.output & (event.value > event.public["bad"])
        if event.kind in ("filter", "bernoulli"):
            i, j, _, _ = common(known, event, units)
            output = event.output.copy()
            output[j] = known.output[i]
            return output
        if event.kind == "order":  # to where the partners went
            apart = np.linalg.norm(known.value[:, None] - event.value[None], axis=2)
            return linear_sum_assignment(apart)[1][known.output]
        return known.output

    return force


def facts(event):
    """What must be equal for neighbors."""
    drawn = [(draw.law, np.max(draw.scale)) for draw in event.draws]
    return event.kind, event.entry, event.sensitivity, event.scale, event.cost, event.public, drawn


def equal(a, b):
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    return np.array_equal(a, b)


@contextmanager
def heard():
    """What is printed and logged, at any level."""
    text, root = io.StringIO(), logging.root
    handlers, level = root.handlers, root.level
    root.handlers = [logging.StreamHandler(text)]
    root.setLevel(logging.NOTSET)
    try:
        with redirect_stdout(text):
            yield text
    finally:
        root.handlers = handlers
        root.setLevel(level)


def quietly(fit, *data, force=lambda event: event.output):
    """A fit, its releases, and what it shows: its pickle, warnings, prints and log.

    A recording is forced too, on what it draws: reports tell that outputs were forced.
    """
    with (
        heard() as text,
        warnings.catch_warnings(record=True) as caught,
        threadpool_limits(1),
        record_releases(force) as events,
    ):
        warnings.simplefilter("always")
        model = fit(*data)
    told = [str(each.message) for each in caught]
    return model, events, (pickle.dumps(model), told, text.getvalue())


def drawn_as_told(event):
    """Whether the sampler was asked for the scale of the event, unless clients have drawn."""
    return "shares" in event.public or (
        bool(event.draws) and np.array_equal(event.draws[0].scale, event.scale)
    )


def alone(events, plan, model):
    """What is wrong with one fit: its report, the noise of each release, the sum."""
    told, made, rho = model.privacy_report_.releases, paid(events), total(events)
    if [row["release"] for row in told] != [event.entry for event in made]:
        yield "the report has other releases"
        return
    for event in events:
        if event.kind in NOISY and not drawn_as_told(event):
            yield f"{event.entry}: other noise than is told"
    for row, event in zip(told, made, strict=True):
        if cost(event) > row["rho"] * CLOSE:
            yield f"{event.entry}: less noise than it is charged for"
    if rho > plan.rho * CLOSE:
        yield "less noise than the plan asks for"
    epsilon, delta = plan.target.epsilon, plan.target.delta
    exact_curve = plan.gaussian and not plan.delta_failure and epsilon is not None
    if exact_curve and delta_of(rho, epsilon) > delta * (1 + 1e-6):
        yield "more than its epsilon at delta"


def compare(recorded, events, units, result):
    """Two fits with the same outputs: the same releases, and values as close as claimed."""
    for first, second in zip(recorded, events, strict=False):
        if not equal(facts(first), facts(second)):
            yield f"{second.entry} ({second.kind}): something public differs"
            return
        if DISTANCES[first.kind] in VECTORS and np.shape(first.value) != np.shape(second.value):
            yield f"{first.entry}: shape differs"
            continue
        if first.value is not None:
            ratio = DISTANCES[first.kind](first, second, units)
            result.ratios[first.entry] = max(result.ratios[first.entry], ratio)
            if not ratio <= CLOSE:
                yield f"{first.entry}: {ratio:.6g} of the claim"
    if len(recorded) != len(events):
        yield f"{len(recorded)} and {len(events)} events"


def replayed(estimator, data=None, size=1, stop=False):
    """An estimator on data sets and all their neighbors; a unit has so many rows."""
    result = Result()
    for X in fitting(estimator) if data is None else data:
        units = X[: len(X) // size * size].reshape(-1, size, X.shape[1])
        try:
            replay_neighbors(estimator, units, result, stop)
        except Exception as error:  # no fit of these data may fail
            result.problems.append(f"{type(error).__name__}: {error}")
        if stop and result.problems:
            break
    return result


def replay_neighbors(estimator, units, result, stop):
    """Add what is found on one data set to a result."""
    size = units.shape[1]

    def fit(units, names):
        copy = clone(estimator).set_params(random_state=0, ledger=None)
        units = units.copy()
        key = units[:, :1, key_of(estimator)]  # a unit is in one segment: here in 0 or 1
        units[..., key_of(estimator)] = np.abs(np.rint(key)) % 2
        rows = units.reshape(-1, units.shape[2])
        return copy.fit(rows, **({} if size == 1 else {"groups": np.repeat(names, size)}))

    model, recorded, shown = quietly(fit, units, np.arange(len(units)))
    plan = estimator.privacy_plan(units.shape[2], unit="row" if size == 1 else "group")
    result.problems += alone(recorded, plan, model)
    for others, origins in neighbors(units, released_points(model, units.shape[2])):
        if stop and result.problems:
            return
        result.pairs += 1
        _, events, others_show = quietly(fit, others, origins, force=forced(recorded, origins))
        found = Result()
        try:
            problems = list(compare(recorded, events, origins, found))
        except Void:
            result.voided += 1
            continue
        if shown != others_show:
            problems.append("what is shown differs")
        for entry, ratio in found.ratios.items():
            result.ratios[entry] = max(result.ratios[entry], ratio)
        result.problems += problems


# -- mutants ---------------------------------------------------------------------------------------

CLAIMS = {"sensitivity", "distance"}


def claiming():
    """(owner, name) of what tells a session a sensitivity, wherever in the kernel it is."""
    for found in pkgutil.walk_packages(_privacy.__path__, f"{_privacy.__name__}."):
        module = importlib.import_module(found.name)
        for owner in (module, *filter(inspect.isclass, vars(module).values())):
            for name, function in vars(owner).items():
                if inspect.isfunction(function) and function.__module__ == module.__name__:
                    given = {*inspect.signature(function).parameters}
                    if CLAIMS & given and {"self", "session"} & given and name != "__init__":
                        yield owner, name


CLAIMING = [*claiming()]


@contextmanager
def claimed_half(entry):
    """One plan entry claims half of its sensitivity; noise and cost follow the claim."""

    def halved(original):
        def method(self, *args, **options):
            bound = inspect.signature(original).bind(self, *args, **options)
            bound.apply_defaults()
            given = bound.arguments
            if given.get("entry", getattr(self, "_entry", None)) == entry:
                (claim,) = CLAIMS & given.keys()
                given[claim] = np.asarray(given[claim]) / 2
            return original(*bound.args, **bound.kwargs)

        return method

    changes = tuple((owner, name, halved) for owner, name in CLAIMING)
    with Mutant("half of a claim", (), changes).planted():
        yield


@contextmanager
def less_noise(factor):
    """Every sampler draws noise that is too small by a factor; all claims stay as they are."""
    gaussian, laplace = NoiseSource.rounded_gaussian, NoiseSource.rounded_laplace
    choice = NoiseSource.exponential_choice
    with patch.multiple(
        NoiseSource,
        rounded_gaussian=lambda self, sigma, size=None: gaussian(self, sigma / factor, size),
        rounded_laplace=lambda self, scale, size=None: laplace(self, scale / factor, size),
        exponential_choice=lambda self, gaps, rate: choice(self, gaps, rate * factor),
    ):
        yield


def claimed(estimator):
    """Plan entries for which a fit claims a sensitivity."""
    found = {}
    for X in fitting(estimator):
        _, events, _ = quietly(clone(estimator).set_params(random_state=0).fit, X)
        found |= {e.entry: e.kind for e in events if e.sensitivity is not None}
    return found


def halves(name):
    """Of each plan entry, whatever its number, a setting in which half of its claim is caught."""
    caught = {}
    for label, estimator in settings(name).items():
        for entry in claimed(estimator):
            kind = re.sub(r"\d+", "#", entry)
            if caught.setdefault(kind) is None:
                with claimed_half(entry):
                    if replayed(estimator, stop=True).problems:
                        caught[kind] = label
    return caught


def settings(name):
    """All the settings of an estimator, whatever they are used for elsewhere."""
    return {str(c): c.estimator for use in USES for c in configurations(use, name)}


def planted(name):
    """Which seeded bugs that are made for a replay are caught in one estimator; unreached: none."""
    (setting, *_), caught = configurations("mutants", name), {}
    for bug in MUTANTS:
        if "check_replay" in bug.killed_by:
            with bug.planted() as reached:
                found = any(
                    replayed(setting.estimator, size=size, stop=True).problems
                    for size in sizes_of(name)
                )
            caught |= {bug.name: found} if reached else {}
    return caught


def sizes_of(name):
    """Rows of a unit to try."""
    return (1, 2) if "groups" in inspect.signature(ESTIMATORS[name].fit).parameters else (1,)


def line_of(name, plant):
    """A line of the table for one estimator, and its problems."""
    each = settings(name).values()
    found = [replayed(estimator, size=size) for estimator in each for size in sizes_of(name)]
    problems = [text for result in found for text in result.problems]
    line = (
        f"{name:<20}{len(each):>9}{sum(r.pairs for r in found):>7}{sum(r.voided for r in found):>7}"
        f"{len(problems):>9}{max(max(r.ratios.values()) for r in found):>20.16f}"
    )
    if plant:
        caught, bugs = halves(name), planted(name)
        with less_noise(1.001):
            less = [bool(replayed(estimator, stop=True).problems) for estimator in each]
        halved = sum(label is not None for label in caught.values())
        line += (
            f"{halved:>8} of {len(caught):<3}{sum(less):>7} of {len(less):<3}"
            f"{sum(bugs.values()):>7} of {len(bugs):<3}"
        )
        missed = [entry for entry, label in caught.items() if label is None]
        missed += [bug for bug, found in bugs.items() if not found]
        line += f"  not: {', '.join(missed)}" if missed else ""
    return line, problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="ESTIMATOR", default=list(ESTIMATORS))
    parser.add_argument("--mutants", action="store_true", help="halve each claim, and less noise")
    options = parser.parse_args()
    print(
        "estimator            settings  pairs voided problems      distance/claim"
        + "  halved claims  less noise  seeded bugs" * options.mutants
    )
    bad = 0
    for name in options.names:
        line, problems = line_of(name, options.mutants)
        print(line, *dict.fromkeys(problems), sep="\n  ", flush=True)
        bad += len(problems)
    raise SystemExit(bool(bad))


if __name__ == "__main__":
    main()
