"""Groups that are spread over the parts of a table, where a point stands for a group.

The mean of the rows of a group takes all of them together: by a shuffle of the engine.
"""

import numpy as np
import pytest
import test_partitions_of_balls as balls
from test_partitions import ACROSS, MEANS, WIDE, cuts, fitted, in_memory, mean, released

from sklearn_dp._rows.table import LocalEngine

N = len(WIDE)
MODELS = {
    **{f"mean: {name}": (mean(name), WIDE) for name in MEANS},
    **{f"ball: {name}": case for name, case in balls.MODELS.items()},
}
SHORT = ("mean: epsilon", "mean: basic", "ball: boxes", "ball: balls", "ball: screen")


@pytest.mark.quick("mean: basic", "ball: screen")
@pytest.mark.parametrize("name", SHORT)
def test_groups_of_many_parts_in_any_order(name):
    model, X = MODELS[name]
    order = np.random.default_rng(1).permutation(N)
    known = released(in_memory(model, X[order], groups=ACROSS[order]))
    for places in (cuts(1), cuts(50)):
        places = [order[place] for place in places]
        assert released(fitted(model, X, places, ACROSS, engine=LocalEngine)[0]) == known
