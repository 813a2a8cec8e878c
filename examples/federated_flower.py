"""
A federated fit across processes, with Flower
=============================================

This example did not run when this site was built, because it needs Flower and starts servers. To
run it, in a terminal::

    python examples/federated_flower.py [--nodes 3]

Needs the extra `federated`. The script starts a server and several nodes as separate processes and
runs two fits through them: one in which the server adds the noise, and one in which the nodes do.
It then repeats both fits in this process with the same seeds and shuts everything down. The results
must agree bit for bit. The seeds make the noise reproducible, which this comparison needs and a
deployment must avoid.
"""

# sphinx_gallery_thumbnail_path = 'images/federated.png'
import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from sklearn_dp import FederatedDPKMeans
from sklearn_dp.federated import NoiseShares, client_update

APP = """
import json, os, sys, time, warnings
import numpy as np
sys.path.insert(0, {examples!r})
from federated_flower import make_data, make_model
from flwr.serverapp import ServerApp
from sklearn_dp.federated import flower_client

client_app = flower_client(lambda context: make_data(int(context.node_config["site"])),
                           share_seed=lambda context: (7, context.node_config["site"]))
server_app = ServerApp()


@server_app.main()
def main(grid, context):
    warnings.simplefilter("ignore")
    while len(list(grid.get_node_ids())) < {nodes}:
        time.sleep(0.2)
    found = {{}}
    for noise in ("server", "clients"):
        start = time.time()
        model = make_model(noise).fit_clients(grid, X_server=make_data(-1))
        found[noise] = {{"centers": model.cluster_centers_.tolist(),
                         "seconds": time.time() - start, "communication": model.communication_}}
    with open({result!r} + ".part", "w") as file:
        json.dump(found, file)
    os.replace({result!r} + ".part", {result!r})
"""
PROJECT = """
[project]
name = "federated-kmeans"
version = "1.0.0"
dependencies = []

[tool.flwr.app]
publisher = "example"

[tool.flwr.app.components]
serverapp = "task:server_app"
clientapp = "task:client_app"
"""


def make_data(site):
    """The rows of a site. Site -1 is the server, whose points are public."""
    rng = np.random.default_rng(0)
    means = 2 * rng.uniform(-1, 1, size=(4, 10))
    rng = np.random.default_rng(100 + site)
    rows = 40 if site < 0 else 3000
    return means[rng.integers(4, size=rows)] + 0.3 * rng.normal(size=(rows, 10))


def make_model(noise):
    options = {"n_honest": 1} if noise == "clients" else {}
    return FederatedDPKMeans(4, epsilon=1.0, privacy_unit="row", random_state=7, **options)


class Site:
    """A client of the local engine, with the same seed as its node."""

    def __init__(self, number):
        self.number = number

    def update(self, kind, message):
        return client_update(kind, message, make_data(self.number), NoiseShares(7, self.number))


def fit_here(noise, nodes):
    """The same fit in this process."""
    return make_model(noise).fit_clients(
        [Site(site) for site in range(nodes)], X_server=make_data(-1)
    )


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def program(name):
    return str(Path(sys.executable).parent / name)


def start_all(folder, nodes, environment, processes):
    """Start the SuperLink and its SuperNodes; returns the port for `flwr run`."""
    port = free_port()
    commands = [
        [
            program("flower-superlink"),
            "--insecure",
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
            "--disable-runtime-dependency-installation",
        ]
    ]
    commands += [
        [
            program("flower-supernode"),
            "--insecure",
            "--superlink",
            f"127.0.0.1:{port}",
            "--host",
            "127.0.0.1",
            "--port",
            str(free_port()),
            "--node-config",
            f"site={site}",
        ]
        for site in range(nodes)
    ]
    for number, command in enumerate(commands):
        log = open(folder / f"process{number}.log", "w")  # noqa: SIM115 - the child's
        processes.append(
            subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment)
        )
        if number == 0:
            wait_for(lambda: answers(port), 60, "the SuperLink")
    return port


def answers(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_for(condition, seconds, what):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"{what} did not come up in time")
        time.sleep(0.2)


def run_flower(nodes, seconds=600):
    """Run both fits through Flower; return what the ServerApp wrote."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        result, examples = folder / "result.json", str(Path(__file__).resolve().parent)
        app = folder / "app"
        app.mkdir()
        (app / "task.py").write_text(APP.format(nodes=nodes, result=str(result), examples=examples))
        (app / "pyproject.toml").write_text(PROJECT)
        home = folder / "home"
        home.mkdir()
        package = str(Path(examples).parent)
        environment = {
            **os.environ,
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_HOME": str(home),
            "PYTHONPATH": os.pathsep.join([package, examples]),
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
        }
        processes = []
        try:
            port = start_all(folder, nodes, environment, processes)
            (home / "config.toml").write_text(
                f'[superlink]\ndefault = "here"\n\n[superlink.here]\n'
                f'address = "127.0.0.1:{port}"\ninsecure = true\n'
            )
            done = subprocess.run(
                [program("flwr"), "run", str(app), "here"],
                env=environment,
                capture_output=True,
                text=True,
                timeout=120,
            )
            if done.returncode:
                raise RuntimeError(done.stdout + done.stderr)
            wait_for(result.exists, seconds, "the result of the run")
            return json.loads(result.read_text())
        except Exception:
            for log in sorted(folder.glob("*.log")):
                print(f"--- {log.name}\n{log.read_text()[-3000:]}", file=sys.stderr)
            raise
        finally:
            for process in reversed(processes):
                process.terminate()
            for process in processes:
                process.wait(timeout=30)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--nodes", type=int, default=3)
    nodes = parser.parse_args().nodes
    warnings.simplefilter("ignore")
    start = time.time()
    found = run_flower(nodes)
    whole = time.time() - start
    print(f"Flower: 1 SuperLink and {nodes} SuperNodes on loopback")
    all_equal = True
    for noise, fit in found.items():
        print(f"noise of the {noise}")
        for line in fit["communication"]:
            print(
                f"  round {line['round']} {line['kind']:<8} {line['bytes_down']:>7} bytes to and "
                f"{line['bytes_up']:>6} bytes from each client"
            )
        equal = np.array_equal(np.array(fit["centers"]), fit_here(noise, nodes).cluster_centers_)
        print(f"  fit {fit['seconds']:.1f} s; equal to the local engine, bit for bit: {equal}")
        all_equal = all_equal and equal
    print(f"with start-up and shut-down {whole:.1f} s")
    return 0 if all_equal else 1


if __name__ == "__main__":
    sys.exit(main())
