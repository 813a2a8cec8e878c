"""Neighbors under replay, for any parameters and tables: nothing shown may differ."""

import numpy as np
import pytest
from estimators import all_estimators
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from sklearn_dp.audit import neighboring_pairs, replay_audit
from sklearn_dp.audit._observe import KINDS

from .arguments import fresh, good_options
from .tables import VALUES, numbers

ESTIMATORS = dict(all_estimators())
FAST, LONG = 2, 120
_LEFT_OUT = ("ledger", "random_state")
"""Parameters that a replay sets itself."""


@pytest.fixture(autouse=True)
def one_thread():
    """Small arrays: more threads only get into each other's way."""
    with threadpool_limits(1):
        yield


def models(cls):
    """Estimators with a few parameters that are right; most of them fit, some refuse."""
    good = {name: values for name, values in good_options(cls).items() if name not in _LEFT_OUT}
    return st.dictionaries(st.sampled_from(sorted(good)), st.integers(0, 11), max_size=4).map(
        lambda chosen: cls(
            **{name: fresh(good[name][number % len(good[name])]) for name, number in chosen.items()}
        )
    )


tables = st.builds(
    numbers,
    st.sampled_from(sorted(VALUES)),
    st.integers(0, 2**16),
    st.tuples(st.sampled_from([9, 3, 30]), st.sampled_from([2, 1, 3, 9])),
)


def audits(cls, calls, **options):
    """Replay audits of a class; returns how many pairs there were."""
    pairs_of_all = []

    @settings(
        max_examples=calls,
        suppress_health_check=list(HealthCheck),
        deadline=None,
        database=None,
        **options,
    )
    @given(
        models(cls),
        tables,
        st.sampled_from(KINDS),
        st.integers(0, 2**16),
        st.booleans(),
        st.sampled_from(["warn", "raise", "ignore"]),
    )
    def audits_of(model, X, kind, seed, grouped, errstate):
        if getattr(model, "values", None) is not None and not isinstance(model.by, int):
            return  # a key that is no column of an array
        if hasattr(model, "privacy_unit"):  # of rows, groups are clients and no units
            grouped = model.privacy_unit == "client"
        try:
            model.privacy_plan(X.shape[1], unit="group" if grouped else "row")
        except (TypeError, ValueError):
            return  # parameters that do not go together
        groups = np.arange(len(X)) // 2 if grouped else None
        with np.errstate(all=errstate):
            pairs = list(neighboring_pairs(X, seed, kinds=[kind], groups=groups))
            found = replay_audit(
                model,
                X,
                groups=groups,
                neighbors=pairs,
                strangers=calls > FAST,  # four more fits to each pair
            )
        pairs_of_all.append(kind)
        assert found.violations == []

    audits_of()
    return len(pairs_of_all)


@pytest.mark.quick(but=("DPOneClusterKMeans", "SampleAndAggregate"))
@pytest.mark.parametrize("name", ESTIMATORS)
def test_some_neighbors(name):
    assert audits(ESTIMATORS[name], FAST, phases=[Phase.generate]) >= 1


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_many_neighbors(name):
    assert audits(ESTIMATORS[name], LONG) >= LONG / 4  # the parameters of others do not go together
