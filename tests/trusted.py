"""How much has to be read to trust an estimator: code lines of what can see an un-noised value.

    python tests/trusted.py                  # this checkout
    python tests/trusted.py --before FOLDER  # beside another one
    python tests/trusted.py --list DPKMeans  # what to read: files, lines, names

What counts are definitions (functions, methods, heads of classes, constants) that an estimator can
reach, if they are in modules of these kinds:

* kernel: `_privacy`, but for ledgers, which see no values;
* rows, questions: `_rows` and `_queries`;
* door: how rows come in (`_door`, `_door_entries`, `_fit`, `_partitions`);
* others: modules that import rows, parts or sums of them, ask a table for sums, open an answer,
  state a sensitivity, or fit the rows themselves. They should be none.

Reached is what public methods of the estimator name, through whatever else they name, wherever it
is. A name stands for all that it may be imported from; an attribute for the methods of that name of
all classes reached (of `self` or of a class: of its relatives), and so does a text. A class brings
its bases, and its methods that Python or a base of another library may call. So the list is too
long rather than too short. `tests/_queries/test_trusted.py` checks this: what runs in a fit has to
be on it.

`all` is for an array of numbers; `any` for any table in memory, with weights and groups: what these
take is in `APART`, and what options take that are estimators of their own in `OPTIONS`. An
estimator around another one counts without the inner one. `modules` are whole modules, for any
table, by imports. Lines are code: no docstrings, comments or blank lines. Not counted is `_costs`
(budgets, plans, accounts, reports), which is handed public numbers only, so that a mistake there is
a wrong sum and shows no row.
"""

import argparse
import ast
import re
import sys
from collections import Counter, defaultdict
from functools import cache, cached_property
from importlib import import_module
from itertools import chain, groupby, product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_queries"))

from house import FUNCTIONS, ROOT, kinds_of_lines  # noqa: E402
from test_architecture import Module  # noqa: E402
from test_laws import has_no_way_to_rows, imports_no_rows, states_no_sensitivity  # noqa: E402

ESTIMATORS = (
    "DPKMeans", "DPCoreset", "DPDBSCAN", "DPKTupleKMeans", "DPOneCluster", "DPGaussianMixture",
    "DPPCA", "FriendlyCovariance", "FriendlyMean", "DPQuantiles", "DPStandardScaler",
    "DPOneHotEncoder", "DPTopics", "DPBySegment", "SampleAndAggregate", "FederatedDPKMeans",
)  # fmt: skip
APART = {
    "sparse": (
        "SparseRows",
        "NearRows",
        "CommonRows",
        "_canonical",
        "without_zeros",
        "moved_entries",
        "QuantizedRows.near",
        "About.near",
        "NormCounts._near",
        "Grid.quantize_entries",
        "common_row",
        "row_of_each_entry",
        "Products._add_sparse",
        "Products._add_few",
        "_of_entries",
    ),
    "weights": ("Units.weighted", "check_weights", "entries_of", "floats"),
    "groups": ("code_groups", "entries_of"),
    "lists and objects": ("floats", "items_of", "entries_of", "_read_rows", "common_width"),
    "frames": ("_Frame", "_read_frame"),
}
"""What only such tables and arguments lead to: a fit of an array of numbers runs none of it."""
IN_PARTS = ("InputInParts", "engine_of_parts", "FitsRows._fit_parts", "FitsRows._open_parts")
"""The same for tables in parts."""
FAR = {f"aggregator={name!r}": ("far_centers",) for name in ("k_averages", "noisy_centers")}
OPTIONS = {
    "DPGaussianMixture": {
        "method='k_tuples'": ("tuple_stage", "tuple_parts"),
        "method='partition'": ("partition_parts", "spherical_parts"),
        **FAR,
    },
    "DPKTupleKMeans": FAR,
}
TAKES = {"DPOneHotEncoder": ("lists and objects",)}
"""Estimators of rows that are no numbers."""
INSIDE = {"DPBySegment": ("FriendlyMean", "DPKMeans", "FriendlyCovariance", "DPGaussianMixture")}
"""Estimators around another one: some that may be inside."""
DOOR = ("_door", "_door_entries", "_fit", "_partitions")
CLUSTERS = {"here": "_pieces", "Dask": "_dask", "Ray": "_ray", "Spark": "_spark"}
"""By whom the rows are held: the module of `_partitions` that is imported for them."""

AFTER = "_partitions._rowwise"
"""Methods after a fit: what they are given is not what the fit was of."""
PAGES = {"_ledger", "_ledger_store"}
"""Of the kernel: budgets across fits."""
COSTS = {"_costs": "costs"}
"""Budgets, plans and reports: numbers that are public, below all that sees a row."""
KINDS = ("kernel", "rows", "questions", "door", "others")
HEADS = (*KINDS, "all", "any", "modules")
DEFINING = (*FUNCTIONS, ast.ClassDef)
PASSIVE = (ast.Import, ast.ImportFrom, ast.If, ast.Try)


class Definition:
    """A function, a method, the head of a class (all but its methods), or another statement."""

    def __init__(self, module, name, node, owner=None):
        self.module, self.name, self.node, self.owner = module, name, node, owner
        self.word, self.nodes, self.methods = name.partition(".")[2], [node], []
        decorators = getattr(node, "decorator_list", ())
        self.lines = {*range(min(each.lineno for each in (node, *decorators)), node.end_lineno + 1)}
        if isinstance(node, ast.ClassDef):
            of_class = [each for each in node.body if isinstance(each, FUNCTIONS)]
            self.methods = [Definition(module, f"{name}.{m.name}", m, self) for m in of_class]
            self.lines -= {line for method in self.methods for line in method.lines}
            self.nodes = [each for each in ast.iter_child_nodes(node) if each not in of_class]

    def __str__(self):
        return f"{self.module}:{self.name}"


def running(node):
    """The nodes that run: no annotations."""
    left = [node]
    for node in left:
        for field, value in ast.iter_fields(node):
            if field not in ("annotation", "returns"):
                several = value if isinstance(value, list) else [value]
                left += [each for each in several if isinstance(each, ast.AST)]
    return left


def stored(nodes):
    return {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def links(node):
    """What a chain of attributes begins with, and their names."""
    words = []
    while isinstance(node, ast.Attribute):
        words.insert(0, node.attr)
        node = node.value
    return node, words


def definitions(found):
    return {each for each in found if isinstance(each, Definition)}


class Names:
    """The definitions of a package, and what names in its modules may stand for: definitions,
    modules (their names), and what is of other packages (pairs)."""

    def __init__(self, package):
        self.package, self.trees, self.packages = package, {}, set()
        for path in sorted(package.rglob("*.py")):
            *folder, last = path.relative_to(package).with_suffix("").parts
            name = ".".join(folder if last == "__init__" else [*folder, last])
            self.trees[name] = ast.parse(path.read_text("utf-8"))
            self.packages |= {name} if last == "__init__" else set()
        self.defined = {name: defaultdict(list) for name in self.trees}
        self.bound = {name: defaultdict(set) for name in self.trees}
        self.always, self._open = defaultdict(list), set()
        for name, tree in self.trees.items():
            self._bind(name, tree)
            for node in tree.body:
                self._define(name, node)
        self._make_kin()

    def _bind(self, module, tree):
        """What imports bind: (whether it is of this package, module, name)."""
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                home = module.split(".")[: None if module in self.packages else -1]
                home = home[: len(home) + 1 - node.level] if node.level else ()
                base = ".".join(filter(None, [*home, node.module]))
                for each in node.names:
                    self.bound[module][each.asname or each.name].add((node.level, base, each.name))
            elif isinstance(node, ast.Import):
                for each in node.names:
                    name = each.name if each.asname else each.name.split(".")[0]
                    self.bound[module][each.asname or name].add((0, name, None))

    def _define(self, module, node):
        if isinstance(node, ast.If | ast.Try) and "TYPE_CHECKING" not in ast.unparse(node):
            for each in ast.iter_child_nodes(node):
                self._define(module, each)
        if not isinstance(node, ast.stmt) or isinstance(node, PASSIVE):
            return
        names = [getattr(node, "name", "")] if isinstance(node, DEFINING) else stored(running(node))
        one = Definition(module, ", ".join(sorted(names)), node)
        for name in names:
            self.defined[module][name].append(one)
        text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not isinstance(node, (*DEFINING, ast.Assign, ast.AnnAssign)) and not text:
            self.always[module].append(one)

    def named(self, name, modules):
        """All definitions of a name, "Class.method" too, in some modules."""
        head, _, word = name.partition(".")
        found = [each for home in modules for each in self.defined[home].get(head, ())]
        return [m for each in found for m in each.methods if m.word == word] if word else found

    def find(self, module, name):
        """All that a name may stand for."""
        found = [*self.defined[module].get(name, ())]
        if (module, name) not in self._open:
            self._open.add((module, name))
            for level, base, what in self.bound[module].get(name, ()):
                if level or base.split(".")[0] == self.package.name:
                    base = base if level else base.removeprefix(self.package.name).lstrip(".")
                    found += self.member(base, what)
                else:
                    found.append((base, what))
            self._open.remove((module, name))
        return found

    def member(self, home, name):
        """What a name is in a module: of a package that does not say so, where it is defined."""
        if name is None or home not in self.trees:
            return [home] if home in self.trees else []
        below = f"{home}.{name}".lstrip(".")
        found = self.find(home, name) or ([below] if below in self.trees else [])
        if found or home not in self.packages:
            return found
        return self.named(name, [each for each in self.trees if f".{each}".startswith(f".{home}")])

    @cache  # noqa: B019
    def said(self, one):
        """What a definition names: other definitions; words, for methods of any class; classes and
        words, for methods of their relatives; and patterns of words."""
        said = set(), set(), set(), set()
        nodes = [each for node in one.nodes for each in running(node)]
        local = stored(nodes) | {each.arg for each in nodes if isinstance(each, ast.arg)}
        local = set() if isinstance(one.node, (ast.Assign, ast.ClassDef)) else local
        for node in nodes:
            if isinstance(node, ast.Name):
                said[0].update(definitions(self.find(one.module, node.id)))
            elif isinstance(node, ast.Attribute):
                self._hear(one, node, local, said)
            elif isinstance(node, ast.Constant) and re.fullmatch(
                r"[A-Za-z_][\w.]*", f"{node.value}"
            ):
                said[1].update(f"{node.value}".split("."))
            elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "getattr":
                parts = getattr(node.args[1], "values", ())
                texts = [each.value if isinstance(each, ast.Constant) else "" for each in parts]
                said[3].update(["".join(each or r"\w*" for each in texts)] if texts else ())
        return said

    def _hear(self, one, node, local, said):
        """An attribute; those of texts are not ours."""
        root, words = links(node)
        name, found = getattr(root, "id", None), []
        if isinstance(root, ast.Constant | ast.JoinedStr):
            return
        if name in ("self", "cls") and one.owner is not None:
            found = [one.owner]
        elif name not in local:
            found = self.find(one.module, name)
        while words and found and all(isinstance(each, str) for each in found):
            word = words.pop(0)
            found = [each for home in found for each in self.member(home, word)]
        said[0].update(definitions(found))
        if words and found and all(each in self.bases for each in found):
            word = words.pop(0)
            said[2].update((head, word) for head in found)
        if not found or not all(isinstance(each, tuple) for each in found):
            said[1].update(words)

    def _make_kin(self):
        """Of each class: its bases, theirs, and itself; the words that bases of other packages
        define; and whatever else its `self` may be, with the bases of these."""
        every = [d for of in self.defined.values() for found in of.values() for d in found]
        own, words = {each: {each} for each in every if isinstance(each.node, ast.ClassDef)}, {}
        for head in own:
            words[head] = set()
            for node in head.node.bases:
                root, rest = links(node.value if isinstance(node, ast.Subscript) else node)
                name = getattr(root, "id", None)
                for each in self.find(head.module, name) or [("builtins", name)]:
                    if isinstance(each, tuple):
                        words[head] |= foreign(*each, *rest)
                    own[head] |= definitions([each])
        for _, head in product(range(12), own):
            own[head] |= {base for each in own[head] for base in own[each]}
        self.bases, self.relatives = own, defaultdict(set)
        self.foreign = {head: {w for each in own[head] for w in words[each]} for head in own}
        for bases in own.values():
            for each in bases:
                self.relatives[each] |= bases


def foreign(module, *words):
    """What a base of another package defines."""
    base = import_module(module)
    for word in filter(None, words):
        base = getattr(base, word)
    return {*dir(base)} - {*dir(object)}


class Walk:
    """What definitions reach, without those that are cut."""

    def __init__(self, names, cut=()):
        self.names, self.cut, self.seen, self.left = names, {*cut}, set(), []
        self.words, self.patterns, self.own = set(), set(), defaultdict(set)

    def reach(self, *some):
        new = [one for one in some if one not in self.seen and not {one, one.owner} & self.cut]
        self.seen |= {*new}
        self.left += new

    def all(self, root, more=()):
        """Everything that a class and its public methods reach, and some more."""
        self.reach(root, *more)
        for base in self.names.bases[root]:
            self.own[base] |= {each.word for each in base.methods if each.word[0] != "_"}
        while self.left:
            while self.left:
                self._read(self.left.pop())
            heads = [each for each in self.seen if each.methods]
            self.reach(
                *(m for head in heads for m in head.methods if self._is_called(head, m.word))
            )
        return self.seen

    def _read(self, one):
        said, words, own, patterns = self.names.said(one)
        self.reach(*said, *self.names.always[one.module])
        self.words |= words
        self.patterns |= patterns
        for head, word in own:
            relatives = self.names.relatives[head]
            for each in relatives:
                self.own[each].add(word)
            if any(each.word == "__getattr__" for head in relatives for each in head.methods):
                self.words.add(word)

    def _is_called(self, head, word):
        known = word in self.words or word in self.own[head] or word in self.names.foreign[head]
        dunder = word[:2] == word[-2:] == "__"
        return known or dunder or any(re.fullmatch(each, word) for each in self.patterns)


class Checkout:
    """The modules of a checkout, by their dotted names below the package."""

    def __init__(self, root):
        self.names = Names(root / "sklearn_dp")

    @cached_property
    def modules(self):
        return {name: Module(name, tree) for name, tree in self.names.trees.items()}

    def needed(self, name):
        """The modules that one imports, directly or through others, with itself."""
        seen, left = {name}, [name]
        while left:
            one = left.pop()
            bound = chain(*self.names.bound[one].values()) if self.kinds[one] != "page" else ()
            found = {each for level, *at in bound if level for each in (at[0], ".".join(at))}
            new = (found & self.modules.keys()) - seen
            seen |= new
            left += new
        return seen - self.names.packages

    @cache  # noqa: B019
    def code(self, name):
        """The numbers of the code lines of a module."""
        kinds = kinds_of_lines(self.path(name).read_text("utf-8"))
        return {number for number, kind in kinds.items() if kind == "code"}

    def path(self, name):
        path = self.names.package.joinpath(*filter(None, name.split(".")))
        return path / "__init__.py" if name in self.names.packages else path.with_suffix(".py")

    @cached_property
    def kinds(self):
        """The kind of each module; None of those that see no values."""
        return {name: self._kind(name) for name in self.modules}

    def _kind(self, name):
        parts = name.split(".")
        if parts[0] == "_privacy":
            return "page" if parts[-1] in PAGES else "kernel"
        if parts[0] in ("_rows", "_queries"):
            return {"_rows": "rows", "_queries": "questions"}[parts[0]]
        if parts[0] in DOOR and name != AFTER:
            return "door"
        if parts[0] == "audit" or name == AFTER or name in self.names.packages:
            return None
        module = self.modules[name]
        seen = any([*law(module)] for law in SEEING)
        return "others" if seen else COSTS.get(parts[0])

    def named(self, name):
        """The definitions of a name; of those that see values, if there are such."""
        found = self.names.named(name, self.modules)
        if not found:
            raise LookupError(f"{name} is not defined any more")
        return [each for each in found if self.kinds[each.module] in KINDS] or found

    def root(self, estimator):
        found = self.names.named(estimator, self.modules)
        return next(each for each in found if each in self.names.bases)

    @cache  # noqa: B019
    def reached(self, estimator, *apart):
        """The definitions that an estimator reaches; `apart` tells what it is to take."""
        cut, more = [self.root(name) for name in INSIDE.get(estimator, ())], []
        ways = {**APART, **dict.fromkeys(CLUSTERS, IN_PARTS), **OPTIONS.get(estimator, {})}
        taken = {
            word for name in (*apart, *TAKES.get(estimator, ())) for word in ways.get(name, ())
        }
        for word in {*chain(*ways.values())} - taken:
            cut += self.named(word)
        for name in set(apart) & set(CLUSTERS):
            defined = self.names.defined[f"_partitions.{CLUSTERS[name]}"]
            more += [each for word in defined if word[0] != "_" for each in defined[word]]
        return Walk(self.names, cut).all(self.root(estimator), more)

    def lines(self, reached, kinds=KINDS):
        """Code lines by kind."""
        found = Counter()
        for name in {each.module for each in reached}:
            of_module = (each.lines for each in reached if each.module == name)
            found[self.kinds[name]] += len(set().union(*of_module) & self.code(name))
        return [found[kind] for kind in kinds]

    def row(self, estimator):
        """By kind; their sum; that for any table; and that of whole modules."""
        row = self.lines(self.reached(estimator))
        needed = self.needed(self.root(estimator).module)
        modules = [len(self.code(name)) for name in needed if self.kinds[name] in KINDS]
        return [*row, sum(row), sum(self.lines(self.reached(estimator, *APART))), sum(modules)]

    def adds(self, estimator, *apart, beside=()):
        """Code lines that are to be read in addition, for what is told apart."""
        less = self.reached(estimator, *beside)
        return sum(self.lines(self.reached(estimator, *beside, *apart) - less))

    def around(self, estimator, inner):
        """Code lines of an estimator with another one in it."""
        return sum(self.lines(self.reached(estimator) | self.reached(inner)))

    def listed(self, estimator):
        """What to read: files, lines and names of definitions, by kind; then what is told apart."""
        reached = self.reached(estimator)
        for kind, lines in zip(KINDS, self.lines(reached), strict=True):
            yield f"{kind}: {lines:,}"
            yield from self._files(each for each in reached if self.kinds[each.module] == kind)
        for name in APART:
            yield f"in addition, {name}: {self.adds(estimator, name):,}"
            more = self.reached(estimator, name) - reached
            yield from self._files(each for each in more if self.kinds[each.module] in KINDS)

    def _files(self, some):
        """Definitions by their files, with the lines, and their docstrings."""
        order = sorted(some, key=lambda each: (each.module, min(each.lines)))
        for name, found in groupby(order, key=lambda each: each.module):
            yield f"  {self.path(name).relative_to(self.names.package.parent)}"
            for each in found:
                yield f"    {ranges(each.lines, self.code(name)):<16}{each.name}"


def ranges(lines, code):
    """Runs of lines with code among them, as "1-4, 7"."""
    runs = groupby(enumerate(sorted(lines)), key=lambda pair: pair[1] - pair[0])
    every = [[number for _, number in run] for _, run in runs]
    ends = [(run[0], run[-1]) for run in every if code & {*run}]
    return ", ".join(f"{first}-{last}" if last > first else f"{first}" for first, last in ends)


def fits_rows(module):
    """Fits that are handed the rows, and not a table or a handle of them."""
    return [
        node.name
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef) and node.name == "_fit"
        if any(each.arg == "X" for each in node.args.args)
    ]


SEEING = (imports_no_rows, has_no_way_to_rows, states_no_sensitivity, fits_rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, help="folder of another checkout")
    parser.add_argument("--list", choices=ESTIMATORS, help="an estimator to list the code of")
    options = parser.parse_args()
    now, past = Checkout(ROOT), options.before and Checkout(options.before.resolve())
    if options.list:
        print(*now.listed(options.list), sep="\n")
        return
    heads = [*HEADS, *(["before"] if past else [])]
    print(f"{'estimator':<20}" + "".join(f"{head:>10}" for head in heads))
    for name in ESTIMATORS:
        row = now.row(name) + (past.row(name)[len(KINDS) :][:1] if past else [])
        print(f"{name:<20}" + "".join(f"{each:>10,}" for each in row))
    added = {each: now.adds("DPKMeans", each) for each in APART}
    added |= {each: now.adds("DPKMeans", each, beside=APART) for each in CLUSTERS}
    for name, own in OPTIONS.items():
        tuples = {each: ["method='k_tuples'"] if each in FAR else () for each in own}
        added |= {f"{name}({each})": now.adds(name, each, beside=tuples[each]) for each in own}
    print("in addition:", ", ".join(f"{what} {lines:,}" for what, lines in added.items()))
    for name, inner in INSIDE.items():
        print(f"{name} around:", ", ".join(f"{each} {now.around(name, each):,}" for each in inner))
    print(f"numbers that are public: {sum(now.lines(now.reached('DPKMeans'), ['costs'])):,}")


if __name__ == "__main__":
    main()
