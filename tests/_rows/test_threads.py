"""Threads: answers in order, errors beside them, and no wait for one that hangs."""

import os
import threading

import numpy as np
import pytest
from joblib import parallel_config
from threadpoolctl import threadpool_info

from sklearn_dp._rows import threads
from sklearn_dp._rows.threads import (
    ask_all,
    in_threads,
    in_workers,
    n_threads,
    one_thread,
)


@pytest.mark.parametrize("n_jobs", [None, 1, 3])
def test_answers_come_in_the_order_of_the_items(n_jobs):
    assert in_threads(lambda i: i * i, iter(range(20)), n_jobs) == [i * i for i in range(20)]


@pytest.mark.parametrize(("n_jobs", "settings"), [(2, {}), (None, {"n_jobs": 2})])
def test_items_meet_in_threads_and_no_joblib_waits_for_them(n_jobs, settings, monkeypatch):
    monkeypatch.setattr(threads, "Parallel", None)
    meeting = threading.Barrier(2, timeout=10)
    with parallel_config("threading", **settings):
        assert sorted(in_threads(lambda _: meeting.wait(), range(2), n_jobs)) == [0, 1]


def test_a_sequential_backend_has_one_thread():
    with parallel_config("sequential"):
        assert set(in_threads(lambda _: threading.get_ident(), range(3), 3)) == {
            threading.get_ident()
        }


def test_each_thread_has_one_of_the_blas():
    def own(_):
        np.ones((2, 2)) @ np.ones((2, 2))
        return [pool["num_threads"] for pool in threadpool_info()]

    assert all(set(found) <= {1} for found in in_threads(own, range(4), 2))


def test_an_error_of_one_client_is_beside_the_answers_of_the_others():
    found = ask_all(lambda i: 1 // i, [1, 0, 1], n_jobs=2)
    assert [result for result, _ in found] == [1, None, 1]
    assert [type(error) for _, error in found] == [type(None), ZeroDivisionError, type(None)]


def test_a_client_that_hangs_is_left_behind():
    never = threading.Event()
    clients = [lambda: 1, never.wait]
    (first, none), (nothing, late) = ask_all(lambda client: client(), clients, seconds=0.2)
    never.set()
    assert (first, none, nothing) == (1, None, None) and isinstance(late, TimeoutError)


def test_a_number_of_threads_has_a_limit():
    most = max(32, os.cpu_count())
    assert n_threads(None) == 1 and n_threads(3) == 3 and n_threads(10**6) == most


@pytest.mark.parametrize("run", [in_threads, lambda *call: ask_all(*call[:2], n_jobs=call[2])])
def test_there_are_no_more_threads_than_items(run):
    before, helpers, seen = threading.active_count(), 4, []  # helpers: those of joblib's pool
    run(lambda _: seen.append(threading.active_count()), range(3), 10**400)
    assert max(seen) - before <= 3 + helpers


def blas():
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


def test_blocks_that_overlap_keep_one_thread_to_the_last():
    """One that ends does not give the threads of the other back, and none are lost for ever."""
    before, entered, leave, seen = blas(), threading.Event(), threading.Event(), []

    def other():
        with one_thread():
            entered.set()
            leave.wait(10)
            seen.append(blas())

    with one_thread():
        thread = threading.Thread(target=other)
        thread.start()
        entered.wait(10)
    leave.set()
    thread.join()
    assert seen == [{1}] and blas() == before


def test_workers_are_silent_and_have_one_thread(capfd):
    made = []

    def loud(number, other):
        print("heard")
        made.append(number)
        return number + other, blas()

    def tasks():
        for number in range(3):
            assert made == list(range(number))  # one after the other
            yield number, 2

    assert in_workers(loud, tasks()) == [(2, {1}), (3, {1}), (4, {1})]
    assert "heard" not in capfd.readouterr().out
