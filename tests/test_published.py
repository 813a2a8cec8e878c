"""The papers' own variants are met only where an option leads to them."""

from test_architecture import PACKAGE, module_imports, package_modules, under

# Modules that hold the options.
OPTION_HOLDERS = {
    "_aggregate.friendly.mean",
    "_aggregate.mixture.fit",
    "_aggregate.mixture.mixture_plan",
    "_aggregate.one_cluster.center",
    "_aggregate.one_cluster.search",
    "cluster._interior",
    "cluster._dp_k_tuple_kmeans",
    "covariance._friendly_covariance",
    "federated._learn",
    "federated._parameters",
    "mean._friendly_mean",
}


def strangers(module):
    """Who reads the way of a default fit meets `_published` only where an option leads there."""
    if module.name in OPTION_HOLDERS or under(module.name, ["_published"]):
        return
    for item in module_imports(module):
        if under(item.target, [f"{PACKAGE}._published"]):
            yield f"{module.name}:{item.line}: imports {item.target}, and holds no option"


def test_published_variants_are_behind_options():
    assert [found for module in package_modules() for found in strangers(module)] == []


def test_any_module_may_be_imported_first():
    """A module is incomplete while what it imports runs, which therefore must not need it.

    That runs the packages above it first, unless they have begun to run already.
    """
    modules = {module.name: module for module in package_modules()}
    runs = {
        name: {
            package
            for item in module_imports(module)
            if not item.lazy and under(item.target, [PACKAGE])
            for package in _and_above(item.target.removeprefix(f"{PACKAGE}.")) & modules.keys()
            if package not in _and_above(name)
        }
        for name, module in modules.items()
    }
    while runs:
        complete = {name for name, needed in runs.items() if not needed & runs.keys()}
        assert complete, f"a circle among {sorted(runs)}"
        runs = {name: needed for name, needed in runs.items() if name not in complete}


def _and_above(name):
    """The module and the packages that it lies in, below `sklearn_dp`."""
    parts = name.split(".")
    return {".".join(parts[: n + 1]) for n in range(len(parts))}
