"""Thousands of neighbors for every estimator; as a program, it counts them and prints a table.

python tests/neighbor_audits.py [ESTIMATOR ...] [--pairs 2000]
"""

import argparse
import warnings
from itertools import count, cycle, repeat

import numpy as np
from configurations import ESTIMATORS, configurations
from threadpoolctl import threadpool_limits

from benchmarks.certify.drawn import drawn_audit, drawn_cases
from benchmarks.certify.inherited import hard_groups
from sklearn_dp.audit import replay_audit
from sklearn_dp.audit._replay import STORAGES, ReplayResult

__all__ = ["mixed_neighbors_of", "neighbors_of"]


def data_sets():
    """Clusters in 2 to 12 dimensions, ties, equal rows, far away; and next to nothing."""
    rng = np.random.default_rng(7)
    places = 3 * rng.uniform(-1, 1, size=(3, 12))

    def clusters(n, d):
        return places[np.arange(n) % 3, :d] + 0.2 * rng.uniform(-1, 1, size=(n, d))

    yield clusters(200, 3)
    yield clusters(40, 12)
    yield 1e5 + 1e3 * clusters(30, 2)
    yield rng.integers(0, 3, size=(40, 4)).astype(float)
    yield np.tile(clusters(1, 5), (20, 1))
    for n in (0, 1, 2):
        yield clusters(n, 3)


def groupings(n, seed):
    """Numbers, and in turn big numbers, sets and objects of many types."""
    yield np.random.default_rng(seed).integers(0, n // 2, size=n)
    yield list(hard_groups(n).values())[seed // 2 % 3]


def audits(estimators, seed, both=True, **options):
    """All the data sets, each in another storage, with rows and with groups as units.

    Parameters
    ----------
    estimators : iterator of estimators
        Each audit takes the next one.
    seed : int
    both : bool
        Whether each data set meets both groupings, or the next one in turn.
    **options
        Of `replay_audit`.
    """
    for number, X in enumerate(data_sets()):
        options["storage"] = STORAGES[(seed // 2 + number) % len(STORAGES)]
        yield replay_audit(next(estimators), X, random_state=seed, **options)
        if len(X) > 2:
            kinds = list(groupings(len(X), seed))
            for groups in kinds if both else kinds[number % 2 :][:1]:
                yield replay_audit(
                    next(estimators), X, groups=groups, random_state=seed + 1, **options
                )
    cases = list(drawn_cases(15, seed))
    yield drawn_audit(next(estimators), cases, pairs=4, random_state=seed)


def mixed_neighbors_of(name):
    """All the data sets once: some 200 pairs, over all the settings of an estimator in turn.

    Strangers are left to `check_replay`: they would be a quarter of the fits.
    """
    estimators = cycle([setting.estimator for setting in configurations("neighbors", name)])
    return sum(audits(estimators, 0, both=False, strangers=False), ReplayResult(name))


def neighbors_of(name, pairs):
    """At least so many pairs that are not voided, over all the settings of an estimator.

    Warnings are errors in all of them (see `sklearn_dp.audit._observe.run_fit`), and the farthest
    rows are +-1.7e308 of random signs.
    """
    settings = configurations("neighbors", name)
    total = ReplayResult(name)
    for number in count():
        estimator = settings[number % len(settings)].estimator
        for result in audits(repeat(estimator), 2 * number):
            total += result
        if total.violations or (
            number >= len(settings) - 1 and total.n_pairs - total.n_voided >= pairs
        ):
            return total


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="ESTIMATOR", default=list(ESTIMATORS))
    parser.add_argument("--pairs", type=int, default=2000)
    options = parser.parse_args()
    print(
        f"{'estimator':<22}{'pairs':>8}{'voided':>8}{'violations':>12}{'distance':>10}", flush=True
    )
    bad = 0
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in options.names:
            found = neighbors_of(name, options.pairs)
            bad += len(found.violations)
            print(
                f"{name:<22}{found.n_pairs:>8}{found.n_voided:>8}{len(found.violations):>12}"
                f"{max(found.ratios.values()):>10.6f}",
                *found.violations[:3],
                sep="\n  ",
                flush=True,
            )
    raise SystemExit(bool(bad))


if __name__ == "__main__":
    main()
