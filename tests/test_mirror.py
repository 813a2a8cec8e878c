"""The tree of tests mirrors the package: each module has a test file of its name, and no more.

`sklearn_dp/A/_b.py` is tested in `tests/A/test_b.py`: who changes a module finds its tests, and who
reads a failure finds the module. A list below names what departs from this, with the reason.
"""

from pathlib import Path, PurePosixPath

import pytest

TESTS = Path(__file__).resolve().parent
PACKAGE = TESTS.parent / "sklearn_dp"
MOST_LINES = 600

# Modules without a test file, and why.
UNTESTED = {
    "exceptions.py": "classes without code; what raises them is tested where it is",
    "_aggregate/kmeans/tuning.py": "numbers only; the engine is tested with them",
}
# Test files and folders that mirror no module, and why.
COMMON = {
    "test_ablation_benchmark.py": "the rows of a table, beside the numbers of the engine",
    "test_acceptance_pages.py": "pages of doc/development and tests",
    "test_architecture.py": "rules of the whole package",
    "test_bad_input.py": "all estimators",
    "test_bad_input_benchmark.py": "a script of benchmarks/",
    "test_common.py": "all estimators",
    "test_conftest.py": "a mark of the tests",
    "test_contributing.py": "CONTRIBUTING",
    "test_days_of_covariances.py": "what fits a covariance day by day",
    "test_docstrings.py": "examples of all docstrings",
    "test_composite_steps.py": "every mechanism that one charge pays for as a whole",
    "test_dropin_benchmark.py": "a script of benchmarks/",
    "test_engine_benchmark.py": "a script of benchmarks/",
    "test_entropy.py": "sources of randomness of all estimators",
    "test_every_option.py": "all values of all parameters of all estimators",
    "test_examples.py": "scripts of examples/",
    "test_extreme_parameters.py": "all estimators",
    "test_extreme_rows.py": "all estimators",
    "test_frontier_benchmark.py": "a script of benchmarks/",
    "test_gallery.py": "scripts of examples/from_scikit_learn/",
    "test_house.py": "limits of what a script of tests/ measures",
    "test_ledger_bypass.py": "all ways around a ledger",
    "test_mirror.py": "this file",
    "test_outside_mutants.py": "edits of the package's text, and the tests that see them",
    "test_packaging.py": "the built package",
    "test_partitions.py": "fits of tables in parts, in every estimator that has them",
    "test_partitions_bad_input.py": "bad parts, for every estimator that takes parts",
    "test_partitions_blocks.py": "the same, where blocks of rows come together",
    "test_partitions_identity.py": "all of these settings, crossed with types, groups and weights",
    "test_partitions_of_mixtures.py": "fits of mixtures to tables in parts, every way through one",
    "test_partitions_of_balls.py": "fits of balls to tables in parts, in the estimators of them",
    "test_partitions_of_groups.py": "the same for groups that are spread over parts, and for means",
    "test_partitions_communication.py": "what comes to the place of a fit, in every estimator",
    "test_proofs.py": "the proof pages of doc/proofs",
    "test_published.py": "who may import the room `_published`",
    "test_readme.py": "README",
    "test_reading.py": "README and the page for beginners",
    "test_regression_benchmark.py": "a script of benchmarks/",
    "test_rows_beyond.py": "a bound that all estimators with a released radius have",
    "test_second_replay.py": "all estimators, by a replay of their own",
    "test_site.py": "the pages of doc/ and what builds them",
    "test_tiny_data.py": "all estimators",
    "test_tutorials.py": "scripts of examples/tutorials/",
    "fuzz": "all public functions, on drawn arguments",
    "mutants": "seeded bugs of this package, which other tests plant",
    "_aggregate/one_cluster/test_laws.py": "laws of all mechanisms of the room",
    "_dropin/test_other_libraries.py": "estimators inside those of other libraries",
    "_dropin/test_interfaces.py": "interfaces of all estimators beside scikit-learn's",
    "_partitions/test_lost_states.py": "clusters that keep nothing, with every engine",
    "_partitions/test_first_steps.py": "what users type first, in processes of their own",
    "_privacy/test_disjoint_files.py": "keys of ledger files, where the rules are tested apart",
    "audit/mechanisms/test_draws.py": "what all laws ask of the samplers",
    "audit/mechanisms/test_mechanisms.py": "all laws of the audit beside the kernel's",
    "audit/test_black_box.py": "frequencies of all kinds of releases",
    "audit/test_mutants.py": "all seeded bugs",
    "cluster/test_k_tuple_data.py": "k-tuples of unusual data",
    "cluster/test_sample_weight.py": "weights of rows, and how they become integers",
    "test_sample_weight.py": "weights of rows in every estimator that takes them",
    "cluster/test_k_tuple_modes.py": "k-tuples in pieces, threads, processes and clusters",
    "federated/test_acceptance.py": "acceptance tests of the whole protocol",
    "federated/test_audit.py": "audits of the whole protocol",
    "federated/test_flower_page.py": "the app and the commands of a page of doc/",
    "federated/test_replace.py": "neighbors that replace a client, in the whole protocol",
    "federated/test_shared_noise.py": "noise in shares, through the whole protocol",
    "mixture/test_mixture_audits.py": "audits of all ways to a mixture",
    "mixture/test_mixture_mutants.py": "mutants of all ways to a mixture",
}


def mirrored(module):
    """The test file of a module, both relative to their trees."""
    path = PurePosixPath(module)
    return str(path.with_name(f"test_{path.stem.strip('_')}.py"))


def is_common(test, common):
    """Whether a file, or a folder that it is in, is in the list."""
    return test in common or any(str(folder) in common for folder in PurePosixPath(test).parents)


def missing(modules, tests, untested):
    """Modules that have no test file and no reason."""
    return {module for module in modules if mirrored(module) not in tests} - untested.keys()


def stale(modules, tests, untested, common):
    """Entries of the lists that are no longer true."""
    every = {str(parent) for test in tests for parent in (PurePosixPath(test), *_folders(test))}
    homes = {mirrored(module) for module in modules}
    return {
        *(name for name in untested if name not in modules or mirrored(name) in tests),
        *(name for name in common if name not in every or name in homes),
    }


def _folders(test):
    return PurePosixPath(test).parents


def strays(modules, tests, common):
    """Test files that mirror no module and have no reason."""
    homes = {mirrored(module) for module in modules}
    return {test for test in tests if test not in homes and not is_common(test, common)}


def paths(root, pattern):
    return {path.relative_to(root).as_posix() for path in root.rglob(pattern)}


MODULES = {path for path in paths(PACKAGE, "*.py") if not path.endswith("__init__.py")}
FILES = paths(TESTS, "test_*.py")


def test_every_module_has_its_test_file():
    assert len(MODULES) > 200
    assert missing(MODULES, FILES, UNTESTED) == set()


def test_every_exemption_is_needed():
    # The folder of mutants holds no test file: what is in it is looked up by itself.
    found = FILES | paths(TESTS, "mutants/*.py")
    assert stale(MODULES, found, UNTESTED, COMMON) == set()


def test_every_test_file_mirrors_a_module():
    assert strays(MODULES, FILES, COMMON) == set()


def test_no_test_file_is_long():
    lines = {name: len((TESTS / name).read_text("utf-8").splitlines()) for name in FILES}
    assert {name: n for name, n in lines.items() if n > MOST_LINES} == {}


def test_every_test_file_holds_a_test():
    assert {name for name in FILES if "def test_" not in (TESTS / name).read_text("utf-8")} == set()


# -- planted ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "test"),
    [
        ("_base.py", "test_base.py"),
        ("ledger.py", "test_ledger.py"),
        ("_a/_b/_c_d.py", "_a/_b/test_c_d.py"),
        ("audit/__main__.py", "audit/test_main.py"),
    ],
)
def test_names_of_test_files(module, test):
    assert mirrored(module) == test


def test_planted_violations_are_caught():
    modules, tests = {"a/_b.py", "a/c.py"}, {"a/test_b.py", "test_c.py", "fuzz/test_x.py"}
    assert missing(modules, tests, {}) == {"a/c.py"}
    assert missing(modules, tests, {"a/c.py": "data"}) == set()
    assert strays(modules, tests, {"fuzz": "all"}) == {"test_c.py"}
    assert strays(modules, tests, {"test_c.py": "all"}) == {"fuzz/test_x.py"}
    assert stale(modules, tests, {"a/c.py": "data"}, {"fuzz": "all", "test_c.py": "all"}) == set()
    assert stale(modules, tests, {"a/_b.py": "data", "a/gone.py": "data"}, {}) == {
        "a/_b.py",
        "a/gone.py",
    }
    assert stale(modules, tests, {}, {"a/test_b.py": "all", "gone": "all"}) == {
        "a/test_b.py",
        "gone",
    }


def test_no_module_is_longer_than_400_lines():
    """A room is read module by module: one that grew longer has two subjects."""
    lines = {
        str(path.relative_to(PACKAGE)): len(path.read_text("utf-8").splitlines())
        for path in PACKAGE.rglob("*.py")
    }
    assert {name: n for name, n in lines.items() if n > 400} == {}
