"""Nothing of an inner fit is seen or heard, on any backend, and the process is left as it was."""

import contextlib
import gc
import io
import logging
import os
import signal
import sys
import threading
import time
import warnings
from operator import attrgetter

import joblib
import numpy as np
import pytest
from block_tools import fit_blocks
from joblib.externals import loky
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import KMeans

from sklearn_dp import _silence as interception
from sklearn_dp._rows.threads import ask_all

try:
    import cloudpickle
except ImportError:  # older versions of joblib hold their own
    from joblib.externals import cloudpickle

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # worker processes cannot import it
SECRET = "row 17 holds 123.456"
centers = attrgetter("cluster_centers_")


class Death(BaseException):
    """Not even an Exception."""


DEATHS = {
    "ValueError": ValueError,
    "SystemExit": SystemExit,
    "GeneratorExit": GeneratorExit,
    "KeyboardInterrupt": KeyboardInterrupt,
    "Death": Death,
    "Warning": UserWarning,
    None: None,
}


def say_in_every_way(where):
    """Through every patch that Python has."""
    warnings.warn(f"{SECRET}: {where}", UserWarning, stacklevel=2)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn(f"{SECRET}: {where}", stacklevel=1)
    with warnings.catch_warnings():
        warnings.filters = [*warnings.filters]  # as workers of scikit-learn 1.5 do
        warnings.warn(f"{SECRET}: {where}", stacklevel=1)
    warnings.filterwarnings("always", message="row")  # and left so
    warnings.warn_explicit(SECRET, UserWarning, "nowhere.py", 3)
    np.float64(1e308) * np.float64(10) + np.array([1.0]) / 0
    logging.warning(SECRET)
    logging.getLogger("inner").error("%s", SECRET)
    logging.getLogger("inner").handle(logging.LogRecord("", 50, "", 1, SECRET, (), None))
    print(SECRET)
    print(SECRET, file=sys.stderr)
    print(SECRET, file=sys.__stderr__)
    sys.stdout.buffer.write(SECRET.encode())
    sys.stdout.write(SECRET)
    sys.stdout.flush()
    with contextlib.redirect_stdout(sys.stderr):
        print(SECRET)
    warnings.resetwarnings()


class Unravels:
    """Fails when it is collected."""

    def __del__(self):
        raise RuntimeError(SECRET)


def dies_in_a_thread():
    print(SECRET)
    raise RuntimeError(SECRET)


class Loud(ClusterMixin, BaseEstimator):
    """The mean, told to everybody; then it dies, where it is told to."""

    def __init__(self, death=None, random_state=None):
        self.death = death
        self.random_state = random_state

    def fit(self, X, y=None):
        say_in_every_way("fit")
        death = list(DEATHS)[self.random_state] if self.death == "any" else self.death
        joblib.Parallel(n_jobs=2)(joblib.delayed(say_in_every_way)("task") for _ in range(2))
        joblib.Parallel(n_jobs=2, backend="threading")(
            joblib.delayed(say_in_every_way)("thread") for _ in range(2)
        )
        thread = threading.Thread(target=dies_in_a_thread)
        thread.start()
        thread.join()
        Unravels()
        if death is not None:
            raise DEATHS[death](SECRET)
        self.cluster_centers_ = X.mean(axis=0, keepdims=True)
        return self


class Ears(logging.Handler):
    """All that a user could have put up to listen."""

    def __init__(self):
        super().__init__()
        self.heard = []

    def emit(self, record):
        self.heard.append(record.getMessage())

    def filter(self, record):
        self.heard.append(record.getMessage())
        return True

    def make(self, *arguments, **options):
        self.heard.append(arguments)
        return logging.LogRecord(*arguments, **options)

    def note(self, *arguments):
        self.heard.append(arguments)


@contextlib.contextmanager
def listening(monkeypatch):
    """Everything that is heard in the block, as a list that is full at its end."""
    ears, out, err = Ears(), *(io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    root = logging.getLogger()
    before = list(root.handlers)
    for place, name in ((sys, "unraisablehook"), (threading, "excepthook")):
        monkeypatch.setattr(place, name, ears.note)
    monkeypatch.setattr(sys, "__stderr__", err)
    factory = logging.getLogRecordFactory()
    logging.setLogRecordFactory(ears.make)
    root.addHandler(ears)
    logging.getLogger("inner").addFilter(ears)
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            np.errstate(all="call", call=ears.note),
            warnings.catch_warnings(record=True) as caught,
        ):
            warnings.simplefilter("always")
            yield ears.heard
            gc.collect()
    finally:
        logging.setLogRecordFactory(factory)
        root.removeHandler(ears)
        logging.getLogger("inner").removeFilter(ears)
        added = [handler for handler in root.handlers if handler not in before]
        ears.heard += [*added, *(str(item.message) for item in caught)]
        for stream in (out, err):
            stream.flush()
            ears.heard += filter(None, [stream.buffer.getvalue().decode()])


def state_of_the_process():
    return (
        warnings.filters,
        list(warnings.filters),
        warnings.showwarning,
        warnings._showwarnmsg,
        warnings._add_filter,
        warnings.resetwarnings,
        warnings.catch_warnings.__enter__,
        warnings.catch_warnings.__exit__,
        sys.stdout,
        sys.stderr,
        sys.__stdout__,
        sys.__stderr__,
        sys.unraisablehook,
        logging.Logger._log,
        logging.Logger.handle,
        logging.Logger.isEnabledFor,
        logging.basicConfig,
        threading.Thread.start,
        contextlib.redirect_stdout.__enter__,
        [signal.getsignal(number) for number in signal.valid_signals()],
        np.geterr(),
    )


X = np.random.default_rng(0).normal(size=(60, 2))
BLOCKS = np.arange(60) % 4


def fits():
    return fit_blocks(Loud(), X, BLOCKS, range(4), centers, (1, 2), n_jobs=None)


def outer(backend):
    """Two whole sets of inner fits at a time, in an outer Parallel."""
    return joblib.Parallel(n_jobs=2, backend=backend)(joblib.delayed(fits)() for _ in range(2))[0]


def with_backend(backend):
    def call():
        with joblib.parallel_config(backend, n_jobs=2):
            return fits()

    return call


@contextlib.contextmanager
def cluster(way):
    """What a way needs to be there beforehand: it says things of its own when it starts."""
    if way == "dask":
        distributed = pytest.importorskip("distributed")
        logging.getLogger("distributed").setLevel(logging.ERROR)
        with distributed.Client(n_workers=2, threads_per_worker=1, dashboard_address=None):
            yield
    elif way == "ray":
        ray = pytest.importorskip("ray")
        from ray.util.joblib import register_ray

        # Workers import the functions of this test.
        paths = {"PYTHONPATH": os.pathsep.join(sys.path)}
        ray.init(
            num_cpus=2, include_dashboard=False, log_to_driver=False,
            runtime_env={"env_vars": paths},
        )  # fmt: skip
        register_ray()
        yield
        ray.shutdown()
    else:
        yield


CHANNELS = {"alone": fits} | {
    name: with_backend(name)
    for name in ("sequential", "threading", "loky", "multiprocessing", "dask", "ray")
}
CHANNELS |= {"in threads": lambda: outer("threading"), "in processes": lambda: outer("loky")}


# Others do the same, and start worker processes as well. How blocks die one after the other, with
# workers inside, is tried below in the normal suite too.
SLOW = {"in processes", "multiprocessing", "alone", "sequential", "in threads", "dask", "ray"}


@pytest.mark.quick(but=("loky",))
@pytest.mark.parametrize(
    "way", [pytest.param(way, marks=pytest.mark.slow if way in SLOW else ()) for way in CHANNELS]
)
def test_nothing_is_heard_and_all_is_left_as_it_was(way, monkeypatch, capfd):
    loky.get_reusable_executor().shutdown()  # workers that write to the files of this test
    with cluster(way), listening(monkeypatch) as heard:
        before = state_of_the_process()
        results = CHANNELS[way]()
        assert state_of_the_process() == before
    assert heard == []
    assert results == pytest.approx(np.array([[X[b == BLOCKS].mean(axis=0)] for b in range(4)]))
    loky.get_reusable_executor().shutdown()
    assert SECRET not in "".join(capfd.readouterr())


def test_the_ears_hear(monkeypatch):
    """Without silence, every one of them: the test above is no test otherwise."""
    with listening(monkeypatch) as heard, contextlib.suppress(SystemExit):
        Loud("SystemExit").fit(X)
    words = [str(item) for item in heard]
    assert sum(SECRET in word for word in words) > 15
    assert any("RuntimeError" in word for word in words)  # of threads and finalizers
    assert any("divide by zero" in word for word in words)
    assert words[-1].count(SECRET) > 3 and words[-2].count(SECRET) > 3  # both streams


LOKY = pytest.param("loky", marks=pytest.mark.slow)


@pytest.mark.quick("threading")
@pytest.mark.parametrize("backend", ["sequential", "threading", LOKY])
def test_whatever_a_fit_dies_of_is_a_block_without_a_result(backend, monkeypatch, capfd):
    """Every block in another way, and one in none."""
    loky.get_reusable_executor().shutdown()
    blocks, living = np.arange(60) % len(DEATHS), list(DEATHS).index(None)
    with listening(monkeypatch) as heard, joblib.parallel_config(backend, n_jobs=2):
        results = fit_blocks(Loud("any"), X, blocks, range(len(DEATHS)), centers, (1, 2))
    assert [b for b in range(len(DEATHS)) if np.isfinite(results[b]).all()] == [living]
    assert heard == [] and SECRET not in "".join(capfd.readouterr())


class Slow(Loud):
    """Loud, for as long as other threads do what they do."""

    def fit(self, X, y=None):
        super().fit(X)
        time.sleep(0.02)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            time.sleep(0.02)
        return self


def user_thread(stop, heard):
    """A user's other thread, with filters, records and redirections of its own."""
    while not stop.is_set():
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            print("mine")
            time.sleep(0.003)
            print("mine")
        with warnings.catch_warnings(record=True) as log:
            warnings.simplefilter("always")
            warnings.warn("mine", stacklevel=1)
            time.sleep(0.003)
            warnings.warn("mine", stacklevel=1)
        heard.append((out.getvalue(), [str(item.message) for item in log]))


def test_two_fits_in_two_threads_beside_a_third_one(monkeypatch):
    """The third one hears itself, all of it and nothing else; at the end all is as it was."""
    stop, mine, results = threading.Event(), [], []

    def fit():
        results.append(fit_blocks(Slow(), X, BLOCKS, range(4), centers, (1, 2), n_jobs=2))

    with listening(monkeypatch) as heard:
        before = state_of_the_process()
        threads = [threading.Thread(target=fit) for _ in range(2)]
        third = threading.Thread(target=user_thread, args=(stop, mine))
        with joblib.parallel_config("threading"):
            for thread in (*threads, third):
                thread.start()
            for thread in threads:
                thread.join()
        stop.set()
        third.join()
        assert state_of_the_process() == before
    assert heard == [] and len(results) == 2 and np.isfinite(results).all()
    assert len(mine) > 3
    assert all(said == ("mine\nmine\n", ["mine", "mine"]) for said in mine)


# -- what is the user's own passes -----------------------------------------------------------------


class Interrupted(Loud):
    """While it runs, the process gets a signal; it tries to ignore what that raises."""

    def fit(self, X, y=None):
        try:
            signal.raise_signal(getattr(signal, self.death))
            time.sleep(5)
        except BaseException as error:
            raise ValueError(SECRET) from error
        finally:
            self.cluster_centers_ = X.mean(axis=0, keepdims=True)
        return self


def out_of_time(number, frame):
    print("out of time")
    raise TimeoutError("mine")


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="no such signals")
@pytest.mark.parametrize(
    ("name", "handler", "kind"),
    [
        ("SIGINT", signal.default_int_handler, KeyboardInterrupt),
        ("SIGALRM", out_of_time, TimeoutError),
        ("SIGTERM", lambda *_: sys.exit(3), SystemExit),
    ],
)
def test_what_a_signal_raises_stops_the_fit(name, handler, kind, capsys):
    old = signal.signal(getattr(signal, name), handler)
    try:
        with pytest.raises(kind) as caught:
            fits_of = fit_blocks(Interrupted(name), X, BLOCKS, range(4), centers, (1, 2))
            assert fits_of is None
        assert signal.getsignal(getattr(signal, name)) is handler
    finally:
        signal.signal(getattr(signal, name), old)
    # Nothing of the fit is in its wake: no exception of it, no frame that holds its rows.
    assert caught.value.__context__ is None and caught.value.__cause__ is None
    assert not any(
        entry.name == "fit" and "test_silence" in str(entry.path) for entry in caught.traceback
    )
    assert capsys.readouterr().out == ("out of time\n" if handler is out_of_time else "")
    assert np.isfinite(fit_blocks(KMeans(1), X, BLOCKS, range(4), centers, (1, 2))).all()


@pytest.mark.skipif(os.name == "nt", reason="no such signals")
@pytest.mark.parametrize("backend", ["sequential", "threading", LOKY])
def test_ctrl_c_stops_a_fit_on_every_backend(backend):
    """From outside, in the middle of a fit of ten minutes."""

    class Long(Loud):
        def fit(self, X, y=None):
            for _ in range(600 if self.death is None else 8):
                time.sleep(0.1)
            return self

    alarm = threading.Timer(1.0 if backend == LOKY else 0.4, signal.raise_signal, (signal.SIGINT,))
    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    alarm.start()
    try:
        with joblib.parallel_config(backend, n_jobs=2), pytest.raises(KeyboardInterrupt):
            # Threads cannot be killed: theirs end after less than a second.
            fit_blocks(
                Long("soon" if backend == "threading" else None),
                X,
                BLOCKS,
                range(4),
                centers,
                (1, 2),
            )
    finally:
        signal.signal(signal.SIGINT, old)
    while interception.INTERCEPTION._inside:  # the threads that are left
        time.sleep(0.05)


def test_a_client_that_wants_to_end_the_process_is_dropped():
    def client(number):
        death = list(DEATHS.values())[number]
        if death is None:
            return "answer"
        raise death(SECRET)

    for seconds in (None, 30.0):
        *failed, last = ask_all(client, range(len(DEATHS)), seconds=seconds)
        assert last == ("answer", None)
        assert [type(error) for _, error in failed] == list(DEATHS.values())[:-1]
