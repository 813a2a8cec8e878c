"""Every setting in parts, by the public `fit`: types, groups, weights and cuts crossed (slow).

The other tests of parts hold what the normal suite runs. Here each comparison is of the whole state
of a fitted object, its report too, with that of a fit in memory: 618 comparisons.
"""

import itertools
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from test_partitions import ACROSS, MEANS, MODELS, SETTINGS, WEIGHTS, WIDE, WITHIN, cuts, mean

ALL = {**MODELS, **SETTINGS, **{f"mean, {name}": (mean(name), WIDE) for name in MEANS}}
GROUPS = {"rows": None, "across": ACROSS, "within": WITHIN}
PARTS = (2, 7, 50)


def supported(name, groups, weighted):
    """What `doc/many_machines.md` says of groups and weights."""
    return not (groups != "rows" and name.startswith("mean")) and not (
        weighted and name == "coreset"
    )


CASES = [
    case
    for case in itertools.product(ALL, (np.float64, np.float32), GROUPS, (False, True))
    if supported(case[0], *case[2:])
]


def state(estimator, X, **options):
    """All that a pickle of the fitted object holds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = clone(estimator).fit(X, **options)
    return {name: pickle.dumps(value) for name, value in found.__getstate__().items()}


def test_there_are_as_many_comparisons_as_the_docstring_says():
    assert f" {len(CASES) * len(PARTS)} comparisons" in __doc__
    assert len(CASES) * len(PARTS) >= 200 and {case[0] for case in CASES} == set(ALL)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "dtype", "groups", "weighted"), CASES)
def test_parts_have_the_bits_of_one_array(name, dtype, groups, weighted):
    model, X = ALL[name]
    X = X.astype(dtype)
    options = {} if groups == "rows" else {"groups": GROUPS[groups]}
    if weighted:
        model = clone(model).set_params(max_weight=1.5)
        options["sample_weight"] = WEIGHTS
    known = state(model, X, **options)
    for n_parts in PARTS:
        places = cuts(n_parts)
        cut = {key: [values[place] for place in places] for key, values in options.items()}
        assert state(model, [X[place] for place in places], **cut) == known
