"""How much has to be read to trust an estimator: code lines of what can see an un-noised value.

    python tests/trusted.py                  # this checkout
    python tests/trusted.py --before FOLDER  # beside another one
    python tests/trusted.py --files DPKMeans # the files, with their lines

The modules that an estimator imports, directly or through others, of these kinds:

* kernel: all that it needs of `_privacy`, but for ledgers, which see no values;
* rows, questions: all that it needs of `_rows` and `_queries`;
* door: how rows come in (`_door`, `_door_entries`, `_fit`, `_partitions`, `_weights`);
* others: modules that import rows, parts or sums of them, ask a table for sums, open an answer,
  state a sensitivity, fit the rows themselves, or import a class that holds any of these. They
  should be none.

Lines are code: no docstrings, comments or blank lines. The lines below the table are about what it
does not count: `_costs` (budgets, plans, accounts, reports), which is handed public numbers only,
so that a mistake there is a wrong sum and shows no row; and what has to be read in addition where a
table is in parts: these modules are imported for such a table only. The last line counts the
calls, outside of kernel and questions, that state a sensitivity.
"""

import argparse
import ast
import re
import sys
from functools import cached_property
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_queries"))

from house import ROOT, imports, lines_by_kind  # noqa: E402
from test_architecture import Module, dotted  # noqa: E402
from test_laws import (  # noqa: E402
    STATED,
    has_no_way_to_rows,
    imports_no_rows,
    states_no_sensitivity,
)

ESTIMATORS = {
    "DPKMeans": "cluster._dp_kmeans",
    "DPCoreset": "cluster._dp_coreset",
    "DPDBSCAN": "cluster._dp_dbscan",
    "DPKTupleKMeans": "cluster._dp_k_tuple_kmeans",
    "DPOneCluster": "cluster._dp_one_cluster",
    "DPGaussianMixture": "mixture._dp_gaussian_mixture",
    "DPPCA": "decomposition._dp_pca",
    "FriendlyCovariance": "covariance._friendly_covariance",
    "FriendlyMean": "mean._friendly_mean",
    "DPQuantiles": "preprocessing._dp_quantiles",
    "DPStandardScaler": "preprocessing._dp_standard_scaler",
    "DPOneHotEncoder": "preprocessing._dp_one_hot_encoder",
    "DPTopics": "cluster._dp_topics",
    "DPBySegment": "segments._dp_by_segment",
    "SampleAndAggregate": "ensemble._sample_and_aggregate",
    "FederatedDPKMeans": "federated._federated_dp_kmeans",
}
DOOR = ("_door", "_door_entries", "_fit", "_partitions", "_weights")
CLUSTERS = {"here": "_pieces", "Dask": "_dask", "Ray": "_ray", "Spark": "_spark"}
"""By whom the rows are held: the module of `_partitions` that is imported for them."""

AFTER = "_partitions._rowwise"
"""Methods after a fit: what they are given is not what the fit was of."""
PAGES = {"_ledger", "_ledger_store"}
"""Of the kernel: budgets across fits."""
COSTS = "_costs"
"""Budgets, plans and reports: numbers that are public, below all that sees a row."""
KINDS = ("kernel", "rows", "questions", "door", "others")
RAW = {"Table", "Rows", "Part"}


class Checkout:
    """The modules of a checkout, by their dotted names below the package."""

    def __init__(self, root):
        self.package = root / "sklearn_dp"
        self.paths = {
            ".".join(path.relative_to(self.package).with_suffix("").parts): path
            for path in self.package.rglob("*.py")
            if path.name != "__init__.py"
        }

    @cached_property
    def graph(self):
        """Which modules each of them imports."""
        found = dict(imports(self.package))
        short = {name: ".".join(name[1:]) for name in found}
        return {short[name]: {short[each] for each in of} for name, of in found.items()}

    @cached_property
    def modules(self):
        return {
            name: Module.parse(name, path.read_text("utf-8")) for name, path in self.paths.items()
        }

    def needed(self, name):
        """The modules that one needs, with itself."""
        seen, left = {name}, [name]
        while left:
            one = left.pop()
            of = self.graph.get(one, set()) if self.kinds.get(one) != "page" else set()
            new = of - seen
            seen |= new
            left += new
        return seen & self.paths.keys()

    def lines(self, names):
        sources = [self.paths[name].read_text("utf-8") for name in names]
        return lines_by_kind(sources).get("code", 0)

    @cached_property
    def kinds(self):
        """The kind of each module; None of those that see no values."""
        found, held = {name: self._kind(name) for name in self.paths}, {}
        for _ in range(20):  # until nothing is added: what holds rows is handed on by imports
            for name in self.paths:
                raw = self._imported(name, held)
                held[name] = self._holders(name, raw)
                if raw and found[name] is None:
                    found[name] = "others"
        return found

    def _kind(self, name):
        parts = name.split(".")
        if parts[0] == "_privacy":
            return "page" if parts[1] in PAGES else "kernel"
        if parts[0] in ("_rows", "_queries"):
            return {"_rows": "rows", "_queries": "questions"}[parts[0]]
        if parts[0] in DOOR and name != AFTER:
            return "door"
        if parts[0] == "audit" or name == AFTER:
            return None
        module = self.modules[name]
        seen = any(law(module) for law in SEEING)
        return "others" if seen else None

    def _imported(self, name, held):
        """Classes that hold rows, of other modules."""
        raw = set()
        for node in ast.walk(self.modules[name].tree):
            if isinstance(node, ast.ImportFrom) and node.level:
                base = name.split(".")[: -node.level]
                home = ".".join([*base, *(node.module or "").split(".")])
                raw |= held.get(home, set()) & {each.name for each in node.names}
        return raw

    def _holders(self, name, raw):
        """Classes of a module with a base or a field of a raw type."""
        found, known = set(), RAW | raw
        body = self.modules[name].tree.body
        classes = [node for node in body if isinstance(node, ast.ClassDef)]
        for node in classes * len(classes):  # in whatever order they are
            fields = [each.annotation for each in node.body if isinstance(each, ast.AnnAssign)]
            words = " ".join(ast.unparse(each) for each in (*node.bases, *fields))
            if (known | found) & set(re.findall(r"\w+", words)):
                found.add(node.name)
        return found if self._kind(name) == "others" or raw else set()

    def files(self, estimator):
        """The modules by kind."""
        needed = sorted(self.needed(ESTIMATORS[estimator]))
        return {kind: [name for name in needed if self.kinds[name] == kind] for kind in KINDS}

    def row(self, estimator):
        """Code lines by kind."""
        return [self.lines(names) for names in self.files(estimator).values()]

    def costs(self, estimator="DPKMeans"):
        """Code lines of what is computed of public numbers alone."""
        needed = self.needed(ESTIMATORS[estimator])
        return self.lines([each for each in needed if each.split(".")[0] == COSTS])

    def cluster(self, name, estimator="DPKMeans"):
        """Code lines of what is to be read in addition, for a table in parts."""
        needed = self.needed(f"_partitions.{CLUSTERS[name]}")
        return self.lines(
            [
                each
                for each in needed - self.needed(ESTIMATORS[estimator])
                if self.kinds[each] in KINDS
            ]
        )

    def stated(self):
        """Where a sensitivity is stated outside of kernel and questions."""
        return [
            f"{name}:{node.lineno}"
            for name, module in self.modules.items()
            if name.split(".")[0] not in ("_privacy", "_queries", "audit")
            for node in ast.walk(module.tree)
            if isinstance(node, ast.Call) and states(node)
        ]


def fits_rows(module):
    """Fits that are handed the rows, and not a table or a handle of them."""
    return [
        node.name
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef) and node.name == "_fit"
        if any(each.arg == "X" for each in node.args.args)
    ]


SEEING = tuple(
    lambda module, law=law: list(law(module))
    for law in (imports_no_rows, has_no_way_to_rows, states_no_sensitivity, fits_rows)
)


def states(call):
    """Whether a call hands a session a number that neighbors differ by, or says so in a word."""
    name = dotted(call.func).split(".")[-1]
    word = any(each.arg == "sensitivity" for each in call.keywords)
    first = " ".join([dotted(call.func), *(ast.unparse(each) for each in call.args[:1])])
    return name in STATED and (word or "session" in first or "step" in first)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, help="folder of another checkout")
    parser.add_argument("--files", choices=ESTIMATORS, help="an estimator whose files to list")
    options = parser.parse_args()
    now, past = Checkout(ROOT), options.before and Checkout(options.before.resolve())
    if options.files:
        for kind, names in now.files(options.files).items():
            print(f"{kind}: {now.lines(names):,}")
            for name in names:
                print(f"  {now.paths[name].relative_to(ROOT)}: {now.lines([name]):,}")
        return
    print(f"{'estimator':<20}" + "".join(f"{kind:>10}" for kind in (*KINDS, "all", "before")))
    for name in ESTIMATORS:
        row = now.row(name)
        known = f"{sum(past.row(name)):>10,}" if past else ""
        print(f"{name:<20}" + "".join(f"{each:>10,}" for each in (*row, sum(row))) + known)
    clusters = ", ".join(f"{name} {now.cluster(name):,}" for name in CLUSTERS)
    print(f"numbers that are public, without ledgers' files: {now.costs():,}")
    print(f"in addition, for tables in parts: {clusters}")
    stated = now.stated()
    known = f"; before, {len(past.stated())}" if past else ""
    files = len({place.split(":")[0] for place in stated})
    print(f"stated outside of kernel and questions: {len(stated)} in {files} files{known}")


if __name__ == "__main__":
    main()
