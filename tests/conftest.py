"""Settings shared by every test."""

from hypothesis import settings

# A test that fails must fail again: examples are derived from the test, not from the clock.
# The build machines are slow and shared, so the time an example takes says nothing.
settings.register_profile("suite", derandomize=True, deadline=None)
settings.load_profile("suite")
