"""Speed of the noise samplers on one core.

    python benchmarks/sampler.py

Prints a table, and writes it to doc/benchmarks/sampler.md. OpenDP is measured where it can be
imported (extra `bench`). A figure is the median over rounds of samples per second of CPU time.
"""

import argparse
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import _run  # first: one thread
import numpy as np
import scipy

from sklearn_dp._privacy._noise import NoiseSource

SIZES = (10**4, 10**5, 10**6)
SIGMA = 2.0**20
SECONDS_PER_ROUND = 0.1
N_ROUNDS = 9
OUTPUT = _run.PAGES / "sampler.md"


def opendp_sampler():
    """OpenDP's discrete Gaussian on a vector of integers, or None."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    measurement = dp.m.make_gaussian(*space, scale=SIGMA)
    return lambda size: measurement([0] * size)


def samplers():
    """What is compared: name -> function of the size."""
    system, seeded = NoiseSource(), NoiseSource(0)
    generator = np.random.default_rng(0)
    found = {
        "rounded Gaussian": lambda size: system.rounded_gaussian(SIGMA, size),
        "rounded Gaussian, seeded": lambda size: seeded.rounded_gaussian(SIGMA, size),
        "rounded Laplace": lambda size: system.rounded_laplace(SIGMA, size),
        "numpy Generator.normal (no privacy)": lambda size: generator.normal(0.0, SIGMA, size),
        "OpenDP discrete Gaussian": opendp_sampler(),
    }
    return {name: draw for name, draw in found.items() if draw is not None}


def rate(draw, size):
    """Million samples per second of CPU time: median over rounds, one if a single draw is slow."""
    first = seconds(draw, size, 1)
    repeats = max(1, int(SECONDS_PER_ROUND / max(first, 1e-4)))
    n_rounds = N_ROUNDS if first < 1 else 1
    rounds = [seconds(draw, size, repeats) for _ in range(n_rounds)]
    return repeats * size / float(np.median(rounds)) / 1e6


def seconds(draw, size, repeats):
    start = time.process_time()
    for _ in range(repeats):
        draw(size)
    return time.process_time() - start


def table():
    heads = [f"{size:,}" for size in SIZES]
    lines = ["| million samples / s | " + " | ".join(heads) + " |", "|---" + "|--:" * 3 + "|"]
    for name, draw in samplers().items():
        rates = [rate(draw, size) for size in SIZES]
        lines.append(f"| {name} | " + " | ".join(f"{value:.3g}" for value in rates) + " |")
    return "\n".join(lines)


def environment():
    try:
        rival = f", OpenDP {version('opendp')}"
    except PackageNotFoundError:
        rival = ""
    return (f"Python {platform.python_version()}, numpy {np.__version__}, scipy "
            f"{scipy.__version__}{rival}, {platform.machine()}")  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=OUTPUT)
    output = parser.parse_args().output
    text = f"""# Speed of the noise samplers

Samples per second of CPU time on one core, for vectors of three lengths; sigma is 2^20 grid
steps. numpy's normal numbers are a yardstick only: they are neither exact nor secret. Made by

    python benchmarks/sampler.py

with {environment()}.

{table()}
"""
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
