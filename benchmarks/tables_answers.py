"""Answers about tables as people have them: with weights of a survey, and what is called "ok".

Parts of ``benchmarks/tables.py``.
"""

import warnings
from itertools import pairwise

import numpy as np
import pandas

from sklearn_dp import DPKMeans, DPQuantiles, DPStandardScaler, FriendlyCovariance, FriendlyMean

__all__ = ["rare", "status", "weighted"]

LARGEST = 300


# -- weights of a survey ---------------------------------------------------------------------------


def survey(n, rng):
    """Ages and incomes in two far groups, and weights of 1 to 300: rich people have small ones."""
    group = rng.random(n) < 0.3
    X = np.column_stack([rng.normal(45, 15, n), rng.lognormal(10 + 2 * group, 0.5, n)])
    weights = np.round(LARGEST ** np.clip(rng.normal(0.6 - 0.3 * group, 0.2, n), 0, 1))
    return X, weights


def weighted(runs, n=20_000):
    """Bias in standard errors, and the share of 95% intervals that hold the truth."""
    X, weights = survey(2_000_000, np.random.default_rng(10**6))
    truth, box = np.average(X, axis=0, weights=weights), ([0, 0], [120, 2e6])
    found = {}
    for seed in range(runs):
        X, weights = survey(n, np.random.default_rng(seed))
        for bounds, name in ((box, "box"), (None, "none")):
            options = {"bounds": bounds, "max_weight": LARGEST, "random_state": seed}
            mean = FriendlyMean(**options).fit(X, sample_weight=weights)
            location = FriendlyCovariance(**options).fit(X, sample_weight=weights)
            clusters = DPKMeans(2, **options).fit(X, sample_weight=weights)
            # The noise is all of their error, so the truth is that of these rows.
            totals = np.bincount(clusters.predict(X), weights, 2)
            for key, value, error, true in (
                ("FriendlyMean", mean.mean_, mean.mean_std_error_, truth),
                ("location_", location.location_, location.location_std_error_, truth),
                (
                    "DPKMeans, weights",
                    clusters.cluster_weights_,
                    clusters.cluster_weights_std_error_,
                    totals,
                ),
            ):
                found.setdefault((key, name), []).append((value - true) / error)
    for (key, name), off in found.items():
        held = np.mean(np.abs(off) <= 1.96, axis=0)
        yield (
            key,
            name,
            n,
            float(np.mean(off, axis=0).min()),
            float(np.mean(off)),
            float(held.min()),
        )


# -- rare values -----------------------------------------------------------------------------------

RARE = 0.01


def _moments(model):
    """Means, variances, or None, and their errors."""
    if isinstance(model, FriendlyMean):
        return (model.mean_, model.mean_std_error_), None
    spreads = np.diag(model.covariance_), np.diag(model.covariance_std_error_)
    return (model.location_, model.location_std_error_), spreads


def rare(runs, sizes=(2000, 10_000)):
    """Of a flag beside ages in a box: shares of 95% intervals that hold, and errors in spreads."""
    spread = np.sqrt(RARE * (1 - RARE))
    for cls in (FriendlyMean, FriendlyCovariance):
        for ages in (1, 5):
            high = np.append(np.full(ages, 100.0), 1.0)
            for n in sizes:
                for epsilon in (0.5, 1.0, 2.0):
                    held, off, told = [], [], []
                    for seed in range(runs):
                        rng = np.random.default_rng([n, seed])
                        X = np.column_stack([rng.normal(50, 15, (n, ages)), rng.random(n) < RARE])
                        model = cls(epsilon=epsilon, bounds=(0 * high, high), random_state=seed)
                        (means, errors), seconds = _moments(model.fit(np.clip(X, 0, high)))
                        near = np.abs(means - np.append(np.full(ages, 50.0), RARE)) < 1.96 * errors
                        of_square = np.nan
                        if seconds is not None:
                            apart = abs(seconds[0][-1] - spread**2)
                            of_square = float(apart < 1.96 * seconds[1][-1])
                        held.append((near[-1], of_square, near[:-1].mean()))
                        off.append(((means[-1] - RARE) / spread, errors[-1] / spread))
                        told.append(model.column_status_[-1] == "ok")
                    error = np.sqrt(np.mean(np.square(off), axis=0))[0], np.median(off, axis=0)[1]
                    shares = *np.mean(held, axis=0), *error, np.mean(told)
                    yield cls.__name__, ages, n, epsilon, *shares


# -- what is called "ok" ---------------------------------------------------------------------------


def _age(rng):
    middle, sd = rng.uniform(30, 60), rng.uniform(5, 20)
    return lambda r, n: np.clip(r.normal(middle, sd, n), 0, 110), (0, 110)


def _money(rng):
    mu, sigma = rng.uniform(3, 11), rng.uniform(0.3, 1.2)
    return lambda r, n: r.lognormal(mu, sigma, n), (0, float(np.exp(mu + 4.5 * sigma)))


def _hours(rng):
    shape = rng.uniform(2, 9)
    return lambda r, n: np.minimum(r.gamma(shape, 36 / shape, n), 100), (0, 100)


def _gifts(rng):
    part, size = rng.uniform(0.05, 0.5), 10 ** rng.uniform(1, 4)
    return lambda r, n: r.exponential(size, n) * (r.random(n) < part), (0, 15 * size)


def _heaped(rng):
    size = rng.uniform(5, 20)
    return lambda r, n: np.round(r.gamma(2, size, n) / 5) * 5, (0, 12 * size)


def _constant(rng):
    value = float(np.round(rng.uniform(-50, 50)))
    return lambda r, n: np.full(n, value), (value - 20, value + 20)


KINDS = (_age, _money, _hours, _gifts, _heaped, _constant)
LEVELS = (0.25, 0.5, 0.75)


def mixed(seed):
    """A table of 3 to 6 columns, its box or None, and a large sample of the same laws."""
    rng = np.random.default_rng(seed)
    kinds = rng.choice(len(KINDS), rng.integers(3, 7))
    laws = [KINDS[kind](rng) for kind in kinds]
    n = int(10 ** rng.uniform(np.log10(300), np.log10(30_000)))
    X, large = (np.column_stack([draw(rng, size) for draw, _ in laws]) for size in (n, 400_000))
    box = tuple(np.array([box for _, box in laws]).T) if rng.random() < 0.5 else None
    return X, box, large


def _told(model, d):
    """Whether there is anything to say of each column: by codes, or by the names in the words.

    Of shape (d,), or (k, d) where each center has codes of its own.
    """
    codes = getattr(model, "cluster_centers_status_", None)
    if codes is not None:
        return codes != "ok"
    codes = getattr(model, "column_status_", None)
    if codes is not None and isinstance(model, FriendlyCovariance):
        codes = np.where(codes == "variance", "ok of means", codes)
    columns = {name for each in model.messages_ for name in each.columns}
    named = np.array([f"x{j}" in columns for j in range(d)])
    if codes is None:
        return np.full(d, not model.trustworthy_) & (named | ~named.any()) | named
    good = np.char.startswith(codes, "ok")
    return ~good | ((not model.trustworthy_) & (codes == "ok").all())


def _wrong(value, error, truth, spread):
    off = np.abs(value - truth)
    # Numbers have digits: a column of one value is off by its last ones.
    last = 1e-9 * np.maximum(np.abs(truth), 1e-9)
    return (off > spread / 2) & (spread > 0) | ~(off <= 4 * error + last)


def _mean(X, large, options):
    model = FriendlyMean(**options).fit(X)
    return model, [(model.mean_, model.mean_std_error_, large.mean(axis=0))]


def _location(X, large, options):
    model = FriendlyCovariance(**options).fit(X)
    return model, [(model.location_, model.location_std_error_, large.mean(axis=0))]


def _scaler(X, large, options):
    model = DPStandardScaler(**options).fit(X)
    means = model.mean_, model.mean_std_error_, large.mean(axis=0)
    return model, [means, (model.scale_, model.scale_std_error_, large.std(axis=0))]


def _quantiles(X, large, options):
    model = DPQuantiles(LEVELS, **options).fit(X)
    true = np.quantile(large, LEVELS, axis=0)
    return model, list(zip(model.quantiles_, model.quantiles_std_error_, true, strict=True))


def _centers(X, large, options):
    """Centers as means of their own rows, where there are any."""
    model = DPKMeans(3, **options).fit(X)
    labels, errors = model.predict(X), model.cluster_centers_std_error_
    truth = np.full_like(errors, np.nan)  # of centers without rows, which do not count
    for j in np.unique(labels):
        truth[j] = X[labels == j].mean(axis=0)
    return model, list(zip(model.cluster_centers_, errors, truth, strict=True))


FITS = 4  # of each table, with other noise
BANDS = (0, 1 / 8, 1 / 4, 1 / 2, np.inf)  # of errors, in spreads


def status(tables):
    """Shares of coordinates that are wrong and called ok, and of those complained of, by error."""
    fits = {
        "FriendlyMean": _mean,
        "FriendlyCovariance.location_": _location,
        "DPKMeans": _centers,
        "DPStandardScaler": _scaler,
        "DPQuantiles": _quantiles,
    }
    for name, fit in fits.items():
        wrong, told, error = np.hstack([_judged(fit, seed) for seed in range(tables)])
        wrong, told = wrong.astype(bool), told.astype(bool)
        bands = [told[(low <= error) & (error < high)].mean() for low, high in pairwise(BANDS)]
        known = error > BANDS[-2]
        ideal = np.mean(wrong & ~known), known[~wrong].mean()
        yield name, len(wrong), np.mean(wrong & ~told), told[~wrong].mean(), *bands, *ideal


def _judged(fit, seed):
    """Of each coordinate of each fit: whether it is wrong, whether it is told, and its error.

    The error is the root mean square over the fits, in spreads of the column.
    """
    X, box, large = mixed(seed)
    frame = pandas.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    spread, found = large.std(axis=0), []
    for number in range(FITS):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            options = {"bounds": box, "random_state": seed + 1000 * number}
            model, answers = fit(frame, large, options)
        value, error, truth = map(np.array, zip(*answers, strict=True))
        flagged = np.array(np.broadcast_to(_told(model, len(spread)), value.shape))
        # "scale" is no alarm about the mean, which comes first.
        flagged[0] &= getattr(model, "column_status_", flagged[0]) != "scale"
        wrong = _wrong(value, error, truth, spread)
        # To be told that a column has one value is no alarm.
        told = flagged & ((spread > 0) | wrong)
        off = np.where(spread > 0, np.abs(value - truth) / np.where(spread > 0, spread, 1.0), 0.0)
        found.append((wrong, told, np.where(np.isnan(truth), np.nan, off)))
    wrong, told, off = map(np.array, zip(*found, strict=True))
    there = ~np.isnan(off)  # centers without rows do not count
    square = np.where(there, off**2, 0.0).sum(axis=0) / np.maximum(there.sum(axis=0), 1)
    error = np.broadcast_to(np.sqrt(square), off.shape)
    return np.array([each[there] for each in (wrong, told, error)])
