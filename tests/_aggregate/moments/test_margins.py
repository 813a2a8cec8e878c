"""What is known of each column by itself."""

import numpy as np
import pytest
from kernel_tools import open_session

from sklearn_dp._aggregate.moments.margins import margin_entries, margins
from sklearn_dp._parameters import domain_of
from sklearn_dp._privacy._units import Units
from sklearn_dp._queries._query import TableRows


def released(X, box=None, rho=0.01, seed=0):
    session = open_session(*margin_entries(rho), rho=rho, delta=0.1, random_state=seed)
    domain = None if box is None else domain_of(box, X.shape[1])
    return margins(session, TableRows.in_memory(X, Units(len(X))), domain)


SHAPES = {
    "normal": (lambda rng, n: rng.normal(size=n), False, False),
    "two clusters": (lambda rng, n: rng.normal(size=n) + 30 * (rng.random(n) < 0.3), False, False),
    "two values": (lambda rng, n: rng.integers(1, 3, n), True, True),
    "a rare value": (lambda rng, n: rng.random(n) < 0.03, True, True),
    "mostly zero": (
        lambda rng, n: np.where(rng.random(n) < 0.1, rng.normal(9, 1, n), 0),
        True,
        False,
    ),
    "ages": (lambda rng, n: rng.integers(18, 90, n), False, False),
}


@pytest.mark.quick("0.0-*", "*-normal-True")
@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("offset", [0.0, 1.0, 2023.0, -5.0, 1e4])
def test_spreads_and_shared_values_are_seen_at_any_offset(name, offset, bounded):
    make, shared, few = SHAPES[name]
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = np.column_stack([make(rng, 30_000) + offset, rng.normal(size=30_000)])
        box = (X.min(axis=0) - 1, X.max(axis=0) + 2) if bounded else None
        found = released(X, box, seed=seed)
        assert not found.unseen.any() and found.few.tolist() == [few, False]
        assert (found.extra > 0).tolist() == [shared, False]
        ratio = found.spread * found.scale / X.std(axis=0)
        # Far from zero, rare values may be in one bin with the others.
        most = 3.0 if name == "a rare value" and offset > 1000 and not bounded else 1.4
        assert np.all((ratio > 0.7) & (ratio < most)), ratio
        # A column of shared values counts a third of its spread, or less.
        assert (found.spread[0] < 0.34) == shared


def test_a_column_of_one_value_is_told_with_that_value():
    for value in (0.0, 1.0, 2023.0, -5.0):
        for bounded in (False, True):
            X = np.column_stack(
                [np.full(20_000, value), np.random.default_rng(0).normal(size=20_000)]
            )
            box = (X.min(axis=0) - 1, X.max(axis=0) + 2) if bounded else None
            found = released(X, box)
            assert found.single.tolist() == [True, False] and found.spread[0] == 0
            off = abs(found.to_table(np.zeros(2))[0] - value)
            assert off <= found.resolution[0] and found.resolution[0] < 1e-3 * max(abs(value), 1)
