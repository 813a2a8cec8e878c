"""The beginning of every benchmark: imported before NumPy, which then uses one thread."""

import os
import platform
from importlib.metadata import version
from pathlib import Path

__all__ = ["PAGES", "versions"]

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

PAGES = Path(__file__).resolve().parents[1] / "doc" / "benchmarks"
"""Where results are kept."""


def versions(*packages):
    """Versions of Python and of these packages, as a page states them."""
    found = (f"{name} {version(name)}" for name in packages)
    return ", ".join((f"Python {platform.python_version()}", *found))
