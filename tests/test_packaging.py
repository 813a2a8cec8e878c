"""What pyproject.toml declares is what the code imports, and nothing else."""

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import sklearn_dp

ROOT = Path(__file__).resolve().parents[1]
CONFIGURATION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = CONFIGURATION["project"]
DISTRIBUTION = {
    "sklearn": "scikit-learn",
    "sklearn_dp": "sklearn-dp",
    "PIL": "pillow",
    "pydp": "python-dp",
}
# What no extra can name, because it cannot be installed beside this package, and why.
APART = {"tmlt": "Tumult Analytics needs numpy 1; rivals.py starts another interpreter for it"}


def distribution(module):
    return DISTRIBUTION.get(module, module.replace("_", "-"))


def requirement_name(requirement):
    return re.match(r"[A-Za-z0-9._-]+", requirement)[0]


def declared(extras=()):
    """Names required by the core and by some extras, extras of extras included."""
    names = {requirement_name(item) for item in PROJECT["dependencies"]}
    for extra in extras:
        for item in PROJECT["optional-dependencies"][extra]:
            own = re.match(r"sklearn-dp\[(.*)\]", item)
            names |= declared(own[1].split(",")) if own else {requirement_name(item)}
    return names


@cache
def imported(folder):
    """Map each third-party distribution imported below a folder to one file that imports it."""
    found = {}
    local = {other.stem for other in (*folder.rglob("*.py"), *folder.iterdir())}
    for path in sorted(folder.rglob("*.py")):
        if "auto_examples" in path.parts:  # what a build of the site has copied
            continue
        for module in top_level_imports(path.read_text(encoding="utf-8")):
            if module not in sys.stdlib_module_names and module not in local:
                found.setdefault(distribution(module), path.name)
    found.pop("sklearn-dp", None)
    return found


def top_level_imports(source):
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (name.name.split(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.split(".")[0]


def undeclared(folder, names):
    known = {*names, *APART}
    return {name: file for name, file in imported(folder).items() if name not in known}


def test_what_the_package_imports_is_declared():
    # test_architecture has shown that anything but the core is imported inside functions.
    assert undeclared(ROOT / "sklearn_dp", declared(PROJECT["optional-dependencies"])) == {}


def test_oldest_tested_versions_are_the_stated_lower_bounds():
    lines = (ROOT / ".ci" / "oldest.txt").read_text(encoding="utf-8").splitlines()
    pinned = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    extras = PROJECT["optional-dependencies"]
    (own,) = (item for item in extras["test"] if item.startswith("sklearn-dp["))
    stated = [*PROJECT["dependencies"], *extras["test"]]
    stated += [item for name in own[11:-1].split(",") for item in extras[name]]
    bounds = {requirement_name(item): item.split(">=")[1] for item in stated if ">=" in item}
    assert pinned == bounds


def commands_that_fail(text, targets, extras):
    """Of the workflow or the Makefile: targets, extras and files that they name and nobody has."""
    code = re.sub(r"(^|\s)#.*", "", text, flags=re.M)
    yield from set(re.findall(r"\bmake ([a-z]+)", code)) - targets
    named = re.findall(r"\.\[([a-z,-]+)\]|\.has-([a-z-]+)", code)
    yield from {name for pair in named for name in "".join(pair).split(",")} - extras
    paths = re.findall(
        r"(?:\.ci/\w|\b(?:benchmarks|doc|examples|tests)/)[\w./]+\.(?:py|txt)\b|\.ci/run", code
    )
    yield from (path for path in paths if not (ROOT / path).exists())


def test_what_the_workflow_and_the_makefile_run_is_there():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    targets = set(re.search(r"^\.PHONY: (.*)$", makefile, re.M)[1].split())
    assert targets == set(re.findall(r"^([a-z]+):", makefile, re.M))
    known = (targets, set(PROJECT["optional-dependencies"]))
    assert not [*commands_that_fail(makefile, *known), *commands_that_fail(workflow, *known)]
    planted = "make lnit\npip install .[tset]\npython benchmarks/gone.py # make more"
    assert list(commands_that_fail(planted, *known)) == ["lnit", "tset", "benchmarks/gone.py"]


def test_version_is_the_same_everywhere():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert sklearn_dp.__version__ == PROJECT["version"]
    assert f'version: "{PROJECT["version"]}"\n' in citation


def test_names_are_loaded_when_they_are_asked_for():
    code = """
import sys, sklearn_dp
assert {name for name in sys.modules if name.startswith("sklearn_dp.")} == {"sklearn_dp._version"}
assert sklearn_dp.exceptions.PrivacyWarning and sklearn_dp.DPKMeans
assert sklearn_dp.mean.FriendlyMean is sklearn_dp.FriendlyMean
assert not [name for name in sys.modules if name.startswith("sklearn_dp.segments")]
assert not {"sklearn_dp.cluster._dp_topics", "sklearn.feature_extraction.text"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    second = {"DPMean": "FriendlyMean", "DPCovariance": "FriendlyCovariance"}
    for package in (sklearn_dp, sklearn_dp.cluster):
        for name in package.__all__:
            assert getattr(package, name).__name__ == second.get(name, name)
            assert name in dir(package)
        assert not hasattr(package, "no_such_name")
