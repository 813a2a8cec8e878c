"""One release of the package in a process of its own, which fits what it is asked to.

    python benchmarks/_release.py FOLDER

FOLDER holds `sklearn_dp`. Each line of standard input is a question in JSON: "rows" (a .npy file),
"k" and the parameters of `DPKMeans`. Each is answered by a line of standard output: "centers",
"cpu" (seconds of the fit) and "status". `engine.py` asks two releases the same questions.
"""

import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Release:
    """A running process of a release; closed at the end of a `with` block."""

    def __init__(self, folder):
        environment = {**os.environ, **dict.fromkeys(THREADS, "1")}
        environment["PYTHONPATH"] = str(folder)
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )

    def fit(self, rows, k, **parameters):
        """Centers, CPU seconds and status of one fit, as a dict."""
        question = json.dumps({"rows": str(rows), "k": k, **parameters})
        self._process.stdin.write(question + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError("a release has ended: see its error above")
        return json.loads(answer)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def answer(model, rows):
    """What is told of one fit."""
    X = load(rows)
    start = time.process_time()
    model.fit(X)
    seconds = time.process_time() - start
    return {"centers": model.cluster_centers_.tolist(), "cpu": seconds, "status": model.status_}


def load(rows):
    """Rows of a file; the last ones are kept, as both are often the same."""
    import numpy as np

    path = Path(rows)
    key = (rows, path.stat().st_mtime_ns)
    if load.kept[0] != key:
        load.kept = key, np.load(path, allow_pickle=False)
    return load.kept[1]


load.kept = None, None


def main(folder):
    import numpy as np

    from sklearn_dp import DPKMeans, __file__

    assert Path(folder).resolve() in Path(__file__).resolve().parents, __file__
    warnings.simplefilter("ignore")  # few rows, seeds: on purpose
    DPKMeans(2, epsilon=1.0, bounds=1.0).fit(np.zeros((100, 4)))  # imports are no part of a fit
    for line in sys.stdin:
        question = json.loads(line)
        rows, k = question.pop("rows"), question.pop("k")
        print(json.dumps(answer(DPKMeans(k, **question), rows)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
