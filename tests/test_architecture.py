"""The rules that hold the package together, read off its syntax trees.

Each rule is a function from a module to the violations found in it. Each is run over the whole
package, over planted violations that it must catch, and over look-alikes that it must let pass.
"""

import ast
import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

PACKAGE = "sklearn_dp"
ROOT = Path(__file__).resolve().parents[1] / PACKAGE

# Who may import whom: strictly from a lower layer, or from inside the same component.
LAYERS = (
    {"exceptions", "_version"},
    {"_costs"},
    {"_privacy"},
    {"_columns", "_sklearn_compat", "_status"},
    {"_silence"},
    {"_rows"},
    {"_queries", "_door"},
    {"_door_entries"},
    {"accounting", "ledger", "_intervals", "_dropin"},
    {"_aggregate"},
    {"_guarantee", "_parameters"},  # no bounds are read after the charge
    {"_n_clusters"},
    {"_partitions"},
    {"_fit"},
    {"_base"},
    {"_days"},
    {"mean", "covariance", "decomposition", "cluster", "mixture", "ensemble"}
    | {"preprocessing", "_compositions"},
    {"federated", "model_selection", "inspection", "audit"},
    {"segments", "_privatize"},
    {"__init__"},
    {"__main__"},
)
LAYER = {name: level for level, names in enumerate(LAYERS) for name in names}
# The rooms of `_aggregate`, and which others each of them may import from.
ARROWS = {
    "shared": set(),
    "columns": {"shared"},
    "friendly": {"columns", "shared"},
    "kmeans": {"columns", "shared"},
    "tuples": {"friendly"},
    "one_cluster": {"shared"},
    "moments": {"columns", "friendly", "shared"},
    "mixture": {"columns", "friendly", "kmeans", "moments", "one_cluster", "shared", "tuples"},
}
# The papers' own variants: each counts as a part of the room whose option it answers, so that it
# imports what that room may; test_published.py says who may import it.
WINGS = {
    "_published": "_aggregate.mixture",
    "_published.covariance_core": "_aggregate.moments",
    "_published.easy_instances": "_aggregate.mixture",
    "_published.feddp_kmeans": "federated",
    "_published.friendly_core": "_aggregate.friendly",
    "_published.good_center": "_aggregate.one_cluster",
    "_published.int_point": "_aggregate.one_cluster",
    "_published.rec_concave": "_aggregate.one_cluster",
    "_published.separated_gaussians": "_aggregate.mixture",
    "_published.terrific": "_aggregate.mixture",
}
CORE = {"joblib", "numpy", "scipy", "sklearn", "threadpoolctl"}
MAX_BODY_LINES = 60

# The kernel's own randomness: where the noise is made, and where it is handed out.
NOISE_MODULE = "_privacy._noise"
KERNEL_ONLY = (f"{PACKAGE}.{NOISE_MODULE}",)
STREAMS_OF_USERS = "_silence"  # seeds them, and draws nothing
OF_STREAMS = {
    "random", "numpy.random", "numpy.random.MT19937", "numpy.random.seed", "random.seed",
    "numpy.random.get_state", "numpy.random.set_state", "random.getstate", "random.setstate",
}  # fmt: skip
RANDOM_MODULES = {NOISE_MODULE, "_privacy._randomness"}
RANDOM_SOURCES = ("numpy.random", "random", "secrets", "os.urandom", "uuid")
RANDOM_HELPERS = {"sklearn.utils.check_random_state", "numpy.random"}
RANDOM_TYPES = {"numpy.random.Generator", "numpy.random.RandomState", "numpy.random.BitGenerator"}
DRAWS = {
    "normal", "standard_normal", "multivariate_normal", "lognormal", "laplace", "exponential",
    "standard_exponential", "gumbel", "logistic", "cauchy", "standard_cauchy", "standard_t",
    "gamma", "standard_gamma", "geometric", "poisson", "binomial", "negative_binomial", "rvs",
    "gauss", "normalvariate", "expovariate", "rounded_gaussian", "rounded_laplace",
}  # fmt: skip


# Where floats become integers: the helpers that refuse what is none, and noise of bounded scale.
CASTS = {
    "_privacy._entries": {"exact_integers", "bounded_integers"},
    "_privacy._noise": {"guarded_round"},
}
INTEGER_TYPE = re.compile(r"^(int|(np|numpy)\.(u?int\d*|u?intp|u?longlong)|'[<>=|]?[iu]\d')$")
OF_INTEGERS = ("same_kind", "safe")  # what NumPy then refuses of floats


@dataclass(frozen=True)
class Module:
    """A module of the package: its dotted name below `sklearn_dp` and its syntax tree."""

    name: str
    tree: ast.Module
    is_package: bool = False

    @classmethod
    def parse(cls, name, source, is_package=False):
        return cls(name, ast.parse(source), is_package)

    @property
    def component(self):
        return home(self.name).split(".")[0]

    @property
    def room(self):
        """The room of `_aggregate` that the module lies in, or counts as a part of, or None."""
        parts = home(self.name).split(".")
        return parts[1] if parts[0] == "_aggregate" and len(parts) > 1 else None


@dataclass(frozen=True)
class Import:
    """One imported name: `from a.b import c as d` is target `a.b.c`, bound as `d`."""

    target: str
    bound: str
    line: int
    lazy: bool


@cache
def package_modules():
    """All modules, parsed once for all rules."""
    return list(_parsed())


def _parsed():
    for path in sorted(ROOT.rglob("*.py")):
        parts = list(path.relative_to(ROOT).with_suffix("").parts)
        is_package = parts[-1] == "__init__"
        if is_package and len(parts) > 1:
            parts.pop()
        yield Module.parse(".".join(parts), path.read_text(encoding="utf-8"), is_package)


def _base_of(module, node):
    """Return the absolute dotted name that an `ImportFrom` node starts from."""
    if not node.level:
        return node.module
    path = [PACKAGE] if module.name == "__init__" else [PACKAGE, *module.name.split(".")]
    climb = node.level - (1 if module.is_package else 0)
    return ".".join([*path[: len(path) - climb], *([node.module] if node.module else [])])


def _names_type_checking(node):
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


@cache
def nodes(module):
    """All nodes of the syntax tree of a module."""
    return list(ast.walk(module.tree))


@cache
def module_imports(module):
    """List every import of a module; lazy ones run in a function or for type checkers only."""
    found = []

    def visit(node, lazy):
        if isinstance(node, ast.Import):
            for name in node.names:
                bound = name.asname or name.name.split(".")[0]
                found.append(Import(name.name, bound, node.lineno, lazy))
        elif isinstance(node, ast.ImportFrom):
            base = _base_of(module, node)
            for name in node.names:
                bound = name.asname or name.name
                found.append(Import(f"{base}.{name.name}", bound, node.lineno, lazy))
        inner = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            visit(child, lazy or inner or _names_type_checking(node))

    visit(module.tree, False)
    return found


def dotted(node):
    """Return `a.b.c` for an attribute chain, with `()` in the place of calls inside it."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    if isinstance(node, ast.Call):
        return f"{dotted(node.func)}()"
    return node.id if isinstance(node, ast.Name) else "?"


def dotted_uses(module):
    """Yield (line, full dotted name) for each attribute chain, its first name resolved."""
    bound = {}
    for item in module_imports(module):
        whole = item.target if item.target.split(".")[0] != item.bound else item.bound
        bound[item.bound] = whole
    inner = {id(node.value) for node in nodes(module) if isinstance(node, ast.Attribute)}
    for node in nodes(module):
        if isinstance(node, ast.Attribute | ast.Name) and id(node) not in inner:
            first, _, rest = dotted(node).partition(".")
            if first in bound:
                yield node.lineno, ".".join([bound[first], *([rest] if rest else [])])


def home(name):
    """The name that the rules go by: for a module of `_published`, that of the room it serves."""
    wing = max((wing for wing in WINGS if under(name, [wing])), key=len, default=None)
    return name if wing is None else WINGS[wing] + name[len(wing) :]


def under(name, prefixes):
    return any(name == prefix or name.startswith(prefix + ".") for prefix in prefixes)


# --- the rules ---------------------------------------------------------------------------------


def imports_point_down(module):
    """A module imports from lower layers and from its own component only."""
    if module.component not in LAYER:
        yield f"{module.name}: {module.component!r} has no place in LAYERS"
        return
    for item in module_imports(module):
        parts = home(item.target.removeprefix(f"{PACKAGE}.")).split(".")
        if not under(item.target, [PACKAGE]):
            continue
        target = parts[0] if parts[0] in LAYER else "__init__"
        same = target == module.component
        if not same and LAYER[target] >= LAYER[module.component]:
            yield f"{module.name}:{item.line}: imports {item.target} from its own layer or above"


def rooms_follow_the_arrows(module):
    """A room of `_aggregate` imports from the rooms that ARROWS allows; no circle is allowed."""
    if module.room is None:
        return
    if module.room not in ARROWS:
        yield f"{module.name}: {module.room!r} has no place in ARROWS"
        return
    for item in module_imports(module):
        parts = home(item.target.removeprefix(f"{PACKAGE}.")).split(".")
        if not under(item.target, [PACKAGE]) or parts[0] != "_aggregate":
            continue
        target = parts[1] if len(parts) > 1 else ""
        if target != module.room and target not in ARROWS[module.room]:
            yield f"{module.name}:{item.line}: no arrow from {module.room} to {item.target}"


def kernel_is_self_contained(module):
    """`_costs` and `_privacy` import numpy, scipy and the standard library only.

    The tables that it makes for people may ask for pandas when they are made, and its events for
    dp-accounting for that.
    """
    if module.component not in ("_costs", "_privacy"):
        return
    for item in module_imports(module):
        top = item.target.split(".")[0]
        allowed = {"numpy", "scipy", PACKAGE} | (
            {"pandas", "dp_accounting"} if item.lazy else set()
        )
        if top not in allowed and top not in sys.stdlib_module_names:
            yield f"{module.name}:{item.line}: the kernel imports {item.target}"


def noise_comes_from_the_kernel(module):
    """Only `_noise.py` makes noise; the kernel asks it to; the rest ask a session.

    The audit makes test data at random, which is not noise, so it may use generators; its mutants
    stand in for parts of the kernel, so they may ask the kernel's noise source.
    """
    if module.name == NOISE_MODULE:
        return
    if module.name not in RANDOM_MODULES and module.component != "audit":
        yield from _random_sources(module)
    yield from _random_draws(module)


def _random_sources(module):
    forbidden = (*RANDOM_SOURCES, *RANDOM_HELPERS)
    harmless = RANDOM_TYPES | (OF_STREAMS if module.name == STREAMS_OF_USERS else set())
    for item in module_imports(module):
        if under(item.target, forbidden) and item.target not in harmless:
            yield f"{module.name}:{item.line}: imports the source of randomness {item.target}"
        if under(item.target, KERNEL_ONLY) and module.component != "_privacy":
            yield f"{module.name}:{item.line}: reaches past the session to {item.target}"
    for line, name in dotted_uses(module):
        if under(name, forbidden) and name not in harmless:
            yield f"{module.name}:{line}: uses {name}"
    for node in nodes(module):
        if isinstance(node, ast.Call) and dotted(node.func).split(".")[-1] in {
            "Generator", "RandomState", "default_rng", "check_random_state",
        }:  # fmt: skip
            yield f"{module.name}:{node.lineno}: makes a generator of its own"


def _random_draws(module):
    for node in nodes(module):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if node.func.attr in DRAWS and not _may_draw(module, dotted(node.func.value)):
            yield f"{module.name}:{node.lineno}: draws noise with {dotted(node.func)}()"


def _may_draw(module, receiver):
    last = receiver.split(".")[-1]
    inside = module.component in {"_privacy", "audit"}
    if inside and re.search(r"noise|^self$|^super\(\)$", last):
        return True
    return re.search(r"(session(\(\))?|^step)$", last) is not None  # a session, or a step of it


def only_blocks_runs_in_parallel(module):
    """Only `_queries/blocks.py` and `_rows/threads.py` import joblib."""
    if module.name in ("_queries.blocks", "_rows.threads"):
        return
    for item in module_imports(module):
        if under(item.target, ("joblib", "threadpoolctl", "sklearn.utils.parallel")):
            yield f"{module.name}:{item.line}: imports {item.target}"


def private_sklearn_names_in_one_place(module):
    """Only `_sklearn_compat.py` touches a private name of scikit-learn."""
    if module.name == "_sklearn_compat":
        return
    imported = [(item.line, item.target) for item in module_imports(module)]
    for line, name in {*imported, *dotted_uses(module)}:
        private = [part for part in name.split(".")[1:] if re.match(r"_(?!_)", part)]
        public_module = name.split(".")[0] == "sklearn"
        if public_module and private and not _is_attribute_of_a_class(name):
            yield f"{module.name}:{line}: private scikit-learn name {name}"


def _is_attribute_of_a_class(name):
    """Tell `KMeans._more_tags` (inherited, ours to override) from `sklearn._foo`."""
    before = re.split(r"\._(?!_)", name)[0].split(".")[-1]
    return before[:1].isupper()


def optional_libraries_are_lazy(module):
    """What is not a core dependency is imported inside the function that needs it."""
    for item in module_imports(module):
        top = item.target.split(".")[0]
        known = top in CORE or top == PACKAGE or top in sys.stdlib_module_names
        if not known and not item.lazy:
            yield f"{module.name}:{item.line}: imports {item.target} when it is imported"


def floats_become_integers_in_one_place(module):
    """Only the helpers in CASTS make integers of floats; other casts say "same_kind".

    A bare cast makes -2**63 of NaN and of what overflows, which no sensitivity covers. With that
    word NumPy takes integers only. The audit casts numbers of its own.
    """
    if module.component == "audit":
        return
    helpers = CASTS.get(module.name, ())
    allowed = {
        id(node)
        for function in nodes(module)
        if isinstance(function, ast.FunctionDef) and function.name in helpers
        for node in ast.walk(function)
    }
    for node in nodes(module):
        if id(node) in allowed or not isinstance(node, ast.Call):
            continue
        if not isinstance(node.func, ast.Attribute):
            continue
        words = {word.arg: word.value for word in node.keywords}
        name, casting = node.func.attr, words.get("casting")
        if name == "astype":
            kind = node.args[0] if node.args else words.get("dtype")
            taken = isinstance(casting, ast.Constant) and casting.value in OF_INTEGERS
        elif name in {"array", "asarray", "ascontiguousarray", "sum", "cumsum", "prod"}:
            kind = words.get("dtype", node.args[1] if len(node.args) > 1 else None)
            taken = bool(node.args) and isinstance(node.args[0], ast.List | ast.ListComp)
        else:
            continue
        if (
            kind is not None
            and not taken
            and any(_is_integer_type(each) for each in ast.walk(kind))
        ):
            yield f"{module.name}:{node.lineno}: {dotted(node.func)} may make integers of floats"


def _is_integer_type(node):
    word = repr(node.value) if isinstance(node, ast.Constant) else dotted(node)
    return INTEGER_TYPE.match(word) is not None


def functions_are_short(module):
    """No body is longer than 60 lines, its docstring not counted."""
    for node in nodes(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            lines = node.end_lineno - body[0].lineno + 1 if body else 0
            if lines > MAX_BODY_LINES:
                yield f"{module.name}:{node.lineno}: {node.name} has {lines} lines"


# What users give for data, by the names of arguments; and what gives all of it one type, by the
# name of a function.
GIVEN = {
    "X", "y", "groups", "sample_weight", "by", "key", "labels", "texts", "values", "tuples", "rows",
    "row", "clients", "X_server", "X_public", "private_rows", "given", "column",
}  # fmt: skip
ONE_TYPE = {
    "array", "asarray", "asanyarray", "asfortranarray", "ascontiguousarray", "asarray_chkfinite",
    "atleast_1d", "atleast_2d", "atleast_3d", "stack", "vstack", "hstack", "dstack",
    "column_stack", "concatenate", "fromiter", "real_array", "DataFrame", "Series", "from_records",
    "csr_array", "csc_array", "coo_array", "csr_matrix",
}  # fmt: skip
CHECKS = {
    "check_array", "check_X_y", "column_or_1d", "as_float_array", "indexable", "validate_data",
    "check_consistent_length",
}  # fmt: skip
DOOR = ("_door", "_door_entries", "_privacy._entries")


def tables_come_in_by_one_door(module):
    """Only the door makes arrays of what users give: NumPy and scikit-learn look at all rows.

    One odd row of a list would decide about the type of all others. Below the estimators, rows have
    come through the door; audits make tables of their own.
    """
    if module.name in DOOR:
        return
    for item in module_imports(module):
        if item.target.startswith("sklearn.") and item.target.split(".")[-1] in CHECKS:
            yield f"{module.name}:{item.line}: {item.target} looks at all rows"
    inside = LAYER.get(module.component, 99) <= LAYER["_aggregate"] or module.component == "audit"
    if inside and module.name != "_privacy._units":
        return
    for node in nodes(module):
        if isinstance(node, ast.ClassDef):
            methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
            names = [arguments(each) for each in methods if each.name == "__init__"]
            for each in methods:
                own = {f"self.{name}" for found in names for name in found}
                yield from _of_one_type(module, each, own)
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            yield from _of_one_type(module, node, arguments(node) & GIVEN)


def arguments(function):
    every = function.args
    return {each.arg for each in (*every.posonlyargs, *every.args, *every.kwonlyargs)}


def _of_one_type(module, function, given):
    """Conversions of what is given, until it has been replaced by what the door makes of it."""
    body = function.body if isinstance(function.body, list) else [function.body]
    inner = [node for part in body for node in ast.walk(part)]
    replaced = {}
    for node in inner:
        for target in node.targets if isinstance(node, ast.Assign) else ():
            for each in ast.walk(target):
                replaced.setdefault(dotted(each), node.lineno)
    for node in inner:
        if not (isinstance(node, ast.Call) and node.args):
            continue
        if dotted(node.func).split(".")[-1] not in ONE_TYPE:
            continue
        first = node.args[0]
        parts = first.elts if isinstance(first, ast.List | ast.Tuple) else [first]
        for each in parts:
            each = each.value if isinstance(each, ast.Starred | ast.Subscript) else each
            name = dotted(each)
            if name in given and node.lineno <= replaced.get(name, node.lineno):
                yield f"{module.name}:{node.lineno}: {dotted(node.func)} gives {name} one type"


RULES = (
    imports_point_down,
    rooms_follow_the_arrows,
    kernel_is_self_contained,
    noise_comes_from_the_kernel,
    only_blocks_runs_in_parallel,
    private_sklearn_names_in_one_place,
    optional_libraries_are_lazy,
    floats_become_integers_in_one_place,
    functions_are_short,
    tables_come_in_by_one_door,
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_package_keeps_the_rule(rule):
    modules = package_modules()
    assert modules, f"no module found below {ROOT}"
    assert [violation for module in modules for violation in rule(module)] == []


# --- what each rule must catch: (rule, module, source) -------------------------------------------

PLANTED = [
    *[
        (rooms_follow_the_arrows, f"_aggregate.{room}.thing", f"from ..{other} import part")
        for room in ARROWS
        for other in ARROWS
        if other != room and other not in ARROWS[room]
    ],
    (rooms_follow_the_arrows, "_aggregate.shared.rows", "from .. import kmeans"),
    (rooms_follow_the_arrows, "_aggregate.attic.thing", ""),
    (imports_point_down, "_costs.plan", "from .._privacy._units import Sealed"),
    (imports_point_down, "_privacy._grid", "from sklearn_dp._aggregate import _pca"),
    (imports_point_down, "_privacy._grid", "def f():\n    import sklearn_dp._base"),
    (imports_point_down, "_aggregate.shared.bounds", "from ..._base import BaseDPEstimator"),
    (imports_point_down, "cluster._dp_kmeans", "from ..audit import replay"),
    (imports_point_down, "cluster._dp_kmeans", "from sklearn_dp import DPKMeans"),
    (imports_point_down, "exceptions", "from ._privacy import _budget"),
    (optional_libraries_are_lazy, "_partitions._dask", "import dask"),
    (imports_point_down, "brand_new._thing", ""),
    *[
        (tables_come_in_by_one_door, name, source)
        for name, source in [
            ("mean._m", "def fit(self, X):\n    X = np.asarray(X)"),
            ("mean._m", "def fit(X, *, by):\n    return np.column_stack([X, by])"),
            ("_base", "class A:\n def fit(self, sample_weight):\n  np.atleast_1d(sample_weight)"),
            ("segments._m", "def f(X):\n    return pandas.DataFrame(X)"),
            ("_privacy._units", "def f(groups):\n    return np.asarray(groups)"),
            ("_partitions._m", "f = lambda rows: np.vstack(rows)"),
            ("ensemble._m", "from sklearn.utils import check_array"),
            ("_aggregate.shared.m", "from sklearn.utils.validation import validate_data"),
            (
                "cluster._m",
                "class A:\n"
                " def __init__(self, init):\n  self.init = init\n"
                " def f(self):\n  return np.array(self.init)",
            ),
        ]
    ],
    (
        imports_point_down,
        "_aggregate.shared.rows",
        "from ..._published.feddp_kmeans import paper_start",
    ),
    (
        rooms_follow_the_arrows,
        "_published.good_center",
        "from .separated_gaussians import partition",
    ),
    (rooms_follow_the_arrows, "_aggregate.shared.rows", "from ..._published import friendly_core"),
    (kernel_is_self_contained, "_costs.plan", "import sklearn"),
    (kernel_is_self_contained, "_privacy._grid", "import sklearn"),
    (kernel_is_self_contained, "_privacy._grid", "def f():\n    from joblib import Parallel"),
    (noise_comes_from_the_kernel, "mean._m", "import numpy as np\nz = np.random.normal()"),
    (noise_comes_from_the_kernel, "mean._m", "import numpy\nnumpy.random.seed(0)"),
    (noise_comes_from_the_kernel, "mean._m", "from numpy.random import default_rng"),
    (noise_comes_from_the_kernel, "mean._m", "import random"),
    (noise_comes_from_the_kernel, "mean._m", "from os import urandom"),
    (noise_comes_from_the_kernel, "mean._m", "import secrets"),
    (noise_comes_from_the_kernel, "mean._m", "from sklearn.utils import check_random_state"),
    (noise_comes_from_the_kernel, "mean._m", "def f(rng):\n    return rng.normal(size=3)"),
    (noise_comes_from_the_kernel, "mean._m", "def f(s):\n    return s.rng('a').standard_normal()"),
    (noise_comes_from_the_kernel, "mean._m", "from scipy import stats\nz = stats.norm.rvs(3)"),
    (noise_comes_from_the_kernel, "mean._m", "from .._privacy._noise import NoiseSource"),
    (noise_comes_from_the_kernel, "_privacy.mechanisms.shares", "import os\nb = os.urandom(8)"),
    (noise_comes_from_the_kernel, "mean._m", "def f(bits):\n    return np.random.Generator(bits)"),
    (noise_comes_from_the_kernel, "_privacy._session", "z = rng.laplace()"),
    (noise_comes_from_the_kernel, STREAMS_OF_USERS, "import random\nz = random.gauss(0, 1)"),
    (noise_comes_from_the_kernel, STREAMS_OF_USERS, "from numpy.random import laplace"),
    (noise_comes_from_the_kernel, STREAMS_OF_USERS, "import random\nz = random.random()"),
    (noise_comes_from_the_kernel, "audit._replay", "def f(rng):\n    return rng.normal()"),
    (only_blocks_runs_in_parallel, "cluster._dp_kmeans", "import joblib"),
    (only_blocks_runs_in_parallel, "_base", "def f():\n    import threadpoolctl"),
    (only_blocks_runs_in_parallel, "_base", "from sklearn.utils.parallel import delayed"),
    (private_sklearn_names_in_one_place, "_base", "from sklearn.cluster._kmeans import _labels"),
    (private_sklearn_names_in_one_place, "_base", "import sklearn\nf = sklearn.base._fit_context"),
    (private_sklearn_names_in_one_place, "_base", "from sklearn import base\nbase._fit_context()"),
    (optional_libraries_are_lazy, "inspection._plot", "import matplotlib.pyplot as plt"),
    (optional_libraries_are_lazy, "_base", "class A:\n    import pandas"),
    (optional_libraries_are_lazy, "_base", "try:\n    import opendp\nexcept ImportError: ..."),
    *[
        (floats_become_integers_in_one_place, "_aggregate.shared.rows", source)
        for source in (
            "x.astype(np.int64)",
            "x.astype(int)",
            "np.floor(x / y).astype(np.uint32)",
            "x.astype(np.int16 if small else np.int32)",
            "x.astype(dtype=np.int64)",
            "x.astype(np.int64, casting='unsafe')",
            "np.asarray(x, dtype=np.int64)",
            "x.sum(axis=0, dtype=np.int64)",
        )
    ],
    (floats_become_integers_in_one_place, "federated._clients", "np.trunc(x).astype(np.int64)"),
    (functions_are_short, "_base", "def f():\n" + "    x = 1\n" * 61),
    (functions_are_short, "_base", "class A:\n  def f(self):\n" + "    x = 1\n" * 61),
]


def test_the_arrows_between_rooms_have_no_circle():
    """Rooms can be put in an order in which each imports only from earlier ones."""
    left = dict(ARROWS)
    while left:
        lowest = {room for room, others in left.items() if not others & left.keys()}
        assert lowest, f"a circle among {sorted(left)}"
        left = {room: others for room, others in left.items() if room not in lowest}


def _plant_id(value):
    return value.__name__ if callable(value) else ""


@pytest.mark.parametrize(("rule", "name", "source"), PLANTED, ids=_plant_id)
def test_rule_catches_a_planted_violation(rule, name, source):
    assert list(rule(Module.parse(name, source)))
