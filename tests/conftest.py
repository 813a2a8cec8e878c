"""Settings shared by every test."""

import os

# The suite runs one process for each core. Threads of BLAS and OpenMP in each of them would only
# wait for each other. They read these names when NumPy is first imported, here and in children.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

from hypothesis import settings  # noqa: E402

# A test that fails must fail again: examples are derived from the test, not from the clock.
# The build machines are slow and shared, so the time an example takes says nothing.
settings.register_profile("suite", derandomize=True, deadline=None)
settings.load_profile("suite")
