"""Threads: answers in order, errors beside them, and no wait for one that hangs."""

import threading

import pytest
from threadpoolctl import threadpool_info

from sklearn_dp._rows.threads import ask_all, in_threads, in_workers


@pytest.mark.parametrize("n_jobs", [None, 1, 3])
def test_answers_come_in_the_order_of_the_items(n_jobs):
    found = in_threads(lambda i: i * i, iter(range(20)), n_jobs)
    assert list(found) == [i * i for i in range(20)]


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


def blas():
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


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
