"""Which seeded bugs die, and of what: the oracle for whoever lets tests go or moves code.

    python tests/dying_mutants.py --store FILE [ESTIMATOR ...]
    python tests/dying_mutants.py --compare FILE [ESTIMATOR ...]

The bugs of the registry are tried on the toy of `tests/audit` and on the estimators; edits of
`mutants.outside`, with the tests that they name. A bug that has died once has to die again, under
its name or under that of a planted bug that takes its place (tests/_queries).
"""

import argparse
import json
import os
import warnings
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

from audit.conftest import ToyMean  # noqa: E402
from configurations import configurations  # noqa: E402
from mutants import MUTANTS  # noqa: E402
from mutants.outside import OUTSIDE  # noqa: E402
from mutants.planting import killer  # noqa: E402
from test_common import BUILDING_BLOCKS, HARMLESS, reached  # noqa: E402
from test_outside_mutants import run  # noqa: E402


def of_registry(name):
    """The check that kills each mutant that an estimator, or the toy, reaches."""
    if name == "toy":
        estimator, harmless = ToyMean(), ()
    else:
        (setting,) = configurations("mutants", name)
        estimator, harmless = setting.estimator, HARMLESS.get(name, ())
    bugs = [bug for bug in MUTANTS if bug.name not in harmless]
    slow = {"check_noise_has_entropy", "check_drawn_data"}
    bugs = [bug for bug in bugs if not slow & {*bug.killed_by}]
    verdicts = {}
    return {bug.name: killer(bug, estimator, verdicts) for bug in reached(bugs, estimator)}


def of_outside(edit):
    """What kills an edit: an assertion of the test that it names."""
    with edit.planted():
        try:
            run(edit.test, edit.arguments)
        except AssertionError:
            return edit.test
        except BaseException as error:  # pytest's own failures derive from it
            return edit.test if type(error).__name__ == "Failed" else repr(error)
    return None


def found(names):
    """All verdicts, by estimator and bug."""
    verdicts = {}
    for name in names:
        for bug, check in of_registry(name).items():
            verdicts[f"{name}: {bug}"] = check
    for edit in OUTSIDE:
        verdicts[f"outside: {edit.name}"] = of_outside(edit)
    return verdicts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", type=Path)
    parser.add_argument("--compare", type=Path)
    parser.add_argument("names", nargs="*", default=["toy", *BUILDING_BLOCKS])
    options = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        now = found(options.names)
    dead = {bug for bug, check in now.items() if check not in (None, "not reached")}
    print(f"{len(dead)} of {len(now)} seeded bugs die; alive: {sorted(now.keys() - dead)}")
    if options.store:
        options.store.write_text(json.dumps(now, indent=1) + "\n")
    if options.compare:
        before = json.loads(options.compare.read_text())
        print(*sorted(b for b, c in before.items() if c and b not in dead), sep="\n")


if __name__ == "__main__":
    main()
