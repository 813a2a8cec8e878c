"""The app and the commands of doc/flower.md, with real processes, and a node that is killed."""

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from sklearn_dp import ledger
from sklearn_dp._privacy._ledger import open_ledger

PAGE = Path(__file__).resolve().parents[2] / "doc" / "flower.md"
BIN = Path(sys.executable).parent
PLACES = 3 * np.random.default_rng(0).normal(size=(4, 5))
LATE = "no usable answer"


def block(first):
    """The block of the page that begins with these words."""
    (found,) = re.findall(
        rf"^```\w+\n({re.escape(first)}.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S
    )
    return found


def commands(first):
    return [line.removeprefix("$ ") for line in block(first).splitlines()]


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


class Site:
    """A folder with the files of the page, and the processes that were started in it."""

    def __init__(self, folder):
        self.folder, self.processes = folder, []
        self.ports = {number: free_port() for number in ("8000", "9100", "9101", "9102")}
        self.environment = {
            **os.environ, "FLWR_TELEMETRY_ENABLED": "0", "FLWR_HOME": str(folder / "home"),
            "PYTHONPATH": str(PAGE.parents[1]), "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        }  # fmt: skip
        self.write_files()

    def write_files(self):
        app, home = self.folder / "app", self.folder / "home"
        app.mkdir()
        home.mkdir()
        (app / "pyproject.toml").write_text(block("[project]"))
        (app / "task.py").write_text(
            block("# task.py: the client") + "\n\n" + block("# task.py: the server")
        )
        (home / "config.toml").write_text(self.here(block("[superlink.here]")))
        rng = np.random.default_rng(1)
        for node in range(3):
            rows = PLACES[rng.integers(4, size=2000)] + 0.2 * rng.normal(size=(2000, 5))
            np.save(self.folder / f"rows{node}.npy", rows)
        public = PLACES[np.arange(40) % 4] + 0.5 * rng.normal(size=(40, 5))
        np.save(self.folder / "public.npy", public)

    def here(self, text):
        """With ports that are free on this computer."""
        for printed, port in self.ports.items():
            text = text.replace(printed, port)
        return text

    def start(self, command):
        words = shlex.split(self.here(command))
        if words[0] == "flower-superlink":
            words += ["--port", self.ports["8000"], "--disable-runtime-dependency-installation"]
        with open(self.folder / f"log{len(self.processes)}.txt", "w") as log:
            self.processes.append(subprocess.Popen(
                words, cwd=self.folder, env=self.environment, stdout=log, stderr=log,
                start_new_session=True,
            ))  # fmt: skip

    def run(self, command):
        done = subprocess.run(
            shlex.split(command), cwd=self.folder, env=self.environment, capture_output=True,
            text=True, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def said(self):
        """The ends of all logs, for a failure."""
        logs = sorted(self.folder.glob("log*.txt"))
        return "\n".join(f"--- {log.name}\n{log.read_text()[-1500:]}" for log in logs)

    def stop(self):
        for process in self.processes:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        for process in self.processes:
            process.wait(timeout=30)


def wait_for(condition, seconds, what):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"{what} did not come in time"
        time.sleep(0.2)
    return found


def answers(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", int(port))) == 0


def is_read(fifo):
    """Whether a node has opened a file that never gives it a byte."""
    try:
        return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return None


def fitted(site, run, meanwhile=lambda: None):
    """The centers that a run has written, and what the server has said."""
    number = re.search(r"run (\d+)", site.run(run))[1]
    meanwhile()
    path = site.folder / "centers.npy"
    log = f"flwr log {number} here --show"
    try:
        wait_for(path.exists, 900, "an answer")
    except AssertionError:
        print(site.run(log), site.said())
        raise
    time.sleep(2)  # for the end of the log
    centers = np.load(path)
    path.unlink()
    return centers, site.run(log)


def farthest(centers):
    return np.linalg.norm(PLACES[:, None] - centers, axis=2).min(axis=1).max()


@pytest.fixture
def site(tmp_path):
    pytest.importorskip("flwr", reason="the extra `federated` is not installed")
    if shutil.which("flower-superlink", path=str(BIN)) is None or not hasattr(os, "mkfifo"):
        pytest.skip("no flower-superlink beside the interpreter, or no named pipes")
    site = Site(tmp_path)
    yield site
    site.stop()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_from_the_first_command_to_a_killed_node(site, monkeypatch):
    """One node of three dies while it reads its rows; the fit goes on with the other two.

    In 60 fits without processes the farthest center was off by 0.022 with three nodes, 0.030 with
    two and 0.048 with one (standard deviations 0.003, 0.004, 0.009): a bound of 1 is a hundred of
    them away, so noise does not fail this. A machine too busy for Flower's own deadlines can.
    """
    monkeypatch.chdir(site.folder)
    (create,) = commands("$ python -m sklearn_dp.ledger")
    assert ledger.main(shlex.split(create.removeprefix("python -m sklearn_dp.ledger "))) == 0
    superlink, *nodes, run = commands("$ flower-superlink --insecure")
    site.start(superlink)
    wait_for(lambda: answers(site.ports["8000"]), 120, "the SuperLink")
    for node in nodes:
        site.start(node)
    centers, log = fitted(site, run)
    if LATE in log:
        pytest.skip("this machine is too busy: a node took more than a minute to answer")
    assert "ok" in log and farthest(centers) < 1

    fifo = site.folder / "rows2.npy"
    fifo.unlink()
    os.mkfifo(fifo)

    def kill():
        opened = wait_for(lambda: is_read(fifo), 300, "a question to the node")
        assert commands("$ kill") == ["kill -9 PID"]
        os.kill(site.processes[-1].pid, signal.SIGKILL)
        os.close(opened)

    centers, log = fitted(site, run, kill)
    told, _ = block("UtilityWarning").rsplit(" (", 1)
    assert told in log and "TimeoutError" in log
    assert farthest(centers) < 1 or "2 clients" in log
    assert len(open_ledger("study.sqlite").entries) == 2
