"""The ways out of Python that are guarded: that they exist, and what a closed door does."""

import logging

from sklearn_dp._aggregate.shared import silence
from sklearn_dp._aggregate.shared.ways_out import WAYS

SECRET = "row 17 holds 123.456"


def test_a_silent_thread_sets_up_no_logging(monkeypatch):
    """``logging.warning`` adds a handler where there is none: a trace for all to see."""
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    with silence.silent():
        logging.warning(SECRET)
    assert logging.getLogger().handlers == []


def test_every_way_out_that_is_guarded_exists():
    """Some names are private to the standard library: a Python without them must not go unseen."""
    assert [name for owner, name, _ in WAYS if name not in vars(owner)] == []
