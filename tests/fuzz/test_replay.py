"""Neighbors under replay, for any parameters and tables: nothing shown may differ."""

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from sklearn_dp.audit import all_estimators, neighboring_pairs, replay_audit
from sklearn_dp.audit._neighbors import KINDS

from .arguments import fresh, good_options, seeds
from .runner import Tally, run
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
    seeds,
    st.tuples(st.sampled_from([9, 3, 30]), st.sampled_from([2, 1, 3, 9])),
)


def audits(cls, calls, **options):
    """Replay audits of a class; returns the tally of pairs."""
    tally = Tally()

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
        seeds,
        st.booleans(),
        st.sampled_from(["warn", "raise", "ignore"]),
    )
    def audits_of(model, X, kind, seed, grouped, errstate):
        if getattr(model, "values", None) is not None and not isinstance(model.by, int):
            return  # a key that is no column of an array
        if hasattr(model, "privacy_unit"):  # of rows, groups are clients and no units
            grouped = model.privacy_unit == "client"
        if (
            run(model.privacy_plan, X.shape[1], unit="group" if grouped else "row").error
            is not None
        ):
            return  # parameters that do not go together
        groups = np.arange(len(X)) // 2 if grouped else None
        with np.errstate(all=errstate):
            pairs = list(neighboring_pairs(X, seed, kinds=[kind], groups=groups))
            outcome = run(
                replay_audit,
                model,
                X,
                groups=groups,
                neighbors=pairs,
                strangers=calls > FAST,  # four more fits to each pair
            )
        tally.add(kind, outcome)
        assert outcome.error is None, repr(outcome.error)
        found = [*outcome.value.violations, *(text for _, text in outcome.warnings)]
        assert not found and not outcome.printed, f"{found[:3]} {outcome.printed}"

    audits_of()
    return tally


@pytest.mark.quick(but=("DPOneClusterKMeans", "SampleAndAggregate"))
@pytest.mark.parametrize("name", ESTIMATORS)
def test_some_neighbors(name):
    assert audits(ESTIMATORS[name], FAST, phases=[Phase.generate]).calls >= 1


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_many_neighbors(name, record_property):
    tally = audits(ESTIMATORS[name], LONG)
    record_property("fuzz", ("pairs under replay", tally.table()))
    assert tally.calls >= LONG / 4  # the parameters of others do not go together
