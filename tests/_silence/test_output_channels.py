"""The output channels of Python that are guarded: that they exist, and what a closed patch does."""

import logging

from sklearn_dp._silence import suppress_output as silence
from sklearn_dp._silence.suppress_output import CHANNELS

SECRET = "row 17 holds 123.456"


def test_a_silent_thread_sets_up_no_logging(monkeypatch):
    """``logging.warning`` adds a handler where there is none: a trace for all to see."""
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    with silence.suppress_output():
        logging.warning(SECRET)
    assert logging.getLogger().handlers == []


def test_every_way_out_that_is_guarded_exists():
    """Some names are private to the standard library: a Python without them must not go unseen."""
    assert [name for owner, name, _ in CHANNELS if name not in vars(owner)] == []
