"""Scikit-learn's own tests of four classes, run against the private classes in their place.

    python benchmarks/dropin.py            # the table; exit status 1 if a line of the file is wrong
    python benchmarks/dropin.py --write    # the same, into doc/benchmarks/dropin.md
    python benchmarks/dropin.py --failures # what each failing case says, to classify it

The tests come from the installed scikit-learn. Each of them finds our class under the name of
theirs, with epsilon = 10,000 and a seed, so that it sees what the interface and the algorithm do
and next to no noise. Words of their constructors that ours do not have are dropped, as
`from_sklearn` does: the table tells these tests apart from those that pass as they are.

`benchmarks/dropin.toml` says of each test that fails why it does. A failure without a line, a line
without a failure, and a failure by another kind of error than the line has are errors here. A test
counts if it makes an instance of the class; it passes if all its cases do.
"""

import argparse
import functools
import importlib
import inspect
import os
import sys
import tomllib
import warnings
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import _run  # first: one thread
import pytest
import sklearn

from sklearn_dp import DPPCA, DPGaussianMixture, DPKMeans, FriendlyCovariance

FILE = Path(__file__).with_name("dropin.toml")
PAGE = _run.PAGES / "dropin.md"
EPSILON = 1e4
SUITES = {
    "test_k_means": ("sklearn.cluster", "KMeans", DPKMeans),
    "test_gaussian_mixture": ("sklearn.mixture", "GaussianMixture", DPGaussianMixture),
    "test_covariance": ("sklearn.covariance", "EmpiricalCovariance", FriendlyCovariance),
    "test_pca": ("sklearn.decomposition", "PCA", DPPCA),
}
CLASSES = {
    "privacy": "inherent to privacy",
    "algorithm": "a step of the algorithm that is replaced, or one of its internals",
    "missing": "missing",
}


@dataclass
class Function:
    """What happened to a test function."""

    suite: str
    name: str
    cases: int = 0
    used: bool = False
    dropped: set = field(default_factory=set)
    errors: set = field(default_factory=set)
    failures: list = field(default_factory=list)

    @property
    def outcome(self):
        if self.failures:
            return "fails"
        return "passes without these words" if self.dropped else "passes"


class Recorder:
    """A plugin of pytest: which functions make an instance, and how they end."""

    def __init__(self):
        self.functions, self._now = {}, None

    def made(self):
        if self._now is not None:
            self._now.used = True

    def drop(self, words):
        if self._now is not None:
            self._now.dropped |= set(words)

    def _of(self, item):
        suite, name = Path(item.path).stem, item.originalname
        return self.functions.setdefault((suite, name), Function(suite, name))

    def pytest_runtest_setup(self, item):
        # Cases of a class that is not replaced are no cases of ours.
        given = estimators_of(item)
        others = given and not any(hasattr(each, "_stands_in") for each in given)
        self._now = None if others else self._of(item)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        report = (yield).get_result()
        if self._now is None or report.skipped or (report.when != "call" and report.passed):
            return
        self._now.cases += 1
        if report.failed:
            self._now.errors.add(call.excinfo.typename)
            text = str(call.excinfo.value).strip().splitlines() or [""]
            self._now.failures.append(f"{item.name}: {call.excinfo.typename}: {text[0]}")


def estimators_of(item):
    """Estimators, or classes of them, that a case is parametrized by."""
    values = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return [value for value in values if hasattr(value, "get_params")]


def stand_in(theirs, ours, recorder):
    """Our class under the name of theirs: the budget and the seed are set, other words dropped."""
    known = set(inspect.signature(ours.__init__).parameters)
    words = set(inspect.signature(theirs.__init__).parameters) - known
    words |= {"init"} & known  # theirs are ways to choose rows; ours are released or public centers

    def without_words(options):
        recorder.drop(name for name in words & set(options) if options[name] is not None)
        return {name: value for name, value in options.items() if name not in words}

    @functools.wraps(ours.__init__)
    def init(self, *values, **options):
        recorder.made()
        ours.__init__(self, *values, **without_words(options))
        if self.epsilon == 1.0 and self.rho is None:  # nobody has set it
            self.epsilon = EPSILON
        if self.random_state is None:
            self.random_state = 0
        if getattr(self, "max_weight", 0.0) is None:
            self.max_weight = 1.0  # public; theirs need none

    def set_params(self, **options):
        return ours.set_params(self, **without_words(options))

    members = {"set_params": set_params, "__module__": theirs.__module__, "_stands_in": True}
    stand_in = type(theirs.__name__, (ours,), members)
    stand_in.__init__ = init
    return stand_in


def load(suite, recorder):
    """Path of a suite whose module has been imported with our class in place of theirs.

    Nobody but that module sees it: scikit-learn itself goes on with its own.
    """
    package, name, ours = SUITES[suite]
    package = importlib.import_module(package)
    theirs = getattr(package, name)
    setattr(package, name, stand_in(theirs, ours, recorder))
    try:
        return importlib.import_module(f"{package.__name__}.tests.{suite}").__file__
    finally:
        setattr(package, name, theirs)


def run(suites=tuple(SUITES)):
    """All functions that make an instance of one of our classes."""
    recorder = Recorder()
    paths = [load(suite, recorder) for suite in suites]
    root = str(Path(sklearn.__file__).parent)
    options = ["-c", os.devnull, "--rootdir", root, "-p", "no:cacheprovider", "-q", "--no-header"]
    with warnings.catch_warnings():
        pytest.main([*options, "--no-summary", "-W", "ignore", *paths], plugins=[recorder])
    return [each for each in recorder.functions.values() if each.used and each.cases]


def classified():
    """Lines of the file, by suite and name, and the version of scikit-learn that it is for."""
    content = tomllib.loads(FILE.read_text(encoding="utf-8"))
    version = content.pop("scikit_learn")
    lines = {
        (suite, name): line for suite, table in content.items() for name, line in table.items()
    }
    return lines, version


def problems(functions, lines):
    """What is wrong with the file, in words."""
    found = []
    failing = {(each.suite, each.name): each for each in functions if each.failures}
    for key in sorted(failing.keys() - lines.keys()):
        found.append(f"{key[0]}.{key[1]} fails and has no line: {failing[key].failures[0]}")
    suites = {each.suite for each in functions}
    for key in sorted(lines.keys() - failing.keys()):
        if key[0] in suites:
            found.append(f"{key[0]}.{key[1]} does not fail: its line is stale")
    for key in sorted(failing.keys() & lines.keys()):
        line, errors = lines[key], sorted(failing[key].errors)
        if line.keys() != {"class", "errors", "reason"} or line["class"] not in CLASSES:
            found.append(f"{key[0]}.{key[1]}: a line has class, errors and reason")
        elif errors != line["errors"]:
            found.append(f"{key[0]}.{key[1]} fails by {errors}, its line has {line['errors']}")
    return found


def counts(functions, lines):
    """Number of functions of each suite and kind."""
    table = defaultdict(lambda: defaultdict(int))
    for each in functions:
        line = lines.get((each.suite, each.name), {"class": "missing"})
        kind = line["class"] if each.failures else each.outcome
        table[each.suite][kind] += 1
        table["all"][kind] += 1
    return table


def page(functions, lines):
    """The table, and below it each failure with its reason."""
    table = counts(functions, lines)
    kinds = ["passes", "passes without these words", *CLASSES]
    heads = ["functions", "pass as they are", "pass without words that ours do not have"]
    text = ["| tests of | " + " | ".join([*heads, *CLASSES.values()]) + " |"]
    text.append("|---" * (len(heads) + len(CLASSES) + 1) + "|")
    for suite in [*SUITES, "all"]:
        numbers = [table[suite][kind] for kind in kinds]
        title = SUITES[suite][1] if suite in SUITES else "all"
        text.append(f"| {title} | " + " | ".join(map(str, [sum(numbers), *numbers])) + " |")
    found = {line["class"] for line in lines.values()}
    for kind, title in CLASSES.items():
        if kind not in found:
            continue
        text += ["", f"## {title[0].upper()}{title[1:]}", "", "| test | reason |", "|---|---|"]
        for suite in SUITES:
            for (of, name), line in lines.items():
                if of == suite and line["class"] == kind:
                    text.append(f"| {SUITES[suite][1]}: `{name}` | {line['reason']} |")
    return "\n".join(text) + "\n"


def whole_page(functions, lines):
    return (
        "# A drop-in replacement, by scikit-learn's own tests\n\n"
        "Scikit-learn's tests of four classes, run against the private classes in their place at "
        f"epsilon = {EPSILON:g}: `python benchmarks/dropin.py --write`, with scikit-learn "
        f"{sklearn.__version__}. A test counts if it makes an instance of the class, and passes if "
        "all its cases do. The reasons are those of `benchmarks/dropin.toml`.\n\n"
    ) + page(functions, lines)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suites", nargs="*", help="some of: " + ", ".join(SUITES))
    parser.add_argument("--write", action="store_true", help="write doc/benchmarks/dropin.md")
    parser.add_argument("--failures", action="store_true", help="print each failing case")
    arguments = parser.parse_args(argv)
    functions = run(tuple(arguments.suites) or tuple(SUITES))
    lines, version = classified()
    print(page(functions, lines).split("\n\n")[0])
    if arguments.failures:
        for each in functions:
            for failure in each.failures:
                print(f"{each.suite}: {failure}")
    if not sklearn.__version__.startswith(version + "."):
        print(f"The reasons are for scikit-learn {version}, this is {sklearn.__version__}.")
        return 0
    found = problems(functions, lines)
    for problem in found:
        print(problem, file=sys.stderr)
    if arguments.write and not found:
        PAGE.write_text(whole_page(functions, lines), encoding="utf-8")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
