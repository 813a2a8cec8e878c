"""Only the kernel, the rows, the questions and the door look at rows, or open what is sealed.

Types keep an algorithm from computing with an exact statistic; these laws keep it from having one.
They read the syntax trees, and forgive the modules of `LATER`, which are still to be moved: a list
that only becomes shorter.
"""

import ast
from functools import cache

import pytest
from test_architecture import PACKAGE, Module, dotted, module_imports, nodes, package_modules

# The kernel, rows, questions; the door, through which rows come; audits, which look at everything.
TRUSTED = {
    "_privacy", "_rows", "_queries", "_door", "_door_entries", "_fit", "_partitions",
    "audit",
}  # fmt: skip
LATER = {"ensemble._targets"}
"""Modules that are still to be moved; each of them breaks a law."""

# What the floors above may know of those below: what is public of rows, handles, functions of
# released numbers, and those functions of single rows that methods of fitted estimators need.
PUBLIC = {
    "_rows.single_rows": {
        "LARGEST",
        "SparseRows",
        "distances",
        "finite",
        "for_rows",
        "narrowed",
        "of_chunks",
        "products",
        "row_guard",
        "row_slices",
        "saturated",
        "squared_lengths",
    },
    "_rows.categories": None,
    "_rows.nearest": {"UnitRows", "nearest_point", "nearest_seen", "squares_to_nearest"},
    "_rows.rows": {"GridGeometry", "nearest_in", "without_zeros"},
    "_rows.threads": None,
    "_privacy._units": {
        "Sealed",
        "SealedCells",
        "SealedNames",
        "Units",
        "code_groups",
        "entry_of",
        "unit_of",
    },
    "_queries.averages": {"Average", "basic_average_budget"},
    "_queries.blocks": {"BlockFits", "block_rows", "fit_blocks"},
    "_queries.cells": {"WideBoxes", "box_of"},
    "_queries.tuples": {"MATCH_LIMIT", "TuplePairs", "average_of_core", "extremes"},
    "_queries.matrix_cores": {"covariance_of_core", "noise_of_core"},
    "_queries.separated_balls": {
        "Constants",
        "LEAST_SEPARATION",
        "answer_budget",
        "far_centers",
        "inner_constants",
        "log_ratio",
    },
    "_queries.balls": {
        "BallCounts",
        "BallSum",
        "Beyond",
        "CountsAbout",
        "Crossing",
        "LARGEST_SQUARE",
        "LengthScores",
        "LinearRadii",
        "LogRadii",
        "MOST_RADII",
        "Members",
        "MiddleScores",
        "Points",
        "Radii",
        "RadiusScores",
        "RingCounts",
        "Usable",
        "Working",
        "average_of_members",
        "best_of_intervals",
        "padded",
        "some_of",
        "window_widths",
    },
    "_queries.halves": {
        "BallLabels",
        "BallScores",
        "CHOSEN",
        "Cut",
        "Divided",
        "Dropped",
        "LargestScores",
        "LeafLabels",
        "POINTS",
        "View",
        "alone",
        "chosen_points",
        "half_of_points",
        "in_first",
        "labels_of_points",
        "second_half",
        "unit_points",
        "viewed",
    },
    "_queries.samples": {"Coins", "numbered", "released_numbers", "unit_draws"},
    "_queries.whitened": {
        "DistancesAndValues",
        "FOURTHS",
        "LabelDistances",
        "NearestLabels",
        "WhitenedDistances",
        "WhitenedMoments",
        "Whitening",
    },
}
SUMS_OF_ROWS = {
    "Products", "exact_gram", "label_sums", "norm_counts", "norm_places", "weighted_bincount",
}  # fmt: skip
"""Of `_privacy._grid` and `_products`: exact statistics."""
STATED = {
    "gaussian", "gaussian_release", "gaussian_inner", "shared_noise", "sparse",
    "laplace_release", "exponential_release", "above_threshold_release", "lead",
    "stability", "proportional_noise_psd", "friendly_core_filter", "unit_bernoulli",
}  # fmt: skip
"""Releases whose callers state what neighbors differ by."""
ROWS = {"rows", "table", "part", "points", "X", "inner"}
WAYS_TO_ROWS = {"sums", "source", "state", "exchange", "shuffle", "collect_rows", "engine"}
OPENED = {"_Sealed__exact", "_TableRows__table", "_raw"}
BASES = {
    "Public", "Query", "PointQuery", "CellQuery", "SparseQuery", "Step", "Hidden",
    "Sealed", "SealedCells", "SealedNames",
}  # fmt: skip


def allowed(name):
    """Whether a floor above may import a name of a floor below."""
    parts = name.removeprefix(f"{PACKAGE}.").split(".")
    home, last = ".".join(parts[:2]), parts[-1]
    if home in ("_privacy._grid", "_privacy._products"):
        return last not in SUMS_OF_ROWS
    if home == "_privacy.mechanisms":
        return last not in STATED and len(parts) > 3
    if home == "_privacy._session" and last in STATED:
        return False
    if parts[0] == "_rows" or home in PUBLIC:
        names = PUBLIC.get(home, ())
        return names is None or last in names
    return parts[0] != "_queries" or (last[:1] != "_" and last in defined(home))


@cache
def defined(home):
    """What a module defines itself: what it has imported, as `Part`, is not its to hand on."""
    trees = [module.tree for module in package_modules() if module.name == home]
    return {name for tree in trees for node in tree.body for name in names_of(node)}


def names_of(node):
    """The names that a statement of a module defines."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return {node.name}
    stored = (each for each in ast.walk(node) if isinstance(each, ast.Name))
    return {each.id for each in stored if isinstance(each.ctx, ast.Store)}


def imports_no_rows(module):
    """No parts, no rows, no sums of them, and nothing that seals or opens an answer."""
    for item in module_imports(module):
        if not allowed(item.target):
            yield f"{module.name}:{item.line}: imports {item.target}"


def states_no_sensitivity(module):
    """Releases are of sealed answers: their claims are proved where the sums are made."""
    for node in nodes(module):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        receiver = dotted(node.func.value).split(".")[-1].strip("_()")
        if node.func.attr in STATED and receiver in ("session", "step"):
            yield f"{module.name}:{node.lineno}: {node.func.attr} states a sensitivity"


def has_no_way_to_rows(module):
    """No attribute leads from what an algorithm has to a row or to an exact sum."""
    for node in nodes(module):
        if not isinstance(node, ast.Attribute):
            continue
        about = dotted(node.value).split(".")[-1].strip("_")
        hidden = node.attr in OPENED or (node.attr[:1] == "_" and about == "coins")
        hidden |= node.attr in ("size", "totals", "starts") and about == "numbers"
        if hidden or (node.attr in WAYS_TO_ROWS and about in ROWS):
            yield f"{module.name}:{node.lineno}: asks {about} for {node.attr}"
        if node.attr == "__getattribute__" and about == "object":
            yield f"{module.name}:{node.lineno}: opens an object"


def defines_no_questions(module):
    """Questions, steps and their geometry stand where the property test finds them."""
    for node in nodes(module):
        if isinstance(node, ast.ClassDef):
            bases = {dotted(base).split(".")[-1] for base in node.bases}
            if bases & BASES:
                yield f"{module.name}:{node.lineno}: {node.name} is a question, or public"


LAWS = (imports_no_rows, states_no_sensitivity, has_no_way_to_rows, defines_no_questions)


def violations(module):
    return [each for law in LAWS for each in law(module)]


def test_who_is_above_has_what_is_released():
    found = {m.name: violations(m) for m in package_modules() if m.component not in TRUSTED}
    broken = {name for name, each in found.items() if each}
    assert len(found) > 90
    assert {name: found[name] for name in broken - LATER} == {}
    assert LATER - broken == set(), "they keep the laws now: take them off the list"


def hands_numbers_to_a_session(module):
    """A release with a sensitivity that is stated: sealed answers bring the one that was proved."""
    for node in nodes(module):
        if isinstance(node, ast.Call) and dotted(node.func).split(".")[-2:] == [
            "session",
            "gaussian",
        ]:
            yield f"{module.name}:{node.lineno}"


def test_sessions_are_handed_sealed_answers_only():
    """Also by the composites among the questions, and by audits."""
    above = [m for m in package_modules() if m.component != "_privacy"]
    assert [each for m in above for each in hands_numbers_to_a_session(m)] == []
    planted = Module.parse("_queries.averages", "x = session.gaussian('a', 1, sensitivity=1.0)")
    assert [*hands_numbers_to_a_session(planted)]


PLANTED = [
    *[
        (imports_no_rows, source)
        for source in (
            "from ..._rows.table import Part",
            "from ..._rows.rows import Rows",
            "from ..._rows.rows import clipped_sums",
            "from ..._queries.halves import inner_table",
            "from ..._privacy._grid import weighted_bincount",
            "from ..._privacy.mechanisms.pure import exponential_release",
            "from ..._privacy.mechanisms import filters",
            "from ..._privacy.mechanisms.filters import friendly_core_filter",
            "from ..._privacy.mechanisms.proportional import proportional_noise_psd",
            "from ..._privacy.mechanisms.shares import shared_noise",
            "from ..._privacy.mechanisms.stability import stability",
            "from ..._privacy._units import opened",
            "from ..._privacy._units import Claim",
            "from ..._privacy import _units",
            "from ..._privacy._units import exact_of",
            "from ..._queries.samples import UnitNumbers",
            "from ..._queries.blocks import exact_tuples",
            "from ... import _rows",
            "from ..._queries._query import _asked",
            "from ..._queries._query import Part",
            "from ..._queries import columns",
            "import sklearn_dp._rows.table",
        )
    ],
    *[
        (states_no_sensitivity, source)
        for source in (
            "session.gaussian('a', 1, sensitivity=1.0)",
            "context.session.gaussian('a', 1, sensitivity=1.0)",
            "self._session.gaussian('a', [1], sensitivity=1.0)",
            "step.gaussian(1, sensitivity=1.0, epsilon=1.0, delta=0.1)",
        )
    ],
    *[
        (has_no_way_to_rows, source)
        for source in (
            "n = context.rows.sums(f)",
            "X = part.source.read()",
            "engine = self.table.engine",
            "answer._Sealed__exact",
            "rows._TableRows__table",
            "table._raw()",
            "first = coins._firsts",
            "n = numbers.size",
            "object.__getattribute__(answer, name)",
        )
    ],
    *[
        (defines_no_questions, source)
        for source in ("class A(Query): pass", "class B(q.Public): pass", "class C(Sealed): x = 1")
    ],
]


@pytest.mark.parametrize(("law", "source"), PLANTED)
def test_a_planted_leak_is_seen(law, source):
    assert list(law(Module.parse("_aggregate.kmeans.lloyd", source)))


@pytest.mark.parametrize(
    "source",
    [
        "from ..._queries.clusters import Nearest\nfrom ..._queries.grids import GridRows",
        "from ..._privacy._units import Sealed\nfrom ..._rows.rows import GridGeometry",
        "from ..._privacy._grid import safe_norms",
        "near = rows.ask(Nearest(centers, scales, edges))\nsession.release('a', near.counts)",
        "seen = self.window.sums\nentry = PlanEntry.gaussian('a', 0.5)",
        "from ..shared.centering import Size",
    ],
)
def test_no_law_objects_to_an_algorithm(source):
    assert violations(Module.parse("_aggregate.kmeans.lloyd", source)) == []
