"""Patches go up with the first silent thread and come down with the last one."""

import contextlib
import io
import sys
import threading
import time

from sklearn_dp import _silence as interception
from sklearn_dp import _silence as silence
from sklearn_dp._silence import CHANNELS

SECRET = "row 17 holds 123.456"


def test_a_redirection_of_one_thread_is_no_way_out_for_another(monkeypatch):
    """Step by step: a thread that may be heard redirects, then a silent one prints."""
    speak, spoken, out, own = threading.Event(), threading.Event(), io.StringIO(), io.StringIO()

    def hold():
        with silence.suppress_output():
            speak.wait()
            print(SECRET)
            with contextlib.redirect_stdout(own):
                print("its own")
            print(SECRET)
            spoken.set()

    holder = threading.Thread(target=hold)
    before = sys.stdout
    holder.start()
    while not interception.INTERCEPTION._inside:
        time.sleep(0.01)
    with contextlib.redirect_stdout(out):
        speak.set()
        spoken.wait()
        print("mine")
        holder.join()
    assert (out.getvalue(), own.getvalue()) == ("mine\n", "its own\n") and sys.stdout is before


def test_with_the_last_silent_thread_every_door_is_gone():
    """What was found is put back, and a stand-in that somebody kept leads to the stream behind."""
    found = [vars(owner)[name] for owner, name, *_ in CHANNELS]
    out = sys.stdout
    with silence.suppress_output():
        kept = sys.stdout
        inside = [vars(owner)[name] for owner, name, *_ in CHANNELS]
        with silence.suppress_output():
            pass
        assert sys.stdout is kept and interception.INTERCEPTION.behind(kept) is out
    assert all(patch is not original for patch, original in zip(inside, found, strict=True))
    assert [vars(owner)[name] for owner, name, *_ in CHANNELS] == found
    assert (
        sys.stdout is out
        and kept.write == out.write
        and interception.INTERCEPTION.behind(out) is out
    )
