"""Doors: what a silent thread redirects, logs and shows, and who else hears it."""

import contextlib
import io
import logging
import sys
import threading
import time

from sklearn_dp._aggregate.shared import doors, silence

SECRET = "row 17 holds 123.456"


def test_a_redirection_of_one_thread_is_no_way_out_for_another(monkeypatch):
    """Step by step: a thread that may be heard redirects, then a silent one prints."""
    speak, spoken, out, own = threading.Event(), threading.Event(), io.StringIO(), io.StringIO()

    def hold():
        with silence.silent():
            speak.wait()
            print(SECRET)
            with contextlib.redirect_stdout(own):
                print("its own")
            print(SECRET)
            spoken.set()

    holder = threading.Thread(target=hold)
    before = sys.stdout
    holder.start()
    while not doors.DOORS._inside:
        time.sleep(0.01)
    with contextlib.redirect_stdout(out):
        speak.set()
        spoken.wait()
        print("mine")
        holder.join()
    assert (out.getvalue(), own.getvalue()) == ("mine\n", "its own\n") and sys.stdout is before


def test_a_silent_thread_sets_up_no_logging(monkeypatch):
    """``logging.warning`` adds a handler where there is none: a trace for all to see."""
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    with silence.silent():
        logging.warning(SECRET)
    assert logging.getLogger().handlers == []


def test_every_way_out_that_is_guarded_exists():
    """Some names are private to the standard library: a Python without them must not go unseen."""
    assert [name for owner, name, _ in doors._WAYS if name not in vars(owner)] == []
