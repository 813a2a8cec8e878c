"""How much there is to read: lines, functions, circles of files, and the way of four fits.

    python tests/house.py                  # this checkout
    python tests/house.py --before FOLDER  # beside another one

Lines by kind are those of Python's own parser and tokenizer; complexity and parameters are those
of ruff (C901 above 10, PLR0913 above 6). The way of a fit is what a profiler sees: how many files
and functions of the package it enters, and how often a call goes from one file to another.
"""

import argparse
import ast
import io
import json
import subprocess
import sys
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

WAYS = """
import json, os, sys, warnings
warnings.simplefilter("ignore")
import numpy as np
import sklearn_dp
from sklearn_dp import DPGaussianMixture, DPKMeans, FriendlyMean
from sklearn_dp.model_selection import DPGridSearch
HERE = os.path.dirname(sklearn_dp.__file__)
rng = np.random.default_rng(0)
X = rng.normal(size=(2000, 3)) + 9 * rng.integers(3, size=(2000, 1))
grid = lambda: DPGridSearch(DPKMeans(bounds=50.0), {"n_clusters": [2, 3]}, epsilon=5.0)
MODELS = {
    "DPKMeans": lambda: DPKMeans(3, bounds=50.0),
    "FriendlyMean": lambda: FriendlyMean(),
    "DPGaussianMixture": lambda: DPGaussianMixture(3, bounds=50.0),
    "DPGridSearch": grid,
}
found = {}
for name, make in MODELS.items():
    files, functions, moves = set(), set(), 0
    model = make().set_params(random_state=0)
    def watch(frame, event, argument):
        global moves
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(HERE):
            return
        files.add(code.co_filename)
        functions.add((code.co_filename, code.co_firstlineno))
        back = frame.f_back.f_code.co_filename
        moves += back.startswith(HERE) and back != code.co_filename
    sys.setprofile(watch)
    try:
        model.fit(X)
    finally:
        sys.setprofile(None)
    found[name] = [len(files), len(functions), moves]
print(json.dumps(found))
"""


def kinds_of_lines(source):
    """Whether each line is code, a docstring, a comment or blank."""
    kind = dict.fromkeys(range(1, source.count("\n") + 1), "blank")
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            if kind[token.start[0]] == "blank":  # a line with code before it is code
                kind[token.start[0]] = "comment"
        elif token.string.strip():
            for number in range(token.start[0], token.end[0] + 1):
                kind[number] = "code"
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            kind.update(dict.fromkeys(range(first.lineno, first.end_lineno + 1), "docstring"))
    return kind


def lines_by_kind(sources):
    """Code, docstrings, comments and blank lines."""
    kinds = Counter()
    for source in sources:
        kinds.update(kinds_of_lines(source).values())
    return {"lines": kinds.total(), **{kind: kinds[kind] for kind in sorted(kinds)}}


def functions(sources):
    """Their number, and the share of their parameters that have a type."""
    every = [n for s in sources for n in ast.walk(ast.parse(s)) if isinstance(n, FUNCTIONS)]
    parameters = [
        argument.annotation is not None
        for node in every
        for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        if argument.arg not in ("self", "cls")
    ]
    share = f"{100 * sum(parameters) / len(parameters):.0f}%"
    return {"functions": len(every), "annotated parameters": share}


def complaints(package):
    """What ruff counts: functions above ten in complexity, and of more than six parameters."""
    command = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--isolated",
        "--exit-zero",
        "--output-format=json",
    ]
    rules = ["--select=C901,PLR0913", "--config=lint.mccabe.max-complexity=10"]
    limit = ["--config=lint.pylint.max-args=6", "--preview", str(package)]
    told = json.loads(
        subprocess.run([*command, *rules, *limit], check=True, capture_output=True).stdout
    )
    codes = Counter(each["code"] for each in told)
    return {"complexity above 10": codes["C901"], "more than 6 parameters": codes["PLR0913"]}


def imports(package):
    """Which modules of the package each one imports, not counting imports for types."""
    names = {}
    for path in package.rglob("*.py"):
        parts = path.relative_to(package.parent).with_suffix("").parts
        names[parts[:-1] if parts[-1] == "__init__" else parts] = path
    for name, path in names.items():
        base = name if path.name == "__init__.py" else name[:-1]
        found = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.ImportFrom) or node.level == 0:
                continue
            target = base[: len(base) - node.level + 1] + tuple((node.module or "").split("."))
            target = tuple(part for part in target if part)
            found |= {target, *((*target, alias.name) for alias in node.names)} & names.keys()
        yield name, found - {name}


def rings(package):
    """Groups of files that import each other, packages' own `__init__` aside."""
    graph = {name: {n for n in found if len(n) > 1} for name, found in imports(package)}
    reach = {}
    for start in graph:
        seen, left = set(), [start]
        while left:
            new = graph[left.pop()] - seen
            seen |= new
            left += new
        reach[start] = seen
    return {frozenset(b for b in seen if a in reach[b]) for a, seen in reach.items() if a in seen}


def measures(root):
    """All figures of a checkout."""
    package = root / "sklearn_dp"
    sources = [path.read_text() for path in sorted(package.rglob("*.py"))]
    tests = [path.read_text() for path in sorted((root / "tests").rglob("*.py"))]
    command = [sys.executable, "-c", WAYS]
    ways = subprocess.run(command, check=True, cwd=root, capture_output=True, text=True).stdout
    found = {f"package: {kind}": n for kind, n in lines_by_kind(sources).items()}
    found["tests: lines"] = sum(source.count("\n") for source in tests)
    found |= functions(sources) | complaints(package)
    found["circles of files"] = len(rings(package))
    for name, figures in json.loads(ways).items():
        for kind, figure in zip(
            ("files", "functions", "moves between files"), figures, strict=True
        ):
            found[f"{name}.fit: {kind}"] = figure
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, help="folder of another checkout")
    before = parser.parse_args().before
    now, past = measures(ROOT), measures(before.resolve()) if before else {}
    for name, figure in now.items():
        print(f"{name:<36}{past.get(name, ''):>12}{figure:>12}")


if __name__ == "__main__":
    main()
