"""Settings shared by every test, and the mark `quick`."""

import gc
import os
from fnmatch import fnmatchcase

import pytest

# The suite runs one process for each core. Threads of BLAS and OpenMP in each of them would only
# wait for each other. They read these names when NumPy is first imported, here and in children.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

from hypothesis import settings  # noqa: E402

from sklearn_dp._rows import table  # noqa: E402

# A test that fails must fail again: examples are derived from the test, not from the clock.
# The build machines are slow and shared, so the time an example takes says nothing.
settings.register_profile("suite", derandomize=True, deadline=None)
settings.load_profile("suite")

# Tables of tests are small: with `n_jobs` they are cut into parts all the same.
table.PART_ENTRIES = 1


# What is collected stays to the end, half a million objects: no search for garbage has to go
# through them.
gc.disable()


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem(collector, name, obj):
    """Cases of a test that `quick` leaves to `make audit` are slow.

    `quick("a*", "b")` keeps those whose id matches a pattern, `quick(but=("c",))` all but those.
    A pattern that no case matches is an error: the case it meant would have changed sides.
    """
    made = yield
    cases = made if isinstance(made, list) else []
    marked = [(case, mark) for case in cases for mark in case.iter_markers("quick")]
    met = set()
    for case, mark in marked:
        patterns = mark.args or mark.kwargs["but"]
        met |= {each for each in patterns if fnmatchcase(case.callspec.id, each)}
        if any(fnmatchcase(case.callspec.id, each) for each in patterns) != bool(mark.args):
            case.add_marker(pytest.mark.slow)
    for _, mark in marked:
        unmet = {*mark.args, *mark.kwargs.get("but", ())} - met
        if unmet:
            raise collector.CollectError(f"{name}: no case has the id {sorted(unmet)}")
    return made
