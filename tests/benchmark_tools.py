"""Scripts of `benchmarks/` as modules, so that tests can ask their parts."""

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"


def benchmark_module(name: str) -> ModuleType:
    """`benchmarks/NAME.py` as a module; the process is as it was before.

    It imports the benchmarks beside it, and sets threads; neither is left for other tests.
    """
    path = FOLDER / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"{name}_benchmark", path)
    module = importlib.util.module_from_spec(spec)
    environment, path_before, modules = dict(os.environ), list(sys.path), set(sys.modules)
    sys.path.insert(0, str(FOLDER))
    sys.modules[spec.name] = module  # its dataclasses look there
    try:
        spec.loader.exec_module(module)
    finally:
        os.environ.clear()
        os.environ.update(environment)
        sys.path[:] = path_before
        for other in set(sys.modules) - modules - {spec.name}:
            if Path(getattr(sys.modules[other], "__file__", None) or "").parent == FOLDER:
                del sys.modules[other]
    return module
