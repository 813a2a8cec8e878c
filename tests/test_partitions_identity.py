"""Every setting in parts, by the public `fit`: types, groups, weights and cuts crossed.

Each comparison is of the whole state of a fitted object, its report too, with that of a fit in
memory. The normal suite makes some of each setting, in turn; all of them are slow.
"""

import itertools
import pickle
import warnings

import numpy as np
import pytest
from partition_models import AGGREGATES, BALLS, BLOCKS, MIXTURES, PLACES, RADII, mixture
from sklearn.base import clone
from test_partitions import ACROSS, MEANS, MODELS, SETTINGS, WEIGHTS, WIDE, WITHIN, cuts, mean

from sklearn_dp.ledger import PrivacyBudget, PrivacyLedger

ALL = {
    **MODELS,
    **SETTINGS,
    **{f"mean, {name}": (mean(name), WIDE) for name in MEANS},
    **{f"blocks, {name}": case[:2] for name, case in BLOCKS.items()},
    **{f"ball, {name}": case for name, case in {**BALLS, **RADII}.items()},
    **{f"mixture, {name}": (model, PLACES) for name, model in MIXTURES.items()},
    **{f"aggregate, {name}": case for name, case in AGGREGATES.items()},
}
GROUPS = {"rows": None, "across": ACROSS, "within": WITHIN}
PARTS = (1, 2, 7, 50)
# Fits of a few milliseconds.
QUICK = (
    "coreset", "components", "components in a box", "gram", "mean, epsilon", "ball, copies",
    "ball, screen",
)  # fmt: skip


def supported(name, weighted):
    """What `doc/many_machines.md` says of weights; all take groups."""
    takes_weights = "max_weight" in ALL[name][0].get_params()
    return not weighted or (takes_weights and not name.startswith("mixture, "))


CASES = [
    case
    for case in itertools.product(ALL, (np.float64, np.float32), GROUPS, (False, True))
    if supported(case[0], case[3])
]


def normal():
    """All cases of quick settings, and one of each other setting: the next one for the next."""
    for number, name in enumerate(ALL):
        own = [case for case in CASES if case[0] == name]
        if name in QUICK:
            yield from own
        elif name != "ball, published":
            yield own[5 * number % len(own)]


NORMAL = list(normal())


def cuts_of(case):
    """In the normal suite: cuts in turn where a fit takes longer, and many parts now and then."""
    if case[0] not in QUICK:
        return PARTS[1 + NORMAL.index(case) % 2 :][:1]
    return PARTS if case[0] != NORMAL[NORMAL.index(case) - 1][0] else PARTS[:3]


def test_there_are_as_many_comparisons_as_there_should_be():
    assert sum(len(cuts_of(case)) for case in NORMAL) >= 200
    assert {case[0] for case in NORMAL} == set(ALL) - {"ball, published"}
    slower = [case for case in NORMAL if case[0] not in QUICK]
    for place, values in ((1, 2), (2, 3), (3, 2)):
        assert len({case[place] for case in slower}) == values
    assert len(CASES) * len(PARTS) > 1000


def state(estimator, X, *targets, **options):
    """All that a pickle of the fitted object holds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = clone(estimator).fit(X, *targets, **options)
    return {name: pickle.dumps(value) for name, value in found.__getstate__().items()}


def check(case, parts):
    name, dtype, groups, weighted = case
    model, X, *targets = ALL[name]
    X, options = X.astype(dtype), {}
    if groups != "rows":
        options["groups"] = GROUPS[groups][: len(X)]
    if weighted:
        model = clone(model).set_params(max_weight=1.5)
        options["sample_weight"] = WEIGHTS[: len(X)]
    known = state(model, X, *targets, **options)
    for n_parts in parts:
        places = cuts(n_parts, len(X))
        cut = {key: [values[place] for place in places] for key, values in options.items()}
        columns = [[values[place] for place in places] for values in (X, *targets)]
        assert state(model, *columns, **cut) == known


@pytest.mark.parametrize("case", NORMAL, ids=str)
def test_parts_have_the_bits_of_one_array(case):
    check(case, cuts_of(case))


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_all_parts_have_the_bits_of_one_array(case):
    check(case, PARTS)


def test_weights_of_mixtures_are_refused_before_the_charge():
    ledger = PrivacyLedger(PrivacyBudget(epsilon=1e4, delta=1e-4))
    parts, weights = np.array_split(PLACES, 3), np.array_split(np.ones(len(PLACES)), 3)
    for way in ("joint balls", "tuples"):
        asked = mixture(way, ledger=ledger)
        for fit in (asked.fit, asked.fit_partitions):
            with pytest.raises(ValueError, match="^sample_weight: only method='coreset'"):
                fit(parts, sample_weight=weights)
    assert ledger.remaining["epsilon"] == 1e4
